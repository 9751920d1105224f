//! From the sections of a database and its host to what runs.

use tier0_database::engine::Engine;
use tier0_database::host::HostSpec;
use tier0_database::host_model::HostModel;
use tier0_database::layout::{Layout, Scale};
use tier0_database::run::DatabaseSpec;
use tier0_database::storage::Placement;
use tier0_database::workload::{Changes, Law, OwnObject, Workload};
use tier0_description::Description;
use tier0_policy::PolicyKind;
use tier0_units::{ByteCount, Nanos};

use super::duration;
use super::file::{DatabaseSection, HostSection};
use super::place::{check_room, placement};

/// The log's size where a case does not say.
const LOG: ByteCount = ByteCount::gib(1);
/// The most pages of a buffer and units of a scale: their bookkeeping is real memory.
const BUFFER_MIN: ByteCount = ByteCount::mib(1);
const BUFFER_MAX: ByteCount = ByteCount::gib(512);
const SCALE_MAX: f64 = 100_000.0;
/// Transactions per second that may arrive.
const RATE_MAX: f64 = 1e6;

/// A database and where it lies.
pub(super) struct Database {
    pub(super) spec: DatabaseSpec,
    pub(super) placement: Placement,
}

fn outside<T>(field: &str, allowed: &str) -> Result<T, String> {
    Err(format!("{field} is out of range; use {allowed}"))
}

/// The database of its sections, at one part in `shrink`; the error is the field, the fact and the remedy.
pub(super) fn database(
    section: &DatabaseSection,
    host: &HostSection,
    shrink: f64,
    system: &Description,
) -> Result<Database, String> {
    let engine = Engine::find(&section.engine).map_err(|error| format!("database.engine: {error}"))?;
    let mut engine =
        engine.with(&section.settings).map_err(|(name, fact)| format!("database.settings.{name}: {fact}"))?;
    let is_own = !section.object.is_empty();
    if is_own && shrink > 1.0 {
        return Err("run.shrink: objects of your own cannot be shrunk; leave it out".into());
    }
    let workload = workload(section, &engine)?;
    let units = match section.scale {
        Some(scale) if scale > 0.0 && scale <= SCALE_MAX => scale,
        None if is_own => 1.0,
        _ => return outside("database.scale", "more than 0, at most 100000"),
    };
    let default_buffer = is_own.then_some(BUFFER_MIN);
    let missing = "database.buffer is missing; give the memory for pages";
    let buffer = section.buffer.or(default_buffer).ok_or(missing)?;
    if buffer < BUFFER_MIN || buffer > BUFFER_MAX {
        return outside("database.buffer", "1MiB to 512GiB");
    }
    if section.measured_tps.is_some_and(|measured| measured.is_nan() || measured <= 0.0) {
        return outside("database.measured_tps", "more than 0");
    }
    if let Some(bytes) = section.log_per_transaction {
        let changes: f64 = section.object.iter().map(|object| object.writes).sum();
        if !(1..=1 << 24).contains(&bytes.0) || changes <= 0.0 {
            let text = "database.log_per_transaction needs objects with writes, and 1B to 16MiB; correct it";
            return Err(text.into());
        }
        engine.log_per_change.value = bytes.0 as f64 / changes;
    }
    let grown = section.grown.unwrap_or(1.0);
    if !(1.0..=1000.0).contains(&grown) {
        return outside("database.grown", "1 to 1000");
    }
    if !(1..=100_000).contains(&section.users) {
        return outside("database.users", "1 to 100000");
    }
    let log_bytes = section.log_size.unwrap_or(LOG);
    if log_bytes < ByteCount::mib(16) || !log_bytes.0.is_multiple_of(1 << 20) {
        return outside("database.log_size", "whole MiB, at least 16MiB");
    }
    let think = duration("database.think", &section.think, Nanos::ZERO)?;
    if section.rate.is_some_and(|rate| !(rate > 0.0 && rate <= RATE_MAX)) {
        return outside("database.rate", "more than 0, at most 1000000");
    }
    if section.rate.is_some() && think > Nanos::ZERO {
        return Err(
            "database.rate: transactions that arrive at a rate have no think time; leave out think".into()
        );
    }
    let scale = Scale { units: units / shrink, grown };
    let layout = Layout::new(&workload, &engine, &scale);
    let mut placement = placement(&workload, system, &section.place, log_bytes)?;
    placement.spread = spread(section.size, &layout, shrink)?;
    check_room(&layout, system, &placement)?;
    let host = host_of(host, &workload.id, shrink)?;
    let spec = DatabaseSpec {
        workload,
        engine,
        scale,
        buffer: ByteCount((buffer.0 as f64 / shrink) as u64),
        policy: PolicyKind::Lru,
        host,
        users: section.users,
        think,
        rate: section.rate,
    };
    Ok(Database { spec, placement })
}

