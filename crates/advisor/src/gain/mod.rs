//! What a move to flash brings, by mean value analysis of what was measured.
//!
//! The measured period is one unit of throughput: sessions at work are those at the processors (the database's processor time, or
//! busy share × cores where that was not measured) and those that wait for I/O (the sum of waits over the time, Little's law), or
//! what the database itself counts as active. From that follow the demands of a closed network; then the moved I/Os take the time
//! of flash, and the network is solved again.
//!
//! What the measurements leave open makes the interval: whether what stays on disks gets faster when others leave (disks as queues)
//! or not (as a delay); whether sessions wait for writes of data (they do not where a background writer does them) or not; whether
//! other work on the same host grows with the database's (a load generator, the array) or gives way to it (a backup); and whether
//! sessions that neither compute nor wait for storage wait for others that do, and so for less time afterwards, or for something
//! else. They hold row locks and write the log for one another, so the expected gain takes the former; and it takes that other work
//! gives way, or the mean of both where all processors are at work. No answer exceeds what the processors can do in all of their time.

mod mva;

pub use mva::{Flow, Network};

use serde::{Deserialize, Serialize};

use crate::evidence::{Counter, Evidence, Kind, Object};

/// Milliseconds of a random I/O of a disk that has nothing else to do: 3.4 ms of seek and 2 ms of half a revolution at 15,000 per
/// minute, 4.2 and 3 ms at 10,000. It splits measured disk times into service and queueing.
const DISK_SERVICE_MS: f64 = 6.0;
/// Processors that are so busy are all at work.
const FULL: f64 = 0.95;
/// Rounds in which shorter waits for one another are found; each comes nearer by more than half.
const ROUNDS: usize = 20;
/// How much longer than rated flash may take, for the interval: the rated time is that of an idle drive.
const FLASH_SLOW: f64 = 3.0;

/// Latencies of the flash that data move to, milliseconds.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct FlashTimes {
    /// Of a read.
    pub read_ms: f64,
    /// Of a write.
    pub write_ms: f64,
}

/// A gain in throughput: 0.2 is a fifth more.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Gain {
    /// The expected gain.
    pub expected: f64,
    /// The least of all answers.
    pub low: f64,
    /// The most.
    pub high: f64,
}

/// The waits of an object for each second of the period: how many sessions wait for it on average.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct Waits {
    /// For reads.
    pub read: f64,
    /// For writes.
    pub write: f64,
    /// I/Os per second that are read.
    pub reads_s: f64,
    /// I/Os per second that are written and timed.
    pub writes_s: f64,
    /// Whether the object is the log, whose writes commits wait for.
    pub is_log: bool,
    /// Whether the waits were not measured for the object itself and are those of a device.
    pub is_derived: bool,
}

/// What is known of the system for a gain.
#[derive(Clone, Debug, PartialEq)]
pub struct Model {
    /// Busy share of the processors.
    pub busy: f64,
    /// Processors.
    pub cores: f64,
    /// Processors that the database itself keeps busy: at most the busy share of all.
    pub computing: f64,
    /// Sessions at work that neither compute nor wait for storage: locks, network.
    pub other: f64,
    /// Waits of all objects.
    pub all: Vec<Waits>,
    /// The flash.
    pub flash: FlashTimes,
}

/// The waits of objects, in their order; an object without any is one for which nothing is known.
pub fn waits_of(evidence: &Evidence, objects: &[&Object]) -> Vec<Option<Waits>> {
    let device = device_times(evidence);
    let of = |object: &&Object| {
        // Shares need no time: without it, all is of one second, and no rate and no gain is made of it.
        let seconds = object.measured.seconds.or(evidence.seconds).unwrap_or(1.0);
        let counts = &object.counts;
        let (reads, writes) = (counts.get(Counter::Reads), counts.get(Counter::Writes));
        let per_s = |count: Option<f64>| count.unwrap_or(0.0) / seconds;
        let measured = counts.wait_ms();
        let (read_ms, write_ms, timed_writes) = match measured {
            Some(all) => {
                let read = counts.read_wait_ms().unwrap_or(0.0);
                let write = counts.get(Counter::WriteMs).unwrap_or((all - read).max(0.0));
                // PostgreSQL and InnoDB do not time writes of tables: nothing is known of them, so nothing is made of them.
                let is_timed = counts.get(Counter::WriteMs).or(counts.get(Counter::StallMs)).is_some();
                (read, write, writes.filter(|_| is_timed))
            }
            // Oracle's tables have no waits of their own, and PostgreSQL's have none without its I/O times.
            None => {
                let (read, write) = device?;
                (reads? * read, writes.unwrap_or(0.0) * write, writes)
            }
        };
        Some(Waits {
            read: read_ms / 1e3 / seconds,
            write: write_ms / 1e3 / seconds,
            reads_s: per_s(reads),
            writes_s: per_s(timed_writes),
            is_log: object.kind == Kind::Log,
            is_derived: measured.is_none(),
        })
    };
    objects.iter().map(of).collect()
}

