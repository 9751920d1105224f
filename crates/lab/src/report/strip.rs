//! A value in its range as a small inline SVG: an error in its tolerance, a fitted parameter between its bounds.

const WIDTH: f64 = 120.0;
const HEIGHT: f64 = 16.0;

/// An error in its tolerance: the band is the tolerance, the middle line the published figure. `distance` is signed,
/// with 1 at the edge; what lies beyond twice the tolerance is drawn at the end.
pub(super) fn error(distance: f64) -> String {
    let x = |d: f64| WIDTH / 2.0 + d.clamp(-2.0, 2.0) / 2.0 * (WIDTH / 2.0 - 6.0);
    let middle = HEIGHT / 2.0;
    let (low, high, at) = (x(-1.0), x(1.0), x(distance));
    let class = if distance.abs() <= 1.0 { "good" } else { "bad" };
    format!(
        "<svg class=\"strip\" viewBox=\"0 0 {WIDTH} {HEIGHT}\" aria-hidden=\"true\">\
         <rect class=\"band\" x=\"{low:.1}\" y=\"3\" width=\"{:.1}\" height=\"10\" rx=\"3\"/>\
         <line class=\"axis\" x1=\"{c:.1}\" y1=\"1\" x2=\"{c:.1}\" y2=\"15\"/>\
         <circle class=\"{class}\" cx=\"{at:.1}\" cy=\"{middle}\" r=\"4\"/></svg>",
        high - low,
        c = x(0.0),
    )
}

/// A value between bounds, 0 to 1, with a tick where it began.
pub(super) fn range(value: f64, start: f64) -> String {
    let x = |share: f64| 6.0 + share.clamp(0.0, 1.0) * (WIDTH - 12.0);
    let middle = HEIGHT / 2.0;
    format!(
        "<svg class=\"strip\" viewBox=\"0 0 {WIDTH} {HEIGHT}\" aria-hidden=\"true\">\
         <rect class=\"band\" x=\"6\" y=\"6\" width=\"{:.1}\" height=\"4\" rx=\"2\"/>\
         <line class=\"axis\" x1=\"{s:.1}\" y1=\"2\" x2=\"{s:.1}\" y2=\"14\"/>\
         <circle class=\"value\" cx=\"{:.1}\" cy=\"{middle}\" r=\"4.5\"/></svg>",
        WIDTH - 12.0,
        x(value),
        s = x(start),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_outside_looks_bad_and_stays_in_the_picture() {
        assert!(error(0.9).contains("class=\"good\"") && error(-1.1).contains("class=\"bad\""));
        assert_eq!(error(7.0), error(2.0));
        assert!(range(0.5, 0.0).contains("cx=\"60.0\""));
    }
}
