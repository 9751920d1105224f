//! From a case's sections to a case.

use std::collections::BTreeMap;

use thiserror::Error;
use tier0_database::engine::{Engine, EngineError};
use tier0_database::host::HostSpec;
use tier0_database::layout::{Layout, Scale};
use tier0_database::run::{DatabaseSpec, RunLength};
use tier0_database::storage::Placement;
use tier0_database::workload::{Changes, Law, OwnObject, Workload, WorkloadError};
use tier0_description::{Description, DescriptionError, VolumeDescription};
use tier0_policy::PolicyKind;
use tier0_units::{ByteCount, Nanos};
use tier0_workload::spec::parse_duration;

use super::Case;
use super::file::{CaseFile, DatabaseSection, OneOrMany, TpmSection};

/// A case that cannot be.
#[derive(Debug, Error)]
pub enum CaseError {
    /// A section is missing, or has another form.
    #[error("{case}: {fact}")]
    Form {
        /// The case.
        case: String,
        /// The field, the fact and the remedy.
        fact: String,
    },
    /// The workload is not there, or what it changes is not.
    #[error("{case}: database.workload: {source}")]
    Workload {
        /// The case.
        case: String,
        /// Why.
        source: WorkloadError,
    },
    /// The engine is not there.
    #[error("{case}: database.engine: {source}")]
    Engine {
        /// The case.
        case: String,
        /// Why.
        source: EngineError,
    },
    /// The array cannot be.
    #[error("{case}: system.{fact}")]
    System {
        /// The case.
        case: String,
        /// The field, the fact and the remedy.
        fact: String,
    },
}

/// The log's size where a case does not say.
const LOG: ByteCount = ByteCount::gib(1);
/// Simulated time where a case does not say.
const WARM_UP: Nanos = Nanos::from_secs(20);
const MEASURED: Nanos = Nanos::from_secs(60);
/// Transactions after which neither goes on where a case does not say: the rate is then known to a few percent.
const ENOUGH: u64 = 30_000;
/// The same before a tier is measured: hot extents move for some minutes.
const TIER_WARM_UP: Nanos = Nanos::from_secs(300);
const TIER_ENOUGH: u64 = 200_000;
/// The name of a volume that holds the log where a case does not say.
const LOG_VOLUME: &str = "log";
/// The most pages of a buffer and units of a scale: their bookkeeping is real memory.
const BUFFER_MIN: ByteCount = ByteCount::mib(1);
const BUFFER_MAX: ByteCount = ByteCount::gib(512);
const SCALE_MAX: f64 = 100_000.0;

