//! The vector operations of parity on x86-64: AVX2, AVX2 with GFNI, AVX-512 with GFNI.
//!
//! Each token has a private field and is made by its `detect` alone, which asks the CPU: that is the one
//! fact on which all `unsafe` here rests.

use std::arch::x86_64::*;

use super::gf;
use super::isa::Isa;

/// 32-byte vectors; multiplication by byte shuffles over nibbles.
#[derive(Clone, Copy, Debug)]
pub(super) struct Avx2(());

/// 32-byte vectors; multiplication by one affine instruction.
#[derive(Clone, Copy, Debug)]
pub(super) struct Avx2Gfni(());

/// 64-byte vectors; multiplication by one affine instruction.
#[derive(Clone, Copy, Debug)]
pub(super) struct Avx512Gfni(());

impl Avx2 {
    /// The token, if the CPU and the operating system support it.
    pub(super) fn detect() -> Option<Avx2> {
        is_x86_feature_detected!("avx2").then_some(Avx2(()))
    }
}

impl Avx2Gfni {
    /// The token, if the CPU and the operating system support it.
    pub(super) fn detect() -> Option<Avx2Gfni> {
        (is_x86_feature_detected!("avx2") && is_x86_feature_detected!("gfni")).then_some(Avx2Gfni(()))
    }
}

impl Avx512Gfni {
    /// The token, if the CPU and the operating system support it.
    pub(super) fn detect() -> Option<Avx512Gfni> {
        (is_x86_feature_detected!("avx512f") && is_x86_feature_detected!("gfni")).then_some(Avx512Gfni(()))
    }
}

/// The vector operations that both 32-byte tokens share.
macro_rules! avx2_moves {
    () => {
        type V = __m256i;
        const BYTES: usize = 32;

        #[inline(always)]
        fn zero(self) -> __m256i {
            // SAFETY: `self` proves AVX2.
            unsafe { _mm256_setzero_si256() }
        }

        #[inline(always)]
        fn load(self, from: &[u8]) -> __m256i {
            let from: &[u8; 32] = from.first_chunk().expect("a vector");
            // SAFETY: `self` proves AVX2; the array is 32 readable bytes; the load needs no alignment.
            unsafe { _mm256_loadu_si256(from.as_ptr().cast()) }
        }

        #[inline(always)]
        fn store(self, v: __m256i, to: &mut [u8]) {
            let to: &mut [u8; 32] = to.first_chunk_mut().expect("a vector");
            // SAFETY: `self` proves AVX2; the array is 32 writable bytes; the store needs no alignment.
            unsafe { _mm256_storeu_si256(to.as_mut_ptr().cast(), v) }
        }

        #[inline(always)]
        fn xor(self, a: __m256i, b: __m256i) -> __m256i {
            // SAFETY: `self` proves AVX2.
            unsafe { _mm256_xor_si256(a, b) }
        }
    };
}

impl Isa for Avx2 {
    avx2_moves!();
    /// The products of the low and of the high nibbles, each 16 bytes twice.
    type Factor = [__m256i; 2];

    /// Lanes with bit 7 set compare below zero as signed bytes: they take the reduction.
    #[inline(always)]
    fn double(self, a: __m256i) -> __m256i {
        // SAFETY: `self` proves AVX2.
        unsafe {
            let carries = _mm256_cmpgt_epi8(_mm256_setzero_si256(), a);
            let reduction = _mm256_and_si256(carries, _mm256_set1_epi8(gf::REDUCTION as i8));
            _mm256_xor_si256(_mm256_add_epi8(a, a), reduction)
        }
    }

    #[inline(always)]
    fn factor(self, constant: u8) -> [__m256i; 2] {
        let products = self.load(&gf::NIBBLE_PRODUCTS[usize::from(constant)]);
        // SAFETY: `self` proves AVX2.
        unsafe {
            [
                _mm256_permute2x128_si256::<0x00>(products, products),
                _mm256_permute2x128_si256::<0x11>(products, products),
            ]
        }
    }

    #[inline(always)]
    fn times(self, a: __m256i, [low, high]: [__m256i; 2]) -> __m256i {
        // SAFETY: `self` proves AVX2.
        unsafe {
            let nibble = _mm256_set1_epi8(0x0f);
            let low = _mm256_shuffle_epi8(low, _mm256_and_si256(a, nibble));
            let high = _mm256_shuffle_epi8(high, _mm256_and_si256(_mm256_srli_epi16::<4>(a), nibble));
            _mm256_xor_si256(low, high)
        }
    }
}

impl Isa for Avx2Gfni {
    avx2_moves!();
    /// The bit matrix of the constant, once per eight bytes.
    type Factor = __m256i;

    #[inline(always)]
    fn double(self, a: __m256i) -> __m256i {
        self.times(a, self.factor(2))
    }

    #[inline(always)]
    fn factor(self, constant: u8) -> __m256i {
        // SAFETY: `self` proves AVX2.
        unsafe { _mm256_set1_epi64x(gf::MATRICES[usize::from(constant)] as i64) }
    }

    #[inline(always)]
    fn times(self, a: __m256i, factor: __m256i) -> __m256i {
        // SAFETY: `self` proves AVX2 and GFNI, all that the 32-byte (VEX) form needs.
        unsafe { _mm256_gf2p8affine_epi64_epi8::<0>(a, factor) }
    }
}

impl Isa for Avx512Gfni {
    type V = __m512i;
    /// The bit matrix of the constant, once per eight bytes.
    type Factor = __m512i;
    const BYTES: usize = 64;

    #[inline(always)]
    fn zero(self) -> __m512i {
        // SAFETY: `self` proves AVX-512F.
        unsafe { _mm512_setzero_si512() }
    }

    #[inline(always)]
    fn load(self, from: &[u8]) -> __m512i {
        let from: &[u8; 64] = from.first_chunk().expect("a vector");
        // SAFETY: `self` proves AVX-512F; the array is 64 readable bytes; the load needs no alignment.
        unsafe { _mm512_loadu_si512(from.as_ptr().cast()) }
    }

    #[inline(always)]
    fn store(self, v: __m512i, to: &mut [u8]) {
        let to: &mut [u8; 64] = to.first_chunk_mut().expect("a vector");
        // SAFETY: `self` proves AVX-512F; the array is 64 writable bytes; the store needs no alignment.
        unsafe { _mm512_storeu_si512(to.as_mut_ptr().cast(), v) }
    }

    #[inline(always)]
    fn xor(self, a: __m512i, b: __m512i) -> __m512i {
        // SAFETY: `self` proves AVX-512F.
        unsafe { _mm512_xor_si512(a, b) }
    }

    #[inline(always)]
    fn double(self, a: __m512i) -> __m512i {
        self.times(a, self.factor(2))
    }

    #[inline(always)]
    fn factor(self, constant: u8) -> __m512i {
        // SAFETY: `self` proves AVX-512F.
        unsafe { _mm512_set1_epi64(gf::MATRICES[usize::from(constant)] as i64) }
    }

    #[inline(always)]
    fn times(self, a: __m512i, factor: __m512i) -> __m512i {
        // SAFETY: `self` proves AVX-512F and GFNI, all that the 64-byte form needs.
        unsafe { _mm512_gf2p8affine_epi64_epi8::<0>(a, factor) }
    }
}
