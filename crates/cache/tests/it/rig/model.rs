//! What each sector may hold: a checker outside of the engine.
//!
//! Every write has a version, and every sector that it writes says so. A version may be read from the start of its write
//! until a write that began after its end has ended. After a crash it may be there unless such a later write was
//! durable: acknowledged as durable, or covered by a flush.

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;

use tier0_units::ExtentId;
use tier0_world::{Buf, BufMut, PayloadWidth};

/// A version of a sector. Times are counts of events.
#[derive(Clone, Debug)]
struct Version {
    number: u64,
    zero: bool,
    ended: Option<u64>,
    /// When it was overwritten, as readers see it.
    overwritten: Option<u64>,
    /// Whether it was overwritten for good.
    gone: bool,
}

#[derive(Default)]
pub(crate) struct Model {
    sectors: RefCell<BTreeMap<(ExtentId, u64), Vec<Version>>>,
    /// Writes that were acknowledged and that no flush has covered yet, with their ranges.
    volatile: RefCell<Vec<Started>>,
    clock: Cell<u64>,
    next: Cell<u64>,
}

/// A write that has begun.
#[derive(Clone, Debug)]
pub(crate) struct Started {
    extent: ExtentId,
    first: u64,
    sectors: u64,
    number: u64,
    began: u64,
}

const FIRST: Version = Version { number: 0, zero: true, ended: Some(0), overwritten: None, gone: false };

impl Model {
    fn tick(&self) -> u64 {
        self.clock.set(self.clock.get() + 1);
        self.clock.get()
    }

    /// A write begins; its content is [`content`] of the number, or zeros.
    pub(crate) fn begin(&self, extent: ExtentId, first: u64, sectors: u64, zero: bool) -> Started {
        let began = self.tick();
        self.next.set(self.next.get() + 1);
        let number = self.next.get();
        let mut all = self.sectors.borrow_mut();
        for sector in first..first + sectors {
            let versions = all.entry((extent, sector)).or_insert_with(|| vec![FIRST]);
            versions.push(Version { number, zero, ended: None, overwritten: None, gone: false });
        }
        Started { extent, first, sectors, number, began }
    }

    /// The content of a write.
    pub(crate) fn content(&self, write: &Started, width: PayloadWidth) -> Buf {
        let mut buf = BufMut::new(write.sectors as u32, width);
        for (n, sector) in buf.as_mut_slice().chunks_mut(width.bytes()).enumerate() {
            stamp(sector, write.number, write.first + n as u64);
        }
        buf.freeze()
    }

    /// A write was acknowledged.
    pub(crate) fn end(&self, write: Started, durable: bool) {
        let now = self.tick();
        self.for_each(&write, |versions| {
            for version in versions.iter_mut() {
                if version.number == write.number {
                    version.ended = Some(now);
                } else if version.ended.is_some_and(|ended| ended < write.began) {
                    version.overwritten.get_or_insert(now);
                }
            }
        });
        if durable { self.settle(&write) } else { self.volatile.borrow_mut().push(write) }
    }

    /// A flush begins: these are the writes that it covers.
    pub(crate) fn begin_flush(&self) -> Vec<Started> {
        self.volatile.borrow().clone()
    }

    /// A flush has succeeded.
    pub(crate) fn end_flush(&self, covered: Vec<Started>) {
        covered.iter().for_each(|write| self.settle(write));
        let numbers: Vec<u64> = covered.iter().map(|write| write.number).collect();
        self.volatile.borrow_mut().retain(|write| !numbers.contains(&write.number));
    }

    /// What a write replaced is gone for good.
    fn settle(&self, write: &Started) {
        self.for_each(write, |versions| {
            for version in versions.iter_mut() {
                if version.number != write.number && version.ended.is_some_and(|ended| ended < write.began) {
                    version.gone = true;
                }
            }
            // What no reader may see and no crash bring back.
            versions.retain(|version| {
                !(version.gone && version.overwritten.is_some_and(|at| at + 4000 < write.began))
            });
        });
    }

