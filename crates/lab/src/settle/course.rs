//! Whether a measurement was of a steady state: how its write cache, its hit rates and its latencies went meanwhile.

use std::cell::RefCell;
use std::rc::Rc;

use serde::Serialize;
use tier0_array::Volume;
use tier0_units::Nanos;
use tier0_workload::run::{LoadRun, RunError};
use tier0_workload::spec::LoadSpec;
use tier0_workload::stats::{LoadReport, Phase, Progress};
use tier0_world::World;

use super::array::lookups;
use super::modelled::CacheLookups;
use super::run_in::write_level;

/// A write cache that rises or falls by more than this share of what is written is not in balance,
const BALANCE: f64 = 0.2;
/// if that is more than this of its size.
const LEVEL_MOVE_MIN: f64 = 0.05;
/// A hit rate that moves by more from the first half of a measurement to the second is not steady.
const HIT_RATE_MOVE_MAX: f64 = 0.02;
/// Likewise a mean latency, as a share of it.
const LATENCY_MOVE_MAX: f64 = 0.2;
/// So few answers in a half say nothing.
const IOS_MIN: f64 = 500.0;

/// How often a measurement is looked at.
const LOOK: Nanos = Nanos::from_millis(50);

/// Runs `load` on `volume` and tells how that went. `listener` is told the progress; `look` says whether to go on.
///
/// # Errors
/// The load does not fit.
pub async fn measure(
    world: &World,
    volume: &Volume,
    load: LoadSpec,
    look: impl Fn(&str) -> bool + 'static,
    mut listener: impl FnMut(&Progress) + 'static,
) -> Result<(LoadReport, Course), RunError> {
    let run = LoadRun::new(world, Rc::new(volume.clone()), load)?;
    let looks: Rc<RefCell<Vec<LookAt>>> = Rc::default();
    let (stop, seen, volume) = (run.stop_handle(), looks.clone(), volume.clone());
    let watch = move |progress: &Progress| {
        if progress.phase == Phase::Measuring {
            let before = seen.borrow().last().map_or(0.0, |look| look.seconds);
            let now = LookAt::at(&volume, progress, before);
            seen.borrow_mut().push(now);
        }
        listener(progress);
        if !look("measuring") {
            stop.stop();
        }
    };
    let report = run.on_progress(LOOK, watch).run().await;
    let course = Course::of(&looks.borrow());
    Ok((report, course))
}

/// The array at one moment of a measurement.
#[derive(Clone, Copy)]
struct LookAt {
    seconds: f64,
    level: f64,
    /// What had been written, in sizes of the log.
    written: f64,
    lookups: CacheLookups,
    /// Answers since the look before, and the sum of the mean latencies of reads and of writes among them, milliseconds.
    ios: f64,
    latency_ms: f64,
}

impl LookAt {
    fn at(volume: &Volume, progress: &Progress, before: f64) -> LookAt {
        let seconds = progress.elapsed.as_secs_f64();
        let [level, written] = write_level(volume);
        let latencies = [progress.read_latency, progress.write_latency];
        LookAt {
            seconds,
            level,
            written,
            lookups: lookups(volume),
            ios: progress.iops * (seconds - before),
            latency_ms: latencies.iter().flatten().map(|latency| latency.as_secs_f64() * 1e3).sum(),
        }
    }
}

/// How a measurement went.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Course {
    /// Whether it was long enough to tell.
    pub is_judged: bool,
    /// Reads that were served from the read cache in memory, as a share of those that looked there; nothing where none did.
    pub memory_hits: Option<f64>,
    /// Reads that were served from the flash cache, as a share of those that looked there: in memory was not all of them.
    pub flash_hits: Option<f64>,
    /// What moved from its beginning to its end, in words; nothing of a steady state.
    pub moved: Vec<String>,
}

impl Course {
    fn of(looks: &[LookAt]) -> Course {
        let [first, .., last] = looks else { return Course::default() };
        let lookups = last.lookups.since(first.lookups);
        let middle = &looks[looks.len() / 2];
        let halves = [middle.lookups.since(first.lookups), last.lookups.since(middle.lookups)];
        let rates = |of: fn(CacheLookups) -> Option<f64>| [of(halves[0]), of(halves[1])];
        let moved = [
            level_moved(looks),
            rate_moved("read cache in memory", rates(|lookups| lookups.memory.rate())),
            rate_moved("flash cache", rates(|lookups| lookups.flash.rate())),
            latency_moved(looks),
        ];
        Course {
            is_judged: true,
            memory_hits: lookups.memory.rate(),
            flash_hits: lookups.flash.rate(),
            moved: moved.into_iter().flatten().collect(),
        }
    }

