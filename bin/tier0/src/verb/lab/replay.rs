//! `tier0 lab replay`: a block trace against cache policies, or with `--array` on a modelled array.

use std::fmt;
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};

use clap::{Args, ValueEnum};
use serde::Serialize;
use tier0_description::FLASH_WRITES_PER_DAY;
use tier0_lab::LabError;
use tier0_lab::replay::{FLASH, LoadOptions, Plan, Replayed, Requests, Sampled, Tried, Writes, load, replay};
use tier0_lab::report::{Provenance, ReplayTitle, replay_html};
use tier0_lab::timed::TimedOptions;
use tier0_policy::PolicyKind;
use tier0_trace::{Action, Columns, Format, Options};
use tier0_units::ByteCount;

use super::parse_threads;
use super::run::{check_writable, commit, failure};
use super::timed::{self, Timed};
use crate::cli::Global;
use crate::driving::live_line;
use crate::failure::Failure;
use crate::output::{align_right, json, print, rendered, table, thousands};

const EXAMPLES: &str = "\
Examples:
  tier0 lab replay volume.csv --size 1GiB --size 10GiB
      a trace in MSR Cambridge format, and caches of two sizes
  tier0 lab replay mine.txt --columns time:ms,volume,offset:sectors,size,op
      text in another format: the contents and units of its columns
  tier0 lab replay blocks.bin --format u32-be --size 20000 --policy adaptive
      a size without a unit is in blocks
  tier0 lab replay volume.iolog --curve --html replay.html
      a miss ratio curve with its error, as one HTML file
  tier0 lab replay volume.csv --array modelled.toml
      latency and IOPS over time on the array of an array file, in virtual time
  tier0 lab replay volume.csv --array modelled.toml --speed 2
      the same load, twice as fast
  tier0 lab replay blocks.bin --format u32-be --array modelled.toml --closed 8
      8 requests outstanding at any time; for traces without times

Formats (--format), plain or compressed with gzip, zstd or xz: msr, alibaba,
tencent, systor, spc, vscsi (vscsiStats -e), blkparse, fio (iolog), ids (a
block per line), oracle-general (libCacheSim), u32-be, u32-le. Text is
recognised by its content; binary formats must be named.

Columns of a text (--columns), in their order, separated by commas:
  time[:s|ms|us|100ns|ns]        when; s by default
  volume                         of which volume; several make one name
  offset[:bytes|sectors|SIZE]    where; sectors have 512 bytes
  size[:bytes|sectors|SIZE]      how much; one unit of the offset without it
  op[:01|10|scsi|optional]       R, W, read, write, discard, flush; 1 is a
                                 write (01) or a read (10)
  -                              a column that is not used
  ...                            at the end: more columns may follow

Columns of the table: requests with a missed block; bytes missed; bytes written
into the cache; requests replayed per second. The policies are those of the
memory cache, which admits every missed block. \"flash\" is the flash cache of an
array: it admits blocks that are read again, within its write budget.
\"optimum\" knows the future: no policy misses fewer blocks.";

/// How many points a curve has where it is not said.
const CURVE_POINTS: &str = "20";
/// How many points it has at most.
const POINTS_MAX: usize = 1000;
/// Sizes where none are given, as parts of all blocks.
const SIZES: [f64; 3] = [0.01, 0.05, 0.2];

