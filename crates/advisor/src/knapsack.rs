//! The objects that fit on the flash and are worth most: a knapsack, solved exactly by dynamic programming over a grid of space.
//!
//! Sizes are rounded up to a ten-thousandth of the space, so the choice always fits; it is optimal but for that rounding.

/// Steps of the grid.
const STEPS: usize = 10_000;
/// The most objects of the exact method, whose table has a bit for each and each step: 25 MB.
const EXACT_MAX: usize = 20_000;

/// An object.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Item {
    /// Bytes that it takes.
    pub bytes: f64,
    /// What it is worth on flash.
    pub value: f64,
}

/// Which items to take.
pub fn choose(items: &[Item], space: f64) -> Vec<bool> {
    let mut chosen = vec![false; items.len()];
    if space <= 0.0 {
        return chosen;
    }
    let fits = |item: &Item| item.value > 0.0 && item.bytes >= 0.0 && item.bytes <= space;
    let mut order: Vec<usize> = (0..items.len()).filter(|at| fits(&items[*at])).collect();
    // With more objects than the table holds, those worth least are left out.
    order.sort_by(|a, b| items[*b].value.total_cmp(&items[*a].value));
    order.truncate(EXACT_MAX);
    // A quotient that should be whole may be off by its rounding.
    let steps =
        |item: &Item| ((item.bytes / space * STEPS as f64 - 1e-6).ceil().max(0.0) as usize).min(STEPS);
    let mut best = vec![0.0_f64; STEPS + 1];
    let words = STEPS / 64 + 1;
    let mut taken = vec![0_u64; words * order.len()];
    for (row, at) in order.iter().enumerate() {
        let (weight, value) = (steps(&items[*at]), items[*at].value);
        for room in (weight..=STEPS).rev() {
            let with = best[room - weight] + value;
            if with > best[room] {
                best[room] = with;
                taken[row * words + room / 64] |= 1 << (room % 64);
            }
        }
    }
    let mut room = STEPS;
    for (row, at) in order.iter().enumerate().rev() {
        if taken[row * words + room / 64] >> (room % 64) & 1 == 1 {
            chosen[*at] = true;
            room -= steps(&items[*at]);
        }
    }
    chosen
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn worth(items: &[Item], chosen: &[bool]) -> (f64, f64) {
        let of = items.iter().zip(chosen).filter(|(_, chosen)| **chosen);
        of.fold((0.0, 0.0), |(bytes, value), (item, _)| (bytes + item.bytes, value + item.value))
    }

    proptest! {
        /// Against all subsets. Whole steps of the grid, so that rounding plays no part.
        #[test]
        fn no_subset_that_fits_is_worth_more(list in proptest::collection::vec((1_u32..60, 0_u32..50), 1..10)) {
            let items: Vec<Item> = list
                .iter()
                .map(|(bytes, value)| Item { bytes: f64::from(*bytes) * 100.0, value: f64::from(*value) })
                .collect();
            let (bytes, value) = worth(&items, &choose(&items, 10_000.0));
            prop_assert!(bytes <= 10_000.0);
            for subset in 0_u32..1 << items.len() {
                let chosen: Vec<bool> = (0..items.len()).map(|at| subset >> at & 1 == 1).collect();
                let (bytes, other) = worth(&items, &chosen);
                prop_assert!(bytes > 10_000.0 || other <= value, "{chosen:?} is worth {other}, the choice {value}");
            }
        }
    }

    #[test]
    fn it_is_worth_more_than_by_size_or_by_gain_for_each_byte() {
        let item = |bytes, value| Item { bytes, value };
        // By value for each byte the first comes first, and then the second does not fit.
        let items = [item(60.0, 61.0), item(50.0, 50.0), item(50.0, 50.0)];
        assert_eq!(choose(&items, 100.0), [false, true, true]);
        assert_eq!(choose(&items, 0.0), [false; 3]);
        assert_eq!(choose(&[item(200.0, 9.0)], 100.0), [false]);
    }
}