/// Processors that the database keeps busy, of `busy` in all: all of them where its own time was not measured.
pub fn computing(evidence: &Evidence, seconds: f64, busy: f64) -> f64 {
    evidence.instance.cpu_ms.map_or(busy, |ms| (ms / 1e3 / seconds).min(busy))
}

/// Mean milliseconds of reads and writes of the busiest device.
fn device_times(evidence: &Evidence) -> Option<(f64, f64)> {
    let busiest = evidence
        .devices
        .iter()
        .filter(|device| device.ios_s.is_some())
        .max_by(|a, b| a.ios_s.unwrap_or(0.0).total_cmp(&b.ios_s.unwrap_or(0.0)))?;
    let read = busiest.read_ms.or(busiest.io_ms)?;
    Some((read, busiest.write_ms.or(busiest.io_ms).unwrap_or(read)))
}

impl Model {
    /// The model of what was measured; none without waits, the time, or the busy share and the number of processors. `cores` counts
    /// more than what was measured.
    pub fn of(
        evidence: &Evidence,
        waits: &[Option<Waits>],
        flash: FlashTimes,
        cores: Option<f64>,
    ) -> Option<Model> {
        let all: Vec<Waits> = waits.iter().flatten().copied().collect();
        let (busy, seconds) = (evidence.host.busy?.clamp(0.0, 1.0), evidence.seconds?);
        if all.is_empty() {
            return None;
        }
        let cores = cores.or(evidence.host.cores)?.max(1.0);
        let computing = computing(evidence, seconds, busy * cores);
        let waited: f64 = all.iter().map(|waits| waits.waited(0.0)).sum();
        let active = evidence.instance.active_ms.map(|ms| ms / 1e3 / seconds);
        let other = active.map_or(0.0, |active| (active - waited - computing).max(0.0));
        Some(Model { busy, cores, computing, other, all, flash })
    }

    /// The share of the time of sessions at work in which they wait for storage.
    pub fn storage_share(&self) -> f64 {
        let waited: f64 = self.all.iter().map(|waits| waits.waited(0.0)).sum();
        waited / (waited + self.computing + self.other).max(1e-12)
    }

    /// The busy share of the processors after a gain, when only the database's work grows.
    pub fn busy_after(&self, gain: f64) -> f64 {
        (self.busy + self.computing / self.cores * gain).min(1.0)
    }

    /// What a move of the objects with `moved` set brings.
    pub fn gain(&self, moved: &[bool]) -> Gain {
        let times = |factor: f64| FlashTimes {
            read_ms: self.flash.read_ms * factor,
            write_ms: self.flash.write_ms * factor,
        };
        // Alternatives that do not differ are solved once: an advice asks for the gain of each object.
        let all = self.busy * self.cores;
        let computes = if self.computing < all { vec![self.computing, all] } else { vec![all] };
        let shrinking: &[bool] = if self.other > 0.0 { &[false, true] } else { &[false] };
        let mut answers = Vec::new();
        for compute in computes {
            for writes in [0.0, 1.0] {
                for queues in [false, true] {
                    for &shrinks in shrinking {
                        for factor in [1.0, FLASH_SLOW] {
                            let open = Open { compute, writes, queues, shrinks };
                            answers.push(self.solve(moved, open, times(factor)));
                        }
                    }
                }
            }
        }
        let of = |compute: f64, queues: bool| {
            let open = Open { compute, writes: 0.0, queues, shrinks: true };
            self.solve(moved, open, times(1.0))
        };
        let mean = |compute: f64| 0.5 * (of(compute, false) + of(compute, true));
        // Where all processors are at work, other work does not give way by itself.
        let expected = match self.busy < FULL {
            true => mean(self.computing),
            false => 0.5 * (mean(self.computing) + mean(all)),
        };
        let low = answers.iter().copied().fold(f64::INFINITY, f64::min);
        let high = answers.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        Gain { expected: expected.clamp(low, high), low, high }
    }