    /// Whether nothing moved; nothing where it was too short to tell.
    pub fn is_steady(&self) -> Option<bool> {
        self.is_judged.then_some(self.moved.is_empty())
    }

    /// The hit rates in words; nothing where no read looked into a cache.
    pub fn hit_rates(&self) -> Option<String> {
        let words = |name: &str, rate: Option<f64>| Some(format!("{name} {:.1} %", rate? * 100.0));
        let rates = [words("in memory", self.memory_hits), words("on flash", self.flash_hits)];
        let rates: Vec<String> = rates.into_iter().flatten().collect();
        (!rates.is_empty()).then(|| format!("hit rate {}", rates.join(", ")))
    }
}

fn level_moved(looks: &[LookAt]) -> Option<String> {
    let [first, .., last] = looks else { return None };
    // The means of the halves: single levels jump, and go in waves.
    let (earlier, later) = looks.split_at(looks.len() / 2);
    let mean = |looks: &[LookAt]| looks.iter().map(|look| look.level).sum::<f64>() / looks.len() as f64;
    let (from, to) = (mean(earlier), mean(later));
    let (rise, written) = (2.0 * (to - from), last.written - first.written);
    let moved = rise.abs() > LEVEL_MOVE_MIN && rise.abs() > BALANCE * written;
    let verb = if rise > 0.0 { "rose" } else { "fell" };
    moved.then(|| {
        format!(
            "the write cache {verb} from {:.0} % in the first half to {:.0} % in the second",
            from * 100.0,
            to * 100.0
        )
    })
}

fn rate_moved(name: &str, [first, second]: [Option<f64>; 2]) -> Option<String> {
    let (first, second) = (first?, second?);
    let verb = if second > first { "rose" } else { "fell" };
    let moved = (second - first).abs() > HIT_RATE_MOVE_MAX;
    let [from, to] = [first, second].map(|rate| rate * 100.0);
    moved.then(|| format!("the hit rate of the {name} {verb} from {from:.1} % to {to:.1} %"))
}

fn latency_moved(looks: &[LookAt]) -> Option<String> {
    let mean = |looks: &[LookAt]| {
        let ios: f64 = looks.iter().map(|look| look.ios).sum();
        let sum: f64 = looks.iter().map(|look| look.ios * look.latency_ms).sum();
        (ios >= IOS_MIN).then(|| sum / ios)
    };
    // The first look has what was answered before the measurement, too.
    let (first, second) = looks[1..].split_at((looks.len() - 1) / 2);
    let (first, second) = (mean(first)?, mean(second)?);
    let moved = (second - first) / first.max(second);
    let verb = if moved > 0.0 { "rose" } else { "fell" };
    (moved.abs() > LATENCY_MOVE_MAX)
        .then(|| format!("latencies {verb} by {:.0} %", 100.0 * (second / first - 1.0).abs()))
}

#[cfg(test)]
mod tests {
    use super::super::modelled::Lookups;
    use super::*;

    fn look(number: u64) -> LookAt {
        LookAt {
            seconds: number as f64,
            level: 0.5,
            written: number as f64,
            lookups: CacheLookups {
                memory: Lookups::default(),
                flash: Lookups { hits: number * 60, all: number * 100 },
            },
            ios: 1000.0,
            latency_ms: 5.0,
        }
    }

    fn course(change: impl Fn(u64, &mut LookAt)) -> Course {
        let looks = (0..10).map(|number| {
            let mut look = look(number);
            change(number, &mut look);
            look
        });
        Course::of(&looks.collect::<Vec<_>>())
    }

    #[test]
    fn what_stays_is_steady() {
        let steady = course(|_, _| {});
        assert_eq!(steady.is_steady(), Some(true), "{steady:?}");
        assert_eq!(Course::of(&[look(0)]).is_steady(), None, "one look tells nothing");
        assert_eq!((steady.memory_hits, steady.flash_hits), (None, Some(0.6)));
        assert_eq!(steady.hit_rates().as_deref(), Some("hit rate on flash 60.0 %"));
    }

    #[test]
    fn each_that_moves_is_named() {
        let filling =
            course(|number, look| (look.level, look.written) = (0.1 * number as f64, 0.1 * number as f64));
        assert_eq!(filling.moved, ["the write cache rose from 20 % in the first half to 70 % in the second"]);
        let warming = course(|number, look| look.lookups.flash.hits = number * number * 10);
        assert!(warming.moved[0].starts_with("the hit rate of the flash cache rose from"), "{warming:?}");
        let slowing = course(|number, look| look.latency_ms = 1.0 + number as f64);
        assert!(slowing.moved[0].starts_with("latencies rose by"), "{slowing:?}");
    }
}
