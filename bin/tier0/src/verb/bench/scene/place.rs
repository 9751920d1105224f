//! The directory of a scene and the array file in it.

use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use tier0_bench::load::Scale;
use tier0_catalog::Catalog;

use super::Scene;
use crate::failure::Failure;

/// A longer path does not fit a unix socket's address.
const SOCKET_PATH_MAX: usize = 107;
/// Beside the warehouses: the log of PostgreSQL (1 GiB and what a checkpoint lets grow), catalogues, the file system's own.
const VOLUME_MORE_MIB: u64 = 2560;
/// A warehouse, and what it grows in a run of minutes.
const WAREHOUSE_MIB: u64 = 200;
/// 1,000 customers of a brokerage without their trades, and a day of those.
const UNIT_MIB: u64 = 700;
const UNIT_DAY_MIB: u64 = 80;
/// Beside the streams' database: files of sorts, the file system's own.
const SECOND_MORE_MIB: u64 = 512;
/// Scale factor 1 of decision support with its indexes, and what sorts put into files.
const FACTOR_MIB: f64 = 3072.0;

/// The scene's directory.
pub(super) struct Place {
    pub(super) directory: PathBuf,
    /// Whether the scene has made it.
    is_new: bool,
}

impl Place {
    /// Makes the directory and the array file in it.
    pub(super) fn prepare(verb: &Scene) -> Result<Place, Failure> {
        let wanted = &verb.directory;
        let failed = |error: std::io::Error| {
            Failure::Input(format!(
                "cannot use the directory {}: {error}; name another one",
                wanted.display()
            ))
        };
        let is_new = !wanted.exists();
        std::fs::create_dir_all(wanted).map_err(failed)?;
        if std::fs::read_dir(wanted).map_err(failed)?.next().is_some() {
            return Err(Failure::Input(format!(
                "the directory {} is not empty; name an empty or a new one",
                wanted.display()
            )));
        }
        // The database's user enters it.
        std::fs::set_permissions(wanted, std::fs::Permissions::from_mode(0o755)).map_err(failed)?;
        let directory = std::fs::canonicalize(wanted).map_err(failed)?;
        let place = Place { directory, is_new };
        let written = place.check().and_then(|()| {
            let text = array_text(verb, &place.directory)?;
            std::fs::write(place.array(), text).map_err(failed)
        });
        if written.is_err() {
            place.remove()?;
        }
        written.map(|()| place)
    }

    /// Sockets have short paths.
    fn check(&self) -> Result<(), Failure> {
        // PostgreSQL's is the longest.
        match self.path("pg/.s.PGSQL.5432.lock").as_os_str().len() > SOCKET_PATH_MAX {
            true => Err(Failure::Input(format!(
                "the path {} is too long for the sockets in it; name a directory with a shorter one",
                self.directory.display()
            ))),
            false => Ok(()),
        }
    }

    /// A path in it.
    pub(super) fn path(&self, name: &str) -> PathBuf {
        self.directory.join(name)
    }

    /// The array file.
    pub(super) fn array(&self) -> PathBuf {
        self.path("array.toml")
    }

    /// Removes what the scene has made.
    pub(super) fn remove(&self) -> Result<(), Failure> {
        let removed = match self.is_new {
            true => std::fs::remove_dir_all(&self.directory),
            false => std::fs::read_dir(&self.directory).and_then(|entries| {
                entries.flatten().try_for_each(|entry| match entry.path().is_dir() {
                    true => std::fs::remove_dir_all(entry.path()),
                    false => std::fs::remove_file(entry.path()),
                })
            }),
        };
        removed.map_err(|error| {
            Failure::Run(format!("cannot remove {}: {error}; remove it by hand", self.directory.display()))
        })
    }
}

/// What a database takes, with what it grows in a run of minutes.
fn database_mib(scale: &Scale) -> u64 {
    match scale {
        Scale::Warehouses(count) => u64::from(*count) * WAREHOUSE_MIB,
        Scale::Customers { customers, days } => {
            u64::from(*customers) / 1000 * (UNIT_MIB + u64::from(*days) * UNIT_DAY_MIB)
        }
        Scale::Factor(factor) => (factor * FACTOR_MIB).ceil() as u64,
    }
}

