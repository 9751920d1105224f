//! Mishaps as they begin and end on the drives.

use std::cell::Cell;
use std::ops::Range;
use std::rc::Rc;

use tier0_drive::{Fault, FaultPlan};
use tier0_units::Nanos;
use tier0_world::Random;

use crate::config::{Trouble, log_uniform, pick};
use crate::life::Life;
use crate::shelf::Whereabouts;
use crate::system::Running;

/// Drives that are struck together are struck within this time.
const SPREAD_MAX: u64 = 3_000_000_000;
/// The shortest and the longest mishap.
const LASTS: (u64, u64) = (1_000_000, 400_000_000_000);
/// How long a stretch cannot be read: long enough that something reads it, and too short for users to be refused.
const STRETCH_LASTS: (u64, u64) = (50_000_000, 4_000_000_000);

/// Strikes drives, one or all of them or those with the log, for a while; false where something is broken already.
pub(crate) fn strike<R: Running>(life: &Rc<Life<R>>, trouble: Trouble, random: &mut Random) -> bool {
    let session = &life.session;
    if !session.atlas.borrow().is_clear() || session.mishaps.is_active() {
        session.count("mishaps left out, because something was broken");
        return false;
    }
    let drives = choose(life, random);
    let (shortest, longest) = if trouble == Trouble::StretchPasses { STRETCH_LASTS } else { LASTS };
    let whole = log_uniform(shortest, longest, random);
    session.count(match trouble {
        Trouble::ErrorsPass => "mishaps: errors that pass",
        Trouble::Outage => "mishaps: drives without power for a while",
        Trouble::StretchPasses => "mishaps: stretches that cannot be read for a while",
        _ => "mishaps: drives that hang for a while",
    });
    session.note(&life.world, format!("{trouble:?} on {} for {}", drives.join(" "), Nanos(whole)));
    let window = session.mishaps.begin(life.world.now());
    let left = Rc::new(Cell::new(drives.len()));
    for drive in drives {
        let stretch = match trouble {
            Trouble::StretchPasses => Stretch::draw(random),
            _ => Stretch::WHOLE,
        };
        let begins = if random.chance(0.5) { 0 } else { random.below(SPREAD_MAX) };
        let lasts = if random.chance(0.5) { whole } else { log_uniform(shortest, whole, random) };
        if trouble == Trouble::HangPasses {
            let until = life.world.now() + Nanos(begins + 2 * lasts);
            session.mishaps.hangs_until.set(session.mishaps.hangs_until.get().max(until));
        }
        let (life, left, ended) = (life.clone(), left.clone(), life.session.mishaps.ended.get());
        let world = life.world.clone();
        let course = async move {
            life.world.sleep(Nanos(begins)).await;
            if life.session.mishaps.ended.get() != ended {
                return;
            }
            begin_on(&life, trouble, &drive, &stretch, Nanos(lasts));
            life.world.sleep(Nanos(lasts)).await;
            end_on(&life, &drive);
            if trouble == Trouble::HangPasses {
                // What was asked last hangs for as long.
                life.world.sleep(Nanos(lasts)).await;
            }
            left.set(left.get() - 1);
            if left.get() == 0 {
                life.session.mishaps.end(window, life.world.now());
            }
        };
        world.spawn(course).detach();
    }
    true
}

/// Which drives: one, those with the log, those with the metadata, any, or all.
fn choose<R: Running>(life: &Life<R>, random: &mut Random) -> Vec<String> {
    let present = life.session.shelf.borrow().names(Whereabouts::In);
    let (log, metadata) = life.session.atlas.borrow().places();
    let there = |names: Vec<String>| -> Vec<String> {
        names.into_iter().filter(|name| present.contains(name)).collect()
    };
    let chosen = match random.below(6) {
        0 => vec![pick(&present, random)],
        1 => there(log),
        2 => there(metadata),
        3 => present.clone(),
        _ => present.iter().filter(|_| random.chance(0.4)).cloned().collect(),
    };
    if chosen.is_empty() { vec![pick(&present, random)] } else { chosen }
}

/// Part of a drive, as shares of its size.
struct Stretch {
    begin: f64,
    share: f64,
}

impl Stretch {
    const WHOLE: Stretch = Stretch { begin: 0.0, share: 1.0 };

    fn draw(random: &mut Random) -> Stretch {
        match random.chance(0.3) {
            true => Stretch::WHOLE,
            false => Stretch { begin: random.unit(), share: random.unit() },
        }
    }

    fn sectors(&self, all: u64) -> Range<u64> {
        let begin = (all as f64 * self.begin) as u64;
        begin..begin + 1 + (all as f64 * self.share) as u64
    }
}

fn begin_on<R: Running>(life: &Life<R>, trouble: Trouble, drive: &str, stretch: &Stretch, lasts: Nanos) {
    let session = &life.session;
    let medium = session.shelf.borrow().medium(drive);
    *session.mishaps.struck.borrow_mut().entry(drive.to_owned()).or_default() += 1;
    match trouble {
        Trouble::ErrorsPass => {
            for fault in [Fault::ReadError, Fault::WriteError, Fault::FlushError] {
                medium.inject(FaultPlan::share(fault, 1.0));
            }
        }
        Trouble::Outage => medium.lose_power(),
        Trouble::StretchPasses => {
            let sectors = stretch.sectors(medium.options().info.sectors.0);
            medium.inject(FaultPlan::always_in(Fault::ReadError, sectors));
        }
        // Whatever is asked meanwhile is answered as much later.
        _ => medium.inject(FaultPlan::share(Fault::Latency(lasts), 1.0)),
    }
}

fn end_on<R: Running>(life: &Life<R>, drive: &str) {
    let session = &life.session;
    {
        let mut struck = session.mishaps.struck.borrow_mut();
        let Some(times) = struck.get_mut(drive) else { return };
        *times -= 1;
        if *times > 0 {
            return;
        }
        struck.remove(drive);
    }
    let medium = session.shelf.borrow().medium(drive);
    medium.clear_plans();
    if medium.is_gone() {
        medium.reconnect();
    }
}
