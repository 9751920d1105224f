//! An object: something of the database that lies on storage and has I/O of its own.

use serde::{Deserialize, Serialize};

use super::counts::Counts;
use super::sample::Format;

/// How fine the objects of a source are. The same I/O is seen at every level, so levels are never added up.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Level {
    /// The whole instance, data and log apart.
    Instance,
    /// Tablespaces.
    Tablespace,
    /// Files.
    File,
    /// Tables and indexes.
    Segment,
    /// What the listed segments leave of a tablespace: it is ranked beside them.
    Rest,
}

/// What an object holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Kind {
    /// Data of any kind.
    Data,
    /// A table, or a clustered index, which is its table.
    Table,
    /// A partition of a table.
    Partition,
    /// A non-clustered index.
    Index,
    /// The transaction log.
    Log,
    /// Temporary data.
    Temp,
    /// Undo or rollback data.
    Undo,
}

impl Kind {
    /// In a word.
    pub fn word(self) -> &'static str {
        match self {
            Kind::Data => "data",
            Kind::Table => "table",
            Kind::Partition => "partition",
            Kind::Index => "index",
            Kind::Log => "log",
            Kind::Temp => "temp",
            Kind::Undo => "undo",
        }
    }
}

/// What identifies an object over several samples.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub struct Identity {
    /// How fine it is.
    pub level: Level,
    /// Its database, schema or owner; empty where there is none.
    pub database: String,
    /// Its name.
    pub name: String,
    /// Its path, where it is a file.
    pub path: Option<String>,
}

/// An object with its counters.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Object {
    /// Who it is.
    #[serde(flatten)]
    pub identity: Identity,
    /// What it holds.
    pub kind: Kind,
    /// The table of an index or a partition.
    pub table: Option<String>,
    /// Its size in bytes, if known.
    pub bytes: Option<f64>,
    /// What was counted.
    pub counts: Counts,
    /// How that was counted.
    pub measured: Measured,
}

/// How an object was counted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct Measured {
    /// Over how many seconds, if known.
    pub seconds: Option<f64>,
    /// The kind of report.
    pub format: Option<Format>,
}

impl Object {
    /// `database.name`.
    pub fn full_name(&self) -> String {
        match self.identity.database.as_str() {
            "" => self.identity.name.clone(),
            database => format!("{database}.{}", self.identity.name),
        }
    }

    /// Whether most of its reads are of large scans: by their size, or by the rows that scans read. A database may read a scan page
    /// by page, as InnoDB does.
    pub fn is_sequential(&self) -> Option<bool> {
        let by_size = self.counts.bytes_per_read().map(|bytes| bytes > SEQUENTIAL_BYTES);
        if by_size == Some(true) {
            return by_size;
        }
        // Scans of a small table find it in memory.
        if self.bytes.is_some_and(|bytes| bytes < SCANNED_BYTES) {
            return Some(false);
        }
        self.counts.sequential_share().map(|share| share > SEQUENTIAL_ROWS).or(by_size)
    }
}

/// A mean read above this is one of scans. Random I/O of databases is up to 16 KiB (REFERENCE: flash is for random I/O of at most
/// 16 KiB); read-ahead units are 64 KiB and more, so a mean above 32 KiB has most of its bytes in scans.
pub const SEQUENTIAL_BYTES: f64 = 32.0 * 1024.0;
/// A smaller table stays in the memory of any database of today.
const SCANNED_BYTES: f64 = 64.0 * 1024.0 * 1024.0;
/// A table whose rows are read by scans to this share is read by scans: an index fetches a row with a page or more, a scan
/// a hundred rows with one page, so at 99 % each has about as many pages.
const SEQUENTIAL_ROWS: f64 = 0.99;

/// The kind of a file, by what its database, path and description say.
pub(crate) fn kind_of_file(database: &str, path: &str, described: &str) -> Kind {
    let path = path.to_ascii_lowercase();
    let described = described.to_ascii_lowercase();
    if described == "log" || path.ends_with(".ldf") || described == "log file" {
        Kind::Log
    } else if database.eq_ignore_ascii_case("tempdb") {
        Kind::Temp
    } else {
        Kind::Data
    }
}

/// The kind of a tablespace, by its customary name.
pub(crate) fn kind_of_tablespace(name: &str) -> Kind {
    let name = name.to_ascii_uppercase();
    if name.starts_with("TEMP") {
        Kind::Temp
    } else if name.starts_with("UNDO") || name == "RBS" {
        Kind::Undo
    } else {
        Kind::Data
    }
}
