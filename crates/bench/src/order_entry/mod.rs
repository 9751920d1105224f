//! The order-entry database, in the form of TPC-C: nine tables, five transactions, and what always holds between them.
//!
//! | module | concept |
//! |---|---|
//! | `schema` | tables, indexes, numbers of rows |
//! | `rows` | the rows of a warehouse at first, from a seed, in the form of COPY |
//! | `names` | last names of the specification |
//! | [`draw`] | what transactions choose, and how |
//! | `kind` | the five kinds of transactions |
//! | `script` | what users do |
//! | `terminal` | a session with its prepared statements |
//! | `new_order`, `payment`, `order_status`, `delivery`, `stock_level` | a transaction each: its input and its statements |
//! | `conditions` | what always holds |
//!
//! The sizes are those of the specification (clauses 1.2.1, 1.3 and 4.3.3). Not taken from it: foreign keys, which no public kit
//! for PostgreSQL declares and which `check` tests instead, and the text that a terminal would show.

pub(crate) mod conditions;
mod delivery;
pub mod draw;
pub(crate) mod kind;
mod names;
mod new_order;
mod order_status;
mod payment;
pub(crate) mod rows;
pub(crate) mod schema;
pub(crate) mod script;
mod stock_level;
pub(crate) mod terminal;

use tier0_database::workload::Workload;

use crate::BenchError;

/// The modelled load, whose mix and laws a run has.
pub(crate) fn workload() -> Result<Workload, BenchError> {
    let found = Workload::find("order-entry", &Default::default());
    found.map_err(|error| BenchError::Option(error.to_string()))
}