/// The array file.
fn array_text(verb: &Scene, directory: &Path) -> Result<String, Failure> {
    let volume_mib = database_mib(&verb.size.scale(true)?) + VOLUME_MORE_MIB;
    // The second database's, which has no log.
    let second_mib = verb.beside.scale().map(|scale| database_mib(&scale) + SECOND_MORE_MIB);
    let drives = u64::from(verb.drives);
    // The share of a drive that holds data of volumes.
    let data_drives = match verb.raid.as_str() {
        "raid10" if drives.is_multiple_of(2) => drives / 2,
        "raid5" if drives >= 3 => drives - 1,
        "raid6" if drives >= 4 => drives - 2,
        other => {
            return Err(Failure::Input(format!(
                "{drives} drives make no {other:?}; use raid10 with an even number, raid5 with 3 or more, or raid6 with 4 or more"
            )));
        }
    };
    // Beside data: write log, metadata, spare chunklets.
    let drive_mib = (volume_mib + second_mib.unwrap_or(0)) / data_drives * 5 / 4 + 512;
    let (model, size) = match &verb.model {
        None => (String::new(), format!("{drive_mib}MiB")),
        Some(id) => {
            let catalog = Catalog::embedded();
            let bytes = catalog.drive(id).map_err(Failure::input)?.capacity().bytes().0;
            // A modelled drive has its whole size, in a sparse file: short strokes would make a disk faster.
            (format!("model = {id:?}\n"), format!("{bytes}B"))
        }
    };
    let second = second_mib.map_or(String::new(), |mib| {
        format!("[[volume]]\nname = {:?}\nsize = \"{mib}MiB\"\n\n", super::beside::VOLUME)
    });
    let path = |name: &str| directory.join(name).display().to_string();
    Ok(format!(
        "# Made by \"tier0 bench scene\".\n\
         [array]\nname = \"scene\"\ncores = 1\nmemory = \"{}\"\n\n\
         [[drive]]\nname = \"d{{n}}\"\ncount = {drives}\npath = {:?}\nsize = {size:?}\n{model}\n\
         [[pool]]\nname = \"pool0\"\nraid = {:?}\nset_size = {drives}\n\n\
         [[volume]]\nname = \"lun0\"\nsize = \"{volume_mib}MiB\"\n\n{second}\
         [nbd]\nlisten = [{:?}]\n",
        verb.memory,
        path("d{n}.img"),
        verb.raid,
        format!("unix:{}", path("nbd.sock")),
    ))
}

#[cfg(test)]
mod tests {
    use clap::Parser;
    use tier0_description::Description;

    use super::*;

    #[derive(Parser)]
    struct Parsed {
        #[command(flatten)]
        scene: Scene,
    }

    #[test]
    fn the_array_file_of_a_scene_is_valid() {
        for (arguments, error) in [
            (&["--warehouses", "10"][..], ""),
            (&["--raid", "raid5", "--drives", "5"], ""),
            (&["--raid", "raid6", "--model", "nl-7k2"], ""),
            (&["--beside", "decision-support", "--beside-limit", "20"], ""),
            (&["--drives", "3"], "even number"),
            (&["--raid", "raid0"], "use raid10"),
            (&["--model", "floppy"], "floppy"),
        ] {
            let parsed = Parsed::parse_from([&["scene", "/scene"], arguments].concat());
            match array_text(&parsed.scene, Path::new("/scene")) {
                Ok(text) => {
                    assert_eq!(error, "", "{arguments:?} is refused");
                    Description::parse(&text, "array.toml").unwrap_or_else(|wrong| panic!("{wrong}\n{text}"));
                }
                Err(failure) => {
                    let words = failure.text().unwrap_or_default();
                    assert!(!error.is_empty() && words.contains(error), "{arguments:?}: {words}");
                }
            }
        }
    }
}
