//! The course of a run: warm-up, wait for a steady state, measurement, end.

use std::rc::{Rc, Weak};

use tier0_block::BlockTarget;
use tier0_units::Nanos;
use tier0_world::{Task, World};

use super::meter::{Meter, RunEnd, Sums};
use super::shared::Shared;
use super::sweep::Sweep;
use super::{RunError, closed, open};
use crate::spec::{Arrival, LoadSpec};
use crate::stats::{
    EndedBy, LoadReport, Phase, Progress, SteadyCriterion, SteadyDetector, SteadyReport, SteadyState,
};

/// Who is told how the run goes.
type Listener = Box<dyn FnMut(&Progress)>;

/// A load that is about to run on a target.
pub struct LoadRun<T> {
    shared: Rc<Shared<T>>,
    load: LoadSpec,
    target_bytes: u64,
    stop: Rc<dyn Stop>,
    listener: Option<(Nanos, Listener)>,
}

/// What a stop does, whatever the target's type.
trait Stop {
    fn stop(&self);
}

impl<T: BlockTarget> Stop for Shared<T> {
    fn stop(&self) {
        self.stopped.set(true);
        self.end(EndedBy::Stopped);
    }
}

/// Ends a run from outside, for instance at Ctrl-C. The report then holds what was measured so far.
#[derive(Clone)]
pub struct StopHandle(Weak<dyn Stop>);

impl StopHandle {
    /// Ends the run now; nothing if it has ended.
    pub fn stop(&self) {
        if let Some(run) = self.0.upgrade() {
            run.stop();
        }
    }
}

impl<T: BlockTarget + 'static> LoadRun<T> {
    /// Checks the load and plans it for the target; nothing is sent yet.
    ///
    /// # Errors
    /// [`RunError`] where the load is wrong or does not fit.
    pub fn new(world: &World, target: Rc<T>, load: LoadSpec) -> Result<LoadRun<T>, RunError> {
        let target_bytes = target.info().sectors.bytes().0;
        let shared = Rc::new(Shared::new(world, target, &load)?);
        Ok(LoadRun { stop: shared.clone(), shared, load, target_bytes, listener: None })
    }

    /// Calls `listener` after every `every` of the world's time.
    pub fn on_progress(mut self, every: Nanos, listener: impl FnMut(&Progress) + 'static) -> LoadRun<T> {
        assert!(every > Nanos::ZERO, "progress is told after some time");
        self.listener = Some((every, Box::new(listener)));
        self
    }

    /// A handle that ends the run.
    pub fn stop_handle(&self) -> StopHandle {
        StopHandle(Rc::downgrade(&self.stop))
    }

    /// Runs the load to its end. The future must be awaited to its end too: dropping it drops requests under
    /// way.
    pub async fn run(self) -> LoadReport {
        let LoadRun { shared, load, target_bytes, stop, listener } = self;
        let mut course = Course::new(shared.clone(), listener);
        let tasks = start(&shared);
        let started = shared.world.now();

        course.phase(Phase::WarmUp, Some(load.warm_up), load.limits.time);
        course.wait_until(started.saturating_add(load.warm_up)).await;
        let steady = match load.steady {
            Some(criterion) => Some(course.settle(criterion).await),
            None => None,
        };

        let began = shared.world.now();
        let unserved_before = shared.unserved.get();
        if !shared.is_over() {
            shared.meter.borrow_mut().begin_measurement(began);
        }
        course.phase(Phase::Measuring, load.limits.time, None);
        course.wait_until(load.limits.time.map_or(Nanos::MAX, |time| began.saturating_add(time))).await;
        shared.end(EndedBy::Time);
        let ended = shared.world.now();
        let ended_by = shared.ended.get().unwrap_or(EndedBy::Time);
        let unanswered = shared.busy.get() + shared.waiting.get();
        let unserved = [unserved_before, shared.unserved.get()];

        // What is under way must be answered before the tasks go: a target may not expect that a request is
        // dropped.
        while shared.busy.get() > 0 {
            shared.bell.wait_until(&shared.world, Nanos::MAX).await;
        }
        drop(tasks);
        if load.verify.is_some_and(|verify| verify.sweep) {
            course.sweep().await;
        }
        drop((course, stop));
        let end = RunEnd { load, target_bytes, started, ended, ended_by, unanswered, unserved, steady };
        let meter = shared.meter.replace(Meter::new(&end.load));
        meter.report(end)
    }
}

fn start<T: BlockTarget + 'static>(shared: &Rc<Shared<T>>) -> Vec<Task<()>> {
    let mut tasks = Vec::new();
    for (index, stream) in shared.streams.iter().enumerate() {
        match stream.arrival {
            Arrival::ClosedLoop(closed) => tasks.extend(closed::start(shared, index, closed)),
            Arrival::OpenLoop(open) => tasks.push(open::start(shared, index, open)),
        }
    }
    tasks
}

