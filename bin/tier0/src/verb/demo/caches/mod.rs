//! What caches are worth: an array of modelled disks under one load, first alone, then with the read cache in memory, then
//! with one on flash, both added while the load runs.
//!
//! 1. An array of modelled disks and one modelled SSD, its data in sparse files, written at the speed of the files.
//! 2. The same files behind the models, against the wall clock, served and loaded through NBD.
//! 3. Three phases. What begins a phase goes through the control socket, as the verbs of the program do; so does what the
//!    tables show.
//!
//! Invariants: all figures are counted by the array while the load runs; nothing of it outlives the demo unless its
//! directory is kept.

mod modelled;
mod phases;
mod table;

use std::path::Path;
use std::rc::Rc;

use indicatif::ProgressBar;
use serde::Serialize;
use tier0_api::AdminRequest;
use tier0_array::open::{OpenArray, OpenOptions, open};
use tier0_description::Description;
use tier0_nbd::client::{Client, ClientOptions};
use tier0_nbd::protocol::NbdUri;
use tier0_units::{Nanos, WriteCache};
use tier0_workload::spec::{Arrival, BlockMix, LoadSpec, Pattern, RunLimits, StreamSpec, VerifySpec};
use tier0_workload::stats::LoadReport;

pub(super) use self::modelled::check;
use self::phases::PhaseReport;
use self::table::LiveTable;
use super::served::{Then, while_served};
use crate::control::Addressee;
use crate::driving::{REFRESH, Shown, drive, live_line, real_world, verdict};
use crate::failure::Failure;
use crate::mounting::uri;
use crate::output::print;
use crate::signals::Signals;

/// Requests under way: some for each disk, so that it can choose.
const QUEUE_DEPTH: u32 = 32;
/// Reads in percent.
const READ_PERCENT: f64 = 90.0;
/// How skewed it is. With more, the disks' own buffers have what is hot.
const ZIPF: f64 = 0.8;
/// The load goes on for so long after the last look, so that no look finds it at its end.
const SLACK: Nanos = Nanos::from_millis(300);

/// The result for JSON.
#[derive(Serialize)]
pub(super) struct Caches {
    /// The drives that hold the data, in the catalogue.
    disks: &'static str,
    /// How many.
    disks_count: usize,
    /// The drive of the flash cache, in the catalogue.
    flash: &'static str,
    /// What was read and written.
    data_bytes: u64,
    /// What the read cache in memory may hold.
    memory_bytes: u64,
    /// What the flash cache may hold.
    flash_bytes: u64,
    /// Parts of the flash drive that failed or were too slow, so that they were switched off.
    flash_devices_off: u64,
    /// How many processes wanted a core of this machine, the mean of the last minute; none where it does not say.
    load_average: Option<f64>,
    /// What each phase came to, in their order.
    phases: Vec<PhaseReport>,
}

/// How to show it.
pub(super) struct Show<'a> {
    /// Where its files go; made if it is missing.
    pub(super) directory: &'a Path,
    /// The time of the first part, after which that of this one goes.
    pub(super) time: Nanos,
    /// Whether tables are printed.
    pub(super) tables: bool,
    /// Whether it is shown how preparations go.
    pub(super) progress: bool,
    /// What ends it early.
    pub(super) signals: &'a Signals,
}

/// Shows it.
///
/// # Errors
/// What goes wrong; [`Failure::Interrupted`] where a signal came.
pub(super) fn show(show: &Show<'_>) -> Result<Caches, Failure> {
    let bar = live_line(show.progress);
    let prepared = prepare(show, &bar);
    if prepared.is_err() {
        bar.finish_and_clear();
    }
    let (description, array) = prepared?;
    bar.set_message("starting the modelled array");
    let server = Addressee::of(&modelled::file(show.directory))?;
    let control = description.control.clone();
    while_served(&array, &description, control, show.signals, Then::End, |bound| {
        bar.finish_and_clear();
        let loaded = uri(&bound[0], modelled::VOLUME);
        run(show, &server, &loaded)
    })
}

