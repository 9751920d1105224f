//! One drive: requests in, completions out.
//!
//! The mechanism does one thing at a time: a command, the destaging of buffered writes, or, until something else wants
//! it, read-ahead. What it does is worked out when it begins, in closed form per track; read-ahead is worked out on
//! demand. So a random read costs one decision and one completion, however many sectors it has.
//!
//! Use: call [`DiskModel::advance`] up to a time before [`DiskModel::submit`] at that time;
//! [`DiskModel::next_event`] says when `advance` has something to do.

mod read;
mod write;

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};
use std::sync::Arc;

use tier0_units::{Lba, Nanos, SectorCount};

use super::bus::Arrivals;
use super::geometry::{Arm, Geometry};
use super::media::Pass;
use super::schedule::{Candidate, Schedule, Situation, Work};
use super::segments::Segments;
use super::{Overheads, Place, Preseek};

/// What a request does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Operation {
    /// Bring sectors to the host.
    Read,
    /// Take sectors from the host; reported done as the drive's parameters say.
    Write,
    /// The same, but reported done only once on the medium.
    WriteThrough,
    /// Report done once every write that was reported done before is on the medium. Has no sectors.
    Flush,
}

/// One request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DiskRequest {
    /// Comes back with the completion; the model does not look at it.
    pub id: u64,
    /// What to do.
    pub operation: Operation,
    /// First sector.
    pub lba: Lba,
    /// Sectors, at least 1 unless it is a flush.
    pub sectors: u32,
}

/// A request that leaves the disk.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{sectors} sectors from {lba} do not lie on a disk of {capacity}; ask for 1 or more within it")]
pub struct OutOfRange {
    /// First sector.
    pub lba: Lba,
    /// Sectors.
    pub sectors: u32,
    /// Sectors of the disk.
    pub capacity: SectorCount,
}

/// What a drive has done since it began.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DiskStatistics {
    /// Reads served from the buffer alone.
    pub read_hits: u64,
    /// Reads of which the first part came from the buffer or the ongoing read-ahead.
    pub read_partial_hits: u64,
    /// Reads from the medium.
    pub read_misses: u64,
    /// Writes reported done in the buffer.
    pub writes_buffered: u64,
    /// Writes reported done on the medium.
    pub writes_to_medium: u64,
    /// Times that buffered writes went to the medium.
    pub destages: u64,
}

/// A drive.
#[derive(Clone, Debug)]
pub struct DiskModel {
    geometry: Arc<Geometry>,
    /// How far the platter had turned at time zero.
    spindle: u64,
    arm: Arm,
    /// When the mechanism can take up something new.
    free_at: u64,
    reading: Option<Reading>,
    destaging: Option<Destaging>,
    bus_free_at: u64,
    last_was_write: bool,
    /// Past the last sector written to the medium, and when it was.
    written_up_to: (u64, u64),
    segments: Segments,
    schedule: Schedule,
    slots: Vec<Slot>,
    free_slots: Vec<usize>,
    /// Requests beyond the queue depth, with the host.
    waiting: VecDeque<DiskRequest>,
    in_drive: u32,
    completions: BinaryHeap<Reverse<Completion>>,
    flushes: VecDeque<Flush>,
    writes_accepted: u64,
    counter: u64,
    arrivals: Vec<Arrivals>,
    statistics: DiskStatistics,
}

/// A read or read-ahead in progress: the segment it fills and the run under the head.
#[derive(Clone, Copy, Debug)]
struct Reading {
    segment: usize,
    pass: Pass,
}

/// Buffered writes on their way to the medium.
#[derive(Clone, Copy, Debug)]
struct Destaging {
    segment: usize,
    /// Past the last sector of it, and when that is on the medium.
    up_to: u64,
    ends_at: u64,
    /// Number of the write after those on their way.
    next_write: u64,
}

/// A command in the drive.
#[derive(Clone, Copy, Debug)]
struct Slot {
    request: DiskRequest,
    arrived: u64,
    /// Command processing is over.
    ready_at: u64,
    /// The drive has left the bus.
    disconnected_at: u64,
    /// The host's data are sent, or the data in the buffer can be sent, from here on, without reconnecting.
    connected_from: Option<u64>,
    extra_disconnect: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Completion {
    at: u64,
    number: u64,
    id: u64,
    write: bool,
}

#[derive(Clone, Copy, Debug)]
struct Flush {
    id: u64,
    /// Writes up to this number must be on the medium.
    writes: u64,
}

impl DiskModel {
    /// A drive at rest on its first cylinder. `spindle` is how far its platters have turned at time zero; drives of
    /// an array are not in step.
    pub fn new(geometry: Arc<Geometry>, spindle: Nanos) -> DiskModel {
        let parameters = geometry.parameters();
        let depth = parameters.controller.queue_depth as usize;
        let limit = parameters.controller.starvation_limit.0;
        let capacity = depth.min(1_024) + parameters.buffer.write_segments as usize;
        DiskModel {
            spindle: spindle.0 % u64::from(geometry.period()),
            arm: Arm { cylinder: 0, surface: 0 },
            free_at: 0,
            reading: None,
            destaging: None,
            bus_free_at: 0,
            last_was_write: false,
            written_up_to: (0, 0),
            segments: Segments::new(&parameters.buffer),
            schedule: Schedule::new(parameters.controller.scheduling, limit, capacity),
            slots: Vec::new(),
            free_slots: Vec::new(),
            waiting: VecDeque::new(),
            in_drive: 0,
            completions: BinaryHeap::with_capacity(depth.min(1_024)),
            flushes: VecDeque::new(),
            writes_accepted: 0,
            counter: 0,
            arrivals: Vec::with_capacity(16),
            statistics: DiskStatistics::default(),
            geometry,
        }
    }

