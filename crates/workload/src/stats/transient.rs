//! How much of a run's beginning was still warming up, told afterwards.

/// How many of the first `values` to leave out of an average: the rule MSER-5 (White, Cobb and Spratt, "A
/// comparison of five steady-state truncation heuristics for simulation", Winter Simulation Conference 2000).
/// Of all beginnings of up to half of the values it takes the one after which the average's standard error is
/// least, in steps of five.
///
/// Nothing for fewer than 20 values, from which no beginning can be told.
pub fn mser5_truncation(values: &[f64]) -> Option<usize> {
    const STEP: usize = 5;
    let batches: Vec<f64> =
        values.chunks_exact(STEP).map(|five| five.iter().sum::<f64>() / STEP as f64).collect();
    if batches.len() < 4 {
        return None;
    }
    let (mut sum, mut squares, mut best) = (0.0, 0.0, (f64::INFINITY, 0));
    for (index, batch) in batches.iter().enumerate().rev() {
        // Values near the last one keep the sums of squares small and the differences of large numbers away.
        let value = batch - batches[batches.len() - 1];
        sum += value;
        squares += value * value;
        let kept = (batches.len() - index) as f64;
        let error = (squares - sum * sum / kept) / (kept * kept);
        if index <= batches.len() / 2 && error <= best.0 {
            best = (error, index);
        }
    }
    Some(best.1 * STEP)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn finds_where_the_warming_up_ends() {
        let values: Vec<f64> = (0..200).map(|n| 100.0 + 400.0 * (-f64::from(n) / 10.0).exp()).collect();
        let truncation = mser5_truncation(&values).expect("enough values");
        // After 60 values, six time constants, the excess is 400 e^-6 = 1.
        assert!((40..=100).contains(&truncation), "{truncation}");
    }

    #[test]
    fn keeps_a_steady_run_whole() {
        let values: Vec<f64> = (0..100).map(|n| 100.0 + f64::from(n % 5)).collect();
        assert_eq!(mser5_truncation(&values), Some(0));
        assert_eq!(mser5_truncation(&values[..19]), None);
    }
}
