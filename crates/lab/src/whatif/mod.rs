//! What a change of the array, the host or the database would bring: a base and its alternatives, each run as a case.
//!
//! | file | concept |
//! |---|---|
//! | `answer` | what the figures say, in words |
//! | [`search`] | the cheapest drives that hold a rate of transactions |

mod answer;
pub mod search;

use std::path::Path;

use serde::Serialize;
use thiserror::Error;
use tier0_catalog::{Catalog, SourceKind};
use tier0_database::run::{DatabaseReport, ObjectReport};
use toml::{Table, Value};

use crate::LabError;
use crate::case::{Case, CaseReport, lay_over};
use crate::grid::each;
use crate::path::UsageRow;
use crate::report::parameters;
use search::DriveSearch;

pub use answer::{Limit, answer, limit_of};

/// A base and its alternatives.
#[derive(Clone, Debug)]
pub struct WhatIf {
    /// A line for titles.
    pub title: String,
    /// The base first.
    pub cases: Vec<Case>,
    /// The search for drives, if the file has one.
    pub search: Option<DriveSearch>,
}

/// A file that says none.
#[derive(Debug, Error)]
pub enum WhatIfError {
    /// It cannot be read.
    #[error("cannot read {file}: {source}; check the path and its permissions")]
    Unreadable {
        /// The file.
        file: String,
        /// What the system says.
        source: std::io::Error,
    },
    /// It is no TOML.
    #[error("{file}, line {line}: {field}: {fact}")]
    Form {
        /// The file.
        file: String,
        /// The line.
        line: usize,
        /// The field.
        field: String,
        /// What is wrong.
        fact: String,
    },
    /// An alternative says nothing, or the same as another.
    #[error("{file}: {fact}")]
    Wrong {
        /// The file.
        file: String,
        /// What is wrong, and the remedy.
        fact: String,
    },
}

/// What the base is called.
pub const NOW: &str = "now";
/// The seed where a file names none.
const SEED: u64 = 1;
/// The most alternatives of a file.
const ALTERNATIVES_MAX: usize = 64;

impl WhatIf {
    /// Reads a file.
    ///
    /// # Errors
    /// It cannot be read, or it is wrong somewhere.
    pub fn load(path: &Path) -> Result<WhatIf, LabError> {
        let file = path.display().to_string();
        let text = std::fs::read_to_string(path)
            .map_err(|source| WhatIfError::Unreadable { file: file.clone(), source })?;
        WhatIf::parse(&text, &file)
    }

    /// Reads a text; `file` is its name in messages.
    ///
    /// # Errors
    /// It is wrong somewhere.
    pub fn parse(text: &str, file: &str) -> Result<WhatIf, LabError> {
        let mut base: Table =
            tier0_toml::read(text).map_err(|tier0_toml::Misread { line, field, fact }| {
                WhatIfError::Form { file: file.to_owned(), line, field, fact }
            })?;
        let wrong = |fact: String| WhatIfError::Wrong { file: file.to_owned(), fact };
        let title = match base.remove("title") {
            Some(Value::String(title)) => title,
            None => file.to_owned(),
            Some(_) => return Err(wrong("title is no text; put it in quotes".into()).into()),
        };
        let alternatives = match base.remove("alternative") {
            Some(Value::Array(list)) => list,
            None => Vec::new(),
            Some(_) => return Err(wrong("alternative is no list; write [[alternative]]".into()).into()),
        };
        if alternatives.len() > ALTERNATIVES_MAX {
            return Err(wrong(format!("has more than {ALTERNATIVES_MAX} alternatives; keep fewer")).into());
        }
        let search = base.remove("search");
        let mut cases = vec![Case::of(NOW, base.clone())?];
        let search = search.map(|search| search::search_of(search, &base, &cases[0]));
        let search = search.transpose().map_err(wrong)?;
        for (number, alternative) in alternatives.into_iter().enumerate() {
            let Value::Table(mut over) = alternative else {
                return Err(wrong("alternative is no table; write [[alternative]]".into()).into());
            };
            let Some(Value::String(name)) = over.remove("name") else {
                return Err(wrong(format!("alternative {} has no name; give it one", number + 1)).into());
            };
            if cases.iter().any(|case| case.name == name) {
                return Err(wrong(format!("has two alternatives named {name:?}; rename one")).into());
            }
            if over.is_empty() {
                return Err(wrong(format!(
                    "alternative {name:?} changes nothing; add [alternative.system], [alternative.host] or \
                     [alternative.database]"
                ))
                .into());
            }
            let mut table = base.clone();
            lay_over(&mut table, &over);
            cases.push(Case::of(&name, table)?);
        }
        Ok(WhatIf { title, cases, search })
    }

    /// The transaction whose commits are the benchmark's own measure.
    pub(crate) fn headline(&self) -> &str {
        let workload = &self.cases[0].database.workload;
        &workload.transactions[workload.headline].name
    }

    /// Runs every case, `threads` at a time; `done` is told the name of each that ends.
    ///
    /// # Errors
    /// A case cannot run.
    pub fn run(&self, threads: usize, done: &(dyn Fn(&str) + Sync)) -> Result<Vec<CaseReport>, LabError> {
        let catalog = Catalog::embedded();
        each(&self.cases, threads, |case| case.measure(&catalog, SEED), |at| done(&self.cases[at].name))
    }
}

/// How many numbers of workload, engine and models are assumed, over all cases.
pub fn assumptions(whatif: &WhatIf) -> usize {
    let cases: Vec<&Case> = whatif.cases.iter().collect();
    parameters(Vec::new(), &cases, SourceKind::Assumed).map_or(0, |assumed| assumed.len())
}

