//! Reads and read-ahead.

use tier0_units::Lba;

use super::super::bus::{Arrivals, Link};
use super::super::media::{Pass, READ};
use super::super::schedule::Candidate;
use super::super::segments::{ReadMatch, Span};
use super::super::{ReadAhead, RequestedData, WaterMarkOf};
use super::{DiskModel, DiskRequest, Reading, Slot};

impl DiskModel {
    pub(super) fn accept_read(&mut self, now: u64, request: DiskRequest) {
        let overheads = self.overheads();
        let after = self.last_was_write;
        let now_processed = now + overheads.per_request.0;
        let hit_from = now_processed + overheads.read_hit.after(after) + overheads.data_preparation.0;
        let ready_at = now_processed + overheads.read_miss.after(after);
        let (start, end) = range(&request);
        let idle = self.is_idle(now);
        let buffer = &self.geometry.parameters().buffer;
        let (busy_hits, partial_at_once) = (buffer.hit_while_busy, buffer.send_partial_hit_at_once);
        let reading = self.reading.map(|reading| reading.segment);
        let mut connected_from = None;
        match self.segments.find_read(start, end, reading) {
            ReadMatch::Whole(segment) if idle || busy_hits => {
                self.serve_hit(now, &request, segment, hit_from, ready_at);
                return;
            }
            ReadMatch::Partial(segment) if idle => {
                let there = self.segments.span(segment).end - start;
                if partial_at_once || there >= self.water_mark(&request) {
                    connected_from = Some(hit_from);
                }
            }
            _ => {}
        }
        if self.geometry.parameters().controller.never_disconnect && connected_from.is_none() {
            connected_from = Some(ready_at + overheads.data_preparation.0);
        }
        let slot = self.new_slot(Slot {
            request,
            arrived: now,
            ready_at,
            disconnected_at: ready_at + overheads.read_disconnect.after(after),
            connected_from,
            extra_disconnect: false,
        });
        self.schedule_command(slot);
        self.work(now);
    }

    /// Sends a read from the buffer, from time `from` on.
    fn serve_hit(&mut self, now: u64, request: &DiskRequest, segment: usize, from: u64, ready_at: u64) {
        self.statistics.read_hits += 1;
        let transferred = from.max(self.bus_free_at) + u64::from(request.sectors) * self.sector_transfer();
        self.bus_free_at = transferred;
        self.complete(request.id, transferred + self.overheads().read_completion.0, false);
        self.segments.touch(segment);
        self.extend_read_ahead(segment, request);
        self.drop_requested(segment, range(request).1);
        let elsewhere = self.reading.is_some_and(|reading| reading.segment != segment);
        let buffer = &self.geometry.parameters().buffer;
        let (busy_hits, on_hit) = (buffer.hit_while_busy, buffer.read_ahead_on_hit);
        if elsewhere && !busy_hits {
            let leaves_at = self.stop_reading(now);
            self.free_at = self.free_at.max(leaves_at);
        }
        let wants_more = self.segments.span(segment).end < self.segments.get(segment).read_limit;
        if self.reading.is_none() && on_hit && wants_more && self.is_idle(now) {
            let first = self.segments.span(segment).end;
            let pass = Pass::begin(&self.geometry, self.spindle, self.arm, ready_at.max(now), first, READ);
            self.reading = Some(Reading { segment, pass });
        }
    }

    /// The mechanism takes up a read.
    pub(super) fn begin_read(&mut self, now: u64, index: usize, candidate: Candidate) {
        let slot = self.slots[index];
        let (start, end) = range(&slot.request);
        let reading = self.reading.map(|reading| reading.segment);
        match self.segments.find_read(start, end, reading) {
            ReadMatch::Collision(segment) => {
                self.schedule.push(candidate);
                self.destage_first(now, segment);
                return;
            }
            ReadMatch::Whole(segment) => {
                let overheads = self.overheads();
                let connects = overheads.first_reselect.0 + overheads.data_preparation.0;
                let from = now.max(slot.disconnected_at) + connects;
                self.serve_hit(now, &slot.request, segment, from, slot.ready_at);
            }
            ReadMatch::Partial(segment) => {
                self.statistics.read_partial_hits += 1;
                self.segments.touch(segment);
                self.read_from_medium(now, &slot, Some(segment), true);
            }
            ReadMatch::None => {
                self.statistics.read_misses += 1;
                let segment = self.segments.claim_for_read(reading);
                self.read_from_medium(now, &slot, segment, false);
            }
        }
        self.free_slots.push(index);
    }

