//! What was lost, from what is left ("The mathematics of RAID-6").
//!
//! The data units of a row are passed in order, with `None` in the place of each missing one; what is in a
//! missing unit's drive is never looked at. All functions overwrite their outputs.

use super::gf;
use super::isa::Isa;
use super::kernel::{Kernel, load, store, times, xor};
use super::level::Level;
use super::units::{Holed, Units, check, p_of, pq_of, q_of};

impl Level {
    /// Writes the missing data units to `lost`, in ascending order of unit, with as little parity as does:
    /// one by P if given, else by Q; two by both. Nothing is missing: nothing is done.
    ///
    /// # Panics
    /// When `lost` has not one slice per missing unit, when more is missing than the given parity recovers,
    /// when lengths differ, or from 256 data units on.
    pub fn recover<D: AsRef<[u8]>>(
        self,
        lost: &mut [&mut [u8]],
        data: &[Option<D>],
        p: Option<&[u8]>,
        q: Option<&[u8]>,
    ) {
        assert_eq!(lost.len(), missing(data).count(), "one output per missing data unit");
        match (lost, p, q) {
            ([], ..) => {}
            ([x], Some(p), _) => self.recover_from_p(x, data, p),
            ([x], None, Some(q)) => self.recover_from_q(x, data, q),
            ([x, y], Some(p), Some(q)) => self.recover_pair(x, y, data, p, q),
            (lost, ..) => {
                panic!("{} data units are missing, more than the given parity recovers", lost.len())
            }
        }
    }

    /// Writes the one missing data unit to `lost`, by P.
    ///
    /// # Panics
    /// Unless exactly one unit is missing; when lengths differ; from 256 data units on.
    pub fn recover_from_p<D: AsRef<[u8]>>(self, lost: &mut [u8], data: &[Option<D>], p: &[u8]) {
        let [_] = exactly(data);
        let units = Holed(data);
        check(&units, lost.len());
        assert_eq!(p.len(), lost.len(), "P differs in length from the data");
        self.run(lost.len(), FromP { lost, p, units });
    }

    /// Writes the one missing data unit to `lost`, by Q.
    ///
    /// # Panics
    /// Unless exactly one unit is missing; when lengths differ; from 256 data units on.
    pub fn recover_from_q<D: AsRef<[u8]>>(self, lost: &mut [u8], data: &[Option<D>], q: &[u8]) {
        let [x] = exactly(data);
        let units = Holed(data);
        check(&units, lost.len());
        assert_eq!(q.len(), lost.len(), "Q differs in length from the data");
        let inverse = gf::inverse(gf::coefficient(x));
        self.run(lost.len(), FromQ { lost, inverse, q, units });
    }

    /// Writes the two missing data units to `x` (the lower) and `y`, by P and Q.
    ///
    /// # Panics
    /// Unless exactly two units are missing; when lengths differ; from 256 data units on.
    pub fn recover_pair<D: AsRef<[u8]>>(
        self,
        x: &mut [u8],
        y: &mut [u8],
        data: &[Option<D>],
        p: &[u8],
        q: &[u8],
    ) {
        let [first, second] = exactly(data);
        let units = Holed(data);
        check(&units, x.len());
        assert_eq!(y.len(), x.len(), "missing units of unequal length");
        assert_eq!((p.len(), q.len()), (x.len(), x.len()), "P or Q differs in length from the data");
        let factors = pair_factors(first, second);
        self.run(x.len(), FromPq { x, y, p, q, factors, units });
    }

    /// Writes the one missing data unit to `lost` and the missing P to `p`, by Q.
    ///
    /// # Panics
    /// As [`Level::recover_from_q`].
    pub fn recover_data_and_p<D: AsRef<[u8]>>(
        self,
        lost: &mut [u8],
        p: &mut [u8],
        data: &[Option<D>],
        q: &[u8],
    ) {
        self.recover_from_q(lost, data, q);
        assert_eq!(p.len(), lost.len(), "P differs in length from the data");
        self.run(p.len(), FromP { lost: p, p: lost, units: Holed(data) });
    }

