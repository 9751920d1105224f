//! A study's file as it is written.

use serde::Deserialize;
use toml::{Spanned, Table};

use super::plan::FreeField;
use super::setup::SetupPatch;
use crate::record::{Figure, Role, StraightLine, Tolerance};

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct File {
    pub(super) id: Spanned<String>,
    pub(super) title: String,
    pub(super) description: String,
    /// What is modelled how, for the report.
    #[serde(default)]
    pub(super) mechanism: Vec<String>,
    #[serde(default = "seed_default")]
    pub(super) seed: u64,
    #[serde(default, rename = "assumption")]
    pub(super) assumptions: Vec<AssumptionSection>,
    #[serde(default)]
    pub(super) base: BaseSection,
    pub(super) database: Option<Table>,
    pub(super) host: Option<Table>,
    pub(super) system: Option<Table>,
    pub(super) front_end: Option<Table>,
    pub(super) run: Option<Table>,
    pub(super) beside: Option<Vec<Table>>,
    #[serde(default, rename = "configuration")]
    pub(super) configurations: Vec<ConfigurationSection>,
    pub(super) grid: Option<GridSection>,
    #[serde(default, rename = "parameter")]
    pub(super) parameters: Vec<ParameterSection>,
    #[serde(default, rename = "record")]
    pub(super) records: Vec<RecordSection>,
}

fn seed_default() -> u64 {
    1
}

fn no() -> Spanned<bool> {
    Spanned::new(0..0, false)
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct AssumptionSection {
    pub(super) what: String,
    pub(super) value: String,
    pub(super) source: String,
    /// What else it may be.
    #[serde(default)]
    pub(super) vary: Vec<Spanned<VarySection>>,
    /// Nothing says which of them it is: figures are given as a range over all.
    #[serde(default = "no")]
    pub(super) band: Spanned<bool>,
}

/// Another value that is as plausible: of fields of configurations, or of one number of the catalogue.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct VarySection {
    /// The value, in words.
    pub(super) to: String,
    #[serde(default)]
    pub(super) set: SetupPatch,
    pub(super) database: Option<Table>,
    pub(super) host: Option<Table>,
    pub(super) system: Option<Table>,
    pub(super) front_end: Option<Table>,
    pub(super) run: Option<Table>,
    pub(super) beside: Option<Vec<Table>>,
    /// Ids of the configurations that it is laid over; all of the kind where absent.
    pub(super) configurations: Option<Vec<Spanned<String>>>,
    /// The entry of the catalogue, `id` or `id@calibration`.
    pub(super) entry: Option<String>,
    pub(super) parameter: Option<String>,
    pub(super) value: Option<f64>,
}

#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct BaseSection {
    #[serde(default)]
    pub(super) set: SetupPatch,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct ConfigurationSection {
    pub(super) id: Spanned<String>,
    pub(super) title: String,
    #[serde(default)]
    pub(super) set: SetupPatch,
    pub(super) database: Option<Table>,
    pub(super) host: Option<Table>,
    pub(super) system: Option<Table>,
    pub(super) front_end: Option<Table>,
    pub(super) run: Option<Table>,
    pub(super) beside: Option<Vec<Table>>,
}

