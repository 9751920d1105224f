//! A hot part of a space and a cold one.

use std::ops::Range;

use tier0_world::Random;

use super::{Share, below};

/// Positions 0 to n - 1: a share of the draws goes to the first `hot` positions, the rest to the others, each
/// uniformly.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct HotCold {
    accesses: Share,
    hot: u64,
    cold: u64,
}

impl HotCold {
    /// `access_percent` of the draws go to the first `space_percent` of `space` positions. The hot part has
    /// at least one position and, where there are two, so has the cold one.
    pub fn new(space: u64, access_percent: f64, space_percent: f64) -> HotCold {
        assert!(space > 0, "there is no hot part of nothing");
        let hot = (space as f64 * space_percent / 100.0).round() as u64;
        let hot = hot.clamp(1, (space - 1).max(1));
        let accesses = if space == 1 { Share::Always } else { Share::percent(access_percent) };
        HotCold { accesses, hot, cold: space - hot }
    }

    /// Its two parts as ranges of positions, that whose positions are drawn more often first.
    pub(super) fn likelier_first(self) -> [Range<u64>; 2] {
        let (hot, cold) = (0..self.hot, self.hot..self.hot + self.cold);
        let hot_share = self.accesses.fraction();
        let density = |share: f64, positions: u64| share / positions.max(1) as f64;
        match density(hot_share, self.hot) >= density(1.0 - hot_share, self.cold) {
            true => [hot, cold],
            false => [cold, hot],
        }
    }

    /// A position.
    #[inline]
    pub fn draw(self, random: &mut Random) -> u64 {
        if self.accesses.draw(random) { below(random, self.hot) } else { self.hot + below(random, self.cold) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keeps_its_shares() {
        let law = HotCold::new(1000, 80.0, 20.0);
        let mut random = Random::new(8, 0);
        let draws: Vec<u64> = (0..100_000).map(|_| law.draw(&mut random)).collect();
        let hot = draws.iter().filter(|&&position| position < 200).count();
        // Five standard deviations of a binomial(100,000, 0.8) are 632.
        assert!(hot.abs_diff(80_000) < 632, "{hot}");
        assert!(draws.contains(&999) && draws.iter().all(|&position| position < 1000));
    }

    #[test]
    fn tiny_spaces_have_both_parts_or_one_position() {
        let mut random = Random::new(8, 1);
        let mut hits = [0u32; 2];
        (0..1000).for_each(|_| hits[HotCold::new(2, 50.0, 0.001).draw(&mut random) as usize] += 1);
        assert!(hits.iter().all(|&c| c > 400), "{hits:?}");
        assert_eq!(HotCold::new(1, 0.0, 50.0).draw(&mut random), 0);
    }
}
