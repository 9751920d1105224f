//! Around each drive: the back-end bus it sits on, and what the drive does.
//!
//! A bus works while the data arrive, so an idle bus adds no time to that of the drive's own interface. Drives are
//! spread over the buses in turn.

use std::cell::Cell;
use std::rc::Rc;

use tier0_catalog::ArrayParameters;
use tier0_drive::{Command, Drive, DriveHandle, DriveInfo};
use tier0_stats::{IoRecorder, IoStats, Op};
use tier0_units::Nanos;
use tier0_world::{Completion, World};

use super::{Resource, transfer_time};

/// The back end of one array.
#[derive(Clone)]
pub struct BackEnd(Rc<Inner>);

struct Inner {
    world: World,
    buses: Vec<Resource>,
    bus_mb_s: f64,
    bus_command: Nanos,
    drives: Vec<Load>,
    /// How many of them each group of sets has.
    groups: Vec<usize>,
}

/// What a drive has done, and how busy it was.
#[derive(Default)]
struct Load {
    stats: IoRecorder,
    under_way: Cell<u64>,
    since: Cell<Nanos>,
    busy: Cell<Nanos>,
}

impl BackEnd {
    /// The back end of an array whose groups of sets have so many drives each.
    pub fn new(world: &World, array: &ArrayParameters, groups: Vec<usize>) -> BackEnd {
        let bus_command = array.back_end_bus_iops.as_ref().map_or(0.0, |iops| 1e9 / iops.value);
        let buses = array.back_end_buses.value as usize;
        let command = Nanos(bus_command.round() as u64);
        BackEnd::over(world, buses, array.back_end_bus_mb_s.value, command, groups)
    }

    /// The same on buses that are never busy.
    pub fn without_limits(world: &World, groups: Vec<usize>) -> BackEnd {
        BackEnd::over(world, 1, 1e9, Nanos::ZERO, groups)
    }

    fn over(world: &World, buses: usize, bus_mb_s: f64, bus_command: Nanos, groups: Vec<usize>) -> BackEnd {
        BackEnd(Rc::new(Inner {
            world: world.clone(),
            buses: (0..buses).map(|_| Resource::new(1)).collect(),
            bus_mb_s,
            bus_command,
            drives: (0..groups.iter().sum()).map(|_| Load::default()).collect(),
            groups,
        }))
    }

    /// Puts drive `number` behind its bus.
    pub fn attach(&self, number: usize, drive: DriveHandle) -> DriveHandle {
        DriveHandle::new(Attached { end: self.clone(), number, drive: Rc::new(drive) })
    }

    pub(super) fn buses(&self) -> Vec<&Resource> {
        self.0.buses.iter().collect()
    }

    /// Mean share of the time that these drives had a command.
    fn drives_busy(&self, drives: &[Load], elapsed: Nanos) -> f64 {
        let now = self.0.world.now();
        let busy: f64 = drives.iter().map(|load| load.busy_until(now).as_secs_f64()).sum();
        busy / elapsed.as_secs_f64().max(1e-9) / drives.len().max(1) as f64
    }

    /// The same by group of sets, in the order of their drives.
    pub(super) fn groups_busy(&self, elapsed: Nanos) -> Vec<f64> {
        let mut rest = &self.0.drives[..];
        let groups = self.0.groups.iter().map(|drives| {
            let (own, others) = rest.split_at(*drives);
            rest = others;
            self.drives_busy(own, elapsed)
        });
        groups.collect()
    }

    /// What all drives have done.
    pub(crate) fn drive_stats(&self) -> IoStats {
        let mut all = IoStats::default();
        self.0.drives.iter().for_each(|load| all.merge(&load.stats.snapshot()));
        all
    }
}

impl Load {
    fn begin(&self, now: Nanos) {
        if self.under_way.get() == 0 {
            self.since.set(now);
        }
        self.under_way.set(self.under_way.get() + 1);
    }

    fn end(&self, now: Nanos) {
        self.busy.set(self.busy_until(now));
        self.since.set(now);
        self.under_way.set(self.under_way.get() - 1);
    }

    /// How long it has had a command.
    fn busy_until(&self, now: Nanos) -> Nanos {
        let since = if self.under_way.get() > 0 { now.saturating_sub(self.since.get()) } else { Nanos::ZERO };
        self.busy.get().saturating_add(since)
    }
}

fn op_of(command: &Command) -> Op {
    match command {
        Command::Read { .. } => Op::Read,
        Command::Write { .. } => Op::Write,
        Command::Discard { .. } => Op::Discard,
        Command::Flush => Op::Flush,
    }
}

struct Attached {
    end: BackEnd,
    number: usize,
    drive: Rc<DriveHandle>,
}

impl Attached {
    fn bus_time(&self, sectors: u64) -> Nanos {
        let inner = &self.end.0;
        transfer_time(sectors * tier0_units::SECTOR_BYTES, inner.bus_mb_s).max(inner.bus_command)
    }
}

impl Drive for Attached {
    fn info(&self) -> &DriveInfo {
        self.drive.info()
    }

    fn world(&self) -> &World {
        self.drive.world()
    }

    fn gains_by_discard(&self) -> bool {
        self.drive.gains_by_discard()
    }

    fn submit(&self, command: Command, completion: Completion) {
        let time = self.bus_time(command.range().1);
        let (end, number, drive) = (self.end.clone(), self.number, self.drive.clone());
        let task = async move {
            let inner = &*end.0;
            let world = &inner.world;
            let bus = &inner.buses[number % inner.buses.len()];
            let (op, bytes) = (op_of(&command), command.range().1 * tier0_units::SECTOR_BYTES);
            let write = op == Op::Write;
            if write {
                // The drive takes the data as they come: only the wait for the bus counts.
                let ends = bus.reserve(world.now(), time);
                world.sleep_until(ends.saturating_sub(time)).await;
            }
            let (load, began) = (&inner.drives[number], world.now());
            load.begin(began);
            let (own, pending) = world.completion();
            drive.submit(command, own);
            let (outcome, payload) = pending.await;
            load.end(world.now());
            load.stats.ended(op, bytes, || world.now().saturating_sub(began), outcome.is_ok());
            if !write {
                let ends = bus.reserve_behind(world.now(), time);
                if ends > world.now() {
                    world.sleep_until(ends).await;
                }
            }
            completion.complete(outcome.map(|_| ()), payload);
        };
        self.end.0.world.spawn(task).detach();
    }
}
