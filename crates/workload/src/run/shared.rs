//! What all tasks of a run share.

use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::sync::Arc;

use tier0_block::BlockTarget;
use tier0_units::{Lba, Nanos, SECTOR_BYTES, SectorCount};
use tier0_world::{Buf, World};

use super::RunError;
use super::bell::Bell;
use super::meter::Meter;
use crate::draw::{IoKind, Request, StreamPlan};
use crate::spec::{Arrival, LoadSpec};
use crate::stats::EndedBy;
use crate::verify::{STAMP_BYTES_MIN, Verifier, stamp};

/// The store of ready-made data for writes that are not verified, in sectors: 4 MiB of real payload.
const PATTERN_SECTORS: u32 = 8192;
/// Writes take their data from the pattern at multiples of this many sectors (4096 bytes, the alignment of
/// O_DIRECT).
const PATTERN_STEP: u32 = 8;

/// The shared state of a run.
pub(super) struct Shared<T> {
    pub(super) world: World,
    pub(super) target: Rc<T>,
    pub(super) seed: u64,
    pub(super) streams: Vec<Stream>,
    pub(super) meter: RefCell<Meter>,
    pub(super) verifier: Option<RefCell<Verifier>>,
    /// Rung when the run ends, and when nothing is under way any more.
    pub(super) bell: Bell,
    pub(super) ended: Cell<Option<EndedBy>>,
    /// The caller wants it to end, the sweep included.
    pub(super) stopped: Cell<bool>,
    /// Requests at the target.
    pub(super) busy: Cell<u64>,
    /// Requests of open loops that wait to be sent.
    pub(super) waiting: Cell<u64>,
    /// Requests of open loops that wait to be sent or are at the target.
    pub(super) unserved: Cell<u64>,
    pattern: Buf,
    pattern_next: Cell<u32>,
}

/// One stream, planned for the target.
pub(super) struct Stream {
    pub(super) plan: Arc<StreamPlan>,
    pub(super) arrival: Arrival,
    pub(super) durable: bool,
}

impl<T: BlockTarget> Shared<T> {
    pub(super) fn new(world: &World, target: Rc<T>, load: &LoadSpec) -> Result<Shared<T>, RunError> {
        load.validate()?;
        let info = target.info();
        let placement_seed = load.placement_seed.unwrap_or(load.seed);
        let mut streams = Vec::new();
        for spec in &load.streams {
            let plan = StreamPlan::new(spec, info.sectors.bytes(), placement_seed)?;
            let block = SectorCount(u64::from(info.block_sectors.max(1)));
            if !plan.granule().0.is_multiple_of(block.0) {
                let (granule, block) = (plan.granule().bytes(), block.bytes());
                return Err(RunError::Misaligned { stream: spec.name.clone(), granule, block });
            }
            streams.push(Stream { plan: Arc::new(plan), arrival: spec.arrival, durable: spec.durable });
        }
        let verifier = match load.verify {
            None => None,
            Some(verify) => Some(RefCell::new(plan_verifier(world, &streams, load.seed, verify.fresh)?)),
        };
        Ok(Shared {
            world: world.clone(),
            target,
            seed: load.seed,
            meter: RefCell::new(Meter::new(load)),
            verifier,
            bell: Bell::default(),
            ended: Cell::new(None),
            stopped: Cell::new(false),
            busy: Cell::new(0),
            waiting: Cell::new(0),
            unserved: Cell::new(0),
            pattern: pattern(world, &streams, load.seed),
            pattern_next: Cell::new(0),
            streams,
        })
    }

    pub(super) fn is_over(&self) -> bool {
        self.ended.get().is_some()
    }

    /// Ends the run; the first reason stays.
    pub(super) fn end(&self, by: EndedBy) {
        if self.ended.get().is_none() {
            self.ended.set(Some(by));
            self.bell.ring();
        }
    }

    /// Counts the answer to a request that should have been issued at `intended`.
    #[inline]
    pub(super) fn answered(&self, stream: usize, request: &Request, intended: Nanos, now: Nanos) {
        if self.is_over() {
            return;
        }
        let latency = now.saturating_sub(intended);
        let bytes = request.sectors.bytes().0;
        let limit = self.meter.borrow_mut().record(stream, request.kind, bytes, latency, now);
        if let Some(by) = limit {
            self.end(by);
        }
    }

    /// Counts a request that failed.
    pub(super) fn failed(&self, kind: IoKind, reason: impl FnOnce() -> String) {
        let limit = self.meter.borrow_mut().fail(kind, reason);
        if let Some(by) = limit {
            self.end(by);
        }
    }

    /// A request is on its way to the target.
    pub(super) fn enter(&self) {
        self.busy.set(self.busy.get() + 1);
    }

    /// A request is back.
    pub(super) fn leave(&self) {
        self.busy.set(self.busy.get() - 1);
        if self.busy.get() == 0 && self.is_over() {
            self.bell.ring();
        }
    }

    /// Ready-made data of that many sectors, each time from another place.
    pub(super) fn pattern(&self, sectors: u32) -> Buf {
        let places = (self.pattern.sectors() - sectors) / PATTERN_STEP + 1;
        let place = self.pattern_next.get() % places;
        self.pattern_next.set(place + 1);
        self.pattern.slice(place * PATTERN_STEP, sectors)
    }
}

/// Data that neither compresses nor deduplicates within itself; nothing where the world keeps nothing.
fn pattern(world: &World, streams: &[Stream], seed: u64) -> Buf {
    let longest = streams.iter().map(|stream| stream.plan.block_sectors_max().0).max().unwrap_or(1) as u32;
    let mut buf = world.buffer(PATTERN_SECTORS.max(longest));
    let width = world.width().bytes();
    if width >= STAMP_BYTES_MIN {
        let sectors = buf.as_mut_slice().chunks_exact_mut(width);
        sectors.enumerate().for_each(|(index, sector)| stamp(sector, index as u64, 0, seed));
    } else {
        buf.as_mut_slice().fill(0);
    }
    buf.freeze()
}

/// One verifier over the ranges of all streams, in the largest blocks of which all requests cover whole ones.
fn plan_verifier(world: &World, streams: &[Stream], seed: u64, fresh: bool) -> Result<Verifier, RunError> {
    let width = world.width().bytes();
    if width < STAMP_BYTES_MIN {
        return Err(RunError::NoPayload(width));
    }
    let plans = || streams.iter().map(|stream| &stream.plan);
    let start = plans().map(|plan| plan.start()).min().unwrap_or(Lba(0));
    let end = plans().map(|plan| plan.start() + plan.length()).max().unwrap_or(Lba(0));
    // The granules divide the distances between the starts too, since each divides its own start.
    let block = plans().map(|plan| plan.granule().0).reduce(common_divisor).unwrap_or(1);
    Ok(Verifier::new((start, end - start, SectorCount(block)), width, seed, fresh)?)
}

fn common_divisor(a: u64, b: u64) -> u64 {
    if b == 0 { a } else { common_divisor(b, a % b) }
}

const _: () =
    assert!(PATTERN_STEP as u64 * SECTOR_BYTES == 4096, "the pattern is cut at O_DIRECT's alignment");
