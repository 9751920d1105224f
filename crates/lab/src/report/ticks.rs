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

/// A tick's text: thousands as k.
pub(super) fn label(value: f64) -> String {
    let text = |number: f64| {
        let text = format!("{number:.2}");
        text.trim_end_matches('0').trim_end_matches('.').to_owned()
    };
    if value.abs() >= 1000.0 { format!("{}k", text(value / 1000.0)) } else { text(value) }
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
    }

    #[test]
    fn labels_are_short() {
        assert_eq!([label(0.0), label(2500.0), label(12.5), label(10_000.0)], ["0", "2.5k", "12.5", "10k"]);
    }
}
