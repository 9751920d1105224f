//! The ring as its owner sees it.

use std::cell::{Cell, RefCell};
use std::rc::Rc;

use futures_util::future::join_all;
use tier0_world::World;
use tier0_world::sync::{Notify, oneshot};
use uuid::Uuid;

use crate::append::{Append, Record, State as AppendState};
use crate::copies::{COPIES_MAX, CopyState, LossReport, Place};
use crate::frame::Extent;
use crate::header::{self, HeaderPlace, Tail};
use crate::region::{BLOCK_SECTORS, HEADER_PLACES};
use crate::state::{Lane, State, Waiting};
use crate::{Position, Region, RingError};

/// How a ring behaves; nothing of it is stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Settings {
    /// Frames that may be under way at once, at least 1. More of them shorten the wait of records that come while a
    /// frame is being written, and make frames smaller.
    pub frames_in_flight_max: usize,
    /// The most sectors of a frame with more than one record. Longer frames waste less on headers, shorter ones let
    /// their records wait less for each other's transfer.
    pub frame_sectors_max: u64,
    /// Sectors that [`Ring::append`] leaves free for [`Ring::append_urgent`]; rounded up to 8, less than the ring has.
    pub headroom_sectors: u64,
}

/// Four frames of 256 KiB: of what `benches/frames_in_flight.rs` tries on four kinds of modelled drives, this is never
/// far from the best. 32 clients with records of 8 KiB get, in shares of what direct writes of the same records give,
/// 0.89 on NVMe flash, 1.60 on SAS and 1.59 on SATA flash; with one frame of 1 MiB 0.64, 1.39 and 1.50. Disks with a
/// queue like more frames.
impl Default for Settings {
    fn default() -> Settings {
        Settings { frames_in_flight_max: 4, frame_sectors_max: 512, headroom_sectors: 0 }
    }
}

/// How full a ring is, in sectors.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Space {
    /// What the ring holds at most.
    pub capacity: u64,
    /// What cannot be reused: not released, or released and not yet persisted, or cut off by a frame that is needed.
    pub used: u64,
    /// What of that is needed: from the first record that is not released to the end of the log.
    pub live: u64,
    /// What the records need that are not yet in a frame.
    pub waiting: u64,
}

impl Space {
    /// Sectors that frames can take now, in front of which records may be waiting.
    pub fn free(&self) -> u64 {
        self.capacity - self.used
    }

    /// How much is taken or asked for, as a share of the capacity: the level for back-pressure. Above 1 appends wait.
    pub fn level(&self) -> f64 {
        (self.live + self.waiting) as f64 / self.capacity as f64
    }
}

/// A mirrored ring; clones are the same ring.
#[derive(Clone)]
pub struct Ring(pub(crate) Rc<Core>);

pub(crate) struct Core {
    pub(crate) world: World,
    pub(crate) id: Uuid,
    /// Blocks of the ring proper.
    pub(crate) blocks: u64,
    pub(crate) settings: Settings,
    pub(crate) losses: Rc<dyn LossReport>,
    pub(crate) copies: RefCell<Vec<Place>>,
    pub(crate) state: RefCell<State>,
    /// Rung when frames, headers or copies have changed their state.
    pub(crate) changed: Notify,
    pub(crate) pump_scheduled: Cell<bool>,
    /// A header is being written.
    pub(crate) persisting: Cell<bool>,
    /// Generation of the header that is stable everywhere.
    pub(crate) persisted_generation: Cell<u64>,
}

impl Core {
    pub(crate) fn new(
        world: &World,
        id: Uuid,
        places: Vec<Place>,
        settings: Settings,
        losses: Rc<dyn LossReport>,
        state: State,
    ) -> Rc<Core> {
        assert!(settings.frames_in_flight_max > 0, "a ring needs a frame to write");
        assert!(state.headroom < state.blocks, "the headroom leaves nothing of the ring");
        Rc::new(Core {
            world: world.clone(),
            id,
            blocks: state.blocks,
            settings,
            losses,
            copies: RefCell::new(places),
            state: RefCell::new(state),
            changed: Notify::new(),
            pump_scheduled: Cell::new(false),
            persisting: Cell::new(false),
            persisted_generation: Cell::new(0),
        })
    }

    pub(crate) fn failure(&self) -> Option<RingError> {
        self.state.borrow().failed.clone()
    }

    pub(crate) fn fail(&self, error: RingError) {
        if self.failure().is_none() {
            tracing::error!("{error}");
            self.state.borrow_mut().fail(error);
        }
        self.changed.notify_all();
    }
}

/// The blocks of a ring on these regions: those of the smallest.
fn blocks_of(regions: &[Region]) -> Result<u64, RingError> {
    if regions.is_empty() || regions.len() > COPIES_MAX {
        return Err(RingError::BadCopy { copy: regions.len() });
    }
    let mut blocks = u64::MAX;
    for (copy, region) in regions.iter().enumerate() {
        blocks = blocks.min(region.blocks().ok_or_else(|| bad_region(copy, region, Region::SECTORS_MIN))?);
    }
    Ok(blocks)
}

pub(crate) fn bad_region(copy: usize, region: &Region, needed: u64) -> RingError {
    RingError::BadRegion { copy, first: region.first.0, sectors: region.sectors, needed }
}

