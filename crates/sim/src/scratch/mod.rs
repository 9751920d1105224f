//! Volumes that come and go while the array is troubled, apart from those that the users have.
//!
//! What is known of one: whether its creation or deletion was acknowledged, and of each of its pieces whether a write of
//! it was. A crash leaves a volume whose creation or deletion was under way there or not, but whole: deleted in part is
//! an error, and so is a piece of a volume that holds what no write put there, or a clone that has not what its volume had.

pub(crate) mod clones;
pub(crate) mod known;
mod pieces;
mod shrink;

use std::rc::Rc;

use tier0_world::Random;

use crate::administrator::{self, Outcome, ask};
use crate::life::Life;
use crate::system::{Admin, Running};

use known::{Content, Fate, Known, Piece};
use pieces::PIECE_SECTORS;

/// The most pieces of a volume.
const PIECES_MAX: u64 = 48;
/// The most volumes at once, those included that may still come.
const VOLUMES_MAX: usize = 3;

/// Creates a volume and writes to it, or shrinks or deletes one.
pub(crate) async fn come_or_go<R: Running>(life: &Rc<Life<R>>, random: &mut Random) -> Result<(), String> {
    let _turn = life.scratch_turn.acquire(1).await;
    let there = names(life, Fate::There);
    let is_full = there.len() + names(life, Fate::Coming).len() >= VOLUMES_MAX;
    if is_full && there.is_empty() {
        return Ok(());
    }
    if is_full || (!there.is_empty() && random.chance(0.4)) {
        let name = &there[random.below(there.len() as u64) as usize];
        return match random.chance(0.3) {
            true => shrink::shrink(life, name, random).await,
            false => delete(life, name).await,
        };
    }
    create(life, random).await
}

fn names<R: Running>(life: &Life<R>, fate: Fate) -> Vec<String> {
    let scratch = life.session.scratch.borrow();
    scratch.volumes.iter().filter(|(_, known)| known.fate == fate).map(|(name, _)| name.clone()).collect()
}

/// The name of the next volume, of which this is known.
fn next_name<R: Running>(life: &Life<R>, known: Known) -> String {
    let mut scratch = life.session.scratch.borrow_mut();
    let name = format!("x{}", scratch.ever);
    scratch.ever += 1;
    scratch.volumes.insert(name.clone(), known);
    name
}

async fn create<R: Running>(life: &Rc<Life<R>>, random: &mut Random) -> Result<(), String> {
    let pieces = 1 + random.below(PIECES_MAX);
    let known = Known {
        fate: Fate::Coming,
        number: life.session.scratch.borrow().ever,
        sectors: pieces * PIECE_SECTORS,
        pieces: vec![Piece::of(Content::Zeros); pieces as usize],
        cloned: None,
        cloning: None,
        shrinks_to: None,
        is_unsure: false,
    };
    let name = next_name(life, known);
    let thin = random.chance(0.7);
    let wish = Admin::CreateVolume { name: name.clone(), sectors: pieces * PIECE_SECTORS, thin };
    match administrator::request(life, wish, "volumes created under load").await? {
        Outcome::Done => {}
        Outcome::Refused => {
            life.session.scratch.borrow_mut().volumes.remove(&name);
            return Ok(());
        }
        // It may come when the drives do that the array waits for.
        Outcome::Unfinished => return Ok(()),
    }
    set_fate(life, &name, Fate::There);
    for piece in 0..pieces {
        if random.chance(0.6) && !pieces::write(life, &name, piece).await? {
            break;
        }
    }
    pieces::verify(life, &name).await
}

/// Deletes a volume.
async fn delete<R: Running>(life: &Rc<Life<R>>, name: &str) -> Result<(), String> {
    set_fate(life, name, Fate::Going);
    let wish = Admin::DeleteVolume { name: name.to_owned() };
    match administrator::request(life, wish, "volumes deleted under load").await? {
        Outcome::Done => drop(life.session.scratch.borrow_mut().volumes.remove(name)),
        Outcome::Refused => set_fate(life, name, Fate::There),
        // It may go when the drives are back that the array waits for.
        Outcome::Unfinished => {}
    }
    Ok(())
}

/// Deletes all that there are.
pub(crate) async fn delete_all<R: Running>(life: &Rc<Life<R>>) -> Result<(), String> {
    let there: Vec<String> = life.running.scratch().into_iter().map(|(name, _)| name).collect();
    for name in there {
        delete(life, &name).await?;
    }
    Ok(())
}

fn set_fate<R: Running>(life: &Life<R>, name: &str, fate: Fate) {
    life.session.scratch.borrow_mut().volumes.get_mut(name).expect("it is known").fate = fate;
}

/// After a start: what was acknowledged is there, what was deleted is not.
pub(crate) async fn check<R: Running>(life: &Rc<Life<R>>) -> Result<(), String> {
    let there: Vec<String> = life.running.scratch().into_iter().map(|(name, _)| name).collect();
    {
        let mut scratch = life.session.scratch.borrow_mut();
        if let Some(unknown) = there.iter().find(|name| !scratch.volumes.contains_key(*name)) {
            return Err(format!("volume {unknown} is there, though it was deleted or never created"));
        }
        let away = |(name, known): (&String, &Known)| {
            (known.fate == Fate::There && !there.contains(name)).then(|| name.clone())
        };
        if let Some(name) = scratch.volumes.iter().find_map(away) {
            return Err(format!("volume {name} is gone, though nobody deleted it"));
        }
        scratch.volumes.retain(|name, _| there.contains(name));
        scratch.volumes.values_mut().for_each(|known| known.fate = Fate::There);
    }
    for name in there {
        shrink::settle(life, &name)?;
        pieces::verify(life, &name).await?;
    }
    Ok(())
}

/// Adds blank drives, as many as make sets, and has the array grow by them.
pub(crate) async fn grow<R: Running>(life: &Rc<Life<R>>, random: &mut Random) -> Result<(), String> {
    let drives = life.session.config.array.drives as u64;
    for _ in 0..1 + random.below(drives.min(6)) {
        crate::administrator::add_blank(life).await?;
    }
    ask(life, Admin::Grow, "pools grown").await.map(|_| ())
}
