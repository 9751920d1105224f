//! Every level against naive byte-by-byte arithmetic, at every kind of length.

use proptest::prelude::*;

use super::Level;

/// The product in GF(2^8) the long way: shift, reduce, add.
fn multiply(mut a: u8, mut b: u8) -> u8 {
    let mut product = 0;
    while b != 0 {
        if b & 1 == 1 {
            product ^= a;
        }
        let carry = a & 0x80 != 0;
        a <<= 1;
        if carry {
            a ^= 0x1d;
        }
        b >>= 1;
    }
    product
}

fn coefficient(unit: usize) -> u8 {
    (0..unit).fold(1, |g, _| multiply(g, 2))
}

fn naive_p(data: &[Vec<u8>], len: usize) -> Vec<u8> {
    (0..len).map(|i| data.iter().fold(0, |p, unit| p ^ unit[i])).collect()
}

fn naive_q(data: &[Vec<u8>], len: usize) -> Vec<u8> {
    let coefficients: Vec<u8> = (0..data.len()).map(coefficient).collect();
    (0..len)
        .map(|i| data.iter().zip(&coefficients).fold(0, |q, (unit, &g)| q ^ multiply(unit[i], g)))
        .collect()
}

/// Bytes that look random and are a function of `seed` alone.
fn noise(len: usize, seed: u64) -> Vec<u8> {
    let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    let mut next = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        (state >> 32) as u8
    };
    (0..len).map(|_| next()).collect()
}

fn row(units: usize, len: usize, seed: u64) -> Vec<Vec<u8>> {
    (0..units).map(|unit| noise(len, seed * 257 + unit as u64 + 1)).collect()
}

/// The row without the units in `lost`.
fn holed<'a>(data: &'a [Vec<u8>], lost: &[usize]) -> Vec<Option<&'a [u8]>> {
    data.iter().enumerate().map(|(i, unit)| (!lost.contains(&i)).then_some(&unit[..])).collect()
}

/// Zero, tiny, odd, around each vector and block width, and a stripe unit.
const LENGTHS: [usize; 26] = [
    0, 1, 3, 4, 5, 7, 8, 9, 12, 15, 16, 31, 32, 33, 63, 64, 65, 127, 128, 129, 255, 256, 257, 300, 511, 4096,
];

/// Recovers every single unit and every pair of `data` in every way, at one level.
fn recovers_everything(level: Level, data: &[Vec<u8>], len: usize) {
    let (p, q) = (naive_p(data, len), naive_q(data, len));
    let context = |lost: &[usize]| format!("{level:?}, {} units of {len} bytes, lost {lost:?}", data.len());
    for x in 0..data.len() {
        let survivors = holed(data, &[x]);
        let (mut unit, mut parity) = (vec![0xa5; len], vec![0xa5; len]);
        level.recover_from_p(&mut unit, &survivors, &p);
        assert_eq!(unit, data[x], "from P: {}", context(&[x]));
        unit.fill(0x5a);
        level.recover_from_q(&mut unit, &survivors, &q);
        assert_eq!(unit, data[x], "from Q: {}", context(&[x]));
        unit.fill(0xa5);
        level.recover_data_and_p(&mut unit, &mut parity, &survivors, &q);
        assert_eq!((&unit, &parity), (&data[x], &p), "with P lost: {}", context(&[x]));
        unit.fill(0x5a);
        level.recover_data_and_q(&mut unit, &mut parity, &survivors, &p);
        assert_eq!((&unit, &parity), (&data[x], &q), "with Q lost: {}", context(&[x]));
        for y in x + 1..data.len() {
            let survivors = holed(data, &[x, y]);
            let (mut first, mut second) = (vec![0xa5; len], vec![0x5a; len]);
            level.recover_pair(&mut first, &mut second, &survivors, &p, &q);
            assert_eq!((&first, &second), (&data[x], &data[y]), "pair: {}", context(&[x, y]));
        }
    }
}

#[test]
fn recovery_of_every_unit_and_pair_at_every_level() {
    for level in Level::supported() {
        for units in [1, 2, 3, 4, 5, 8, 14] {
            for len in [0, 4, 13, 64, 333] {
                recovers_everything(level, &row(units, len, len as u64), len);
            }
        }
    }
}

#[test]
fn the_widest_row_recovers_its_ends() {
    let (units, len) = (255, 77);
    let data = row(units, len, 3);
    let (p, q) = (naive_p(&data, len), naive_q(&data, len));
    for level in Level::supported() {
        for lost in [[0, 1], [0, 254], [127, 128], [253, 254]] {
            let (mut x, mut y) = (vec![0; len], vec![0; len]);
            level.recover_pair(&mut x, &mut y, &holed(&data, &lost), &p, &q);
            assert_eq!((&x, &y), (&data[lost[0]], &data[lost[1]]), "{level:?}, lost {lost:?}");
        }
    }
}

