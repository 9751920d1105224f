//! How much of what is asked a device is given at a time.
//!
//! Some devices, virtual disks above all, report nothing before all that they were given is done: a queue of 32 comes
//! back as one batch of 32. Whoever waits for the answers before asking again, as the clients of a server do, then moves
//! in convoy: the device idles while the batch is with the clients, and they idle while it is with the device. Such
//! a device gets a batch at a time: what arrives meanwhile is held, and follows when the batch is done, so that one
//! part of the requests is with the device while the other is with the clients.
//!
//! A device that reports its requests in small parts is never held back: what was learnt is forgotten at twice the speed.
//! Held requests wait at most [`HELD_MAX`], so that one that hangs does not take the others with it. Flushes and durable
//! writes are neither held nor learnt from: somebody waits for each of them, and their end is not the device's alone.

use std::collections::VecDeque;
use std::os::fd::RawFd;

use io_uring::squeue::Entry;
use tier0_units::Nanos;

/// Fewer requests at the device are no batch: nothing is held behind them, and nothing is learnt from them.
const BATCH_MIN: u32 = 4;
/// So many requests must have come back in whole batches before the device is believed to work so.
const BELIEVED: u32 = 128;
/// More are not counted, so that a device that changes its ways is noticed soon.
const COUNTED_MAX: u32 = 256;
/// What a request counts for that came back while most of its batch did not. A batch whose first requests are done before
/// the others have arrived says little, where the others then come back together.
const DOUBT: u32 = 2;
/// What a batch is of all requests, sixteenths. More than half: those that come late make it up.
const SHARE_SIXTEENTHS: u32 = 11;
/// The peak is kept in fractions of a request, so that it can fall slowly.
const FRACTIONS: u32 = 256;
/// The peak falls by this part with every batch that stays below it. Requests on their way between here and the clients
/// are not seen, and those that never all come together shall not be taken for fewer.
const PEAK_FORGOTTEN: u32 = 256;
/// Flash ends a batch of 32 within a millisecond, a disk within 200: what waits longer than this has nothing to gain.
const HELD_MAX: Nanos = Nanos::from_millis(2);

/// The devices of one thread.
pub(super) struct Convoys {
    /// By descriptor.
    lanes: Vec<Lane>,
    /// The descriptor of each slot's operation, by the slot's index.
    descriptors: Vec<RawFd>,
    /// Descriptors that reported since the last judgement.
    reported: Vec<RawFd>,
    held: usize,
}

#[derive(Default)]
struct Lane {
    under_way: u32,
    reported: u32,
    /// Requests that came back in whole batches, less those that did not.
    in_batches: u32,
    /// The most requests that were with the device or held of late, in fractions.
    peak: u32,
    held: VecDeque<Entry>,
    held_since: Nanos,
}

impl Lane {
    /// Two thirds of the requests make a batch, so that the others can be with those who ask.
    fn room(&self) -> usize {
        if self.in_batches < BELIEVED {
            return usize::MAX;
        }
        (self.peak / FRACTIONS * SHARE_SIXTEENTHS / 16).max(BATCH_MIN).saturating_sub(self.under_way) as usize
    }

    fn learn(&mut self) {
        // Requests that joined a batch late may come back after it.
        let whole = self.reported >= self.under_way;
        let present = self.under_way + self.reported + self.held.len() as u32;
        self.peak = (present * FRACTIONS).max(self.peak - self.peak / PEAK_FORGOTTEN);
        if !whole {
            self.in_batches = self.in_batches.saturating_sub(DOUBT * self.reported);
        } else if self.reported >= BATCH_MIN {
            self.in_batches = (self.in_batches + self.reported).min(COUNTED_MAX);
        }
        self.reported = 0;
    }
}

impl Convoys {
    pub(super) fn new() -> Convoys {
        Convoys { lanes: Vec::new(), descriptors: Vec::new(), reported: Vec::new(), held: 0 }
    }