/// Tells what caches of some sizes would have served of a trace, or how a modelled array would have served it.
#[derive(Args, Debug)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Replay {
    /// The trace file
    #[arg(value_name = "TRACE")]
    trace: PathBuf,
    /// Format of the trace [default: recognised by its content]
    #[arg(long, value_name = "FORMAT", conflicts_with = "columns")]
    format: Option<Format>,
    /// Columns of a text trace, in their order, such as time:ms,volume,offset:sectors,size,op
    #[arg(long, value_name = "COLUMNS")]
    columns: Option<Columns>,
    /// The blkparse event to replay: queue, dispatch or complete [default: the first of these in the trace]
    #[arg(long, value_name = "EVENT")]
    action: Option<Action>,
    /// Cache policy, lru or adaptive; repeatable [default: all]
    #[arg(long = "policy", value_name = "POLICY")]
    policies: Vec<PolicyKind>,
    /// Cache size, in blocks or with a unit; repeatable [default: 1, 5 and 20 % of the blocks]
    #[arg(long = "size", value_name = "SIZE", value_parser = parse_size)]
    sizes: Vec<Size>,
    /// Block size; with --array, that of traces that number blocks
    #[arg(long, value_name = "SIZE", default_value = "4KiB", value_parser = parse_block)]
    block: ByteCount,
    /// How writes are treated
    #[arg(long, value_enum, default_value_t = WriteMode::Allocate)]
    writes: WriteMode,
    /// Write budget of the flash cache in cache sizes per day, as flash_cache_writes in an array file
    #[arg(long, value_name = "TIMES", default_value_t = FLASH_WRITES_PER_DAY)]
    flash_cache_writes: u32,
    /// Also compute a miss ratio curve with this many sizes; large caches are simulated on a sample of the blocks
    #[arg(long, value_name = "POINTS", num_args = 0..=1, default_missing_value = CURVE_POINTS, value_parser = parse_points)]
    curve: Option<NonZeroUsize>,
    /// Replay only the first N requests
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    limit: Option<u64>,
    /// Also write a report with the curve, or with --array the course over time, to this file
    #[arg(long, value_name = "FILE")]
    html: Option<PathBuf>,
    /// Number of threads [default: one per core]
    #[arg(long, value_name = "N", value_parser = parse_threads)]
    threads: Option<NonZeroUsize>,
    /// Print JSON
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    timed: Timed,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum WriteMode {
    /// Writes count as requests and are admitted to the cache
    Allocate,
    /// Writes bypass the cache and invalidate the blocks they write
    Around,
    /// Writes are skipped
    Ignore,
}

#[derive(Clone, Copy, Debug)]
enum Size {
    Blocks(u64),
    Bytes(ByteCount),
}

impl fmt::Display for Size {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Size::Blocks(blocks) => write!(f, "{blocks}"),
            Size::Bytes(bytes) => write!(f, "{bytes}"),
        }
    }
}

fn parse_size(text: &str) -> Result<Size, String> {
    let size = match text.parse::<u64>() {
        Ok(blocks) => Size::Blocks(blocks),
        Err(_) => Size::Bytes(text.parse::<ByteCount>().map_err(|error| error.to_string())?),
    };
    match size {
        Size::Blocks(0) | Size::Bytes(ByteCount(0)) => Err("a cache has at least one block".to_owned()),
        size => Ok(size),
    }
}

fn parse_points(text: &str) -> Result<NonZeroUsize, String> {
    let points = text.parse::<usize>().ok().filter(|points| (2..=POINTS_MAX).contains(points));
    points.and_then(NonZeroUsize::new).ok_or_else(|| format!("a curve has between 2 and {POINTS_MAX} points"))
}

fn parse_block(text: &str) -> Result<ByteCount, String> {
    let size = text.parse::<ByteCount>().map_err(|error| error.to_string())?;
    match size.0 {
        512..=0x4000_0000 => Ok(size),
        _ => Err("a block has between 512 bytes and 1GiB".to_owned()),
    }
}

/// What JSON has.
#[derive(Serialize)]
struct Report<'a> {
    trace: &'a Path,
    format: String,
    requests: u64,
    reads: u64,
    distinct_blocks: u32,
    block_bytes: u64,
    #[serde(flatten)]
    replayed: &'a Replayed,
}