/// A host; what its section does not say comes from its model.
fn host_of(host: &HostSection, workload: &str, shrink: f64) -> Result<HostSpec, String> {
    let model = host.model.as_deref().map(HostModel::find).transpose();
    let model = model.map_err(|error| format!("host.model: {error}"))?;
    let missing = |field: &str| match &model {
        Some(model) => format!("host.{field}: host {:?} has none for {workload}; add it", model.id),
        None => format!("host.{field} is missing; add it, or name a model of catalog/hosts"),
    };
    let of_model = |number: fn(&HostModel) -> f64| model.as_ref().map(number);
    let cores = host.cores.or(of_model(|model| model.cores.value).map(|cores| cores as u32));
    let cores = cores.ok_or_else(|| missing("cores"))?;
    let transaction = model.as_ref().and_then(|model| model.transaction_ms(workload));
    let transaction_ms = host.transaction_ms.or(transaction).ok_or_else(|| missing("transaction_ms"))?;
    let io_us = host.io_us.or(of_model(|model| model.io_us.value)).ok_or_else(|| missing("io_us"))?;
    if !(1..=4096).contains(&cores) {
        return outside("host.cores", "1 to 4096");
    }
    if !(transaction_ms > 0.0 && transaction_ms <= 1e6) {
        return outside("host.transaction_ms", "more than 0, at most 1000000");
    }
    if !(0.0..=1e6).contains(&io_us) {
        return outside("host.io_us", "0 to 1000000");
    }
    if host.volume_queue.is_some_and(|depth| !(1..=65536).contains(&depth)) {
        return outside("host.volume_queue", "1 to 65536");
    }
    let page_cache = host.page_cache.unwrap_or_default();
    if page_cache > BUFFER_MAX {
        return outside("host.page_cache", "0B to 512GiB");
    }
    Ok(HostSpec {
        page_cache: ByteCount((page_cache.0 as f64 / shrink) as u64),
        volume_queue: host.volume_queue,
        cores,
        transaction: Nanos((transaction_ms * 1e6) as u64),
        io: Nanos((io_us * 1e3) as u64),
    })
}

/// How far apart pieces lie so that the database takes its size.
fn spread(size: Option<ByteCount>, layout: &Layout, shrink: f64) -> Result<f64, String> {
    let Some(size) = size else { return Ok(shrink) };
    let spread = size.0 as f64 / layout.bytes().0 as f64;
    if spread < shrink {
        let needs = ByteCount::gib((layout.bytes().0 as f64 * shrink / f64::from(1 << 30)).ceil() as u64);
        return Err(format!(
            "database.size: {size:#} is less than the {needs:#} that its rows take; raise it, or lower database.scale"
        ));
    }
    Ok(spread)
}

/// A workload of the catalogue, or that of objects of one's own.
fn workload(section: &DatabaseSection, engine: &Engine) -> Result<Workload, String> {
    match &section.workload {
        Some(id) if section.object.is_empty() => {
            if section.log_per_transaction.is_some() {
                return Err("database.log_per_transaction is for objects of your own; leave it out".into());
            }
            let changes = Changes {
                choices: section.choices.clone(),
                keys: section.keys.clone(),
                mix: section.mix.clone(),
            };
            let workload =
                Workload::find(id, &changes).map_err(|error| format!("database.workload: {error}"))?;
            Ok(if engine.has_heaps() { workload.with_primary_keys() } else { workload })
        }
        None if !section.object.is_empty() => Ok(Workload::of_objects(&own_objects(section)?, engine)),
        _ => {
            let text = "database: give either workload and scale, or object (a list of your own tables); docs/whatif.md shows \
                        both";
            Err(text.into())
        }
    }
}

/// The largest read of an object.
const READ_MAX: ByteCount = ByteCount::mib(1);
/// The most pages of an object for each transaction.
const PAGES_MAX: f64 = 10_000.0;

/// Objects of one's own; the error is the fact and the remedy.
fn own_objects(section: &DatabaseSection) -> Result<Vec<OwnObject>, String> {
    let has_changes = !section.choices.is_empty() || !section.keys.is_empty() || !section.mix.is_empty();
    if has_changes || section.grown.is_some() {
        return Err(
            "database: choices, keys, mix and grown are for a workload of the catalogue; leave them out"
                .into(),
        );
    }
    let mut objects: Vec<OwnObject> = Vec::new();
    for object in &section.object {
        let wrong = |fact: &str| Err(format!("database.object {:?} {fact}", object.name));
        if objects.iter().any(|known| known.name == object.name) {
            return wrong("is there twice; rename one");
        }
        if object.size < BUFFER_MIN || object.size > ByteCount::gib(1 << 20) {
            return wrong("has a size out of range; use 1MiB to 1PiB");
        }
        if ![object.reads, object.writes].iter().all(|pages| (0.0..=PAGES_MAX).contains(pages)) {
            return wrong("has reads or writes out of range; use 0 to 10000 pages for each transaction");
        }
        let law = object.law.as_deref().unwrap_or("uniform").parse();
        let law: Law = law.map_err(|error| format!("database.object {:?}: {error}", object.name))?;
        if !matches!(law, Law::Uniform | Law::Zipf { .. }) {
            return wrong("has a law of order entry; use \"uniform\" or \"zipf THETA\"");
        }
        let read_size = object.read_size.unwrap_or_default();
        if read_size > READ_MAX {
            return wrong("has a read_size out of range; use at most 1MiB");
        }
        if read_size.0 > 0 && law != Law::Uniform {
            return wrong("has a law and a read_size; leave out one of them");
        }
        let (name, size, reads, writes) = (object.name.clone(), object.size, object.reads, object.writes);
        objects.push(OwnObject { name, size, reads, read_size, writes, law });
    }
    match objects.iter().any(|object| object.reads + object.writes > 0.0) {
        true => Ok(objects),
        false => {
            Err("database.object: no object has reads or writes; give their pages for each transaction"
                .into())
        }
    }
}