    /// Reads what of the request is not in `segment` (where `hit`, that holds its beginning), and sends it.
    fn read_from_medium(&mut self, now: u64, slot: &Slot, segment: Option<usize>, hit: bool) {
        let (start, end) = range(&slot.request);
        let mut first = start;
        self.arrivals.clear();
        if let Some(segment) = segment.filter(|_| hit) {
            first = self.segments.span(segment).end;
            self.arrivals.push(Arrivals::at_once(first - start, now));
        } else if let Some(segment) = segment {
            *self.segments.span_mut(segment) = Span { start, end: start };
        }
        let going_on = self.reading.filter(|reading| hit && Some(reading.segment) == segment);
        let pass = match going_on {
            Some(reading) if reading.pass.first <= first => reading.pass,
            _ => {
                let leaves_at = self.stop_reading(now).max(slot.ready_at);
                Pass::begin(&self.geometry, self.spindle, self.arm, leaves_at, first, READ)
            }
        };
        if let Some(segment) = segment {
            self.extend_read_ahead(segment, &slot.request);
        }
        if going_on.is_none() && !hit {
            self.keep_free_sectors(&pass, segment);
        }
        if let Some(segment) = segment {
            self.drop_requested(segment, end);
        }
        let (pass, media_end) = self.pass_until(pass, first, end, going_on.is_none());
        let transferred = self.link(slot).end_of_transfer(&self.arrivals);
        let completed = transferred + self.overheads().read_completion.0;
        self.complete(slot.request.id, completed, false);
        self.bus_free_at = transferred;
        self.arm = pass.arm;
        self.reading = segment.map(|segment| Reading { segment, pass });
        self.free_at =
            self.release_at(media_end, transferred, completed).max(self.least_read_ahead(pass, end));
    }

    /// Follows the passes from block `first` until `end` is reached, noting the arrivals. Returns the last pass and
    /// when the last sector is in the buffer.
    fn pass_until(&mut self, mut pass: Pass, first: u64, end: u64, may_start_within: bool) -> (Pass, u64) {
        let (period, mut next) = (u64::from(self.geometry.period()), first);
        let zero_latency = self.geometry.parameters().buffer.zero_latency_read && may_start_within;
        loop {
            // The first pass may be one that began before.
            let skip = next - pass.first;
            let sectors = pass.count.min(end - pass.first) - skip;
            let part = Arrivals {
                sectors,
                from: pass.time_after(&self.geometry, skip),
                period,
                per_period: u64::from(pass.sectors_per_track),
            };
            let mut ends_at = pass.time_after(&self.geometry, skip + sectors);
            match zero_latency.then(|| pass.missed(&self.geometry, sectors)).flatten() {
                // The head landed behind the first sectors: the others come first, these one turn later.
                Some(missed) => {
                    self.arrivals.push(Arrivals { sectors: missed, ..part });
                    ends_at = pass.time_after(&self.geometry, missed);
                    self.arrivals.push(Arrivals::at_once(sectors - missed, ends_at));
                }
                None => self.arrivals.push(part),
            }
            next += sectors;
            if next == end {
                return (pass, ends_at);
            }
            pass = Pass::begin(&self.geometry, self.spindle, pass.arm, ends_at, next, READ);
        }
    }

    /// Keeps the sectors before the requested ones that pass under the head while it waits for these.
    fn keep_free_sectors(&mut self, pass: &Pass, segment: Option<usize>) {
        let Some(segment) = segment.filter(|_| self.geometry.parameters().buffer.read_free_sectors) else {
            return;
        };
        let (track, _) = self.geometry.layout().track_bounds(Lba(pass.first));
        let before = pass.first.saturating_sub(track.0).min(pass.passed_before(&self.geometry));
        self.segments.span_mut(segment).start = pass.first - before;
    }

    /// When the least read-ahead after `end` is done.
    fn least_read_ahead(&self, mut pass: Pass, end: u64) -> u64 {
        let least = self.geometry.parameters().buffer.read_ahead_min;
        if least == 0 {
            return 0;
        }
        let until = (end + least).min(self.geometry.sectors().0);
        while pass.end() < until {
            pass = pass.next(&self.geometry, self.spindle, false);
        }
        pass.time_after(&self.geometry, until - pass.first)
    }

