//! `tier0 demo`: the main job in a minute, without root, server or devices.
//!
//! 1. A RAID 10 array on files in a directory, served over NBD.
//! 2. A database's load through the socket, every block checked; its figures second by second.
//! 3. The same array on drives of the catalogue, in virtual time, under the same load, beside what was measured.
//! 4. What caches are worth: modelled disks against the wall clock under one load, to which caches are added.
//! 5. What a tier is worth: hot extents of disks that move to flash, in virtual time.
//! 6. What flash is worth to a database: alternatives, predicted.
//! 6. How to mount the first array. It stays up until Ctrl-C.
//!
//! Invariants: it writes only into its directory; a temporary directory is removed when it ends, however it ends, or by
//! the next demo where it was killed.

mod caches;
mod compare;
mod database;
mod files;
mod leftovers;
mod served;
mod table;
mod tier;

use std::io::IsTerminal;
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use clap::Args;
use serde::Serialize;
use tier0_array::open::{CreateOptions, OpenArray, OpenOptions, create, open};
use tier0_description::Description;
use tier0_nbd::client::{Client, ClientOptions};
use tier0_nbd::protocol::NbdUri;
use tier0_units::Nanos;
use tier0_workload::spec::{Arrival, LoadSpec, RunLimits, StreamSpec, VerifySpec, parse_duration};
use tier0_workload::stats::LoadReport;
use tier0_world::net::PeerAddress;

use self::caches::Caches;
use self::compare::Prediction;
use self::database::Database;
use self::files::Place;
use self::served::{Then, while_served};
use self::tier::Tier;
use crate::cli::Global;
use crate::driving::{drive, live_line, real_world, verdict};
use crate::failure::Failure;
use crate::logging;
use crate::mounting::{command, commands, uri};
use crate::output::{json, print, wrapped_to};
use crate::signals::Signals;

const EXAMPLES: &str = "\
Examples:
  tier0 demo
      run the demo, then keep the array running until Ctrl-C
  tier0 demo --once
      end after the tables
  tier0 demo --once --no-predictions --no-caches --no-tier --no-database
      only the array of files and its benchmark
  tier0 demo --dir ./my-demo --once
      keep the files; \"tier0 serve ./my-demo/array.toml\" serves them again
  tier0 demo --once --time 2s --json
      the figures as JSON";

/// What the demo prints fits a usual terminal.
const COLUMNS: usize = 80;

/// Outstanding requests of the demo's load: a busy small database.
const QUEUE_DEPTH: u32 = 32;
/// Reads in percent: the share that stands for most OLTP.
const READ_PERCENT: f64 = 70.0;

/// A prediction is of so long at the least: some hundred requests of the slowest drives.
const PREDICTED_MIN: Nanos = Nanos::from_secs(1);

/// A demo that is asked to end takes no longer: nothing of it is worth waiting for.
const END_LIMIT: Duration = Duration::from_secs(3);

/// How long a row of the live table stands for.
const ROW: Nanos = Nanos::from_secs(1);

/// Shows the main job.
#[derive(Args, Debug)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Demo {
    /// Keep the array's files in this directory; the volume of an earlier demo there is overwritten
    /// [default: a temporary directory, removed at the end]
    #[arg(long, value_name = "DIR")]
    dir: Option<PathBuf>,
    /// Duration of the benchmark. The predictions take about 20 s more, and the cache part somewhat more than twice this
    /// time
    #[arg(long, value_name = "TIME", default_value = "10s", value_parser = parse_time)]
    time: Nanos,
    /// Skip the predictions
    #[arg(long)]
    no_predictions: bool,
    /// Skip the cache part
    #[arg(long)]
    no_caches: bool,
    /// Skip the tier part, which takes some seconds
    #[arg(long)]
    no_tier: bool,
    /// Skip the database part, which takes some seconds
    #[arg(long)]
    no_database: bool,
    /// Exit after the tables instead of serving until Ctrl-C
    #[arg(long)]
    once: bool,
    /// Print JSON, without the live table
    #[arg(long)]
    json: bool,
}

