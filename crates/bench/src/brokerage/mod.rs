//! A brokerage database, in the form of TPC-E: 32 tables, ten transactions, and what always holds between them.
//!
//! | module | concept |
//! |---|---|
//! | `schema` | tables and indexes |
//! | `layout` | numbers of rows, and what follows from numbers alone |
//! | `calendar` | days and times of the initial rows |
//! | `holdings` | what a trade does to holdings |
//! | `simulation` | the initial trades, one after the other |
//! | `rows` | the rows at first, in the form of COPY |
//! | `draw` | what transactions choose, and how |
//! | `market` | the market, which answers orders: results and prices |
//! | `session` | a session with its prepared statements |
//! | `kind` | the ten kinds of transactions |
//! | `transactions` | a file for each: its input and its statements |
//! | `script` | what users and the market do |
//! | `conditions` | what always holds |
//!
//! Code, names and texts are this program's own, written from public facts about the specification: numbers of rows, weights,
//! frames, skew (docs/bench.md). The specification's generator may not be copied. Not done: Data-Maintenance (once a minute) and
//! Trade-Cleanup.

mod calendar;
pub(crate) mod conditions;
mod draw;
mod holdings;
pub(crate) mod kind;
pub(crate) mod layout;
mod market;
pub(crate) mod rows;
pub(crate) mod schema;
pub(crate) mod script;
mod session;
mod simulation;
mod transactions;

use tier0_database::workload::Workload;

use crate::BenchError;

/// The modelled load, whose mix and laws a run has.
pub(crate) fn workload() -> Result<Workload, BenchError> {
    let found = Workload::find("brokerage", &Default::default());
    found.map_err(|error| BenchError::Option(error.to_string()))
}

/// The statement that has new trades numbered after the initial ones.
pub(crate) fn finish(units: u64, days: u64) -> String {
    format!("select setval('trade_number', {})", units * simulation::trades_of_unit(days))
}