    /// What it is.
    pub fn geometry(&self) -> &Geometry {
        &self.geometry
    }

    /// What it has done.
    pub fn statistics(&self) -> DiskStatistics {
        self.statistics
    }

    /// Requests that have been submitted and not completed.
    pub fn outstanding(&self) -> usize {
        self.in_drive as usize + self.waiting.len()
    }

    /// Takes a request at time `now`.
    pub fn submit(&mut self, now: Nanos, request: DiskRequest) -> Result<(), OutOfRange> {
        self.check(&request)?;
        self.work_until(now.0);
        if self.in_drive < self.geometry.parameters().controller.queue_depth {
            self.accept(now.0, request);
        } else {
            self.waiting.push_back(request);
        }
        Ok(())
    }

    /// When [`DiskModel::advance`] has something to do next.
    pub fn next_event(&self) -> Option<Nanos> {
        let completion = self.completions.peek().map(|Reverse(completion)| completion.at);
        [completion, self.next_work()].into_iter().flatten().min().map(Nanos)
    }

    /// Does all that happens up to `now`, and calls `completed` with the id and the time of each request that ends,
    /// in order of time.
    pub fn advance(&mut self, now: Nanos, completed: &mut impl FnMut(u64, Nanos)) {
        loop {
            let completion = self.completions.peek().map(|Reverse(completion)| completion.at);
            let work = self.next_work();
            match (completion, work) {
                (Some(at), work) if at <= now.0 && work.is_none_or(|work| at <= work) => {
                    self.deliver(completed);
                }
                (_, Some(work)) if work <= now.0 => self.work(work),
                _ => return,
            }
        }
    }

    fn check(&self, request: &DiskRequest) -> Result<(), OutOfRange> {
        let DiskRequest { lba, sectors, operation, .. } = *request;
        let capacity = self.geometry.sectors();
        let fits = lba.0.checked_add(u64::from(sectors)).is_some_and(|end| end <= capacity.0) && sectors > 0;
        if fits || operation == Operation::Flush {
            Ok(())
        } else {
            Err(OutOfRange { lba, sectors, capacity })
        }
    }

    fn deliver(&mut self, completed: &mut impl FnMut(u64, Nanos)) {
        let Some(Reverse(completion)) = self.completions.pop() else { return };
        self.in_drive -= 1;
        self.last_was_write = completion.write;
        completed(completion.id, Nanos(completion.at));
        if let Some(request) = self.waiting.pop_front() {
            self.accept(completion.at, request);
        }
    }

    /// When the mechanism has something to begin, or a flush to answer.
    fn next_work(&self) -> Option<u64> {
        let next = (!self.schedule.is_empty()).then_some(self.free_at);
        let flush = self.destaging.filter(|_| !self.flushes.is_empty()).map(|destaging| destaging.ends_at);
        [next, flush].into_iter().flatten().min()
    }

    fn work_until(&mut self, now: u64) {
        while let Some(at) = self.next_work().filter(|&at| at <= now) {
            self.work(at);
        }
    }

    /// Lets the mechanism take up what it can at time `now`.
    fn work(&mut self, now: u64) {
        self.settle(now);
        while self.free_at <= now {
            let situation =
                Situation { now, leaves_at: self.leaves_at(now), arm: self.arm_now(), spindle: self.spindle };
            let Some(candidate) = self.schedule.take_next(&self.geometry, situation) else { return };
            match candidate.work {
                Work::Destage(segment) => self.destage(now, segment, candidate.ready_at),
                Work::Command(slot) => match self.slots[slot].request.operation {
                    Operation::Read => self.begin_read(now, slot, candidate),
                    _ => self.begin_write(now, slot, candidate),
                },
            }
        }
    }

