//! Run-time dispatch: which instructions this CPU has, and running a kernel with them.

use std::fmt;

use super::isa::Word;
use super::kernel::{Kernel, sweep};
#[cfg(target_arch = "x86_64")]
use super::x86::{Avx2, Avx2Gfni, Avx512Gfni};

/// A set of vector instructions that this CPU has.
///
/// A value exists only for what the CPU supports, so running at any `Level` is sound. All levels compute
/// the same bytes; they differ in speed alone.
#[derive(Clone, Copy)]
pub struct Level(Kind);

#[derive(Clone, Copy)]
enum Kind {
    Portable,
    #[cfg(target_arch = "x86_64")]
    Avx2(Avx2),
    #[cfg(target_arch = "x86_64")]
    Avx2Gfni(Avx2Gfni),
    #[cfg(target_arch = "x86_64")]
    Avx512Gfni(Avx512Gfni),
}

impl Level {
    /// 64-bit words in plain Rust: supported everywhere.
    pub const PORTABLE: Level = Level(Kind::Portable);

    /// The fastest level of this CPU. Costs a few loads: detection itself runs once per process.
    #[cfg(target_arch = "x86_64")]
    #[inline]
    pub fn best() -> Level {
        None.or_else(|| Avx512Gfni::detect().map(Kind::Avx512Gfni))
            .or_else(|| Avx2Gfni::detect().map(Kind::Avx2Gfni))
            .or_else(|| Avx2::detect().map(Kind::Avx2))
            .map_or(Level::PORTABLE, Level)
    }

    /// The fastest level of this CPU.
    #[cfg(not(target_arch = "x86_64"))]
    #[inline]
    pub fn best() -> Level {
        Level::PORTABLE
    }

    /// Every level of this CPU, slowest first; never empty.
    pub fn supported() -> Vec<Level> {
        let mut levels = vec![Level::PORTABLE];
        #[cfg(target_arch = "x86_64")]
        {
            levels.extend(Avx2::detect().map(|isa| Level(Kind::Avx2(isa))));
            levels.extend(Avx2Gfni::detect().map(|isa| Level(Kind::Avx2Gfni(isa))));
            levels.extend(Avx512Gfni::detect().map(|isa| Level(Kind::Avx512Gfni(isa))));
        }
        levels
    }

    /// The name for logs and benchmarks: `portable`, `avx2`, `avx2+gfni` or `avx512+gfni`.
    pub const fn name(self) -> &'static str {
        match self.0 {
            Kind::Portable => "portable",
            #[cfg(target_arch = "x86_64")]
            Kind::Avx2(_) => "avx2",
            #[cfg(target_arch = "x86_64")]
            Kind::Avx2Gfni(_) => "avx2+gfni",
            #[cfg(target_arch = "x86_64")]
            Kind::Avx512Gfni(_) => "avx512+gfni",
        }
    }

    /// Runs `kernel` over `len` bytes with this level's instructions.
    #[inline]
    pub(super) fn run<K: Kernel>(self, len: usize, kernel: K) {
        match self.0 {
            Kind::Portable => sweep(Word, len, kernel),
            #[cfg(target_arch = "x86_64")]
            // SAFETY: the token proves AVX2.
            Kind::Avx2(isa) => unsafe { sweep_avx2(isa, len, kernel) },
            #[cfg(target_arch = "x86_64")]
            // SAFETY: the token proves AVX2 and GFNI.
            Kind::Avx2Gfni(isa) => unsafe { sweep_avx2_gfni(isa, len, kernel) },
            #[cfg(target_arch = "x86_64")]
            // SAFETY: the token proves AVX-512F and GFNI.
            Kind::Avx512Gfni(isa) => unsafe { sweep_avx512_gfni(isa, len, kernel) },
        }
    }
}

impl fmt::Debug for Level {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2")]
fn sweep_avx2<K: Kernel>(isa: Avx2, len: usize, kernel: K) {
    sweep(isa, len, kernel);
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2,gfni")]
fn sweep_avx2_gfni<K: Kernel>(isa: Avx2Gfni, len: usize, kernel: K) {
    sweep(isa, len, kernel);
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx512f,gfni")]
fn sweep_avx512_gfni<K: Kernel>(isa: Avx512Gfni, len: usize, kernel: K) {
    sweep(isa, len, kernel);
}
