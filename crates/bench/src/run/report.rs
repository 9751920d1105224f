//! The result of a run.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::options::RunOptions;
use super::pace::Arrived;
use super::tally::{KindReport, Quantiles, Second};
use crate::counters::Gap;
use crate::counters::array::ArrayUse;
use crate::counters::database::DatabaseUse;
use crate::counters::processor::ProcessorUse;
use crate::load::{Load, Scale};
use crate::order_entry::draw::Home;

/// The form of a report; it grows when fields change their meaning.
const VERSION: u32 = 1;

/// What was run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Settings {
    /// Users.
    pub users: u32,
    /// Seconds that were asked for; none: one pass of the queries.
    pub duration_s: Option<f64>,
    /// Seconds of ramp.
    pub ramp_s: f64,
    /// Arrivals per second; none: users wait for their own transactions only.
    pub rate: Option<f64>,
    /// Think time, as the option takes it.
    pub think: String,
    /// The law of items; of order entry.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub items: Option<String>,
    /// `fixed` or `all`; of order entry.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub home: Option<String>,
    /// Shares in percent, as the option takes them; none where users do not draw kinds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mix: Option<String>,
    /// Isolation of sessions.
    pub isolation: String,
    /// Seed of all draws.
    pub seed: u64,
}

/// Figures for each transaction, of the database and of the array.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct PerTransaction {
    /// Blocks that the database read.
    pub database_reads: Option<f64>,
    /// Blocks that the database wrote, WAL not included.
    pub database_writes: Option<f64>,
    /// Bytes of WAL.
    pub wal_bytes: Option<f64>,
    /// Reads that the array got.
    pub array_reads: Option<f64>,
    /// Bytes that the array read for them.
    pub array_read_bytes: Option<f64>,
    /// Writes that the array got, WAL included.
    pub array_writes: Option<f64>,
    /// Bytes that they wrote.
    pub array_write_bytes: Option<f64>,
    /// Processor time of the whole machine, milliseconds of a core.
    pub processor_ms: Option<f64>,
    /// The same without the load generator: database, file system and whatever else ran.
    pub processor_ms_without_generator: Option<f64>,
}

/// What arrived at a rate.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct ArrivalsReport {
    /// Transactions that arrived in the measured time, each second.
    pub offered_per_second: f64,
    /// Those that ended in it, each second.
    pub served_per_second: f64,
    /// How many no user had begun at its end. Response times are only of those that were served.
    pub waiting: u64,
}

/// Reads and writes as rates, in MB (10^6 bytes) per second.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Throughput {
    /// Blocks that the database read.
    pub database_read: Option<f64>,
    /// Blocks that it wrote, and WAL.
    pub database_written: Option<f64>,
    /// What the array read for it.
    pub array_read: Option<f64>,
    /// What the array wrote.
    pub array_written: Option<f64>,
}

/// The result.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RunReport {
    /// The form of this report.
    pub version: u32,
    /// The load: `order-entry`.
    pub workload: String,
    /// The database, without a password.
    pub database: String,
    /// What the server says of itself.
    pub server: String,
    /// When counting began, by the server's clock.
    pub started: String,
    /// How large the database is, in words; empty in reports of older versions.
    #[serde(default)]
    pub scale: String,
    /// Warehouses, of order entry.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub warehouses: Option<u32>,
    /// The server's own memory for pages (`shared_buffers`), bytes; none in reports of older versions.
    #[serde(default)]
    pub buffer_bytes: Option<u64>,
    /// What was run.
    pub settings: Settings,
    /// How long was counted, seconds.
    pub seconds: f64,
    /// Whether the run was ended early.
    pub ended_early: bool,
    /// Why it ended before its time, where a transaction failed; none in reports of older versions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failure: Option<String>,
    /// Transactions that were cancelled because they did not end in time after the run; counted nowhere else. 0 in reports of older
    /// versions.
    #[serde(default)]
    pub unfinished: u64,
    /// What arrived; none without a rate, and in reports of older versions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub arrivals: Option<ArrivalsReport>,
    /// Committed New-Orders per minute, of order entry.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub nopm: Option<f64>,
    /// Trade-Results per second, of brokerage. Ten times as many transactions run in all.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub trade_results_per_second: Option<f64>,
    /// Finished queries per hour, of decision support.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub queries_per_hour: Option<f64>,
    /// Finished queries of each stream, of decision support.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub queries_by_stream: Option<Vec<u64>>,
    /// Queries that were under way at the end, of decision support: cancelled, and counted nowhere else.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub queries_unfinished: Option<u64>,
    /// All commits per minute.
    pub commits_per_minute: f64,
    /// Response times of all kinds, milliseconds; none where nothing ended, and in reports of older versions.
    #[serde(default)]
    pub response_ms: Option<Quantiles>,
    /// By kind.
    pub transactions: Vec<KindReport>,
    /// Refused transactions, each of which was repeated.
    pub retries: u64,
    /// Districts that had no order to deliver, of order entry.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub districts_without_order: Option<u64>,
    /// For each transaction.
    pub per_transaction: PerTransaction,
    /// By how many transactions counts are divided: those that the server counted, or the queries that streams finished. None where
    /// that is not known, and in reports of older versions, whose counts were divided by the server's.
    #[serde(default)]
    pub divisor: Option<u64>,
    /// Reads and writes as rates; none in reports of older versions.
    #[serde(default)]
    pub throughput: Option<Throughput>,
    /// What the database counted.
    pub database_io: DatabaseUse,
    /// What the array counted; none where none was asked.
    pub array_io: Option<ArrayUse>,
    /// Processors of this machine; none where the server is elsewhere or they cannot be read.
    pub processor: Option<ProcessorUse>,
    /// What was not measured, and why.
    pub not_measured: Vec<Gap>,
    /// Second by second.
    pub series: Vec<Second>,
}

