//! Writes: through the buffer or to the medium, and destaging.

use super::super::WriteReporting;
use super::super::media::{Access, Pass};
use super::super::schedule::{Candidate, Work};
use super::super::segments::{Segment, State, WriteMatch};
use super::read::range;
use super::{Destaging, DiskModel, DiskRequest, Operation, Slot};

/// Data on their way from the host: the block that the transfer begins with, and when.
#[derive(Clone, Copy, Debug)]
struct Incoming {
    first: u64,
    at: u64,
    per_sector: u64,
    /// Sectors that must be in the buffer before the first one is written.
    lead: u64,
}

impl Incoming {
    /// When block `lba` is in the buffer and may be written.
    fn time_of(&self, lba: u64, first_of_pass: bool) -> u64 {
        let Some(before) = lba.checked_sub(self.first) else { return 0 };
        let sectors = if first_of_pass { (before + 1).max(self.lead) } else { before + 1 };
        self.at + sectors * self.per_sector
    }
}

impl DiskModel {
    pub(super) fn accept_write(&mut self, now: u64, request: DiskRequest) {
        let overheads = self.overheads();
        let after = self.last_was_write;
        let buffered = self.is_buffered(&request);
        let overhead = if buffered { overheads.write_hit } else { overheads.write_miss };
        let ready_at = now + overheads.per_request.0 + overhead.after(after);
        let mut slot = Slot {
            request,
            arrived: now,
            ready_at,
            disconnected_at: ready_at + if buffered { overheads.write_disconnect.0 } else { 0 },
            connected_from: None,
            extra_disconnect: false,
        };
        let idle = self.is_idle(now);
        if idle || self.geometry.parameters().buffer.write_while_busy || self.goes_on_with(&request) {
            slot.connected_from = Some(ready_at + overheads.data_preparation.0);
            self.insert_extra_disconnect(now, &mut slot);
            if buffered && self.write_to_buffer(now, &slot, slot.ready_at) {
                self.work(now);
                return;
            }
        }
        if !idle && !self.geometry.parameters().buffer.write_while_busy {
            slot.connected_from = None;
        }
        let index = self.new_slot(slot);
        self.schedule_command(index);
        self.work(now);
    }

    /// Whether the request is reported done in the buffer.
    fn is_buffered(&self, request: &DiskRequest) -> bool {
        let buffer = &self.geometry.parameters().buffer;
        request.operation == Operation::Write
            && buffer.write_reporting != WriteReporting::Medium
            && u64::from(request.sectors) <= self.segments.size()
    }

    /// Whether the write continues the data that are going to the medium now.
    fn goes_on_with(&self, request: &DiskRequest) -> bool {
        let Some(destaging) = self.destaging else { return false };
        let buffer = &self.geometry.parameters().buffer;
        let alone = buffer.write_reporting == WriteReporting::InBuffer || self.schedule.is_empty();
        buffer.combine_writes && alone && self.segments.span(destaging.segment).end == request.lba.0
    }

    /// Some drives disconnect between command and data where a write does not continue the one before.
    fn insert_extra_disconnect(&mut self, now: u64, slot: &mut Slot) {
        let controller = &self.geometry.parameters().controller;
        let Some(extra) = controller.extra_write_disconnect.filter(|_| !controller.never_disconnect) else {
            return;
        };
        let (start, end) = range(&slot.request);
        let reading = self.reading.map(|reading| reading.segment);
        let target = match self.segments.find_write(start, end, reading) {
            WriteMatch::Append(segment) | WriteMatch::Claim(segment) => segment,
            WriteMatch::Collision(_) | WriteMatch::Full => return,
        };
        let segment = self.segments.get(target);
        if !segment.written || self.segments.span(target).end == start || !self.segments.is_latest(target) {
            return;
        }
        let overheads = controller.overheads;
        let processed = now + overheads.per_request.0 + extra.command.0;
        let reconnect = processed + extra.disconnect.0 + extra.until_reconnect.0 + overheads.first_reselect.0;
        slot.ready_at = processed + extra.seek_delay.0;
        slot.connected_from = Some(reconnect + overheads.data_preparation.0);
        slot.extra_disconnect = true;
    }

