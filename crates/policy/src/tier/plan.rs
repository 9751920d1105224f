//! Which extents should move now.

use super::cost::MoveCosts;

/// A value must be so many times what the move costs.
const GAIN: f64 = 2.0;
/// An extent that takes another one's place must be worth so many times as much.
const MARGIN: f64 = 1.25;
/// The difference of their values must be so many standard deviations of what is counted.
const DEVIATIONS: f64 = 3.0;

/// An extent that may move, and its value ([`super`]).
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Candidate<K> {
    /// Which.
    pub key: K,
    /// Drive I/Os that its accesses have cost, or would have cost, the slow group lately.
    pub value: f64,
}

/// Room in the fast group, in extents.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Room {
    /// Slots that are free.
    pub free: u64,
    /// Slots that are to be free at the end.
    pub headroom: u64,
}

/// What should move.
#[derive(Clone, Debug, PartialEq)]
pub struct Choice<K> {
    /// To the fast group, the hottest first.
    pub promotions: Vec<Candidate<K>>,
    /// To the slow group, the coldest first.
    pub demotions: Vec<Candidate<K>>,
    /// The value from which on the next extent would move to the fast group.
    pub cutoff: f64,
}

/// Chooses from `hot`, extents of the slow group, the hottest first, and `cold`, extents of the fast group, the coldest first; at
/// most so many promotions.
pub fn choose<K: Copy>(
    hot: &[Candidate<K>],
    cold: &[Candidate<K>],
    room: Room,
    costs: MoveCosts,
    most: usize,
) -> Choice<K> {
    let (mut promotions, mut victims) = (Vec::new(), 0);
    let mut spare = room.free.saturating_sub(room.headroom);
    for candidate in hot.iter().take(most) {
        if spare > 0 {
            if candidate.value < GAIN * costs.promotion {
                break;
            }
            spare -= 1;
        } else {
            let Some(victim) = cold.get(victims) else { break };
            if candidate.value < worth_swapping(victim.value, costs) {
                break;
            }
            victims += 1;
        }
        promotions.push(*candidate);
    }
    let cutoff = match (spare, cold.get(victims)) {
        (0, Some(victim)) => worth_swapping(victim.value, costs),
        (0, None) => f64::INFINITY,
        _ => GAIN * costs.promotion,
    };
    let lacking = room.headroom.saturating_sub(room.free) as usize;
    let demotions = cold.iter().take(victims + lacking).copied().collect();
    Choice { promotions, demotions, cutoff }
}

/// The least value of an extent that may take the place of one of this value.
fn worth_swapping(victim: f64, costs: MoveCosts) -> f64 {
    // The variance of a count whose parts have the weights of their age is half of its mean. With x for the value in
    // question, x - victim = DEVIATIONS * sqrt((x + victim) / 2).
    let square = DEVIATIONS * DEVIATIONS / 2.0;
    let noise = square / 2.0 + (square * square / 4.0 + 2.0 * square * victim).sqrt();
    (victim + noise).max(MARGIN * victim).max(victim + GAIN * (costs.promotion + costs.demotion))
}

#[cfg(test)]
mod tests {
    use super::*;

    const COSTS: MoveCosts = MoveCosts { promotion: 9.0, demotion: 23.0 };

    fn all(values: &[f64]) -> Vec<Candidate<u32>> {
        (0..).zip(values).map(|(key, value)| Candidate { key, value: *value }).collect()
    }

    fn keys(all: &[Candidate<u32>]) -> Vec<u32> {
        all.iter().map(|one| one.key).collect()
    }

    #[test]
    fn free_slots_go_to_what_is_worth_the_move() {
        let room = Room { free: 10, headroom: 7 };
        let choice = choose(&all(&[100.0, 50.0, 17.9, 5.0]), &[], room, COSTS, 100);
        assert_eq!(keys(&choice.promotions), [0, 1]);
        assert_eq!((choice.demotions.len(), choice.cutoff), (0, 18.0));
        let choice = choose(&all(&[100.0; 9]), &all(&[3.0]), room, COSTS, 100);
        assert_eq!(keys(&choice.promotions), [0, 1, 2, 3], "the last one replaces the cold one");
        assert_eq!(keys(&choice.demotions), [0]);
    }

    #[test]
    fn equally_hot_extents_do_not_change_places() {
        let full = Room { free: 0, headroom: 0 };
        let choice = choose(&all(&[1100.0, 1040.0]), &all(&[980.0, 990.0]), full, COSTS, 100);
        assert_eq!(choice.promotions, []);
        assert!(choice.cutoff > 1200.0, "{}", choice.cutoff);
        let choice = choose(&all(&[1300.0, 1040.0]), &all(&[980.0, 990.0]), full, COSTS, 100);
        assert_eq!((keys(&choice.promotions), keys(&choice.demotions)), (vec![0], vec![0]));
    }

    #[test]
    fn a_swap_pays_for_both_moves() {
        let full = Room { free: 0, headroom: 0 };
        assert_eq!(choose(&all(&[63.0]), &all(&[0.0]), full, COSTS, 100).promotions, []);
        assert_eq!(choose(&all(&[65.0]), &all(&[0.0]), full, COSTS, 100).promotions.len(), 1);
    }

    #[test]
    fn headroom_is_made_where_it_lacks() {
        let choice = choose(&[], &all(&[1.0, 2.0, 3.0]), Room { free: 1, headroom: 3 }, COSTS, 100);
        assert_eq!(keys(&choice.demotions), [0, 1]);
    }
}
