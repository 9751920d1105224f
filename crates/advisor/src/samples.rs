//! The file that `tier0 advise collect` writes: JSON lines, one sample of a PostgreSQL each. The first line of a run has all
//! relations, the others those whose counters changed. A line that a kill cut off is left out when it is read.

use serde::{Deserialize, Serialize};

/// The value of [`PostgresSample::tier0`].
pub const MARK: &str = "postgresql-sample";
/// The version of the form.
pub const VERSION: u32 = 1;

/// One sample.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct PostgresSample {
    /// What the line is: [`MARK`].
    pub tier0: String,
    /// The form's version.
    pub version: u32,
    /// Unix time, seconds, by the server's clock.
    pub at: f64,
    /// Whether all relations are listed, and what was known before does not count.
    pub full: bool,
    /// Which database it is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub address: Option<DatabaseAddress>,
    /// The server's version.
    pub server: String,
    /// When the server started and its statistics were reset; another value means that counters began again.
    pub epoch: String,
    /// Bytes of a page.
    pub page_bytes: f64,
    /// Bytes of shared buffers.
    pub buffer_bytes: Option<f64>,
    /// Whether the server measures the times of its I/Os.
    pub has_io_times: bool,
    /// Whether it measures those of the log.
    pub has_log_times: bool,
    /// Counters of the database.
    pub database: DatabaseCounters,
    /// Counters of relations.
    pub relations: Vec<Relation>,
    /// Milliseconds of processor time of the server's processes, where they can be counted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub processor_ms: Option<f64>,
    /// The host, where the server runs on this one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub host: Option<HostCounters>,
    /// Volumes of the array, where it was asked.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub volumes: Vec<VolumeCounters>,
}

/// Which database of which server.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct DatabaseAddress {
    /// The server's host, or the directory of its socket, as it was connected to.
    pub host: String,
    /// Its port.
    pub port: u16,
    /// The database.
    pub database: String,
    /// The identifier that the server's data directory has since it was made, where it may be read.
    pub system: Option<String>,
}

impl DatabaseAddress {
    /// Whether both are the same database. Servers with identifiers are told apart by them, whatever way leads there.
    pub fn is_same(&self, other: &DatabaseAddress) -> bool {
        let is_same_server = match (&self.system, &other.system) {
            (Some(one), Some(other)) => one == other,
            _ => self.host == other.host && self.port == other.port,
        };
        is_same_server && self.database == other.database
    }

    /// As words: `database "shop" of host db1, port 5432`.
    pub fn words(&self) -> String {
        format!("database {:?} of host {:?}, port {}", self.database, self.host, self.port)
    }
}

/// Counters of the database and of the server, since their reset.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct DatabaseCounters {
    /// Commits and rollbacks.
    pub transactions: Option<f64>,
    /// Pages found in shared buffers.
    pub hits: Option<f64>,
    /// Pages read from the operating system.
    pub reads: Option<f64>,
    /// Milliseconds of reads.
    pub read_ms: Option<f64>,
    /// Milliseconds of writes by sessions.
    pub write_ms: Option<f64>,
    /// Milliseconds that sessions executed statements.
    pub active_ms: Option<f64>,
    /// Pages written by checkpoints, the background writer and sessions.
    pub written: Option<f64>,
    /// Writes of the log.
    pub log_writes: Option<f64>,
    /// Bytes of the log.
    pub log_bytes: Option<f64>,
    /// Milliseconds of its writes and flushes.
    pub log_ms: Option<f64>,
}

/// A table or an index with its counters.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Relation {
    /// Schema.
    pub schema: String,
    /// Name.
    pub name: String,
    /// The table of an index.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub table: Option<String>,
    /// The partitioned table that it is a part of.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub partition_of: Option<String>,
    /// Bytes on disk; with its TOAST table.
    pub bytes: Option<f64>,
    /// Pages read.
    pub reads: Option<f64>,
    /// Pages found in shared buffers.
    pub hits: Option<f64>,
    /// Rows that sequential scans read.
    pub scanned_rows: Option<f64>,
    /// Rows fetched by indexes.
    pub fetched_rows: Option<f64>,
    /// Rows, or entries of an index, that were written.
    pub changed_rows: Option<f64>,
}

/// Jiffies of the host's processors since boot.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct HostCounters {
    /// Processors.
    pub cores: f64,
    /// Time at work.
    pub busy: f64,
    /// Idle with I/Os under way.
    pub io_wait: f64,
    /// All time.
    pub all: f64,
}

/// A volume of the array.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct VolumeCounters {
    /// Its name.
    pub name: String,
    /// Reads since the array's start.
    pub reads: f64,
    /// Writes.
    pub writes: f64,
    /// Bytes of both.
    pub bytes: f64,
    /// Milliseconds of reads.
    pub read_ms: f64,
    /// Milliseconds of writes.
    pub write_ms: f64,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_same_server_is_known_by_its_identifier() {
        let address = |host: &str, system: Option<&str>| DatabaseAddress {
            host: host.into(),
            port: 5432,
            database: "shop".into(),
            system: system.map(str::to_owned),
        };
        assert!(address("/run", Some("7")).is_same(&address("localhost", Some("7"))), "another way to it");
        assert!(
            !address("db1", Some("7")).is_same(&address("db1", Some("8"))),
            "a server that took its place"
        );
        assert!(address("db1", None).is_same(&address("db1", Some("8"))));
        assert!(!address("db1", None).is_same(&address("db2", None)));
        let other = DatabaseAddress { database: "test".into(), ..address("db1", Some("7")) };
        assert!(!address("db1", Some("7")).is_same(&other));
    }
}