/// Waits through the phases, telling of the progress.
struct Course<T> {
    shared: Rc<Shared<T>>,
    listener: Option<(Nanos, Listener)>,
    began: Nanos,
    phase: Phase,
    phase_began: Nanos,
    /// How long the phase lasts, where that is known.
    phase_length: Option<Nanos>,
    /// What follows the phase.
    then: Option<Nanos>,
    told: Nanos,
    told_read: Sums,
    told_write: Sums,
}

impl<T: BlockTarget + 'static> Course<T> {
    fn new(shared: Rc<Shared<T>>, listener: Option<(Nanos, Listener)>) -> Course<T> {
        let now = shared.world.now();
        Course {
            shared,
            listener,
            began: now,
            phase: Phase::WarmUp,
            phase_began: now,
            phase_length: None,
            then: None,
            told: now,
            told_read: Sums::default(),
            told_write: Sums::default(),
        }
    }

    fn phase(&mut self, phase: Phase, length: Option<Nanos>, then: Option<Nanos>) {
        self.phase = phase;
        self.phase_began = self.shared.world.now();
        self.phase_length = length;
        self.then = then;
    }

    /// Waits until `time`, or until the run is over.
    async fn wait_until(&mut self, time: Nanos) {
        while self.shared.world.now() < time && !self.shared.is_over() {
            self.wait_once(time).await;
        }
    }

    /// Waits until `time`, the bell, or the next progress, which is told.
    async fn wait_once(&mut self, time: Nanos) {
        let tell = self.listener.as_ref().map_or(Nanos::MAX, |(every, _)| self.told.saturating_add(*every));
        self.shared.bell.wait_until(&self.shared.world, time.min(tell)).await;
        if self.shared.world.now() >= tell {
            self.tell();
        }
    }

    /// Waits for a steady state.
    async fn settle(&mut self, criterion: SteadyCriterion) -> SteadyReport {
        self.phase(Phase::Settling, None, None);
        let began = self.shared.world.now();
        let mut detector = SteadyDetector::new(criterion);
        let mut last = None;
        loop {
            let round_began = self.shared.world.now();
            let waited = round_began.saturating_sub(began);
            let reached = last.is_some_and(|state: SteadyState| state.steady);
            if reached || waited >= criterion.wait_max || self.shared.is_over() {
                return SteadyReport { reached, waited_s: waited.as_secs_f64(), last };
            }
            let before = self.sums();
            self.wait_until(round_began.saturating_add(criterion.round)).await;
            let after = self.sums();
            let (read, write) = (after.0.since(before.0), after.1.since(before.1));
            let verdict = detector.push(read.ios + write.ios, (read.latency_ns + write.latency_ns) as f64);
            last = verdict.or(last);
        }
    }

    async fn sweep(&mut self) {
        self.phase(Phase::Sweeping, None, None);
        let (sweep, _tasks) = Sweep::start(&self.shared);
        while !sweep.is_over() {
            self.wait_once(Nanos::MAX).await;
        }
    }

    fn sums(&self) -> (Sums, Sums) {
        let meter = self.shared.meter.borrow();
        (meter.read, meter.write)
    }

    fn tell(&mut self) {
        let progress = self.progress();
        (self.told_read, self.told_write) = self.sums();
        self.told = self.shared.world.now();
        if let Some((_, listener)) = &mut self.listener {
            listener(&progress);
        }
    }

    fn progress(&self) -> Progress {
        let now = self.shared.world.now();
        let (read, write) = self.sums();
        let (read, write) = (read.since(self.told_read), write.since(self.told_write));
        let seconds = now.saturating_sub(self.told).as_secs_f64();
        let elapsed = now.saturating_sub(self.phase_began);
        let timed = self.phase_length.map_or(0.0, |length| elapsed.as_secs_f64() / length.as_secs_f64());
        let meter = self.shared.meter.borrow();
        let done = Some(timed.max(meter.share_counted()).min(1.0)).filter(|done| *done > 0.0);
        let phase_left = done.map(|done| Nanos::from_secs_f64(elapsed.as_secs_f64() * (1.0 - done) / done));
        let left = match self.phase {
            Phase::WarmUp => phase_left.zip(self.then).map(|(left, then)| left.saturating_add(then)),
            Phase::Measuring => phase_left,
            Phase::Settling | Phase::Sweeping => None,
        };
        Progress {
            phase: self.phase,
            elapsed: now.saturating_sub(self.began),
            done: done.filter(|_| self.phase != Phase::Sweeping),
            left,
            iops: (read.ios + write.ios) as f64 / seconds,
            megabytes_per_s: (read.bytes + write.bytes) as f64 / 1e6 / seconds,
            read_latency: read.latency_mean(),
            write_latency: write.latency_mean(),
            errors: meter.errors.reads + meter.errors.writes,
        }
    }
}
