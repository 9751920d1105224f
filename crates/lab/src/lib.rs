//! The laboratory: studies of arrays in virtual time, and profiles of targets in any world.
//!
//! | module | concept |
//! |---|---|
//! | [`study`] | plans in TOML: configurations, free parameters, figures |
//! | [`path`] | links, processors and buses around the engine |
//! | [`measure`] | one configuration measured in a world of its own |
//! | [`settle`] | arrays brought into the steady state of a load, and whether what was measured was one |
//! | [`case`] | a modelled database on a host over an array |
//! | [`mod@whatif`] | what alternatives to an array, a host or a database would bring |
//! | [`predict`] | a run of the benchmark, predicted before it is done and sealed |
//! | [`search`] | I/Os per second under a latency limit |
//! | [`calibrate`] | fitting free parameters to calibration figures |
//! | [`work`] | what the array did for a load, as its own counters tell |
//! | [`replay`] | block traces against cache policies |
//! | [`timed`] | block traces with their times on a modelled array |
//! | [`grid`] | many measurements on all cores |
//! | [`mod@run`] | a study from its fit to its records |
//! | [`ranking`] | configurations under the same load, the best first |
//! | [`record`] | figures beside what was published, tolerances |
//! | [`report`] | tables and the HTML page |
//! | [`mod@profile`] | the same search on a target in any world |
//!
//! Calibrate, then predict: free parameters are fitted to a study's calibration figures; everything else is
//! predicted, and a report says which is which.
//!
//! What it does not do: it opens no target and parses no command line.

mod array_file;
pub mod calibrate;
pub mod case;
mod clock;
mod error;
pub mod grid;
pub mod measure;
mod outcome;
pub mod path;
mod power;
pub mod predict;
pub mod profile;
pub mod ranking;
pub mod record;
pub mod replay;
pub mod report;
pub mod run;
pub mod search;
pub mod sensitivity;
pub mod settle;
pub mod study;
pub mod timed;
pub mod whatif;
pub mod work;

pub use array_file::array_file;
pub use error::LabError;