fn parse_time(text: &str) -> Result<Nanos, String> {
    match parse_duration(text).map_err(|error| error.to_string())? {
        Nanos::ZERO => Err("a time of zero measures nothing; use a longer one, such as 10s".to_owned()),
        time => Ok(time),
    }
}

/// The result for JSON.
#[derive(Serialize)]
struct Outcome<'a> {
    address: String,
    measured: &'a LoadReport,
    #[serde(skip_serializing_if = "<[Prediction]>::is_empty")]
    predicted: &'a [Prediction],
    #[serde(skip_serializing_if = "Option::is_none")]
    caches: Option<&'a Caches>,
    #[serde(skip_serializing_if = "Option::is_none")]
    tier: Option<&'a Tier>,
    #[serde(skip_serializing_if = "Option::is_none")]
    database: Option<&'a Database>,
}

/// Shows it.
pub(crate) fn run(verb: &Demo, global: &Global) -> Result<(), Failure> {
    let temporary = Arc::new(OnceLock::<PathBuf>::new());
    let (told, to_remove) = (temporary.clone(), temporary.clone());
    let tell = move || logging::say(&ending(told.get().map(PathBuf::as_path)));
    let remove = move || {
        // What is still written to goes too: its names are gone, and with the process its space.
        if let Some(directory) = to_remove.get() {
            let _ = std::fs::remove_dir_all(directory);
        }
    };
    let signals = Signals::catch_within(END_LIMIT, tell, remove)?;
    if verb.dir.is_none() {
        leftovers::remove(&std::env::temp_dir()).iter().for_each(|told| tracing::warn!("{told}"));
    }
    let place = Place::prepare(verb.dir.as_deref())?;
    if !place.is_kept() {
        temporary.get_or_init(|| place.directory().to_owned());
    }
    let description = place.describe()?;
    let mut array = match place.is_new() {
        true => create(&description, CreateOptions::default())?,
        false => open(&description, &OpenOptions::default())?,
    };
    array.adopt_cores()?;
    if !verb.no_caches {
        // Before the user has waited for the rest.
        caches::check(&place.of_caches())?;
    }
    let then = if verb.once { Then::End } else { Then::ServeOn };
    let control = place.control(&description);
    let served = while_served(&array, &description, control, &signals, then, |bound| {
        show(verb, global, &description, &array, bound, &place, &signals)
    });
    match served {
        Err(Failure::Interrupted) if signals.raised() => Ok(()),
        served => served,
    }
}

fn show(
    verb: &Demo,
    global: &Global,
    description: &Description,
    array: &OpenArray,
    bound: &[PeerAddress],
    place: &Place,
    signals: &Signals,
) -> Result<(), Failure> {
    let uris: Vec<NbdUri> = bound.iter().map(|address| uri(address, files::VOLUME)).collect();
    if !verb.json {
        print(&introduction(array, place, &uris))?;
    }
    let measured = measure(verb, &uris[0], signals)?;
    verdict(&measured)?;
    if !verb.json {
        print(&format!("{}\n", table::verified(&measured)))?;
    }
    let bar = live_line(global.quiet == 0 && !verb.json);
    let predict = || compare::predict(description, load(verb.time.max(PREDICTED_MIN)), signals, &bar);
    let predicted = if verb.no_predictions { Ok(Vec::new()) } else { predict() };
    bar.finish_and_clear();
    let predicted = predicted?;
    if !verb.json {
        print(&table::side_by_side(&measured, &predicted))?;
    }
    let show = || {
        caches::show(&caches::Show {
            directory: &place.of_caches(),
            time: verb.time,
            tables: !verb.json,
            progress: global.quiet == 0 && !verb.json,
            signals,
        })
    };
    let caches = (!verb.no_caches).then(show).transpose()?;
    let tier = (!verb.no_tier).then(|| tier::show(!verb.json, signals)).transpose()?;
    let progress = global.quiet == 0 && !verb.json;
    let database = || database::show(!verb.json, progress, signals);
    let database = (!verb.no_database).then(database).transpose()?;
    if verb.json {
        let address = uris[0].to_string();
        let (caches, tier, database) = (caches.as_ref(), tier.as_ref(), database.as_ref());
        let (measured, predicted) = (&measured, predicted.as_slice());
        return print(&json(&Outcome { address, measured, predicted, caches, tier, database }));
    }
    if !verb.once {
        print(&staying(place, place.control(description).is_some(), &uris[0]))?;
    }
    Ok(())
}

