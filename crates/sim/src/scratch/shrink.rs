//! Volumes that came later, made smaller. Before a shrink is acknowledged, the volume has one of both sizes, and its tail holds
//! what it held, or zeros.

use std::rc::Rc;

use tier0_block::BlockTarget;
use tier0_world::Random;

use super::delete;
use super::known::{Content, Known};
use super::pieces::{self, PIECE_SECTORS};
use crate::administrator::ask;
use crate::life::Life;
use crate::system::{Admin, Running};

/// Makes a volume smaller by whole pieces, and reads what is left.
pub(super) async fn shrink<R: Running>(
    life: &Rc<Life<R>>,
    name: &str,
    random: &mut Random,
) -> Result<(), String> {
    let Some(pieces) = begin(life, name, random) else { return delete(life, name).await };
    let sectors = pieces * PIECE_SECTORS;
    let request = Admin::ShrinkVolume { name: name.to_owned(), sectors };
    if !ask(life, request, "volumes shrunk under load").await? {
        // Where drives were away, it may go on when they are there again.
        return delete(life, name).await;
    }
    life.session.scratch.borrow_mut().volumes.get_mut(name).expect("it is known").cut_to(sectors);
    settle(life, name)?;
    pieces::verify(life, name).await
}

/// Notes what a shrink may do; the pieces that stay. None where the volume has one piece, or it is not known what it holds.
fn begin<R: Running>(life: &Life<R>, name: &str, random: &mut Random) -> Option<u64> {
    let mut scratch = life.session.scratch.borrow_mut();
    let known = scratch.volumes.get_mut(name).expect("it is known");
    let count = known.pieces.len() as u64;
    if count < 2 || known.is_unsure || known.pieces.iter().any(|piece| piece.becomes.is_some()) {
        return None;
    }
    let stay = 1 + random.below(count - 1);
    known.pieces[stay as usize..].iter_mut().for_each(|piece| piece.becomes = Some(Content::Zeros));
    known.shrinks_to = Some(stay * PIECE_SECTORS);
    Some(stay)
}

/// Compares the size of a volume with what is known, and takes that of a shrink that may have been done.
pub(super) fn settle<R: Running>(life: &Life<R>, name: &str) -> Result<(), String> {
    let actual = pieces::volume_of(life, name)?.info().sectors.0;
    let mut scratch = life.session.scratch.borrow_mut();
    let known = scratch.volumes.get_mut(name).expect("it is known");
    if known.shrinks_to.take() == Some(actual) {
        known.cut_to(actual);
    }
    match known.sectors == actual {
        true => Ok(()),
        false => Err(format!("volume {name} has {actual} sectors, and {} are known", known.sectors)),
    }
}

impl Known {
    fn cut_to(&mut self, sectors: u64) {
        self.sectors = sectors;
        self.pieces.truncate(sectors.div_ceil(PIECE_SECTORS) as usize);
        self.shrinks_to = None;
    }
}
