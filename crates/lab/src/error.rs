//! Why the lab has no result.

use std::path::PathBuf;

use thiserror::Error;
use tier0_array::ArrayError;
use tier0_catalog::{LookupError, UnknownEntry};
use tier0_workload::run::RunError;

use crate::study::StudyError;

/// An error of the lab.
#[derive(Debug, Error)]
pub enum LabError {
    /// The study is wrong or missing.
    #[error(transparent)]
    Study(#[from] StudyError),
    /// A configuration's array cannot be put together.
    #[error("configuration {configuration:?}: {source}")]
    Array {
        /// The configuration.
        configuration: String,
        /// Why.
        source: Box<ArrayError>,
    },
    /// A configuration's RAID sets cannot exist.
    #[error("configuration {configuration:?}: {source}")]
    Raid {
        /// The configuration.
        configuration: String,
        /// Why.
        source: tier0_raid::layout::ConfigError,
    },
    /// A configuration's load does not fit its array.
    #[error("configuration {configuration:?}: {source}")]
    Load {
        /// The configuration.
        configuration: String,
        /// Why.
        source: Box<RunError>,
    },
    /// A measurement did not come to its end.
    #[error("configuration {configuration:?}: the load ended early ({fact}); check its drives and its load")]
    Ended {
        /// The configuration.
        configuration: String,
        /// What ended it.
        fact: String,
    },
    /// The catalogue lacks an array or a link.
    #[error(transparent)]
    Entry(#[from] UnknownEntry),
    /// The catalogue lacks a drive or its calibration.
    #[error(transparent)]
    Lookup(#[from] LookupError),
    /// A report cannot be written.
    #[error("report {path:?} cannot be written: {source}; choose another place")]
    Write {
        /// Where.
        path: PathBuf,
        /// What the system says.
        source: std::io::Error,
    },
    /// A report cannot be made.
    #[error("the report cannot be made: {0}; report this as a fault of tier0")]
    Render(#[from] askama::Error),
    /// A case is wrong.
    #[error(transparent)]
    Case(#[from] crate::case::CaseError),
    /// A case cannot be made so much smaller.
    #[error("{case}: run.shrink: {source}; lower it")]
    Shrink {
        /// The case.
        case: String,
        /// Which drive cannot be so small.
        source: tier0_catalog::VaryError,
    },
    /// A file of alternatives is wrong.
    #[error(transparent)]
    WhatIf(#[from] crate::whatif::WhatIfError),
    /// A file of a run that is to be predicted is wrong.
    #[error(transparent)]
    RunPlan(#[from] crate::predict::RunPlanError),
    /// A modelled database ended early.
    #[error("{case}: {source}")]
    Database {
        /// The case.
        case: String,
        /// Why.
        source: tier0_database::run::DatabaseError,
    },
    /// A trace cannot be replayed.
    #[error(transparent)]
    Replay(#[from] crate::replay::LoadError),
    /// A trace cannot be played on an array.
    #[error(transparent)]
    Timed(#[from] crate::timed::TimedError),
    /// A drive cannot be validated.
    #[error(transparent)]
    Validation(#[from] tier0_drive::disk::validation::ValidationError),
}