/// A case's figures, as `--json` prints them.
#[derive(Clone, Debug, Serialize)]
pub struct CaseFigures {
    /// The case.
    pub name: String,
    /// Transactions of all kinds per second.
    pub tps: f64,
    /// Half the width of the 95 % interval that the simulation leaves it, as a share of it.
    pub half_width: f64,
    /// Transactions of the benchmark's own measure per minute.
    pub headline_per_minute: f64,
    /// The transactions that this counts.
    pub headline: String,
    /// All transactions per second, over those of the base.
    pub over_now: f64,
    /// Mean response time, milliseconds.
    pub response_ms: f64,
    /// The response time that 95 % keep, milliseconds.
    pub p95_ms: f64,
    /// The share of the host's cores that was used.
    pub cpu: f64,
    /// I/Os per second of the database.
    pub iops: f64,
    /// 10^6 bytes per second of the database.
    pub mb_s: f64,
    /// Page reads for each transaction.
    pub reads_per_transaction: f64,
    /// Page writes for each transaction.
    pub writes_per_transaction: f64,
    /// Bytes of the log for each transaction.
    pub log_bytes_per_transaction: f64,
    /// Mean time of a page read, milliseconds.
    pub read_ms: f64,
    /// Mean time of a write of the log, milliseconds.
    pub log_ms: f64,
    /// Touches that found their page in the database's buffer, as a share of all.
    pub buffer_hits: f64,
    /// Reads that the array's memory served, as a share of those that looked there.
    pub memory_hits: Option<f64>,
    /// Reads that the array's flash cache served, as a share of those that looked there.
    pub flash_hits: Option<f64>,
    /// Disks and flash drives.
    pub drives: u32,
    /// What they draw at work, in watts, without controllers and enclosures.
    pub drive_watts: f64,
    /// Rack units of the enclosures that hold them; nothing if the case names no array of the catalogue.
    pub rack_units: Option<u32>,
    /// What limits, in words.
    pub limit: String,
    /// How busy each resource of the array was.
    pub busy: Vec<(String, f64)>,
    /// The databases beside it.
    pub beside: Vec<BesideFigures>,
    /// The database's tables and indexes.
    pub objects: Vec<ObjectFigures>,
}

/// A database beside that of a case, as `--json` prints it.
#[derive(Clone, Debug, Serialize)]
pub struct BesideFigures {
    /// Its name.
    pub name: String,
    /// Transactions of all kinds per second.
    pub tps: f64,
    /// Mean response time, milliseconds.
    pub response_ms: f64,
    /// The share of its host's cores that was used.
    pub cpu: f64,
}

impl BesideFigures {
    fn of(name: &str, report: &DatabaseReport) -> BesideFigures {
        let DatabaseReport { per_s, response_ms, cpu, .. } = report;
        BesideFigures { name: name.to_owned(), tps: *per_s, response_ms: *response_ms, cpu: *cpu }
    }
}

/// A table or an index of a case, as `--json` prints it.
#[derive(Clone, Debug, Serialize)]
pub struct ObjectFigures {
    /// Its name.
    pub name: String,
    /// Its size, bytes.
    pub bytes: u64,
    /// Page reads for each transaction.
    pub reads_per_transaction: f64,
    /// Page writes for each transaction.
    pub writes_per_transaction: f64,
    /// Mean time of a page read, milliseconds.
    pub read_ms: f64,
}

/// The figures of all cases.
pub fn figures(whatif: &WhatIf, reports: &[CaseReport]) -> Vec<CaseFigures> {
    let base = reports[0].database.per_s;
    let all = whatif.cases.iter().zip(reports);
    all.map(|(case, report)| CaseFigures::of(&case.name, case, report, base)).collect()
}

impl ObjectFigures {
    /// The figures of an object that has so many bytes where it is simulated whole.
    fn of(object: &ObjectReport, bytes: u64) -> ObjectFigures {
        ObjectFigures {
            name: object.name.clone(),
            bytes,
            reads_per_transaction: object.reads,
            writes_per_transaction: object.writes,
            read_ms: object.read_ms,
        }
    }
}

impl CaseFigures {
    /// The figures of a case, over a base of so many transactions per second.
    pub(crate) fn of(name: &str, case: &Case, report: &CaseReport, base: f64) -> CaseFigures {
        let database = &report.database;
        let workload = &case.database.workload;
        // Without a front end nothing but drives is modelled.
        let is_modelled = |row: &&UsageRow| case.front_end.is_some() || row.resource.ends_with("drives");
        let rows = report.usage.rows.iter().filter(is_modelled);
        CaseFigures {
            name: name.to_owned(),
            tps: database.per_s,
            half_width: database.half_width,
            headline_per_minute: database.headline_per_s * 60.0,
            headline: workload.transactions[workload.headline].name.clone(),
            over_now: database.per_s / base.max(1e-9),
            response_ms: database.response_ms,
            p95_ms: database.p95_ms,
            cpu: database.cpu,
            iops: database.iops,
            mb_s: database.mb_s,
            reads_per_transaction: database.reads,
            writes_per_transaction: database.writes,
            log_bytes_per_transaction: database.log_bytes,
            read_ms: database.read_ms,
            log_ms: database.log_ms,
            buffer_hits: database.hits,
            memory_hits: report.work.read_hits,
            flash_hits: report.work.flash_hits,
            drives: report.hardware.drives,
            drive_watts: report.hardware.drive_watts,
            rack_units: report.hardware.rack_units,
            limit: limit_of(case, report).words(),
            busy: rows.map(|row| (row.resource.clone(), row.busy)).collect(),
            beside: report.beside.iter().map(|(name, report)| BesideFigures::of(name, report)).collect(),
            objects: database
                .objects
                .iter()
                .zip(case.whole_bytes())
                .map(|(object, bytes)| ObjectFigures::of(object, bytes))
                .collect(),
        }
    }
}
