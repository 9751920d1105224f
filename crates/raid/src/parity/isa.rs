//! The vector operations that parity needs, and their portable forms.
//!
//! An [`Isa`] is a token: holding one proves that the CPU has the instructions. All methods are
//! `inline(always)` so that they end up inside one function compiled for those instructions
//! ([`super::level`]); none of them is called from elsewhere.

use super::gf;

/// One width of vector and its arithmetic in GF(2^8), every byte a lane of its own.
pub(super) trait Isa: Copy {
    /// A vector of [`Isa::BYTES`] bytes.
    type V: Copy;
    /// A constant prepared for multiplication.
    type Factor: Copy;
    /// The width of a vector.
    const BYTES: usize;

    /// All lanes zero.
    fn zero(self) -> Self::V;
    /// The first [`Isa::BYTES`] bytes of `from`; panics where it is shorter.
    fn load(self, from: &[u8]) -> Self::V;
    /// Writes the first [`Isa::BYTES`] bytes of `to`; panics where it is shorter.
    fn store(self, v: Self::V, to: &mut [u8]);
    /// Lane by lane sum.
    fn xor(self, a: Self::V, b: Self::V) -> Self::V;
    /// Lane by lane product with the generator.
    fn double(self, a: Self::V) -> Self::V;
    /// Prepares multiplication by `constant`.
    fn factor(self, constant: u8) -> Self::Factor;
    /// Lane by lane product with a prepared constant.
    fn times(self, a: Self::V, factor: Self::Factor) -> Self::V;
}

/// Eight bytes in a general register: the portable level, and the tails of the others.
#[derive(Clone, Copy, Debug)]
pub(super) struct Word;

/// `byte` in all eight lanes.
const fn lanes(byte: u8) -> u64 {
    u64::from_ne_bytes([byte; 8])
}

impl Isa for Word {
    type V = u64;
    type Factor = u8;
    const BYTES: usize = 8;

    #[inline(always)]
    fn zero(self) -> u64 {
        0
    }

    #[inline(always)]
    fn load(self, from: &[u8]) -> u64 {
        u64::from_ne_bytes(*from.first_chunk().expect("a word"))
    }

    #[inline(always)]
    fn store(self, v: u64, to: &mut [u8]) {
        *to.first_chunk_mut().expect("a word") = v.to_ne_bytes();
    }

    #[inline(always)]
    fn xor(self, a: u64, b: u64) -> u64 {
        a ^ b
    }

    /// Per lane 2^8 - 1 where bit 7 is set, all lanes in one subtraction that never borrows across lanes.
    #[inline(always)]
    fn double(self, a: u64) -> u64 {
        let carries = a & lanes(0x80);
        let mask = (carries << 1).wrapping_sub(carries >> 7);
        (a << 1) & lanes(0xfe) ^ mask & lanes(gf::REDUCTION)
    }

    #[inline(always)]
    fn factor(self, constant: u8) -> u8 {
        constant
    }

    /// Horner's rule over the bits of the constant.
    #[inline(always)]
    fn times(self, a: u64, factor: u8) -> u64 {
        let mut product = 0;
        for bit in (0..8).rev() {
            let keep = u64::from(factor >> bit & 1).wrapping_neg();
            product = self.double(product) ^ a & keep;
        }
        product
    }
}

/// A single byte: what remains after the last whole word.
#[derive(Clone, Copy, Debug)]
pub(super) struct Byte;

impl Isa for Byte {
    type V = u8;
    type Factor = u8;
    const BYTES: usize = 1;

    #[inline(always)]
    fn zero(self) -> u8 {
        0
    }

    #[inline(always)]
    fn load(self, from: &[u8]) -> u8 {
        from[0]
    }

    #[inline(always)]
    fn store(self, v: u8, to: &mut [u8]) {
        to[0] = v;
    }

    #[inline(always)]
    fn xor(self, a: u8, b: u8) -> u8 {
        a ^ b
    }

    #[inline(always)]
    fn double(self, a: u8) -> u8 {
        gf::double(a)
    }

    #[inline(always)]
    fn factor(self, constant: u8) -> u8 {
        constant
    }

    #[inline(always)]
    fn times(self, a: u8, factor: u8) -> u8 {
        gf::multiply(a, factor)
    }
}
