//! The data units of one row, whole or with holes, and the sums over them.

use super::isa::Isa;
use super::kernel::{double, load, xor};

/// The data units of a row, some of which may be missing; a missing one counts as zeros.
pub(super) trait Units {
    /// How many there are, missing ones included.
    fn count(&self) -> usize;
    /// The bytes of unit `i`, or `None` where it is missing.
    fn unit(&self, i: usize) -> Option<&[u8]>;
}

/// A row with every unit present.
pub(super) struct Whole<'a, D>(pub(super) &'a [D]);

impl<D: AsRef<[u8]>> Units for Whole<'_, D> {
    #[inline(always)]
    fn count(&self) -> usize {
        self.0.len()
    }

    #[inline(always)]
    fn unit(&self, i: usize) -> Option<&[u8]> {
        Some(self.0[i].as_ref())
    }
}

/// A row with missing units.
pub(super) struct Holed<'a, D>(pub(super) &'a [Option<D>]);

impl<D: AsRef<[u8]>> Units for Holed<'_, D> {
    #[inline(always)]
    fn count(&self) -> usize {
        self.0.len()
    }

    #[inline(always)]
    fn unit(&self, i: usize) -> Option<&[u8]> {
        self.0[i].as_ref().map(AsRef::as_ref)
    }
}

/// Sum of all units.
#[inline(always)]
pub(super) fn p_of<I: Isa, const N: usize>(isa: I, units: &impl Units, at: usize) -> [I::V; N] {
    let mut p = [isa.zero(); N];
    for i in 0..units.count() {
        if let Some(unit) = units.unit(i) {
            p = xor(isa, p, load(isa, unit, at));
        }
    }
    p
}

/// Sum of g^i times unit i, by Horner's rule from the last unit down ("The mathematics of RAID-6").
#[inline(always)]
pub(super) fn q_of<I: Isa, const N: usize>(isa: I, units: &impl Units, at: usize) -> [I::V; N] {
    let mut q = [isa.zero(); N];
    for i in (0..units.count()).rev() {
        q = double(isa, q);
        if let Some(unit) = units.unit(i) {
            q = xor(isa, q, load(isa, unit, at));
        }
    }
    q
}

/// Both sums, reading each unit once.
#[inline(always)]
pub(super) fn pq_of<I: Isa, const N: usize>(isa: I, units: &impl Units, at: usize) -> [[I::V; N]; 2] {
    let (mut p, mut q) = ([isa.zero(); N], [isa.zero(); N]);
    for i in (0..units.count()).rev() {
        q = double(isa, q);
        if let Some(unit) = units.unit(i) {
            let d = load(isa, unit, at);
            p = xor(isa, p, d);
            q = xor(isa, q, d);
        }
    }
    [p, q]
}

/// Panics unless every unit present is `len` bytes long and each has a coefficient of its own.
pub(super) fn check(units: &impl Units, len: usize) {
    let count = units.count();
    assert!(count <= 255, "{count} data units in a row; GF(2^8) tells at most 255 apart");
    for i in 0..count {
        if let Some(unit) = units.unit(i) {
            assert_eq!(unit.len(), len, "data unit {i} differs in length from its parity");
        }
    }
}
