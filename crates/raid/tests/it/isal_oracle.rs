//! P and Q at every level of this CPU against ISA-L, an independent implementation of the same field.
#![cfg(target_arch = "x86_64")]

use crate::isal::{Isal, Line, column};
use tier0_raid::parity::Level;

/// The bytes of a column.
fn bytes(column: &[Line]) -> Vec<u8> {
    column.iter().flat_map(|line| line.0).collect()
}

#[test]
fn every_level_computes_the_parity_of_isal() {
    let Some(isal) = Isal::load() else { return };
    for data_units in [2, 3, 4, 8, 14, 30] {
        for lines in [1, 2, 5, 8, 64] {
            let mut columns: Vec<Vec<Line>> =
                (0..data_units + 2).map(|i| column(lines, i as u64 + 1)).collect();
            isal.pq(&mut columns);
            let columns: Vec<Vec<u8>> = columns.iter().map(|column| bytes(column)).collect();
            let (data, parity) = columns.split_at(data_units);
            for level in Level::supported() {
                let (mut p, mut q) = (vec![0; lines * 64], vec![0; lines * 64]);
                level.pq(&mut p, &mut q, data);
                assert_eq!(p, parity[0], "P at {level:?}: {data_units} units of {lines} lines");
                assert_eq!(q, parity[1], "Q at {level:?}: {data_units} units of {lines} lines");
            }
        }
    }
}

#[test]
fn every_level_computes_the_sum_of_isal() {
    let Some(isal) = Isal::load() else { return };
    for sources in [2, 5, 11] {
        let mut columns: Vec<Vec<Line>> = (0..=sources).map(|i| column(9, i as u64 + 1)).collect();
        isal.xor(&mut columns);
        let columns: Vec<Vec<u8>> = columns.iter().map(|column| bytes(column)).collect();
        for level in Level::supported() {
            let mut sum = vec![0; 9 * 64];
            level.xor_many(&mut sum, &columns[..sources]);
            assert_eq!(sum, columns[sources], "{sources} sources at {level:?}");
        }
    }
}
