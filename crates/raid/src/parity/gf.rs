//! The field GF(2^8) of RAID 6: bytes as polynomials over GF(2), modulo x^8 + x^4 + x^3 + x^2 + 1 (0x11d).
//!
//! Addition is XOR. The generator is g = x (the byte 2), whose powers run through all 255 non-zero bytes, so
//! that 255 data units each have a coefficient of their own. Source: H. Peter Anvin, "The mathematics of
//! RAID-6"; Linux md and ISA-L use the same field.
//!
//! Everything is a table computed at compile time; nothing here touches more than one byte.

/// The reduction polynomial without its x^8 term: what a carry out of bit 7 turns into.
pub(super) const REDUCTION: u8 = 0x1d;

/// The order of the multiplicative group: g^255 = 1.
const ORDER: usize = 255;

/// `a` times g.
pub(super) const fn double(a: u8) -> u8 {
    (a << 1) ^ ((a >> 7) * REDUCTION)
}

/// g^i for i below 255.
static POWERS: [u8; ORDER] = powers();
/// The i below 255 with g^i = a, for each byte `a` but 0 (whose entry is unused).
static LOGARITHMS: [u8; 256] = logarithms();
/// Per constant: its products with 0..16, then with the multiples of 16 (for byte shuffles).
pub(super) static NIBBLE_PRODUCTS: [[u8; 32]; 256] = nibble_products();
/// Per constant: multiplication by it as the bit matrix that `gf2p8affineqb` takes.
pub(super) static MATRICES: [u64; 256] = matrices();

/// The coefficient of data unit `unit` in Q: g^unit.
///
/// # Panics
/// From unit 255 on, where coefficients would repeat and two lost units could not be told apart.
pub(super) fn coefficient(unit: usize) -> u8 {
    assert!(unit < ORDER, "unit {unit} has no coefficient of its own in GF(2^8)");
    POWERS[unit]
}

/// The product of two bytes.
pub(super) fn multiply(a: u8, b: u8) -> u8 {
    if a == 0 || b == 0 {
        return 0;
    }
    let sum = usize::from(LOGARITHMS[usize::from(a)]) + usize::from(LOGARITHMS[usize::from(b)]);
    POWERS[sum % ORDER]
}

/// The byte whose product with `a` is 1.
///
/// # Panics
/// When `a` is 0.
pub(super) fn inverse(a: u8) -> u8 {
    assert!(a != 0, "zero has no inverse");
    POWERS[(ORDER - usize::from(LOGARITHMS[usize::from(a)])) % ORDER]
}

const fn powers() -> [u8; ORDER] {
    let mut table = [1; ORDER];
    let mut i = 1;
    while i < ORDER {
        table[i] = double(table[i - 1]);
        i += 1;
    }
    table
}

const fn logarithms() -> [u8; 256] {
    let powers = powers();
    let mut table = [0; 256];
    let mut i = 0;
    while i < ORDER {
        table[powers[i] as usize] = i as u8;
        i += 1;
    }
    table
}

/// The product by shifting and adding, for the tables below.
const fn multiply_slowly(a: u8, b: u8) -> u8 {
    let (mut product, mut shifted, mut bit) = (0, a, 0);
    while bit < 8 {
        if b >> bit & 1 == 1 {
            product ^= shifted;
        }
        shifted = double(shifted);
        bit += 1;
    }
    product
}

const fn nibble_products() -> [[u8; 32]; 256] {
    let mut tables = [[0; 32]; 256];
    let mut constant = 0;
    while constant < 256 {
        let mut nibble = 0;
        while nibble < 16 {
            tables[constant][nibble] = multiply_slowly(constant as u8, nibble as u8);
            tables[constant][16 + nibble] = multiply_slowly(constant as u8, (nibble << 4) as u8);
            nibble += 1;
        }
        constant += 1;
    }
    tables
}

/// `gf2p8affineqb` computes result bit i as the parity of (byte 7-i of the matrix AND the operand), so byte
/// 7-i holds, in bit j, bit i of constant times g^j (Intel SDM volume 2, GF2P8AFFINEQB).
const fn matrices() -> [u64; 256] {
    let mut tables = [0; 256];
    let mut constant = 0;
    while constant < 256 {
        let mut j = 0;
        while j < 8 {
            let column = multiply_slowly(constant as u8, 1 << j);
            let mut i = 0;
            while i < 8 {
                tables[constant] |= ((column >> i & 1) as u64) << ((7 - i) * 8 + j);
                i += 1;
            }
            j += 1;
        }
        constant += 1;
    }
    tables
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn logarithms_agree_with_shifting_and_adding() {
        for a in 0..=255 {
            for b in 0..=255 {
                assert_eq!(multiply(a, b), multiply_slowly(a, b), "{a} * {b}");
            }
        }
    }

    #[test]
    fn every_byte_but_zero_has_an_inverse() {
        for a in 1..=255 {
            assert_eq!(multiply(a, inverse(a)), 1, "{a}");
        }
    }

    #[test]
    fn the_generator_reaches_every_byte_but_zero() {
        let mut reached: Vec<u8> = (0..ORDER).map(coefficient).collect();
        reached.sort_unstable();
        assert_eq!(reached, (1..=255).collect::<Vec<u8>>());
        assert_eq!(double(coefficient(254)), 1, "g^255");
    }

    #[test]
    #[should_panic(expected = "unit 255")]
    fn a_unit_too_many_is_refused() {
        coefficient(255);
    }
}
