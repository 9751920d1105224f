//! The directory of a scene and the array file in it.

use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use tier0_bench::load::Scale;
use tier0_catalog::Catalog;
use tier0_programs::postgres::Cluster;
use tier0_programs::tools;

use super::Scene;
use crate::failure::Failure;
use crate::output::escaped;

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

/// The directory of everything that a scene makes, in the one that was named.
const OWN: &str = "tier0-scene";

/// The scene's directory.
pub(super) struct Place {
    /// Its own, which others than root and PostgreSQL's user cannot enter.
    pub(super) directory: PathBuf,
    /// The one that was named.
    named: PathBuf,
    /// Whether the scene has made that too.
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
        if wanted.join(OWN).exists() {
            return Err(Failure::Input(format!(
                "{} is of a scene that was kept or killed; end what still runs there, unmount what is below it and remove it, or name another directory",
                wanted.join(OWN).display()
            )));
        }
        if std::fs::read_dir(wanted).map_err(failed)?.next().is_some() {
            return Err(Failure::Input(format!(
                "the directory {} is not empty; name an empty or a new one",
                wanted.display()
            )));
        }
        if is_new {
            // The database's user enters it. One that existed keeps its mode.
            std::fs::set_permissions(wanted, PermissionsExt::from_mode(0o755)).map_err(failed)?;
        }
        let named = std::fs::canonicalize(wanted).map_err(failed)?;
        let place = Place { directory: named.join(OWN), named, is_new };
        let written = place.check().and_then(|()| {
            let text = array_text(verb, &place.directory)?;
            std::fs::create_dir(&place.directory).map_err(failed)?;
            tools::run("chgrp", &["postgres", &place.directory.display().to_string()])?;
            std::fs::set_permissions(&place.directory, PermissionsExt::from_mode(0o710)).map_err(failed)?;
            std::fs::write(place.array(), text).map_err(failed)?;
            place.can_be_entered()
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

    /// PostgreSQL's user reaches its files below directories whose modes the scene leaves alone.
    fn can_be_entered(&self) -> Result<(), Failure> {
        match Cluster::of(&self.directory, &self.directory)?.can_enter(&self.directory) {
            true => Ok(()),
            false => Err(Failure::Input(format!(
                "the user postgres cannot enter {}; let others pass (chmod o+x) this directory and those above it, or name another \
                 one",
                self.named.display()
            ))),
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

    /// Removes what the scene has made; files of others stay.
    pub(super) fn remove(&self) -> Result<(), Failure> {
        let failed = |error: std::io::Error| {
            let shown = self.directory.display();
            Failure::Run(format!("cannot remove {shown}: {error}; remove it by hand"))
        };
        match std::fs::remove_dir_all(&self.directory) {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => return Err(failed(error)),
            _ => {}
        }
        let mut foreign: Vec<String> = Vec::new();
        for entry in std::fs::read_dir(&self.named).map_err(failed)? {
            foreign.push(escaped(&entry.map_err(failed)?.file_name().to_string_lossy()));
        }
        match (foreign.is_empty(), self.is_new) {
            (true, true) => std::fs::remove_dir(&self.named).map_err(failed)?,
            (true, false) => {}
            (false, _) => tracing::warn!(
                "{} stays: the scene did not make {} in it",
                self.named.display(),
                foreign.join(", ")
            ),
        }
        Ok(())
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

    /// A file that a user had put there during the run was removed too.
    #[test]
    fn what_a_scene_did_not_make_stays() {
        for is_new in [true, false] {
            let temporary = tempfile::tempdir().expect("a directory");
            let named = temporary.path().join("scene");
            let place = Place { directory: named.join(OWN), named: named.clone(), is_new };
            let make = || {
                std::fs::create_dir_all(place.path("mnt")).expect("made");
                std::fs::write(place.array(), "").expect("written");
            };
            make();
            std::fs::write(named.join("notes"), "mine").expect("written");
            place.remove().expect("removed");
            assert!(!place.directory.exists() && named.join("notes").exists());
            std::fs::remove_file(named.join("notes")).expect("removed");
            make();
            place.remove().expect("removed");
            assert_eq!(named.exists(), !is_new);
        }
    }
}
