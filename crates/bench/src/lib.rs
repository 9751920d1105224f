//! Real transactions on a real database: loads the database of a load into PostgreSQL, runs its transactions or queries, and checks
//! its consistency.
//!
//! | module | concept |
//! |---|---|
//! | [`address`] | where the database is, without its password in any text |
//! | [`load`] | which loads there are, and what the shared parts ask of each |
//! | [`order_entry`] | the load in the form of TPC-C: tables, rows, draws, the five transactions, the conditions that always hold |
//! | [`brokerage`] | the load in the form of TPC-E: tables, rows, the ten transactions, the conditions that always hold |
//! | [`decision_support`] | the load in the form of TPC-H: tables, rows, the twenty-two queries, the conditions that always hold |
//! | [`prepare`](mod@prepare) | creates and loads the tables; goes on where an earlier load ended |
//! | [`run`](mod@run) | users who run transactions for a time, and what they measured |
//! | [`check`](mod@check) | tests the conditions |
//! | [`counters`] | what the database, the host and the array count meanwhile: differences of two samples |
//! | [`watch`] | how a caller sees progress and asks for an early end |
//!
//! Mix, laws of choice and numbers of rows are those of the modelled workloads (`catalog/workloads`, read through
//! `tier0-database`), so that a run can be compared with a prediction. Invariants: a transaction that is repeated because the
//! server refused it has the same input; what was not measured is absent and never 0; no text has a password.
//!
//! The crate does not print, does not know arrays (its caller asks them), and does not predict.

pub mod address;
pub mod brokerage;
pub mod check;
pub mod counters;
pub mod decision_support;
mod error;
pub mod load;
pub mod order_entry;
pub mod prepare;
pub mod run;
pub mod watch;

pub use error::BenchError;
