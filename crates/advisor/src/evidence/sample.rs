//! What one report says of one moment or one interval.

use serde::{Deserialize, Serialize};

use super::object::Object;
use crate::samples::DatabaseAddress;

/// A kind of file that is read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Format {
    /// The known report of file statistics of SQL Server.
    FileStatistics,
    /// `sys.dm_io_virtual_file_stats`.
    VirtualFileStats,
    /// The table or the result of `sp_BlitzFirst` for files.
    BlitzFirst,
    /// Execution statistics of objects of SQL Server.
    ObjectStatistics,
    /// Perfmon.
    Perfmon,
    /// `iostat -x`.
    Iostat,
    /// `sar`.
    Sar,
    /// AWR or Statspack.
    Awr,
    /// `show global status`.
    MysqlStatus,
    /// What `tier0 advise collect` writes of a PostgreSQL.
    Postgresql,
    /// What it writes of a MySQL.
    Mysql,
    /// What it writes of a MariaDB.
    Mariadb,
}

impl Format {
    /// In words.
    pub fn words(self) -> &'static str {
        match self {
            Format::FileStatistics => "SQL Server file statistics",
            Format::VirtualFileStats => "sys.dm_io_virtual_file_stats",
            Format::BlitzFirst => "sp_BlitzFirst file statistics",
            Format::ObjectStatistics => "SQL Server object execution statistics",
            Format::Perfmon => "Perfmon",
            Format::Iostat => "iostat -x",
            Format::Sar => "sar",
            Format::Awr => "Oracle AWR or Statspack",
            Format::MysqlStatus => "MySQL status",
            Format::Postgresql => "PostgreSQL samples",
            Format::Mysql => "MySQL samples",
            Format::Mariadb => "MariaDB samples",
        }
    }
}

/// Whether counters run since a start or are of the interval before.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub enum Counting {
    /// Since the start of whatever counts.
    SinceStart,
    /// Over an interval.
    Interval,
}

/// Counters of a whole database instance. All are optional.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Instance {
    /// Committed and rolled-back transactions.
    pub transactions: Option<f64>,
    /// Page requests that memory served.
    pub hits: Option<f64>,
    /// Pages that were read.
    pub reads: Option<f64>,
    /// Milliseconds that sessions worked or waited, idle ones not counted.
    pub active_ms: Option<f64>,
    /// Milliseconds that sessions waited for reads and writes of data.
    pub io_wait_ms: Option<f64>,
    /// Milliseconds that reads of data took, where objects have none of their own.
    pub read_ms: Option<f64>,
    /// Pages of data that were written, where objects have none of their own.
    pub data_writes: Option<f64>,
    /// Milliseconds that commits waited for the log.
    pub log_wait_ms: Option<f64>,
    /// Milliseconds of processor time.
    pub cpu_ms: Option<f64>,
    /// Bytes of the log.
    pub log_bytes: Option<f64>,
}

impl Instance {
    fn fields(&mut self) -> [&mut Option<f64>; 10] {
        [
            &mut self.transactions,
            &mut self.hits,
            &mut self.reads,
            &mut self.active_ms,
            &mut self.io_wait_ms,
            &mut self.read_ms,
            &mut self.data_writes,
            &mut self.log_wait_ms,
            &mut self.cpu_ms,
            &mut self.log_bytes,
        ]
    }

    /// Adds those of a further period or instance.
    pub fn add(&mut self, mut other: Instance) {
        for (mine, theirs) in self.fields().into_iter().zip(other.fields()) {
            *mine = match (*mine, *theirs) {
                (Some(mine), Some(theirs)) => Some(mine + theirs),
                (mine, theirs) => mine.or(theirs),
            };
        }
    }

    /// Brings the counters to a time that is so many times as long.
    pub fn scale(&mut self, factor: f64) {
        for field in self.fields() {
            *field = field.map(|value| value * factor);
        }
    }

