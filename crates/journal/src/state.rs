//! The ring's bookkeeping: what waits, what is under way, what is live, where the tail is. No I/O, no waiting.

use std::collections::VecDeque;

use tier0_world::sync::oneshot;

use crate::append::AppendResult;
use crate::frame::Extent;
use crate::header::Tail;
use crate::{Position, Record, RingError};

/// A record that waits for a frame.
pub(crate) struct Waiting {
    pub(crate) record: Record,
    pub(crate) done: oneshot::Sender<AppendResult>,
}

/// A frame whose space is not free.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Live {
    pub(crate) sequence: u64,
    pub(crate) block: u64,
    pub(crate) blocks: u64,
    /// The checksum of the frame before it.
    pub(crate) previous: u64,
    /// Its own.
    pub(crate) checksum: u64,
    /// Position after its last record.
    pub(crate) end: u64,
}

/// A frame that is being written.
pub(crate) struct InFlight {
    pub(crate) stable: bool,
    first: u64,
    done: Vec<oneshot::Sender<AppendResult>>,
}

/// Which of the two queues a record waits in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Lane {
    Urgent,
    Normal,
}

/// A frame that has been cut from the queues and is to be written.
pub(crate) struct Cut {
    pub(crate) extent: Extent,
    pub(crate) records: Vec<Record>,
    pub(crate) sequence: u64,
    pub(crate) block: u64,
    pub(crate) first: u64,
    pub(crate) previous: u64,
    done: Vec<oneshot::Sender<AppendResult>>,
}

pub(crate) struct State {
    /// Blocks of the ring proper.
    pub(crate) blocks: u64,
    /// Blocks that normal appends leave free for urgent ones.
    pub(crate) headroom: u64,
    pub(crate) incarnation: u64,
    pub(crate) fence: u64,
    pub(crate) generation: u64,
    /// The next frame: its number, its block, its first position, the checksum before it.
    pub(crate) sequence: u64,
    pub(crate) block: u64,
    pub(crate) position: u64,
    pub(crate) checksum: u64,
    /// Frames whose space is not free, oldest first, those in flight included.
    pub(crate) live: VecDeque<Live>,
    /// The newest frame of this opening that is stable on every copy.
    pub(crate) newest_stable: Option<Live>,
    /// Frames being written, oldest first; the last has number `sequence - 1`.
    pub(crate) in_flight: VecDeque<InFlight>,
    pub(crate) urgent: VecDeque<Waiting>,
    pub(crate) normal: VecDeque<Waiting>,
    pub(crate) waiting_blocks: u64,
    /// Those of urgent records.
    pub(crate) urgent_blocks: u64,
    /// Positions before this one are not needed.
    pub(crate) released: u64,
    /// The block of the tail in the stable headers: space from here on must not be reused.
    pub(crate) persisted: u64,
    /// Frames from this number on stay live, because they are being copied.
    pub(crate) pin: Option<u64>,
    pub(crate) failed: Option<RingError>,
}

impl State {
    /// A ring whose log begins and ends at `tail`.
    pub(crate) fn new(blocks: u64, headroom: u64, tail: Tail) -> State {
        State {
            blocks,
            headroom,
            incarnation: 0,
            fence: 0,
            generation: 0,
            sequence: tail.sequence,
            block: tail.block,
            position: tail.position,
            checksum: tail.previous,
            live: VecDeque::new(),
            newest_stable: None,
            in_flight: VecDeque::new(),
            urgent: VecDeque::new(),
            normal: VecDeque::new(),
            waiting_blocks: 0,
            urgent_blocks: 0,
            released: tail.position,
            persisted: tail.block,
            pin: None,
            failed: None,
        }
    }

    /// The number of the first frame that is not known to be stable.
    pub(crate) fn stable_sequence(&self) -> u64 {
        self.sequence - self.in_flight.len() as u64
    }

    /// The position of the first record that is not acknowledged.
    pub(crate) fn stable_position(&self) -> u64 {
        self.in_flight.front().map_or(self.position, |frame| frame.first)
    }

    /// Where the log begins now.
    pub(crate) fn tail(&self) -> Tail {
        let (block, sequence, previous) = match self.live.front() {
            Some(frame) => (frame.block, frame.sequence, frame.previous),
            None => (self.block, self.sequence, self.checksum),
        };
        Tail { block, sequence, previous, position: self.released }
    }

    /// Blocks that the next frame may take.
    pub(crate) fn free(&self) -> u64 {
        self.blocks - (self.block - self.persisted)
    }

    /// Blocks that an empty ring has for one frame of this lane.
    pub(crate) fn room(&self, lane: Lane) -> u64 {
        match lane {
            Lane::Urgent => self.blocks,
            Lane::Normal => self.blocks - self.headroom,
        }
    }

    pub(crate) fn enqueue(&mut self, lane: Lane, waiting: Waiting) {
        let blocks = waiting.record.extend(Extent::EMPTY).blocks();
        self.waiting_blocks += blocks;
        match lane {
            Lane::Urgent => {
                self.urgent_blocks += blocks;
                self.urgent.push_back(waiting);
            }
            Lane::Normal => self.normal.push_back(waiting),
        }
    }