    /// Brings the buffer up to what the mechanism has done by `now`.
    fn settle(&mut self, now: u64) {
        self.read_on(now);
        let Some(destaging) = self.destaging.filter(|destaging| destaging.ends_at <= now) else { return };
        self.destaging = None;
        let Destaging { segment, up_to, ends_at, next_write } = destaging;
        if self.segments.clean(segment, up_to, next_write) {
            self.schedule_destage(ends_at, segment, ends_at);
        }
        self.answer_flushes(ends_at);
    }

    fn accept(&mut self, now: u64, request: DiskRequest) {
        self.settle(now);
        self.in_drive += 1;
        match request.operation {
            Operation::Flush => {
                self.flushes.push_back(Flush { id: request.id, writes: self.writes_accepted });
                self.answer_flushes(now);
            }
            Operation::Read => self.accept_read(now, request),
            Operation::Write | Operation::WriteThrough => self.accept_write(now, request),
        }
    }

    /// Answers the flushes whose writes are all on the medium.
    fn answer_flushes(&mut self, now: u64) {
        let oldest = self.segments.oldest_write().unwrap_or(u64::MAX);
        let overheads = self.overheads();
        let delay = overheads.per_request.0 + overheads.write_completion.0;
        while let Some(&Flush { id, writes }) = self.flushes.front() {
            if oldest <= writes {
                return;
            }
            self.flushes.pop_front();
            self.complete(id, now + delay, true);
        }
    }

    fn complete(&mut self, id: u64, at: u64, write: bool) {
        self.counter += 1;
        self.completions.push(Reverse(Completion { at, number: self.counter, id, write }));
    }

    /// Whether a command that comes in at `now` finds the drive free (read-ahead does not count).
    fn is_idle(&self, now: u64) -> bool {
        self.free_at <= now && self.schedule.is_empty()
    }

    /// The track that the head is over or on the way to.
    fn arm_now(&self) -> Arm {
        self.reading.map_or(self.arm, |reading| reading.pass.arm)
    }

    /// When the arm can leave: read-ahead stops between sectors, and not before the head is over a track.
    fn leaves_at(&self, now: u64) -> u64 {
        let Some(Reading { pass, .. }) = self.reading else { return now };
        if now < pass.on_track_at {
            return pass.on_track_at;
        }
        if now <= pass.starts_at || self.geometry.parameters().buffer.interrupt_in_sector {
            return now;
        }
        let passed = pass.passed(&self.geometry, now);
        if pass.time_after(&self.geometry, passed) == now {
            return now;
        }
        pass.time_after(&self.geometry, (passed + 1).min(pass.count)).max(now)
    }

    /// Ends read-ahead; the arm stays where it is. Returns when it can leave.
    fn stop_reading(&mut self, now: u64) -> u64 {
        let leaves_at = self.leaves_at(now);
        if let Some(Reading { segment, pass }) = self.reading.take() {
            let limit = self.segments.get(segment).read_limit;
            let passed = pass.first + pass.passed(&self.geometry, leaves_at);
            self.segments.read_up_to(segment, passed.min(limit));
            self.arm = pass.arm;
        }
        leaves_at
    }

    fn schedule_command(&mut self, slot: usize) {
        let Slot { request, arrived, ready_at, .. } = self.slots[slot];
        let write = request.operation != Operation::Read;
        self.push_candidate(Work::Command(slot), write, request.lba, arrived, ready_at);
    }

    fn schedule_destage(&mut self, now: u64, segment: usize, ready_at: u64) {
        let first = Lba(self.segments.get(segment).dirty_from);
        self.push_candidate(Work::Destage(segment), true, first, now, ready_at);
    }

    fn push_candidate(&mut self, work: Work, write: bool, first: Lba, arrived: u64, ready_at: u64) {
        let place: Place = self.geometry.layout().locate(first);
        let arm = Arm { cylinder: place.cylinder, surface: place.surface };
        let phase = self.geometry.phase_of(&place);
        self.counter += 1;
        self.schedule.push(Candidate { work, write, arm, phase, arrived, number: self.counter, ready_at });
    }

    fn new_slot(&mut self, slot: Slot) -> usize {
        match self.free_slots.pop() {
            Some(index) => {
                self.slots[index] = slot;
                index
            }
            None => {
                self.slots.push(slot);
                self.slots.len() - 1
            }
        }
    }

    fn overheads(&self) -> Overheads {
        self.geometry.parameters().controller.overheads
    }

    fn sector_transfer(&self) -> u64 {
        self.geometry.parameters().controller.sector_transfer.0
    }

    /// When the arm may leave after a command whose last sector left the medium, was transferred and completed at
    /// these times.
    fn release_at(&self, media: u64, transferred: u64, completed: u64) -> u64 {
        match self.geometry.parameters().controller.preseek {
            Preseek::AfterMedia => media,
            Preseek::AfterTransfer => media.max(transferred),
            Preseek::AfterCompletion => media.max(completed),
        }
    }
}
