//! Incidents: what operators and machines do to drives and processes that are healthy.
//!
//! | incident | what must hold |
//! |---|---|
//! | a drive is pulled while users work, called lost, put back and taken back | nothing is lost; what it lacks is rebuilt, by what has changed |
//! | the process stands still for seconds or a minute | no drive is lost by it |
//! | between two lives, a drive is put back to an image of an earlier one | it is not believed, and nothing is lost |
//!
//! Pulled drives and older images stay within what redundancy makes up for ([`crate::atlas`]).

use std::rc::Rc;

use tier0_units::Nanos;
use tier0_world::Random;

use crate::administrator::ask;
use crate::config::{log_uniform, pick};
use crate::life::Life;
use crate::session::Session;
use crate::shelf::Whereabouts;
use crate::system::{Admin, Running};

/// Incidents of a life at most.
const PER_LIFE: u64 = 4;
/// The pause before each, nanoseconds.
const PAUSE: (u64, u64) = (1_000_000, 20_000_000_000);
/// So long an array may take to call a drive lost that is gone, while users work.
const LOST_WITHIN: Nanos = Nanos::from_secs(120);
/// How often one looks.
const LOOK: Nanos = Nanos::from_millis(500);
/// For so long a process stands still, nanoseconds.
const STALL: (u64, u64) = (5_000_000_000, 90_000_000_000);

/// Has incidents happen until the users are done.
pub(crate) async fn happen<R: Running>(life: Rc<Life<R>>) {
    if !life.session.config.has_incidents() || life.session.is_calm.get() {
        return;
    }
    let mut random = life.session.random(0x1c1d);
    for _ in 0..1 + random.below(PER_LIFE) {
        life.world.sleep(Nanos(log_uniform(PAUSE.0, PAUSE.1, &mut random))).await;
        if life.done.get() {
            return;
        }
        let happened = match random.below(3) {
            0 => stand_still(&life, &mut random).await,
            _ => pull_and_return(&life, &mut random).await,
        };
        if let Err(sentence) = happened {
            return life.break_off(sentence);
        }
    }
}

/// Pulls a drive, waits until it is called lost, and takes it back.
async fn pull_and_return<R: Running>(life: &Rc<Life<R>>, random: &mut Random) -> Result<(), String> {
    let session = &life.session;
    life.status().await;
    let present = session.shelf.borrow().names(Whereabouts::In);
    let Some(name) = (!present.is_empty()).then(|| pick(&present, random)) else { return Ok(()) };
    if session.mishaps.is_settling(life.world.now()) || !session.atlas.borrow_mut().strike(&name) {
        return Ok(());
    }
    session.note(&life.world, format!("{name} is pulled"));
    let medium = session.shelf.borrow().medium(&name);
    match random.below(3) {
        0 => medium.disconnect(),
        1 => medium.unplug(),
        _ => medium.lose_power(),
    }
    session.shelf.borrow_mut().put(&name, Whereabouts::Gone);
    let began = life.world.now();
    while !life.status().await.lost.contains(&name) {
        if life.world.now() - began > LOST_WITHIN || life.done.get() {
            // No command went to it.
            session.shelf.borrow_mut().put(&name, Whereabouts::In);
            session.count("drives pulled and put back unnoticed");
            return Ok(());
        }
        life.world.sleep(LOOK).await;
    }
    life.world.sleep(Nanos(log_uniform(1_000_000, 30_000_000_000, random))).await;
    if session.shelf.borrow().names(Whereabouts::In).contains(&name) || session.mishaps.is_active() {
        return Ok(());
    }
    session.shelf.borrow_mut().put(&name, Whereabouts::In);
    let drive = session.shelf.borrow_mut().reopened(&name, &life.world);
    ask(life, Admin::Rejoin { drive }, "drives pulled and taken back").await.map(|_| ())
}

/// The process does nothing for a while.
async fn stand_still<R: Running>(life: &Rc<Life<R>>, random: &mut Random) -> Result<(), String> {
    let session = &life.session;
    let before = life.status().await.lost;
    let is_quiet = session.atlas.borrow().is_clear() && !session.mishaps.is_active();
    let time = Nanos(log_uniform(STALL.0, STALL.1, random));
    session.note(&life.world, format!("the process stands still for {time}"));
    let events = session.event_count();
    life.world.stall(time);
    // Long enough for the tasks that count the time in which nothing turned.
    life.world.sleep(LOOK).await;
    let after = life.status().await.lost;
    session.count("processes that stand still");
    if is_quiet && session.event_count() == events && after != before {
        return Err(format!("drives {} are lost because the process stood still", after.join(" ")));
    }
    Ok(())
}

/// Between two lives: a drive is copied, or put back to what was copied before an earlier life.
pub(crate) fn between(session: &Session) {
    if !session.config.has_incidents() {
        return;
    }
    let mut random = session.random(0x1ca6);
    let shelf = session.shelf.borrow();
    let present = shelf.names(Whereabouts::In);
    let kept: Vec<String> = session.images.kept.borrow().keys().cloned().collect();
    let old = if kept.is_empty() { None } else { Some(pick(&kept, &mut random)) };
    // Several old drives may make up a history of their own, which is told as a split.
    let is_first = session.images.old.borrow().is_empty();
    if let Some(name) = old.filter(|name| is_first && random.chance(0.6) && present.contains(name)) {
        if session.atlas.borrow_mut().strike(&name) {
            let image =
                session.images.kept.borrow_mut().remove(&name).expect("it is one of those that are kept");
            let newest = shelf.medium(&name).image();
            shelf.medium(&name).restore(&image);
            session.count("drives put back to an older image");
            session.images.note_old(&name);
            session.images.restored.borrow_mut().insert(name, newest);
        }
    } else if let Some(name) = (!present.is_empty()).then(|| pick(&present, &mut random)) {
        let image = shelf.medium(&name).image();
        session.images.kept.borrow_mut().insert(name, image);
    }
}