    /// Takes a write into the buffer and reports it done, where there is room. Its data come in from
    /// `slot.connected_from` on.
    fn write_to_buffer(&mut self, now: u64, slot: &Slot, ready_at: u64) -> bool {
        let (start, end) = range(&slot.request);
        let reading = self.reading.map(|reading| reading.segment);
        let found = self.segments.find_write(start, end, reading);
        let (WriteMatch::Append(segment) | WriteMatch::Claim(segment)) = found else { return false };
        self.writes_accepted += 1;
        self.statistics.writes_buffered += 1;
        let from = slot.connected_from.unwrap_or(slot.disconnected_at).max(self.bus_free_at);
        let transferred = from + u64::from(slot.request.sectors) * self.sector_transfer();
        self.bus_free_at = transferred;
        self.complete(slot.request.id, transferred + self.overheads().write_completion.0, true);
        self.forget_stale(now, start, end, segment);
        let was_dirty = matches!(found, WriteMatch::Append(_));
        if was_dirty {
            self.segments.append_dirty(segment, end);
        } else {
            self.segments.fill_dirty(segment, start, end, self.writes_accepted);
        }
        let held = self.segments.get_mut(segment);
        (held.incoming_from, held.incoming_at) = (start, from);
        if !was_dirty {
            self.schedule_destage(now, segment, ready_at);
        }
        true
    }

    /// Gives up clean copies of what a write to `start..end` changes, but in segment `keep`.
    fn forget_stale(&mut self, now: u64, start: u64, end: u64, keep: usize) {
        if let Some(reading) = self.reading {
            let (limit, span) =
                (self.segments.get(reading.segment).read_limit, self.segments.span(reading.segment));
            // Read-ahead would bring in old data up to its limit.
            if reading.segment == keep || (start < limit && end > span.start) {
                let leaves_at = self.stop_reading(now);
                self.free_at = self.free_at.max(leaves_at);
            }
        }
        self.segments.forget(start, end, keep);
    }

    /// The mechanism takes up a write that is not in the buffer.
    pub(super) fn begin_write(&mut self, now: u64, index: usize, candidate: Candidate) {
        let mut slot = self.slots[index];
        let (start, end) = range(&slot.request);
        let reading = self.reading.map(|reading| reading.segment);
        let found = self.segments.find_write(start, end, reading);
        if let WriteMatch::Collision(segment) = found {
            self.schedule.push(candidate);
            self.destage_first(now, segment);
            return;
        }
        let overheads = self.overheads();
        let reconnected =
            now.max(slot.disconnected_at) + overheads.first_reselect.0 + overheads.data_preparation.0;
        if self.is_buffered(&slot.request) && !matches!(found, WriteMatch::Full) {
            slot.connected_from = Some(reconnected);
            let taken = self.write_to_buffer(now, &slot, slot.ready_at);
            debug_assert!(taken, "a segment was found for the write");
        } else {
            let from = slot.connected_from.unwrap_or(reconnected).max(self.bus_free_at);
            self.write_to_medium(now, &slot, from, found);
        }
        self.free_slots.push(index);
    }

    /// Writes a request to the medium, its data coming in from time `from` on, and reports it done.
    fn write_to_medium(&mut self, now: u64, slot: &Slot, from: u64, found: WriteMatch) {
        self.statistics.writes_to_medium += 1;
        let (start, end) = range(&slot.request);
        let overheads = self.overheads();
        let transferred = from + u64::from(slot.request.sectors) * self.sector_transfer();
        self.bus_free_at = transferred;
        let leaves_at = self.stop_reading(now).max(slot.ready_at);
        let media_end = self.write_passes(leaves_at, start, end, from, start);
        let controller = &self.geometry.parameters().controller;
        let reported = if controller.never_disconnect {
            media_end.max(transferred)
        } else {
            let extra = controller.extra_write_disconnect.filter(|_| slot.extra_disconnect);
            let disconnect = extra.map_or(overheads.write_disconnect.0, |extra| extra.second_disconnect.0);
            let reselect =
                if extra.is_some() { overheads.other_reselect.0 } else { overheads.first_reselect.0 };
            media_end.max(transferred + disconnect) + reselect
        };
        let completed = reported + overheads.write_completion.0;
        self.complete(slot.request.id, completed, true);
        self.free_at = self.release_at(media_end, reported, completed);
        let keep = match found {
            WriteMatch::Claim(segment) => segment,
            // An append goes behind data of which the segment's clean end cannot be told apart: it keeps no copy.
            WriteMatch::Append(_) | WriteMatch::Collision(_) | WriteMatch::Full => usize::MAX,
        };
        self.segments.forget(start, end, keep);
        if keep != usize::MAX {
            self.segments.fill_dirty(keep, start.max(end.saturating_sub(self.segments.size())), end, 0);
            self.segments.clean(keep, end, 0);
        }
    }