    /// Writes the one missing data unit to `lost` and the missing Q to `q`, by P.
    ///
    /// # Panics
    /// As [`Level::recover_from_p`].
    pub fn recover_data_and_q<D: AsRef<[u8]>>(
        self,
        lost: &mut [u8],
        q: &mut [u8],
        data: &[Option<D>],
        p: &[u8],
    ) {
        self.recover_from_p(lost, data, p);
        assert_eq!(q.len(), lost.len(), "Q differs in length from the data");
        let [x] = exactly(data);
        self.run(q.len(), WithUnit { q, lost, coefficient: gf::coefficient(x), units: Holed(data) });
    }
}

/// The missing units, ascending.
fn missing<D>(data: &[Option<D>]) -> impl Iterator<Item = usize> {
    data.iter().enumerate().filter(|(_, unit)| unit.is_none()).map(|(i, _)| i)
}

/// The `N` missing units, ascending; panics when there are more or fewer.
fn exactly<D, const N: usize>(data: &[Option<D>]) -> [usize; N] {
    let mut units = missing(data);
    let found = std::array::from_fn(|_| units.next());
    let more = units.count();
    assert!(more == 0 && found.iter().all(Option::is_some), "exactly {N} data units must be missing");
    found.map(|unit| unit.expect("checked"))
}

/// The A and B of D_x = A (P + P_xy) + B (Q + Q_xy), where x < y are missing and P_xy and Q_xy are the parity
/// of the others: A = g^(y-x) / (g^(y-x) + 1), B = g^(-x) / (g^(y-x) + 1).
fn pair_factors(x: usize, y: usize) -> [u8; 2] {
    let distance = gf::coefficient(y - x);
    let denominator = gf::inverse(distance ^ 1);
    [gf::multiply(distance, denominator), gf::multiply(gf::inverse(gf::coefficient(x)), denominator)]
}

/// `lost` = `p` + sum of the other units.
struct FromP<'a, U> {
    lost: &'a mut [u8],
    p: &'a [u8],
    units: U,
}

impl<U: Units> Kernel for FromP<'_, U> {
    #[inline(always)]
    fn block<I: Isa, const N: usize>(&mut self, isa: I, at: usize) {
        let sum = xor::<I, N>(isa, p_of(isa, &self.units, at), load(isa, self.p, at));
        store(isa, sum, self.lost, at);
    }
}

/// `q` = the Q of the other units + coefficient times `lost`.
struct WithUnit<'a, U> {
    q: &'a mut [u8],
    lost: &'a [u8],
    coefficient: u8,
    units: U,
}

impl<U: Units> Kernel for WithUnit<'_, U> {
    #[inline(always)]
    fn block<I: Isa, const N: usize>(&mut self, isa: I, at: usize) {
        let share = times::<I, N>(isa, load(isa, self.lost, at), self.coefficient);
        store(isa, xor(isa, q_of(isa, &self.units, at), share), self.q, at);
    }
}

/// The one missing unit, from Q and the others.
struct FromQ<'a, U> {
    lost: &'a mut [u8],
    /// The inverse of the missing unit's coefficient.
    inverse: u8,
    q: &'a [u8],
    units: U,
}

impl<U: Units> Kernel for FromQ<'_, U> {
    #[inline(always)]
    fn block<I: Isa, const N: usize>(&mut self, isa: I, at: usize) {
        let share = xor::<I, N>(isa, q_of(isa, &self.units, at), load(isa, self.q, at));
        store(isa, times(isa, share, self.inverse), self.lost, at);
    }
}

/// The two missing units x < y, from P, Q and the others.
struct FromPq<'a, U> {
    x: &'a mut [u8],
    y: &'a mut [u8],
    p: &'a [u8],
    q: &'a [u8],
    /// See [`pair_factors`].
    factors: [u8; 2],
    units: U,
}

impl<U: Units> Kernel for FromPq<'_, U> {
    #[inline(always)]
    fn block<I: Isa, const N: usize>(&mut self, isa: I, at: usize) {
        let [p, q] = pq_of::<I, N>(isa, &self.units, at);
        let p = xor(isa, p, load(isa, self.p, at));
        let q = xor(isa, q, load(isa, self.q, at));
        let x = xor(isa, times(isa, p, self.factors[0]), times(isa, q, self.factors[1]));
        store(isa, x, self.x, at);
        store(isa, xor(isa, p, x), self.y, at);
    }
}
