//! Seek curves: time to move the arm, by distance in cylinders.
//!
//! A curve is a dense table, so that the model looks a seek up in one load. It comes from measured points, from the
//! three points of a datasheet, or from the equations of the older literature.

use std::sync::Arc;

use super::ParameterError;
use super::error::check_range;

/// No seek of a disk takes longer: a second is far above any stroke, and fits 32 bits of nanoseconds.
const SEEK_MAX_MS: f64 = 1_000.0;
/// Buckets in which the distances of random seeks are counted.
const BUCKETS: usize = 512;

/// Time to seek, in nanoseconds, by distance in cylinders; distance 0 takes none.
#[derive(Clone, Debug, PartialEq)]
pub struct SeekCurve {
    nanos: Arc<[u32]>,
}

/// The three seek times of a datasheet, in milliseconds.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SeekPoints {
    /// To the next cylinder.
    pub single_track_ms: f64,
    /// Mean over random pairs of blocks.
    pub average_ms: f64,
    /// From the first cylinder to the last.
    pub full_stroke_ms: f64,
}

/// A function of the distance in cylinders.
type Equation<'a> = &'a dyn Fn(f64) -> f64;

impl SeekCurve {
    /// A curve from any equation in milliseconds, asked for every distance from 1 to `cylinders - 1`.
    pub fn from_equation(cylinders: u32, equation: Equation<'_>) -> SeekCurve {
        let nanos = (0..cylinders).map(|distance| match distance {
            0 => 0,
            _ => (equation(f64::from(distance)).clamp(0.0, SEEK_MAX_MS) * 1e6).round() as u32,
        });
        SeekCurve { nanos: nanos.collect() }
    }

    /// A curve through measured points (distance in cylinders, milliseconds), straight between them, and going on
    /// as straight as between the last two beyond them. Below the first point its time holds.
    pub fn from_points(points: &[(u32, f64)], cylinders: u32) -> Result<SeekCurve, ParameterError> {
        let ascending = points.windows(2).all(|pair| pair[0].0 < pair[1].0);
        if points.is_empty() || points[0].0 == 0 || !ascending {
            return Err(ParameterError::SeekCurve);
        }
        for &(_, ms) in points {
            check_range("a seek time in ms", ms, 0.0..=SEEK_MAX_MS, "0 to 1,000")?;
        }
        Ok(SeekCurve::from_equation(cylinders, &|distance| interpolate(points, distance)))
    }

    /// A curve through a datasheet's points: `single + a (√d − 1) + b (d − 1)`, with `a` and `b` such that the
    /// longest seek takes the full-stroke time and the mean over random pairs of blocks is the datasheet's
    /// average. `density` gives the relative number of blocks on each of equally wide bands of cylinders, the first
    /// to the last (all equal, or empty: as many on every cylinder).
    ///
    /// Points that this family cannot meet with rising terms (an average below a third or above 8/15 of the way
    /// from single track to full stroke) are met by a power of the distance instead.
    pub fn from_datasheet(
        points: SeekPoints,
        cylinders: u32,
        weights: &Weights,
    ) -> Result<SeekCurve, ParameterError> {
        let SeekPoints { single_track_ms: single, average_ms: average, full_stroke_ms: full } = points;
        let rising = 0.0 < single && single < average && average < full && full <= SEEK_MAX_MS;
        if !rising || cylinders < 3 {
            return Err(ParameterError::SeekPoints { single_ms: single, average_ms: average, full_ms: full });
        }
        // The share of the way from the shortest to the longest seek that the mean seek must have gone.
        let wanted = (average - single) / (full - single);
        let longest = f64::from(cylinders - 1);
        let root = |distance: f64| (distance.sqrt() - 1.0) / (longest.sqrt() - 1.0);
        let line = |distance: f64| (distance - 1.0) / (longest - 1.0);
        let (mean_root, mean_line) = (weights.mean(longest, &root), weights.mean(longest, &line));
        let share = (wanted - mean_line) / (mean_root - mean_line);
        if (0.0..=1.0).contains(&share) {
            let rise = |d: f64| share * root(d) + (1.0 - share) * line(d);
            return Ok(SeekCurve::from_equation(cylinders, &|d| single + (full - single) * rise(d)));
        }
        let exponent = solve_decreasing(wanted, |p| weights.mean(longest, &|d| line(d).max(0.0).powf(p)));
        Ok(SeekCurve::from_equation(cylinders, &|d| {
            single + (full - single) * line(d).max(0.0).powf(exponent)
        }))
    }

    /// This curve with the same time added to every seek.
    pub fn plus_ms(&self, ms: f64) -> SeekCurve {
        let add = (ms.clamp(0.0, SEEK_MAX_MS) * 1e6).round() as u32;
        let plus =
            |(distance, &nanos): (usize, &u32)| if distance == 0 { 0 } else { nanos.saturating_add(add) };
        SeekCurve { nanos: self.nanos.iter().enumerate().map(plus).collect() }
    }

