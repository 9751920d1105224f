//! A run of `tier0 bench run`, predicted before it is done and sealed.
//!
//! | file | concept |
//! |---|---|
//! | `figures` | which run it is, and what it will measure |
//! | `device` | storage of which only a profile is known |
//! | `seal` | the hash that shows that nothing was changed since |
//!
//! The run is a case (docs/whatif.md): a modelled database and its host, over an array of modelled drives or over storage that was
//! profiled. Two things may be fitted, and both are measured without the run: the profile, and the processor time and the log of a
//! transaction, from a run in memory. No figure of a run is an input.

mod device;
mod figures;
mod seal;

use serde::{Deserialize, Serialize};
use serde_json::Value as Json;
use thiserror::Error;
use tier0_catalog::Catalog;
use tier0_database::layout::Layout;
use tier0_database::run::{DatabaseReport, DatabaseSpec, RunHooks, run};
use tier0_database::script::{Script, TouchKind};
use tier0_units::{ByteCount, SectorCount};
use tier0_world::{PayloadWidth, Random, VirtualRuntime};
use toml::{Table, Value};

use self::device::ProfiledStorage;
pub use self::device::StorageProfile;
pub use self::figures::{KindFigures, ObjectReads, RunFigures, RunSettings};
use crate::LabError;
use crate::case::Case;

/// The form of a prediction; it grows when fields change their meaning.
const VERSION: u32 = 1;
/// The only workload that can be run.
const WORKLOAD: &str = "order-entry";
/// The seed where a file names none.
const SEED: u64 = 1;
/// Transactions whose changes are counted.
const COUNTED: u32 = 20_000;
/// The random stream of those.
const COUNT_STREAM: u64 = u64::MAX - 2;
/// What stands for the array of a case whose storage was profiled: a volume that any database fits. It is never assembled.
const PLACEHOLDER: &str = "\
    drive = [{ name = \"profiled\", model = \"hdd-7k2\" }]\n\
    pool = [{ name = \"profiled\", raid = \"raid0\", set_size = 1 }]\n\
    volume = [{ name = \"storage\", size = \"16TiB\" }]";

/// What a run in memory measured.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct MemoryRun {
    /// Processor time of a transaction, milliseconds of a core.
    pub transaction_ms: f64,
    /// Bytes of the log for each transaction, full images of pages not included; none where that was not measured.
    pub wal_bytes: Option<f64>,
}

/// Where the database of the run lies.
#[derive(Clone, Debug)]
pub enum RunStorage {
    /// An array: the text of its file, whose drives have models.
    Array(String),
    /// Storage that was profiled.
    Profiled(StorageProfile),
    /// The array that the file itself has under `[system]`.
    OfTheFile,
}

/// A run that is to be predicted.
#[derive(Clone, Debug)]
pub struct RunPlan {
    case: Case,
    /// The case as it was laid together.
    table: Table,
    profile: Option<StorageProfile>,
    memory_run: Option<MemoryRun>,
    settings: RunSettings,
}

/// A prediction of a run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Prediction {
    /// The form of this file.
    pub version: u32,
    /// What is predicted: `order-entry`.
    pub prediction_of: String,
    /// When it was made (RFC 3339, UTC).
    pub made: String,
    /// The program that made it, with its version.
    pub program: String,
    /// The run.
    pub settings: RunSettings,
    /// What it will measure.
    pub figures: RunFigures,
    /// The case: database, host, array.
    pub case: Json,
    /// The profile of the storage, where there is no array.
    pub profile: Option<StorageProfile>,
    /// What a run in memory measured, where there was one.
    pub memory_run: Option<MemoryRun>,
    /// The seed of the simulation.
    pub seed: u64,
    /// The seal: a SHA-256 over everything else.
    pub sha256: String,
}

/// A prediction that cannot be used.
#[derive(Debug, Error)]
pub enum PredictionError {
    /// The file has another form.
    #[error("{file} is no prediction of this version ({fact}); make it with \"tier0 bench predict\"")]
    Form {
        /// The file.
        file: String,
        /// What is wrong.
        fact: String,
    },
    /// It was changed.
    #[error(
        "{file} was changed after it was sealed: its content does not have the SHA-256 that it names; use the file as \"tier0 bench predict\" wrote it, or predict again"
    )]
    Changed {
        /// The file.
        file: String,
    },
}

