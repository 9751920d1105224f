//! Powers of positive numbers, fast and the same on every machine.
//!
//! The inversion of a power law needs x^p once per draw. `libm::pow` is exact to the last bit and costs more
//! than all the rest of the draw together; here relative errors of 1e-11 are allowed, since a rank is a whole
//! number and its law is smooth. Only additions, multiplications and one division are used, which IEEE 754
//! fixes to the bit.

/// The coefficients 1, 1/3, 1/5 … 1/13 of the series of the inverse hyperbolic tangent.
const ATANH: [f64; 7] = [1.0, 1.0 / 3.0, 1.0 / 5.0, 1.0 / 7.0, 1.0 / 9.0, 1.0 / 11.0, 1.0 / 13.0];

/// The binary logarithm of a positive normal number, within 1e-12.
///
/// x = 2^e m with m in [√½, √2); log2 m = 2 atanh(s) / ln 2 with s = (m - 1) / (m + 1), |s| <= 0.1716. The
/// first term left out is 2 s^15 / 15 / ln 2 < 7e-13.
#[inline]
pub(super) fn log2(x: f64) -> f64 {
    const SQRT_HALF_BITS: u64 = 0x3fe6_a09e_667f_3bcd;
    let shifted = x.to_bits().wrapping_sub(SQRT_HALF_BITS);
    let exponent = (shifted as i64) >> 52;
    let m = f64::from_bits((shifted & ((1 << 52) - 1)) + SQRT_HALF_BITS);
    let s = (m - 1.0) / (m + 1.0);
    let z = s * s;
    let z2 = z * z;
    let pair = |index: usize| ATANH[index] + ATANH[index + 1] * z;
    let series = pair(0) + pair(2) * z2 + (pair(4) + ATANH[6] * z2) * (z2 * z2);
    exponent as f64 + s * series * (2.0 * std::f64::consts::LOG2_E)
}

/// 2 to the `y`, within 1e-12 of its value; beyond ±1000 the nearest power in that range.
///
/// y = n + f with |f| <= 1/2 and 2^f = e^(f ln 2), |f ln 2| <= 0.3466. The first term of the series left out is
/// 0.3466^11 / 11! < 3e-13.
#[inline]
pub(super) fn exp2(y: f64) -> f64 {
    /// Adding and taking it away rounds to a whole number: 1.5 * 2^52.
    const ROUND: f64 = 6_755_399_441_055_744.0;
    const INVERSE_FACTORIALS: [f64; 11] = [
        1.0,
        1.0,
        1.0 / 2.0,
        1.0 / 6.0,
        1.0 / 24.0,
        1.0 / 120.0,
        1.0 / 720.0,
        1.0 / 5_040.0,
        1.0 / 40_320.0,
        1.0 / 362_880.0,
        1.0 / 3_628_800.0,
    ];
    let y = y.clamp(-1000.0, 1000.0);
    let rounded = y + ROUND;
    let t = (y - (rounded - ROUND)) * std::f64::consts::LN_2;
    let t2 = t * t;
    let t4 = t2 * t2;
    let pair = |index: usize| INVERSE_FACTORIALS[index] + INVERSE_FACTORIALS[index + 1] * t;
    let four = |index: usize| pair(index) + pair(index + 2) * t2;
    let series = four(0) + four(4) * t4 + (pair(8) + INVERSE_FACTORIALS[10] * t2) * (t4 * t4);
    // The low bits of `rounded` hold n; moved to the exponent's place they multiply by 2^n.
    f64::from_bits(series.to_bits().wrapping_add(rounded.to_bits() << 52))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn log2_agrees_with_the_exact_one(exponent in -1000.0f64..1000.0) {
            let x = libm::exp2(exponent);
            prop_assert!((log2(x) - libm::log2(x)).abs() <= 1e-12 + 3e-16 * exponent.abs());
        }

        #[test]
        fn exp2_agrees_with_the_exact_one(y in -999.0f64..999.0) {
            prop_assert!((exp2(y) / libm::exp2(y) - 1.0).abs() < 1e-12);
        }
    }

    #[test]
    fn exact_powers_and_ends() {
        for (x, log) in [(1.0, 0.0), (2.0, 1.0), (0.5, -1.0), (1024.0, 10.0)] {
            assert_eq!((log2(x), exp2(log)), (log, x));
        }
        assert!(exp2(1e300).is_finite() && exp2(-1e300) > 0.0);
    }
}
