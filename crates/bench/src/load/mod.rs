//! The loads that there are, and what the shared parts ask of each.
//!
//! | module | concept |
//! |---|---|
//! | [`scale`](mod@scale) | how large a database of a load is |
//! | `schema` | tables and indexes: created, removed |
//! | `state` | what is loaded, as the database itself records it |
//! | `lines` | rows in the form of COPY, with random strings |
//! | `condition` | something that always holds, as a query |
//!
//! A load is a directory of its own beside this one. It has tables, rows in pieces, a script of what users do, and conditions.
//! Loading, users, pace, counters and the report are shared and know no table.

pub(crate) mod condition;
pub(crate) mod lines;
pub mod scale;
pub(crate) mod schema;
pub(crate) mod state;

use std::fmt;
use std::str::FromStr;

use self::condition::Condition;
pub use self::scale::Scale;
use self::schema::Table;
use crate::BenchError;
use crate::{brokerage, decision_support, order_entry};

/// A load.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Load {
    /// In the form of TPC-C.
    OrderEntry,
    /// In the form of TPC-E.
    Brokerage,
    /// In the form of TPC-H.
    DecisionSupport,
}

/// Makes the rows of a database. Pieces are loaded in any order, each in one transaction; the parts of a table of a piece in
/// ascending order.
pub(crate) trait Rows: Send {
    /// The tables of a piece, in the order of loading.
    fn tables(&self, piece: i32) -> Vec<Filled>;

    /// The rows of a part, in COPY's text form. Part 0 comes first.
    fn part(&mut self, piece: i32, table: usize, part: i32) -> Vec<u8>;
}

/// A table that a piece fills.
pub(crate) struct Filled {
    /// The statement that takes its rows.
    pub(crate) copy: String,
    /// Parts of its rows.
    pub(crate) parts: i32,
}

impl Load {
    /// All of them.
    pub const ALL: [Load; 3] = [Load::OrderEntry, Load::Brokerage, Load::DecisionSupport];

    /// Its name in options, reports and the database's own record.
    pub fn name(self) -> &'static str {
        match self {
            Load::OrderEntry => "order-entry",
            Load::Brokerage => "brokerage",
            Load::DecisionSupport => "decision-support",
        }
    }

    /// Its name in sentences.
    pub fn title(self) -> &'static str {
        match self {
            Load::OrderEntry => "order entry",
            Load::Brokerage => "brokerage",
            Load::DecisionSupport => "decision support",
        }
    }

    /// Its tables.
    pub(crate) fn tables(self) -> &'static [Table] {
        match self {
            Load::OrderEntry => &order_entry::schema::TABLES,
            Load::Brokerage => &brokerage::schema::TABLES,
            Load::DecisionSupport => &decision_support::schema::TABLES,
        }
    }

    /// What no condition of its own tells of.
    pub(crate) fn not_covered(self) -> &'static str {
        match self {
            Load::OrderEntry => order_entry::conditions::NOT_COVERED,
            Load::Brokerage => brokerage::conditions::NOT_COVERED,
            Load::DecisionSupport => decision_support::conditions::NOT_COVERED,
        }
    }

    /// A statement that creates what its tables need beside them.
    pub(crate) fn beside_tables(self) -> &'static str {
        match self {
            Load::OrderEntry | Load::DecisionSupport => "",
            Load::Brokerage => brokerage::schema::BESIDE,
        }
    }
}

impl fmt::Display for Load {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

impl FromStr for Load {
    type Err = BenchError;

    fn from_str(text: &str) -> Result<Load, BenchError> {
        Load::ALL.into_iter().find(|load| load.name() == text).ok_or_else(|| {
            let names = Load::ALL.map(Load::name).join(", ");
            BenchError::Option(format!("there is no load {text:?}; use one of {names}"))
        })
    }
}

impl Scale {
    /// The load that has it.
    pub fn load(&self) -> Load {
        match self {
            Scale::Warehouses(_) => Load::OrderEntry,
            Scale::Customers { .. } => Load::Brokerage,
            Scale::Factor(_) => Load::DecisionSupport,
        }
    }

    /// Pieces of its rows. They are numbered from 0.
    pub(crate) fn pieces(&self) -> i32 {
        match self {
            Scale::Warehouses(count) => order_entry::rows::pieces(*count),
            Scale::Customers { .. } => brokerage::rows::pieces(self.load_units()),
            Scale::Factor(factor) => decision_support::rows::pieces(*factor),
        }
    }

    /// What makes its rows.
    pub(crate) fn rows(&self, seed: u64) -> Result<Box<dyn Rows>, BenchError> {
        match self {
            Scale::Warehouses(_) => Ok(Box::new(order_entry::rows::OrderEntryRows::new(seed)?)),
            Scale::Customers { days, .. } => {
                let rows = brokerage::rows::BrokerageRows::new(seed, self.load_units(), u64::from(*days));
                Ok(Box::new(rows))
            }
            Scale::Factor(factor) => Ok(Box::new(decision_support::rows::DecisionSupportRows::new(*factor))),
        }
    }

    /// A statement that is run once all rows and indexes are there.
    pub(crate) fn finish(&self) -> Option<String> {
        match self {
            Scale::Customers { days, .. } => Some(brokerage::finish(self.load_units(), u64::from(*days))),
            Scale::Warehouses(_) | Scale::Factor(_) => None,
        }
    }

    /// What always holds, the quickest first.
    pub(crate) fn conditions(&self) -> Vec<Condition> {
        let own = match self {
            Scale::Warehouses(_) => order_entry::conditions::all(),
            Scale::Customers { .. } => brokerage::conditions::all(self.load_units()),
            Scale::Factor(factor) => decision_support::conditions::all(*factor),
        };
        std::iter::once(schema::indexes_exist(self.load())).chain(own).collect()
    }
}
