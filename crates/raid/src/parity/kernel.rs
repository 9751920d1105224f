//! Kernels: what is computed at each offset of a row, whatever the width of the vectors.
//!
//! A kernel sees one block of N vectors at a time and touches each byte once; [`sweep`] drives it over
//! the whole length, in wide blocks, then single vectors, then words, then bytes. No alignment is needed.

use super::isa::{Byte, Isa, Word};

/// A computation over slices of equal length, byte `i` of each together.
pub(super) trait Kernel {
    /// Computes bytes `at .. at + N * I::BYTES`.
    fn block<I: Isa, const N: usize>(&mut self, isa: I, at: usize);
}

/// Vectors per block: eight accumulators and their operands stay within sixteen registers.
const UNROLL: usize = 4;

/// Runs `kernel` over `len` bytes.
#[inline(always)]
pub(super) fn sweep<I: Isa, K: Kernel>(isa: I, len: usize, mut kernel: K) {
    let mut at = 0;
    while len - at >= UNROLL * I::BYTES {
        kernel.block::<I, UNROLL>(isa, at);
        at += UNROLL * I::BYTES;
    }
    while len - at >= I::BYTES {
        kernel.block::<I, 1>(isa, at);
        at += I::BYTES;
    }
    while len - at >= Word::BYTES {
        kernel.block::<Word, 1>(Word, at);
        at += Word::BYTES;
    }
    while at < len {
        kernel.block::<Byte, 1>(Byte, at);
        at += 1;
    }
}

/// `N` vectors of `from` at byte `at`.
#[inline(always)]
pub(super) fn load<I: Isa, const N: usize>(isa: I, from: &[u8], at: usize) -> [I::V; N] {
    let from = &from[at..at + N * I::BYTES];
    std::array::from_fn(
        #[inline(always)]
        |i| isa.load(&from[i * I::BYTES..]),
    )
}

/// Writes `N` vectors to byte `at` of `to`.
#[inline(always)]
pub(super) fn store<I: Isa, const N: usize>(isa: I, v: [I::V; N], to: &mut [u8], at: usize) {
    let to = &mut to[at..at + N * I::BYTES];
    for i in 0..N {
        isa.store(v[i], &mut to[i * I::BYTES..]);
    }
}

/// The sum.
#[inline(always)]
pub(super) fn xor<I: Isa, const N: usize>(isa: I, mut a: [I::V; N], b: [I::V; N]) -> [I::V; N] {
    for i in 0..N {
        a[i] = isa.xor(a[i], b[i]);
    }
    a
}

/// The product with the generator.
#[inline(always)]
pub(super) fn double<I: Isa, const N: usize>(isa: I, mut a: [I::V; N]) -> [I::V; N] {
    for v in &mut a {
        *v = isa.double(*v);
    }
    a
}

/// The product with a constant.
#[inline(always)]
pub(super) fn times<I: Isa, const N: usize>(isa: I, mut a: [I::V; N], constant: u8) -> [I::V; N] {
    let factor = isa.factor(constant);
    for v in &mut a {
        *v = isa.times(*v, factor);
    }
    a
}
