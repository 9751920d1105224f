//! Workloads: objects with their rows, and transactions as scripts of the rows that they touch.
//!
//! | file | concept |
//! |---|---|
//! | `file` | the form of a workload's file |
//! | `check` | from the file to a checked workload |
//! | `law` | how a value is chosen |
//! | `primary_keys` | the indexes that engines with heaps have beside |
//! | `own` | objects of one's own with their counts of I/O |
//!
//! A workload says what is touched. Pages, time and place come from elsewhere: an engine says how many rows a page has
//! ([`crate::engine`]), a scale how many rows there are ([`crate::layout`]).

mod check;
mod file;
mod law;
mod own;
mod primary_keys;

use std::collections::BTreeMap;

pub use check::WorkloadError;
pub use law::{Drawn, Law, UnknownLaw};
pub use own::OwnObject;
use serde::Deserialize;

/// A checked workload. Dimensions and objects are named by their places in its lists.
#[derive(Clone, Debug)]
pub struct Workload {
    /// Its name in studies.
    pub id: String,
    /// A line for titles.
    pub title: String,
    /// What is modelled, and what is not.
    pub description: String,
    /// What the scale counts.
    pub unit: String,
    /// The place of the transaction whose commits are the benchmark's own measure.
    pub headline: usize,
    /// What rows are numbered by. The first is the users' home.
    pub dimensions: Vec<Dimension>,
    /// Tables and indexes.
    pub objects: Vec<Object>,
    /// Transactions.
    pub transactions: Vec<Transaction>,
    /// Processor time for 8 KiB that a scan reads, in microseconds.
    pub scan_us: f64,
    /// Laws that a study may replace, by name.
    pub choices: BTreeMap<String, Law>,
    /// Where each number comes from: of what, how it is known, the source.
    pub sources: Vec<(String, tier0_catalog::SourceKind, String)>,
}

/// What a study says otherwise than a workload's file.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Changes {
    /// Laws, by the names of choices.
    #[serde(default)]
    pub choices: BTreeMap<String, String>,
    /// Orders in which rows lie, by the names of objects.
    #[serde(default)]
    pub keys: BTreeMap<String, Vec<String>>,
    /// Shares of transactions, by their names; those that it does not name are not run. The workload's own where empty.
    #[serde(default)]
    pub mix: BTreeMap<String, f64>,
}

/// What rows are numbered by.
#[derive(Clone, Debug, PartialEq)]
pub struct Dimension {
    /// Its name.
    pub name: String,
    /// How many values it has.
    pub size: Size,
}

/// How many values a dimension has.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Size {
    /// The same at every scale.
    Fixed(u64),
    /// So many for each unit of the scale.
    PerUnit(f64),
}

/// A table or an index.
#[derive(Clone, Debug, PartialEq)]
pub struct Object {
    /// Its name.
    pub name: String,
    /// Dimensions of the key, in the order in which rows lie.
    pub key: Vec<usize>,
    /// Bytes of a row, without what the engine adds.
    pub row_bytes: f64,
    /// Rows for each value of the key; of an object that grows, at first.
    pub rows: u64,
    /// How it grows, if it does.
    pub growth: Option<Growth>,
    /// The table that it is an index of.
    pub index_of: Option<usize>,
    /// Of a table: bytes of its primary key.
    pub primary_key_bytes: Option<f64>,
    /// Entries of an index come at random places, so that its leaves are split in the middle.
    pub is_filled_at_random: bool,
}

/// How an object grows.
#[derive(Clone, Debug, PartialEq)]
pub struct Growth {
    /// Rows for each sequence number.
    pub per_sequence: u64,
    /// Sequence numbers that nothing has taken at first.
    pub backlog: u64,
    /// The dimension whose values appended rows keep, and how many of them are recalled.
    pub keeps: Option<(usize, usize)>,
}

/// A transaction.
#[derive(Clone, Debug)]
pub struct Transaction {
    /// Its name.
    pub name: String,
    /// Its share of all, 0 to 1.
    pub share: f64,
    /// What it does, in order.
    pub steps: Vec<Step>,
}

/// A step that is taken with some probability.
#[derive(Clone, Debug)]
pub struct Step {
    /// 0 to 1.
    pub probability: f64,
    /// What it does.
    pub act: Act,
}

