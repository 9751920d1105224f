//! What is predicted of a run, and which run it is.

use serde::{Deserialize, Serialize};
use tier0_database::run::{DatabaseReport, DatabaseSpec};
use tier0_database::workload::{Law, Workload};

use super::WORKLOAD;

/// New-Orders that the specification has rolled back (clause 2.4.1.4). The model commits all.
const ROLLED_BACK: f64 = 0.01;

/// The run that a prediction is of, in the words of `tier0 bench run`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RunSettings {
    /// Warehouses.
    pub warehouses: u32,
    /// Users.
    pub users: u32,
    /// `none`, or `exponential:TIME`.
    pub think: String,
    /// Transactions per second that arrive in all; none: users begin the next one after thinking.
    pub rate: Option<f64>,
    /// The law of items.
    pub items: String,
    /// `fixed` or `all`.
    pub home: String,
    /// Shares in percent.
    pub mix: String,
    /// Memory of the database for pages, bytes.
    pub buffer_bytes: u64,
}

impl RunSettings {
    pub(super) fn of(database: &DatabaseSpec) -> Result<RunSettings, String> {
        let workload = &database.workload;
        let usual = Workload::find(WORKLOAD, &Default::default()).map_err(|error| error.to_string())?;
        let law = |choice: &str| workload.choices.get(choice).copied();
        let items = match law("item") {
            Some(law) if Some(law) != usual.choices.get("item").copied() => law.to_string(),
            _ => "nurand".to_owned(),
        };
        let home = match law("warehouse") {
            Some(Law::Home) | None => "fixed",
            Some(Law::Uniform) => "all",
            Some(law) => {
                return Err(format!(
                    "database.choices.warehouse: a run has no users with {law:?}; use \"home\" or \"uniform\""
                ));
            }
        };
        let think = match database.think.0 {
            0 => "none".to_owned(),
            _ => format!("exponential:{}ms", database.think.as_millis_f64()),
        };
        let mix = usual.transactions.iter().map(|kind| {
            let own = workload.transactions.iter().find(|own| own.name == kind.name);
            format!("{}={:.2}", kind.name, own.map_or(0.0, |own| own.share) * 100.0)
        });
        let mix: Vec<String> = mix.collect();
        if database.scale.units.fract() != 0.0 {
            return Err(format!(
                "database.scale: {} is no number of warehouses; use a whole one",
                database.scale.units
            ));
        }
        Ok(RunSettings {
            warehouses: database.scale.units as u32,
            users: database.users,
            think,
            rate: database.rate,
            items,
            home: home.to_owned(),
            mix: mix.join(","),
            buffer_bytes: database.buffer.0,
        })
    }
}

/// What a run is predicted to measure.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RunFigures {
    /// Transactions of all kinds per second, committed and rolled back.
    pub tps: f64,
    /// Half the width of the 95 % interval that the simulation leaves it, as a share of it. The error of the model is not in it.
    pub half_width: f64,
    /// Committed New-Orders per minute.
    pub nopm: f64,
    /// Median of all response times, milliseconds.
    pub p50_ms: f64,
    /// 95th percentile of all response times, milliseconds.
    pub p95_ms: f64,
    /// By kind of transaction.
    pub kinds: Vec<KindFigures>,
    /// Blocks that the database asks the operating system for, for each transaction.
    pub database_reads: f64,
    /// Reads that reach the storage, for each transaction.
    pub storage_reads: f64,
    /// Blocks that the database writes, for each transaction; the log is not in it.
    pub database_writes: f64,
    /// Writes that reach the storage, for each transaction; the log is in it.
    pub storage_writes: f64,
    /// Bytes of the log's records, for each transaction.
    pub wal_bytes: f64,
    /// Mean time of a read at the storage, milliseconds.
    pub read_ms: f64,
    /// Mean time of a write of the log at the storage, milliseconds.
    pub log_ms: f64,
    /// The share of the host's cores that is used, 0 to 1.
    pub cpu: f64,
    /// Tables and indexes of the model.
    pub objects: Vec<ObjectReads>,
}

/// Response times of a kind of transaction.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct KindFigures {
    /// Its name.
    pub kind: String,
    /// The median, milliseconds.
    pub p50_ms: f64,
    /// The 95th percentile, milliseconds.
    pub p95_ms: f64,
}

/// Reads of a table or an index.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ObjectReads {
    /// Its name in the database.
    pub name: String,
    /// Its size, bytes.
    pub bytes: u64,
    /// Blocks that the database asks the operating system for, for each transaction.
    pub database_reads: f64,
}

impl RunFigures {
    pub(super) fn of(report: &DatabaseReport) -> RunFigures {
        let kinds = report.transactions.iter().filter(|one| one.per_s > 0.0);
        RunFigures {
            tps: report.per_s,
            half_width: report.half_width,
            nopm: report.headline_per_s * 60.0 * (1.0 - ROLLED_BACK),
            p50_ms: report.p50_ms,
            p95_ms: report.p95_ms,
            kinds: kinds
                .map(|one| KindFigures { kind: one.name.clone(), p50_ms: one.p50_ms, p95_ms: one.p95_ms })
                .collect(),
            database_reads: report.asked,
            storage_reads: report.reads,
            database_writes: report.writes,
            storage_writes: report.writes + report.log_writes,
            wal_bytes: report.log_records_bytes,
            read_ms: report.read_ms,
            log_ms: report.log_ms,
            cpu: report.cpu,
            objects: report
                .objects
                .iter()
                .map(|object| ObjectReads {
                    // PostgreSQL's names have no hyphens.
                    name: object.name.replace('-', "_"),
                    bytes: object.bytes.0,
                    database_reads: object.asked,
                })
                .collect(),
        }
    }
}
