//! A sample of a MySQL or a MariaDB: the whole server with all its schemas.

use serde::{Deserialize, Serialize};

use super::{Collected, DatabaseAddress, Head, HostCounters, VolumeCounters};
use crate::evidence::Kind;

/// The value of [`MysqlSample::tier0`] for a MySQL.
pub const MARK: &str = "mysql-sample";
/// That for a MariaDB, which moves its files in another way.
pub const MARK_MARIADB: &str = "mariadb-sample";
/// The version of the form.
pub const VERSION: u32 = 1;

/// One sample.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct MysqlSample {
    /// What the line is: [`MARK`] or [`MARK_MARIADB`].
    pub tier0: String,
    /// The form's version.
    pub version: u32,
    /// Unix time, seconds, by the server's clock.
    pub at: f64,
    /// Whether all objects are listed, and what was known before does not count.
    pub full: bool,
    /// Which server it is. No database is named: a sample is of all.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub address: Option<DatabaseAddress>,
    /// The server's version.
    pub server: String,
    /// When the server started; another value means that counters began again.
    pub epoch: String,
    /// Bytes of a page.
    pub page_bytes: f64,
    /// Bytes of the buffer pool.
    pub buffer_bytes: Option<f64>,
    /// `innodb_flush_method`: whether files are read past the operating system's page cache.
    #[serde(default)]
    pub flush_method: Option<String>,
    /// Whether performance_schema counts the I/Os of files.
    pub has_files: bool,
    /// Whether it times them.
    pub has_io_times: bool,
    /// Counters of the server.
    pub instance: ServerCounters,
    /// Tables, partitions, and what else lies in files.
    #[serde(deserialize_with = "super::bounded")]
    pub objects: Vec<FileObject>,
    /// Milliseconds of processor time of the server's process, where it can be counted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub processor_ms: Option<f64>,
    /// The host, where the server runs on this one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub host: Option<HostCounters>,
    /// Volumes of the array, where it was asked.
    #[serde(default, skip_serializing_if = "Vec::is_empty", deserialize_with = "super::bounded")]
    pub volumes: Vec<VolumeCounters>,
}

/// Counters of the server since its start.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct ServerCounters {
    /// Statements COMMIT and ROLLBACK, also those of distributed transactions. Statements that commit by themselves are not among
    /// them.
    pub commits: Option<f64>,
    /// Transactions that performance_schema has counted, where its instrument is on: those that begin and end by themselves too.
    pub transactions: Option<f64>,
    /// Page requests of InnoDB.
    pub page_requests: Option<f64>,
    /// Those that memory did not serve.
    pub page_misses: Option<f64>,
    /// Pages read, those that were read ahead too.
    pub pages_read: Option<f64>,
    /// Pages written.
    pub pages_written: Option<f64>,
    /// Read I/Os of InnoDB.
    pub data_reads: Option<f64>,
    /// Their bytes.
    pub data_read_bytes: Option<f64>,
    /// Write I/Os of InnoDB, those of the redo log too.
    pub data_writes: Option<f64>,
    /// Flushes of InnoDB.
    pub data_flushes: Option<f64>,
    /// Writes of the redo log.
    pub log_writes: Option<f64>,
    /// Their bytes.
    pub log_bytes: Option<f64>,
    /// Milliseconds of writes and flushes of the redo log, where its file is timed.
    pub log_ms: Option<f64>,
    /// Milliseconds that sessions executed statements.
    pub active_ms: Option<f64>,
}

/// A table, a partition, or files of another use that are counted as one.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct FileObject {
    /// Schema; empty where it is of none.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub schema: String,
    /// Name.
    pub name: String,
    /// The partition of the table, or its part.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub partition: String,
    /// What it holds.
    pub kind: FileKind,
    /// The file, where it is one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub path: Option<String>,
    /// Bytes on disk.
    pub bytes: Option<f64>,
    /// Read I/Os.
    pub reads: Option<f64>,
    /// Write I/Os.
    pub writes: Option<f64>,
    /// Bytes of reads.
    pub read_bytes: Option<f64>,
    /// Bytes of writes.
    pub write_bytes: Option<f64>,
    /// Milliseconds of reads.
    pub read_ms: Option<f64>,
    /// Milliseconds of writes, and of flushes where it is a log; only where the server waits for them in the call that is timed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub write_ms: Option<f64>,
    /// Rows of the table that were read without an index.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub scanned_rows: Option<f64>,
    /// Rows of the table that were read by an index.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub fetched_rows: Option<f64>,
}

/// What files hold.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum FileKind {
    /// A table with its indexes, or a partition of one.
    Table,
    /// A tablespace of several tables, the system tablespace, the doublewrite buffer.
    #[default]
    Data,
    /// A log besides the redo log.
    Log,
    /// Temporary data.
    Temp,
    /// Undo tablespaces.
    Undo,
}

impl FileObject {
    /// The kind of object.
    pub fn kind(&self) -> Kind {
        match self.kind {
            FileKind::Table if self.partition.is_empty() => Kind::Table,
            FileKind::Table => Kind::Partition,
            FileKind::Data => Kind::Data,
            FileKind::Log => Kind::Log,
            FileKind::Temp => Kind::Temp,
            FileKind::Undo => Kind::Undo,
        }
    }
}

impl MysqlSample {
    /// Whether the server is a MariaDB.
    pub fn is_mariadb(&self) -> bool {
        self.tier0 == MARK_MARIADB
    }
}

impl Collected for MysqlSample {
    type Object = FileObject;
    const MARKS: &'static [&'static str] = &[MARK, MARK_MARIADB];
    const VERSION: u32 = VERSION;

    fn address(&self) -> Option<&DatabaseAddress> {
        self.address.as_ref()
    }

    fn head(&self) -> Head<'_> {
        Head { mark: &self.tier0, version: self.version, at: self.at, is_full: self.full }
    }

    fn objects(&mut self) -> &mut Vec<FileObject> {
        &mut self.objects
    }

    fn set_full(&mut self, full: bool) {
        self.full = full;
    }

    fn set_volumes(&mut self, volumes: Vec<VolumeCounters>) {
        self.volumes = volumes;
    }

    fn key(of: &FileObject) -> [&str; 3] {
        [&of.schema, &of.name, &of.partition]
    }

    fn lacks(&self) -> Vec<String> {
        let mut lacks = Vec::new();
        if !self.has_files {
            lacks.push(
                "performance_schema is off or does not count files, so I/O and waits of tables read \"not measured\", and only the \
                 server as a whole is judged; put performance_schema = ON into the server's configuration and restart it"
                    .to_owned(),
            );
        } else if !self.has_io_times {
            lacks.push(
                "performance_schema does not time files, so waits of tables read \"not measured\"; switch it on (update \
                 performance_schema.setup_instruments set timed = 'YES' where name like 'wait/io/file/%')"
                    .to_owned(),
            );
        }
        if self.instance.transactions.is_none() {
            let remedy = match self.has_files {
                true => {
                    "switch on the instrument that counts them (update performance_schema.setup_instruments set enabled = 'YES' where \
                     name = 'transaction')"
                }
                false => "performance_schema counts them",
            };
            lacks.push(format!(
                "transactions are the statements COMMIT and ROLLBACK; statements that commit by themselves are not among them: {remedy}"
            ));
        }
        if self.flush_method.as_deref().is_some_and(|method| !method.starts_with("O_DIRECT")) {
            lacks.push(
                "innodb_flush_method is not O_DIRECT, so the operating system's page cache may serve reads that are counted here"
                    .to_owned(),
            );
        }
        lacks
    }
}