/// What a signal has begun.
fn ending(temporary: Option<&Path>) -> String {
    // A terminal shows ^C where the cursor is.
    let begin = if std::io::stderr().is_terminal() { "\n" } else { "" };
    let files = match temporary {
        Some(directory) => format!("removes {}", directory.display()),
        None => "keeps its files".to_owned(),
    };
    format!("{begin}tier0: the demo ends its load and its server, and {files}")
}

/// How to use the array that stays.
fn staying(place: &Place, can_be_asked: bool, uri: &NbdUri) -> String {
    let file = place.file().display().to_string();
    let ask = |verb: &str, more: &str| {
        let parts = [format!("tier0 {verb}"), file.clone(), more.to_owned()];
        let parts: Vec<String> = parts.into_iter().filter(|part| !part.is_empty()).collect();
        format!("{}\n", command(&parts))
    };
    let ask = match can_be_asked {
        true => format!("To ask it:\n{}{}\n", ask("status", ""), ask("iostat", "1")),
        false => String::new(),
    };
    let kept = if place.is_kept() { "." } else { " and removes its files." };
    format!("\nThe array of files is up. To use it:\n{}\n{ask}Ctrl-C ends it{kept}\n", commands(uri))
}

fn introduction(array: &OpenArray, place: &Place, uris: &[NbdUri]) -> String {
    let pool = array.pools().next().expect("the demo's array has a pool");
    let size = array.volumes().next().expect("and a volume").1;
    let uris: Vec<String> = uris.iter().map(|uri| format!("  {uri}\n")).collect();
    let array = format!(
        "A {} array of {} files in {}, its volume of {size} served over NBD at",
        pool.level,
        pool.drives,
        place.directory().display()
    );
    let load = format!(
        "Through that socket: 8 KiB random, {READ_PERCENT:.0} % reads, {QUEUE_DEPTH} outstanding, every block stamped and \
         checked."
    );
    format!("{}\n{}\n{}\n\n", paragraph(&array), uris.concat(), paragraph(&load))
}

/// Text on lines of [`COLUMNS`].
fn paragraph(text: &str) -> String {
    wrapped_to(text, "", COLUMNS)
}

/// The demo's load.
fn load(time: Nanos) -> LoadSpec {
    let stream = StreamSpec {
        read_percent: READ_PERCENT,
        arrival: Arrival::queue_depth(QUEUE_DEPTH),
        ..StreamSpec::default()
    };
    LoadSpec { warm_up: Nanos(time.0 / 10), ..LoadSpec::single(stream, RunLimits::time(time)) }
}

fn measure(verb: &Demo, uri: &NbdUri, signals: &Signals) -> Result<LoadReport, Failure> {
    let load = LoadSpec {
        verify: Some(VerifySpec { fresh: false, sweep: true }),
        // Blocks that an earlier demo left in a kept directory must not pass for this one's.
        seed: u64::from(std::process::id()),
        ..load(verb.time)
    };
    load.validate().map_err(Failure::input)?;
    let runtime = real_world()?;
    let world = runtime.world().clone();
    let (uri, signals, shown) = (uri.clone(), signals.clone(), !verb.json);
    runtime.run(async move {
        let client = Client::connect(&world, &uri, &ClientOptions::default()).await.map_err(Failure::run)?;
        let mut rows = table::LiveTable::new(shown);
        let listener = move |progress: &_| rows.push(progress);
        let report = drive(&world, std::rc::Rc::new(client.clone()), load, &signals, ROW, listener).await;
        client.close().await;
        report
    })
}