    fn for_each(&self, write: &Started, mut change: impl FnMut(&mut Vec<Version>)) {
        let mut all = self.sectors.borrow_mut();
        for sector in write.first..write.first + write.sectors {
            change(all.get_mut(&(write.extent, sector)).expect("the write has begun"));
        }
    }

    /// An extent of zeros is about to become a copy of another one, to which nothing is being written: its content until
    /// then, and when.
    pub(crate) fn begin_clone(&self, of: ExtentId, by: ExtentId, sectors: u64) -> u64 {
        let now = self.tick();
        let mut all = self.sectors.borrow_mut();
        for sector in 0..sectors {
            let known = all.get(&(of, sector)).cloned().unwrap_or_else(|| vec![FIRST]);
            let newest = known.into_iter().filter(|version| !version.gone && version.overwritten.is_none());
            let fresh = newest.map(|version| Version { ended: Some(now), ..version });
            all.entry((by, sector)).or_insert_with(|| vec![FIRST]).extend(fresh);
        }
        now
    }

    /// It is one, durably.
    pub(crate) fn end_clone(&self, by: ExtentId, sectors: u64, began: u64) {
        let mut all = self.sectors.borrow_mut();
        for sector in 0..sectors {
            let versions = all.get_mut(&(by, sector)).expect("it has begun");
            versions.retain(|version| version.ended == Some(began));
        }
    }

    /// A read begins.
    pub(crate) fn begin_read(&self) -> u64 {
        self.tick()
    }

    /// Checks what a read that began at `began` has brought.
    pub(crate) fn check(&self, began: u64, extent: ExtentId, first: u64, buf: &BufMut) {
        self.check_with(extent, first, buf, |version| version.overwritten.is_none_or(|at| at > began));
    }

    fn check_with(&self, extent: ExtentId, first: u64, buf: &BufMut, may: impl Fn(&Version) -> bool) {
        let all = self.sectors.borrow();
        for (n, bytes) in buf.as_slice().chunks(buf.width().bytes()).enumerate() {
            let sector = first + n as u64;
            let found = read_stamp(bytes, sector);
            let right = match all.get(&(extent, sector)) {
                Some(versions) => versions.iter().any(|version| is(version, found) && may(version)),
                None => found == 0,
            };
            assert!(
                right,
                "{extent} sector {sector} holds version {found}; known are {:#?}",
                all.get(&(extent, sector))
            );
        }
    }

    /// After a crash: checks a whole extent, and believes from now on what it holds.
    pub(crate) fn check_crashed(&self, extent: ExtentId, buf: &BufMut) {
        self.check_with(extent, 0, buf, |version| !version.gone);
        self.volatile.borrow_mut().clear();
        let mut all = self.sectors.borrow_mut();
        for (n, bytes) in buf.as_slice().chunks(buf.width().bytes()).enumerate() {
            let found = read_stamp(bytes, n as u64);
            if let Some(versions) = all.get_mut(&(extent, n as u64)) {
                versions.retain(|version| is(version, found) && !version.gone);
                versions.truncate(1);
                for version in versions.iter_mut() {
                    (version.ended, version.overwritten) = (Some(0), None);
                }
            }
        }
    }
}

fn is(version: &Version, found: u64) -> bool {
    if found == 0 { version.zero } else { version.number == found && !version.zero }
}

/// Every sector says its version and its address.
fn stamp(bytes: &mut [u8], number: u64, sector: u64) {
    for (n, chunk) in bytes.chunks_mut(8).enumerate() {
        let word = number << 16 | (sector ^ n as u64) & 0xffff;
        chunk.copy_from_slice(&word.to_le_bytes()[..chunk.len()]);
    }
}

/// The version that a sector says, 0 for zeros. Panics if its parts disagree.
fn read_stamp(bytes: &[u8], sector: u64) -> u64 {
    if bytes.iter().all(|byte| *byte == 0) {
        return 0;
    }
    let number = u64::from_le_bytes(bytes[..8].try_into().expect("eight bytes")) >> 16;
    let mut expected = vec![0; bytes.len()];
    stamp(&mut expected, number, sector);
    assert!(bytes == expected, "sector {sector} is torn or another sector's: {:?}", &bytes[..16]);
    number
}
