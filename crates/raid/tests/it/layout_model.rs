//! Plans against a flat model: whatever is lost, a set driven by its plans holds exactly the bytes written.

use crate::set_model::SetModel;
use proptest::prelude::*;
use tier0_raid::layout::{Column, ColumnMask, Layout, RaidConfig, RaidLevel};
use tier0_units::SectorCount;

/// The smallest stripe unit, in sectors.
const UNIT: SectorCount = SectorCount(8);

/// A small generator of its own, so that a failure is reproduced by its seed.
struct Dice(u64);

impl Dice {
    fn new(seed: u64) -> Dice {
        Dice(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1)
    }

    fn below(&mut self, bound: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        ((self.0 >> 33) % bound as u64) as usize
    }

    fn pick(&mut self, mask: ColumnMask) -> Column {
        let nth = self.below(mask.len());
        mask.iter().nth(nth).expect("within the mask")
    }
}

/// The set and the flat bytes it must hold.
struct Pair {
    set: SetModel,
    flat: Vec<u8>,
    dice: Dice,
}

impl Pair {
    fn new(layout: Layout, rows: usize, seed: u64) -> Pair {
        let set = SetModel::new(layout, rows);
        let flat = vec![0; set.sectors()];
        Pair { set, flat, dice: Dice::new(seed) }
    }

    /// Writes random bytes to a random range: often within a unit, often around a row, at times anything.
    fn write(&mut self) {
        let row = self.set.layout.row_sectors().0 as usize;
        let longest = [UNIT.0 as usize, 2 * row, self.flat.len()][self.dice.below(3)];
        let length = 1 + self.dice.below(longest.min(self.flat.len()));
        let at = self.dice.below(self.flat.len() - length + 1);
        let data: Vec<u8> = (0..length).map(|_| self.dice.below(256) as u8).collect();
        self.set.write(at as u64, &data);
        self.flat[at..at + length].copy_from_slice(&data);
    }

    fn read(&mut self) {
        let length = 1 + self.dice.below(self.flat.len());
        let at = self.dice.below(self.flat.len() - length + 1);
        let read = self.set.read(at as u64, length, |mask| self.dice.pick(mask));
        assert!(read == self.flat[at..at + length], "{:?} without {:?}", self.set.layout, self.set.lost);
    }

    fn read_all(&mut self) {
        let read = self.set.read(0, self.flat.len(), |mask| self.dice.pick(mask));
        assert!(read == self.flat, "{:?} without {:?}", self.set.layout, self.set.lost);
    }

    /// Writes healthy, loses `lost`, reads and writes on, rebuilds one by one, and finds all as it was written.
    fn live_through(&mut self, lost: ColumnMask, operations: usize) {
        for _ in 0..3 {
            self.write();
        }
        self.set.lose(lost);
        self.read_all();
        for _ in 0..operations {
            self.write();
            self.read();
        }
        self.read_all();
        while !self.set.lost.is_empty() {
            let column = self.dice.pick(self.set.lost);
            self.set.rebuild(column);
            self.write();
            self.read_all();
        }
        self.set.check_redundancy();
    }
}

fn layout(level: RaidLevel, set_size: usize, raid50_groups: usize) -> Option<Layout> {
    Layout::new(&RaidConfig { raid50_groups, ..RaidConfig::new(level, set_size, UNIT) }).ok()
}

/// Every survivable combination of lost columns, for every width from 2 to 12.
fn every_failure(level: RaidLevel, raid50_groups: usize) {
    let mut combinations = 0;
    for layout in (2..=12).filter_map(|set_size| layout(level, set_size, raid50_groups)) {
        for lost in (0..1 << layout.columns()).map(ColumnMask::from_bits) {
            if layout.survives(lost) {
                // Rows enough to meet the rotation's wrap on either side.
                let mut pair = Pair::new(layout, 3, lost.bits() + 1);
                pair.live_through(lost, 3);
                combinations += 1;
            }
        }
    }
    assert!(combinations > 0, "{level} in {raid50_groups} groups: no shape exists");
}

#[test]
fn raid0_has_no_failure_to_survive() {
    every_failure(RaidLevel::Raid0, 2);
}

#[test]
fn raid1_lives_through_every_failure() {
    every_failure(RaidLevel::Raid1, 2);
}

#[test]
fn raid10_lives_through_every_failure() {
    every_failure(RaidLevel::Raid10, 2);
}

#[test]
fn raid5_lives_through_every_failure() {
    every_failure(RaidLevel::Raid5, 2);
}

#[test]
fn raid50_lives_through_every_failure() {
    for groups in 2..=4 {
        every_failure(RaidLevel::Raid50, groups);
    }
}

#[test]
fn raid6_lives_through_every_failure() {
    every_failure(RaidLevel::Raid6, 2);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    /// Longer lives of parity sets over all phases of the rotation, with failures drawn at random.
    #[test]
    fn long_lives_of_parity_sets(
        level in 0_usize..3, set_size in 3_usize..=12, seed: u64, rows in 1_usize..15, a in 0_u8..12, b in 0_u8..12,
    ) {
        let level = [RaidLevel::Raid5, RaidLevel::Raid50, RaidLevel::Raid6][level];
        let Some(layout) = layout(level, set_size, 2) else { return Ok(()) };
        let lost: ColumnMask = [a, b].into_iter().map(Column).filter(|c| layout.all_columns().contains(*c)).collect();
        let lost = if layout.survives(lost) { lost } else { ColumnMask::only(lost.first().expect("one")) };
        Pair::new(layout, rows, seed).live_through(lost, 20);
    }
}
