//! Clones of the users' volumes and of each other, which are written to while those are.

use std::rc::Rc;

use tier0_units::Nanos;
use tier0_world::Random;

use super::known::{Content, Fate, Known, Piece};
use super::pieces::{self, PIECE_SECTORS};
use super::{delete, names, next_name, set_fate};
use crate::administrator::{self, Outcome};
use crate::life::Life;
use crate::system::{Admin, Running};

/// Pauses of a user that one of the administrator's is as long as.
const THINKS: u64 = 4;
/// An administrator who is refused reads why before the next request: a paused pool refuses every one at once.
const REFUSED_PAUSE: Nanos = Nanos::from_secs(1);
/// The most volumes at once, those included that may still come.
const VOLUMES_MAX: usize = 5;

/// Clones volumes, and changes and deletes clones, until the users are done; where there are clones.
pub(crate) async fn come_and_go<R: Running>(life: Rc<Life<R>>) {
    let mut random = life.session.random(0xc10e);
    let pause = life.session.config.load.think.0.saturating_mul(THINKS) as f64;
    while life.session.config.mixture.clones && !life.done.get() {
        if let Err(sentence) = change(&life, &mut random).await {
            return life.break_off(sentence);
        }
        life.world.sleep(Nanos(random.exponential(pause) as u64)).await;
    }
}

/// Clones a volume, or changes, reads or deletes one that came later.
async fn change<R: Running>(life: &Rc<Life<R>>, random: &mut Random) -> Result<(), String> {
    // No other administrator deletes one meanwhile.
    let _turn = life.scratch_turn.acquire(1).await;
    let there = names(life, Fate::There);
    // Where the array waits for drives it answers at once, and each clone that may still come keeps what its volume held.
    let may_clone = there.len() + names(life, Fate::Coming).len() < VOLUMES_MAX;
    let one = (!there.is_empty()).then(|| there[random.below(there.len() as u64) as usize].clone());
    match (random.below(10), one) {
        (0..4, of) if may_clone => {
            let of = of.filter(|_| random.chance(0.3));
            clone(life, of, random).await
        }
        (_, None) if may_clone => clone(life, None, random).await,
        (_, None) => Ok(()),
        (4, Some(name)) => pieces::discard_all(life, &name).await,
        (0..7, Some(name)) => pieces::change_some(life, &name, random).await,
        (7, Some(name)) => pieces::verify(life, &name).await,
        (_, Some(name)) => delete(life, &name).await,
    }
}

/// Clones that volume, or one of the users'.
async fn clone<R: Running>(
    life: &Rc<Life<R>>,
    of: Option<String>,
    random: &mut Random,
) -> Result<(), String> {
    let (of, known) = match of {
        Some(of) => {
            let number = life.session.scratch.borrow().ever;
            let known = of_clone(life, &of, number);
            (of, known)
        }
        None => {
            let volume = random.below(life.volumes.len() as u64) as usize;
            (format!("v{volume}"), of_users(life, volume))
        }
    };
    let name = next_name(life, known);
    let wish = Admin::CloneVolume { of, name: name.clone() };
    match administrator::request(life, wish, "volumes cloned under load").await? {
        Outcome::Done => note_made(life, &name),
        Outcome::Refused => {
            life.session.scratch.borrow_mut().volumes.remove(&name);
            life.world.sleep(REFUSED_PAUSE).await;
            return Ok(());
        }
        Outcome::Unfinished => {
            // It may be made when the drives are back that the array waits for, of what there is then.
            let mut scratch = life.session.scratch.borrow_mut();
            let known = scratch.volumes.get_mut(&name).expect("it is known");
            known.is_unsure = known.cloning.is_none();
            return Ok(());
        }
    }
    set_fate(life, &name, Fate::There);
    match random.chance(0.5) {
        true => pieces::verify(life, &name).await,
        false => Ok(()),
    }
}

/// A clone was made: it has what its volume held meanwhile.
fn note_made<R: Running>(life: &Life<R>, name: &str) {
    let mut scratch = life.session.scratch.borrow_mut();
    let known = scratch.volumes.get_mut(name).expect("it is known");
    if let Some(ticket) = known.cloning.take() {
        known.cloned = Some(life.session.auditor.borrow().end_clone(&ticket));
    }
}

/// A clone of one of the users' volumes to be.
fn of_users<R: Running>(life: &Life<R>, volume: usize) -> Known {
    let auditor = life.session.auditor.borrow();
    let sectors = auditor.sectors(volume);
    Known {
        fate: Fate::Coming,
        number: life.session.scratch.borrow().ever,
        sectors,
        pieces: vec![Piece::of(Content::Cloned); sectors.div_ceil(PIECE_SECTORS) as usize],
        cloned: None,
        cloning: Some(auditor.begin_clone(volume)),
        shrinks_to: None,
        is_unsure: false,
    }
}

/// A clone of a volume that came later, to be.
fn of_clone<R: Running>(life: &Life<R>, of: &str, number: u64) -> Known {
    let scratch = life.session.scratch.borrow();
    let known = &scratch.volumes[of];
    Known {
        fate: Fate::Coming,
        number,
        sectors: known.sectors,
        pieces: known.pieces.clone(),
        cloned: known.cloned.clone(),
        cloning: None,
        shrinks_to: None,
        is_unsure: known.is_unsure,
    }
}