/// A file that cannot be predicted: the file, the fact and the remedy.
#[derive(Debug, Error)]
#[error("{file}: {fact}")]
pub struct RunPlanError {
    file: String,
    fact: String,
}

impl RunPlan {
    /// Reads the text of a file with `[database]` and `[host]`; `file` is its name in messages.
    ///
    /// # Errors
    /// It is wrong somewhere, or does not fit the rest.
    pub fn read(
        text: &str,
        file: &str,
        storage: RunStorage,
        memory_run: Option<MemoryRun>,
    ) -> Result<RunPlan, LabError> {
        let wrong = |fact: String| RunPlanError { file: file.to_owned(), fact };
        let read = |text: &str, file: &str| -> Result<Table, LabError> {
            let read = tier0_toml::read(text);
            Ok(read.map_err(|tier0_toml::Misread { line, field, fact }| RunPlanError {
                file: file.to_owned(),
                fact: format!("line {line}: {field}: {fact}"),
            })?)
        };
        let mut table = read(text, file)?;
        table.remove("title");
        if table.contains_key("alternative") || table.contains_key("beside") {
            let fact = "a prediction is of one run; leave out [[alternative]] and [[beside]] (\"tier0 lab whatif\" compares)";
            return Err(wrong(fact.to_owned()).into());
        }
        let has_system = table.contains_key("system");
        let profile = match storage {
            RunStorage::OfTheFile if has_system => None,
            RunStorage::OfTheFile => {
                let fact = "says nothing of the storage; name it with --array or --profile, or add [system]";
                return Err(wrong(fact.to_owned()).into());
            }
            _ if has_system => {
                let fact = "has a [system], and another storage is named; leave out one of them";
                return Err(wrong(fact.to_owned()).into());
            }
            RunStorage::Array(array) => {
                table.insert("system".to_owned(), Value::Table(read(&array, "the array file")?));
                None
            }
            RunStorage::Profiled(profile) => {
                profile.check().map_err(wrong)?;
                if table.contains_key("front_end") {
                    let fact = "a profile has everything before the storage in it; leave out [front_end]";
                    return Err(wrong(fact.to_owned()).into());
                }
                table.insert("system".to_owned(), Value::Table(read(PLACEHOLDER, "the storage")?));
                Some(profile)
            }
        };
        if let Some(memory_run) = &memory_run {
            let host = table.entry("host").or_insert_with(|| Table::new().into());
            if let Some(host) = host.as_table_mut() {
                host.insert("transaction_ms".to_owned(), Value::Float(memory_run.transaction_ms));
            }
        }
        let mut case = Case::of(file, table.clone())?;
        if case.database.workload.id != WORKLOAD {
            return Err(wrong(format!("database.workload: only {WORKLOAD:?} can be run; use that")).into());
        }
        if case.shrunk.factor > 1.0 {
            let fact = "run.shrink: a prediction is of the whole run; leave it out";
            return Err(wrong(fact.to_owned()).into());
        }
        if let Some(database) = table.get("database").and_then(Value::as_table) {
            runnable(database).map_err(wrong)?;
        }
        if let Some(bytes) = memory_run.and_then(|run| run.wal_bytes) {
            let per_change = bytes / changes(&case.database).max(1e-9);
            let settings = [("log_per_change".to_owned(), per_change)].into();
            let engine = case.database.engine.clone().with(&settings);
            case.database.engine =
                engine.map_err(|(_, fact)| wrong(format!("log of the run in memory: {fact}")))?;
        }
        let settings = RunSettings::of(&case.database).map_err(wrong)?;
        if profile.is_some() {
            table.remove("system");
        }
        Ok(RunPlan { case, table, profile, memory_run, settings })
    }

    /// Which run it is.
    pub fn settings(&self) -> &RunSettings {
        &self.settings
    }

