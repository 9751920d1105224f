//! A case: a database on a host over an array, all of them modelled, as one file describes them.
//!
//! | file | concept |
//! |---|---|
//! | `file` | the form of its sections |
//! | `merge` | what an alternative changes |
//! | `path` | one field by its path |
//! | `check` | from the sections to a case |
//! | `database` | from the sections of a database and its host to what runs |
//! | `several` | entries that stand for several, with a count |
//! | `shrink` | a case at one part in so many |
//! | `place` | objects on volumes |
//! | `beside` | other databases and loads on the same array |
//! | `assemble` | the array in a world, with ports, processors and buses around it |
//! | `measure` | the database at work on it |
//! | `hardware` | watts and rack units |
//! | `metric` | the figures of a report by name |
//!
//! The array is the engine's own, from an array file's tables under `[system]`; its drives are modelled.

mod assemble;
mod beside;
mod check;
mod database;
mod file;
mod hardware;
mod measure;
mod merge;
mod metric;
mod path;
mod place;
mod several;
mod shrink;
#[cfg(test)]
mod tests;

use tier0_catalog::{ArrayParameters, Catalog, SourceKind, UnknownEntry};
use tier0_database::layout::{Layout, Scale};
use tier0_database::run::{DatabaseReport, DatabaseSpec, RunLength};
use tier0_database::storage::{Placement, VolumeIo};
use tier0_description::Description;
use tier0_units::Nanos;
use tier0_workload::spec::parse_duration;

use crate::path::Usage;
use crate::work::Work;

pub(crate) use assemble::{Site, assemble};
pub use beside::{Beside, BesideWork};
pub use check::CaseError;
pub use hardware::Hardware;
pub(crate) use merge::lay_over;
pub(crate) use path::put;
pub use shrink::Shrunk;

/// A checked case.
#[derive(Clone, Debug)]
pub struct Case {
    /// Its name.
    pub name: String,
    /// The database, with its host and users.
    pub database: DatabaseSpec,
    /// The array.
    pub system: Description,
    /// The ports, processors and buses around it; they cost nothing where absent.
    pub front_end: Option<CaseFrontEnd>,
    /// Objects on volumes.
    pub placement: Placement,
    /// How much smaller it is simulated.
    pub shrunk: Shrunk,
    /// What else uses the array.
    pub beside: Vec<Beside>,
    /// The volumes whose I/O is counted, by their places in the array's.
    pub counted: Vec<usize>,
    /// Transactions per second as they were measured, where the file says so.
    pub measured_tps: Option<f64>,
    /// Whether transactions are those of all databases, not of the first.
    pub is_sum: bool,
    /// Whether a transaction per minute is one of the benchmark's own measure, not of any kind.
    pub tpm_is_headline: bool,
    /// How long it runs.
    pub length: RunLength,
    /// The seed of its run, where it names one.
    pub seed: Option<u64>,
}

/// The ports, processors and buses of arrays of the catalogue.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CaseFrontEnd {
    /// The array.
    pub model: String,
    /// So many of them.
    pub arrays: u32,
    /// Ports of each, if not the model's.
    pub ports: Option<u32>,
}

impl CaseFrontEnd {
    /// All of them as one.
    pub(crate) fn parameters(&self, catalog: &Catalog) -> Result<ArrayParameters, UnknownEntry> {
        let mut all = catalog.array(&self.model)?.parameters.clone();
        if let Some(ports) = self.ports {
            all.front_end_ports.value = ports;
        }
        for number in [&mut all.front_end_ports, &mut all.active_controllers, &mut all.back_end_buses] {
            number.value *= self.arrays;
        }
        Ok(all)
    }
}

impl Case {
    /// The entries of the catalogue that it rests on: the array with its link, and the model of each drive.
    pub(crate) fn entries(&self) -> Vec<String> {
        let array = self.front_end.iter().flat_map(|CaseFrontEnd { model, .. }| {
            let link =
                Catalog::built_in().array(model).map(|array| array.parameters.front_end_link.value.clone());
            [Some(model.clone()), link.ok()].into_iter().flatten()
        });
        let drives = self.system.drives.iter().filter_map(|drive| drive.model.clone());
        array.chain(drives).collect()
    }

    /// Bytes of each object of its database where it is simulated whole, in their order.
    pub(crate) fn whole_bytes(&self) -> Vec<u64> {
        let DatabaseSpec { workload, engine, scale, .. } = &self.database;
        let whole = Scale { units: scale.units * self.shrunk.factor, ..scale.clone() };
        let layout = Layout::new(workload, engine, &whole);
        layout.objects.iter().map(|object| object.pages * layout.page.0).collect()
    }

    /// The numbers of all workloads and engines: the entry's id, the number's name, its kind and source.
    pub(crate) fn sources(&self) -> Vec<(String, String, SourceKind, String)> {
        let beside = self.beside.iter().filter_map(|one| match &one.work {
            BesideWork::Database(spec, _) => Some(&**spec),
            BesideWork::Load(..) => None,
        });
        std::iter::once(&self.database).chain(beside).flat_map(sources_of).collect()
    }
}

fn sources_of(database: &DatabaseSpec) -> Vec<(String, String, SourceKind, String)> {
    let (workload, engine) = (&database.workload, &database.engine);
    let numbers = workload
        .sources
        .iter()
        .map(|(name, kind, source)| (workload.id.clone(), name.clone(), *kind, source.clone()));
    let of_engine = engine
        .sources()
        .into_iter()
        .map(|(name, kind, source)| (engine.id.clone(), name.to_owned(), kind, source.to_owned()));
    numbers.chain(of_engine).collect()
}

/// A duration of a field that may be absent; the error is the fact and the remedy.
fn duration(field: &str, text: &Option<String>, default: Nanos) -> Result<Nanos, String> {
    match text {
        Some(text) => parse_duration(text).map_err(|error| format!("{field}: {error}")),
        None => Ok(default),
    }
}

/// What drives of a model are called among the resources.
pub(crate) fn drives_of(model: &str) -> String {
    format!("{model} drives")
}

/// What a case gave.
#[derive(Clone, Debug)]
pub struct CaseReport {
    /// The database.
    pub database: DatabaseReport,
    /// The databases beside it, by name.
    pub beside: Vec<(String, DatabaseReport)>,
    /// What all databases read from the counted volumes and wrote to them.
    pub io: VolumeIo,
    /// Transactions per second: of the database, or of all.
    pub per_s: f64,
    /// What counts as a transaction per minute, in transactions per second.
    pub counted_per_s: f64,
    /// How busy ports, processors, buses and drives were.
    pub usage: Usage,
    /// What the array did.
    pub work: Work,
    /// The drives, for a buyer.
    pub hardware: Hardware,
}
