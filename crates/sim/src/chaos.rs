//! Trouble: what goes wrong with the drives, and what administrators do, while the users work.

use std::rc::Rc;

use tier0_drive::sim::{HANG, SimMedium};
use tier0_drive::{Fault, FaultPlan};
use tier0_units::{Lba, Nanos, PAGE_SECTORS};
use tier0_world::Random;

use crate::administrator::{add_blank, ask, replace};
use crate::config::{Trouble, pick};
use crate::heal::heal;
use crate::life::Life;
use crate::mishap::strike as mishap;
use crate::scratch;
use crate::shelf::Whereabouts;
use crate::system::{Admin, Running};

/// No pause is longer: a life ends only after the pause in which its users are done, and must not seem to hang.
const PAUSE_MAX: Nanos = Nanos::from_secs(1_800);

/// Makes trouble until the users are done.
pub(crate) async fn rage<R: Running>(life: Rc<Life<R>>) {
    let faults = &life.session.config.faults;
    let total: u64 = faults.weights.iter().sum();
    if total == 0 || faults.per_life <= 0.0 || life.session.is_calm.get() {
        return;
    }
    let mut random = life.session.random(0xca05);
    let load = &life.session.config.load;
    // About as long as the users need if a request takes half a millisecond.
    let expected = load.operations * (load.think.0 + 500_000) / load.clients;
    let pause = expected as f64 / faults.per_life;
    // Not for ever, should the users be slow: their slowness is no reason for more trouble.
    for _ in 0..3 + (faults.per_life * 3.0) as u64 {
        life.world.sleep(Nanos(random.exponential(pause) as u64).min(PAUSE_MAX)).await;
        if life.done.get() {
            return;
        }
        let trouble = draw(&faults.weights, total, &mut random);
        if let Err(sentence) = make(&life, trouble, &mut random).await {
            return life.break_off(sentence);
        }
    }
}

fn draw(weights: &[u64], total: u64, random: &mut Random) -> Trouble {
    let mut ticket = random.below(total);
    for (trouble, weight) in Trouble::ALL.into_iter().zip(weights) {
        if ticket < *weight {
            return trouble;
        }
        ticket -= weight;
    }
    unreachable!("the ticket is below the sum of the weights")
}

async fn make<R: Running>(life: &Rc<Life<R>>, trouble: Trouble, random: &mut Random) -> Result<(), String> {
    // Where log and metadata lie may have changed, and the atlas must know.
    life.status().await;
    match trouble {
        Trouble::Heal => return heal(life).await,
        Trouble::AdminScrub => return ask(life, Admin::Scrub, "scrubs asked for").await.map(|_| ()),
        Trouble::AdminGrow => return scratch::grow(life, random).await,
        Trouble::AdminVolumes => return scratch::come_or_go(life, random).await,
        Trouble::AdminAdd => return add(life).await,
        Trouble::AdminRejoin => return rejoin(life, random).await,
        Trouble::AdminEmpty => return empty_or_keep(life, random).await,
        trouble if trouble.is_mishap() => {
            let strikes = mishap::strike(life, trouble, random);
            // Users may not read in the moment that a stretch cannot be read.
            if strikes && trouble == Trouble::StretchPasses && random.chance(0.5) {
                ask(life, Admin::Scrub, "scrubs asked for").await?;
            }
            return Ok(());
        }
        _ => {}
    }
    let present = life.session.shelf.borrow().names(Whereabouts::In);
    let Some(drive) = (!present.is_empty()).then(|| pick(&present, random)) else { return Ok(()) };
    let harmless = trouble == Trouble::Slow;
    if !harmless && life.session.mishaps.is_active() {
        life.session.count("troubles left out during mishaps");
        return Ok(());
    }
    if !harmless && !life.session.atlas.borrow_mut().strike(&drive) {
        life.session.count("troubles that nobody must survive, left out");
        return Ok(());
    }
    life.session.note(&life.world, format!("{trouble:?} on {drive}"));
    life.session.damaged.set(life.session.damaged.get() || trouble.damages());
    match trouble {
        Trouble::AdminFail => {
            ask(life, Admin::Fail { drive }, "drives failed by an administrator").await.map(|_| ())
        }
        Trouble::AdminReplace => replace(life, &drive).await,
        Trouble::AdminRemove => {
            life.session.known_lost.borrow_mut().insert(drive.clone());
            life.session.counted_lost.borrow_mut().insert(drive.clone());
            ask(life, Admin::Remove { drive }, "healthy drives taken out").await.map(|_| ())
        }
        _ => {
            strike(life, trouble, &drive, random);
            Ok(())
        }
    }
}

/// Sectors that a drive forgets at once: 128 KiB.
const FORGOTTEN_SECTORS: u64 = 32 * PAGE_SECTORS;

/// Data rot: a bit, a whole sector, or a stretch that the drive forgets.
fn spoil(medium: &SimMedium, trouble: Trouble, forgets: bool, lba: Lba) {
    match trouble {
        Trouble::Rot => _ = medium.rot(lba),
        _ if forgets => {
            let first = lba.0 - lba.0 % FORGOTTEN_SECTORS;
            medium.forget(first..(first + FORGOTTEN_SECTORS).min(medium.options().info.sectors.0));
        }
        _ => _ = medium.scramble(lba),
    }
}