    /// One answer.
    fn solve(&self, moved: &[bool], open: Open, flash: FlashTimes) -> f64 {
        let Open { compute, writes, queues, shrinks } = open;
        let is_moved = |at: usize| moved.get(at).copied().unwrap_or(false);
        let mut staying = Part::default();
        let mut moving = Part::default();
        let mut on_flash = 0.0;
        for (at, waits) in self.all.iter().enumerate() {
            let part = if is_moved(at) { &mut moving } else { &mut staying };
            part.waited += waits.waited(writes);
            part.ios_s += waits.ios_s(writes);
            if is_moved(at) {
                // Never slower than it was: who moves a cached object gains nothing.
                let takes =
                    waits.reads_s * flash.read_ms + waits.writes_s * waits.share(writes) * flash.write_ms;
                on_flash += takes / 1e3;
            }
        }
        let all = Part { waited: staying.waited + moving.waited, ios_s: staying.ios_s + moving.ios_s };
        let disks = match queues {
            true => Disks::of(&all, compute + self.other),
            false => None,
        };
        let network = |waited: f64, ios_s: f64, on_flash: f64, other: f64| {
            let mut network = Network { queues: vec![(compute, self.cores)], delay: other + on_flash };
            match &disks {
                // The same disks, with the I/Os that are left.
                Some(disks) => network.queues.push((disks.service_s * ios_s, disks.servers)),
                None => network.delay += waited,
            }
            network
        };
        let before = network(all.waited, all.ios_s, 0.0, self.other);
        // As many customers as make one unit of throughput before.
        let customers = customers(&before);
        let mut other = self.other;
        let mut flow = network(staying.waited, staying.ios_s, on_flash, other).flow(customers);
        if shrinks && self.other > 0.0 && all.waited > 0.0 {
            for _ in 0..ROUNDS {
                let at_disks = flow.residence.get(1).copied().unwrap_or(staying.waited);
                other = self.other * ((at_disks + on_flash) / all.waited).min(1.0);
                flow = network(staying.waited, staying.ios_s, on_flash, other).flow(customers);
            }
        }
        let gain = flow.throughput / before.flow(customers).throughput.max(1e-12) - 1.0;
        // Processors cannot do more than all of their time.
        gain.min(self.cores / compute.max(1e-6) - 1.0)
    }
}

/// A number of customers under which the network has a throughput of one.
fn customers(network: &Network) -> f64 {
    let (mut low, mut high) = (1e-6, 2.0);
    while network.flow(high).throughput < 1.0 && high < 1e6 {
        high *= 2.0;
    }
    for _ in 0..60 {
        let middle = 0.5 * (low + high);
        match network.flow(middle).throughput < 1.0 {
            true => low = middle,
            false => high = middle,
        }
    }
    0.5 * (low + high)
}

/// What the measurements leave open, decided for one answer.
#[derive(Clone, Copy)]
struct Open {
    /// Processors that are busy with what grows with the database's work.
    compute: f64,
    /// The share of data writes that sessions wait for.
    writes: f64,
    /// Whether disks are queues.
    queues: bool,
    /// Whether waits for other things become shorter in the same proportion as those for storage.
    shrinks: bool,
}

#[derive(Clone, Copy, Default)]
struct Part {
    waited: f64,
    ios_s: f64,
}

/// Disks as one queue with several servers.
struct Disks {
    service_s: f64,
    servers: f64,
}

impl Disks {
    /// Disks at which the service time and the queueing time add up to the measured waits; `None` without queueing.
    fn of(all: &Part, rest: f64) -> Option<Disks> {
        let mean_ms = all.waited / all.ios_s.max(1e-9) * 1e3;
        if mean_ms <= DISK_SERVICE_MS {
            return None;
        }
        let service_s = DISK_SERVICE_MS / 1e3;
        let demand = all.ios_s * service_s;
        // How many servers give a residence of `waited` at a throughput of one: more of them queue less.
        let waits = |servers: f64| {
            let network = Network { queues: vec![(demand, servers)], delay: rest };
            let customers = rest + all.waited;
            network.flow(customers).residence[0]
        };
        let (mut low, mut high) = (demand.max(1e-6), demand.max(1.0) * 1000.0);
        for _ in 0..60 {
            let middle = (low * high).sqrt();
            match waits(middle) > all.waited {
                true => low = middle,
                false => high = middle,
            }
        }
        Some(Disks { service_s, servers: high })
    }
}

