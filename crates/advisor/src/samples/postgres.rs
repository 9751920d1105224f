//! A sample of a PostgreSQL.

use serde::{Deserialize, Serialize};

use super::{Collected, DatabaseAddress, Head, HostCounters, VolumeCounters};

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
    #[serde(deserialize_with = "super::bounded")]
    pub relations: Vec<Relation>,
    /// Milliseconds of processor time of the server's processes, where they can be counted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub processor_ms: Option<f64>,
    /// The host, where the server runs on this one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub host: Option<HostCounters>,
    /// Volumes of the array, where it was asked.
    #[serde(default, skip_serializing_if = "Vec::is_empty", deserialize_with = "super::bounded")]
    pub volumes: Vec<VolumeCounters>,
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

impl Collected for PostgresSample {
    type Object = Relation;
    const MARKS: &'static [&'static str] = &[MARK];
    const VERSION: u32 = VERSION;

    fn address(&self) -> Option<&DatabaseAddress> {
        self.address.as_ref()
    }

    fn head(&self) -> Head<'_> {
        Head { mark: &self.tier0, version: self.version, at: self.at, is_full: self.full }
    }

    fn objects(&mut self) -> &mut Vec<Relation> {
        &mut self.relations
    }

    fn set_full(&mut self, full: bool) {
        self.full = full;
    }

    fn set_volumes(&mut self, volumes: Vec<VolumeCounters>) {
        self.volumes = volumes;
    }

    fn key(of: &Relation) -> [&str; 3] {
        [&of.schema, &of.name, ""]
    }

    fn lacks(&self) -> Vec<String> {
        let mut lacks = Vec::new();
        if !self.has_io_times {
            lacks.push(
                "track_io_timing is off, so waits of PostgreSQL read \"not measured\"; switch it on (alter system set \
                 track_io_timing = on)"
                    .to_owned(),
            );
        }
        if !self.has_log_times {
            lacks.push("track_wal_io_timing is off, so waits for the log read \"not measured\"".to_owned());
        }
        lacks
    }
}
