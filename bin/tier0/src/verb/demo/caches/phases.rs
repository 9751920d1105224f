//! The phases: what begins each, and what the array counts while it lasts.

use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::time::{Duration, Instant};

use serde::Serialize;
use tier0_api::{AdminReply, AdminRequest, FlashCacheStatus, PoolIo, ReadCacheStatus};
use tier0_stats::IoStats;
use tier0_units::Nanos;

use super::modelled;
use super::table::LiveTable;
use crate::control::{Addressee, misunderstood};
use crate::failure::Failure;

/// A row stands for so long, or for half of a phase where that is shorter.
const ROW: Nanos = Nanos::from_secs(1);
/// What is told of a phase's end is of this part of its rows, the last ones.
const END_PART: usize = 3;
/// A phase of the shortest demo: some dozens of reads of each disk.
const PHASE_MIN: Nanos = Nanos::from_millis(500);

/// Which caches the volume has.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum Phase {
    /// None for reads.
    Disks,
    /// The one in memory.
    Memory,
    /// The one on flash, too.
    Flash,
}

impl Phase {
    /// All, in the order in which they come.
    pub(super) const ALL: [Phase; 3] = [Phase::Disks, Phase::Memory, Phase::Flash];

    /// Its name in the tables.
    pub(super) fn name(self) -> &'static str {
        match self {
            Phase::Disks => "disks alone",
            Phase::Memory => "+ memory",
            Phase::Flash => "+ flash",
        }
    }

    /// How long it lasts, in percent of the demo's time: until its cache is about as full as the load makes it.
    fn percent(self) -> u64 {
        match self {
            Phase::Disks => 40,
            Phase::Memory => 70,
            Phase::Flash => 110,
        }
    }

    /// What begins it, and the command that does the same.
    pub(super) fn beginning(self) -> Option<(AdminRequest, String)> {
        let (volume, drive) = (modelled::VOLUME, modelled::FLASH_DRIVE);
        match self {
            Phase::Disks => None,
            Phase::Memory => Some((
                AdminRequest::VolumeCache { volume: volume.to_owned(), read: Some(true), write: None },
                format!("tier0 volume set array.toml {volume} cache.read=on"),
            )),
            Phase::Flash => Some((
                AdminRequest::PoolFlashCache {
                    pool: None,
                    size: modelled::FLASH_CACHE,
                    drives: vec![drive.to_owned()],
                },
                format!("tier0 pool flash-cache array.toml {} --drives {drive}", modelled::FLASH_CACHE),
            )),
        }
    }
}

/// How long each phase of a demo of this time lasts.
pub(super) fn times(demo: Nanos) -> [Nanos; 3] {
    Phase::ALL.map(|phase| Nanos(demo.0 / 100 * phase.percent()).max(PHASE_MIN))
}

/// What a phase came to.
#[derive(Serialize)]
pub(super) struct PhaseReport {
    /// Which one.
    pub(super) phase: Phase,
    /// Its end, when its cache is as warm as it gets.
    pub(super) at_end: Figures,
    /// The whole of it, row by row.
    rows: Vec<Figures>,
}

impl PhaseReport {
    /// A phase of one row.
    #[cfg(test)]
    pub(super) fn new(phase: Phase, row: Figures) -> PhaseReport {
        PhaseReport { phase, at_end: row.clone(), rows: vec![row] }
    }

    /// Reads from flash in all of it that took longer than the array waits for them.
    pub(super) fn flash_slow_reads(&self) -> u64 {
        self.rows.iter().map(|row| row.flash_slow_reads).sum()
    }
}

/// What the volume did in some time, as the array counts it.
#[derive(Clone, Serialize)]
pub(super) struct Figures {
    /// How long that is.
    pub(super) seconds: f64,
    /// Requests per second.
    pub(super) iops: f64,
    /// The mean latency of reads.
    pub(super) read_ns_mean: Option<u64>,
    /// Their 99th percentile.
    pub(super) read_ns_p99: Option<u64>,
    /// The mean latency of writes.
    pub(super) write_ns_mean: Option<u64>,
    /// Reads.
    reads: u64,
    /// Those that memory answered. While the read cache is off, the few that find what was written just now do not count.
    reads_from_memory: u64,
    /// Those that flash answered.
    reads_from_flash: u64,
    /// The others.
    reads_from_disks: u64,
    /// Reads from flash that took longer than the array waits for them, so that disks answered.
    flash_slow_reads: u64,
}

impl Figures {
    fn between(before: &Look, now: &Look) -> Figures {
        let io = now.io.since(&before.io);
        let seconds = Nanos(now.at_ns.saturating_sub(before.at_ns)).as_secs_f64().max(1e-9);
        let reads = io.read.count;
        let memory = now.read_cache.unwrap_or_default().since(&before.read_cache.unwrap_or_default());
        let flash = now.flash_cache.unwrap_or_default().since(&before.flash_cache.unwrap_or_default());
        // A read that is under way has been found already and is no answer yet.
        let reads_from_memory = memory.hits().min(reads);
        let reads_from_flash = flash.hits.min(reads - reads_from_memory);
        let nanos = |latency: Option<Nanos>| latency.map(|latency| latency.0);
        Figures {
            seconds,
            iops: (reads + io.write.count) as f64 / seconds,
            read_ns_mean: nanos(io.read.mean()),
            read_ns_p99: nanos(io.read.latencies.quantile(0.99)),
            write_ns_mean: nanos(io.write.mean()),
            reads,
            reads_from_memory,
            reads_from_flash,
            reads_from_disks: reads - reads_from_memory - reads_from_flash,
            flash_slow_reads: flash.slow_reads,
        }
    }

