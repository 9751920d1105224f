//! The form of a case's sections: a database, its host, and the array.

use std::collections::BTreeMap;

use serde::Deserialize;
use tier0_units::ByteCount;
use tier0_workload::spec::{BlockMix, Pattern};

/// What a case says: the whole of it after alternatives were laid over.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct CaseFile {
    pub(super) database: DatabaseSection,
    pub(super) host: HostSection,
    /// An array file's tables.
    pub(super) system: toml::Table,
    pub(super) front_end: Option<FrontEndSection>,
    /// What else uses the array.
    #[serde(default)]
    pub(super) beside: Vec<BesideSection>,
    #[serde(default)]
    pub(super) run: RunSection,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct DatabaseSection {
    /// One of the catalogue, with its scale.
    pub(super) workload: Option<String>,
    pub(super) scale: Option<f64>,
    /// Or objects of one's own.
    #[serde(default)]
    pub(super) object: Vec<ObjectSection>,
    /// Bytes of the log for each transaction on them.
    pub(super) log_per_transaction: Option<ByteCount>,
    /// Transactions per second as they were measured, for comparison.
    pub(super) measured_tps: Option<f64>,
    pub(super) engine: String,
    /// Other settings of the engine, by the names of its file.
    #[serde(default)]
    pub(super) settings: BTreeMap<String, f64>,
    pub(super) grown: Option<f64>,
    pub(super) buffer: Option<ByteCount>,
    pub(super) users: u32,
    pub(super) think: Option<String>,
    /// Transactions per second that arrive in all; users then do not think.
    pub(super) rate: Option<f64>,
    #[serde(default)]
    pub(super) choices: BTreeMap<String, String>,
    #[serde(default)]
    pub(super) keys: BTreeMap<String, Vec<String>>,
    #[serde(default)]
    pub(super) mix: BTreeMap<String, f64>,
    /// Volumes by object; `*` stands for all others, `log` for the log.
    #[serde(default)]
    pub(super) place: BTreeMap<String, OneOrMany>,
    pub(super) log_size: Option<ByteCount>,
    /// What it takes on its volumes, with what is never touched.
    pub(super) size: Option<ByteCount>,
    /// What a transaction per minute is.
    #[serde(default)]
    pub(super) tpm: TpmSection,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum TpmSection {
    /// One of any kind.
    #[default]
    All,
    /// One of the benchmark's own measure.
    Headline,
}

/// An object of one's own.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct ObjectSection {
    pub(super) name: String,
    pub(super) size: ByteCount,
    /// Reads, and pages that are written, for each transaction.
    #[serde(default)]
    pub(super) reads: f64,
    /// Size of a read; a page where it is not said.
    pub(super) read_size: Option<ByteCount>,
    #[serde(default)]
    pub(super) writes: f64,
    /// How its pages are chosen.
    pub(super) law: Option<String>,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(untagged)]
pub(super) enum OneOrMany {
    One(String),
    Many(Vec<String>),
}

impl OneOrMany {
    pub(super) fn names(&self) -> &[String] {
        match self {
            OneOrMany::One(name) => std::slice::from_ref(name),
            OneOrMany::Many(names) => names,
        }
    }
}

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct HostSection {
    /// A host of the catalogue, whose numbers hold where the section has none.
    pub(super) model: Option<String>,
    pub(super) cores: Option<u32>,
    /// Processor time of a transaction without that of its I/Os, mean of the mix.
    pub(super) transaction_ms: Option<f64>,
    /// Processor time of an I/O.
    pub(super) io_us: Option<f64>,
    /// I/Os to one volume under way at most.
    pub(super) volume_queue: Option<u32>,
    /// Memory in which the operating system keeps pages of the database's files.
    pub(super) page_cache: Option<ByteCount>,
}

/// Another database, or a load.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct BesideSection {
    pub(super) name: String,
    pub(super) database: Option<DatabaseSection>,
    pub(super) host: Option<HostSection>,
    pub(super) load: Option<LoadSection>,
}

/// Users with independent requests to a volume.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct LoadSection {
    pub(super) volume: String,
    pub(super) block: Option<BlockMix>,
    pub(super) read_percent: f64,
    pub(super) pattern: Option<Pattern>,
    pub(super) users: u32,
    pub(super) think: Option<String>,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct FrontEndSection {
    /// The catalogue's array whose ports, processors and buses these are.
    pub(super) model: String,
    /// So many of them side by side; their volumes use all ports and processors.
    pub(super) arrays: Option<u32>,
    /// Ports of each, if not the model's.
    pub(super) ports: Option<u32>,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct RunSection {
    pub(super) warm_up: Option<String>,
    pub(super) measured: Option<String>,
    pub(super) seed: Option<u64>,
    /// Databases, buffers, caches and fast groups are simulated at one part in so many, over as much space as the whole takes.
    pub(super) shrink: Option<f64>,
    /// Transactions per second and minute are those of all databases, not of the first.
    #[serde(default)]
    pub(super) sum: bool,
    /// The volumes whose I/O is counted; all where absent.
    pub(super) counted: Option<OneOrMany>,
}
