//! From TOML texts to checked entries.
//!
//! A layer is a set of files read together: the embedded catalogue, or a user's directory over it. Within a
//! layer an id stands once; a layer's entry replaces the entry of the same id below it. An entry may be
//! `based_on` another of its layer or of the layers below and then gives only what differs; based on its
//! own id, it amends the entry below. Entries of a lower layer never look upward.

use std::collections::BTreeMap;

use serde::Deserialize;
use tier0_toml::Misread;

use crate::error::CatalogError;
use crate::parameter_set::ParameterSet;
use crate::spec::{Calibration, DATASHEET, Spec};

/// A file of the catalogue.
#[derive(Clone, Debug)]
pub(crate) struct SourceFile {
    /// Its name in messages.
    pub(crate) name: String,
    /// Its text.
    pub(crate) text: String,
}

impl SourceFile {
    fn invalid(&self, path: &[&str], problem: impl Into<String>, remedy: impl Into<String>) -> CatalogError {
        CatalogError::Invalid {
            file: self.name.clone(),
            line: tier0_toml::line_of(&self.text, path),
            field: path.join("."),
            problem: problem.into(),
            remedy: remedy.into(),
        }
    }

    fn parse(&self) -> Result<RawFile, CatalogError> {
        tier0_toml::read(&self.text).map_err(|Misread { line, field, fact }| CatalogError::Parse {
            file: self.name.clone(),
            line,
            field,
            fact,
        })
    }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawFile {
    #[serde(default)]
    disk: RawTable<crate::DiskOverrides>,
    #[serde(default)]
    flash: RawTable<crate::FlashOverrides>,
    #[serde(default)]
    nvram: RawTable<crate::NvramOverrides>,
    #[serde(default)]
    link: RawTable<crate::LinkOverrides>,
    #[serde(default)]
    array: RawTable<crate::ArrayOverrides>,
}

type RawTable<O> = BTreeMap<String, RawEntry<O>>;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawEntry<O> {
    name: String,
    class: Option<String>,
    description: String,
    based_on: Option<String>,
    default_calibration: Option<String>,
    #[serde(default)]
    parameters: O,
    #[serde(default = "BTreeMap::new")]
    calibration: BTreeMap<String, RawCalibration<O>>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawCalibration<O> {
    description: String,
    parameters: O,
}

/// The entries of one kind, checked.
pub(crate) type Specs<P> = BTreeMap<String, Spec<P>>;

/// All entries, by kind.
#[derive(Clone, Debug, Default)]
pub(crate) struct Specsets {
    pub(crate) disks: Specs<crate::DiskParameters>,
    pub(crate) flash: Specs<crate::FlashParameters>,
    pub(crate) nvram: Specs<crate::NvramParameters>,
    pub(crate) links: Specs<crate::LinkParameters>,
    pub(crate) arrays: Specs<crate::ArrayParameters>,
}

/// Reads a layer and lays it over `below`.
pub(crate) fn load_layer(files: &[SourceFile], below: &Specsets) -> Result<Specsets, CatalogError> {
    let mut disks = Layer::new("disk", files, &below.disks);
    let mut flash = Layer::new("flash", files, &below.flash);
    let mut nvram = Layer::new("nvram", files, &below.nvram);
    let mut links = Layer::new("link", files, &below.links);
    let mut arrays = Layer::new("array", files, &below.arrays);
    for (index, file) in files.iter().enumerate() {
        let raw = file.parse()?;
        disks.add(index, raw.disk)?;
        flash.add(index, raw.flash)?;
        nvram.add(index, raw.nvram)?;
        links.add(index, raw.link)?;
        arrays.add(index, raw.array)?;
    }
    let kinds = [disks.places(), flash.places(), nvram.places(), links.places(), arrays.places()];
    reject_shared_ids(files, &kinds)?;
    Ok(Specsets {
        disks: disks.resolve()?,
        flash: flash.resolve()?,
        nvram: nvram.resolve()?,
        links: links.resolve()?,
        arrays: arrays.resolve()?,
    })
}

/// The ids of one kind after laying a layer over those below, with the file of those in the layer.
struct Places {
    table: &'static str,
    ids: BTreeMap<String, Option<usize>>,
}

/// An id must mean one thing, whatever its kind.
fn reject_shared_ids(files: &[SourceFile], kinds: &[Places]) -> Result<(), CatalogError> {
    for kind in kinds {
        for (id, place) in &kind.ids {
            let Some(file) = place else { continue };
            let other = kinds.iter().find(|o| o.table != kind.table && o.ids.contains_key(id));
            if let Some(other) = other {
                return Err(files[*file].invalid(
                    &[kind.table, id],
                    format!("the id is taken by a {}", other.table),
                    "choose another id",
                ));
            }
        }
    }
    Ok(())
}

/// The entries of one kind in one layer.
struct Layer<'a, P: ParameterSet> {
    table: &'static str,
    files: &'a [SourceFile],
    below: &'a Specs<P>,
    raw: BTreeMap<String, (usize, RawEntry<P::Overrides>)>,
}

impl<'a, P: ParameterSet> Layer<'a, P> {
    fn new(table: &'static str, files: &'a [SourceFile], below: &'a Specs<P>) -> Self {
        Layer { table, files, below, raw: BTreeMap::new() }
    }

    fn add(&mut self, file: usize, entries: RawTable<P::Overrides>) -> Result<(), CatalogError> {
        for (id, entry) in entries {
            let path = [self.table, &id];
            if !is_kebab_case(&id) {
                return Err(self.files[file].invalid(
                    &path,
                    "the id is not in kebab-case",
                    "use small letters, digits and single hyphens",
                ));
            }
            if let Some((earlier, _)) = self.raw.get(&id) {
                return Err(self.files[file].invalid(
                    &path,
                    format!("the id is already defined in \"{}\"", self.files[*earlier].name),
                    "remove one of the two or rename it",
                ));
            }
            self.raw.insert(id, (file, entry));
        }
        Ok(())
    }