    /// From where reads were answered, in percent: memory, flash, disks.
    pub(super) fn shares(&self) -> [f64; 3] {
        [self.reads_from_memory, self.reads_from_flash, self.reads_from_disks]
            .map(|part| part as f64 * 100.0 / self.reads.max(1) as f64)
    }
}

/// Figures of a second in which all reads took as long, half of them answered by memory.
#[cfg(test)]
pub(super) fn figures(iops: f64, read_ns_mean: u64) -> Figures {
    Figures {
        seconds: 1.0,
        iops,
        read_ns_mean: Some(read_ns_mean),
        read_ns_p99: Some(read_ns_mean),
        write_ns_mean: Some(read_ns_mean),
        reads: 1000,
        reads_from_memory: 500,
        reads_from_flash: 250,
        reads_from_disks: 250,
        flash_slow_reads: 0,
    }
}

/// What the array has counted up to a moment.
pub(super) struct Look {
    at_ns: u64,
    io: IoStats,
    pub(super) read_cache: Option<ReadCacheStatus>,
    pub(super) flash_cache: Option<FlashCacheStatus>,
}

/// Asks the array what it has counted.
pub(super) fn look(server: &Addressee) -> Result<Look, Failure> {
    let AdminReply::Io(report) = server.ask(&AdminRequest::Io)? else { return Err(misunderstood()) };
    let at_ns = report.at_ns;
    let pool = report.pools.into_iter().next().ok_or_else(misunderstood)?;
    let PoolIo { volumes, read_cache, flash_cache, .. } = pool;
    let io = volumes.into_iter().next().ok_or_else(misunderstood)?.io;
    Ok(Look { at_ns, io, read_cache, flash_cache })
}

/// Has the volume read past the caches, as the first phase wants it.
pub(super) fn switch_off(server: &Addressee) -> Result<(), Failure> {
    let volume = modelled::VOLUME.to_owned();
    server.ask(&AdminRequest::VolumeCache { volume, read: Some(false), write: None }).map(drop)
}

/// Leads through the phases, from now on, while a load runs: it has ended when `has_ended` hears that nobody speaks.
pub(super) fn watch(
    server: &Addressee,
    times: [Nanos; 3],
    has_ended: &Receiver<()>,
    rows: &mut LiveTable,
) -> Result<Vec<PhaseReport>, Failure> {
    let mut course = Course { server, has_ended, rows, begins: now(), last: look(server)? };
    let mut reports = Vec::new();
    for (phase, time) in Phase::ALL.into_iter().zip(times) {
        match course.go_through(phase, time)? {
            Some(report) => reports.push(report),
            None => break,
        }
    }
    Ok(reports)
}

/// Where the watching is.
struct Course<'a> {
    server: &'a Addressee,
    has_ended: &'a Receiver<()>,
    rows: &'a mut LiveTable,
    /// When the phase that comes next begins.
    begins: Instant,
    last: Look,
}

impl Course<'_> {
    /// A phase to its end; none where the load has ended before.
    fn go_through(&mut self, phase: Phase, time: Nanos) -> Result<Option<PhaseReport>, Failure> {
        let server = self.server;
        std::thread::scope(|scope| {
            let beginning = phase.beginning();
            // Rows go on while it is done.
            let begun = beginning.map(|(request, command)| {
                self.rows.command(&command);
                let thread = std::thread::Builder::new().name("tier0-begin".into());
                thread.spawn_scoped(scope, move || server.ask(&request).map(drop)).map_err(|error| {
                    Failure::Run(format!("cannot start a thread: {error}; raise the limit of processes"))
                })
            });
            let report = self.rows_of(phase, time);
            if let Some(begun) = begun {
                begun?.join().expect("asking does not panic")?;
            }
            report
        })
    }

    fn rows_of(&mut self, phase: Phase, time: Nanos) -> Result<Option<PhaseReport>, Failure> {
        let count = (time.0 / ROW.0).max(2);
        let mut looks = vec![];
        let mut rows = Vec::new();
        for number in 1..=count {
            let at = self.begins + Duration::from_nanos(time.0 / count * number);
            if self.has_load_ended_by(at) {
                return Ok(None);
            }
            let now = look(self.server)?;
            let row = Figures::between(&self.last, &now);
            self.rows.push(phase, &row);
            rows.push(row);
            looks.push(std::mem::replace(&mut self.last, now));
        }
        self.begins += Duration::from_nanos(time.0);
        let end_rows = looks.len().div_ceil(END_PART);
        let at_end = Figures::between(&looks[looks.len() - end_rows], &self.last);
        Ok(Some(PhaseReport { phase, at_end, rows }))
    }

    /// Waits until `at`, or until the load ends.
    fn has_load_ended_by(&self, at: Instant) -> bool {
        let left = at.saturating_duration_since(now());
        !matches!(self.has_ended.recv_timeout(left), Err(RecvTimeoutError::Timeout))
    }
}

#[expect(clippy::disallowed_methods, reason = "the time of people, against which the modelled drives run")]
fn now() -> Instant {
    Instant::now()
}
