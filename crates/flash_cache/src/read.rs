//! Reads of slots from devices.

use std::ops::Range;
use std::rc::Rc;

use futures_util::future::join_all;
use tier0_units::{Lba, Nanos, PAGE_SECTORS};
use tier0_world::{BufMut, IoError};

use crate::cache::FlashCache;
use crate::checks::page_check;
use crate::device::Device;
use crate::entry::{Entry, Line};
use crate::line::{LINE_SECTORS, half_bit};
use crate::patience::within;

/// The longest read that is answered, sectors: 64 KiB.
pub(crate) const SECTORS_MAX: u32 = 128;
/// After so many reads one after the other that took too long, a device is not asked for a while. Reads that wait at the same
/// time wait for the same thing, and are one of these.
const SLOW_READS_MAX: u32 = 4;
const PAUSE: Nanos = Nanos::from_secs(5);

/// A line, and which of its pages are wanted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Wanted {
    pub(crate) x: u64,
    pub(crate) halves: u8,
    /// The sector of the slot at which the line begins.
    pub(crate) first_sector: u64,
}

/// The pages that sectors of a slot lie on.
pub(crate) fn pages_of(first_sector: u64, sectors: u32) -> Option<Range<u32>> {
    let end = first_sector.checked_add(u64::from(sectors))?.div_ceil(PAGE_SECTORS);
    Some(u32::try_from(first_sector / PAGE_SECTORS).ok()?..u32::try_from(end).ok()?)
}

/// A line that is being read; its place is not used for another one meanwhile.
struct Part {
    device: Rc<Device>,
    wanted: Wanted,
    line: Line,
    entry: Entry,
}

impl Part {
    fn new(device: &Rc<Device>, wanted: Wanted, line: Line, entry: Entry) -> Part {
        *device.state.borrow_mut().reading.entry(line).or_insert(0) += 1;
        Part { device: device.clone(), wanted, line, entry }
    }

    /// Where these sectors of the slot lie, if they are all the valid pages, side by side.
    fn exactly(&self, first_sector: u64, sectors: u32) -> Option<Lba> {
        let begins = self.wanted.first_sector + self.first_half() * PAGE_SECTORS;
        match self.runs()[..] {
            [(lba, count)] if begins == first_sector && count == sectors => Some(lba),
            _ => None,
        }
    }

    /// Where the valid pages lie.
    fn runs(&self) -> Vec<(Lba, u32)> {
        let state = self.device.state.borrow();
        let pages = u64::from(self.entry.valid.count_ones());
        state.place.runs(state.shape.line_at(self.line) + self.first_half(), pages)
    }

    /// Reads the valid pages.
    async fn fetch(&self) -> (Result<(), IoError>, BufMut) {
        let mut all = BufMut::default();
        for (number, (lba, sectors)) in self.runs().into_iter().enumerate() {
            let (result, buf) = self.device.drive.read(lba, self.device.world.buffer(sectors)).await;
            match number {
                0 => all = buf,
                _ => all.append(buf),
            }
            if result.is_err() {
                return (result, all);
            }
        }
        (Ok(()), all)
    }

    fn first_half(&self) -> u64 {
        u64::from(self.entry.valid == 2)
    }

    fn is_whole(&self, data: &BufMut) -> bool {
        let width = data.width().bytes() * PAGE_SECTORS as usize;
        let bytes = data.as_slice();
        let mut check = 0;
        for (number, half) in (0..2u32).filter(|half| self.entry.valid & 1 << half != 0).enumerate() {
            check ^= page_check(self.wanted.x, half, &bytes[number * width..(number + 1) * width]);
        }
        check == self.entry.check
    }

    /// Whether the line has been where it is since the read began. Nothing else comes to the place meanwhile.
    fn is_still_there(&self) -> bool {
        let state = self.device.state.borrow();
        let found = state.lookup(self.wanted.x, self.wanted.halves);
        !state.is_off() && found.is_some_and(|(line, _)| line == self.line)
    }

    /// Whether what was read of its valid pages is what it has; where that is wrong, it has it no more.
    fn is_good(&self, result: Result<(), IoError>, data: &BufMut) -> bool {
        if !self.is_still_there() {
            return false;
        }
        let is_good = result.is_ok() && self.is_whole(data);
        let mut state = self.device.state.borrow_mut();
        state.slow_reads = 0;
        match is_good {
            true => state.table.touch(self.line),
            false => {
                self.device.shared.counters.borrow_mut().read_errors += 1;
                state.strike(self.wanted.x);
                state.unlogged_since.get_or_insert(self.device.world.now());
            }
        }
        is_good
    }

    /// Copies what is wanted.
    fn copy(&self, data: &BufMut, first_sector: u64, buf: &mut BufMut) {
        let width = buf.width().bytes();
        let begins = self.wanted.first_sector + self.first_half() * PAGE_SECTORS;
        let ends = begins + u64::from(data.sectors());
        let from = begins.max(first_sector);
        let to = ends.min(first_sector + u64::from(buf.sectors()));
        let part = |base: u64| (from - base) as usize * width..(to - base) as usize * width;
        buf.as_mut_slice()[part(first_sector)].copy_from_slice(&data.as_slice()[part(begins)]);
    }
}

