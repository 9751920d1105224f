//! The demo's directory: drive files, socket, array file.

use std::path::{Path, PathBuf};

use tempfile::TempDir;
use tier0_description::Description;

use super::leftovers;
use crate::failure::Failure;

/// The demo's volume.
pub(super) const VOLUME: &str = "lun0";
/// Drives, files of this many MiB: half a GiB of disk in all.
const DRIVES: usize = 4;
const DRIVE_MIB: usize = 128;
/// The volume: three quarters of what RAID 10 leaves of the drives, so that metadata has its room.
const VOLUME_MIB: usize = DRIVES * DRIVE_MIB / 2 / 4 * 3;
/// A longer path does not fit a unix socket's address.
pub(super) const SOCKET_PATH_MAX: usize = 107;

/// How the array files of a demo begin.
pub(super) const MARK: &str = "# Made by \"tier0 demo\".";

fn is_of_a_demo(directory: &Path) -> bool {
    std::fs::read_to_string(directory.join("array.toml")).is_ok_and(|text| text.starts_with(MARK))
}

/// Where the demo's files lie.
pub(super) struct Place {
    directory: PathBuf,
    new: bool,
    /// Removes the directory when the demo ends.
    temporary: Option<TempDir>,
}

impl Place {
    /// `wanted`, made if it is not there, or a temporary directory.
    pub(super) fn prepare(wanted: Option<&Path>) -> Result<Place, Failure> {
        let Some(wanted) = wanted else {
            let temporary =
                tempfile::Builder::new().prefix(&leftovers::prefix()).tempdir().map_err(|error| {
                    Failure::Run(format!("cannot make a temporary directory: {error}; name one with --dir"))
                })?;
            return Ok(Place {
                directory: temporary.path().to_owned(),
                new: true,
                temporary: Some(temporary),
            });
        };
        let failed = |error| {
            Failure::Run(format!(
                "cannot use the directory {}: {error}; name another one with --dir",
                wanted.display()
            ))
        };
        if wanted.exists() && !wanted.is_dir() {
            return Err(Failure::Input(format!(
                "{} is not a directory; name another place with --dir",
                wanted.display()
            )));
        }
        std::fs::create_dir_all(wanted).map_err(failed)?;
        let directory = std::fs::canonicalize(wanted).map_err(failed)?;
        let new = !directory.join("array.toml").exists();
        if !new && !is_of_a_demo(&directory) {
            return Err(Failure::Input(format!(
                "the directory {} holds an array that no demo has made, and a demo overwrites its volume; name an empty \
                 directory with --dir",
                directory.display()
            )));
        }
        if new && std::fs::read_dir(&directory).map_err(failed)?.next().is_some() {
            return Err(Failure::Input(format!(
                "the directory {} holds something else than a demo; name an empty one with --dir",
                directory.display()
            )));
        }
        Ok(Place { directory, new, temporary: None })
    }

    /// Whether there is no array yet.
    pub(super) fn is_new(&self) -> bool {
        self.new
    }

    /// Whether the files outlive the demo.
    pub(super) fn is_kept(&self) -> bool {
        self.temporary.is_none()
    }

    pub(super) fn directory(&self) -> &Path {
        &self.directory
    }

    /// The array's file.
    pub(super) fn file(&self) -> PathBuf {
        self.directory.join("array.toml")
    }

    /// Where the array is asked; none where the path is longer than a socket's may be.
    pub(super) fn control(&self, description: &Description) -> Option<PathBuf> {
        description.control.clone().filter(|path| path.as_os_str().len() <= SOCKET_PATH_MAX)
    }

    /// Where the array of the caches lies.
    pub(super) fn of_caches(&self) -> PathBuf {
        self.directory.join("caches")
    }

    /// Writes the array's file where there is none, and reads it.
    pub(super) fn describe(&self) -> Result<Description, Failure> {
        let path = self.file();
        if self.new {
            std::fs::write(&path, self.text()).map_err(|error| {
                Failure::Run(format!(
                    "cannot write {}: {error}; name another directory with --dir",
                    path.display()
                ))
            })?;
        }
        Description::read(&path).map_err(Failure::input)
    }

    fn text(&self) -> String {
        let path = |name: &str| self.directory.join(name).to_string_lossy().into_owned();
        // Port 0 lets the system choose, so that two demos run side by side.
        let mut listen = vec!["127.0.0.1:0".to_owned()];
        let socket = path("nbd.sock");
        if socket.len() <= SOCKET_PATH_MAX {
            listen.insert(0, format!("unix:{socket}"));
        }
        let drive = path("drive{n}.img");
        format!(
            "{MARK} \"tier0 serve\" with this file serves the array again.\n\
             [array]\nname = \"demo\"\n\n\
             [[drive]]\nname = \"drive{{n}}\"\ncount = {DRIVES}\npath = {drive:?}\nsize = \"{DRIVE_MIB}MiB\"\n\n\
             [[pool]]\nname = \"pool0\"\nraid = \"raid10\"\nset_size = {DRIVES}\nstripe_unit = \"64KiB\"\n\n\
             [[volume]]\nname = \"{VOLUME}\"\nsize = \"{VOLUME_MIB}MiB\"\n\n\
             [nbd]\nlisten = {listen:?}\n"
        )
    }
}
