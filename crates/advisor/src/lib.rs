//! The advisor: which data of a database belongs on flash, what that would bring, and why.
//!
//! | module | concept |
//! |---|---|
//! | [`evidence`] | what was measured, every figure optional; differences of samples, restarts |
//! | [`read`] | reports of databases and hosts, recognised by their content |
//! | [`samples`] | the file that collecting writes |
//! | [`site`] | what no report says: spindles, RAID levels, cables |
//! | [`gain`] | what a move brings, by mean value analysis |
//! | [`rules`] | rules of diagnosis and placement, one file each |
//! | [`drives`] | drives of the catalogue |
//! | [`knapsack`] | what fits and is worth most |
//! | [`advice`] | the answer, the ranking, caches, sizing |
//! | [`plan`] | the placement as a plan, with the statements that carry it out |
//! | [`outcome`] | a plan against what was measured afterwards |
//! | [`twin`] | a plan before the twin: the samples as a case of `tier0 lab whatif` |
//! | [`report`] | figures as texts, and the page |
//!
//! Invariants: no clock and no network; what was not measured is absent and reads "not measured", never 0; every conclusion says
//! what it rests on.
//!
//! What this crate does not do: it connects to no database and changes nothing.

pub mod advice;
pub mod drives;
pub mod evidence;
pub mod gain;
pub mod knapsack;
pub mod outcome;
pub mod plan;
pub mod read;
pub mod report;
pub mod rules;
pub mod samples;
pub mod site;
pub mod twin;
