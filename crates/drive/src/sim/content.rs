//! What a medium holds: stable sectors, and above them the versions that sit in the volatile cache.

use std::borrow::Cow;
use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;
use std::rc::Rc;

use tier0_units::{Lba, Nanos};
use tier0_world::{Buf, PayloadWidth, Random};

use super::fate::{Fate, Fates, PowerCut};
use crate::SparseStore;

/// A write, or a discard, which writes zeros.
pub(super) struct Write {
    /// Counts up in the order of submission.
    id: u64,
    lba: Lba,
    sectors: u64,
    /// Nothing stands for zeros.
    bytes: Option<Box<[u8]>>,
    /// How many writes had completed when this one had, itself included; nothing while it is under way.
    completed: Cell<Option<u64>>,
    /// These sectors (counted from the write's first) become visible at that time, the others at completion.
    early: RefCell<Option<(Nanos, Range<u64>)>>,
    /// The sectors that are visible already.
    landed: RefCell<Range<u64>>,
}

impl Write {
    /// A write that the drive has not the power to begin.
    pub(super) fn unpowered(lba: Lba, sectors: u64) -> Rc<Write> {
        Rc::new(Write {
            id: 0,
            lba,
            sectors,
            bytes: None,
            completed: Cell::new(None),
            early: RefCell::new(None),
            landed: RefCell::new(0..0),
        })
    }

    /// First sector and number of sectors.
    pub(super) fn range(&self) -> (Lba, u64) {
        (self.lba, self.sectors)
    }
}

/// One version of a sector in the cache.
struct Cached {
    write: Rc<Write>,
    index: u64,
}

/// A copy of what a medium held.
pub(super) struct Image {
    store: SparseStore,
    unreadable: BTreeSet<u64>,
}

/// Stable content and cache.
pub(super) struct Content {
    width: usize,
    stable: SparseStore,
    /// By sector, the versions that are not stable, in the order in which the drive took them; never empty.
    cache: BTreeMap<u64, Vec<Cached>>,
    under_way: Vec<Rc<Write>>,
    unreadable: BTreeSet<u64>,
    submitted: u64,
    completed: u64,
}

impl Content {
    pub(super) fn new(width: PayloadWidth) -> Content {
        Content {
            width: if width == PayloadWidth::NONE { PayloadWidth::REAL } else { width }.bytes(),
            stable: SparseStore::new(width),
            cache: BTreeMap::new(),
            under_way: Vec::new(),
            unreadable: BTreeSet::new(),
            submitted: 0,
            completed: 0,
        }
    }

