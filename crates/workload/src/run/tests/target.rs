//! Targets for tests: a queue with known service times, and a store that can be told to fail.

use std::cell::{Cell, RefCell};
use std::collections::BTreeSet;
use std::rc::Rc;

use tier0_block::{BlockTarget, TargetInfo};
use tier0_units::{Lba, Nanos, SectorCount};
use tier0_world::{Buf, BufMut, IoError, PayloadWidth, Random, VirtualRuntime, World};

use crate::draw::Exponential;
use crate::run::{LoadRun, RunError};
use crate::spec::LoadSpec;
use crate::stats::LoadReport;

/// How long a request takes once it is served.
#[derive(Clone, Copy)]
pub(super) enum Service {
    Fixed(Nanos),
    Exponential(Nanos),
}

/// What goes wrong, once, at the n-th write (from 1).
#[derive(Clone, Copy, PartialEq)]
pub(super) enum Fault {
    LoseWrite(u64),
    MisdirectWrite(u64),
    FlipBit(u64),
    FailWrite(u64),
}

/// A target of one mebibyte with `servers` places that serve in the order of arrival.
pub(super) struct Model {
    world: World,
    service: Service,
    random: RefCell<Random>,
    /// When each place is free.
    free: RefCell<Vec<Nanos>>,
    /// Nothing is served within this time.
    pub(super) stall: Cell<Option<(Nanos, Nanos)>>,
    block_sectors: u32,
    data: RefCell<Vec<u8>>,
    fault: Option<Fault>,
    writes: Cell<u64>,
    /// Where requests began.
    pub(super) asked: RefCell<BTreeSet<Lba>>,
    pub(super) begun: Cell<u64>,
    pub(super) done: Cell<u64>,
}

/// Its size: 2048 sectors.
pub(super) const SECTORS: u64 = 2048;

impl Model {
    pub(super) fn new(world: &World, servers: usize, service: Service) -> Model {
        Model {
            world: world.clone(),
            service,
            random: RefCell::new(Random::new(99, 0)),
            free: RefCell::new(vec![Nanos::ZERO; servers]),
            stall: Cell::new(None),
            block_sectors: 1,
            data: RefCell::new(vec![0; SECTORS as usize * world.width().bytes()]),
            fault: None,
            writes: Cell::new(0),
            asked: RefCell::default(),
            begun: Cell::new(0),
            done: Cell::new(0),
        }
    }

    /// The same with a fault.
    pub(super) fn with_fault(self, fault: Option<Fault>) -> Model {
        Model { fault, ..self }
    }

    /// The same with larger blocks.
    pub(super) fn with_block(self, block_sectors: u32) -> Model {
        Model { block_sectors, ..self }
    }

    async fn serve(&self) {
        self.begun.set(self.begun.get() + 1);
        let service = match self.service {
            Service::Fixed(time) => time,
            Service::Exponential(mean) => Exponential::with_mean(mean).draw(&mut self.random.borrow_mut()),
        };
        let end = {
            let mut free = self.free.borrow_mut();
            let place = free.iter_mut().min().expect("there are places");
            let mut start = self.world.now().max(*place);
            if let Some((from, until)) =
                self.stall.get().filter(|(from, until)| (*from..*until).contains(&start))
            {
                start = start.max(from).max(until);
            }
            *place = start.saturating_add(service);
            *place
        };
        self.world.sleep_until(end).await;
        self.done.set(self.done.get() + 1);
    }

    fn range(&self, lba: Lba, sectors: u32) -> std::ops::Range<usize> {
        let width = self.world.width().bytes();
        lba.0 as usize * width..(lba.0 as usize + sectors as usize) * width
    }
}

impl BlockTarget for Model {
    fn info(&self) -> TargetInfo {
        TargetInfo { sectors: SectorCount(SECTORS), block_sectors: self.block_sectors, volatile_cache: false }
    }

    async fn read(&self, lba: Lba, mut buf: BufMut) -> (Result<(), IoError>, BufMut) {
        self.asked.borrow_mut().insert(lba);
        self.serve().await;
        let range = self.range(lba, buf.sectors());
        buf.as_mut_slice().copy_from_slice(&self.data.borrow()[range]);
        (Ok(()), buf)
    }

    async fn write(&self, mut lba: Lba, buf: Buf, _durable: bool) -> Result<(), IoError> {
        self.writes.set(self.writes.get() + 1);
        let number = self.writes.get();
        self.asked.borrow_mut().insert(lba);
        self.serve().await;
        if self.fault == Some(Fault::FailWrite(number)) {
            return Err(IoError::Medium);
        }
        if self.fault == Some(Fault::LoseWrite(number)) {
            return Ok(());
        }
        if self.fault == Some(Fault::MisdirectWrite(number)) {
            lba = Lba((lba.0 + SECTORS / 2) % SECTORS);
        }
        let range = self.range(lba, buf.sectors());
        let data = &mut self.data.borrow_mut()[range];
        data.copy_from_slice(buf.as_slice());
        if self.fault == Some(Fault::FlipBit(number)) {
            let middle = data.len() / 2;
            data[middle] ^= 4;
        }
        Ok(())
    }

    async fn flush(&self) -> Result<(), IoError> {
        Ok(())
    }

    async fn discard(&self, _: Lba, _: u64) -> Result<(), IoError> {
        Err(IoError::Unsupported)
    }

    async fn write_zeroes(&self, _: Lba, _: u64, _: bool, _: bool) -> Result<(), IoError> {
        Err(IoError::Unsupported)
    }
}

/// Runs a load in a world of its own on the target that `target` makes.
pub(super) fn run_on(
    width: PayloadWidth,
    load: LoadSpec,
    target: impl FnOnce(&World) -> Model,
) -> Result<(LoadReport, Rc<Model>), RunError> {
    let runtime = VirtualRuntime::new(1, width);
    let target = Rc::new(target(runtime.world()));
    let run = LoadRun::new(runtime.world(), target.clone(), load)?;
    Ok((runtime.run(run.run()), target))
}

/// The same without payload, where the load is known to fit.
pub(super) fn run(load: LoadSpec, target: impl FnOnce(&World) -> Model) -> LoadReport {
    run_on(PayloadWidth::NONE, load, target).expect("the load fits").0
}
