//! The map of a volume: which slot each extent has, in pages of arrays.
//!
//! An extent that is mapped costs 12 bytes where its neighbours are mapped too (a slot number below 2^32 and an
//! allocation number); a page of 256 extents exists as soon as one of them is mapped.

use std::collections::BTreeMap;

use tier0_units::SlotRef;

/// Extents of a page: its arrays take 3 KiB.
const PAGE_EXTENTS: u32 = 256;

/// Neighbouring extents in neighbouring slots with successive allocation numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Run {
    /// The first extent's number in the volume.
    pub index: u32,
    /// How many.
    pub count: u32,
    /// The first extent's slot and allocation; each further extent has one more of both.
    pub slot: SlotRef,
}

/// A volume's extents and their slots.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ExtentMap {
    pages: BTreeMap<u32, Box<Page>>,
    count: u64,
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct Page {
    mapped: u32,
    slots: [u32; PAGE_EXTENTS as usize],
    /// 0 where nothing is mapped: allocations count from 1.
    allocations: [u64; PAGE_EXTENTS as usize],
}

impl Page {
    fn get(&self, place: usize) -> Option<SlotRef> {
        let allocation = self.allocations[place];
        (allocation != 0).then(|| SlotRef { slot: u64::from(self.slots[place]), allocation })
    }
}

impl ExtentMap {
    /// How many extents are mapped.
    pub fn count(&self) -> u64 {
        self.count
    }

    /// The slot of an extent.
    #[inline]
    pub fn get(&self, index: u32) -> Option<SlotRef> {
        self.pages.get(&(index / PAGE_EXTENTS))?.get((index % PAGE_EXTENTS) as usize)
    }

    /// Maps an extent, and returns what it was mapped to before.
    pub fn insert(&mut self, index: u32, slot: SlotRef) -> Option<SlotRef> {
        assert!(slot.allocation != 0, "allocations count from 1");
        let fresh = || Box::new(Page { mapped: 0, slots: [0; 256], allocations: [0; 256] });
        let page = self.pages.entry(index / PAGE_EXTENTS).or_insert_with(fresh);
        let place = (index % PAGE_EXTENTS) as usize;
        let before = page.get(place);
        page.slots[place] = u32::try_from(slot.slot).expect("a pool has fewer than 2^32 slots");
        page.allocations[place] = slot.allocation;
        if before.is_none() {
            page.mapped += 1;
            self.count += 1;
        }
        before
    }

    /// Unmaps an extent, and returns what it was mapped to.
    pub fn remove(&mut self, index: u32) -> Option<SlotRef> {
        let page = self.pages.get_mut(&(index / PAGE_EXTENTS))?;
        let place = (index % PAGE_EXTENTS) as usize;
        let before = page.get(place)?;
        (page.slots[place], page.allocations[place]) = (0, 0);
        page.mapped -= 1;
        self.count -= 1;
        if page.mapped == 0 {
            self.pages.remove(&(index / PAGE_EXTENTS));
        }
        Some(before)
    }

    /// The mapped extents from `index` on, in order.
    pub fn iter_from(&self, index: u32) -> impl Iterator<Item = (u32, SlotRef)> {
        let pages = self.pages.range(index / PAGE_EXTENTS..);
        let all = pages.flat_map(|(number, page)| {
            let first = number * PAGE_EXTENTS;
            (0..PAGE_EXTENTS)
                .filter_map(move |place| page.get(place as usize).map(|slot| (first + place, slot)))
        });
        all.skip_while(move |(at, _)| *at < index)
    }

    /// The mapped extents in order.
    pub fn iter(&self) -> impl Iterator<Item = (u32, SlotRef)> {
        self.iter_from(0)
    }

    /// The mapped extents as runs, as long as possible, in order.
    pub fn runs(&self) -> impl Iterator<Item = Run> {
        let mut extents = self.iter().peekable();
        std::iter::from_fn(move || {
            let (index, slot) = extents.next()?;
            let mut run = Run { index, count: 1, slot };
            while extents.next_if(|(index, slot)| run.continues_with(*index, *slot)).is_some() {
                run.count += 1;
            }
            Some(run)
        })
    }
}

impl Run {
    /// Whether this extent would make the run longer.
    pub(crate) fn continues_with(&self, index: u32, slot: SlotRef) -> bool {
        self.end() == u64::from(index)
            && self.slot.slot + u64::from(self.count) == slot.slot
            && self.slot.allocation + u64::from(self.count) == slot.allocation
    }

    /// The number after the last extent's.
    pub fn end(&self) -> u64 {
        u64::from(self.index) + u64::from(self.count)
    }

    /// The extents one by one. The run must not reach behind the last number there is.
    pub fn iter(self) -> impl Iterator<Item = (u32, SlotRef)> {
        (0..self.count).map(move |i| {
            let slot = SlotRef {
                slot: self.slot.slot + u64::from(i),
                allocation: self.slot.allocation + u64::from(i),
            };
            (self.index + i, slot)
        })
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use tier0_world::Random;

    use super::*;

    #[test]
    fn agrees_with_a_plain_map() {
        let mut random = Random::new(7, 0);
        let (mut map, mut model) = (ExtentMap::default(), BTreeMap::new());
        for allocation in 1..20_000 {
            let index =
                [random.below(700), u64::from(u32::MAX) - random.below(300)][random.below(2) as usize] as u32;
            if random.chance(0.5) {
                let slot = SlotRef { slot: random.below(1 << 32), allocation };
                assert_eq!(map.insert(index, slot), model.insert(index, slot));
            } else {
                assert_eq!(map.remove(index), model.remove(&index));
            }
            assert_eq!(map.count(), model.len() as u64);
            assert_eq!(map.get(index), model.get(&index).copied());
        }
        assert!(map.iter().eq(model.iter().map(|(index, slot)| (*index, *slot))));
        assert!(map.iter_from(300).eq(model.range(300..).map(|(index, slot)| (*index, *slot))));
        assert!(map.runs().flat_map(Run::iter).eq(map.iter()));
    }

    #[test]
    fn neighbours_are_one_run() {
        let mut map = ExtentMap::default();
        for i in 0..1000 {
            map.insert(i + 5, SlotRef { slot: u64::from(i) + 90, allocation: u64::from(i) + 1 });
        }
        map.insert(2000, SlotRef { slot: 1, allocation: 5000 });
        let runs: Vec<Run> = map.runs().collect();
        assert_eq!(runs.len(), 2);
        assert_eq!(runs[0], Run { index: 5, count: 1000, slot: SlotRef { slot: 90, allocation: 1 } });
    }
}
