//! `tier0 lab replay --array`: a block trace on a modelled array, in virtual time.

use std::path::{Path, PathBuf};

use clap::Args;
use serde::Serialize;
use tier0_description::Description;
use tier0_lab::LabError;
use tier0_lab::report::{TimedTitle, timed_html, timed_terminal};
use tier0_lab::timed::{Pace, TimedOptions, TimedPlan, TimedReport, read_timed};
use tier0_units::ByteCount;

use super::replay::provenance;
use super::run::failure;
use crate::cli::Global;
use crate::driving::live_line;
use crate::failure::Failure;
use crate::output::{json, print, terminal_width, thousands};
use crate::verb::catalog::CatalogSource;

/// Speeds from one to the other are sensible.
const SPEEDS: std::ops::RangeInclusive<f64> = 0.001..=1000.0;

/// On which array, and how.
#[derive(Args, Debug)]
#[command(next_help_heading = "On a modelled array")]
pub(crate) struct Timed {
    /// Replay on the array of this array file in virtual time; its drives are models of the catalogue
    #[arg(long, value_name = "FILE",
          conflicts_with_all = ["policies", "sizes", "writes", "flash_cache_writes", "curve", "threads"])]
    pub(super) array: Option<PathBuf>,
    /// Issue requests at the times of the trace, this many times as fast
    #[arg(long, value_name = "FACTOR", default_value_t = 1.0, value_parser = parse_speed, requires = "array")]
    speed: f64,
    /// Ignore the times of the trace: keep this many requests outstanding
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=65_536), requires = "array",
          conflicts_with_all = ["speed", "outstanding"])]
    closed: Option<u32>,
    /// At most this many requests outstanding at the array; later ones wait in the host
    #[arg(long, value_name = "N", default_value_t = 256, value_parser = clap::value_parser!(u32).range(1..=65_536),
          requires = "array")]
    outstanding: u32,
    /// Volume of the array for the trace [default: its only volume, or those of equal names]
    #[arg(long, value_name = "NAME", requires = "array")]
    volume: Option<String>,
    /// Volume of the array for one volume of the trace; repeatable
    #[arg(long = "map", value_name = "TRACED=NAME", value_parser = parse_map, requires = "array")]
    maps: Vec<(String, String)>,
    /// Wrap offsets beyond the end of a volume to its start
    #[arg(long, requires = "array")]
    fold: bool,
    /// Seed of the simulation
    #[arg(long, value_name = "N", default_value_t = 1, requires = "array")]
    seed: u64,
    #[command(flatten)]
    pub(super) catalog: CatalogSource,
}

fn parse_speed(text: &str) -> Result<f64, String> {
    let speed = text.parse::<f64>().ok().filter(|speed| SPEEDS.contains(speed));
    speed.ok_or_else(|| format!("a speed is between {} and {}", SPEEDS.start(), SPEEDS.end()))
}

fn parse_map(text: &str) -> Result<(String, String), String> {
    // Names of traced volumes may have the sign, those of an array's volumes do not.
    let pair = text.rsplit_once('=').filter(|(traced, name)| !traced.is_empty() && !name.is_empty());
    let (traced, name) =
        pair.ok_or("a volume of the trace, =, and a volume of the array are needed, such as usr.0=data")?;
    Ok((traced.to_owned(), name.to_owned()))
}

/// Where the report goes.
pub(super) struct Output<'a> {
    pub(super) html: Option<&'a Path>,
    pub(super) json: bool,
}

/// What JSON has.
#[derive(Serialize)]
struct Printed<'a> {
    trace: &'a Path,
    format: String,
    array: &'a str,
    #[serde(flatten)]
    report: &'a TimedReport,
}

/// Replays it.
pub(super) fn run(
    verb: &Timed,
    array: &Path,
    path: &Path,
    options: &TimedOptions,
    output: &Output<'_>,
    global: &Global,
) -> Result<(), Failure> {
    let catalog = verb.catalog.load()?;
    let system = Description::read_with(array, &catalog).map_err(Failure::input)?;
    let bar = live_line(global.quiet == 0);
    let trace = read_timed(path, options, |count| {
        bar.set_message(format!("reading, {} requests", thousands(count as f64)));
    });
    let trace = trace.map_err(|error| failure(error.into()))?;
    for note in &trace.notes {
        tracing::warn!("{}: {note}", path.display());
    }
    if trace.numbers_blocks {
        let block = ByteCount(options.block_bytes);
        tracing::warn!("{}: blocks are taken to have {block} (--block)", path.display());
    }
    let plan = TimedPlan {
        pace: verb.closed.map_or(Pace::Speed(verb.speed), Pace::Closed),
        outstanding_max: verb.outstanding,
        volume: verb.volume.clone(),
        map: verb.maps.clone(),
        fold: verb.fold,
        seed: verb.seed,
    };
    let format = trace.format.to_string();
    let line = bar.clone();
    let report = trace.play(&plan, &system, &catalog, move |what| line.set_message(what));
    bar.finish_and_clear();
    let report = report.map_err(failure)?;
    for folded in report.placed.iter().filter(|placed| placed.folded_bytes > 0) {
        tracing::warn!(
            "traced volume {:?} reaches {} beyond the end of volume {:?}; these places were wrapped to its start (--fold), where \
             others lie too",
            folded.traced_volume,
            ByteCount(folded.folded_bytes),
            folded.volume
        );
    }
    let title = TimedTitle { trace: path.display().to_string(), array: system.name.clone() };
    if let Some(page) = output.html {
        let text = timed_html(&report, &title, &provenance()).map_err(failure)?;
        std::fs::write(page, text)
            .map_err(|source| Failure::run(LabError::Write { path: page.to_owned(), source }))?;
    }
    if output.json {
        return print(&json(&Printed { trace: path, format, array: &system.name, report: &report }));
    }
    print(&timed_terminal(&report, &title, terminal_width()))
}
