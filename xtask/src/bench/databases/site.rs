//! An array on four files, served as they are or behind disk models, with a file system and PostgreSQL on it.

use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use tempfile::TempDir;
use tier0_programs::memory::MemoryGroup;
use tier0_programs::mount::Mounted;
use tier0_programs::postgres::{Cluster, Postmaster};

use super::Extent;
use crate::bench::{served, write};
use crate::error::BenchError;
use crate::server::{Address, Server, tier0};

/// The modelled disks, in the catalogue.
const DISK: &str = "sas-15k-146gb-sff";
const DISKS: u32 = 4;
/// The modelled flash drives of a tiered array.
const FLASH: &str = "ssd-sas-400gb";
/// Room of the sparse files, more than the models have.
const DISK_FILE: &str = "150GB";
const FLASH_FILE: &str = "420GB";
/// A warehouse and what it grows, PostgreSQL's log, the profiled file, the file system's own.
const WAREHOUSE_MIB: u32 = 200;
const VOLUME_MORE_MIB: u32 = 6144;

/// What the drives are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Drives {
    /// Files, as fast as those are.
    Files,
    /// The same behind models, against the wall clock.
    Modelled,
}

impl Drives {
    pub(super) fn name(self) -> &'static str {
        match self {
            Drives::Files => "plain files",
            Drives::Modelled => "modelled disks",
        }
    }
}

/// What the array is made of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Shape {
    /// Disks.
    Disks,
    /// The same, and a group of flash beside them, which also holds the write log.
    Tiered,
}

/// What stands in descriptions.
pub(super) fn describe() -> String {
    format!("{DISKS} drives in RAID 10, as plain files and as {DISK}; the array's read cache is off")
}

/// The array file. Reads of the volume go past the array's memory, so that its drives are what answers.
fn text(shape: Shape, drives: Drives, warehouses: u32) -> String {
    let model = |id: &str| match drives {
        Drives::Files => String::new(),
        Drives::Modelled => format!("model = \"{id}\"\n"),
    };
    let (flash, pool, group) = match shape {
        Shape::Disks => (String::new(), format!("raid = \"raid10\"\nset_size = {DISKS}\n"), ""),
        Shape::Tiered => (
            format!(
                "[[drive]]\nname = \"ssd{{n}}\"\ncount = 2\npath = \"ssd{{n}}.img\"\nsize = \"{FLASH_FILE}\"\nclass = \"flash\"\n{}",
                model(FLASH)
            ),
            format!(
                "[[pool.group]]\nname = \"disks\"\ndrives = [\"disk*\"]\nraid = \"raid10\"\nset_size = {DISKS}\n\
                 [[pool.group]]\nname = \"flash\"\ndrives = [\"ssd*\"]\nraid = \"raid1\"\nset_size = 2\n"
            ),
            "group = \"disks\"\n",
        ),
    };
    let disks = model(DISK);
    format!(
        "[array]\nname = \"databases\"\ncores = 1\nmemory = \"128MiB\"\n\
         [[drive]]\nname = \"disk{{n}}\"\ncount = {DISKS}\npath = \"disk{{n}}.img\"\nsize = \"{DISK_FILE}\"\nclass = \"disk\"\n{disks}{flash}\
         [[pool]]\nname = \"pool0\"\n{pool}\
         [[volume]]\nname = \"lun0\"\nsize = \"{}MiB\"\nread_cache = false\n{group}\
         [nbd]\nlisten = [\"unix:s\"]\n",
        warehouses * WAREHOUSE_MIB + VOLUME_MORE_MIB
    )
}

/// The directory of everything.
pub(super) struct Site {
    directory: TempDir,
}

impl Site {
    /// Creates the array.
    pub(super) fn create(
        program: &Path,
        place: Option<&Path>,
        warehouses: u32,
        shape: Shape,
    ) -> Result<Site, BenchError> {
        let beside = program.parent().expect("a program lies in a directory");
        let directory = tempfile::tempdir_in(place.unwrap_or(beside))
            .map_err(BenchError::system("no directory for the drives can be made; name one with --dir"))?;
        // PostgreSQL's user has to reach its socket and the mount point.
        std::fs::set_permissions(directory.path(), std::fs::Permissions::from_mode(0o755))
            .map_err(BenchError::system("the directory cannot be opened to others"))?;
        let site = Site { directory };
        for drives in [Drives::Files, Drives::Modelled] {
            write(&site.array(drives), &text(shape, drives, warehouses))?;
        }
        served::create(program, &site.array(Drives::Modelled))?;
        Ok(site)
    }

    /// A file of it.
    pub(super) fn path(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    /// The array file.
    pub(super) fn array(&self, drives: Drives) -> PathBuf {
        self.path(match drives {
            Drives::Files => "plain.toml",
            Drives::Modelled => "array.toml",
        })
    }
}

/// All that runs for a database. Dropping it ends it, the database first.
pub(super) struct Stack {
    postmaster: Postmaster,
    pub(super) cluster: Cluster,
    mounted: Mounted,
    pub(super) array: PathBuf,
    server: Server,
}

impl Stack {
    pub(super) fn start(
        program: &Path,
        site: &Site,
        group: &MemoryGroup,
        extent: &Extent,
        drives: Drives,
        is_new: bool,
    ) -> Result<Stack, BenchError> {
        let array = site.array(drives);
        let server = tier0(program, &array, &Address::Unix(site.path("s")))?;
        let mounted = Mounted::past_the_page_cache(site.directory.path(), &server.uri(), is_new)?;
        let cluster = Cluster::of(mounted.point(), site.directory.path())?;
        if is_new {
            cluster.create()?;
        }
        let settings = [
            format!("shared_buffers={}MB", extent.buffers_mib),
            format!("max_connections={}", extent.users + 20),
            "max_wal_size=1GB".to_owned(),
            "checkpoint_timeout=5min".to_owned(),
            // The sample of an automatic ANALYZE takes 30 MB, for which the control group has no room.
            "autovacuum=off".to_owned(),
            "track_io_timing=on".to_owned(),
            "track_wal_io_timing=on".to_owned(),
        ];
        let postmaster = group.holding(|| cluster.start_with(&settings))?;
        Ok(Stack { postmaster, cluster, mounted, array, server })
    }

    /// A place on its file system.
    pub(super) fn on_volume(&self, name: &str) -> PathBuf {
        self.mounted.point().join(name)
    }

    /// Ends it so that nothing is lost.
    pub(super) fn stop(self) -> Result<(), BenchError> {
        self.postmaster.stop()?;
        self.mounted.unmount()?;
        // All is in the write log or in its slots: nothing is lost by an end at once.
        drop(self.server);
        Ok(())
    }

    /// Ends it at once, the array first: in order, slow disks would have the last checkpoint take minutes.
    pub(super) fn kill(self) -> Result<(), BenchError> {
        drop(self.server);
        self.postmaster.kill()?;
        Ok(self.mounted.abandon()?)
    }
}

#[cfg(test)]
mod tests {
    use tier0_description::Description;

    use super::*;

    #[test]
    fn all_array_files_are_sound() {
        for (shape, drives) in [Shape::Disks, Shape::Tiered]
            .into_iter()
            .flat_map(|shape| [Drives::Files, Drives::Modelled].map(|drives| (shape, drives)))
        {
            let text = text(shape, drives, 10);
            let found =
                Description::parse(&text, "array.toml").unwrap_or_else(|error| panic!("{error}\n{text}"));
            assert_eq!(found.drives.iter().all(|drive| drive.model.is_some()), drives == Drives::Modelled);
        }
    }
}