    /// Sends unwritten data of a segment to the medium, before anything that needs them there.
    pub(super) fn destage_first(&mut self, now: u64, segment: usize) {
        let ready_at =
            self.schedule.remove(Work::Destage(segment)).map_or(now, |candidate| candidate.ready_at);
        self.destage(now, segment, ready_at);
    }

    /// Sends the unwritten data of a segment to the medium.
    pub(super) fn destage(&mut self, now: u64, segment: usize, ready_at: u64) {
        self.statistics.destages += 1;
        let leaves_at = self.stop_reading(now).max(ready_at);
        let Segment { dirty_from, incoming_at, incoming_from, .. } = *self.segments.get(segment);
        let end = self.segments.span(segment).end;
        let ends_at = self.write_passes(leaves_at, dirty_from, end, incoming_at, incoming_from);
        self.segments.get_mut(segment).state = State::Writing;
        let next_write = self.writes_accepted + 1;
        self.destaging = Some(Destaging { segment, up_to: end, ends_at, next_write });
        self.free_at = ends_at;
    }

    /// Moves the head over blocks `start..end` and writes them as they come in from the host: from `incoming_from`
    /// on they do so from time `incoming_at` on, the ones before are there. Returns when the last one is written.
    fn write_passes(
        &mut self,
        leaves_at: u64,
        start: u64,
        end: u64,
        incoming_at: u64,
        incoming_from: u64,
    ) -> u64 {
        let parameters = self.geometry.parameters();
        let (controller, per_sector) = (&parameters.controller, self.sector_transfer());
        // Drives with the extra disconnection wait for this many sectors (DiskSim 4.0, its buffer's availability
        // check): 10, or 15 of a request of 45 or more.
        let lead = match controller.extra_write_disconnect {
            Some(_) if end - start < 45 => (end - start).min(10),
            Some(_) => 15,
            _ => 1,
        };
        let incoming = Incoming { first: incoming_from, at: incoming_at, per_sector, lead };
        let streams = self.written_up_to == (start, leaves_at);
        let least_seek = if streams { 0 } else { controller.minimum_write_seek.0 };
        let zero_latency = parameters.buffer.zero_latency_write;
        let mut access = Access { write: true, least_seek };
        let (mut arm, mut at, mut next) = (self.arm, leaves_at, start);
        while next < end {
            let pass = Pass::begin(&self.geometry, self.spindle, arm, at, next, access);
            let wanted = pass.count.min(end - next);
            let all_there = incoming.time_of(next + wanted - 1, true) <= pass.on_track_at;
            let missed = pass.missed(&self.geometry, wanted).filter(|_| zero_latency && all_there);
            (at, next) = match missed {
                Some(missed) => (pass.time_after(&self.geometry, missed), next + wanted),
                None => self.write_pass(&pass, wanted, &incoming),
            };
            arm = pass.arm;
            access = Access { write: true, least_seek: 0 };
        }
        self.arm = arm;
        self.written_up_to = (end, at);
        at
    }

    /// Writes the first sectors of a pass, up to `wanted`, as far as they are there when the head is. Returns when
    /// the last one was written, and the block after it.
    fn write_pass(&self, pass: &Pass, wanted: u64, incoming: &Incoming) -> (u64, u64) {
        let period = u64::from(self.geometry.period());
        // Sectors that come too late cost whole turns.
        let late = incoming.time_of(pass.first, true).saturating_sub(pass.starts_at);
        let turns = late.div_ceil(period);
        let mut pass = *pass;
        pass.starts_at += turns * period;
        let in_time = |sector: u64| {
            incoming.time_of(pass.first + sector, false) <= pass.time_after(&self.geometry, sector)
        };
        let mut count = wanted;
        // Both the arrivals and the needs are evenly spaced: where the last sector is in time, all are.
        if !in_time(wanted - 1) {
            let first_late = (1..wanted).find(|&sector| !in_time(sector));
            count = first_late.unwrap_or(wanted);
        }
        (pass.time_after(&self.geometry, count), pass.first + count)
    }
}