impl Ring {
    /// Makes an empty ring on one to three regions; its size is that of the smallest.
    ///
    /// Nothing older in the regions is ever believed again, provided that `id` is new or the old headers can be read.
    /// After an error the regions hold no ring to rely on.
    pub async fn format(
        world: &World,
        regions: Vec<Region>,
        id: Uuid,
        settings: Settings,
        losses: Rc<dyn LossReport>,
    ) -> Result<Ring, RingError> {
        let blocks = blocks_of(&regions)?;
        let tail = Tail { block: 0, sequence: 0, previous: 0, position: 0 };
        let mut state = State::new(blocks, headroom_blocks(&settings), tail);
        (state.generation, state.incarnation) = outdone(&regions, id).await;
        state.incarnation += 1;
        let places = regions.iter().map(|region| Place::new(Some(region.clone()))).collect();
        let core = Core::new(world, id, places, settings, losses, state);
        let block = core.header_block(&core.next_header());
        for place in 0..HEADER_PLACES {
            let writes = regions.iter().map(|region| region.write_header(place, block.clone()));
            for (copy, result) in join_all(writes).await.into_iter().enumerate() {
                result.map_err(|source| RingError::Drive { copy, source })?;
            }
        }
        Ok(Ring(core))
    }

    /// Appends a record. It ends when the record is stable on every copy that is left, and waits as long as there is
    /// no room.
    ///
    /// Records take effect in the order of the calls, whatever becomes of the futures. Panics if a buffer does not hold
    /// whole pages.
    pub fn append(&self, record: Record) -> Append {
        self.enqueue(Lane::Normal, record)
    }

    /// Appends a record that may use the headroom ([`Settings::headroom_sectors`]) and overtakes normal records that
    /// are not yet in a frame: what must be logged before space can be released must not wait for space.
    pub fn append_urgent(&self, record: Record) -> Append {
        self.enqueue(Lane::Urgent, record)
    }

    fn enqueue(&self, lane: Lane, record: Record) -> Append {
        record.check();
        let mut state = self.0.state.borrow_mut();
        if let Some(error) = &state.failed {
            return Append(AppendState::Refused(error.clone()));
        }
        let (needed, room) = (record.extend(Extent::EMPTY).blocks(), state.room(lane));
        if needed > room.min(u64::from(u32::MAX / BLOCK_SECTORS)) {
            let sectors = needed * u64::from(BLOCK_SECTORS);
            let room = room * u64::from(BLOCK_SECTORS);
            return Append(AppendState::Refused(RingError::RecordTooLarge { sectors, room }));
        }
        let (done, receiver) = oneshot::channel();
        state.enqueue(lane, Waiting { record, done });
        drop(state);
        self.0.schedule_pump();
        Append(AppendState::Waiting(receiver))
    }

    /// Records before `up_to` are not needed any more. Records that are not yet acknowledged stay.
    ///
    /// The space is reused later, once the tail is persisted, which the ring does by itself when it gets short.
    pub fn release(&self, up_to: Position) {
        self.0.state.borrow_mut().release(up_to);
        self.0.persist_if_due();
    }

    /// Persists the tail now: what was released before is not recovered any more.
    pub async fn persist_tail(&self) -> Result<(), RingError> {
        self.0.persist_now().await
    }

    /// Ends when no header of this ring is on its way to a drive, whether or not the ring has failed. A caller that is
    /// to write in its place waits for that, when nothing is appended any more: a late header would say that what
    /// follows was never complete.
    pub async fn quiet(&self) {
        while self.0.persisting.get() {
            self.0.changed.wait().await;
        }
    }

    /// How full it is.
    pub fn space(&self) -> Space {
        let state = self.0.state.borrow();
        let sectors = u64::from(BLOCK_SECTORS);
        Space {
            capacity: state.blocks * sectors,
            used: (state.block - state.persisted) * sectors,
            live: (state.block - state.tail().block) * sectors,
            waiting: state.waiting_blocks * sectors,
        }
    }

    /// Sectors that a record takes in a frame of its own; less when it shares one.
    pub fn record_sectors(head_bytes: usize, pages: u64) -> u64 {
        Extent::EMPTY.with(head_bytes, pages).blocks() * u64::from(BLOCK_SECTORS)
    }

    /// The first record that is not released.
    pub fn tail(&self) -> Position {
        Position(self.0.state.borrow().released)
    }

    /// The first record that is not acknowledged: [`Ring::release`] of this releases everything that is.
    pub fn stable(&self) -> Position {
        Position(self.0.state.borrow().stable_position())
    }

    /// Why the ring takes no records any more, if so.
    pub fn failure(&self) -> Option<RingError> {
        self.0.failure()
    }

    /// How each copy stands.
    pub fn copies(&self) -> Vec<CopyState> {
        self.0.copies.borrow().iter().map(|place| place.state).collect()
    }

    /// The owner knows that a copy is lost, and has made that durable: it is neither written nor read any more, and
    /// nothing is reported.
    pub fn drop_copy(&self, copy: usize) {
        self.0.forget(copy);
    }
}

pub(crate) fn headroom_blocks(settings: &Settings) -> u64 {
    settings.headroom_sectors.div_ceil(u64::from(BLOCK_SECTORS))
}

/// The highest generation and incarnation that older headers of this very ring have.
async fn outdone(regions: &[Region], id: Uuid) -> (u64, u64) {
    let (mut generation, mut incarnation) = (0, 0);
    for region in regions {
        for place in 0..HEADER_PLACES {
            // What cannot be read will be overwritten.
            let Ok(buf) = region.read_header(place).await else { continue };
            if let HeaderPlace::Valid(header) = header::decode(buf.as_slice())
                && header.ring == id
            {
                generation = generation.max(header.generation);
                incarnation = incarnation.max(header.incarnation);
            }
        }
    }
    (generation, incarnation)
}
