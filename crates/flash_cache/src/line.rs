//! Lines: their numbers, and which set and tag a number has.
//!
//! A line is two neighbouring pages of a slot. Its number `x` is permuted on the domain, whose size is a power of two;
//! the remainder modulo the number of sets is its set, the quotient its tag. All three steps can be undone, so a set
//! and a tag name one line exactly, and tags of 19 bits suffice.

use std::ops::Range;

use tier0_units::PAGE_SECTORS;

/// Pages of a line.
pub(crate) const LINE_PAGES: u64 = 2;
/// Sectors of a line.
pub(crate) const LINE_SECTORS: u64 = LINE_PAGES * PAGE_SECTORS;
/// Bytes of a page.
pub(crate) const PAGE_BYTES: u64 = PAGE_SECTORS * 512;
/// Bits of a tag.
pub(crate) const TAG_BITS: u32 = 19;

/// Odd factors of the permutation, from SplitMix64 (Steele et al. 2014).
const FACTORS: [u64; 2] = [0xbf58_476d_1ce4_e5b9, 0x94d0_49bb_1331_11eb];

/// How the slots of a pool fall into lines.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Lines {
    per_slot: u64,
}

impl Lines {
    pub(crate) fn new(pages_per_slot: u32) -> Lines {
        Lines { per_slot: u64::from(pages_per_slot.max(1)).div_ceil(LINE_PAGES) }
    }

    /// The number of a page's line; none where 64 bits do not hold it.
    pub(crate) fn number(self, slot: u64, page: u32) -> Option<u64> {
        slot.checked_mul(self.per_slot)?.checked_add(u64::from(page) / LINE_PAGES)
    }

    /// The slot of a line.
    pub(crate) fn slot(self, x: u64) -> u64 {
        x / self.per_slot
    }

    /// All lines of a slot.
    pub(crate) fn of_slot(self, slot: u64) -> Range<u64> {
        match slot
            .checked_mul(self.per_slot)
            .and_then(|first| Some((first, first.checked_add(self.per_slot)?)))
        {
            Some((first, end)) => first..end,
            None => 0..0,
        }
    }
}

/// The place of a page in its line, as a bit.
pub(crate) fn half_bit(page: u32) -> u8 {
    1 << (page % LINE_PAGES as u32)
}

/// How numbers of lines are spread over sets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Spread {
    sets: u64,
    /// The domain has two to the power of so many numbers.
    bits: u32,
}

impl Spread {
    /// Over `sets` sets, with as large a domain as tags of [`TAG_BITS`] bits can tell apart.
    pub(crate) fn new(sets: u32) -> Spread {
        let sets = u64::from(sets.max(1));
        let bits = (sets << TAG_BITS).ilog2();
        Spread { sets, bits }
    }

    fn mask(self) -> u64 {
        (1 << self.bits) - 1
    }

    /// Lines from this number on cannot be cached.
    pub(crate) fn domain(self) -> u64 {
        1 << self.bits
    }

    fn permute(self, x: u64) -> u64 {
        let (mask, shift) = (self.mask(), self.bits / 2 + 1);
        let mut y = x;
        for factor in FACTORS {
            y ^= y >> shift;
            y = y.wrapping_mul(factor) & mask;
        }
        y ^ y >> shift
    }

    fn restore(self, y: u64) -> u64 {
        // A shift by more than half of the bits is its own inverse.
        let (mask, shift) = (self.mask(), self.bits / 2 + 1);
        let mut x = y ^ y >> shift;
        for factor in FACTORS.into_iter().rev() {
            x = x.wrapping_mul(inverse(factor)) & mask;
            x ^= x >> shift;
        }
        x
    }

    /// The set and the tag of a line, and a hash of it; none where it is out of the domain.
    pub(crate) fn place(self, x: u64) -> Option<Spot> {
        if x >= self.domain() {
            return None;
        }
        let y = self.permute(x);
        Some(Spot {
            set: (y % self.sets) as u32,
            tag: (y / self.sets) as u32,
            hash: y.wrapping_mul(FACTORS[0]),
        })
    }

    /// The line that has this set and tag; none where no line has.
    pub(crate) fn number(self, set: u32, tag: u32) -> Option<u64> {
        if u64::from(set) >= self.sets {
            return None;
        }
        let y = u64::from(tag) * self.sets + u64::from(set);
        (y < self.domain()).then(|| self.restore(y))
    }
}

/// Where a line belongs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Spot {
    pub(crate) set: u32,
    pub(crate) tag: u32,
    /// A hash of the line that is not its set.
    pub(crate) hash: u64,
}

/// The inverse of an odd number modulo 2^64: Newton's iteration doubles the right bits each time.
fn inverse(odd: u64) -> u64 {
    let mut inverse = odd;
    for _ in 0..6 {
        inverse = inverse.wrapping_mul(2u64.wrapping_sub(odd.wrapping_mul(inverse)));
    }
    inverse
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn a_set_and_a_tag_name_one_line(sets in 1..=u32::MAX, x in any::<u64>()) {
            let spread = Spread::new(sets);
            let x = x % spread.domain();
            let spot = spread.place(x).expect("it is in the domain");
            prop_assert!(spot.set < sets && spot.tag < 1 << TAG_BITS);
            prop_assert_eq!(spread.number(spot.set, spot.tag), Some(x));
        }

        #[test]
        fn every_set_and_tag_in_range_is_a_line(sets in 1..=u32::MAX, set in any::<u32>(), tag in 0..1u32 << TAG_BITS) {
            let spread = Spread::new(sets);
            if let Some(x) = spread.number(set, tag) {
                let spot = spread.place(x).expect("it is in the domain");
                prop_assert_eq!((spot.set, spot.tag), (set, tag));
            } else {
                prop_assert!(set >= sets || u64::from(tag) * u64::from(sets) + u64::from(set) >= spread.domain());
            }
        }

        #[test]
        fn the_permutation_is_undone(sets in 1..=u32::MAX, x in any::<u64>()) {
            let spread = Spread::new(sets);
            let x = x % spread.domain();
            prop_assert_eq!(spread.restore(spread.permute(x)), x);
        }
    }

    #[test]
    fn small_domains_are_permuted_whole() {
        let spread = Spread::new(1);
        let mut seen = vec![false; spread.domain() as usize];
        for x in 0..spread.domain() {
            let spot = spread.place(x).expect("it is in the domain");
            assert!(
                !std::mem::replace(&mut seen[spot.tag as usize], true),
                "two lines have tag {}",
                spot.tag
            );
        }
        assert_eq!(spread.place(spread.domain()), None);
    }

    #[test]
    fn neighbours_are_spread_evenly() {
        let spread = Spread::new(100);
        let mut counts = [0u32; 100];
        (0..10_000).for_each(|x| counts[spread.place(x).expect("it is in the domain").set as usize] += 1);
        assert!(counts.iter().all(|count| (50..170).contains(count)), "{counts:?}");
    }

    #[test]
    fn slots_of_an_odd_number_of_pages_share_no_line() {
        let lines = Lines::new(5);
        assert_eq!((lines.number(0, 4), lines.number(1, 0)), (Some(2), Some(3)));
        assert_eq!((lines.of_slot(1), lines.slot(5)), (3..6, 1));
        assert_eq!(lines.number(u64::MAX, 0), None);
    }
}
