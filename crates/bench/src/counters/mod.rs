//! What others count while users work: the database, the host's processors, the array. Each is read twice and subtracted.
//!
//! | module | concept |
//! |---|---|
//! | [`database`] | PostgreSQL's statistics views: blocks by table and index, blocks written, WAL |
//! | [`processor`] | processor time of this machine, from `/proc/stat` |
//! | [`array`] | requests and bytes by volume |
//!
//! Invariant: a figure that was not measured is absent, with the reason ([`Gap`]). It is never 0.

pub mod array;
pub mod database;
pub mod processor;

use serde::{Deserialize, Serialize};

/// Something that was not measured.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Gap {
    /// What.
    pub what: String,
    /// Why.
    pub why: String,
}

impl Gap {
    pub(crate) fn new(what: impl Into<String>, why: impl Into<String>) -> Gap {
        Gap { what: what.into(), why: why.into() }
    }
}