/// Does to a drive what needs no administrator.
fn strike<R: Running>(life: &Rc<Life<R>>, trouble: Trouble, drive: &str, random: &mut Random) {
    let session = &life.session;
    let medium = session.shelf.borrow().medium(drive);
    let times = Some(1 + random.below(3) as u32);
    let plan = |fault| FaultPlan { fault, probability: 1.0, range: None, times };
    let counted = match trouble {
        Trouble::Rot | Trouble::Scramble => {
            for _ in 0..1 + random.below(8) {
                if let Some(lba) = medium.sample_written(random) {
                    spoil(&medium, trouble, session.config.faults.forgets, lba);
                }
            }
            "drives struck by rot"
        }
        Trouble::Unreadable => {
            for _ in 0..1 + random.below(4) {
                if let Some(lba) = medium.sample_written(random) {
                    let end = (lba.0 + 1 + random.below(8)).min(medium.options().info.sectors.0);
                    medium.make_unreadable(lba.0..end);
                }
            }
            "drives with unreadable sectors"
        }
        Trouble::LostWrite => {
            medium.inject(plan(Fault::LostWrite));
            "drives that lose writes"
        }
        Trouble::TornWrite => {
            medium.inject(plan(Fault::TornWrite));
            "drives that tear writes"
        }
        Trouble::Misdirect => {
            medium.inject(plan(Fault::MisdirectedWrite));
            "drives that misdirect writes"
        }
        Trouble::ReadError => {
            medium.inject(plan(Fault::ReadError));
            "drives that fail reads"
        }
        Trouble::WriteError => {
            medium.inject(FaultPlan::once(Fault::WriteError));
            "drives that fail writes"
        }
        Trouble::FlushError => {
            medium.inject(FaultPlan::once(Fault::FlushError));
            "drives that fail flushes"
        }
        Trouble::Slow => {
            let delay = Nanos(1_000_000 + random.below(100_000_000));
            medium.inject(FaultPlan { times: Some(40), ..FaultPlan::share(Fault::Latency(delay), 0.3) });
            "drives that are slow"
        }
        Trouble::Hang => {
            medium.inject(FaultPlan::share(Fault::Latency(HANG), 1.0));
            session.hung.set(true);
            "drives that hang"
        }
        Trouble::Unplug | Trouble::Disconnect => {
            if trouble == Trouble::Unplug {
                medium.unplug();
            }
            session.shelf.borrow_mut().put(drive, Whereabouts::Gone);
            "drives gone"
        }
        Trouble::AdminFail
        | Trouble::AdminReplace
        | Trouble::AdminAdd
        | Trouble::AdminScrub
        | Trouble::AdminGrow
        | Trouble::AdminVolumes
        | Trouble::AdminRemove
        | Trouble::AdminRejoin
        | Trouble::AdminEmpty
        | Trouble::ErrorsPass
        | Trouble::Outage
        | Trouble::HangPasses
        | Trouble::StretchPasses
        | Trouble::Heal => unreachable!("an administrator does that"),
    };
    session.count(counted);
}

/// Has a drive emptied, which costs no redundancy at any time, or thinks better of the last one.
async fn empty_or_keep<R: Running>(life: &Rc<Life<R>>, random: &mut Random) -> Result<(), String> {
    let session = &life.session;
    let last = session.emptied.borrow_mut().take();
    if let Some(drive) = last.filter(|_| random.chance(0.4)) {
        return ask(life, Admin::Keep { drive }, "drives kept after all").await.map(|_| ());
    }
    let present = session.shelf.borrow().names(Whereabouts::In);
    let Some(drive) = (!present.is_empty()).then(|| pick(&present, random)) else { return Ok(()) };
    if empty(life, &drive).await? {
        *session.emptied.borrow_mut() = Some(drive);
    }
    Ok(())
}

/// Has a drive emptied; whether that has begun.
pub(crate) async fn empty<R: Running>(life: &Rc<Life<R>>, drive: &str) -> Result<bool, String> {
    ask(life, Admin::Empty { drive: drive.to_owned() }, "drives emptied").await
}

/// Adds a drive: one that was lost and is back with what it held, or a blank one.
async fn add<R: Running>(life: &Rc<Life<R>>) -> Result<(), String> {
    let session = &life.session;
    let out = session.shelf.borrow().names(Whereabouts::Out);
    let Some(name) = out.first() else { return add_blank(life).await };
    session.shelf.borrow_mut().put(name, Whereabouts::In);
    let drive = session.shelf.borrow_mut().handle(name, &life.world);
    ask(life, Admin::Add { drive }, "stale drives brought back").await.map(|_| ())
}

/// Takes a drive back that is lost and answers.
async fn rejoin<R: Running>(life: &Rc<Life<R>>, random: &mut Random) -> Result<(), String> {
    let lost = life.status().await.lost;
    let there = |name: &String| !life.session.shelf.borrow().medium(name).is_gone();
    let back: Vec<String> = lost.into_iter().filter(there).collect();
    if back.is_empty() || life.session.mishaps.is_active() {
        return Ok(());
    }
    let name = pick(&back, random);
    life.session.shelf.borrow_mut().put(&name, Whereabouts::In);
    let drive = life.session.shelf.borrow_mut().handle(&name, &life.world);
    ask(life, Admin::Rejoin { drive }, "drives taken back").await.map(|_| ())
}