    /// Whether a counter is below its earlier value.
    pub fn fell_below(mut self, mut earlier: Instance) -> bool {
        let pairs = self.fields().into_iter().zip(earlier.fields());
        pairs.filter_map(|(now, then)| Some(((*now)?, (*then)?))).any(|(now, then)| now < then)
    }

    /// What was counted since an earlier value. After a restart a counter that fell began again; else it was read too early.
    #[must_use]
    pub fn since(mut self, mut earlier: Instance, restarted: bool) -> Instance {
        for (now, then) in self.fields().into_iter().zip(earlier.fields()) {
            let of =
                |(now, then): (f64, f64)| if restarted && now < then { now } else { (now - then).max(0.0) };
            *now = now.zip(*then).map(of);
        }
        self
    }
}

/// The host over an interval, as means.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct HostPoint {
    /// Busy share of all processors, 0 to 1, without waiting for I/O.
    pub busy: Option<f64>,
    /// Share of the time in which processors were idle while I/Os were under way.
    pub io_wait: Option<f64>,
    /// Tasks that run or wait for a processor, or processor queue.
    pub run_queue: Option<f64>,
    /// Share of page requests that the database's memory served.
    pub hit_share: Option<f64>,
}

/// A device over an interval, as means.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct DevicePoint {
    /// Its name.
    pub name: String,
    /// Reads per second.
    pub reads_s: Option<f64>,
    /// Writes per second.
    pub writes_s: Option<f64>,
    /// I/Os per second, where they are not told apart.
    pub ios_s: Option<f64>,
    /// Bytes per second of both directions.
    pub bytes_s: Option<f64>,
    /// Mean milliseconds of a read.
    pub read_ms: Option<f64>,
    /// Mean milliseconds of a write.
    pub write_ms: Option<f64>,
    /// Mean milliseconds of an I/O, where they are not told apart.
    pub io_ms: Option<f64>,
    /// Mean number of I/Os that wait or are served.
    pub queue: Option<f64>,
    /// Share of the time with at least one I/O under way.
    pub busy: Option<f64>,
}

/// A known trap that a file falls into.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Trap {
    /// The column `ISStallPCT` holds milliseconds per I/O: in so many rows of so many.
    StallPercent {
        /// Rows in which it equals the floor of stall over I/Os.
        equal: u64,
        /// Rows that have all three figures.
        of: u64,
    },
    /// Reads that are labelled physical look logical.
    LogicalReads {
        /// The object.
        object: String,
        /// Why.
        because: String,
    },
}

/// What a report says of a moment or an interval.
#[derive(Clone, Debug, PartialEq)]
pub struct Sample {
    /// The kind of report.
    pub format: Format,
    /// Seconds since some origin that all samples of a file share.
    pub at: Option<f64>,
    /// What the counters of objects and instance are.
    pub counting: Counting,
    /// Seconds of the interval, or since the start.
    pub seconds: Option<f64>,
    /// When counting began, where the source says so; another value means a restart.
    pub epoch: Option<String>,
    /// Objects.
    pub objects: Vec<Object>,
    /// The instance.
    pub instance: Instance,
    /// The host.
    pub host: Option<HostPoint>,
    /// Processors, where the report says how many.
    pub cores: Option<f64>,
    /// Devices.
    pub devices: Vec<DevicePoint>,
    /// Traps.
    pub traps: Vec<Trap>,
    /// What the reader of the advice should know of the file.
    pub notes: Vec<String>,
    /// The database, where the report says which.
    pub database: Option<DatabaseAddress>,
}

impl Sample {
    /// One of nothing.
    pub fn new(format: Format, counting: Counting) -> Sample {
        Sample {
            format,
            at: None,
            counting,
            seconds: None,
            epoch: None,
            objects: Vec::new(),
            instance: Instance::default(),
            host: None,
            cores: None,
            devices: Vec::new(),
            traps: Vec::new(),
            notes: Vec::new(),
            database: None,
        }
    }
}
