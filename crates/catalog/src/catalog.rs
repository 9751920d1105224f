//! The catalogue as a whole: loading, looking up, listing.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::LazyLock;

use crate::embedded;
use crate::error::{CatalogError, LookupError, UnknownEntry};
use crate::load::{self, SourceFile, Specsets};
use crate::parameter::{ParameterRow, SourceKind};
use crate::parameter_set::ParameterSet;
use crate::similar::similar;
use crate::spec::{ArraySpec, DATASHEET, DriveSpec, LinkSpec, Spec};
use crate::summary::{EntryKind, Summary};

/// All drives, links and arrays.
#[derive(Clone, Debug)]
pub struct Catalog {
    entries: Specsets,
    drives: BTreeMap<String, DriveSpec>,
}

/// An entry of any kind.
#[derive(Clone, Copy, Debug)]
pub enum Entry<'a> {
    /// A disk, a flash drive or a write cache.
    Drive(&'a DriveSpec),
    /// A link.
    Link(&'a LinkSpec),
    /// An array.
    Array(&'a ArraySpec),
}

impl Catalog {
    /// The catalogue that the program carries.
    ///
    /// # Panics
    /// If the embedded files are faulty, which the tests of this crate exclude.
    pub fn embedded() -> Catalog {
        Catalog::built_in().clone()
    }

    /// The same to look at. It is read once: descriptions of arrays with many drives ask for it drive by drive.
    ///
    /// # Panics
    /// As [`Catalog::embedded`].
    pub fn built_in() -> &'static Catalog {
        static BUILT_IN: LazyLock<Catalog> = LazyLock::new(|| {
            let entries = load::load_layer(&embedded::files(), &Specsets::default());
            Catalog::from_entries(
                entries.unwrap_or_else(|error| panic!("the embedded catalogue is invalid: {error}")),
            )
        });
        &BUILT_IN
    }

    /// As [`Catalog::with_dir`], over the embedded catalogue.
    ///
    /// # Errors
    /// As [`Catalog::with_dir`].
    pub fn load_dir(dir: &Path) -> Result<Catalog, CatalogError> {
        Catalog::embedded().with_dir(dir)
    }

    /// This catalogue with the `.toml` files of `dir` and its subdirectories laid over it, or with `dir` itself where it is a
    /// file.
    ///
    /// # Errors
    /// What cannot be read, or is wrong in a file.
    pub fn with_dir(self, dir: &Path) -> Result<Catalog, CatalogError> {
        let mut paths = Vec::new();
        match dir.is_file() {
            true => paths.push(dir.to_owned()),
            false => collect_toml(dir, &mut paths)?,
        }
        paths.sort();
        if paths.is_empty() {
            return Err(CatalogError::Empty { path: dir.to_owned() });
        }
        let files = paths.iter().map(|path| read(path)).collect::<Result<Vec<_>, _>>()?;
        Ok(Catalog::from_entries(load::load_layer(&files, &self.entries)?))
    }

    pub(crate) fn entries(&self) -> &Specsets {
        &self.entries
    }

    pub(crate) fn from_entries(entries: Specsets) -> Catalog {
        let disks =
            entries.disks.iter().map(|(id, spec)| (id.clone(), DriveSpec::Disk(Box::new(spec.clone()))));
        let flash =
            entries.flash.iter().map(|(id, spec)| (id.clone(), DriveSpec::Flash(Box::new(spec.clone()))));
        let nvram =
            entries.nvram.iter().map(|(id, spec)| (id.clone(), DriveSpec::Nvram(Box::new(spec.clone()))));
        let drives = disks.chain(flash).chain(nvram).collect();
        Catalog { entries, drives }
    }

    /// The drive `id` under its default calibration.
    pub fn drive(&self, id: &str) -> Result<&DriveSpec, UnknownEntry> {
        self.drives.get(id).ok_or_else(|| unknown("drive", id, self.drives.keys()))
    }

    /// The drive of a reference "id" or "id@calibration".
    pub fn drive_by_reference(&self, reference: &str) -> Result<DriveSpec, LookupError> {
        match reference.split_once('@') {
            None => Ok(self.drive(reference)?.clone()),
            Some((id, calibration)) => Ok(self.drive(id)?.calibrated(calibration)?),
        }
    }

    /// The link `id`.
    pub fn link(&self, id: &str) -> Result<&LinkSpec, UnknownEntry> {
        self.entries.links.get(id).ok_or_else(|| unknown("link", id, self.entries.links.keys()))
    }

    /// The array `id`.
    pub fn array(&self, id: &str) -> Result<&ArraySpec, UnknownEntry> {
        self.entries.arrays.get(id).ok_or_else(|| unknown("array", id, self.entries.arrays.keys()))
    }

    /// The entry `id`, whatever its kind.
    pub fn entry(&self, id: &str) -> Result<Entry<'_>, UnknownEntry> {
        let drive = self.drives.get(id).map(Entry::Drive);
        let link = || self.entries.links.get(id).map(Entry::Link);
        let array = || self.entries.arrays.get(id).map(Entry::Array);
        drive.or_else(link).or_else(array).ok_or_else(|| unknown("entry", id, self.ids()))
    }

    /// All drives, by id.
    pub fn drives(&self) -> impl Iterator<Item = &DriveSpec> {
        self.drives.values()
    }

    /// All links, by id.
    pub fn links(&self) -> impl Iterator<Item = &LinkSpec> {
        self.entries.links.values()
    }

    /// All arrays, by id.
    pub fn arrays(&self) -> impl Iterator<Item = &ArraySpec> {
        self.entries.arrays.values()
    }

    /// Every id: drives, then links, then arrays.
    pub fn ids(&self) -> impl Iterator<Item = &String> {
        self.drives.keys().chain(self.entries.links.keys()).chain(self.entries.arrays.keys())
    }

    /// One line per entry: disks, flash, write caches, links, arrays, by id within each.
    pub fn list(&self) -> Vec<Summary> {
        let disks = self
            .entries
            .disks
            .values()
            .map(|s| summary(EntryKind::Disk, s, Some(s.parameters.capacity_gb.value)));
        let flash = self
            .entries
            .flash
            .values()
            .map(|s| summary(EntryKind::Flash, s, Some(s.parameters.capacity_gb.value)));
        let nvram = self.entries.nvram.values().map(|s| {
            let gb = s.parameters.capacity_mib.value * f64::from(1 << 20) / 1e9;
            summary(EntryKind::Nvram, s, Some(gb))
        });
        let links = self.links().map(|s| summary(EntryKind::Link, s, None));
        let arrays = self.arrays().map(|s| summary(EntryKind::Array, s, None));
        disks.chain(flash).chain(nvram).chain(links).chain(arrays).collect()
    }

    /// The parameters of "id" or "id@calibration", one row each.
    pub fn rows(&self, reference: &str) -> Result<Vec<ParameterRow>, LookupError> {
        let (id, calibration) = match reference.split_once('@') {
            None => (reference, None),
            Some((id, calibration)) => (id, Some(calibration)),
        };
        Ok(match self.entry(id)? {
            Entry::Drive(DriveSpec::Disk(spec)) => rows(spec, calibration)?,
            Entry::Drive(DriveSpec::Flash(spec)) => rows(spec, calibration)?,
            Entry::Drive(DriveSpec::Nvram(spec)) => rows(spec, calibration)?,
            Entry::Link(spec) => rows(spec, calibration)?,
            Entry::Array(spec) => rows(spec, calibration)?,
        })
    }

    /// Those rows of "id" or "id@calibration" that are known in this way; every report prints what is assumed or fitted.
    pub fn parameters_of_kind(
        &self,
        reference: &str,
        kind: SourceKind,
    ) -> Result<impl Iterator<Item = ParameterRow> + use<>, LookupError> {
        let rows = self.rows(reference)?;
        Ok(rows.into_iter().filter(move |row| row.kind == kind))
    }
}