    /// All bytes of a write, zeros where it has no content.
    pub(super) fn whole<'a>(&self, buf: &'a Buf) -> Cow<'a, [u8]> {
        let bytes = buf.sectors() as usize * self.width;
        let mut whole = Cow::Borrowed(buf.as_slice());
        if whole.len() < bytes {
            whole.to_mut().resize(bytes, 0);
        }
        whole
    }

    /// A write begins. `early` says which of its sectors become visible before it completes, and when.
    pub(super) fn begin(
        &mut self,
        lba: Lba,
        sectors: u64,
        bytes: Option<&[u8]>,
        early: Option<(Nanos, Range<u64>)>,
    ) -> Rc<Write> {
        self.submitted += 1;
        let write = Rc::new(Write {
            id: self.submitted,
            lba,
            sectors,
            bytes: bytes.map(Box::from),
            completed: Cell::new(None),
            early: RefCell::new(early),
            landed: RefCell::new(0..0),
        });
        self.under_way.push(write.clone());
        write
    }

    /// A write ends; what `fate` keeps of it was done, and is stable if it is `durable`.
    pub(super) fn end(&mut self, write: &Rc<Write>, fate: &Fate, durable: bool, random: &mut Random) {
        if !matches!(fate, Fate::Kept) {
            *write.early.borrow_mut() = None;
        }
        self.land_rest(write, fate, random);
        self.retire(write);
        if durable {
            for sector in write.lba.0..write.lba.0 + write.sectors {
                self.settle(sector, |cached| Rc::ptr_eq(&cached.write, write));
            }
        }
    }

    /// A write ends after any part of it was done.
    pub(super) fn abandon(&mut self, write: &Rc<Write>, random: &mut Random) {
        let fate = Fate::any(write.sectors, random);
        self.end(write, &fate, false, random);
    }

    /// What a flush that is submitted now will make stable.
    pub(super) fn flush_mark(&self) -> u64 {
        self.completed
    }

    /// Makes every write stable that had completed at `mark`.
    pub(super) fn flush(&mut self, mark: u64) {
        let sectors: Vec<u64> = self.cache.keys().copied().collect();
        for sector in sectors {
            self.settle(sector, |cached| cached.write.completed.get().is_some_and(|at| at <= mark));
        }
    }

    /// A flush that fails: any part of the completed writes drops out of the cache.
    pub(super) fn drop_part(&mut self, random: &mut Random) {
        let fates = Fates::new(PowerCut::Any, 0, self.submitted, random);
        let mut drawn = BTreeMap::new();
        self.cache.retain(|_, versions| {
            versions.retain(|cached| {
                let write = &cached.write;
                let done = write.completed.get().is_some();
                let fate =
                    drawn.entry(write.id).or_insert_with(|| fates.of(write.id, write.sectors, done, random));
                !done || fate.keeps(cached.index, random)
            });
            !versions.is_empty()
        });
    }

    /// Copies sectors out as they are visible at `now`; false if one of them cannot be read.
    pub(super) fn read(&mut self, lba: Lba, sectors: u64, bytes: &mut [u8], now: Nanos) -> bool {
        let end = lba.0 + sectors;
        self.land_early(now);
        if self.unreadable.range(lba.0..end).next().is_some() {
            return false;
        }
        self.peek(lba, bytes);
        true
    }

    /// Copies sectors out as they are visible now, whether they can be read or not.
    pub(super) fn peek(&self, lba: Lba, bytes: &mut [u8]) {
        let end = lba.0 + (bytes.len() / self.width) as u64;
        self.stable.read(lba, bytes);
        for (sector, versions) in self.cache.range(lba.0..end) {
            let at = (sector - lba.0) as usize * self.width;
            let newest = versions.last().expect("a cached sector has a version");
            newest.copy_to(&mut bytes[at..at + self.width]);
        }
    }

    /// The power fails and comes back.
    pub(super) fn power_cut(&mut self, manner: PowerCut, random: &mut Random) {
        self.land_all_under_way(random);
        let first = self.cache.values().flatten().map(|cached| cached.write.id).min().unwrap_or(0);
        let fates = Fates::new(manner, first, self.submitted, random);
        let mut drawn = BTreeMap::new();
        for (sector, versions) in std::mem::take(&mut self.cache) {
            let kept = versions.iter().rev().find(|cached| {
                let write = &cached.write;
                let done = write.completed.get().is_some();
                let fate =
                    drawn.entry(write.id).or_insert_with(|| fates.of(write.id, write.sectors, done, random));
                fate.keeps(cached.index, random)
            });
            if let Some(kept) = kept {
                kept.store(sector, &mut self.stable);
            }
        }
    }

    /// The process that used the drive dies.
    pub(super) fn kill(&mut self, random: &mut Random) {
        for write in self.under_way.clone() {
            self.abandon(&write, random);
        }
    }

    /// A copy, with what is in the cache.
    pub(super) fn image(&self) -> Image {
        let mut store = self.stable.clone();
        for (sector, versions) in &self.cache {
            versions.last().expect("never empty").store(*sector, &mut store);
        }
        Image { store, unreadable: self.unreadable.clone() }
    }

    /// A hash of what one would read, and of what cannot be read.
    pub(super) fn fingerprint(&self) -> u64 {
        use std::hash::Hasher;
        let mut hasher = std::collections::hash_map::DefaultHasher::new();
        let image = self.image();
        image.store.fingerprint(&mut hasher);
        image.unreadable.iter().for_each(|sector| hasher.write_u64(*sector));
        hasher.finish()
    }

    pub(super) fn restore(&mut self, image: &Image) {
        assert!(self.under_way.is_empty(), "nobody uses the drive");
        self.stable = image.store.clone();
        self.unreadable.clone_from(&image.unreadable);
        self.cache.clear();
    }

    /// All content becomes zeros and readable.
    pub(super) fn wipe(&mut self) {
        self.stable.clear();
        self.cache.clear();
        self.unreadable.clear();
    }

    /// Reads of these sectors fail until they are written.
    pub(super) fn make_unreadable(&mut self, sectors: Range<u64>) {
        self.unreadable.extend(sectors);
    }

    /// Whether no read of these sectors would fail.
    pub(super) fn is_readable(&self, sectors: Range<u64>) -> bool {
        self.unreadable.range(sectors).next().is_none()
    }

    /// Changes a stable sector; false if its newest version is still in the cache, which does not rot.
    pub(super) fn rot(&mut self, lba: Lba, change: impl FnOnce(&mut [u8])) -> bool {
        if self.cache.contains_key(&lba.0) {
            return false;
        }
        let mut bytes = vec![0; self.width];
        self.stable.read(lba, &mut bytes);
        change(&mut bytes);
        self.stable.write(lba, &bytes);
        true
    }

    /// A random sector of a piece of the medium that holds something.
    pub(super) fn sample_written(&self, random: &mut Random) -> Option<Lba> {
        self.stable.sample(random)
    }

    /// Sectors with a version that is not stable.
    pub(super) fn cached_sectors(&self) -> usize {
        self.cache.len()
    }

    /// Drops the versions of a sector up to the last one that `is_stable` names, and stores that one.
    fn settle(&mut self, sector: u64, is_stable: impl Fn(&Cached) -> bool) {
        let Some(versions) = self.cache.get_mut(&sector) else { return };
        let Some(last) = versions.iter().rposition(is_stable) else { return };
        versions[last].store(sector, &mut self.stable);
        versions.drain(..=last);
        if versions.is_empty() {
            self.cache.remove(&sector);
        }
    }

    fn retire(&mut self, write: &Rc<Write>) {
        self.completed += 1;
        write.completed.set(Some(self.completed));
        self.under_way.retain(|other| !Rc::ptr_eq(other, write));
    }

    /// Makes visible what is due of the writes under way, in the order of their times.
    fn land_early(&mut self, now: Nanos) {
        let mut due: Vec<(Nanos, Rc<Write>)> = Vec::new();
        for write in &self.under_way {
            if let Some((time, _)) = &*write.early.borrow()
                && *time <= now
            {
                due.push((*time, write.clone()));
            }
        }
        due.sort_by_key(|(time, write)| (*time, write.id));
        for (_, write) in due {
            let (_, range) = write.early.borrow_mut().take().expect("it is due");
            for index in range.clone() {
                self.land(&write, index);
            }
            *write.landed.borrow_mut() = range;
        }
    }

    /// Makes visible what `fate` keeps of the sectors that are not visible yet.
    fn land_rest(&mut self, write: &Rc<Write>, fate: &Fate, random: &mut Random) {
        let landed = write.landed.borrow().clone();
        for index in (0..write.sectors).filter(|index| !landed.contains(index)) {
            if fate.keeps(index, random) {
                self.land(write, index);
            }
        }
    }

    /// Puts the writes under way on top of the cache in any order, as not completed.
    fn land_all_under_way(&mut self, random: &mut Random) {
        let mut writes = std::mem::take(&mut self.under_way);
        while !writes.is_empty() {
            let write = writes.swap_remove(random.below(writes.len() as u64) as usize);
            self.land_rest(&write, &Fate::Kept, random);
        }
    }

    fn land(&mut self, write: &Rc<Write>, index: u64) {
        let sector = write.lba.0 + index;
        self.unreadable.remove(&sector);
        self.cache.entry(sector).or_default().push(Cached { write: write.clone(), index });
    }
}

impl Cached {
    fn copy_to(&self, sector: &mut [u8]) {
        match &self.write.bytes {
            Some(bytes) => {
                let at = self.index as usize * sector.len();
                sector.copy_from_slice(&bytes[at..at + sector.len()]);
            }
            None => sector.fill(0),
        }
    }

    fn store(&self, sector: u64, stable: &mut SparseStore) {
        match &self.write.bytes {
            Some(bytes) => {
                let width = bytes.len() / self.write.sectors as usize;
                let at = self.index as usize * width;
                stable.write(Lba(sector), &bytes[at..at + width]);
            }
            None => stable.discard(Lba(sector), 1),
        }
    }
}
