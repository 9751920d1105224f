//! Around each drive: the back-end bus it sits on, and the drive's busy time.
//!
//! A bus works while the data arrive, so an idle bus adds no time to that of the drive's own interface. Drives are
//! spread over the buses in turn.

use std::cell::Cell;
use std::rc::Rc;

use tier0_catalog::ArrayParameters;
use tier0_drive::{Command, Drive, DriveHandle, DriveInfo};
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
}

/// How busy a drive was.
#[derive(Default)]
struct Load {
    commands: Cell<u64>,
    under_way: Cell<u64>,
    since: Cell<Nanos>,
    busy: Cell<Nanos>,
}

impl BackEnd {
    /// The back end of an array with `drives`.
    pub fn new(world: &World, array: &ArrayParameters, drives: usize) -> BackEnd {
        let bus_command = array.back_end_bus_iops.as_ref().map_or(0.0, |iops| 1e9 / iops.value);
        BackEnd(Rc::new(Inner {
            world: world.clone(),
            buses: (0..array.back_end_buses.value).map(|_| Resource::new(1)).collect(),
            bus_mb_s: array.back_end_bus_mb_s.value,
            bus_command: Nanos(bus_command.round() as u64),
            drives: (0..drives).map(|_| Load::default()).collect(),
        }))
    }

    /// Puts drive `number` behind its bus.
    pub fn attach(&self, number: usize, drive: DriveHandle) -> DriveHandle {
        DriveHandle::new(Attached { end: self.clone(), number, drive: Rc::new(drive) })
    }

    pub(super) fn buses(&self) -> Vec<&Resource> {
        self.0.buses.iter().collect()
    }

    /// Mean share of the time that the drives had a command, and commands per second of all.
    pub(super) fn drive_load(&self, elapsed: Nanos) -> (f64, f64) {
        let busy: f64 = self.0.drives.iter().map(|load| load.busy.get().as_secs_f64()).sum();
        let commands: u64 = self.0.drives.iter().map(|load| load.commands.get()).sum();
        let seconds = elapsed.as_secs_f64().max(1e-9);
        (busy / seconds / self.0.drives.len().max(1) as f64, commands as f64 / seconds)
    }
}

impl Load {
    fn begin(&self, now: Nanos) {
        self.commands.set(self.commands.get() + 1);
        if self.under_way.get() == 0 {
            self.since.set(now);
        }
        self.under_way.set(self.under_way.get() + 1);
    }

    fn end(&self, now: Nanos) {
        self.under_way.set(self.under_way.get() - 1);
        if self.under_way.get() == 0 {
            self.busy.set(self.busy.get().saturating_add(now.saturating_sub(self.since.get())));
        }
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

    fn submit(&self, command: Command, completion: Completion) {
        let time = self.bus_time(command.range().1);
        let (end, number, drive) = (self.end.clone(), self.number, self.drive.clone());
        let task = async move {
            let inner = &*end.0;
            let world = &inner.world;
            let bus = &inner.buses[number % inner.buses.len()];
            let write = matches!(command, Command::Write { .. });
            if write {
                // The drive takes the data as they come: only the wait for the bus counts.
                let ends = bus.reserve(world.now(), time);
                world.sleep_until(ends.saturating_sub(time)).await;
            }
            inner.drives[number].begin(world.now());
            let (own, pending) = world.completion();
            drive.submit(command, own);
            let (outcome, payload) = pending.await;
            inner.drives[number].end(world.now());
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
