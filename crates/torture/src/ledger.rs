//! What was written to a volume, and whether what is read there is right.
//!
//! A write gets a version, and its sectors carry it ([`stamp`]); which versions a sector may hold is the [`Book`]'s to
//! say. After a crash everything is read before the load goes on, and what is found is the only one from then on: recovery
//! must not change its mind.
//!
//! Invariant: requests in flight never overlap, the load sees to that, so that a sector at rest has one version.
//!
//! It does not know how the server works, nor which of its caches held what: only what was answered.

use std::fmt;
use std::ops::Range;

use tier0_units::{PAGE_SECTORS, SECTOR_BYTES};
use tier0_workload::verify::{Allowed, Book, Effect, Holds, Moment, ReadTicket, first_difference, stamp};

/// Bytes of a sector.
const SECTOR: usize = SECTOR_BYTES as usize;

/// A change under way.
#[derive(Debug)]
pub(crate) struct Ticket {
    range: Range<u64>,
    version: u32,
}

/// A sector that is not what it must be: an acknowledged write is lost, or data came from nowhere.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Wrong {
    lba: u64,
    allowed: Allowed<'static>,
    holds: Holds,
    /// The first byte that differs from the newest version.
    byte: usize,
}

/// The versions of all sectors of a volume.
#[derive(Debug)]
pub(crate) struct Ledger {
    seed: u64,
    book: Book,
    in_flight: Vec<Range<u64>>,
    version: u32,
}

impl Ledger {
    /// Of a new volume of `sectors`, all zeros; `keeps_acknowledged` where every acknowledged write survives the end of
    /// the server.
    pub(crate) fn new(sectors: u64, seed: u64, keeps_acknowledged: bool) -> Ledger {
        let book = Book::new(sectors as usize, keeps_acknowledged);
        Ledger { seed, book, in_flight: Vec::new(), version: 0 }
    }

    pub(crate) fn sectors(&self) -> u64 {
        self.book.units()
    }

    /// Reserves a range for one request, unless another one is under way there.
    pub(crate) fn reserve(&mut self, range: &Range<u64>) -> bool {
        let free = self.in_flight.iter().all(|other| other.end <= range.start || range.end <= other.start);
        if free {
            self.in_flight.push(range.clone());
        }
        free
    }

    /// Gives a reserved range back.
    pub(crate) fn release(&mut self, range: &Range<u64>) {
        let at = self.in_flight.iter().position(|other| other == range).expect("it was reserved");
        self.in_flight.swap_remove(at);
    }

    /// Stamps `data` with the next version, to be written to the reserved `range`.
    pub(crate) fn begin_write(&mut self, range: &Range<u64>, data: &mut [u8]) -> Ticket {
        let ticket = self.begin(range, |_| Effect::Stamp);
        for (lba, sector) in range.clone().zip(data.chunks_exact_mut(SECTOR)) {
            stamp(sector, lba, ticket.version, self.seed);
        }
        ticket
    }

    /// Zeros are about to be written to the reserved `range`.
    pub(crate) fn begin_zeroes(&mut self, range: &Range<u64>) -> Ticket {
        self.begin(range, |_| Effect::Zeros)
    }

    /// The reserved `range` is about to be discarded: whole pages read as zeros.
    pub(crate) fn begin_discard(&mut self, range: &Range<u64>) -> Ticket {
        self.begin(range, |lba| Effect::of_discard(range, PAGE_SECTORS, lba))
    }

    fn begin(&mut self, range: &Range<u64>, effect: impl Fn(u64) -> Effect) -> Ticket {
        self.version += 1;
        range.clone().for_each(|lba| self.book.begin_write(lba, self.version, effect(lba)));
        Ticket { range: range.clone(), version: self.version }
    }

    /// The change was answered well, or failed; `durable` where the answer promises that it survives a crash.
    pub(crate) fn end(&mut self, ticket: Ticket, acknowledged: bool, durable: bool) {
        ticket.range.for_each(|lba| self.book.end_write(lba, ticket.version, acknowledged, durable));
    }

    /// What was answered up to now is stable once the flush that begins now is answered.
    pub(crate) fn begin_flush(&mut self) -> Moment {
        self.book.begin_flush()
    }

    /// The flush that began at `began` was answered.
    pub(crate) fn end_flush(&mut self, began: Moment) {
        self.book.end_flush(began);
    }

    /// The server is gone: nothing is under way any more, and whatever was is uncertain.
    pub(crate) fn crashed(&mut self) {
        self.in_flight.clear();
        self.book.crash();
    }

    /// A read of the reserved `range` begins.
    pub(crate) fn begin_read(&self, range: &Range<u64>) -> ReadTicket {
        let mut ticket = ReadTicket::default();
        self.book.begin_read(range.clone(), self.version, &mut ticket);
        ticket
    }

