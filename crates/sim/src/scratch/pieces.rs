//! The pieces of a volume that came later: written, discarded, read and compared.

use std::rc::Rc;

use tier0_block::BlockTarget;
use tier0_units::{Lba, SECTOR_BYTES};
use tier0_workload::verify::stamp;
use tier0_world::{IoError, Random};

use super::known::{Content, Piece};
use crate::client::excused;
use crate::life::Life;
use crate::system::Running;

/// Sectors that are written and read at once.
pub(super) const PIECE_SECTORS: u64 = 64;

fn set<R: Running>(life: &Life<R>, name: &str, piece: u64, content: Piece) {
    let mut scratch = life.session.scratch.borrow_mut();
    scratch.volumes.get_mut(name).expect("it is known").pieces[piece as usize] = content;
}

/// A piece, the number of its volume, and how many sectors it has.
fn known<R: Running>(life: &Life<R>, name: &str, piece: u64) -> (Piece, u64, u64) {
    let scratch = life.session.scratch.borrow();
    let known = &scratch.volumes[name];
    let sectors = PIECE_SECTORS.min(known.sectors - piece * PIECE_SECTORS);
    (known.pieces[piece as usize], known.number, sectors)
}

pub(super) fn volume_of<R: Running>(life: &Life<R>, name: &str) -> Result<R::Volume, String> {
    let found = life.running.scratch().into_iter().find(|(other, _)| other == name);
    found.map(|(_, volume)| volume).ok_or_else(|| format!("volume {name} is not there"))
}

/// What was written to a piece of the volume with this number.
fn fill<R: Running>(life: &Life<R>, number: u64, piece: u64, bytes: &mut [u8]) {
    let seed = life.session.config.seed;
    for (sector, bytes) in (piece * PIECE_SECTORS..).zip(bytes.chunks_exact_mut(SECTOR_BYTES as usize)) {
        stamp(bytes, (number + 1) << 32 | sector, 1, seed);
    }
}

/// Writes a piece; false where there is no space for it.
pub(super) async fn write<R: Running>(life: &Rc<Life<R>>, name: &str, piece: u64) -> Result<bool, String> {
    let (_, number, sectors) = known(life, name, piece);
    let volume = volume_of(life, name)?;
    let mut buf = life.world.buffer(sectors as u32);
    fill(life, number, piece, buf.as_mut_slice());
    let write = volume.write(Lba(piece * PIECE_SECTORS), buf.freeze(), is_durable(life));
    make(life, name, piece, Content::Written(number), write).await
}

/// Discards a piece; false where there is no space for that.
async fn discard<R: Running>(life: &Rc<Life<R>>, name: &str, piece: u64) -> Result<bool, String> {
    let (_, _, sectors) = known(life, name, piece);
    let volume = volume_of(life, name)?;
    let zeroed = volume.write_zeroes(Lba(piece * PIECE_SECTORS), sectors, true, is_durable(life));
    make(life, name, piece, Content::Zeros, zeroed).await
}

/// A clone's cache is volatile where its volume's is.
fn is_durable<R: Running>(life: &Life<R>) -> bool {
    life.session.config.mixture.clones
}

/// Carries out a request that gives a piece this content; false where there is no space for it.
async fn make<R: Running>(
    life: &Rc<Life<R>>,
    name: &str,
    piece: u64,
    content: Content,
    request: impl Future<Output = Result<(), IoError>>,
) -> Result<bool, String> {
    let (before, _, _) = known(life, name, piece);
    set(life, name, piece, Piece { becomes: Some(content), ..before });
    let what = || format!("{content:?} of volume {name}, piece {piece}");
    let _request = life.session.request(what);
    let began = life.world.now();
    match request.await {
        Ok(()) => set(life, name, piece, Piece::of(content)),
        // Some of its extents may have had space.
        Err(IoError::NoSpace) => return Ok(false),
        Err(_) if excused(life, began) => {}
        Err(error) => return Err(format!("{} fails: {error}", what())),
    }
    Ok(true)
}

