//! A set of small numbers as one bit each, with its size.

/// A set of numbers below a bound.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct BitSet {
    words: Vec<u64>,
    bound: u64,
    count: u64,
}

impl BitSet {
    /// An empty set of numbers below `bound`.
    pub fn new(bound: u64) -> BitSet {
        BitSet { words: vec![0; bound.div_ceil(64) as usize], bound, count: 0 }
    }

    /// Reads a set from its words; none if their number is wrong or a bit is set at or above `bound`.
    pub(crate) fn from_words(bound: u64, words: Vec<u64>) -> Option<BitSet> {
        let padding = words.len() as u64 * 64 - bound.min(words.len() as u64 * 64);
        let fits = words.len() as u64 == bound.div_ceil(64);
        let clean = words.last().is_none_or(|last| u64::from(last.leading_zeros()) >= padding);
        let count = words.iter().map(|word| u64::from(word.count_ones())).sum();
        (fits && clean).then_some(BitSet { words, bound, count })
    }

    /// All numbers are below this.
    pub fn bound(&self) -> u64 {
        self.bound
    }

    /// How many numbers are in it.
    pub fn count(&self) -> u64 {
        self.count
    }

    /// How many numbers below `end` are in it.
    pub fn count_below(&self, end: u64) -> u64 {
        let end = end.min(self.bound);
        let ones = |word: u64| u64::from(word.count_ones());
        let whole: u64 = self.words[..(end / 64) as usize].iter().map(|word| ones(*word)).sum();
        match end % 64 {
            0 => whole,
            rest => whole + ones(self.words[(end / 64) as usize] & ((1 << rest) - 1)),
        }
    }

    /// Whether `number` is in it; false at and above the bound.
    #[inline]
    pub fn contains(&self, number: u64) -> bool {
        number < self.bound && self.words[(number / 64) as usize] >> (number % 64) & 1 == 1
    }

    /// Puts a number in; false if it was there. Panics at and above the bound.
    pub fn insert(&mut self, number: u64) -> bool {
        assert!(number < self.bound, "{number} is not below {}", self.bound);
        let word = &mut self.words[(number / 64) as usize];
        let fresh = *word >> (number % 64) & 1 == 0;
        *word |= 1 << (number % 64);
        self.count += u64::from(fresh);
        fresh
    }

    /// Takes a number out; false if it was not there.
    pub fn remove(&mut self, number: u64) -> bool {
        let there = self.contains(number);
        if there {
            self.words[(number / 64) as usize] &= !(1 << (number % 64));
            self.count -= 1;
        }
        there
    }

    /// The lowest number at or above `from` that is not in it.
    pub fn next_missing(&self, from: u64) -> Option<u64> {
        let mut at = from;
        while at < self.bound {
            let word = !self.words[(at / 64) as usize] >> (at % 64);
            if word != 0 {
                let found = at + u64::from(word.trailing_zeros());
                return (found < self.bound).then_some(found);
            }
            at = (at / 64 + 1) * 64;
        }
        None
    }

    /// The lowest number at or above `from` that is in it.
    pub(crate) fn next_present(&self, from: u64) -> Option<u64> {
        let mut at = from;
        while at < self.bound {
            let word = self.words[(at / 64) as usize] >> (at % 64);
            if word != 0 {
                return Some(at + u64::from(word.trailing_zeros()));
            }
            at = (at / 64 + 1) * 64;
        }
        None
    }

    /// Raises the bound; nothing is added to the set.
    pub(crate) fn grow(&mut self, bound: u64) {
        assert!(bound >= self.bound, "a set does not shrink by growing");
        self.words.resize(bound.div_ceil(64) as usize, 0);
        self.bound = bound;
    }

    /// Lowers the bound again; nothing at or above it may be in the set.
    pub(crate) fn shrink(&mut self, bound: u64) {
        assert!(bound <= self.bound, "a set does not grow by shrinking");
        self.words.truncate(bound.div_ceil(64) as usize);
        self.bound = bound;
        debug_assert!(self.count == self.words.iter().map(|word| u64::from(word.count_ones())).sum::<u64>());
    }

    /// The set as words of 64 numbers, the lowest number in the lowest bit.
    pub(crate) fn words(&self) -> &[u64] {
        &self.words
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_come_and_go() {
        let mut set = BitSet::new(130);
        assert!(set.insert(0) && set.insert(129) && !set.insert(129));
        assert_eq!((set.count(), set.contains(129), set.contains(500)), (2, true, false));
        assert_eq!(set.next_missing(0), Some(1));
        assert_eq!(set.next_missing(129), None);
        assert_eq!([0, 1, 64, 129, 130, 500].map(|end| set.count_below(end)), [0, 1, 1, 1, 2, 2]);
        let present = [0, 1, 64, 129, 130, 500].map(|from| set.next_present(from));
        assert_eq!(present, [Some(0), Some(129), Some(129), Some(129), None, None]);
        (1..129).for_each(|number| assert!(set.insert(number)));
        assert_eq!(set.next_missing(0), None);
        set.grow(131);
        assert_eq!(set.next_missing(0), Some(130));
        assert!(set.remove(64) && !set.remove(64));
        assert_eq!(set.next_missing(3), Some(64));
    }

    #[test]
    fn words_with_bits_behind_the_bound_are_refused() {
        assert!(BitSet::from_words(3, vec![0b111]).is_some_and(|set| set.count() == 3));
        assert!(BitSet::from_words(3, vec![0b1000]).is_none());
        assert!(BitSet::from_words(65, vec![0]).is_none());
        assert!(BitSet::from_words(64, vec![u64::MAX]).is_some());
        assert!(BitSet::from_words(0, vec![]).is_some());
    }
}