    /// Nanoseconds to move by `distance` cylinders; distances beyond the table take as long as its last.
    pub fn nanos(&self, distance: u32) -> u32 {
        match self.nanos.get(distance as usize) {
            Some(&nanos) => nanos,
            None => self.nanos.last().copied().unwrap_or(0),
        }
    }
}

/// How often seeks of each distance occur between random blocks.
#[derive(Clone, Debug)]
pub struct Weights {
    by_distance: Vec<f64>,
}

impl Weights {
    /// As many blocks on every cylinder.
    pub fn uniform() -> Weights {
        Weights::by_density(&[1.0])
    }

    /// `density` is the relative number of blocks per cylinder on equally wide bands, the first to the last.
    pub fn by_density(density: &[f64]) -> Weights {
        let at = |bucket: usize| density[bucket * density.len() / BUCKETS].max(0.0);
        let mut by_distance = vec![0.0; BUCKETS];
        for from in 0..BUCKETS {
            for to in 0..BUCKETS {
                by_distance[from.abs_diff(to)] += at(from) * at(to);
            }
        }
        let sum: f64 = by_distance.iter().sum();
        by_distance.iter_mut().for_each(|weight| *weight /= sum);
        Weights { by_distance }
    }

    /// The mean of `function` over the distances of random seeks, of which the longest is `longest` cylinders.
    fn mean(&self, longest: f64, function: Equation<'_>) -> f64 {
        let width = longest / BUCKETS as f64;
        // Two points in one bucket lie a third of its width apart on average; in different ones, the distance of
        // the buckets.
        let distance = |bucket: usize| if bucket == 0 { width / 3.0 } else { bucket as f64 * width };
        self.by_distance.iter().enumerate().map(|(b, weight)| weight * function(distance(b).max(1.0))).sum()
    }
}

/// Linear interpolation; `points` is not empty and ascends.
fn interpolate(points: &[(u32, f64)], distance: f64) -> f64 {
    let after = points.partition_point(|&(d, _)| f64::from(d) <= distance);
    if after == 0 || points.len() == 1 {
        return points[0].1;
    }
    let upper = after.min(points.len() - 1);
    let ((d0, t0), (d1, t1)) = (points[upper - 1], points[upper]);
    t0 + (t1 - t0) * (distance - f64::from(d0)) / f64::from(d1 - d0)
}

/// Where a falling function of a positive number takes the value `wanted`, by bisection.
fn solve_decreasing(wanted: f64, function: impl Fn(f64) -> f64) -> f64 {
    let (mut low, mut high) = (1e-3, 50.0);
    for _ in 0..60 {
        let middle = (low + high) / 2.0;
        if function(middle) > wanted { low = middle } else { high = middle }
    }
    (low + high) / 2.0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn goes_straight_between_measured_points_and_beyond() {
        let curve = SeekCurve::from_points(&[(1, 1.0), (3, 2.0), (10, 9.0)], 20).unwrap();
        assert_eq!(curve.nanos(0), 0);
        assert_eq!(curve.nanos(1), 1_000_000);
        assert_eq!(curve.nanos(2), 1_500_000);
        assert_eq!(curve.nanos(7), 6_000_000);
        assert_eq!(curve.nanos(12), 11_000_000);
        assert_eq!(curve.nanos(99), curve.nanos(19));
    }

    #[test]
    fn refuses_points_that_do_not_ascend() {
        for points in [&[][..], &[(0, 1.0)], &[(2, 1.0), (2, 2.0)], &[(1, -1.0)], &[(1, f64::NAN)]] {
            assert!(SeekCurve::from_points(points, 9).is_err(), "{points:?}");
        }
    }

    /// The mean over all pairs of cylinders, counted one by one.
    fn counted_mean_ms(curve: &SeekCurve, cylinders: u32) -> f64 {
        let pairs = f64::from(cylinders) * f64::from(cylinders);
        let sum: f64 =
            (1..cylinders).map(|d| 2.0 * f64::from(cylinders - d) * f64::from(curve.nanos(d))).sum();
        sum / pairs / 1e6
    }

    #[test]
    fn a_datasheet_curve_has_the_datasheet_average() {
        // Cheetah 15K.7, product manual p. 14; then points that need a power above and below.
        for (single, average, full) in [(0.2, 3.4, 6.6), (0.5, 2.0, 8.0), (0.5, 6.5, 8.0)] {
            let points = SeekPoints { single_track_ms: single, average_ms: average, full_stroke_ms: full };
            let curve = SeekCurve::from_datasheet(points, 20_000, &Weights::uniform()).unwrap();
            assert!((f64::from(curve.nanos(1)) / 1e6 - single).abs() < 0.01);
            assert!((f64::from(curve.nanos(19_999)) / 1e6 - full).abs() < 0.01);
            let mean = counted_mean_ms(&curve, 20_000);
            assert!((mean / average - 1.0).abs() < 0.01, "{mean} instead of {average}");
        }
    }

    #[test]
    fn blocks_crowded_outside_make_seeks_shorter() {
        let line: Equation<'_> = &|d| d;
        let crowded = Weights::by_density(&[2.0, 1.0, 0.5, 0.25]);
        assert!(crowded.mean(1_000.0, line) < Weights::uniform().mean(1_000.0, line));
    }
}
