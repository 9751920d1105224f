//! What every sector of a volume may hold, given what was acknowledged.
//!
//! A write gets a version, and its sectors carry it ([`stamp`]); version 0 stands for zeros. As long as a write is not
//! known to be stable, the sector has several candidates, in the order of issue. After a crash any of them may be
//! there, and what is found is the only one from then on: recovery must not change its mind.
//!
//! Invariants: requests in flight never overlap, the load sees to that; candidates are in the order of issue, and the
//! one under way, if any, is the last.
//!
//! It does not know how the server works, nor which of its caches held what: only what was answered.

use std::collections::BTreeMap;
use std::fmt;
use std::ops::Range;

use tier0_workload::verify::stamp;

/// Bytes of a sector.
const SECTOR: usize = 512;

/// What a request does to its sectors.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Change {
    /// They hold this version afterwards; 0 for zeros.
    Version(u32),
    /// They hold anything that they once held, or zeros; after a crash, what is found.
    Discard,
}

/// A request under way.
#[derive(Debug)]
pub(crate) struct Ticket {
    range: Range<u64>,
    change: Change,
}

#[derive(Clone, Copy, Debug)]
struct Candidate {
    version: u32,
    /// When it was answered; nothing while that is unknown.
    answered: Option<u64>,
}

/// A sector of which more than one thing must be known.
#[derive(Debug, Default)]
struct Unsettled {
    candidates: Vec<Candidate>,
    /// When it was discarded, if no stable write has followed: any version may be there.
    discarded: Option<u64>,
}

/// A sector that is not what it must be: an acknowledged write is lost, or data came from nowhere.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Wrong {
    lba: u64,
    allowed: Vec<u32>,
    found: Found,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Found {
    Version(u32),
    OtherSector { lba: u64, version: u32 },
    Corrupt { byte: usize },
}

/// The versions of all sectors of a volume.
#[derive(Debug)]
pub(crate) struct Ledger {
    seed: u64,
    settled: Vec<u32>,
    unsettled: BTreeMap<u64, Unsettled>,
    in_flight: Vec<Range<u64>>,
    versions: u32,
    now: u64,
}

impl Ledger {
    /// Of a new volume of `sectors`, all zeros.
    pub(crate) fn new(sectors: u64, seed: u64) -> Ledger {
        let settled = vec![0; sectors as usize];
        Ledger { seed, settled, unsettled: BTreeMap::new(), in_flight: Vec::new(), versions: 0, now: 0 }
    }

    pub(crate) fn sectors(&self) -> u64 {
        self.settled.len() as u64
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
        self.versions += 1;
        for (lba, sector) in range.clone().zip(data.chunks_exact_mut(SECTOR)) {
            stamp(sector, lba, self.versions, self.seed);
        }
        self.begin(range, Change::Version(self.versions))
    }

    /// Begins a request that changes the reserved `range`.
    pub(crate) fn begin(&mut self, range: &Range<u64>, change: Change) -> Ticket {
        self.now += 1;
        for lba in range.clone() {
            let settled = Candidate { version: self.settled[lba as usize], answered: Some(0) };
            let sector = self
                .unsettled
                .entry(lba)
                .or_insert_with(|| Unsettled { candidates: vec![settled], discarded: None });
            match change {
                Change::Version(version) => sector.candidates.push(Candidate { version, answered: None }),
                Change::Discard => sector.discarded = Some(self.now),
            }
        }
        Ticket { range: range.clone(), change }
    }

    /// The request was answered well; `stable` where the answer promises that it survives a crash.
    pub(crate) fn answered(&mut self, ticket: Ticket, stable: bool) {
        self.now += 1;
        let Change::Version(_) = ticket.change else { return };
        for lba in ticket.range {
            let sector = self.unsettled.get_mut(&lba).expect("a write under way is a candidate");
            sector.candidates.last_mut().expect("the write is the last").answered = Some(self.now);
            if stable {
                self.settle(lba, self.now);
            }
        }
    }

    /// What was answered up to now is stable once the flush that begins now is answered.
    pub(crate) fn begin_flush(&self) -> u64 {
        self.now
    }

    /// The flush that began at `moment` was answered.
    pub(crate) fn end_flush(&mut self, moment: u64) {
        let unsettled: Vec<u64> = self.unsettled.keys().copied().collect();
        unsettled.into_iter().for_each(|lba| self.settle(lba, moment));
    }

    /// Whatever was answered by `moment` is stable: older candidates are out.
    fn settle(&mut self, lba: u64, moment: u64) {
        let sector = self.unsettled.get_mut(&lba).expect("only unsettled sectors are settled");
        let stable = |candidate: &Candidate| candidate.answered.is_some_and(|answered| answered <= moment);
        let Some(newest) = sector.candidates.iter().rposition(stable) else { return };
        // A write after the discard decides again what is there.
        let answered = sector.candidates[newest].answered;
        sector.discarded = sector.discarded.filter(|discarded| answered < Some(*discarded));
        sector.candidates.drain(..newest);
        if let [only] = sector.candidates[..]
            && sector.discarded.is_none()
        {
            self.settled[lba as usize] = only.version;
            self.unsettled.remove(&lba);
        }
    }

