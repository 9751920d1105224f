//! The decision-support database, in the form of TPC-H: eight tables, twenty-two queries, and what always holds between its rows.
//!
//! | module | concept |
//! |---|---|
//! | `schema` | tables and indexes |
//! | `rows` | its rows, from `tpchgen` |
//! | `parameters` | what is substituted in queries |
//! | `queries` | the queries |
//! | `script` | what a stream does |
//! | `conditions` | what always holds |
//!
//! The rows are exactly those of the specification's own generator. Not done: refresh functions, which change rows, and the metric
//! QphH, which needs them and the power and throughput runs of an audit.

pub(crate) mod conditions;
mod parameters;
pub(crate) mod queries;
pub(crate) mod rows;
pub(crate) mod schema;
pub(crate) mod script;

pub use script::Queries;