    /// Judges what was read while the server ran.
    pub(crate) fn judge_running(&mut self, ticket: &ReadTicket, data: &[u8]) -> Result<(), Box<Wrong>> {
        for (lba, sector) in ticket.units().zip(data.chunks_exact(SECTOR)) {
            let allowed = self.book.allowed(ticket, lba);
            let version = self.judge(lba, sector, &allowed)?;
            self.book.observe(lba, &allowed, version);
        }
        Ok(())
    }

    /// Judges what was read after a crash, and takes it for what is there from now on.
    pub(crate) fn judge_recovered(&mut self, ticket: &ReadTicket, data: &[u8]) -> Result<(), Box<Wrong>> {
        for (lba, sector) in ticket.units().zip(data.chunks_exact(SECTOR)) {
            let allowed = self.book.allowed(ticket, lba);
            let version = self.judge(lba, sector, &allowed)?;
            self.book.recovered(lba, version);
        }
        Ok(())
    }

    fn judge(&self, lba: u64, sector: &[u8], allowed: &Allowed<'_>) -> Result<u32, Box<Wrong>> {
        let holds = Holds::of(sector, self.seed);
        allowed.version_of(&holds, lba).ok_or_else(|| {
            let byte = first_difference(sector, lba, allowed.newest(), self.seed).unwrap_or(0);
            Box::new(Wrong { lba, allowed: allowed.clone().into_owned(), holds, byte })
        })
    }
}