/// Replays it.
pub(crate) fn run(verb: &Replay, global: &Global) -> Result<(), Failure> {
    if let Some(path) = &verb.html {
        check_writable(path)?;
    }
    let reading = Options { format: verb.format, columns: verb.columns.clone(), action: verb.action };
    if let Some(array) = &verb.timed.array {
        let options = TimedOptions { reading, block_bytes: verb.block.0, limit: verb.limit };
        let output = timed::Output { html: verb.html.as_deref(), json: verb.json };
        return timed::run(&verb.timed, array, &verb.trace, &options, &output, global);
    }
    if verb.timed.catalog.is_given() {
        return Err(Failure::Input(
            "--catalog has models for the array of --array; add --array, or remove --catalog".to_owned(),
        ));
    }
    let writes = match verb.writes {
        WriteMode::Allocate => Writes::Allocate,
        WriteMode::Around => Writes::Around,
        WriteMode::Ignore => Writes::Ignore,
    };
    let options = LoadOptions { reading, block_bytes: verb.block.0, writes, limit: verb.limit };
    let bar = live_line(global.quiet == 0);
    let loaded = load(&verb.trace, &options, |count| {
        bar.set_message(format!("reading, {} requests", thousands(count as f64)));
    });
    let loaded = loaded.map_err(|error| failure(error.into()))?;
    for note in &loaded.notes {
        tracing::warn!("{}: {note}", verb.trace.display());
    }
    if loaded.has_open_line {
        tracing::warn!(
            "the last line of {} has no end; if the trace is cut off there, copy it again",
            verb.trace.display()
        );
    }
    let requests = &loaded.requests;
    let plan = plan(verb, requests)?;
    let replayed =
        replay(requests, &plan, |done, of| bar.set_message(format!("replaying, {done} of {of} caches")));
    bar.finish_and_clear();
    if let Some(path) = &verb.html {
        write_html(verb, path, requests, &replayed)?;
    }
    if verb.json {
        return print(&json(&Report {
            trace: &verb.trace,
            format: loaded.format.to_string(),
            requests: requests.count(),
            reads: requests.reads(),
            distinct_blocks: requests.distinct(),
            block_bytes: requests.block_bytes(),
            replayed: &replayed,
        }));
    }
    print(&text(verb, requests, &replayed))
}

fn plan(verb: &Replay, requests: &Requests) -> Result<Plan, Failure> {
    let distinct = u64::from(requests.distinct());
    let in_blocks = |size: &Size| match size {
        Size::Blocks(blocks) => *blocks,
        Size::Bytes(bytes) => (bytes.0 / requests.block_bytes()).max(1),
    };
    if requests.has_objects() && verb.sizes.iter().any(|size| matches!(size, Size::Bytes(_))) {
        return Err(Failure::Input(
            "this trace is of objects with sizes of their own; give --size in objects, a number without a unit"
                .to_owned(),
        ));
    }
    for size in verb.sizes.iter().filter(|size| in_blocks(size) > distinct) {
        let all = blocks(distinct);
        tracing::warn!("--size {size} is more than the trace touches ({all}); it is replayed with {all}");
    }
    let asked: Vec<u64> = match verb.sizes.is_empty() && verb.curve.is_none() {
        true => SIZES.map(|share| ((distinct as f64 * share) as u64).max(1)).to_vec(),
        false => verb.sizes.iter().map(in_blocks).collect(),
    };
    // A cache that holds everything is as good as any that is larger.
    let mut sizes: Vec<usize> = asked.into_iter().map(|size| size.min(distinct.max(1)) as usize).collect();
    sizes.sort_unstable();
    sizes.dedup();
    let mut policies = verb.policies.clone();
    policies.sort_unstable();
    policies.dedup();
    if policies.is_empty() {
        policies = PolicyKind::ALL.to_vec();
    }
    let cores = std::thread::available_parallelism().unwrap_or(NonZeroUsize::MIN);
    Ok(Plan {
        policies,
        sizes,
        flash_writes_per_day: Some(f64::from(verb.flash_cache_writes)),
        curve_points: verb.curve,
        threads: verb.threads.unwrap_or(cores),
    })
}

fn blocks(count: u64) -> String {
    format!("{} block{}", thousands(count as f64), plural(count))
}

fn plural(count: u64) -> &'static str {
    if count == 1 { "" } else { "s" }
}

fn describe(requests: &Requests) -> String {
    format!(
        "{} request{}, {} of them reads, of {} ({})",
        thousands(requests.count() as f64),
        plural(requests.count()),
        thousands(requests.reads() as f64),
        blocks(u64::from(requests.distinct())),
        ByteCount(requests.distinct_bytes())
    )
}