impl Case {
    /// The case of a table; `name` stands for it in messages.
    ///
    /// # Errors
    /// [`CaseError`] with the field and the remedy.
    pub(crate) fn of(name: &str, table: toml::Table) -> Result<Case, CaseError> {
        let form = |fact: String| CaseError::Form { case: name.to_owned(), fact };
        let file: CaseFile = table.try_into().map_err(|error: toml::de::Error| {
            form(format!("{}; correct it (docs/whatif.md)", error.to_string().trim().replace('\n', ", ")))
        })?;
        let database = &file.database;
        let mut engine = Engine::find(&database.engine)
            .map_err(|source| CaseError::Engine { case: name.to_owned(), source })?;
        let outside = |field: &str, allowed: &str| form(format!("{field} is out of range; use {allowed}"));
        let is_own = !database.object.is_empty();
        let workload = match &database.workload {
            Some(id) if !is_own => {
                let changes = Changes { choices: database.choices.clone(), keys: database.keys.clone() };
                Workload::find(id, &changes)
                    .map_err(|source| CaseError::Workload { case: name.to_owned(), source })?
            }
            None if is_own => Workload::of_objects(&own_objects(database).map_err(form)?, &engine),
            _ => {
                let text = "database: give either workload and scale, or object (a list of your own tables); docs/whatif.md \
                            shows both";
                return Err(form(text.to_owned()));
            }
        };
        let units = match database.scale {
            Some(scale) if scale > 0.0 && scale <= SCALE_MAX => scale,
            None if is_own => 1.0,
            _ => return Err(outside("database.scale", "more than 0, at most 100000")),
        };
        let default_buffer = is_own.then_some(BUFFER_MIN);
        let missing = || form("database.buffer is missing; give the memory for pages".to_owned());
        let buffer = database.buffer.or(default_buffer).ok_or_else(missing)?;
        if database.measured_tps.is_some_and(|measured| measured.is_nan() || measured <= 0.0) {
            return Err(outside("database.measured_tps", "more than 0"));
        }
        if let Some(bytes) = database.log_per_transaction {
            let changes: f64 = database.object.iter().map(|object| object.writes).sum();
            if !is_own || !(1..=1 << 24).contains(&bytes.0) || changes <= 0.0 {
                let text =
                    "database.log_per_transaction needs objects with writes, and 1B to 16MiB; correct it";
                return Err(form(text.to_owned()));
            }
            engine.log_per_change.value = bytes.0 as f64 / changes;
        }
        let grown = database.grown.unwrap_or(1.0);
        if !(1.0..=1000.0).contains(&grown) {
            return Err(outside("database.grown", "1 to 1000"));
        }
        if buffer < BUFFER_MIN || buffer > BUFFER_MAX {
            return Err(outside("database.buffer", "1MiB to 512GiB"));
        }
        if !(1..=100_000).contains(&database.users) {
            return Err(outside("database.users", "1 to 100000"));
        }
        let host = &file.host;
        if !(1..=4096).contains(&host.cores) {
            return Err(outside("host.cores", "1 to 4096"));
        }
        if !(host.transaction_ms > 0.0 && host.transaction_ms <= 1e6) {
            return Err(outside("host.transaction_ms", "more than 0, at most 1000000"));
        }
        if !(0.0..=1e6).contains(&host.io_us) {
            return Err(outside("host.io_us", "0 to 1000000"));
        }
        let duration = |field: &str, text: &Option<String>, default: Nanos| match text {
            Some(text) => parse_duration(text).map_err(|error| form(format!("{field}: {error}"))),
            None => Ok(default),
        };
        let mut tables = file.system.clone();
        // A modelled array needs no name.
        let array = tables.entry("array").or_insert_with(|| toml::Table::new().into());
        if let Some(array) = array.as_table_mut() {
            array.entry("name").or_insert_with(|| "modelled".into());
        }
        let text = toml::to_string(&tables).map_err(|error| form(format!("system: {error}")))?;
        let system = Description::parse(&text, "system")
            .map_err(|error| CaseError::System { case: name.to_owned(), fact: without_line(error) })?;
        let is_tiered = system.volumes.iter().any(VolumeDescription::is_tiered);
        let warm_up = if is_tiered { TIER_WARM_UP } else { WARM_UP };
        let length = RunLength {
            warm_up: duration("run.warm_up", &file.run.warm_up, warm_up)?,
            measured: duration("run.measured", &file.run.measured, MEASURED)?,
            enough: match (&file.run.warm_up, is_tiered) {
                (Some(_), _) => u64::MAX,
                (None, true) => TIER_ENOUGH,
                (None, false) => ENOUGH,
            },
        };
        if length.measured == Nanos::ZERO {
            return Err(outside("run.measured", "more than 0s"));
        }
        let log_bytes = database.log_size.unwrap_or(LOG);
        if log_bytes < ByteCount::mib(16) || !log_bytes.0.is_multiple_of(1 << 20) {
            return Err(outside("database.log_size", "whole MiB, at least 16MiB"));
        }
        let mut placement = placement(&workload, &system, &database.place, log_bytes).map_err(form)?;
        let counted = match &file.run.counted {
            Some(on) => places_of("run.counted", on, &system).map_err(form)?,
            None => (0..system.volumes.len()).collect(),
        };
        let shrink = file.run.shrink.unwrap_or(1.0);
        if !(1.0..=1000.0).contains(&shrink) {
            return Err(outside("run.shrink", "1 to 1000"));
        }
        let has_caches = system.memory.is_some()
            || is_tiered
            || system.pools.iter().any(|pool| pool.flash_cache.bytes.is_some_and(|size| size.0 > 0));
        if shrink > 1.0 && is_own {
            return Err(form("run.shrink: objects of your own cannot be shrunk; leave it out".to_owned()));
        }
        if shrink > 1.0 && has_caches {
            let text = "run.shrink: an array with a read cache or a tier cannot be shrunk; leave it out";
            return Err(form(text.to_owned()));
        }
        let scale = Scale { units: units / shrink, grown };
        let layout = Layout::new(&workload, &engine, &scale);
        placement.spread = match database.size {
            None => shrink,
            Some(size) => {
                let needs = layout.bytes().0 as f64 * shrink;
                let spread = size.0 as f64 / layout.bytes().0 as f64;
                if spread < shrink {
                    let needs = ByteCount(needs as u64);
                    return Err(form(format!(
                        "database.size: {size:#} is less than the {needs:#} that its rows take; raise it, or lower database.scale"
                    )));
                }
                spread
            }
        };
        check_room(&layout, &system, &placement).map_err(form)?;
        Ok(Case {
            name: name.to_owned(),
            database: DatabaseSpec {
                workload,
                engine,
                scale,
                buffer: ByteCount((buffer.0 as f64 / shrink) as u64),
                policy: PolicyKind::Lru,
                host: HostSpec {
                    cores: host.cores,
                    transaction: Nanos((host.transaction_ms * 1e6) as u64),
                    io: Nanos((host.io_us * 1e3) as u64),
                },
                users: database.users,
                think: duration("database.think", &database.think, Nanos::ZERO)?,
            },
            system,
            front_end: file.front_end.map(|front_end| front_end.model),
            placement,
            counted,
            measured_tps: database.measured_tps,
            tpm_is_headline: database.tpm == TpmSection::Headline,
            length,
            seed: file.run.seed,
        })
    }
}

/// The most pages of an object for each transaction.
const PAGES_MAX: f64 = 10_000.0;