fn rows<P: ParameterSet>(
    spec: &Spec<P>,
    calibration: Option<&str>,
) -> Result<Vec<ParameterRow>, LookupError> {
    Ok(match calibration {
        None => spec.parameters.rows(),
        Some(calibration) => spec.calibrated(calibration)?.parameters.rows(),
    })
}

fn summary<P: ParameterSet>(kind: EntryKind, spec: &Spec<P>, capacity_gb: Option<f64>) -> Summary {
    let rows = spec.parameters.rows();
    let calibrations: Vec<String> = spec.calibrations().map(|(name, _)| name.to_owned()).collect();
    debug_assert!(calibrations.iter().any(|name| name == DATASHEET));
    Summary {
        id: spec.id.clone(),
        kind,
        class: spec.class.clone(),
        capacity_gb,
        name: spec.name.clone(),
        description: spec.description.clone(),
        calibration: spec.calibration.clone(),
        calibrations,
        assumed: rows.iter().filter(|row| row.kind == SourceKind::Assumed).count(),
        parameters: rows.len(),
    }
}

fn unknown<'a>(wanted: &'static str, id: &str, known: impl Iterator<Item = &'a String>) -> UnknownEntry {
    let near = similar(id, known.map(String::as_str)).into_iter().map(str::to_owned).collect();
    UnknownEntry { wanted, id: id.to_owned(), near }
}

fn collect_toml(dir: &Path, found: &mut Vec<PathBuf>) -> Result<(), CatalogError> {
    let failed = |source| CatalogError::Read { path: dir.to_owned(), source };
    for entry in std::fs::read_dir(dir).map_err(failed)? {
        let entry = entry.map_err(failed)?;
        let path = entry.path();
        // A link to a directory is not followed: it could lead back here.
        if entry.file_type().map_err(failed)?.is_dir() {
            collect_toml(&path, found)?;
        } else if path.extension().is_some_and(|extension| extension == "toml") {
            found.push(path);
        }
    }
    Ok(())
}

fn read(path: &Path) -> Result<SourceFile, CatalogError> {
    let text = std::fs::read_to_string(path)
        .map_err(|source| CatalogError::Read { path: path.to_owned(), source })?;
    Ok(SourceFile { name: path.display().to_string(), text })
}
