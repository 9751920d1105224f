//! Belady's optimum: what is asked for again last, or never, gives way (A study of replacement algorithms for a
//! virtual-storage computer, 1966). It may be the block that just came, which then never comes in.

use std::collections::BinaryHeap;

use super::Answer;
use super::requests::Touch;

/// Never again.
const NEVER: u32 = u32::MAX;

/// As a cache of `blocks` would serve touches that knows all of them beforehand.
pub(super) fn misses(touches: &[Touch], blocks: usize, mut told: impl FnMut(Touch, Answer)) {
    let next = next_uses(touches);
    let distinct = touches.iter().map(|touch| touch.block() as usize + 1).max().unwrap_or(0);
    // When each block that is there is touched next; in the heap the newest entry of each counts.
    let mut there: Vec<Option<u32>> = vec![None; distinct];
    let mut count = 0;
    let mut last_used: BinaryHeap<(u32, u32)> = BinaryHeap::new();
    for (touch, next) in touches.iter().zip(next) {
        let block = touch.block();
        if touch.forgets() {
            count -= usize::from(there[block as usize].take().is_some());
            continue;
        }
        let is_hit = there[block as usize].take().is_some();
        count -= usize::from(is_hit);
        // What is never asked for again is worth no place.
        if next != NEVER {
            there[block as usize] = Some(next);
            last_used.push((next, block));
            count += 1;
        }
        while count > blocks {
            let (when, victim) = last_used.pop().expect("what is there has an entry");
            if there[victim as usize] == Some(when) {
                there[victim as usize] = None;
                count -= 1;
            }
        }
        let is_kept = there[block as usize].is_some();
        told(*touch, Answer { is_hit, is_written: is_kept && (!is_hit || touch.is_write()) });
    }
}

/// For each touch, when its block is next touched other than to be forgotten.
fn next_uses(touches: &[Touch]) -> Vec<u32> {
    assert!(touches.len() < NEVER as usize, "a trace has fewer touches than 2^32 - 1");
    let distinct = touches.iter().map(|touch| touch.block() as usize + 1).max().unwrap_or(0);
    let mut next_of = vec![NEVER; distinct];
    let mut next = vec![NEVER; touches.len()];
    for (at, touch) in touches.iter().enumerate().rev() {
        let block = touch.block() as usize;
        next[at] = next_of[block];
        next_of[block] = if touch.forgets() { NEVER } else { at as u32 };
    }
    next
}

#[cfg(test)]
mod tests {
    use super::super::tests::of_blocks;
    use super::*;

    fn hits(blocks: &[u64], size: usize) -> Vec<bool> {
        let mut hits = Vec::new();
        misses(of_blocks(blocks.iter().copied()).touches(), size, |_, answer| hits.push(answer.is_hit));
        hits
    }

    #[test]
    fn what_is_asked_for_again_last_gives_way() {
        assert_eq!(hits(&[1, 2, 3, 1, 2, 3], 2), [false, false, false, true, true, false]);
        // A loop of n + 1 blocks through n - 1 frames that keep what they have.
        let looped: Vec<u64> = (0..1000).map(|n| n % 101).collect();
        let missed = hits(&looped, 100).iter().filter(|is_hit| !**is_hit).count();
        assert!((101..115).contains(&missed), "{missed}");
    }

    /// What went past the cache counted as written into it: each block of a scan.
    #[test]
    fn what_never_comes_in_is_not_written() {
        let written = |blocks: &[u64], size: usize| {
            let mut written = Vec::new();
            misses(of_blocks(blocks.iter().copied()).touches(), size, |_, answer| {
                written.push(answer.is_written)
            });
            written.into_iter().filter(|is_written| *is_written).count()
        };
        assert_eq!(written(&[1, 2, 3, 4, 5], 2), 0, "nothing is asked for again");
        assert_eq!(written(&[1, 2, 3, 4, 5, 1], 2), 1);
        // 3 is asked for after both others, and stays outside.
        assert_eq!(written(&[1, 2, 3, 1, 2, 3], 2), 2);
        let looped: Vec<u64> = (0..1000).map(|n| n % 101).collect();
        let count = written(&looped, 50);
        assert!((50..600).contains(&count), "{count}");
    }

    /// All ways to choose, on short sequences.
    #[test]
    fn no_choice_misses_less() {
        fn best(blocks: &[u64], there: &[u64], size: usize) -> usize {
            let Some((first, rest)) = blocks.split_first() else { return 0 };
            if there.contains(first) {
                return best(rest, there, size);
            }
            let mut with = there.to_vec();
            with.push(*first);
            if with.len() <= size {
                return 1 + best(rest, &with, size);
            }
            let without = |out: &u64| {
                let kept: Vec<u64> = with.iter().copied().filter(|block| block != out).collect();
                best(rest, &kept, size)
            };
            1 + with.iter().map(without).min().expect("one gives way")
        }
        let mut state = 7_u64;
        for _ in 0..60 {
            let blocks: Vec<u64> = std::iter::repeat_with(|| {
                state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
                (state >> 60) % 5
            })
            .take(12)
            .collect();
            for size in 1..4 {
                let missed = hits(&blocks, size).iter().filter(|is_hit| !**is_hit).count();
                assert_eq!(missed, best(&blocks, &[], size), "{blocks:?} in {size}");
            }
        }
    }
}
