//! The fewest of some numbers that hold, with few looks.

/// The first of ascending `numbers` for which `holds` is true, if all after it hold too: steps that double, then halves of the last
/// step. Nothing where not even the last one holds.
///
/// # Errors
/// Those of `holds`.
pub(super) fn fewest<E>(
    numbers: &[u32],
    mut holds: impl FnMut(u32) -> Result<bool, E>,
) -> Result<Option<u32>, E> {
    let Some(last) = numbers.len().checked_sub(1) else { return Ok(None) };
    // Places from which on none is known to hold, and the first that is known to.
    let (mut from, mut step, mut at) = (0, 1, 0);
    while !holds(numbers[at])? {
        if at == last {
            return Ok(None);
        }
        from = at + 1;
        at = (at + step).min(last);
        step *= 2;
    }
    let mut until = at;
    while from < until {
        let middle = (from + until) / 2;
        match holds(numbers[middle])? {
            true => until = middle,
            false => from = middle + 1,
        }
    }
    Ok(Some(numbers[until]))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_that_holds_is_found_with_few_looks() {
        let numbers: Vec<u32> = (1..=48).map(|n| n * 2).collect();
        for first in 1..=50_u32 {
            let mut looks = Vec::new();
            let found = fewest(&numbers, |number| {
                looks.push(number);
                Ok::<bool, ()>(number >= first * 2)
            });
            assert_eq!(found, Ok((first <= 48).then_some(first * 2)));
            assert!(looks.len() <= 12, "{first}: {looks:?}");
            if first > 1 && first <= 48 {
                assert!(looks.contains(&(first * 2 - 2)), "that fewer do not hold was seen: {looks:?}");
            }
            looks.sort_unstable();
            assert!(looks.windows(2).all(|pair| pair[0] < pair[1]), "{looks:?}");
        }
        assert_eq!(fewest(&[], |_| Ok::<bool, ()>(true)), Ok(None));
        assert_eq!(fewest(&[4], |_| Err::<bool, &str>("no")), Err("no"));
    }
}