    /// Notes a transfer of the slot `index` on `fd`; gives `entry` back if it shall go to the device now.
    pub(super) fn admit(&mut self, now: Nanos, fd: RawFd, index: u32, entry: Entry) -> Option<Entry> {
        let (place, index) = (fd as usize, index as usize);
        if self.lanes.len() <= place {
            self.lanes.resize_with(place + 1, Lane::default);
        }
        if self.descriptors.len() <= index {
            self.descriptors.resize(index + 1, -1);
        }
        self.descriptors[index] = fd;
        let lane = &mut self.lanes[place];
        if lane.held.is_empty() && lane.room() > 0 {
            lane.under_way += 1;
            return Some(entry);
        }
        if lane.held.is_empty() {
            lane.held_since = now;
        }
        lane.held.push_back(entry);
        self.held += 1;
        None
    }

    /// Notes that the transfer of the slot `index` has ended.
    pub(super) fn ended(&mut self, index: u32) {
        let fd = self.descriptors[index as usize];
        let lane = &mut self.lanes[fd as usize];
        lane.under_way -= 1;
        lane.reported += 1;
        if lane.reported == 1 {
            self.reported.push(fd);
        }
    }

    /// Learns from what was reported since the last call, and moves to `out` what may go to its device now.
    pub(super) fn judge(&mut self, now: Nanos, out: &mut Vec<Entry>) {
        while let Some(fd) = self.reported.pop() {
            let lane = &mut self.lanes[fd as usize];
            lane.learn();
            let count = lane.held.len().min(lane.room());
            if count > 0 {
                self.held -= count;
                release(lane, count, out);
                lane.held_since = now;
            }
        }
        if self.held > 0 {
            self.release_overdue(now, out);
        }
    }

    /// Transfers that are held back.
    pub(super) fn held(&self) -> usize {
        self.held
    }

    /// How long from `now` on nothing may be looked at, if anything is held.
    pub(super) fn patience(&self, now: Nanos) -> Option<Nanos> {
        if self.held == 0 {
            return None;
        }
        let lanes = self.lanes.iter().filter(|lane| !lane.held.is_empty());
        lanes.map(|lane| (lane.held_since + HELD_MAX).saturating_sub(now)).min()
    }

    fn release_overdue(&mut self, now: Nanos, out: &mut Vec<Entry>) {
        for lane in self.lanes.iter_mut().filter(|lane| !lane.held.is_empty()) {
            if now.saturating_sub(lane.held_since) >= HELD_MAX {
                self.held -= lane.held.len();
                release(lane, lane.held.len(), out);
            }
        }
    }
}

fn release(lane: &mut Lane, count: usize, out: &mut Vec<Entry>) {
    lane.under_way += count as u32;
    out.extend(lane.held.drain(..count));
}

#[cfg(test)]
mod tests {
    use io_uring::opcode;

    use super::*;

    const FD: RawFd = 3;
    const NOW: Nanos = Nanos(7);
    /// A batch of sixteen requests.
    const BATCH: u32 = SHARE_SIXTEENTHS;

    fn entry() -> Entry {
        opcode::Nop::new().build()
    }

    /// Gives `count` transfers; how many of them went to the device.
    fn give(convoys: &mut Convoys, count: u32) -> usize {
        (0..count).filter(|&index| convoys.admit(NOW, FD, index, entry()).is_some()).count()
    }

    /// Gives sixteen transfers; how many of them make the batch that went to the device.
    fn give_batch(convoys: &mut Convoys) -> u32 {
        let batch = give(convoys, 16) as u32;
        assert!(batch < 16, "the device is still believed to work in batches");
        batch
    }

    /// Ends `count` transfers together; how many went to the device after it.
    fn end(convoys: &mut Convoys, count: u32) -> usize {
        (0..count).for_each(|index| convoys.ended(index));
        let mut out = Vec::new();
        convoys.judge(NOW, &mut out);
        out.len()
    }

