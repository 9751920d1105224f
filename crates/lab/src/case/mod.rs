//! A case: a database on a host over an array, all of them modelled, as one file describes them.
//!
//! | file | concept |
//! |---|---|
//! | `file` | the form of its sections |
//! | `merge` | what an alternative changes |
//! | `check` | from the sections to a case |
//! | `assemble` | the array in a world, with ports, processors and buses around it |
//! | `measure` | the database at work on it |
//!
//! The array is the engine's own, from an array file's tables under `[system]`; its drives are modelled.

mod assemble;
mod check;
mod file;
mod measure;
mod merge;

use tier0_database::run::{DatabaseReport, DatabaseSpec, RunLength};
use tier0_database::storage::Placement;
use tier0_description::Description;

use crate::path::Usage;
use crate::work::Work;

pub use check::CaseError;
pub(crate) use merge::lay_over;

/// A checked case.
#[derive(Clone, Debug)]
pub struct Case {
    /// Its name.
    pub name: String,
    /// The database, with its host and users.
    pub database: DatabaseSpec,
    /// The array.
    pub system: Description,
    /// The catalogue's array whose ports, processors and buses are around it; none where absent.
    pub front_end: Option<String>,
    /// Objects on volumes.
    pub placement: Placement,
    /// How long it runs.
    pub length: RunLength,
    /// The seed of its run.
    pub seed: u64,
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
    /// How busy ports, processors, buses and drives were.
    pub usage: Usage,
    /// What the array did.
    pub work: Work,
}