/// The tables of a section that say a case, or what is changed of one.
macro_rules! case_tables {
    ($section:expr) => {{
        let tables = [
            ("database", &$section.database),
            ("host", &$section.host),
            ("system", &$section.system),
            ("front_end", &$section.front_end),
            ("run", &$section.run),
        ];
        let given = tables.into_iter().filter_map(|(name, table)| Some((name, table.as_ref()?)));
        let tables = given.map(|(name, table)| (name.to_owned(), Value::Table(table.clone())));
        let beside = $section.beside.iter().map(|list| {
            ("beside".to_owned(), Value::Array(list.iter().cloned().map(Value::Table).collect()))
        });
        tables.chain(beside).collect::<Table>()
    }};
}
pub(super) use case_tables;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct GridSection {
    pub(super) metric: Metric,
    pub(super) unit: String,
    #[serde(rename = "axis")]
    pub(super) axes: Vec<AxisSection>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct AxisSection {
    pub(super) title: Spanned<String>,
    pub(super) point: Vec<AxisPoint>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct AxisPoint {
    pub(super) id: String,
    pub(super) label: String,
    #[serde(default)]
    pub(super) set: SetupPatch,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct ParameterSection {
    pub(super) name: Spanned<String>,
    pub(super) field: Spanned<FreeField>,
    pub(super) unit: String,
    pub(super) stands_for: String,
    pub(super) start: f64,
    pub(super) least: f64,
    pub(super) most: f64,
    /// Ids of the configurations it belongs to; all where absent.
    pub(super) configurations: Option<Vec<Spanned<String>>>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct RecordSection {
    pub(super) id: Spanned<String>,
    pub(super) value: Option<ValueSection>,
    pub(super) unit: Option<String>,
    pub(super) role: Role,
    pub(super) published: Option<Figure>,
    pub(super) tolerance: Option<Spanned<Tolerance>>,
    pub(super) straight_line: Option<Spanned<StraightLine>>,
}

/// A figure of one measurement.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Metric {
    /// Answered requests per second.
    Iops,
    /// Mean latency of all requests, milliseconds.
    LatencyMs,
    /// Mean latency of the reads, milliseconds.
    ReadLatencyMs,
    /// Mean latency of the writes, milliseconds.
    WriteLatencyMs,
    /// Millions of bytes per second.
    MegabytesPerS,
    /// The latency that 99 % of all requests keep, milliseconds.
    P99Ms,
    /// Reads that found all of their pages in the read cache, in percent of those that looked for them, in all of the array.
    ReadHitPercent,
    /// Reads that found all of their pages in the flash cache, in percent of those that looked there: in memory was not all of them.
    FlashHitPercent,
    /// Writes that were delayed for want of room in the write cache of the measured volumes, in percent of all writes to it.
    DelayedWritesPercent,
    /// Pages that were destaged from that cache while writers were delayed, in percent of all that were.
    ForcedFlushPercent,
    /// The same, between the watermarks.
    HighWatermarkFlushPercent,
    /// The same, below the low watermark.
    IdleFlushPercent,
    /// Transactions of a database per second.
    Tps,
    /// The same per minute.
    Tpm,
    /// Mean response time of its transactions, milliseconds.
    ResponseMs,
    /// The share of the host's cores that it used, in percent.
    CpuPercent,
    /// Reads in percent of the I/Os.
    ReadPercent,
    /// Bytes read in percent of those transferred.
    ReadBytesPercent,
    /// Mean size of a read, 1024 bytes.
    ReadKib,
    /// The same of a write.
    WriteKib,
}

impl Metric {
    /// Whether a load on an array has it.
    pub(super) fn is_of_loads(self) -> bool {
        use Metric::*;
        !matches!(
            self,
            Tps | Tpm | ResponseMs | CpuPercent | ReadPercent | ReadBytesPercent | ReadKib | WriteKib
        )
    }

    /// Whether a database on an array has it.
    pub(super) fn is_of_cases(self) -> bool {
        use Metric::*;
        !matches!(
            self,
            DelayedWritesPercent | ForcedFlushPercent | HighWatermarkFlushPercent | IdleFlushPercent
        )
    }
}

#[derive(Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct ValueSection {
    pub(super) metric: Metric,
    /// The configuration.
    pub(super) of: Option<Spanned<String>>,
    /// With it, the figure is divided by this configuration's.
    pub(super) over: Option<Spanned<String>>,
    /// With it, each side is divided by its drives first.
    #[serde(default)]
    pub(super) per_drive: bool,
    /// With `over`: the figure is by how many percent it is more than the other.
    #[serde(default)]
    pub(super) change: bool,
    /// Instead: pairs of configurations of which the first should have the greater figure.
    pub(super) order: Option<Vec<[Spanned<String>; 2]>>,
}