/// What a report is made of.
pub(crate) struct Made<'a> {
    pub(crate) database: String,
    pub(crate) options: &'a RunOptions,
    pub(crate) mix: Option<String>,
    pub(crate) scale: Scale,
    /// The place of the kind that is the load's own measure; none: all of them.
    pub(crate) headline: Option<usize>,
    pub(crate) started: String,
    pub(crate) server: String,
    pub(crate) buffer_bytes: u64,
    pub(crate) elapsed: Duration,
    pub(crate) is_early: bool,
    pub(crate) failure: Option<String>,
    pub(crate) kinds: Vec<KindReport>,
    pub(crate) responses: Option<Quantiles>,
    pub(crate) arrived: Option<Arrived>,
    pub(crate) missed: u64,
    pub(crate) by_user: Vec<u64>,
    pub(crate) cancelled: u64,
    pub(crate) seconds: Vec<Second>,
    pub(crate) processor: Option<ProcessorUse>,
    pub(crate) is_local: bool,
    pub(crate) counted: DatabaseUse,
    pub(crate) array: Option<ArrayUse>,
}

impl RunReport {
    pub(crate) fn new(made: Made<'_>) -> RunReport {
        let seconds = made.elapsed.as_secs_f64();
        let committed = |kind: &KindReport| kind.committed;
        let commits: u64 = made.kinds.iter().map(committed).sum();
        let headline = made.headline.map_or(commits, |place| committed(&made.kinds[place]));
        let is_order_entry = made.scale.load() == Load::OrderEntry;
        let ended: u64 = made.kinds.iter().map(|kind| kind.committed + kind.rolled_back).sum();
        let is_decision_support = made.scale.load() == Load::DecisionSupport;
        // Parallel workers of a query count as transactions at the server, and so do the questions of this program.
        let divisor = if is_decision_support { Some(commits) } else { made.counted.transactions };
        let divisor = divisor.filter(|count| *count > 0);
        RunReport {
            version: VERSION,
            workload: made.scale.load().name().to_owned(),
            scale: made.scale.to_string(),
            database: made.database.clone(),
            server: made.server.clone(),
            started: made.started.clone(),
            warehouses: match made.scale {
                Scale::Warehouses(count) => Some(count),
                Scale::Customers { .. } | Scale::Factor(_) => None,
            },
            buffer_bytes: Some(made.buffer_bytes),
            settings: Settings::of(made.options, &made),
            seconds,
            ended_early: made.is_early,
            failure: made.failure.clone(),
            unfinished: made.cancelled,
            arrivals: made.arrived.map(|arrived| ArrivalsReport {
                offered_per_second: arrived.offered as f64 / seconds,
                served_per_second: ended as f64 / seconds,
                waiting: arrived.waiting,
            }),
            nopm: is_order_entry.then_some(headline as f64 / seconds * 60.0),
            trade_results_per_second: (made.scale.load() == Load::Brokerage)
                .then_some(headline as f64 / seconds),
            queries_per_hour: is_decision_support.then_some(commits as f64 / seconds * 3600.0),
            queries_by_stream: is_decision_support.then(|| made.by_user.clone()),
            queries_unfinished: is_decision_support.then_some(made.cancelled),
            commits_per_minute: commits as f64 / seconds * 60.0,
            retries: made.kinds.iter().map(|kind| kind.serialization_failures + kind.deadlocks).sum(),
            districts_without_order: is_order_entry.then_some(made.missed),
            per_transaction: per_transaction(&made, divisor, ended),
            divisor,
            throughput: Some(throughput(&made)),
            not_measured: gaps(&made),
            response_ms: made.responses,
            transactions: made.kinds,
            database_io: made.counted,
            array_io: made.array,
            processor: made.processor,
            series: made.seconds,
        }
    }