impl Waits {
    /// Sessions that wait, where they wait for this share of the writes of data.
    pub fn waited(&self, writes: f64) -> f64 {
        self.read + self.write * self.share(writes)
    }

    fn share(&self, writes: f64) -> f64 {
        if self.is_log { 1.0 } else { writes }
    }

    fn ios_s(&self, writes: f64) -> f64 {
        self.reads_s + self.writes_s * self.share(writes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const FLASH: FlashTimes = FlashTimes { read_ms: 0.2, write_ms: 0.1 };

    fn reads(per_s: f64, ms: f64) -> Waits {
        Waits { read: per_s * ms / 1e3, reads_s: per_s, ..Waits::default() }
    }

    fn model(busy: f64, all: Vec<Waits>) -> Model {
        Model { busy, cores: 8.0, computing: busy * 8.0, other: 0.0, all, flash: FLASH }
    }

    #[test]
    fn nothing_moved_gains_nothing() {
        let gain = model(0.3, vec![reads(1000.0, 12.0), reads(200.0, 5.0)]).gain(&[false, false]);
        assert!(gain.low.abs() < 1e-3 && gain.high.abs() < 1e-3, "{gain:?}");
    }

    #[test]
    fn a_gain_is_bounded_by_processors_and_by_the_share() {
        // 0.3 × 8 sessions compute, 12 wait: five sixths of the time.
        let model = model(0.3, vec![reads(1000.0, 12.0)]);
        let gain = model.gain(&[true]);
        assert!(gain.high <= 1.0 / 0.3 - 1.0 + 1e-9, "{gain:?}");
        assert!(gain.low > 1.0 && gain.low <= gain.expected && gain.expected <= gain.high, "{gain:?}");
        assert!((model.storage_share() - 12.0 / 14.4).abs() < 1e-9);
        let idle_processors = Model { busy: 0.01, computing: 0.08, ..model.clone() };
        let half = Model { all: vec![reads(1000.0, 5.0), reads(1000.0, 5.0)], ..idle_processors };
        let gain = half.gain(&[true, false]);
        assert!(gain.low > 0.7 && gain.high < 1.1, "half of the waits are left: {gain:?}");
    }

    #[test]
    fn busy_processors_leave_nothing_to_gain() {
        let gain = model(1.0, vec![reads(1000.0, 12.0)]).gain(&[true]);
        assert!(gain.high <= 1e-6, "{gain:?}");
    }

    /// Sessions wait for the holders of locks, and these for storage.
    #[test]
    fn waits_for_others_become_shorter_with_those_for_storage() {
        let model = Model { other: 3.0, ..model(0.05, vec![reads(1000.0, 2.0), reads(1000.0, 2.0)]) };
        let gain = model.gain(&[true, false]);
        // 4 wait for storage, 3 for others, 0.4 compute: 7.4 to 5.6, or to 2.2 + 3 × 0.55 + 0.4.
        assert!((gain.expected - (7.4 / 4.25 - 1.0)).abs() < 0.03, "{gain:?}");
        assert!(gain.low < 7.4 / 5.6 - 1.0 + 0.01 && gain.low > 0.2, "{gain:?}");
    }

    /// The database takes a tenth of processors that are full: whether the others give way is not known.
    #[test]
    fn others_on_the_host_leave_a_gain_open() {
        let model = Model { computing: 0.8, ..model(1.0, vec![reads(1000.0, 12.0)]) };
        let gain = model.gain(&[true]);
        assert!(gain.low <= 1e-6 && gain.expected > 1.0 && gain.expected < 0.6 * gain.high, "{gain:?}");
        let half = Model { busy: 0.5, ..model };
        assert!((half.busy_after(1.0) - 0.6).abs() < 1e-9, "four cores of others stay");
    }

    /// Disks that queue serve the others faster when the busiest object leaves.
    #[test]
    fn what_stays_gains_where_disks_queue() {
        let model = model(0.5, vec![reads(500.0, 12.0), reads(500.0, 12.0)]);
        let gain = model.gain(&[true, false]);
        assert!(gain.high > gain.low + 0.05, "{gain:?}");
    }
}