fn text(verb: &Replay, requests: &Requests, replayed: &Replayed) -> String {
    let mut text = format!("{}: {}\n", verb.trace.display(), describe(requests));
    if !replayed.tried.is_empty() {
        let mut rows = table(&["policy", "blocks", "missed", "missed bytes", "written", "requests/s"]);
        for tried in &replayed.tried {
            rows.add_row([
                tried.policy.to_owned(),
                thousands(tried.blocks as f64),
                percent(tried.served.miss_ratio),
                percent(tried.served.byte_miss_ratio),
                ByteCount(tried.served.written_bytes).to_string(),
                thousands(tried.requests_per_s),
            ]);
        }
        align_right(&mut rows, 1..6);
        text.push_str(&format!("\n{}\n{}", rendered(&rows), flash_budget(verb, requests, &replayed.tried)));
    }
    if !replayed.curve.is_empty() {
        text.push_str(&format!("\n{}\n", curve(replayed)));
    }
    text
}

/// What the budget of flash writes did to the flash cache, where it did something or could not.
fn flash_budget(verb: &Replay, requests: &Requests, tried: &[Tried]) -> String {
    let mut flash = tried.iter().filter(|tried| tried.policy == FLASH).peekable();
    if flash.peek().is_none() {
        return String::new();
    }
    if requests.times().is_none() {
        return "\nThe trace has no times, so no budget of writes limits the flash cache.\n".to_owned();
    }
    let refused: u64 = flash.map(|tried| tried.served.refused_blocks).max().unwrap_or(0);
    match refused {
        0 => String::new(),
        refused => format!(
            "\nThe budget of {} writes of its size a day kept up to {} out of the flash cache\n(--flash-cache-writes).\n",
            verb.flash_cache_writes,
            blocks(refused)
        ),
    }
}

/// A row for each size, a column for each policy.
fn curve(replayed: &Replayed) -> String {
    let mut policies: Vec<&str> = replayed.curve.iter().map(|point| point.policy).collect();
    policies.dedup();
    let mut sizes: Vec<usize> = replayed.curve.iter().map(|point| point.blocks).collect();
    sizes.sort_unstable();
    sizes.dedup();
    let mut rows = table(&[&["blocks", "sampled"], &policies[..]].concat());
    for size in sizes {
        let of = |policy: &str| {
            replayed
                .curve
                .iter()
                .find(|point| point.policy == policy && point.blocks == size)
                .map(|point| &point.sampled)
        };
        let share =
            policies.first().and_then(|policy| of(policy)).map_or(1.0, |sampled| sampled.sampled_share);
        let missed = policies.iter().map(|policy| of(policy).map_or_else(String::new, missed));
        rows.add_row([thousands(size as f64), percent(share)].into_iter().chain(missed));
    }
    align_right(&mut rows, 0..2 + policies.len());
    format!("missed blocks by size; ± is half of the 95 % interval\n\n{}", rendered(&rows))
}

fn missed(sampled: &Sampled) -> String {
    match sampled.half_width {
        0.0 => percent(sampled.miss_ratio),
        half_width => format!("{} ± {:.2}", percent(sampled.miss_ratio), half_width * 100.0),
    }
}

fn percent(share: f64) -> String {
    format!("{:.2} %", share * 100.0)
}

fn write_html(verb: &Replay, path: &Path, requests: &Requests, replayed: &Replayed) -> Result<(), Failure> {
    let title = ReplayTitle {
        trace: verb.trace.display().to_string(),
        description: describe(requests),
        block_bytes: requests.block_bytes(),
    };
    let page = replay_html(replayed, &title, &provenance()).map_err(failure)?;
    std::fs::write(path, page)
        .map_err(|source| Failure::run(LabError::Write { path: path.to_owned(), source }))
}

/// The command as it was given.
pub(super) fn provenance() -> Provenance {
    Provenance {
        command: std::iter::once("tier0".to_owned())
            .chain(std::env::args().skip(1))
            .collect::<Vec<_>>()
            .join(" "),
        version: env!("CARGO_PKG_VERSION").to_owned(),
        commit: commit(),
    }
}