    /// Whether records wait that find no room.
    pub(crate) fn is_starved(&self) -> bool {
        let fits = |waiting: &Waiting, room: u64| waiting.record.extend(Extent::EMPTY).blocks() <= room;
        match (self.urgent.front(), self.normal.front()) {
            (Some(_), _) => self.urgent_blocks > self.free(),
            (None, Some(normal)) => !fits(normal, self.free().saturating_sub(self.headroom)),
            (None, None) => false,
        }
    }

    /// Takes as many waiting records as fit into one frame of at most `blocks_max` blocks: urgent ones first, then normal ones, each in order.
    pub(crate) fn cut(&mut self, blocks_max: u64) -> Option<Cut> {
        // Urgent records are counted on to share frames: with room that comes back soon they would not.
        if self.urgent_blocks > self.free() && self.tail().block > self.persisted {
            return None;
        }
        let mut extent = Extent::EMPTY;
        let (mut records, mut done) = (Vec::new(), Vec::new());
        for (lane, room) in
            [(Lane::Urgent, self.free()), (Lane::Normal, self.free().saturating_sub(self.headroom))]
        {
            let queue = match lane {
                Lane::Urgent => &mut self.urgent,
                Lane::Normal => &mut self.normal,
            };
            while let Some(waiting) = queue.front() {
                let grown = waiting.record.extend(extent);
                let fits = grown.blocks() <= room
                    && (records.is_empty() || grown.blocks() <= blocks_max)
                    && u32::try_from(grown.header_bytes).is_ok();
                if !fits {
                    break;
                }
                extent = grown;
                let waiting = queue.pop_front().expect("it was there just now");
                let blocks = waiting.record.extend(Extent::EMPTY).blocks();
                self.waiting_blocks -= blocks;
                self.urgent_blocks -= if lane == Lane::Urgent { blocks } else { 0 };
                records.push(waiting.record);
                done.push(waiting.done);
            }
            if !queue.is_empty() {
                break;
            }
        }
        if records.is_empty() {
            return None;
        }
        let (sequence, block, first, previous) = (self.sequence, self.block, self.position, self.checksum);
        Some(Cut { extent, records, sequence, block, first, previous, done })
    }

    /// The frame that was cut is on its way; `checksum` is its own.
    pub(crate) fn launch(&mut self, cut: Cut, checksum: u64) {
        let (blocks, end) = (cut.extent.blocks(), cut.first + cut.records.len() as u64);
        let (sequence, block, previous) = (cut.sequence, cut.block, cut.previous);
        self.adopt(Live { sequence, block, blocks, previous, checksum, end });
        self.in_flight.push_back(InFlight { stable: false, first: cut.first, done: cut.done });
    }

    /// The log ends with this frame.
    pub(crate) fn adopt(&mut self, frame: Live) {
        self.sequence = frame.sequence + 1;
        self.block = frame.block + frame.blocks;
        self.position = frame.end;
        self.checksum = frame.checksum;
        self.live.push_back(frame);
    }

    /// A frame is stable on all copies that are left: acknowledges it and what it held up. Nothing if it was settled
    /// before, or if the ring has failed.
    pub(crate) fn settle(&mut self, sequence: u64) {
        let index = sequence.checked_sub(self.stable_sequence());
        let Some(frame) = index.and_then(|index| self.in_flight.get_mut(index as usize)) else { return };
        frame.stable = true;
        while let Some(frame) = self.in_flight.pop_front_if(|frame| frame.stable) {
            for (position, done) in (frame.first..).zip(frame.done) {
                // The caller may be gone.
                let _ = done.send(Ok(crate::Appended { position: Position(position) }));
            }
        }
        let stable = self.stable_sequence();
        let newest = self.live.iter().rev().find(|frame| frame.sequence < stable);
        self.newest_stable = newest.copied().or(self.newest_stable);
        self.trim();
    }

    /// Records before `up_to` are not needed, as far as they are acknowledged.
    pub(crate) fn release(&mut self, up_to: Position) {
        self.released = self.released.max(up_to.0.min(self.stable_position()));
        self.trim();
    }

    /// Forgets frames that are no longer needed.
    pub(crate) fn trim(&mut self) {
        let (stable, released) = (self.stable_sequence(), self.released);
        let limit = self.pin.map_or(stable, |pin| pin.min(stable));
        while self.live.pop_front_if(|frame| frame.sequence < limit && frame.end <= released).is_some() {}
    }

    /// Ends everything that waits, now and later, with `error`.
    pub(crate) fn fail(&mut self, error: RingError) {
        let waiting = self.urgent.drain(..).chain(self.normal.drain(..)).map(|waiting| waiting.done);
        for done in self.in_flight.drain(..).flat_map(|frame| frame.done).chain(waiting) {
            let _ = done.send(Err(error.clone()));
        }
        (self.waiting_blocks, self.urgent_blocks) = (0, 0);
        self.failed = Some(error);
    }
}
