//! What a straight line through published figures says of a figure: what a prediction has to be better than.

use serde::Deserialize;

/// A line through one or two published figures, read off at the place of the figure that is predicted.
///
/// Through one it goes through the origin too: twice the drives, twice the rate.
#[derive(Clone, Debug, Deserialize, PartialEq)]
#[serde(deny_unknown_fields)]
pub struct StraightLine {
    /// What the places count, such as `percent of the array filled`.
    pub over: String,
    /// Places and published figures.
    pub through: Vec<[f64; 2]>,
    /// The place of the predicted figure.
    pub at: f64,
}

impl StraightLine {
    /// What the line says there; nothing unless it has one or two figures at different places.
    pub fn value(&self) -> Option<f64> {
        let ([x1, y1], [x2, y2]) = match self.through[..] {
            [one] => ([0.0, 0.0], one),
            [one, two] => (one, two),
            _ => return None,
        };
        let value = y1 + (self.at - x1) * (y2 - y1) / (x2 - x1);
        value.is_finite().then_some(value)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_figures_make_a_line_and_one_a_proportion() {
        let line = |through: Vec<[f64; 2]>, at| StraightLine { over: "drives".into(), through, at }.value();
        assert_eq!(line(vec![[40.0, 100.0], [80.0, 60.0]], 60.0), Some(80.0));
        assert_eq!(line(vec![[6.0, 7.0]], 12.0), Some(14.0));
        assert_eq!(line(vec![[6.0, 7.0], [6.0, 8.0]], 12.0), None);
        assert_eq!(line(vec![], 12.0), None);
    }
}