    /// The server is gone: nothing is under way any more, and whatever was is uncertain.
    pub(crate) fn crashed(&mut self) {
        self.in_flight.clear();
    }

    /// Judges what was read while the server ran without a crash since: nothing older than what was answered last.
    pub(crate) fn judge_running(&self, first: u64, data: &[u8]) -> Result<(), Box<Wrong>> {
        for (lba, sector) in (first..).zip(data.chunks_exact(SECTOR)) {
            let (all, discarded) = self.candidates(lba);
            let newest = all.iter().rposition(|candidate| candidate.answered.is_some()).unwrap_or(0);
            self.judge(lba, sector, &versions(&all[newest..]), discarded)?;
        }
        Ok(())
    }

    /// Judges what was read after a crash, and takes it for what is there from now on.
    pub(crate) fn judge_recovered(&mut self, first: u64, data: &[u8]) -> Result<(), Box<Wrong>> {
        for (lba, sector) in (first..).zip(data.chunks_exact(SECTOR)) {
            let (all, discarded) = self.candidates(lba);
            // Discarded or not, what the crash took is gone: a flush to come must not make it stable.
            self.settled[lba as usize] = self.judge(lba, sector, &versions(&all), discarded)?;
            self.unsettled.remove(&lba);
        }
        Ok(())
    }

    fn candidates(&self, lba: u64) -> (Vec<Candidate>, bool) {
        match self.unsettled.get(&lba) {
            Some(sector) => (sector.candidates.clone(), sector.discarded.is_some()),
            None => (vec![Candidate { version: self.settled[lba as usize], answered: Some(0) }], false),
        }
    }

    fn judge(&self, lba: u64, sector: &[u8], allowed: &[u32], any: bool) -> Result<u32, Box<Wrong>> {
        let holds = |version| is_version(sector, lba, version, self.seed);
        if let Some(&version) = allowed.iter().find(|version| holds(**version)) {
            return Ok(version);
        }
        let found = self.identify(lba, sector, allowed[allowed.len() - 1]);
        match found {
            Found::Version(version) if any => Ok(version),
            found => Err(Box::new(Wrong { lba, allowed: allowed.to_vec(), found })),
        }
    }

    fn identify(&self, lba: u64, sector: &[u8], newest: u32) -> Found {
        let claimed_lba = u64::from_le_bytes(sector[..8].try_into().expect("eight bytes"));
        let version = u32::from_le_bytes(sector[8..12].try_into().expect("four bytes"));
        if is_version(sector, lba, 0, self.seed) {
            return Found::Version(0);
        }
        if is_version(sector, claimed_lba, version, self.seed) {
            let here = claimed_lba == lba;
            return if here {
                Found::Version(version)
            } else {
                Found::OtherSector { lba: claimed_lba, version }
            };
        }
        let expected = content(lba, newest, self.seed);
        let differs = sector.iter().zip(&expected).position(|(found, expected)| found != expected);
        Found::Corrupt { byte: differs.unwrap_or(0) }
    }
}

fn versions(candidates: &[Candidate]) -> Vec<u32> {
    candidates.iter().map(|candidate| candidate.version).collect()
}

fn content(lba: u64, version: u32, seed: u64) -> [u8; SECTOR] {
    let mut bytes = [0; SECTOR];
    if version > 0 {
        stamp(&mut bytes, lba, version, seed);
    }
    bytes
}

fn is_version(sector: &[u8], lba: u64, version: u32, seed: u64) -> bool {
    sector == content(lba, version, seed)
}

