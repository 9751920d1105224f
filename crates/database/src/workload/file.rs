//! A workload as its file writes it (`catalog/workloads/*.toml`).

use std::collections::BTreeMap;

use serde::Deserialize;
use tier0_catalog::{Parameter, SourceKind};

/// The file.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct WorkloadFile {
    pub(super) id: String,
    pub(super) title: String,
    pub(super) description: String,
    /// What the scale counts.
    pub(super) unit: String,
    /// The transaction whose commits are the benchmark's own measure.
    pub(super) headline: String,
    /// Processor time for 8 KiB that a scan reads, in microseconds.
    pub(super) scan_us: Option<Parameter<f64>>,
    /// Laws by name, which a study may replace.
    #[serde(default)]
    pub(super) choice: BTreeMap<String, ChoiceSection>,
    pub(super) dimension: Vec<DimensionSection>,
    pub(super) object: Vec<ObjectSection>,
    pub(super) transaction: Vec<TransactionSection>,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct ChoiceSection {
    pub(super) law: String,
    pub(super) kind: SourceKind,
    pub(super) source: String,
}

/// What rows are numbered by.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct DimensionSection {
    pub(super) name: String,
    /// How many there are, whatever the scale.
    pub(super) count: Option<u64>,
    /// Or for each unit of the scale.
    pub(super) per_unit: Option<f64>,
    pub(super) kind: SourceKind,
    pub(super) source: String,
}

/// A table or an index.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct ObjectSection {
    pub(super) name: String,
    /// The dimensions whose values make a row's key, in the order in which rows lie.
    #[serde(default)]
    pub(super) key: Vec<String>,
    pub(super) row_bytes: f64,
    /// Rows for each value of the key; 1 where absent.
    pub(super) rows: Option<u64>,
    /// It grows: rows are appended behind the others of their key.
    #[serde(default)]
    pub(super) grows: bool,
    /// Of an object that grows: rows for each sequence number of the object that numbers them.
    pub(super) per_sequence: Option<u64>,
    /// Of an object that grows: rows at the end that nothing has taken yet.
    pub(super) backlog: Option<u64>,
    /// It is an index of this table, and lies beside it where nothing else is said.
    pub(super) index_of: Option<String>,
    /// Of a table: bytes of its primary key, aligned. Engines whose tables are heaps keep it in an index.
    pub(super) primary_key_bytes: Option<f64>,
    pub(super) kind: SourceKind,
    pub(super) source: String,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct TransactionSection {
    pub(super) name: String,
    /// Of all transactions, in any measure.
    pub(super) share: f64,
    pub(super) steps: Vec<StepSection>,
    pub(super) kind: SourceKind,
    pub(super) source: String,
}

/// One step: exactly one of the verbs, and what belongs to it.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct StepSection {
    // Verbs.
    pub(super) pick: Option<String>,
    pub(super) pick_sequence: Option<String>,
    pub(super) read: Option<String>,
    pub(super) update: Option<String>,
    pub(super) append: Option<String>,
    pub(super) take: Option<String>,
    pub(super) repeat: Option<String>,
    pub(super) each: Option<String>,
    pub(super) recall: Option<String>,
    pub(super) scan: Option<String>,
    // What belongs to them.
    pub(super) by: Option<String>,
    pub(super) back: Option<u64>,
    pub(super) group: Option<u64>,
    pub(super) within: Option<u64>,
    #[serde(default)]
    pub(super) list: bool,
    pub(super) share: Option<f64>,
    pub(super) at: Option<String>,
    pub(super) rows: Option<u64>,
    #[serde(default)]
    pub(super) hold: bool,
    #[serde(default)]
    pub(super) direct: bool,
    pub(super) percent: Option<f64>,
    pub(super) keep: Option<String>,
    pub(super) last: Option<u64>,
    pub(super) set: Option<String>,
    #[serde(default)]
    pub(super) steps: Vec<StepSection>,
}
