//! Positions in a RAID set, each a type of its own, and sets of them as bit masks.

use std::fmt;
use std::marker::PhantomData;
use std::ops::{BitAnd, BitOr, Sub};

/// A stripe across all columns, one stripe unit of each; rows count from the start of the set.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Row(pub u64);

/// A chunklet of the set, below the set's number of columns.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Column(pub u8);

impl Column {
    /// The column's number, as an index into a slice.
    #[inline]
    pub const fn index(self) -> usize {
        self.0 as usize
    }
}

/// A data unit of a row in the order of addresses, below the row's number of data units.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Unit(pub u8);

impl Unit {
    /// The unit's number, as an index into a slice.
    #[inline]
    pub const fn index(self) -> usize {
        self.0 as usize
    }
}

/// A parity group: all columns of a set, or at RAID 50 one of its RAID 5 parts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Group(pub u8);

impl Group {
    /// The group's number, as an index into a slice.
    #[inline]
    pub const fn index(self) -> usize {
        self.0 as usize
    }
}

/// What a [`Mask`] can hold: an index below 64.
pub trait MaskIndex: Copy {
    /// The bit that stands for this index.
    fn bit(self) -> u8;
    /// The index that this bit stands for.
    fn from_bit(bit: u8) -> Self;
}

impl MaskIndex for Column {
    #[inline]
    fn bit(self) -> u8 {
        self.0
    }
    #[inline]
    fn from_bit(bit: u8) -> Column {
        Column(bit)
    }
}

impl MaskIndex for Unit {
    #[inline]
    fn bit(self) -> u8 {
        self.0
    }
    #[inline]
    fn from_bit(bit: u8) -> Unit {
        Unit(bit)
    }
}

/// A set of columns or of units, in 64 bits.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Mask<T> {
    bits: u64,
    of: PhantomData<T>,
}

/// A set of columns.
pub type ColumnMask = Mask<Column>;
/// A set of data units of one row.
pub type UnitMask = Mask<Unit>;

impl<T: MaskIndex> Mask<T> {
    /// No index.
    pub const EMPTY: Mask<T> = Mask::from_bits(0);

    /// The indices whose bits are set.
    #[inline]
    pub const fn from_bits(bits: u64) -> Mask<T> {
        Mask { bits, of: PhantomData }
    }

    /// One bit per index.
    #[inline]
    pub const fn bits(self) -> u64 {
        self.bits
    }

    /// The `count` indices from `first` on; `first + count` is at most 64.
    #[inline]
    pub const fn range(first: u8, count: u8) -> Mask<T> {
        if count == 0 {
            return Mask::from_bits(0);
        }
        Mask::from_bits(u64::MAX >> (64 - count) << first)
    }

    /// This index alone.
    #[inline]
    pub fn only(index: T) -> Mask<T> {
        Mask::from_bits(1 << index.bit())
    }

    /// This set and `index`.
    #[inline]
    #[must_use]
    pub fn with(self, index: T) -> Mask<T> {
        self | Mask::only(index)
    }

    /// This set without `index`.
    #[inline]
    #[must_use]
    pub fn without(self, index: T) -> Mask<T> {
        self - Mask::only(index)
    }

    /// Whether `index` is in the set.
    #[inline]
    pub fn contains(self, index: T) -> bool {
        self.bits >> index.bit() & 1 == 1
    }

    /// How many indices are in the set.
    #[inline]
    pub const fn len(self) -> usize {
        self.bits.count_ones() as usize
    }

    /// Whether no index is in the set.
    #[inline]
    pub const fn is_empty(self) -> bool {
        self.bits == 0
    }

    /// Whether every index of this set is in `other`.
    #[inline]
    pub const fn is_subset(self, other: Mask<T>) -> bool {
        self.bits & !other.bits == 0
    }

    /// The lowest index.
    #[inline]
    pub fn first(self) -> Option<T> {
        (self.bits != 0).then(|| T::from_bit(self.bits.trailing_zeros() as u8))
    }

    /// The indices, ascending.
    #[inline]
    pub fn iter(self) -> MaskIter<T> {
        MaskIter(self)
    }
}

/// The indices of a [`Mask`], ascending.
#[derive(Clone)]
pub struct MaskIter<T>(Mask<T>);

impl<T: MaskIndex> Iterator for MaskIter<T> {
    type Item = T;

    #[inline]
    fn next(&mut self) -> Option<T> {
        let index = self.0.first()?;
        self.0.bits &= self.0.bits - 1;
        Some(index)
    }
}

impl<T: MaskIndex> IntoIterator for Mask<T> {
    type Item = T;
    type IntoIter = MaskIter<T>;

    #[inline]
    fn into_iter(self) -> MaskIter<T> {
        self.iter()
    }
}

impl<T: MaskIndex> FromIterator<T> for Mask<T> {
    fn from_iter<I: IntoIterator<Item = T>>(indices: I) -> Mask<T> {
        indices.into_iter().fold(Mask::EMPTY, Mask::with)
    }
}

impl<T: MaskIndex> Default for Mask<T> {
    fn default() -> Mask<T> {
        Mask::EMPTY
    }
}

impl<T: MaskIndex> BitOr for Mask<T> {
    type Output = Mask<T>;
    #[inline]
    fn bitor(self, rhs: Mask<T>) -> Mask<T> {
        Mask::from_bits(self.bits | rhs.bits)
    }
}

impl<T: MaskIndex> BitAnd for Mask<T> {
    type Output = Mask<T>;
    #[inline]
    fn bitand(self, rhs: Mask<T>) -> Mask<T> {
        Mask::from_bits(self.bits & rhs.bits)
    }
}

impl<T: MaskIndex> Sub for Mask<T> {
    type Output = Mask<T>;
    /// The indices of `self` that are not in `rhs`.
    #[inline]
    fn sub(self, rhs: Mask<T>) -> Mask<T> {
        Mask::from_bits(self.bits & !rhs.bits)
    }
}

impl<T: MaskIndex> fmt::Debug for Mask<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.iter().map(MaskIndex::bit)).finish()
    }
}

impl<T: MaskIndex> fmt::Debug for MaskIter<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&self.0, f)
    }
}

impl<T: MaskIndex> fmt::Display for Mask<T> {
    /// `1, 4 and 7`; `none` for the empty set.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.is_empty() {
            return f.write_str("none");
        }
        for (i, index) in self.iter().enumerate() {
            let separator = match i {
                0 => "",
                i if i + 1 == self.len() => " and ",
                _ => ", ",
            };
            write!(f, "{separator}{}", index.bit())?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mask_is_a_set() {
        let columns: ColumnMask = [Column(7), Column(1), Column(63)].into_iter().collect();
        assert_eq!(columns.len(), 3);
        assert_eq!(columns.iter().collect::<Vec<_>>(), [Column(1), Column(7), Column(63)]);
        assert!(columns.contains(Column(63)) && !columns.contains(Column(0)));
        assert_eq!(columns.without(Column(1)).first(), Some(Column(7)));
        assert_eq!((columns - columns).first(), None);
        assert_eq!(columns.to_string(), "1, 7 and 63");
        assert_eq!(ColumnMask::EMPTY.to_string(), "none");
    }

    #[test]
    fn ranges_reach_both_ends() {
        assert_eq!(UnitMask::range(0, 64).bits(), u64::MAX);
        assert_eq!(UnitMask::range(63, 1).bits(), 1 << 63);
        assert_eq!(UnitMask::range(5, 0), UnitMask::EMPTY);
        assert_eq!(UnitMask::range(2, 3).iter().collect::<Vec<_>>(), [Unit(2), Unit(3), Unit(4)]);
    }
}