#[test]
fn generation_at_every_level_and_length() {
    for level in Level::supported() {
        for len in LENGTHS {
            for units in [0, 1, 2, 5, 8, 31] {
                let data = row(units, len, 11);
                let (expected_p, expected_q) = (naive_p(&data, len), naive_q(&data, len));
                let (mut p, mut q) = (vec![0xa5; len], vec![0x5a; len]);
                level.pq(&mut p, &mut q, &data);
                assert_eq!((&p, &q), (&expected_p, &expected_q), "{level:?}, {units} units of {len} bytes");
                p.fill(0x5a);
                level.xor_many(&mut p, &data);
                assert_eq!(p, expected_p, "sum: {level:?}, {units} units of {len} bytes");
                q.fill(0xa5);
                level.q(&mut q, &data);
                assert_eq!(q, expected_q, "Q alone: {level:?}, {units} units of {len} bytes");
            }
        }
    }
}

/// One unit that changes from `old` to `new` in a row of five.
fn updates_like_generation(level: Level, unit: usize, len: usize) {
    let mut data = row(5, len, 5);
    let (mut p, mut q) = (naive_p(&data, len), naive_q(&data, len));
    let (mut p_alone, mut q_alone) = (p.clone(), q.clone());
    let new = noise(len, 999);
    level.update_pq(&mut p, &mut q, unit, &data[unit], &new);
    level.update_p(&mut p_alone, &data[unit], &new);
    level.update_q(&mut q_alone, unit, &data[unit], &new);
    data[unit] = new;
    let expected = (naive_p(&data, len), naive_q(&data, len));
    assert_eq!((p, q), expected, "{level:?}, unit {unit} of {len} bytes");
    assert_eq!((p_alone, q_alone), expected, "one by one: {level:?}, unit {unit} of {len} bytes");
}

#[test]
fn updates_at_every_level_and_length() {
    for level in Level::supported() {
        for len in LENGTHS {
            for unit in 0..5 {
                updates_like_generation(level, unit, len);
            }
        }
    }
}

proptest! {
    /// Slices at odd addresses, random widths and lengths: all levels agree with the naive sums.
    #[test]
    fn any_shape_at_any_alignment(units in 1_usize..40, len in 0_usize..700, skew in 0_usize..64, seed: u16) {
        let backing = row(units, len + skew, u64::from(seed));
        let data: Vec<Vec<u8>> = backing.iter().map(|unit| unit[skew..].to_vec()).collect();
        let skewed: Vec<&[u8]> = backing.iter().map(|unit| &unit[skew..]).collect();
        let (expected_p, expected_q) = (naive_p(&data, len), naive_q(&data, len));
        for level in Level::supported() {
            let (mut p, mut q) = (vec![0; len + skew], vec![0; len + skew]);
            level.pq(&mut p[skew..], &mut q[skew..], &skewed);
            prop_assert_eq!(&p[skew..], &expected_p[..], "P at {:?}", level);
            prop_assert_eq!(&q[skew..], &expected_q[..], "Q at {:?}", level);
            level.xor_into(&mut p[skew..], skewed[0]);
            let without_first = naive_p(&data[1..], len);
            prop_assert_eq!(&p[skew..], &without_first[..], "xor_into at {:?}", level);
        }
    }

    /// `recover` chooses the parity: whatever up to two of a row's units are gone, it brings the data back.
    #[test]
    fn recover_brings_back_what_two_losses_took(
        units in 2_usize..20, len in 0_usize..200, a in 0_usize..22, b in 0_usize..22, seed: u16,
    ) {
        let data = row(units, len, u64::from(seed));
        let (p, q) = (naive_p(&data, len), naive_q(&data, len));
        // Positions from `units` on are P and Q.
        let gone = |i: usize| [a % (units + 2), b % (units + 2)].contains(&i);
        let lost: Vec<usize> = (0..units).filter(|&i| gone(i)).collect();
        for level in Level::supported() {
            let mut outputs = vec![vec![0xa5; len]; lost.len()];
            let mut slices: Vec<&mut [u8]> = outputs.iter_mut().map(Vec::as_mut_slice).collect();
            let (p, q) = ((!gone(units)).then_some(&p[..]), (!gone(units + 1)).then_some(&q[..]));
            level.recover(&mut slices, &holed(&data, &lost), p, q);
            for (unit, output) in lost.iter().zip(&outputs) {
                prop_assert_eq!(output, &data[*unit], "unit {} at {:?}", unit, level);
            }
        }
    }
}

#[test]
#[should_panic(expected = "2 data units are missing")]
fn too_little_parity_is_refused() {
    let data = row(4, 8, 1);
    let (mut x, mut y) = ([0; 8], [0; 8]);
    Level::best().recover(&mut [&mut x, &mut y], &holed(&data, &[1, 2]), Some(&[0; 8]), None);
}

#[test]
#[should_panic(expected = "differs in length")]
fn unequal_lengths_are_refused() {
    Level::best().xor_many(&mut [0; 8], &[vec![0; 8], vec![0; 9]]);
}
