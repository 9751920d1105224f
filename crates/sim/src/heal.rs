//! Liveness: once nothing goes wrong any more, the array must become whole.
//!
//! Faults end, lost drives are replaced if spares do not suffice, and then within a bound of virtual time everything
//! must be redundant and have ceased to move, and no drive that is not for data may have columns for which others have room; a scrub must end without anything that cannot be repaired, and a second one
//! must find nothing. If nothing has damaged stored data, the first must find nothing either: crashes, losses and rebuilds
//! leave no trace.

use std::collections::BTreeSet;
use std::rc::Rc;

use tier0_units::Nanos;

use crate::administrator::{add_blank, ask, replace};
use crate::life::Life;
use crate::shelf::Whereabouts;
use crate::system::{Admin, Running, Status};

/// Within this the array must be redundant, or a scrub done: far more than the little data here needs.
const HEAL_MAX: Nanos = Nanos::from_secs(1_800);
/// Spares may do without a new drive for so long.
const PATIENCE: Nanos = Nanos::from_secs(60);
/// Within this an array gives up a drive that does not answer.
const HANG_NOTICED: Nanos = Nanos::from_secs(60);
/// How often one looks.
const LOOK: Nanos = Nanos::from_millis(200);

/// Ends all trouble and waits until the array is whole.
pub(crate) async fn heal<R: Running>(life: &Rc<Life<R>>) -> Result<(), String> {
    let session = &life.session;
    session.note(&life.world, "heal");
    let proof = session.atlas.borrow().begin_proof();
    // A command that hangs does so although the drive answers the next.
    life.world.sleep_until(session.mishaps.hangs_until()).await;
    session.mishaps.end_all(&session.shelf.borrow(), life.world.now());
    session.shelf.borrow().calm();
    if session.hung.take() {
        // A command that hangs does so although the drive answers the next: the loss it ends in is still to come.
        life.world.sleep(HANG_NOTICED).await;
    }
    announce_gone(life).await?;
    become_redundant(life).await?;
    if !session.config.can_scrub {
        session.shelf.borrow().come_clean();
        session.atlas.borrow_mut().clear_until(proof);
        session.count("healed");
        return Ok(());
    }
    scrub_until_clean(life).await?;
    session.shelf.borrow().come_clean();
    session.atlas.borrow_mut().clear_until(proof);
    session.damaged.set(false);
    session.count("healed");
    Ok(())
}

/// The administrator sees that a drive is gone even if nothing was asked of it. What the array refuses for the moment, for instance
/// until it has verified another drive, is asked again.
async fn announce_gone<R: Running>(life: &Rc<Life<R>>) -> Result<(), String> {
    let until = life.world.now() + PATIENCE;
    loop {
        // A drive that the array calls lost is gone no more, but out.
        life.status().await;
        let gone = life.session.shelf.borrow().names(Whereabouts::Gone);
        let has_patience = life.world.now() < until;
        for drive in gone {
            let is_failed =
                ask(life, Admin::Fail { drive: drive.clone() }, "drives failed by an administrator").await?;
            if is_failed || !has_patience {
                life.session.shelf.borrow_mut().put(&drive, Whereabouts::Out);
            }
        }
        if life.session.shelf.borrow().names(Whereabouts::Gone).is_empty() {
            return Ok(());
        }
        life.world.sleep(LOOK).await;
    }
}

async fn become_redundant<R: Running>(life: &Rc<Life<R>>) -> Result<(), String> {
    let began = life.world.now();
    let mut replaced = BTreeSet::new();
    let mut patience = PATIENCE;
    loop {
        let status = life.status().await;
        if status.redundant && !status.moving && !status.misplaced {
            return Ok(());
        }
        let waited = life.world.now() - began;
        if waited > HEAL_MAX {
            let missing = match (status.redundant, status.moving) {
                (false, _) => "become redundant",
                (true, true) => "come to rest",
                (true, false) => "take columns off drives that are not for data",
            };
            return Err(format!("the array does not {missing} in {HEAL_MAX}: {}", status.sentence));
        }
        if waited > patience && !status.redundant && !status.rebuilding {
            patience = waited + PATIENCE;
            make_up_for(life, &status.lost, &mut replaced).await?;
        }
        life.world.sleep(LOOK).await;
    }
}

/// Replaces the drives that are lost, or adds one where nothing is left to replace.
async fn make_up_for<R: Running>(
    life: &Rc<Life<R>>,
    lost: &[String],
    replaced: &mut BTreeSet<String>,
) -> Result<(), String> {
    let left: Vec<&String> = lost.iter().filter(|drive| replaced.insert((*drive).clone())).collect();
    for drive in &left {
        replace(life, drive).await?;
    }
    if left.is_empty() { add_blank(life).await } else { Ok(()) }
}

/// Scrubs twice. What moves to another group meanwhile, a scrub can miss, or find in a slot that none has seen: then both are
/// repeated.
async fn scrub_until_clean<R: Running>(life: &Rc<Life<R>>) -> Result<(), String> {
    let session = &life.session;
    let began = life.world.now();
    loop {
        let moved = life.status().await.moved;
        let repaired = scrub(life).await?.scrub_repaired;
        if repaired > 0 && !session.damaged.get() {
            return Err(format!(
                "a scrub repairs {repaired} blocks, though nothing has damaged any since the last"
            ));
        }
        let repaired = scrub(life).await?.scrub_repaired;
        if session.config.mixture.moving || session.config.mixture.tiering {
            // A move that the scrub has seen the end of counts by then.
            life.world.sleep(LOOK).await;
        }
        if life.status().await.moved == moved {
            return match repaired {
                0 => Ok(()),
                _ => Err(format!(
                    "a scrub right after a scrub repairs {repaired} blocks, with no fault in between"
                )),
            };
        }
        session.count("scrubs repeated because extents moved");
        if life.world.now() - began > HEAL_MAX {
            return Err(format!("extents do not come to rest in {HEAL_MAX}"));
        }
    }
}

/// Scrubs everything once, and returns the status after it.
async fn scrub<R: Running>(life: &Rc<Life<R>>) -> Result<Status, String> {
    wait_for_scrub(life).await?;
    ask(life, Admin::Scrub, "scrubs asked for").await?;
    let status = wait_for_scrub(life).await?;
    if status.unrecoverable > 0 {
        return Err(format!("{} blocks cannot be repaired: {}", status.unrecoverable, status.sentence));
    }
    life.session.coverage.borrow_mut().add("blocks repaired by scrubs", status.scrub_repaired);
    Ok(status)
}

async fn wait_for_scrub<R: Running>(life: &Rc<Life<R>>) -> Result<Status, String> {
    let began = life.world.now();
    loop {
        let status = life.status().await;
        if !status.scrubbing {
            return Ok(status);
        }
        if life.world.now() - began > HEAL_MAX {
            return Err(format!("a scrub does not end in {HEAL_MAX}: {}", status.sentence));
        }
        life.world.sleep(LOOK).await;
    }
}
