//! Round numbers for axes.

/// Ticks from 0 to the first at or above `most`, at about `count` steps of 1, 2, 2.5 or 5 times a power of ten.
pub(super) fn ticks(most: f64, count: usize) -> Vec<f64> {
    let rough = most.max(1e-9) / count.max(1) as f64;
    let power = 10f64.powf(rough.log10().floor());
    let steps = [1.0, 2.0, 2.5, 5.0, 10.0];
    let step = steps.iter().map(|s| s * power).find(|step| *step >= rough * 0.999).unwrap_or(10.0 * power);
    let last = (most / step - 1e-9).ceil().max(1.0) as usize;
    (0..=last).map(|n| n as f64 * step).collect()
}

/// Powers of ten from the last at or below `least` to the first at or above `most`, at least two.
pub(super) fn powers(least: f64, most: f64) -> Vec<f64> {
    let first = least.max(1e-9).log10().floor() as i32;
    let last = (most.max(1e-9).log10().ceil() as i32).max(first + 1);
    (first..=last).map(|power| 10f64.powi(power)).collect()
}

/// A tick's text: thousands as k, millions as M.
pub(super) fn label(value: f64) -> String {
    let text = |number: f64| {
        let text = format!("{number:.2}");
        text.trim_end_matches('0').trim_end_matches('.').to_owned()
    };
    match value.abs() {
        1e6.. => format!("{}M", text(value / 1e6)),
        1e3.. => format!("{}k", text(value / 1e3)),
        _ => text(value),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ticks_are_round_and_reach_the_end() {
        assert_eq!(ticks(9_726.0, 5), [0.0, 2000.0, 4000.0, 6000.0, 8000.0, 10_000.0]);
        assert_eq!(ticks(25.0, 5), [0.0, 5.0, 10.0, 15.0, 20.0, 25.0]);
        assert_eq!(ticks(0.7, 4).last(), Some(&0.8));
        assert!(ticks(0.0, 5).len() >= 2);
        assert_eq!(powers(275.0, 2750.0), [100.0, 1000.0, 10_000.0]);
        assert_eq!(powers(100.0, 100.0), [100.0, 1000.0]);
    }

    #[test]
    fn labels_are_short() {
        assert_eq!([0.0, 2500.0, 12.5, 10_000.0, 1e6].map(label), ["0", "2.5k", "12.5", "10k", "1M"]);
    }
}
