//! The JSON schema of the contract, made of the types and compared with the copy in `docs/api`, so that a change of the
//! contract cannot go unseen.

use std::path::{Path, PathBuf};

use schemars::generate::SchemaSettings;
use schemars::{JsonSchema, SchemaGenerator};
use serde_json::{Value, json};

use crate::{ApiVersion, EventId, ReplyEnvelope, RequestEnvelope, Severity, Subject};

/// When a write is acknowledged: [`tier0_units::WriteCache`].
#[derive(JsonSchema)]
#[serde(rename_all = "lowercase")]
#[expect(dead_code, reason = "only its schema is used")]
pub(crate) enum WriteCache {
    /// When it is stable in every copy of the write log.
    Durable,
    /// From memory. What was not flushed may be lost.
    Volatile,
    /// When it is on the drives of its RAID set.
    Off,
}

/// Requests of one kind, since the start: [`tier0_stats::OpStats`].
#[derive(JsonSchema)]
#[expect(dead_code, reason = "only its schema is used")]
pub(crate) struct OpStats {
    /// Requests that ended, with an error or without.
    count: u64,
    /// Bytes of those that ended without an error.
    bytes: u64,
    /// Requests that ended with an error.
    errors: u64,
    /// The sum of their latencies, in nanoseconds.
    time_ns: u64,
    /// Latency in nanoseconds (the upper end of a bucket) and how many requests had it.
    latencies: Vec<(u64, u64)>,
}

/// Requests by kind, since the start: [`tier0_stats::IoStats`].
#[derive(JsonSchema)]
#[expect(dead_code, reason = "only its schema is used")]
pub(crate) struct IoStats {
    /// Reads.
    read: OpStats,
    /// Writes with payload.
    write: OpStats,
    /// Discards and writes of zeros.
    discard: OpStats,
    /// Flushes.
    flush: OpStats,
}

/// An event in the event file, and of `tier0 events --json`: an [`Event`](crate::Event) with its time.
#[derive(JsonSchema)]
#[expect(dead_code, reason = "only its schema is used")]
pub(crate) struct RecordedEvent {
    /// When it was recorded, UTC, as in RFC 3339.
    time: String,
    /// How much it matters.
    severity: Severity,
    /// The subject as a text, such as `drive d0` or `pool pool0`.
    thing: String,
    /// What happened, and its cause.
    what: String,
    /// What to do. Empty: nothing.
    remedy: String,
    /// Which event it is. None: a server recorded it that knew no ids.
    #[serde(default)]
    id: Option<EventId>,
    /// What it is about. None: as for `id`.
    #[serde(default)]
    subject: Option<Subject>,
    /// Where the file of a drive is that was moved, if another file has its path.
    #[serde(default)]
    original: Option<PathBuf>,
}

/// The schema of everything that travels or is printed.
fn schema() -> Value {
    let mut generator: SchemaGenerator = SchemaSettings::draft2020_12().into();
    let documents = [
        generator.subschema_for::<RequestEnvelope>(),
        generator.subschema_for::<ReplyEnvelope>(),
        generator.subschema_for::<RecordedEvent>(),
    ];
    json!({
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": format!("tier0 API, version {}", ApiVersion::CURRENT),
        "description": "A request to an array and its reply, each one line of JSON on the control socket, or an event \
                        of the event file. \"tier0 status --json\" prints #/$defs/Status, \"tier0 events --json\" a list of \
                        #/$defs/RecordedEvent.",
        "anyOf": documents.map(Value::from),
        "$defs": generator.take_definitions(true),
    })
}

#[test]
fn the_schema_in_docs_is_that_of_the_types() {
    let name = format!("v{}.schema.json", ApiVersion::CURRENT);
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/api").join(name);
    let made = format!("{}\n", serde_json::to_string_pretty(&schema()).expect("JSON"));
    if std::env::var_os("TIER0_WRITE_SCHEMA").is_some() {
        std::fs::write(&path, &made).expect("the schema is written");
    }
    let kept = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(
        kept == made,
        "{} is not the schema of the types; if other programs still understand what changed, run\n\
         TIER0_WRITE_SCHEMA=1 cargo test -p tier0-api schema\n\
         otherwise increase ApiVersion::CURRENT first",
        path.display()
    );
}
