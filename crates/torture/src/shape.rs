//! The arrays under test, and their description files.

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
}

/// The arrays that take turns. The durable cache is what databases use: it comes most often.
pub(crate) const SHAPES: [Shape; 9] = {
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
    ]
};

const fn shape(
    raid: &'static str,
    drives: usize,
    may_lose: usize,
    cores: usize,
    write_cache: WriteCache,
) -> Shape {
    Shape { raid, drives, may_lose, cores, write_cache }
}

impl Shape {
    /// Its name in reports: `raid10 x4 durable`.
    pub(crate) fn name(&self) -> String {
        format!("{} x{} {}", self.raid, self.drives, self.write_cache)
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
        let mut text = format!(
            "[array]\nname = \"torture\"\ncores = {cores}\n\n\
             [[drive]]\nname = \"d{{n}}\"\ncount = {drives}\npath = \"{at}/d{{n}}.img\"\nsize = \"{drive_mib}MiB\"\n\n\
             [[pool]]\nname = \"pool0\"\nraid = \"{raid}\"\nset_size = {drives}\n\n\
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

    /// The file of a drive.
    pub(crate) fn drive(&self, index: usize) -> PathBuf {
        self.directory.join(format!("d{index}.img"))
    }
}
