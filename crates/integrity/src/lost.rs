//! Pages that nothing could make right, as ranges of their slots.
//!
//! Neighbours are one range, so that a slot whose table is lost takes as much memory as a page. There are bounds: what is
//! beyond them is in the count alone.

use std::collections::BTreeMap;
use std::ops::Range;

/// Ranges that are remembered.
const RANGES_MAX: usize = 4096;

/// Lost pages of all slots.
#[derive(Debug, Default)]
pub(crate) struct LostPages {
    /// By slot and first page: behind the last.
    ranges: BTreeMap<(u64, u32), u32>,
}

impl LostPages {
    pub(crate) fn is_empty(&self) -> bool {
        self.ranges.is_empty()
    }

    pub(crate) fn contains(&self, slot: u64, page: u32) -> bool {
        self.around(slot, page).is_some_and(|range| range.contains(&page))
    }

    /// The last range of a slot that begins at a page or before it.
    fn around(&self, slot: u64, page: u32) -> Option<Range<u32>> {
        let (&(_, first), &end) = self.ranges.range((slot, 0)..=(slot, page)).next_back()?;
        Some(first..end)
    }

    /// A page that is not contained. Whether it is remembered: not where that would be one range too many.
    pub(crate) fn insert(&mut self, slot: u64, page: u32) -> bool {
        let before = self.around(slot, page).filter(|range| range.end == page);
        let after = self.ranges.get(&(slot, page + 1)).copied();
        if before.is_none() && after.is_none() && self.ranges.len() >= RANGES_MAX {
            return false;
        }
        if after.is_some() {
            self.ranges.remove(&(slot, page + 1));
        }
        let first = before.map_or(page, |range| range.start);
        self.ranges.insert((slot, first), after.unwrap_or(page + 1));
        true
    }

    pub(crate) fn remove(&mut self, slot: u64, page: u32) {
        let Some(range) = self.around(slot, page).filter(|range| range.contains(&page)) else { return };
        self.ranges.remove(&(slot, range.start));
        for rest in [range.start..page, page + 1..range.end].into_iter().filter(|rest| !rest.is_empty()) {
            self.ranges.insert((slot, rest.start), rest.end);
        }
    }

    pub(crate) fn remove_slot(&mut self, slot: u64) {
        self.ranges.retain(|(own, _), _| *own != slot);
    }

    /// The ranges, by slot, ascending.
    pub(crate) fn ranges(&self) -> impl Iterator<Item = (u64, Range<u32>)> {
        self.ranges.iter().map(|((slot, first), end)| (*slot, *first..*end))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(lost: &LostPages) -> Vec<(u64, Range<u32>)> {
        lost.ranges().collect()
    }

    /// 2,368 pages that were lost in a row were known as the 17 of them that fit into the events.
    #[test]
    fn neighbours_are_one_range() {
        let mut lost = LostPages::default();
        // In an order that meets every kind of neighbour.
        for page in (0..2368).step_by(2).chain((1..2368).step_by(2).rev()) {
            assert!(!lost.contains(7, page));
            assert!(lost.insert(7, page) && lost.contains(7, page));
        }
        assert!(lost.insert(8, 2368));
        assert_eq!(of(&lost), [(7, 0..2368), (8, 2368..2369)]);
        lost.remove(7, 5);
        lost.remove(7, 0);
        lost.remove(7, 2367);
        lost.remove(7, 4000);
        assert_eq!(of(&lost), [(7, 1..5), (7, 6..2367), (8, 2368..2369)]);
        assert!(!lost.contains(7, 5) && lost.contains(7, 6));
        lost.remove_slot(7);
        assert_eq!(of(&lost), [(8, 2368..2369)]);
    }

    #[test]
    fn what_does_not_fit_is_left_off() {
        let mut lost = LostPages::default();
        let most = RANGES_MAX as u64;
        assert!((0..most).all(|slot| lost.insert(slot, 3)));
        assert!(!lost.insert(most, 3));
        assert_eq!(of(&lost).len(), RANGES_MAX);
        assert!(lost.insert(0, 4), "a neighbour takes no memory");
        assert_eq!(of(&lost)[0], (0, 3..5));
    }
}
