//! Figures of several rounds: their median and how far they lie apart.

use std::fmt;

/// The figures of all rounds, sorted.
#[derive(Clone, Debug)]
pub(crate) struct Spread(Vec<f64>);

impl Spread {
    /// At least one figure.
    pub(crate) fn of(figures: impl IntoIterator<Item = f64>) -> Spread {
        let mut figures: Vec<f64> = figures.into_iter().collect();
        assert!(!figures.is_empty(), "a spread has a figure");
        figures.sort_by(f64::total_cmp);
        Spread(figures)
    }

    /// The middle one, or the mean of the two in the middle.
    pub(crate) fn median(&self) -> f64 {
        let half = self.0.len() / 2;
        if self.0.len() % 2 == 1 { self.0[half] } else { (self.0[half - 1] + self.0[half]) / 2.0 }
    }

    /// Least and greatest.
    pub(crate) fn range(&self) -> (f64, f64) {
        (self.0[0], self.0[self.0.len() - 1])
    }

    /// The figures between which the middle half lies, at least.
    pub(crate) fn middle_half(&self) -> (f64, f64) {
        let quarter = (self.0.len() - 1) / 4;
        (self.0[quarter], self.0[self.0.len() - 1 - quarter])
    }
}

impl fmt::Display for Spread {
    /// `median (least to greatest)` with the formatter's precision.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let precision = f.precision().unwrap_or(0);
        let (least, greatest) = self.range();
        write!(f, "{:.precision$} ({least:.precision$} to {greatest:.precision$})", self.median())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_median_is_in_the_middle() {
        assert_eq!(Spread::of([3.0, 1.0, 2.0]).median(), 2.0);
        assert_eq!(Spread::of([4.0, 1.0, 2.0, 3.0]).median(), 2.5);
        assert_eq!(Spread::of([3.0, 1.0, 5.0, 4.0, 2.0]).middle_half(), (2.0, 4.0));
        assert_eq!(Spread::of([1.0]).middle_half(), (1.0, 1.0));
        assert_eq!(format!("{:.1}", Spread::of([3.0, 1.0, 2.0])), "2.0 (1.0 to 3.0)");
    }
}
