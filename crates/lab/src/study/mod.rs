//! Studies: plans in TOML that say which configurations to measure, what may be fitted to what, and which figures are
//! published.
//!
//! | file | concept |
//! |---|---|
//! | `file` | the file as it is written |
//! | `setup` | one configuration's array and load, put together from patches |
//! | `set_group` | drives of one kind with their volumes, and what is asked of these |
//! | `neighbour` | other groups of sets in the same array, with a load of their own |
//! | `caches` | which caches volumes use: switches, presets |
//! | `grid` | the product of axes |
//! | `plan` | the checked study: configurations, free parameters, records |
//! | `check` | from the file to the plan |
//! | `fit_parts` | which parameters are fitted together, and what a changed assumption moves |
//! | `error` | what can be wrong, with line and remedy |
//! | `embedded` | the studies that the program carries |
//!
//! Invariants of a plan: every configuration is complete; ids are unique; every figure refers to configurations that
//! exist; figures that may be fitted to and figures that may not are of different types.

mod caches;
mod check;
mod embedded;
mod error;
mod file;
mod fit_parts;
mod grid;
mod neighbour;
mod plan;
mod set_group;
mod setup;
#[cfg(test)]
mod tests;

pub use caches::{CachePreset, Caches, FlashCacheSetup, SaidSwitches, Switches};
pub use embedded::{StudySummary, embedded, list};
pub use error::StudyError;
pub(crate) use fit_parts::FitPart;
pub use neighbour::Neighbour;
pub use plan::{
    Assumption, CalibrationFigure, CaseConfiguration, CatalogValue, Configuration, Figures, FreeField,
    FreeParameter, GridPlan, GridPoint, Measure, Metric, Order, PredictionFigure, Study, Variation,
};
pub use set_group::{Requests, SetGroup};
pub(crate) use setup::IOS_DEFAULT;
pub use setup::{Goal, RunEffort, Setup, SetupField};