impl fmt::Display for Wrong {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Wrong { lba, allowed, holds, byte } = self;
        write!(f, "sector {lba} must hold {allowed} but holds ")?;
        match holds {
            Holds::Zeros => f.write_str("zeros: lost write"),
            Holds::Stamp { address, version } if address == lba => {
                write!(f, "version {version}: lost write (stale data)")
            }
            Holds::Stamp { address, version } => write!(f, "version {version} of sector {address}"),
            Holds::OtherSeed { .. } | Holds::Noise => {
                write!(f, "corrupt data, wrong from byte {byte} on")
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Sectors of the volume.
    const SECTORS: u64 = 2 * PAGE_SECTORS;

    /// A ledger, and what a correct volume would hold.
    fn ledger(keeps_acknowledged: bool) -> (Ledger, Vec<u8>) {
        (Ledger::new(SECTORS, 9, keeps_acknowledged), vec![0; SECTORS as usize * SECTOR])
    }

    /// A write of the sectors 1 and 2 that has begun; its data.
    fn write(ledger: &mut Ledger) -> (Ticket, Vec<u8>) {
        let mut data = vec![0; 2 * SECTOR];
        let ticket = ledger.begin_write(&(1..3), &mut data);
        (ticket, data)
    }

    fn runs(ledger: &mut Ledger, volume: &[u8]) -> Result<(), Box<Wrong>> {
        let ticket = ledger.begin_read(&(0..SECTORS));
        ledger.judge_running(&ticket, volume)
    }

    fn recovers(ledger: &mut Ledger, volume: &[u8]) -> Result<(), Box<Wrong>> {
        let ticket = ledger.begin_read(&(0..SECTORS));
        ledger.judge_recovered(&ticket, volume)
    }

    fn flush(ledger: &mut Ledger) {
        let began = ledger.begin_flush();
        ledger.end_flush(began);
    }

    #[test]
    fn what_was_acknowledged_must_be_there_and_what_was_not_may_be() {
        let (mut ledger, mut volume) = ledger(true);
        let (first, data) = write(&mut ledger);
        ledger.end(first, true, false);
        assert!(runs(&mut ledger, &volume).is_err(), "the write is lost");
        volume[SECTOR..3 * SECTOR].copy_from_slice(&data);
        runs(&mut ledger, &volume).expect("it is there");
        let (_second, data) = write(&mut ledger);
        ledger.crashed();
        recovers(&mut ledger, &volume).expect("the second write did not land");
        volume[SECTOR..3 * SECTOR].copy_from_slice(&data);
        let wrong = recovers(&mut ledger, &volume).expect_err("recovery may not change its mind");
        assert_eq!(
            wrong.to_string(),
            "sector 1 must hold version 1 but holds version 2: lost write (stale data)"
        );
    }

    #[test]
    fn a_failed_write_may_have_landed_and_a_read_tells() {
        let (mut ledger, mut volume) = ledger(true);
        let (failed, data) = write(&mut ledger);
        ledger.end(failed, false, true);
        volume[2 * SECTOR..3 * SECTOR].copy_from_slice(&data[SECTOR..]);
        runs(&mut ledger, &volume).expect("half of it has");
        volume[SECTOR..2 * SECTOR].copy_from_slice(&data[..SECTOR]);
        assert!(runs(&mut ledger, &volume).is_err(), "the other half does not land later");
    }

    #[test]
    fn sectors_of_one_write_may_land_apart() {
        let (mut ledger, mut volume) = ledger(true);
        let (_ticket, data) = write(&mut ledger);
        ledger.crashed();
        volume[2 * SECTOR..3 * SECTOR].copy_from_slice(&data[SECTOR..]);
        recovers(&mut ledger, &volume).expect("half of an unanswered write");
        volume[2 * SECTOR + 200] ^= 1;
        let wrong = recovers(&mut ledger, &volume).expect_err("one bit is wrong");
        assert_eq!(
            wrong.to_string(),
            "sector 2 must hold version 1 but holds corrupt data, wrong from byte 200 on"
        );
        volume[2 * SECTOR + 200] ^= 1;
        volume.copy_within(2 * SECTOR..3 * SECTOR, 0);
        let wrong = recovers(&mut ledger, &volume).expect_err("it belongs elsewhere");
        assert_eq!(
            wrong.to_string(),
            "sector 0 must hold zeros, never written but holds version 1 of sector 2"
        );
    }

    #[test]
    fn a_volatile_cache_may_lose_what_no_flush_covered() {
        let (mut ledger, mut volume) = ledger(false);
        let (first, early) = write(&mut ledger);
        ledger.end(first, true, false);
        let began = ledger.begin_flush();
        let (second, data) = write(&mut ledger);
        ledger.end(second, true, false);
        assert!(runs(&mut ledger, &volume).is_err(), "while it runs, the newest is read");
        ledger.end_flush(began);
        ledger.crashed();
        assert!(recovers(&mut ledger, &volume).is_err(), "the first or the second");
        volume[SECTOR..2 * SECTOR].copy_from_slice(&early[..SECTOR]);
        volume[2 * SECTOR..3 * SECTOR].copy_from_slice(&data[SECTOR..]);
        recovers(&mut ledger, &volume).expect("the second has landed in part");
        ledger.crashed();
        recovers(&mut ledger, &volume).expect("it stays");
        let (durable, data) = write(&mut ledger);
        ledger.end(durable, true, true);
        ledger.crashed();
        assert!(recovers(&mut ledger, &volume).is_err(), "it was to be durable");
        volume[SECTOR..3 * SECTOR].copy_from_slice(&data);
        recovers(&mut ledger, &volume).expect("it is there");
    }

    #[test]
    fn a_discard_zeroes_whole_pages_and_of_others_what_it_likes() {
        let (mut ledger, mut volume) = ledger(true);
        let (first, data) = write(&mut ledger);
        ledger.end(first, true, false);
        volume[SECTOR..3 * SECTOR].copy_from_slice(&data);
        let ticket = ledger.begin_discard(&(2..SECTORS));
        ledger.end(ticket, true, false);
        assert!(runs(&mut ledger, &vec![0; volume.len()]).is_err(), "sector 1 was not discarded");
        runs(&mut ledger, &volume).expect("the rest of the page is left alone");
        let ticket = ledger.begin_discard(&(0..PAGE_SECTORS));
        ledger.end(ticket, true, false);
        assert!(runs(&mut ledger, &volume).is_err(), "zeros");
        runs(&mut ledger, &vec![0; volume.len()]).expect("zeros");
        let (second, data) = write(&mut ledger);
        ledger.end(second, true, false);
        volume[SECTOR..3 * SECTOR].copy_from_slice(&data);
        recovers(&mut ledger, &volume).expect("the write");
        let ticket = ledger.begin_zeroes(&(1..2));
        ledger.end(ticket, true, false);
        volume[SECTOR..2 * SECTOR].fill(0);
        runs(&mut ledger, &volume).expect("no more than the sectors of the request");
    }

    #[test]
    fn recovery_decides_what_a_discarded_sector_holds() {
        let (mut ledger, mut volume) = ledger(false);
        let (first, data) = write(&mut ledger);
        ledger.end(first, true, true);
        let ticket = ledger.begin_discard(&(0..PAGE_SECTORS));
        ledger.end(ticket, true, false);
        ledger.crashed();
        recovers(&mut ledger, &volume).expect("the discard has landed");
        volume[SECTOR..3 * SECTOR].copy_from_slice(&data);
        assert!(recovers(&mut ledger, &volume).is_err(), "what was discarded comes back");
    }

    #[test]
    fn a_flush_makes_nothing_stable_that_a_crash_has_taken() {
        let (mut ledger, volume) = ledger(false);
        let (lost, _) = write(&mut ledger);
        ledger.end(lost, true, false);
        ledger.crashed();
        recovers(&mut ledger, &volume).expect("a volatile cache may lose the write");
        flush(&mut ledger);
        runs(&mut ledger, &volume).expect("it stays lost");
        recovers(&mut ledger, &volume).expect("also after the next crash");
    }

    #[test]
    fn requests_under_way_do_not_overlap() {
        let (mut ledger, _) = ledger(true);
        assert!(ledger.reserve(&(0..2)));
        assert!(!ledger.reserve(&(1..3)));
        assert!(ledger.reserve(&(2..3)));
        ledger.release(&(0..2));
        assert!(ledger.reserve(&(1..2)));
    }
}
