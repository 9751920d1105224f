//! Volumes that come and go while the array is troubled, apart from those that the users have.
//!
//! What is known of one: whether its creation or deletion was acknowledged, and of each of its pieces whether a write of
//! it was. A crash leaves a volume whose creation or deletion was under way there or not, but whole: deleted in part is
//! an error, and so is a piece of a volume that holds what no write put there.

use std::rc::Rc;

use tier0_block::BlockTarget;
use tier0_units::{Lba, SECTOR_BYTES};
use tier0_workload::verify::stamp;
use tier0_world::{IoError, Random};

use crate::administrator::ask;
use crate::life::Life;
use crate::system::{Admin, Running};

pub(crate) mod known;

use known::{Fate, Known, Piece};

/// Sectors that are written and read at once.
const PIECE_SECTORS: u64 = 64;
/// The most pieces of a volume.
const PIECES_MAX: u64 = 48;
/// The most volumes at once.
const VOLUMES_MAX: usize = 3;

/// Creates a volume and writes to it, or deletes one.
pub(crate) async fn come_or_go<R: Running>(life: &Rc<Life<R>>, random: &mut Random) -> Result<(), String> {
    let there = names(life, Fate::There);
    if there.len() >= VOLUMES_MAX || (!there.is_empty() && random.chance(0.4)) {
        let name = &there[random.below(there.len() as u64) as usize];
        return delete(life, name).await;
    }
    create(life, random).await
}

fn names<R: Running>(life: &Life<R>, fate: Fate) -> Vec<String> {
    let scratch = life.session.scratch.borrow();
    scratch.volumes.iter().filter(|(_, known)| known.fate == fate).map(|(name, _)| name.clone()).collect()
}

async fn create<R: Running>(life: &Rc<Life<R>>, random: &mut Random) -> Result<(), String> {
    let pieces = 1 + random.below(PIECES_MAX);
    let name = {
        let mut scratch = life.session.scratch.borrow_mut();
        let number = scratch.ever;
        scratch.ever += 1;
        let name = format!("x{number}");
        let known = Known { fate: Fate::Coming, number, pieces: vec![Piece::Zeros; pieces as usize] };
        scratch.volumes.insert(name.clone(), known);
        name
    };
    let thin = random.chance(0.7);
    let request = Admin::CreateVolume { name: name.clone(), sectors: pieces * PIECE_SECTORS, thin };
    if !ask(life, request, "volumes created under load").await? {
        life.session.scratch.borrow_mut().volumes.remove(&name);
        return Ok(());
    }
    set_fate(life, &name, Fate::There);
    for piece in 0..pieces {
        if random.chance(0.6) && !write(life, &name, piece).await? {
            break;
        }
    }
    verify(life, &name).await
}

/// Deletes a volume.
async fn delete<R: Running>(life: &Rc<Life<R>>, name: &str) -> Result<(), String> {
    set_fate(life, name, Fate::Going);
    let gone = ask(life, Admin::DeleteVolume { name: name.to_owned() }, "volumes deleted under load").await?;
    match gone {
        true => drop(life.session.scratch.borrow_mut().volumes.remove(name)),
        false => set_fate(life, name, Fate::There),
    }
    Ok(())
}

/// Deletes all that there are.
pub(crate) async fn delete_all<R: Running>(life: &Rc<Life<R>>) -> Result<(), String> {
    for name in names(life, Fate::There) {
        delete(life, &name).await?;
    }
    Ok(())
}

fn set_fate<R: Running>(life: &Life<R>, name: &str, fate: Fate) {
    life.session.scratch.borrow_mut().volumes.get_mut(name).expect("it is known").fate = fate;
}

fn set_piece<R: Running>(life: &Life<R>, name: &str, piece: u64, content: Piece) {
    let mut scratch = life.session.scratch.borrow_mut();
    scratch.volumes.get_mut(name).expect("it is known").pieces[piece as usize] = content;
}

fn volume_of<R: Running>(life: &Life<R>, name: &str) -> Result<R::Volume, String> {
    let found = life.running.scratch().into_iter().find(|(other, _)| other == name);
    found.map(|(_, volume)| volume).ok_or_else(|| format!("volume {name} is not there"))
}

fn fill<R: Running>(life: &Life<R>, name: &str, piece: u64, bytes: &mut [u8]) {
    let number = life.session.scratch.borrow().volumes[name].number;
    let seed = life.session.config.seed;
    for (sector, bytes) in (piece * PIECE_SECTORS..).zip(bytes.chunks_exact_mut(SECTOR_BYTES as usize)) {
        stamp(bytes, (number + 1) << 32 | sector, 1, seed);
    }
}

/// Writes a piece; false where there is no space for it.
async fn write<R: Running>(life: &Rc<Life<R>>, name: &str, piece: u64) -> Result<bool, String> {
    let volume = volume_of(life, name)?;
    let mut buf = life.world.buffer(PIECE_SECTORS as u32);
    fill(life, name, piece, buf.as_mut_slice());
    set_piece(life, name, piece, Piece::UnderWay);
    let _request = life.session.request(|| format!("write of volume {name}, piece {piece}"));
    match volume.write(Lba(piece * PIECE_SECTORS), buf.freeze(), false).await {
        Ok(()) => {
            set_piece(life, name, piece, Piece::Written);
            Ok(true)
        }
        Err(IoError::NoSpace) => Ok(false),
        Err(error) => Err(format!("write of volume {name}, piece {piece}, fails: {error}")),
    }
}

/// Reads a whole volume and compares.
async fn verify<R: Running>(life: &Rc<Life<R>>, name: &str) -> Result<(), String> {
    let volume = volume_of(life, name)?;
    let pieces = life.session.scratch.borrow().volumes[name].pieces.clone();
    let mut expected = vec![0; (PIECE_SECTORS * SECTOR_BYTES) as usize];
    for (piece, content) in (0u64..).zip(pieces) {
        let mut buf = life.world.buffer(PIECE_SECTORS as u32);
        buf.as_mut_slice().fill(0xd5);
        let _request = life.session.request(|| format!("read of volume {name}, piece {piece}"));
        let (result, buf) = volume.read(Lba(piece * PIECE_SECTORS), buf).await;
        result.map_err(|error| format!("read of volume {name}, piece {piece}, fails: {error}"))?;
        fill(life, name, piece, &mut expected);
        let sectors = buf.as_slice().chunks_exact(SECTOR_BYTES as usize);
        for (sector, (found, wanted)) in sectors.zip(expected.chunks_exact(SECTOR_BYTES as usize)).enumerate()
        {
            let (zeros, new) = (found.iter().all(|byte| *byte == 0), found == wanted);
            let right = match content {
                Piece::Zeros => zeros,
                Piece::UnderWay => zeros || new,
                Piece::Written => new,
            };
            if !right {
                return Err(format!(
                    "volume {name}, piece {piece} ({content:?}), sector {sector} holds {}",
                    if zeros {
                        "zeros"
                    } else if new {
                        "what was written"
                    } else {
                        "something else"
                    }
                ));
            }
        }
    }
    life.session.count("volumes that come and go, verified");
    Ok(())
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
        verify(life, &name).await?;
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