/// What a step does.
#[derive(Clone, Debug)]
pub enum Act {
    /// Chooses a value of a dimension.
    Pick {
        /// The dimension.
        dimension: usize,
        /// How.
        law: Law,
    },
    /// Chooses a sequence number of an object's partition.
    PickSequence {
        /// The object that grows.
        object: usize,
        /// Which.
        among: Among,
    },
    /// Reads rows, or changes them.
    Touch {
        /// The object.
        object: usize,
        /// Whether they are changed.
        update: bool,
        /// How many, one behind the other.
        rows: u64,
        /// Which.
        at: At,
        /// Whether others who hold it wait until the transaction has committed.
        hold: bool,
        /// Whether it was found by another index, so that its primary key is not read.
        direct: bool,
    },
    /// Appends a row.
    Append {
        /// The object that grows.
        object: usize,
    },
    /// Deletes the oldest row that nothing has taken, and remembers its sequence number.
    Take {
        /// The object that grows.
        object: usize,
        /// Whether others who take from these rows wait until the transaction has committed.
        hold: bool,
    },
    /// Takes steps several times.
    Repeat {
        /// At least.
        least: u64,
        /// At most.
        most: u64,
        /// Each time for one of so many sequence numbers from the chosen one on.
        within: Option<u64>,
        /// The rows are known before they are needed, so that an engine can read them ahead.
        is_list: bool,
        /// What.
        steps: Vec<Step>,
    },
    /// Takes steps for each value of a dimension.
    Each {
        /// The dimension.
        dimension: usize,
        /// What.
        steps: Vec<Step>,
    },
    /// Takes steps for each of the newest values that an object's partition has kept.
    Recall {
        /// The object that grows.
        object: usize,
        /// Of so many.
        last: usize,
        /// What is taken for a row older than the run.
        law: Law,
        /// What.
        steps: Vec<Step>,
    },
    /// Reads so many pages side by side at a random place, with one I/O past the buffer.
    Stretch {
        /// The object.
        object: usize,
        /// How many: a power of two, at most a piece of an object.
        pages: u64,
    },
    /// Reads a part of an object in the order of its pages.
    Scan {
        /// The object.
        object: usize,
        /// The part, more than 0 to 1; where it begins is drawn.
        share: f64,
    },
}

/// Among which sequence numbers one is chosen.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Among {
    /// So many of the newest, each alike.
    Newest(u64),
    /// All that there were at first.
    All {
        /// How a group is chosen.
        law: Law,
        /// Numbers of a group, each alike.
        group: u64,
    },
}

/// Which rows of an object a step touches.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum At {
    /// The row of the chosen values.
    Key,
    /// The rows of the chosen sequence number.
    Sequence,
    /// The newest rows.
    Tail,
}

/// The workloads that the program carries.
const EMBEDDED: &[(&str, &str)] = &[
    ("catalog/workloads/order-entry.toml", include_str!("../../../../catalog/workloads/order-entry.toml")),
    ("catalog/workloads/brokerage.toml", include_str!("../../../../catalog/workloads/brokerage.toml")),
    (
        "catalog/workloads/decision-support.toml",
        include_str!("../../../../catalog/workloads/decision-support.toml"),
    ),
];

impl Workload {
    /// The workload of a name, with what a study says otherwise.
    ///
    /// # Errors
    /// There is none, its file is wrong, or it has nothing that could be otherwise by such a name.
    pub fn find(id: &str, changes: &Changes) -> Result<Workload, WorkloadError> {
        let mut known = Vec::new();
        for (file, text) in EMBEDDED {
            let own = Workload::parse(text, file, &Changes::default())?.id;
            if own == id {
                return Workload::parse(text, file, changes);
            }
            known.push(own);
        }
        Err(WorkloadError::Unknown { id: id.to_owned(), known: known.join(", ") })
    }

    /// The place of an object.
    pub fn object(&self, name: &str) -> Option<usize> {
        self.objects.iter().position(|object| object.name == name)
    }

    /// The place of a dimension.
    pub fn dimension(&self, name: &str) -> Option<usize> {
        self.dimensions.iter().position(|dimension| dimension.name == name)
    }
}
