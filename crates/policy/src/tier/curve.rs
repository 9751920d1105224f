//! What share of the I/O each size of flash would serve.

/// Levels of value: half of a power of two each.
pub const LEVELS: usize = 64;
/// The level of the value 1.
const LEVEL_OF_ONE: f64 = 8.0;

/// How many extents have which value.
#[derive(Clone, Debug, PartialEq)]
pub struct Histogram {
    /// By level: how many, and their values together.
    levels: [(u64, f64); LEVELS],
}

impl Default for Histogram {
    fn default() -> Histogram {
        Histogram { levels: [(0, 0.0); LEVELS] }
    }
}

/// A size of flash, and what it would serve.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct CurvePoint {
    /// Extents.
    pub extents: u64,
    /// The share of the slow group's drive I/O, from 0 to 1.
    pub share: f64,
}

impl Histogram {
    /// An extent has this value.
    pub fn add(&mut self, value: f64) {
        let level = if value > 0.0 { (2.0 * value.log2() + LEVEL_OF_ONE).max(0.0) as usize } else { 0 };
        let (count, sum) = &mut self.levels[level.min(LEVELS - 1)];
        *count += 1;
        *sum += value;
    }

    /// Adds those of another one.
    pub fn merge(&mut self, other: &Histogram) {
        for ((count, sum), (more, value)) in self.levels.iter_mut().zip(&other.levels) {
            *count += more;
            *sum += value;
        }
    }

    /// All extents.
    pub fn extents(&self) -> u64 {
        self.levels.iter().map(|(count, _)| count).sum()
    }

    /// The values of all extents together.
    pub fn value(&self) -> f64 {
        self.levels.iter().map(|(_, sum)| sum).sum()
    }
}

/// What flash would serve if it had the hottest extents, size by size, up to all that have any value. Within a level all extents
/// count alike.
pub fn curve(all: &Histogram) -> Vec<CurvePoint> {
    let total = all.value();
    let (mut extents, mut value) = (0, 0.0);
    let mut points = Vec::new();
    for (count, sum) in all.levels.iter().rev().filter(|(_, sum)| *sum > 0.0) {
        extents += count;
        value += sum;
        points.push(CurvePoint { extents, share: value / total });
    }
    points
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_hottest_come_first() {
        let mut all = Histogram::default();
        (0..10).for_each(|_| all.add(90.0));
        let mut others = Histogram::default();
        (0..100).for_each(|_| others.add(1.0));
        (0..1000).for_each(|_| others.add(0.0));
        all.merge(&others);
        assert_eq!((all.extents(), all.value()), (1110, 1000.0));
        let points = curve(&all);
        assert_eq!(points[0], CurvePoint { extents: 10, share: 0.9 });
        assert_eq!(points[1], CurvePoint { extents: 110, share: 1.0 });
        assert_eq!(points.len(), 2, "what is never accessed needs no flash");
        assert_eq!(curve(&Histogram::default()), []);
    }
}