impl fmt::Display for Wrong {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "sector {} must hold one of the versions {:?} (0: zeros) but holds ",
            self.lba, self.allowed
        )?;
        match self.found {
            Found::Version(version) => write!(f, "version {version}: a later write is lost"),
            Found::OtherSector { lba, version } => write!(f, "version {version} of sector {lba}"),
            Found::Corrupt { byte } => write!(f, "corrupt data, wrong from byte {byte} on"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A ledger of four sectors, and what a correct volume would hold.
    fn ledger() -> (Ledger, Vec<u8>) {
        (Ledger::new(4, 9), vec![0; 4 * SECTOR])
    }

    /// A write of the sectors 1 and 2 that has begun; its data.
    fn write(ledger: &mut Ledger) -> (Ticket, Vec<u8>) {
        let mut data = vec![0; 2 * SECTOR];
        let ticket = ledger.begin_write(&(1..3), &mut data);
        (ticket, data)
    }

    #[test]
    fn what_was_acknowledged_must_be_there_and_what_was_not_may_be() {
        let (mut ledger, mut volume) = ledger();
        let (first, data) = write(&mut ledger);
        ledger.answered(first, true);
        assert!(ledger.judge_running(0, &volume).is_err(), "the write is lost");
        volume[SECTOR..3 * SECTOR].copy_from_slice(&data);
        ledger.judge_running(0, &volume).expect("it is there");
        let (_second, data) = write(&mut ledger);
        ledger.crashed();
        ledger.judge_recovered(0, &volume).expect("the second write did not land");
        volume[SECTOR..3 * SECTOR].copy_from_slice(&data);
        let wrong = ledger.judge_recovered(0, &volume).expect_err("recovery may not change its mind");
        assert_eq!((wrong.lba, wrong.found), (1, Found::Version(2)));
    }

    #[test]
    fn sectors_of_one_write_may_land_apart() {
        let (mut ledger, mut volume) = ledger();
        let (_ticket, data) = write(&mut ledger);
        ledger.crashed();
        volume[2 * SECTOR..3 * SECTOR].copy_from_slice(&data[SECTOR..]);
        ledger.judge_recovered(0, &volume).expect("half of an unanswered write");
        volume[2 * SECTOR + 200] ^= 1;
        let wrong = ledger.judge_recovered(0, &volume).expect_err("one bit is wrong");
        assert_eq!((wrong.lba, wrong.found), (2, Found::Corrupt { byte: 200 }));
        volume[2 * SECTOR + 200] ^= 1;
        volume.copy_within(2 * SECTOR..3 * SECTOR, 0);
        let wrong = ledger.judge_recovered(0, &volume).expect_err("it belongs elsewhere");
        assert_eq!(wrong.found, Found::OtherSector { lba: 2, version: 1 });
    }

    #[test]
    fn a_volatile_cache_may_lose_what_no_flush_covered() {
        let (mut ledger, mut volume) = ledger();
        let (first, _) = write(&mut ledger);
        ledger.answered(first, false);
        let moment = ledger.begin_flush();
        let (second, data) = write(&mut ledger);
        ledger.answered(second, false);
        assert!(ledger.judge_running(0, &volume).is_err(), "while it runs, the newest is read");
        ledger.end_flush(moment);
        assert_eq!(ledger.unsettled[&1].candidates.len(), 2, "the first or the second");
        volume[SECTOR..3 * SECTOR].copy_from_slice(&data);
        ledger.crashed();
        ledger.judge_recovered(0, &volume).expect("the second has landed");
        let moment = ledger.begin_flush();
        ledger.end_flush(moment);
        assert!(ledger.unsettled.is_empty());
        volume.fill(0);
        assert!(ledger.judge_recovered(0, &volume).is_err(), "a flush made it stable");
    }

    #[test]
    fn discarded_sectors_hold_anything_of_theirs_until_they_are_written() {
        let (mut ledger, mut volume) = ledger();
        let (first, data) = write(&mut ledger);
        ledger.answered(first, true);
        let ticket = ledger.begin(&(1..3), Change::Discard);
        ledger.answered(ticket, true);
        ledger.judge_running(0, &[0; 4 * SECTOR]).expect("zeros");
        volume[SECTOR..3 * SECTOR].copy_from_slice(&data);
        ledger.judge_running(0, &volume).expect("what it held");
        volume[SECTOR] ^= 1;
        assert!(ledger.judge_running(0, &volume).is_err(), "but nothing else");
        let (second, data) = write(&mut ledger);
        ledger.answered(second, true);
        volume[SECTOR..3 * SECTOR].copy_from_slice(&data);
        ledger.judge_recovered(0, &volume).expect("the write");
        volume.fill(0);
        assert!(ledger.judge_recovered(0, &volume).is_err(), "zeros no longer");
    }

    #[test]
    fn recovery_decides_what_a_discarded_sector_holds() {
        let (mut ledger, mut volume) = ledger();
        let (first, data) = write(&mut ledger);
        ledger.answered(first, true);
        let ticket = ledger.begin(&(1..3), Change::Discard);
        ledger.answered(ticket, false);
        ledger.crashed();
        ledger.judge_recovered(0, &volume).expect("the discard has landed");
        volume[SECTOR..3 * SECTOR].copy_from_slice(&data);
        assert!(ledger.judge_recovered(0, &volume).is_err(), "what was discarded comes back");
    }

    #[test]
    fn a_flush_makes_nothing_stable_that_a_crash_has_taken() {
        let (mut ledger, volume) = ledger();
        let ticket = ledger.begin(&(1..3), Change::Discard);
        ledger.answered(ticket, false);
        let (lost, _) = write(&mut ledger);
        ledger.answered(lost, false);
        ledger.crashed();
        ledger.judge_recovered(0, &volume).expect("a volatile cache may lose the write");
        let moment = ledger.begin_flush();
        ledger.end_flush(moment);
        ledger.judge_running(0, &volume).expect("it stays lost");
        ledger.judge_recovered(0, &volume).expect("also after the next crash");
    }

    #[test]
    fn requests_under_way_do_not_overlap() {
        let (mut ledger, _) = ledger();
        assert!(ledger.reserve(&(0..2)));
        assert!(!ledger.reserve(&(1..3)));
        assert!(ledger.reserve(&(2..3)));
        ledger.release(&(0..2));
        assert!(ledger.reserve(&(1..2)));
    }
}