    /// Ends all that is with the device together, until nothing follows.
    fn end_all(convoys: &mut Convoys) {
        while convoys.lanes[FD as usize].under_way > 0 {
            let under_way = convoys.lanes[FD as usize].under_way;
            end(convoys, under_way);
        }
    }

    fn convoyed() -> Convoys {
        let mut convoys = Convoys::new();
        for _ in 0..BELIEVED / 16 {
            assert_eq!(give(&mut convoys, 16), 16, "nothing is believed yet");
            assert_eq!(end(&mut convoys, 16), 0);
        }
        convoys
    }

    #[test]
    fn a_device_that_reports_in_batches_gets_batches() {
        let mut convoys = convoyed();
        assert_eq!(give(&mut convoys, 16), BATCH as usize, "the others are held");
        assert_eq!(convoys.patience(NOW), Some(HELD_MAX));
        let held = 16 - BATCH;
        assert_eq!(end(&mut convoys, BATCH), held as usize, "the next batch is what came meanwhile");
        assert_eq!(convoys.patience(NOW), None);
        let room = (BATCH - held) as usize;
        assert_eq!(give(&mut convoys, BATCH - held + 1), room, "and those that make it up");
        assert_eq!(end(&mut convoys, BATCH), 1);
    }

    #[test]
    fn requests_that_join_late_may_come_back_late() {
        let mut convoys = convoyed();
        for _ in 0..100 {
            let batch = give_batch(&mut convoys);
            assert!(end(&mut convoys, batch - 2) > 0, "two came too late for the batch");
            end_all(&mut convoys);
        }
    }

    #[test]
    fn fewer_clients_are_noticed() {
        let mut convoys = convoyed();
        for _ in 0..1_000 {
            give(&mut convoys, 8);
            end_all(&mut convoys);
        }
        assert_eq!(give(&mut convoys, 8), 4);
    }

    #[test]
    fn a_device_that_reports_one_by_one_is_not_held_back() {
        let mut convoys = Convoys::new();
        give(&mut convoys, 32);
        for _ in 0..100 {
            end(&mut convoys, 1);
            assert_eq!(give(&mut convoys, 1), 1);
        }
        let mut convoys = convoyed();
        assert_eq!(give(&mut convoys, BATCH + 2), BATCH as usize);
        assert_eq!(end(&mut convoys, 1), 2, "a batch in parts is enough to doubt");
        assert_eq!(give(&mut convoys, 8), 8);
    }

    #[test]
    fn the_first_of_a_batch_may_come_back_early() {
        let mut convoys = convoyed();
        for _ in 0..100 {
            give_batch(&mut convoys);
            end(&mut convoys, 2);
            end_all(&mut convoys);
        }
    }

    #[test]
    fn a_device_that_changes_its_ways_is_noticed() {
        let mut convoys = convoyed();
        for _ in 0..1_000 {
            give(&mut convoys, 16);
            end_all(&mut convoys);
        }
        let (mut under_way, mut ended) = (give(&mut convoys, 16) as u32, 0);
        while under_way < 16 {
            under_way = under_way - 1 + end(&mut convoys, 1) as u32 + give(&mut convoys, 1) as u32;
            ended += 1;
        }
        assert!((1..=COUNTED_MAX).contains(&ended), "nothing is held after {ended} that came one by one");
    }

    #[test]
    fn a_device_that_hangs_does_not_keep_what_is_held() {
        let mut convoys = convoyed();
        assert_eq!(give(&mut convoys, BATCH + 1), BATCH as usize);
        let mut out = Vec::new();
        convoys.judge(NOW + HELD_MAX - Nanos(1), &mut out);
        assert_eq!((out.len(), convoys.patience(NOW + HELD_MAX - Nanos(1))), (0, Some(Nanos(1))));
        convoys.judge(NOW + HELD_MAX, &mut out);
        assert_eq!(out.len(), 1);
        assert_eq!(end(&mut convoys, BATCH + 1), 0, "all are accounted for");
    }
}
