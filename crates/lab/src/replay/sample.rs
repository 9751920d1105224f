//! The miss ratio of a cache from a part of the blocks: those whose hash is small, in a cache that is smaller by as much
//! (Waldspurger, Park, Garthwaite, Ahmad: Efficient MRC construction with SHARDS, 2015; of other policies than LRU, Waldspurger,
//! Saemundsson, Ahmad, Park: Cache modeling and optimization using miniature simulations, 2017).
//!
//! The sample is cut into groups by the same hash. Each is a sample of its own, so how far their results lie apart tells how
//! far their mean may be off.

use serde::Serialize;

use super::Keeper;
use super::cache::misses;
use super::requests::{Requests, Touch};

/// Groups of a sample.
const GROUPS: usize = 8;
/// Blocks that a group's cache has at least: a smaller one behaves otherwise than a large one.
const GROUP_BLOCKS_MIN: usize = 1024;
/// Caches of up to so many blocks are measured without a sample.
pub const EXACT_BLOCKS: usize = GROUPS * GROUP_BLOCKS_MIN;
/// The 97.5th percentile of Student's t with one degree of freedom less than there are groups.
const STUDENT_975: f64 = 2.365;

/// A miss ratio, and how far it may be off.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Sampled {
    /// The part of the touched blocks that was missing.
    pub miss_ratio: f64,
    /// Half the width of its 95 % interval; 0 where all blocks were looked at.
    pub half_width: f64,
    /// The part of the blocks that was looked at.
    pub sampled_share: f64,
}

/// The miss ratio of a cache of `blocks`: exact where it is small, else from a sample.
pub(super) fn miss_ratio(requests: &Requests, keeper: Keeper, blocks: usize) -> Sampled {
    let touches = requests.touches();
    let all = touches.iter().filter(|touch| !touch.forgets()).count().max(1) as f64;
    if blocks <= EXACT_BLOCKS {
        let missed = count_misses(touches, keeper, blocks) as f64;
        return Sampled { miss_ratio: missed / all, half_width: 0.0, sampled_share: 1.0 };
    }
    let share = EXACT_BLOCKS as f64 / blocks as f64;
    let groups = groups(touches, share);
    // What a group's touches are more or fewer than its share, are those of a few hot blocks, which are hits in any cache.
    let expected = all * share / GROUPS as f64;
    let ratios: Vec<f64> =
        groups.iter().map(|group| count_misses(group, keeper, GROUP_BLOCKS_MIN) as f64 / expected).collect();
    let mean = ratios.iter().sum::<f64>() / GROUPS as f64;
    let squares: f64 = ratios.iter().map(|ratio| (ratio - mean).powi(2)).sum();
    let deviation = (squares / (GROUPS - 1) as f64).sqrt();
    let half_width = STUDENT_975 * deviation / (GROUPS as f64).sqrt();
    Sampled { miss_ratio: mean.min(1.0), half_width, sampled_share: share }
}

fn count_misses(touches: &[Touch], keeper: Keeper, blocks: usize) -> u64 {
    let mut missed = 0;
    misses(touches, keeper, blocks, |_, answer| missed += u64::from(!answer.is_hit));
    missed
}

/// The touches of a share of the blocks, in groups.
fn groups(touches: &[Touch], share: f64) -> Vec<Vec<Touch>> {
    let mut groups = vec![Vec::new(); GROUPS];
    let limit = (share * f64::from(u32::MAX)) as u32;
    for touch in touches {
        let hash = hash(touch.block());
        if hash <= limit {
            let group = u64::from(hash) * GROUPS as u64 / (u64::from(limit) + 1);
            // What it was asked for with is seldom in the sample.
            groups[group as usize].push(touch.alone());
        }
    }
    groups
}

/// Another hash than the policies'.
fn hash(block: u32) -> u32 {
    let mut mixed = (block ^ (block >> 16)).wrapping_mul(0x85eb_ca6b);
    mixed = (mixed ^ (mixed >> 13)).wrapping_mul(0xc2b2_ae35);
    mixed ^ (mixed >> 16)
}

#[cfg(test)]
mod tests {
    use tier0_policy::PolicyKind;

    use super::super::tests::of_blocks;
    use super::*;

    #[test]
    fn a_sample_tells_the_ratio_and_how_far_it_is_off() {
        let mut state = 3_u64;
        let skewed = std::iter::repeat_with(|| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            let one = (state >> 40) as f64 / f64::from(1 << 24);
            (one.powi(2) * 400_000.0) as u64
        });
        let requests = of_blocks(skewed.take(1_500_000));
        for keeper in [Keeper::Policy(PolicyKind::Lru), Keeper::Policy(PolicyKind::Adaptive), Keeper::Optimum]
        {
            let exact = count_misses(requests.touches(), keeper, 40_000) as f64 / 1_500_000.0;
            let sampled = miss_ratio(&requests, keeper, 40_000);
            assert!((0.2..0.21).contains(&sampled.sampled_share));
            let off = (sampled.miss_ratio - exact).abs();
            assert!(off < 0.02 && off < 2.0 * sampled.half_width, "{keeper:?}: {exact} and {sampled:?}");
        }
    }
}