/// Discards a whole volume of which it is known what it holds.
pub(super) async fn discard_all<R: Running>(life: &Rc<Life<R>>, name: &str) -> Result<(), String> {
    let (count, sectors, is_known) = {
        let scratch = life.session.scratch.borrow();
        let known = &scratch.volumes[name];
        (known.pieces.len() as u64, known.sectors, known.pieces.iter().all(|piece| piece.becomes.is_none()))
    };
    if !is_known {
        return Ok(());
    }
    let volume = volume_of(life, name)?;
    for piece in 0..count {
        let (before, _, _) = known(life, name, piece);
        set(life, name, piece, Piece { becomes: Some(Content::Zeros), ..before });
    }
    let _request = life.session.request(|| format!("zeros over all of volume {name}"));
    let began = life.world.now();
    match volume.write_zeroes(Lba(0), sectors, true, is_durable(life)).await {
        Ok(()) => (0..count).for_each(|piece| set(life, name, piece, Piece::of(Content::Zeros))),
        Err(IoError::NoSpace) => {}
        Err(_) if excused(life, began) => {}
        Err(error) => return Err(format!("zeros over all of volume {name} fail: {error}")),
    }
    life.session.count("clones emptied");
    Ok(())
}

/// Writes or discards some pieces of which it is known what they hold.
pub(super) async fn change_some<R: Running>(
    life: &Rc<Life<R>>,
    name: &str,
    random: &mut Random,
) -> Result<(), String> {
    let count = life.session.scratch.borrow().volumes[name].pieces.len() as u64;
    for _ in 0..1 + random.below(6) {
        let piece = random.below(count);
        if known(life, name, piece).0.becomes.is_some() {
            continue;
        }
        let has_space = match random.chance(0.7) {
            true => write(life, name, piece).await?,
            false => discard(life, name, piece).await?,
        };
        if !has_space {
            break;
        }
    }
    Ok(())
}

/// Reads a whole volume and compares.
pub(super) async fn verify<R: Running>(life: &Rc<Life<R>>, name: &str) -> Result<(), String> {
    if life.session.scratch.borrow().volumes[name].is_unsure {
        return Ok(());
    }
    let volume = volume_of(life, name)?;
    let count = life.session.scratch.borrow().volumes[name].pieces.len() as u64;
    for piece in 0..count {
        let (content, _, sectors) = known(life, name, piece);
        let mut buf = life.world.buffer(sectors as u32);
        buf.as_mut_slice().fill(0xd5);
        let _request = life.session.request(|| format!("read of volume {name}, piece {piece}"));
        let began = life.world.now();
        let (result, buf) = volume.read(Lba(piece * PIECE_SECTORS), buf).await;
        match result {
            Ok(()) => compare(life, name, piece, content, buf.as_slice())?,
            Err(_) if excused(life, began) => return Ok(()),
            Err(error) => return Err(format!("read of volume {name}, piece {piece}, fails: {error}")),
        }
    }
    life.session.count("volumes that come and go, verified");
    Ok(())
}

fn compare<R: Running>(
    life: &Life<R>,
    name: &str,
    piece: u64,
    known: Piece,
    bytes: &[u8],
) -> Result<(), String> {
    let seed = life.session.config.seed;
    let mut scratch = life.session.scratch.borrow_mut();
    let cloned = &mut scratch.volumes.get_mut(name).expect("it is known").cloned;
    for (place, found) in (0u64..).zip(bytes.chunks_exact(SECTOR_BYTES as usize)) {
        let sector = piece * PIECE_SECTORS + place;
        let mut is = |content: Content| match content {
            Content::Zeros => found.iter().all(|byte| *byte == 0).then_some(()).ok_or("no zeros".to_owned()),
            Content::Cloned => match cloned {
                Some(book) => book.judge(sector, found, seed),
                None => Err("it is no clone".to_owned()),
            },
            Content::Written(number) => {
                let mut wanted = vec![0; found.len()];
                stamp(&mut wanted, (number + 1) << 32 | sector, 1, seed);
                (found == wanted).then_some(()).ok_or("not what was written".to_owned())
            }
        };
        let judged = known.becomes.map_or(Err(String::new()), &mut is);
        if let Err(why) = judged.or_else(|_| is(known.content)) {
            return Err(format!("volume {name}, piece {piece} ({known:?}), sector {sector}: {why}"));
        }
    }
    Ok(())
}
