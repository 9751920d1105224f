//! The arrays under test, and their description files.

use std::ops::Range;
use std::path::{Path, PathBuf};

use tier0_units::WriteCache;

use crate::TortureError;

/// A RAID level with its drives, and how the volumes on it acknowledge.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Shape {
    /// The level's name in the array's file.
    pub(crate) raid: &'static str,
    /// Drives, all in one set.
    pub(crate) drives: usize,
    /// How many drives, whichever, it can do without.
    pub(crate) may_lose: usize,
    /// Shards.
    pub(crate) cores: usize,
    /// What an acknowledgement promises.
    pub(crate) write_cache: WriteCache,
    /// Whether one more drive, of flash, holds a read cache.
    pub(crate) flash_cache: bool,
}

/// The arrays that take turns. The durable cache is what databases use: it comes most often.
pub(crate) const SHAPES: [Shape; 11] = {
    use WriteCache::{Durable, Off, Volatile};
    [
        shape("raid10", 4, 1, 2, Durable),
        shape("raid5", 4, 1, 2, Durable),
        shape("raid6", 5, 2, 1, Durable),
        shape("raid1", 2, 1, 1, Durable),
        shape("raid50", 6, 1, 2, Durable),
        shape("raid5", 4, 1, 2, Off),
        shape("raid10", 4, 1, 1, Volatile),
        shape("raid0", 3, 0, 2, Durable),
        shape("raid6", 5, 2, 2, Volatile),
        shape("raid10", 4, 1, 2, Durable).behind_flash(),
        shape("raid5", 4, 1, 1, Durable).behind_flash(),
    ]
};

const fn shape(
    raid: &'static str,
    drives: usize,
    may_lose: usize,
    cores: usize,
    write_cache: WriteCache,
) -> Shape {
    Shape { raid, drives, may_lose, cores, write_cache, flash_cache: false }
}

impl Shape {
    const fn behind_flash(self) -> Shape {
        Shape { flash_cache: true, ..self }
    }

    /// Its name in reports: `raid10 x4 durable`, `raid10 x4 durable flash-cached`.
    pub(crate) fn name(&self) -> String {
        let cached = if self.flash_cache { " flash-cached" } else { "" };
        format!("{} x{} {}{cached}", self.raid, self.drives, self.write_cache)
    }

    /// The drives that faults are for: of an array with a flash cache those that hold it, which it can do without, all of
    /// them; of another its data's, so many of which it can do without.
    pub(crate) fn drives_at_risk(&self) -> (Range<usize>, usize) {
        match self.flash_cache {
            true => (self.drives..self.drives + 1, 1),
            false => (0..self.drives, self.may_lose),
        }
    }

    /// Whether every acknowledged write survives the end of the process, flushed or not.
    pub(crate) fn keeps_acknowledged(&self) -> bool {
        self.write_cache != WriteCache::Volatile
    }
}

/// An array in a directory: its file, its drives, its socket.
#[derive(Clone, Debug)]
pub(crate) struct Site {
    pub(crate) directory: PathBuf,
    pub(crate) shape: Shape,
    /// The size of every drive's file.
    pub(crate) drive_mib: u64,
}

impl Site {
    /// Writes the array file, with drives of `drive_mib` and volumes of the given names and sizes in MiB.
    pub(crate) fn describe(
        directory: &Path,
        shape: Shape,
        drive_mib: u64,
        volumes: &[(&str, u64)],
    ) -> Result<Site, TortureError> {
        std::fs::create_dir_all(directory)
            .map_err(TortureError::system(format!("{} cannot be made", directory.display())))?;
        let site = Site { directory: directory.to_owned(), shape, drive_mib };
        let at = directory.display();
        let (raid, drives, cores) = (shape.raid, shape.drives, shape.cores);
        let (flash, pool) = match shape.flash_cache {
            true => flash_cache(&site),
            false => Default::default(),
        };
        let mut text = format!(
            "[array]\nname = \"torture\"\ncores = {cores}\n\n\
             [[drive]]\nname = \"d{{n}}\"\ncount = {drives}\npath = \"{at}/d{{n}}.img\"\nsize = \"{drive_mib}MiB\"\n\
             {flash}\n[[pool]]\nname = \"pool0\"\nraid = \"{raid}\"\nset_size = {drives}\n{pool}\n\
             [nbd]\nlisten = [\"unix:{at}/nbd.sock\"]\n"
        );
        for (name, mib) in volumes {
            let cache = shape.write_cache;
            text +=
                &format!("\n[[volume]]\nname = \"{name}\"\nsize = \"{mib}MiB\"\nwrite_cache = \"{cache}\"\n");
        }
        let path = site.array_file();
        std::fs::write(&path, text)
            .map_err(TortureError::system(format!("{} cannot be written", path.display())))?;
        Ok(site)
    }

    pub(crate) fn array_file(&self) -> PathBuf {
        self.directory.join("array.toml")
    }

    pub(crate) fn socket(&self) -> PathBuf {
        self.directory.join("nbd.sock")
    }

    /// The NBD address of a volume.
    pub(crate) fn uri(&self, volume: &str) -> String {
        format!("nbd+unix:///{volume}?socket={}", self.socket().display())
    }

    /// The file of a drive. The one of flash comes after those of the data.
    pub(crate) fn drive(&self, index: usize) -> PathBuf {
        self.directory.join(format!("{}.img", self.drive_name(index)))
    }

    /// The name of a drive in the array file.
    pub(crate) fn drive_name(&self, index: usize) -> String {
        if index < self.shape.drives { format!("d{index}") } else { FLASH.to_owned() }
    }
}

/// The drive that holds the flash cache.
const FLASH: &str = "flash";
/// The part of a drive's size that the flash cache takes: less than the volumes, so that pages give way.
const FLASH_SHARE: u64 = 8;

/// What the array file has for the flash cache: its drive, and the lines of the pool. The log lies where the data does,
/// which is as fast here but called a disk.
fn flash_cache(site: &Site) -> (String, String) {
    let (at, mib) = (site.directory.display(), site.drive_mib);
    let drive = format!(
        "class = \"disk\"\n\n\
         [[drive]]\nname = \"{FLASH}\"\npath = \"{at}/{FLASH}.img\"\nsize = \"{mib}MiB\"\nclass = \"flash\"\n"
    );
    let pool = format!(
        "drives = [\"d*\"]\nlog_drives = [\"d0\", \"d1\"]\nflash_cache = \"{}MiB\"\nflash_cache_drives = [\"{FLASH}\"]\n",
        mib / FLASH_SHARE
    );
    (drive, pool)
}