    fn places(&self) -> Places {
        let below = self.below.keys().map(|id| (id.clone(), None));
        let own = self.raw.iter().map(|(id, (file, _))| (id.clone(), Some(*file)));
        Places { table: self.table, ids: below.chain(own).collect() }
    }

    fn resolve(&self) -> Result<Specs<P>, CatalogError> {
        let mut done = Specs::new();
        for id in self.raw.keys() {
            self.resolve_one(id, &mut done, &mut Vec::new())?;
        }
        let kept = self.below.iter().filter(|(id, _)| !done.contains_key(*id));
        let kept: Specs<P> = kept.map(|(id, spec)| (id.clone(), spec.clone())).collect();
        done.extend(kept);
        Ok(done)
    }

    /// Resolves `id` and what it is based on; `chain` holds the entries that led here.
    fn resolve_one(
        &self,
        id: &str,
        done: &mut Specs<P>,
        chain: &mut Vec<String>,
    ) -> Result<(), CatalogError> {
        if done.contains_key(id) {
            return Ok(());
        }
        let (file, entry) = &self.raw[id];
        let file = &self.files[*file];
        if chain.iter().any(|earlier| earlier == id) {
            return Err(file.invalid(
                &[self.table, id, "based_on"],
                format!("{} refers back to itself", chain.join(" -> ")),
                "give one of them all its parameters",
            ));
        }
        chain.push(id.to_owned());
        let base = self.base_of(id, entry, file, done, chain)?;
        let spec = self.build(id, entry, file, base)?;
        done.insert(id.to_owned(), spec);
        Ok(())
    }

    fn base_of(
        &self,
        id: &str,
        entry: &RawEntry<P::Overrides>,
        file: &SourceFile,
        done: &mut Specs<P>,
        chain: &mut Vec<String>,
    ) -> Result<Option<Spec<P>>, CatalogError> {
        let Some(base) = &entry.based_on else { return Ok(None) };
        if base != id && self.raw.contains_key(base) {
            self.resolve_one(base, done, chain)?;
            return Ok(done.get(base).cloned());
        }
        let found = self.below.get(base).cloned();
        found.map(Some).ok_or_else(|| {
            file.invalid(
                &[self.table, id, "based_on"],
                format!("there is no {} \"{base}\"", self.table),
                "name an entry of the same kind; \"tier0 catalog list\" lists all",
            )
        })
    }

    fn build(
        &self,
        id: &str,
        entry: &RawEntry<P::Overrides>,
        file: &SourceFile,
        base: Option<Spec<P>>,
    ) -> Result<Spec<P>, CatalogError> {
        let own = match &base {
            Some(base) => base.own.overridden(&entry.parameters),
            None => P::complete(&entry.parameters).map_err(|field| {
                file.invalid(
                    &[self.table, id, "parameters", field],
                    "is missing",
                    "add it with value, unit, kind and source, or base the entry on another with based_on",
                )
            })?,
        };
        let class = match (&entry.class, &base) {
            (Some(class), _) => class.clone(),
            (None, Some(base)) => base.class.clone(),
            (None, None) => {
                return Err(file.invalid(
                    &[self.table, id, "class"],
                    "is missing",
                    "name the class, such as \"15k disk\"",
                ));
            }
        };
        let mut calibrations = base.as_ref().map(|base| base.calibrations.clone()).unwrap_or_default();
        for (name, raw) in &entry.calibration {
            if name == DATASHEET || !is_kebab_case(name) {
                return Err(file.invalid(
                    &[self.table, id, "calibration", name],
                    "is not a valid calibration name",
                    "use kebab-case; \"datasheet\" is the entry's own parameters",
                ));
            }
            let calibration =
                Calibration { description: raw.description.clone(), overrides: raw.parameters.clone() };
            calibrations.insert(name.clone(), calibration);
        }
        let calibration = entry
            .default_calibration
            .clone()
            .or_else(|| base.map(|base| base.calibration))
            .unwrap_or_else(|| DATASHEET.to_owned());
        let spec = Spec {
            id: id.to_owned(),
            name: entry.name.clone(),
            class,
            description: entry.description.clone(),
            calibration: DATASHEET.to_owned(),
            parameters: own.clone(),
            own,
            calibrations,
        };
        self.check(&spec, file)?;
        spec.calibrated(&calibration).map_err(|unknown| {
            file.invalid(
                &[self.table, id, "default_calibration"],
                unknown.to_string(),
                "use one of these, or add it",
            )
        })
    }

    /// Every calibration must pass the checks, since any may be asked for.
    fn check(&self, spec: &Spec<P>, file: &SourceFile) -> Result<(), CatalogError> {
        let first = |parameters: &P, path: &[&str]| match parameters.check().into_iter().next() {
            None => Ok(()),
            Some(broken) => {
                let path: Vec<&str> = path.iter().copied().chain([broken.field]).collect();
                Err(file.invalid(&path, broken.problem, broken.remedy))
            }
        };
        first(&spec.own, &[self.table, &spec.id, "parameters"])?;
        for (name, calibration) in &spec.calibrations {
            let parameters = spec.own.overridden(&calibration.overrides);
            first(&parameters, &[self.table, &spec.id, "calibration", name, "parameters"])?;
        }
        Ok(())
    }
}

fn is_kebab_case(id: &str) -> bool {
    let part = |part: &str| {
        !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit())
    };
    id.split('-').all(part)
}
