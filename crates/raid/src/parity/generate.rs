//! Parity made from data: sums, P, Q.

use super::isa::Isa;
use super::kernel::{Kernel, load, store, xor};
use super::level::Level;
use super::units::{Units, Whole, check, p_of, pq_of, q_of};

impl Level {
    /// Adds `src` to `dst`: `dst ^= src`.
    ///
    /// # Panics
    /// When the lengths differ.
    pub fn xor_into(self, dst: &mut [u8], src: &[u8]) {
        assert_eq!(dst.len(), src.len(), "a sum of slices of unequal length");
        self.run(dst.len(), Add { dst, src });
    }

    /// Overwrites `dst` with the sum of all `sources`, zeros when there is none. The P of a row is this sum.
    ///
    /// # Panics
    /// When lengths differ, or from 256 sources on.
    pub fn xor_many<D: AsRef<[u8]>>(self, dst: &mut [u8], sources: &[D]) {
        let units = Whole(sources);
        check(&units, dst.len());
        self.run(dst.len(), P { p: dst, units });
    }

    /// Overwrites `q` with the Q of a row: the sum of g^i times `data[i]`.
    ///
    /// # Panics
    /// When lengths differ, or from 256 data units on.
    pub fn q<D: AsRef<[u8]>>(self, q: &mut [u8], data: &[D]) {
        let units = Whole(data);
        check(&units, q.len());
        self.run(q.len(), Q { q, units });
    }

    /// Overwrites `p` and `q` with both parities of a row, reading the data once.
    ///
    /// # Panics
    /// When lengths differ, or from 256 data units on.
    pub fn pq<D: AsRef<[u8]>>(self, p: &mut [u8], q: &mut [u8], data: &[D]) {
        let units = Whole(data);
        check(&units, p.len());
        assert_eq!(p.len(), q.len(), "P and Q of unequal length");
        self.run(p.len(), Pq { p, q, units });
    }
}

/// `p` = sum of the units.
struct P<'a, U> {
    p: &'a mut [u8],
    units: U,
}

impl<U: Units> Kernel for P<'_, U> {
    #[inline(always)]
    fn block<I: Isa, const N: usize>(&mut self, isa: I, at: usize) {
        store::<I, N>(isa, p_of(isa, &self.units, at), self.p, at);
    }
}

/// `q` = sum of g^i times unit i.
struct Q<'a, U> {
    q: &'a mut [u8],
    units: U,
}

impl<U: Units> Kernel for Q<'_, U> {
    #[inline(always)]
    fn block<I: Isa, const N: usize>(&mut self, isa: I, at: usize) {
        store::<I, N>(isa, q_of(isa, &self.units, at), self.q, at);
    }
}

/// [`P`] and [`Q`] in one pass.
struct Pq<'a, U> {
    p: &'a mut [u8],
    q: &'a mut [u8],
    units: U,
}

impl<U: Units> Kernel for Pq<'_, U> {
    #[inline(always)]
    fn block<I: Isa, const N: usize>(&mut self, isa: I, at: usize) {
        let [p, q] = pq_of::<I, N>(isa, &self.units, at);
        store(isa, p, self.p, at);
        store(isa, q, self.q, at);
    }
}

/// `dst` ^= `src`.
struct Add<'a> {
    dst: &'a mut [u8],
    src: &'a [u8],
}

impl Kernel for Add<'_> {
    #[inline(always)]
    fn block<I: Isa, const N: usize>(&mut self, isa: I, at: usize) {
        let sum = xor::<I, N>(isa, load(isa, self.dst, at), load(isa, self.src, at));
        store(isa, sum, self.dst, at);
    }
}