/// The array, its volume written, behind its models.
fn prepare(show: &Show<'_>, bar: &ProgressBar) -> Result<(Description, OpenArray), Failure> {
    bar.set_message("making an array of modelled disks");
    let description = modelled::make(show.directory)?;
    let plain = modelled::without_models(&description);
    let mut files = open(&plain, &OpenOptions::default())?;
    files.adopt_cores()?;
    let server = Addressee::of(&modelled::file(show.directory))?;
    while_served(&files, &plain, plain.control.clone(), show.signals, Then::End, |bound| {
        let write_cache = |write| {
            let volume = modelled::VOLUME.to_owned();
            server.ask(&AdminRequest::VolumeCache { volume, read: None, write: Some(write) }).map(drop)
        };
        // Nothing of this is to survive yet.
        write_cache(WriteCache::Volatile)?;
        let filled =
            load(&uri(&bound[0], modelled::VOLUME), fill(), show.signals, Shown::on(bar).listener())?;
        verdict(&filled)?;
        // It is empty when the answer comes: what waits for disks in the phases is theirs alone.
        write_cache(WriteCache::Off)?;
        write_cache(WriteCache::Durable)
    })?;
    drop(files);
    bar.set_message("starting the modelled array");
    let mut array = open(&description, &OpenOptions::default())?;
    array.adopt_cores()?;
    Ok((description, array))
}

/// The phases, under the load.
fn run(show: &Show<'_>, server: &Addressee, target: &NbdUri) -> Result<Caches, Failure> {
    phases::switch_off(server)?;
    if show.tables {
        print(&table::introduction(show.directory))?;
    }
    let times = phases::times(show.time);
    let total = times.iter().fold(SLACK, |sum, time| sum.saturating_add(*time));
    let mut rows = LiveTable::new(show.tables, &times);
    std::thread::scope(|scope| {
        let (running, has_ended) = std::sync::mpsc::channel::<()>();
        let loading = move || {
            // Dropped when the load has ended.
            let _running = running;
            load(target, skewed(total), show.signals, |_| ())
        };
        let thread = std::thread::Builder::new().name("tier0-load".into());
        let loading = thread.spawn_scoped(scope, loading).map_err(|error| {
            Failure::Run(format!("cannot start a thread: {error}; raise the limit of processes"))
        })?;
        let watched = phases::watch(server, times, &has_ended, &mut rows);
        let loaded = loading.join().expect("the load does not panic");
        verdict(&loaded?)?;
        let phases = watched?;
        let caches = Caches::of(server, phases)?;
        if show.tables {
            print(&table::summary(&caches))?;
        }
        Ok(caches)
    })
}

impl Caches {
    fn of(server: &Addressee, phases: Vec<PhaseReport>) -> Result<Caches, Failure> {
        let io = phases::look(server)?;
        Ok(Caches {
            disks: modelled::DISK,
            disks_count: modelled::DISKS,
            flash: modelled::FLASH,
            data_bytes: modelled::DATA.0,
            memory_bytes: io.read_cache.map_or(0, |cache| cache.room_bytes),
            flash_bytes: io.flash_cache.map_or(0, |cache| cache.room_bytes),
            flash_devices_off: io.flash_cache.map_or(0, |cache| cache.devices_off),
            load_average: load_average(),
            phases,
        })
    }
}

/// The first figure of the kernel's load averages.
fn load_average() -> Option<f64> {
    let text = std::fs::read_to_string("/proc/loadavg").ok()?;
    text.split_whitespace().next()?.parse().ok()
}

/// Writes each page once, one after the other: several at once would not end together.
fn fill() -> LoadSpec {
    let stream = StreamSpec { read_percent: 0.0, pattern: Pattern::Sequential, ..pages() };
    LoadSpec::single(stream, RunLimits::ios(modelled::PAGES))
}

/// The load of the phases.
fn skewed(time: Nanos) -> LoadSpec {
    let stream = StreamSpec {
        read_percent: READ_PERCENT,
        pattern: Pattern::Zipf { theta: ZIPF },
        arrival: Arrival::queue_depth(QUEUE_DEPTH),
        ..pages()
    };
    LoadSpec {
        verify: Some(VerifySpec { fresh: false, sweep: false }),
        seed: u64::from(std::process::id()),
        ..LoadSpec::single(stream, RunLimits::time(time))
    }
}

/// Requests of the pages.
fn pages() -> StreamSpec {
    StreamSpec {
        block: BlockMix::single(modelled::PAGE),
        alignment: Some(modelled::STRETCH),
        ..StreamSpec::default()
    }
}

/// Drives a load through NBD.
fn load(
    target: &NbdUri,
    load: LoadSpec,
    signals: &Signals,
    listener: impl FnMut(&tier0_workload::stats::Progress) + 'static,
) -> Result<LoadReport, Failure> {
    let runtime = real_world()?;
    let world = runtime.world().clone();
    let (target, signals) = (target.clone(), signals.clone());
    runtime.run(async move {
        let client =
            Client::connect(&world, &target, &ClientOptions::default()).await.map_err(Failure::run)?;
        let report = drive(&world, Rc::new(client.clone()), load, &signals, REFRESH, listener).await;
        client.close().await;
        report
    })
}