    /// The link over which a read goes to the host.
    fn link(&self, slot: &Slot) -> Link {
        let (overheads, controller) = (self.overheads(), &self.geometry.parameters().controller);
        Link {
            connected: slot.connected_from.is_some(),
            from: slot.connected_from.unwrap_or(slot.disconnected_at).max(self.bus_free_at),
            per_sector: controller.sector_transfer.0,
            water_mark: self.water_mark(&slot.request),
            hold: controller.hold_bus_for_read || controller.never_disconnect,
            connect: overheads.first_reselect.0 + overheads.data_preparation.0,
            disconnect: overheads.read_disconnect.after(self.last_was_write),
        }
    }

    fn water_mark(&self, request: &DiskRequest) -> u64 {
        let (buffer, size) = (&self.geometry.parameters().buffer, self.segments.size() as f64);
        let sectors = match buffer.water_mark_of {
            WaterMarkOf::Request => (size.min(f64::from(request.sectors)) * buffer.read_water_mark).floor(),
            WaterMarkOf::Segment => (size * buffer.read_water_mark).ceil(),
        };
        (sectors as u64).max(1)
    }

    /// Sets how far the drive reads on after a request.
    fn extend_read_ahead(&mut self, segment: usize, request: &DiskRequest) {
        let (begin, end) = range(request);
        let (buffer, sectors) = (&self.geometry.parameters().buffer, self.geometry.sectors().0);
        let start = self.segments.span(segment).start;
        let layout = self.geometry.layout();
        let limit = match buffer.read_ahead {
            ReadAhead::Off => end,
            _ if end >= sectors => end,
            ReadAhead::NextTrack => {
                let (track, track_end) = layout.track_bounds(Lba(end));
                if start < track.0 {
                    layout.track_bounds(track_end).1.0.max(track_end.0)
                } else {
                    track_end.0
                }
            }
            ReadAhead::TrackEnd | ReadAhead::CylinderEnd | ReadAhead::SegmentFull => {
                let size = self.segments.size();
                match buffer.read_ahead_max {
                    0 if buffer.requested_data == RequestedData::Kept => begin + size,
                    0 => end + size,
                    max => end + max,
                }
            }
        };
        let segment = self.segments.get_mut(segment);
        segment.read_limit = segment.read_limit.max(limit.max(end + buffer.read_ahead_min).min(sectors));
    }

    /// Some drives give up what they have sent.
    fn drop_requested(&mut self, segment: usize, end: u64) {
        if self.geometry.parameters().buffer.requested_data == RequestedData::Dropped {
            let span = self.segments.span_mut(segment);
            span.start = span.start.max(end);
        }
    }

    /// Works read-ahead out up to `now`.
    pub(super) fn read_on(&mut self, now: u64) {
        while let Some(Reading { segment, pass }) = self.reading {
            let limit = self.segments.get(segment).read_limit;
            let passed = pass.first + pass.passed(&self.geometry, now);
            if passed > self.segments.span(segment).end {
                self.segments.read_up_to(segment, passed.min(limit));
            }
            if pass.end() >= limit || passed < pass.end() {
                if passed >= limit {
                    self.arm = pass.arm;
                    self.reading = None;
                }
                return;
            }
            let next = pass.next(&self.geometry, self.spindle, false);
            self.arm = pass.arm;
            self.reading = self.goes_on(&pass, &next).then_some(Reading { segment, pass: next });
        }
    }

    /// Whether read-ahead follows onto the track of `next`.
    fn goes_on(&self, pass: &Pass, next: &Pass) -> bool {
        match self.geometry.parameters().buffer.read_ahead {
            ReadAhead::Off => false,
            ReadAhead::TrackEnd => next.arm == pass.arm,
            ReadAhead::CylinderEnd => next.arm.cylinder == pass.arm.cylinder,
            ReadAhead::SegmentFull | ReadAhead::NextTrack => true,
        }
    }
}

/// First and past-the-last sector.
pub(super) fn range(request: &DiskRequest) -> (u64, u64) {
    (request.lba.0, request.lba.0 + u64::from(request.sectors))
}
