//! How often extents are read and written, in 4 bytes each.
//!
//! An access counts half after ten minutes. Instead of making all counts smaller as time passes, a later access counts more: so
//! counts can be compared at any time, and only what is accessed is touched. When the weight of a new access has become large, all
//! counts are made smaller at once.
//!
//! A count is a float of 16 bits: the exponent of an `f32` and the first 8 bits of its mantissa. An access changes the last bit of a
//! large count with a probability, so that counts are right on average.

use std::collections::BTreeMap;

/// An access counts half after so many seconds.
pub const HALF_LIFE_S: f64 = 600.0;
/// Extents of a page.
const PAGE: u32 = 256;
/// The weight of a new access at which all counts are made smaller: 2^60, after ten hours.
const WEIGHT_MAX: f64 = (1u64 << 60) as f64;
/// Bits of an `f32` that a count has not.
const DROPPED_BITS: u32 = 15;

/// Counts of one extent, each access with the weight of its age.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Accesses {
    /// Reads.
    pub reads: f32,
    /// Writes.
    pub writes: f32,
}

#[derive(Clone, Copy, Default)]
struct Heat {
    reads: u16,
    writes: u16,
}

/// The heat of the extents of a pool in one shard: 4 bytes for an extent, in pages of 256.
pub struct HeatMap {
    /// By volume and page.
    pages: BTreeMap<(u32, u32), Box<[Heat; PAGE as usize]>>,
    /// What an access counts now.
    weight: f64,
    /// When the weight was 1, in seconds.
    origin_s: f64,
    /// The state of a generator for rounding.
    random: u32,
}

impl Default for HeatMap {
    fn default() -> HeatMap {
        HeatMap { pages: BTreeMap::new(), weight: 1.0, origin_s: 0.0, random: 0x9e37_79b9 }
    }
}

impl HeatMap {
    /// It is now so many seconds after an arbitrary moment. Accesses count as of the last such call.
    pub fn advance(&mut self, now_s: f64) {
        self.weight = ((now_s - self.origin_s) / HALF_LIFE_S).exp2();
        if self.weight > WEIGHT_MAX {
            let scale = (1.0 / self.weight) as f32;
            for heat in self.pages.values_mut().flat_map(|page| page.iter_mut()) {
                heat.reads = narrow(wide(heat.reads) * scale, 0);
                heat.writes = narrow(wide(heat.writes) * scale, 0);
            }
            self.pages.retain(|_, page| page.iter().any(|heat| heat.reads != 0 || heat.writes != 0));
            (self.origin_s, self.weight) = (now_s, 1.0);
        }
    }

    /// An extent was read.
    pub fn count_read(&mut self, volume: u32, index: u32) {
        self.add(volume, index, Accesses { reads: 1.0, writes: 0.0 });
    }

    /// An extent was written so many times.
    pub fn count_writes(&mut self, volume: u32, index: u32, times: u32) {
        self.add(volume, index, Accesses { reads: 0.0, writes: times as f32 });
    }

    /// An extent counts as accessed so often just now.
    pub fn add(&mut self, volume: u32, index: u32, accesses: Accesses) {
        let weight = self.weight as f32;
        let (for_reads, for_writes) = (self.rounding(), self.rounding());
        let page =
            self.pages.entry((volume, index / PAGE)).or_insert_with(|| Box::new([Heat::default(); 256]));
        let heat = &mut page[(index % PAGE) as usize];
        heat.reads = narrow(wide(heat.reads) + accesses.reads * weight, for_reads);
        heat.writes = narrow(wide(heat.writes) + accesses.writes * weight, for_writes);
    }

    /// How often an extent was accessed, as of now.
    pub fn of(&self, volume: u32, index: u32) -> Accesses {
        let Some(page) = self.pages.get(&(volume, index / PAGE)) else { return Accesses::default() };
        let (heat, scale) = (page[(index % PAGE) as usize], (1.0 / self.weight) as f32);
        Accesses { reads: wide(heat.reads) * scale, writes: wide(heat.writes) * scale }
    }

    /// A volume is gone.
    pub fn forget(&mut self, volume: u32) {
        self.pages.retain(|(of, _), _| *of != volume);
    }

    /// The memory that it takes, in bytes.
    pub fn memory_bytes(&self) -> usize {
        self.pages.len() * size_of::<[Heat; PAGE as usize]>()
    }

    /// A number below 2^15.
    fn rounding(&mut self) -> u32 {
        self.random ^= self.random << 13;
        self.random ^= self.random >> 17;
        self.random ^= self.random << 5;
        self.random >> (32 - DROPPED_BITS)
    }
}

fn wide(count: u16) -> f32 {
    f32::from_bits(u32::from(count) << DROPPED_BITS)
}

/// The float that is not larger than the count, or the next one, as `rounding` says.
fn narrow(count: f32, rounding: u32) -> u16 {
    ((count.to_bits() + rounding) >> DROPPED_BITS) as u16
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_are_right_on_average_and_halve_in_ten_minutes() {
        let mut heat = HeatMap::default();
        heat.advance(1e6);
        for _ in 0..20_000 {
            heat.count_read(1, 7);
            heat.count_writes(1, 7, 2);
        }
        let Accesses { reads, writes } = heat.of(1, 7);
        assert!((reads - 20_000.0).abs() < 400.0, "{reads}");
        assert!((writes - 40_000.0).abs() < 800.0, "{writes}");
        heat.advance(1e6 + HALF_LIFE_S);
        assert!((heat.of(1, 7).reads - reads / 2.0).abs() < 1.0);
        assert_eq!(heat.of(1, 8), Accesses::default());
        assert_eq!(heat.of(2, 7), Accesses::default());
    }

    #[test]
    fn a_steady_load_has_the_same_count_for_days() {
        let mut heat = HeatMap::default();
        let mut now = 5.0;
        for _ in 0..60_000 {
            heat.advance(now);
            (0..10).for_each(|_| heat.count_read(0, 300));
            now += 5.0;
        }
        heat.advance(now);
        // Two reads per second, for a half-life divided by ln 2.
        let expected = 2.0 * HALF_LIFE_S / std::f64::consts::LN_2;
        let reads = f64::from(heat.of(0, 300).reads);
        assert!((reads / expected - 1.0).abs() < 0.05, "{reads} of {expected}");
    }

    #[test]
    fn what_is_forgotten_or_has_cooled_takes_no_memory() {
        let mut heat = HeatMap::default();
        heat.count_read(0, 1);
        heat.count_read(1, 1000);
        assert_eq!(heat.memory_bytes(), 2 * 1024);
        heat.forget(1);
        assert_eq!(heat.memory_bytes(), 1024);
        heat.advance(61.0 * HALF_LIFE_S);
        heat.advance(200.0 * HALF_LIFE_S);
        assert!(heat.of(0, 1).reads < 1e-15);
    }
}