    /// Predicts it, in virtual time. `made` is the time of day, `program` says what predicts.
    ///
    /// # Errors
    /// The array or the database cannot run.
    pub fn predict(&self, made: String, program: String) -> Result<Prediction, LabError> {
        let seed = self.case.seed.unwrap_or(SEED);
        let report = match &self.profile {
            None => self.case.measure(&Catalog::embedded(), seed)?.database,
            Some(profile) => on_profile(&self.case, profile, seed)?,
        };
        let unsealed = Prediction {
            version: VERSION,
            prediction_of: WORKLOAD.to_owned(),
            made,
            program,
            settings: self.settings.clone(),
            figures: RunFigures::of(&report),
            case: serde_json::to_value(&self.table).expect("a table can be written as JSON"),
            profile: self.profile.clone(),
            memory_run: self.memory_run,
            seed,
            sha256: String::new(),
        };
        let sha256 = seal::hash(&unsealed.to_json());
        Ok(Prediction { sha256, ..unsealed })
    }
}

/// Refuses what `tier0 bench run` cannot do; the error is the field, the fact and the remedy.
fn runnable(database: &Table) -> Result<(), String> {
    if let Some(field) = ["keys", "grown", "size"].into_iter().find(|field| database.contains_key(*field)) {
        return Err(format!(
            "database.{field}: \"tier0 bench prepare\" loads no such database; leave it out"
        ));
    }
    let choices = database.get("choices").and_then(Value::as_table);
    if let Some(choice) =
        choices.and_then(|all| all.keys().find(|name| !["item", "warehouse"].contains(&name.as_str())))
    {
        return Err(format!(
            "database.choices.{choice}: \"tier0 bench run\" has no such option; leave it out"
        ));
    }
    let item = choices.and_then(|all| all.get("item")).and_then(Value::as_str);
    match item.is_none_or(|law| law == "uniform" || law.starts_with("nurand")) {
        true => Ok(()),
        false => Err(
            "database.choices.item: a run has \"uniform\" items or, without it, those of the specification"
                .into(),
        ),
    }
}

impl Prediction {
    /// Whether a JSON document is meant as one.
    pub fn is_one(value: &Json) -> bool {
        value.get("prediction_of").is_some() || value.get(seal::FIELD).is_some()
    }

    /// Reads a prediction and checks its seal; `file` is its name in messages.
    ///
    /// # Errors
    /// It has another form, or was changed.
    pub fn read(value: &Json, file: &str) -> Result<Prediction, PredictionError> {
        let form = |fact: String| PredictionError::Form { file: file.to_owned(), fact };
        match value.get("version").and_then(Json::as_u64) {
            Some(version) if version == u64::from(VERSION) => {}
            Some(version) => return Err(form(format!("its version is {version}, not {VERSION}"))),
            None => return Err(form("it has no version".to_owned())),
        }
        if !seal::is_whole(value) {
            return Err(PredictionError::Changed { file: file.to_owned() });
        }
        Prediction::deserialize(value).map_err(|error| form(error.to_string()))
    }

    fn to_json(&self) -> Json {
        serde_json::to_value(self).expect("a prediction can be written as JSON")
    }
}

/// Pages that a transaction changes, on average: each is a record of the log.
fn changes(database: &DatabaseSpec) -> f64 {
    let layout = Layout::new(&database.workload, &database.engine, &database.scale);
    let homes = layout.sizes[0];
    let mut script = Script::new(&database.workload, &layout);
    let mut random = Random::new(SEED, COUNT_STREAM);
    let (mut touches, mut changes) = (Vec::new(), 0);
    for _ in 0..COUNTED {
        let kind = script.draw_kind(&mut random);
        let home = random.below(homes);
        touches.clear();
        script.run(kind, home, &mut random, &mut touches);
        changes += touches.iter().filter(|touch| touch.kind != TouchKind::Read).count();
    }
    changes as f64 / f64::from(COUNTED)
}

/// The case over storage that was profiled.
fn on_profile(case: &Case, profile: &StorageProfile, seed: u64) -> Result<DatabaseReport, LabError> {
    let runtime = VirtualRuntime::new(seed, PayloadWidth::NONE);
    let world = runtime.world().clone();
    let sectors = case.system.volumes.iter().map(|volume| volume.sectors.0).sum();
    let storage = std::rc::Rc::new(ProfiledStorage::new(&world, profile, SectorCount(sectors)));
    let (database, placement, length) = (case.database.clone(), case.placement.clone(), case.length);
    let report = runtime.run(async move {
        let hooks = RunHooks { caches: ByteCount(0), missed: &|_, _, _| {}, begins: &mut || {} };
        run(&world, database, vec![storage], &placement, length, seed, hooks).await
    });
    report.map_err(|source| LabError::Database { case: case.name.clone(), source })
}
