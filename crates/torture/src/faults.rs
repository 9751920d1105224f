//! What is done to drive files while the server runs, never to more drives than the RAID level survives.

use std::fmt;
use std::fs::File;
use std::os::unix::fs::{FileExt, OpenOptionsExt};

use rustix::fs::OFlags;
use tier0_units::SECTOR_BYTES;
use tier0_world::{BufMut, PayloadWidth, Random};

use crate::TortureError;
use crate::shape::Site;

/// A kind of damage.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fault {
    /// The file ends early: reads come short, writes extend it.
    Truncate,
    /// The file is gone at the next start.
    Remove,
    /// The drive misses a run of the server and comes back with what it held before: it must not be believed.
    Return,
    /// Pieces of the file are overwritten: checksums must notice.
    Garbage,
}

/// Bytes of one piece of garbage: as much as a stripe unit, so that some pieces hit metadata and some hit data.
const PIECE_BYTES: u64 = 64 << 10;

impl Fault {
    /// Every kind.
    pub(crate) const ALL: [Fault; 4] = [Fault::Truncate, Fault::Return, Fault::Garbage, Fault::Remove];

    /// Kills of a campaign with it: before it, at once after it, and later.
    pub(crate) fn kills(self) -> u32 {
        5
    }

    /// How many drives are damaged, where the level may lose `may_lose`. Garbage stays on one: the engine may still
    /// need that drive's good parts while it loses another one's.
    pub(crate) fn drives(self, may_lose: usize) -> usize {
        if self == Fault::Garbage { may_lose.min(1) } else { may_lose }
    }

    /// Does it to a drive.
    pub(crate) fn apply(self, site: &Site, drive: usize, random: &mut Random) -> Result<(), TortureError> {
        let path = site.drive(drive);
        let fail = || TortureError::system(format!("cannot damage {}", path.display()));
        match self {
            Fault::Truncate => {
                let file = File::options().write(true).open(&path).map_err(fail())?;
                file.set_len(random.below(site.drive_mib << 20)).map_err(fail())
            }
            Fault::Remove => std::fs::remove_file(&path).map_err(fail()),
            Fault::Return => std::fs::rename(&path, away(site, drive)).map_err(fail()),
            Fault::Garbage => {
                let direct = OFlags::DIRECT.bits() as i32;
                let file = File::options().write(true).custom_flags(direct).open(&path).map_err(fail())?;
                overwrite(&file, site.drive_mib << 20, random).map_err(fail())
            }
        }
    }

    /// Undoes what is undone before a later start: the drive comes back.
    pub(crate) fn undo(self, site: &Site, drive: usize) -> Result<(), TortureError> {
        if self != Fault::Return {
            return Ok(());
        }
        std::fs::rename(away(site, drive), site.drive(drive))
            .map_err(TortureError::system("the drive cannot come back"))
    }
}

fn away(site: &Site, drive: usize) -> std::path::PathBuf {
    site.drive(drive).with_extension("away")
}

/// Overwrites a quarter of the file's pieces with random bytes, past the page cache: if it were mixed with the server's
/// direct I/O, the kernel would report an error to the server, and the damage would not be silent.
fn overwrite(file: &File, bytes: u64, random: &mut Random) -> std::io::Result<()> {
    let pieces = bytes / PIECE_BYTES;
    let mut garbage = BufMut::new((PIECE_BYTES / SECTOR_BYTES) as u32, PayloadWidth::REAL);
    for _ in 0..pieces / 4 {
        let words = garbage.as_mut_slice().chunks_exact_mut(8);
        words.for_each(|word| word.copy_from_slice(&random.bits().to_le_bytes()));
        file.write_all_at(garbage.as_slice(), random.below(pieces) * PIECE_BYTES)?;
    }
    Ok(())
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Fault::Truncate => "drives truncated",
            Fault::Remove => "drives removed",
            Fault::Return => "drives return stale",
            Fault::Garbage => "a drive overwritten",
        })
    }
}
