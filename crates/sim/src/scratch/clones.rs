//! Clones of the users' volumes and of each other, which are written to while those are.

use std::rc::Rc;

use tier0_units::Nanos;
use tier0_world::Random;

use super::known::{Content, Fate, Known, Piece};
use super::pieces::{self, PIECE_SECTORS};
use super::{delete, names, next_name, set_fate};
use crate::administrator::ask;
use crate::life::Life;
use crate::system::{Admin, Running};

/// Pauses of a user that one of the administrator's is as long as.
const THINKS: u64 = 4;
/// The most volumes at once.
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
    let one = (!there.is_empty()).then(|| there[random.below(there.len() as u64) as usize].clone());
    match (random.below(10), one) {
        (0..4, of) if there.len() < VOLUMES_MAX => {
            let of = of.filter(|_| random.chance(0.3));
            clone(life, of, random).await
        }
        (_, None) => clone(life, None, random).await,
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
    let request = Admin::CloneVolume { of, name: name.clone() };
    let made = ask(life, request, "volumes cloned under load").await?;
    {
        let mut scratch = life.session.scratch.borrow_mut();
        let known = scratch.volumes.get_mut(&name).expect("it is known");
        if !made {
            // Where drives are away, it may be made when they are there again, of what there is then.
            known.is_unsure = known.cloning.is_none();
            return Ok(());
        }
        if let Some(ticket) = known.cloning.take() {
            known.cloned = Some(life.session.auditor.borrow().end_clone(&ticket));
        }
    }
    set_fate(life, &name, Fate::There);
    match random.chance(0.5) {
        true => pieces::verify(life, &name).await,
        false => Ok(()),
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
