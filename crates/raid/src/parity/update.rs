//! Parity kept up to date by small writes (read-modify-write): what changes in one data unit is added to P,
//! and times the unit's coefficient to Q ("The mathematics of RAID-6").

use super::gf;
use super::isa::Isa;
use super::kernel::{Kernel, load, store, times, xor};
use super::level::Level;

impl Level {
    /// Brings `p` up to date where a data unit changes from `old` to `new`: `p ^= old ^ new`.
    ///
    /// # Panics
    /// When lengths differ.
    pub fn update_p(self, p: &mut [u8], old: &[u8], new: &[u8]) {
        check(p.len(), old, new);
        self.run(p.len(), UpdateP { p, old, new });
    }

    /// Brings `q` up to date where data unit `unit` changes: `q ^= g^unit (old ^ new)`. For rows without P.
    ///
    /// # Panics
    /// When lengths differ, or `unit` is 255 or more.
    pub fn update_q(self, q: &mut [u8], unit: usize, old: &[u8], new: &[u8]) {
        check(q.len(), old, new);
        self.run(q.len(), UpdateQ { q, coefficient: gf::coefficient(unit), old, new });
    }

    /// [`Level::update_p`] and [`Level::update_q`] in one pass over the data.
    ///
    /// # Panics
    /// When lengths differ, or `unit` is 255 or more.
    pub fn update_pq(self, p: &mut [u8], q: &mut [u8], unit: usize, old: &[u8], new: &[u8]) {
        check(p.len(), old, new);
        assert_eq!(p.len(), q.len(), "P and Q of unequal length");
        self.run(p.len(), UpdatePq { p, q, coefficient: gf::coefficient(unit), old, new });
    }
}

fn check(len: usize, old: &[u8], new: &[u8]) {
    assert_eq!(old.len(), len, "the old data differs in length from its parity");
    assert_eq!(new.len(), len, "the new data differs in length from its parity");
}

/// `p` ^= `old` ^ `new`.
struct UpdateP<'a> {
    p: &'a mut [u8],
    old: &'a [u8],
    new: &'a [u8],
}

impl Kernel for UpdateP<'_> {
    #[inline(always)]
    fn block<I: Isa, const N: usize>(&mut self, isa: I, at: usize) {
        let delta = xor::<I, N>(isa, load(isa, self.old, at), load(isa, self.new, at));
        store(isa, xor(isa, load(isa, self.p, at), delta), self.p, at);
    }
}

/// `q` ^= coefficient times (`old` ^ `new`).
struct UpdateQ<'a> {
    q: &'a mut [u8],
    coefficient: u8,
    old: &'a [u8],
    new: &'a [u8],
}

impl Kernel for UpdateQ<'_> {
    #[inline(always)]
    fn block<I: Isa, const N: usize>(&mut self, isa: I, at: usize) {
        let delta = xor::<I, N>(isa, load(isa, self.old, at), load(isa, self.new, at));
        let scaled = times(isa, delta, self.coefficient);
        store(isa, xor(isa, load(isa, self.q, at), scaled), self.q, at);
    }
}

/// [`UpdateP`] and [`UpdateQ`] in one pass.
struct UpdatePq<'a> {
    p: &'a mut [u8],
    q: &'a mut [u8],
    coefficient: u8,
    old: &'a [u8],
    new: &'a [u8],
}

impl Kernel for UpdatePq<'_> {
    #[inline(always)]
    fn block<I: Isa, const N: usize>(&mut self, isa: I, at: usize) {
        let delta = xor::<I, N>(isa, load(isa, self.old, at), load(isa, self.new, at));
        store(isa, xor(isa, load(isa, self.p, at), delta), self.p, at);
        let scaled = times(isa, delta, self.coefficient);
        store(isa, xor(isa, load(isa, self.q, at), scaled), self.q, at);
    }
}