    /// Transactions that ended in the measured time, committed or rolled back.
    pub fn ended(&self) -> u64 {
        self.transactions.iter().map(|kind| kind.committed + kind.rolled_back).sum()
    }
}

impl Settings {
    fn of(options: &RunOptions, made: &Made<'_>) -> Settings {
        let is_order_entry = made.scale.load() == Load::OrderEntry;
        Settings {
            users: options.users,
            duration_s: if options.one_pass { None } else { Some(options.duration.as_secs_f64()) },
            ramp_s: options.ramp(made.scale.load()).as_secs_f64(),
            rate: options.rate,
            think: options.think.to_string(),
            items: is_order_entry.then(|| options.items.unwrap_or_default().name().to_owned()),
            home: is_order_entry.then(|| options.home.unwrap_or(Home::Fixed).name().to_owned()),
            mix: made.mix.clone(),
            isolation: options.isolation.name().to_owned(),
            seed: options.seed,
        }
    }
}

fn throughput(made: &Made<'_>) -> Throughput {
    let rate = |bytes: u64| bytes as f64 / 1e6 / made.elapsed.as_secs_f64();
    let blocks = |count: u64| rate(count * made.counted.block_bytes);
    let array = made.array.as_ref().and_then(ArrayUse::total);
    Throughput {
        database_read: made.counted.reads.map(blocks),
        database_written: made
            .counted
            .writes
            .zip(made.counted.wal)
            .map(|(writes, wal)| blocks(writes.total()) + rate(wal.bytes)),
        array_read: array.map(|total| rate(total[1])),
        array_written: array.map(|total| rate(total[3])),
    }
}

/// Counts of the database and the array belong to all transactions of the divisor; processor time to those that ended
/// in the measured time.
fn per_transaction(made: &Made<'_>, counted: Option<u64>, ended: u64) -> PerTransaction {
    let each = |count: Option<u64>| Some(count? as f64 / counted? as f64);
    let array = made.array.as_ref().and_then(ArrayUse::total);
    let of_array = |place: usize| each(array.map(|total| total[place]));
    let core_ms = |share: f64, used: &ProcessorUse| {
        share * f64::from(used.cores) * made.elapsed.as_secs_f64() * 1000.0 / ended as f64
    };
    let processor = made.processor.as_ref().filter(|_| ended > 0);
    PerTransaction {
        database_reads: each(made.counted.reads),
        database_writes: each(made.counted.writes.map(|writes| writes.total())),
        wal_bytes: each(made.counted.wal.map(|wal| wal.bytes)),
        array_reads: of_array(0),
        array_read_bytes: of_array(1),
        array_writes: of_array(2),
        array_write_bytes: of_array(3),
        processor_ms: processor.map(|used| core_ms(used.busy, used)),
        processor_ms_without_generator: processor
            .and_then(|used| Some(core_ms((used.busy - used.load_generator?).max(0.0), used))),
    }
}

fn gaps(made: &Made<'_>) -> Vec<Gap> {
    let mut gaps = made.counted.not_measured.clone();
    if made.processor.is_none() {
        let why = match made.is_local {
            true => "/proc/stat cannot be read",
            false => "the server is on another machine",
        };
        gaps.push(Gap::new("processor time", why));
    }
    match &made.array {
        None => gaps.push(Gap::new("the array", "no array was named (--array)")),
        Some(used) => gaps.extend(used.not_measured.iter().map(|why| Gap::new("the array", why.clone()))),
    }
    gaps
}