/// Objects of one's own; the error is the fact and the remedy.
fn own_objects(database: &DatabaseSection) -> Result<Vec<OwnObject>, String> {
    if !database.choices.is_empty() || !database.keys.is_empty() || database.grown.is_some() {
        return Err(
            "database: choices, keys and grown are for a workload of the catalogue; leave them out".into()
        );
    }
    let mut objects: Vec<OwnObject> = Vec::new();
    for section in &database.object {
        let wrong = |fact: &str| Err(format!("database.object {:?} {fact}", section.name));
        if objects.iter().any(|known| known.name == section.name) {
            return wrong("is there twice; rename one");
        }
        if section.size < BUFFER_MIN || section.size > ByteCount::gib(1 << 20) {
            return wrong("has a size out of range; use 1MiB to 1PiB");
        }
        if ![section.reads, section.writes].iter().all(|pages| (0.0..=PAGES_MAX).contains(pages)) {
            return wrong("has reads or writes out of range; use 0 to 10000 pages for each transaction");
        }
        let law = section.law.as_deref().unwrap_or("uniform").parse();
        let law: Law = law.map_err(|error| format!("database.object {:?}: {error}", section.name))?;
        if !matches!(law, Law::Uniform | Law::Zipf { .. }) {
            return wrong("has a law of order entry; use \"uniform\" or \"zipf THETA\"");
        }
        let (name, size) = (section.name.clone(), section.size);
        objects.push(OwnObject { name, size, reads: section.reads, writes: section.writes, law });
    }
    match objects.iter().any(|object| object.reads + object.writes > 0.0) {
        true => Ok(objects),
        false => {
            Err("database.object: no object has reads or writes; give their pages for each transaction"
                .into())
        }
    }
}

/// What is wrong with a description. Its lines are those of a text that the reader never wrote.
fn without_line(error: DescriptionError) -> String {
    match error {
        DescriptionError::Wrong { text, .. } => text,
        other => other.to_string(),
    }
}

/// On which volumes everything lies; the error is the fact and the remedy.
fn placement(
    workload: &Workload,
    system: &Description,
    place: &BTreeMap<String, OneOrMany>,
    log_bytes: ByteCount,
) -> Result<Placement, String> {
    let names: Vec<&str> = system.volumes.iter().map(|volume| volume.name.as_str()).collect();
    let volumes = |field: &str, on: &OneOrMany| places_of(&format!("database.place.{field}"), on, system);
    if names.is_empty() {
        return Err("system: has no volume; add [[system.volume]]".into());
    }
    let known = |name: &String| name == "*" || name == LOG_VOLUME || workload.object(name).is_some();
    if let Some(unknown) = place.keys().find(|name| !known(name)) {
        let objects: Vec<&str> = workload.objects.iter().map(|object| object.name.as_str()).collect();
        return Err(format!(
            "database.place: {unknown:?} is no object of the workload; use *, log, {}",
            objects.join(", ")
        ));
    }
    let own_log = names.iter().position(|name| *name == LOG_VOLUME);
    let others = match place.get("*") {
        Some(on) => volumes("*", on)?,
        // A volume named "log" holds only the log, unless it is the only volume.
        None => (0..names.len()).filter(|volume| names.len() == 1 || Some(*volume) != own_log).collect(),
    };
    let log = match place.get(LOG_VOLUME) {
        Some(on) => volumes(LOG_VOLUME, on)?[0],
        None => own_log.unwrap_or(others[0]),
    };
    let mut objects: Vec<Vec<usize>> = Vec::new();
    for object in &workload.objects {
        let on = match (place.get(&object.name), object.index_of) {
            (Some(on), _) => volumes(&object.name, on)?,
            (None, Some(table)) => objects[table].clone(),
            (None, None) => others.clone(),
        };
        objects.push(on);
    }
    Ok(Placement { objects, log, log_bytes, spread: 1.0 })
}

/// The places of named volumes; the error is the fact and the remedy.
fn places_of(field: &str, on: &OneOrMany, system: &Description) -> Result<Vec<usize>, String> {
    let found = on.names().iter().map(|name| {
        system.volumes.iter().position(|known| known.name == *name).ok_or_else(|| {
            let known: Vec<&str> = system.volumes.iter().map(|volume| volume.name.as_str()).collect();
            format!("{field}: there is no volume {name:?}; use some of {}", known.join(", "))
        })
    });
    let found = found.collect::<Result<Vec<usize>, String>>()?;
    match found.is_empty() {
        true => Err(format!("{field}: names no volume; name at least one")),
        false => Ok(found),
    }
}

/// Whether the volumes hold what lies on them; the error is the fact and the remedy.
fn check_room(layout: &Layout, system: &Description, placement: &Placement) -> Result<(), String> {
    let needed = placement.needed(layout, system.volumes.len());
    for (volume, needs) in system.volumes.iter().zip(needed) {
        let size = volume.sectors.bytes();
        if needs > size {
            return Err(format!(
                "volume {:?} has {:#}, and what lies on it needs {:#}; make it larger, or lower database.scale, or place \
                 fewer objects there",
                volume.name, size, needs
            ));
        }
    }
    Ok(())
}