impl Drop for Part {
    fn drop(&mut self) {
        let mut state = self.device.state.borrow_mut();
        if let Some(count) = state.reading.get_mut(&self.line) {
            *count -= 1;
            if *count == 0 {
                state.reading.remove(&self.line);
            }
        }
        drop(state);
        self.device.ended.notify_all();
    }
}

impl FlashCache {
    /// Whether all pages of a slot's sectors are there; costs no I/O.
    pub fn has(&self, slot: u64, first_sector: u64, sectors: u32) -> bool {
        let Some(wanted) = self.wanted(slot, first_sector, sectors) else { return false };
        wanted.iter().all(|wanted| {
            self.in_order(wanted.x, |device| {
                let found = device.state.borrow().lookup(wanted.x, wanted.halves);
                found.filter(|_| device.answers()).map(|_| ())
            })
            .is_some()
        })
    }

    /// The lines that sectors of a slot lie on; none if that is nothing, too much, or more than there can be.
    fn wanted(&self, slot: u64, first_sector: u64, sectors: u32) -> Option<Vec<Wanted>> {
        if sectors == 0 || sectors > SECTORS_MAX {
            return None;
        }
        let mut all: Vec<Wanted> = Vec::new();
        for page in pages_of(first_sector, sectors)? {
            let x = self.shared.lines.number(slot, page)?;
            match all.last_mut().filter(|last| last.x == x) {
                Some(last) => last.halves |= half_bit(page),
                None => {
                    let first_sector = u64::from(page / 2) * LINE_SECTORS;
                    all.push(Wanted { x, halves: half_bit(page), first_sector });
                }
            }
        }
        Some(all)
    }

    /// Reads a slot from `first_sector` on: whether all of it came from flash. The buffer comes back in any case; where it
    /// did not, its content is arbitrary.
    ///
    /// What is struck out while it is read was not here.
    pub async fn read(&self, slot: u64, first_sector: u64, mut buf: BufMut) -> (bool, BufMut) {
        if !self.is_on() || buf.width() != self.shared.world.width() {
            return (false, buf);
        }
        let parts = self.parts(slot, first_sector, buf.sectors()).unwrap_or_default();
        let own = match parts.as_slice() {
            [part] => part.exactly(first_sector, buf.sectors()).map(|lba| (part, lba)),
            _ => None,
        };
        let is_hit = match own {
            _ if parts.is_empty() => false,
            None => self.read_parts(&parts, first_sector, &mut buf).await,
            Some((part, lba)) => {
                let read = self.read_into(part, lba, buf).await;
                buf = read.1;
                read.0
            }
        };
        let mut counters = self.shared.counters.borrow_mut();
        match is_hit {
            true => counters.hits += 1,
            false => counters.misses += 1,
        }
        (is_hit, buf)
    }

    /// The lines to be read, if all are there.
    fn parts(&self, slot: u64, first_sector: u64, sectors: u32) -> Option<Vec<Part>> {
        let wanted = self.wanted(slot, first_sector, sectors)?;
        let part = |wanted: &Wanted| {
            self.in_order(wanted.x, |device| {
                let found = device.state.borrow().lookup(wanted.x, wanted.halves);
                let (line, entry) = found.filter(|_| device.answers())?;
                Some(Part::new(device, *wanted, line, entry))
            })
        };
        wanted.iter().map(part).collect()
    }

    /// Reads a line, which lies at `lba`, for who has asked for just that.
    async fn read_into(&self, part: &Part, lba: Lba, buf: BufMut) -> (bool, BufMut) {
        let (begun, sectors) = (self.shared.world.now(), buf.sectors());
        let read = part.device.drive.read(lba, buf);
        match within(&self.shared.world, self.shared.options.read_patience, read).await {
            Some((result, buf)) => (part.is_good(result, &buf), buf),
            None => {
                self.was_slow(std::slice::from_ref(part), begun);
                // The command goes on, and keeps its buffer.
                (false, self.shared.world.buffer(sectors))
            }
        }
    }

    async fn read_parts(&self, parts: &[Part], first_sector: u64, buf: &mut BufMut) -> bool {
        let begun = self.shared.world.now();
        let reads = join_all(parts.iter().map(Part::fetch));
        // Commands go on when nobody waits for them, and keep their buffers.
        let Some(found) = within(&self.shared.world, self.shared.options.read_patience, reads).await else {
            self.was_slow(parts, begun);
            return false;
        };
        let mut is_hit = true;
        for (part, (result, data)) in parts.iter().zip(found) {
            is_hit &= part.is_good(result, &data);
            if is_hit {
                part.copy(&data, first_sector, buf);
            }
        }
        is_hit
    }

    /// A read that has `begun` then took too long: devices for which that is usual are not asked for a while.
    fn was_slow(&self, parts: &[Part], begun: Nanos) {
        self.shared.counters.borrow_mut().slow_reads += 1;
        let mut seen: Vec<u32> = Vec::new();
        for part in parts {
            let device = &part.device;
            if seen.contains(&device.number) {
                continue;
            }
            seen.push(device.number);
            let mut state = device.state.borrow_mut();
            if begun < state.slow_since {
                continue;
            }
            let now = device.world.now();
            state.slow_since = now;
            state.slow_reads += 1;
            if state.slow_reads >= SLOW_READS_MAX {
                state.slow_reads = 0;
                state.paused_until = now.saturating_add(PAUSE);
            }
        }
    }
}
