//! Bounded minimisation without derivatives: golden section for one variable, Nelder–Mead for more.
//!
//! Variables lie in 0 to 1. Nelder and Mead, "A simplex method for function minimization", The Computer Journal 7
//! (1965), with their coefficients; points outside are moved to the nearest bound, and what that does to the simplex is mended
//! by new ones. Kiefer, "Sequential minimax search
//! for a maximum", Proc. AMS 4 (1953), for the golden section.

/// 2 / (1 + √5): each step of the golden section keeps this share of the interval.
const GOLDEN: f64 = 0.618_033_988_749_894_9;
/// The search ends when the interval or the simplex is this small.
const WIDTH_MIN: f64 = 0.002;
/// A new simplex has brought something if it brought the value below this share of the last.
const RESTART_GAIN: f64 = 0.95;
/// Edge of the first simplex.
const SIMPLEX_EDGE: f64 = 0.2;

/// The least value found.
#[derive(Clone, Debug, PartialEq)]
pub struct Minimum {
    /// Where.
    pub at: Vec<f64>,
    /// The value there.
    pub value: f64,
    /// Evaluations so far.
    pub evaluations: usize,
}

/// Searches for the least value of `function` on the unit cube, beginning at `start`. Ends early at a value of
/// `enough` or less, and after at most about `evaluations_max` evaluations.
///
/// # Errors
/// The first error of the function.
pub fn minimise<E>(
    start: &[f64],
    enough: f64,
    evaluations_max: usize,
    function: impl FnMut(&[f64]) -> Result<f64, E>,
) -> Result<Minimum, E> {
    let mut search = Search { function, enough, evaluations_max, best: None, evaluations: 0 };
    let first = search.value(start)?;
    match start.len() {
        0 => {}
        1 => search.golden_section()?,
        _ => search.nelder_mead(start, first)?,
    }
    let (at, value) = search.best.expect("the start was evaluated");
    Ok(Minimum { at, value, evaluations: search.evaluations })
}

struct Search<F> {
    function: F,
    enough: f64,
    evaluations_max: usize,
    best: Option<(Vec<f64>, f64)>,
    evaluations: usize,
}

impl<E, F: FnMut(&[f64]) -> Result<f64, E>> Search<F> {
    fn value(&mut self, at: &[f64]) -> Result<f64, E> {
        let value = (self.function)(at)?;
        self.evaluations += 1;
        if self.best.as_ref().is_none_or(|(_, best)| value < *best) {
            self.best = Some((at.to_vec(), value));
        }
        Ok(value)
    }

    fn is_over(&self) -> bool {
        self.evaluations >= self.evaluations_max
            || self.best.as_ref().is_some_and(|(_, best)| *best <= self.enough)
    }

    fn golden_section(&mut self) -> Result<(), E> {
        if self.is_over() {
            return Ok(());
        }
        let (mut low, mut high) = (0.0, 1.0);
        let (mut left, mut right) = (high - GOLDEN, low + GOLDEN);
        let mut left_value = self.value(&[left])?;
        let mut right_value = self.value(&[right])?;
        while !self.is_over() && high - low > WIDTH_MIN {
            if left_value <= right_value {
                (high, right, right_value) = (right, left, left_value);
                left = high - GOLDEN * (high - low);
                left_value = self.value(&[left])?;
            } else {
                (low, left, left_value) = (left, right, right_value);
                right = low + GOLDEN * (high - low);
                right_value = self.value(&[right])?;
            }
        }
        Ok(())
    }

    /// Bounds and ridges can flatten a simplex before it is at the bottom, so smaller ones are put up around the best
    /// point, to either side in turn, until two in a row bring nothing more.
    fn nelder_mead(&mut self, start: &[f64], first: f64) -> Result<(), E> {
        let (mut edge, mut idle) = (SIMPLEX_EDGE, 0);
        self.simplex(start, first, edge)?;
        while !self.is_over() && idle < 2 {
            edge *= -0.5;
            let (at, value) = self.best.clone().expect("the start was evaluated");
            self.simplex(&at, value, edge)?;
            let gained = self.best.as_ref().is_some_and(|(_, best)| *best < value * RESTART_GAIN);
            idle = if gained { 0 } else { idle + 1 };
        }
        Ok(())
    }

    fn simplex(&mut self, start: &[f64], first: f64, edge: f64) -> Result<(), E> {
        let mut simplex = vec![(start.to_vec(), first)];
        for axis in 0..start.len() {
            let mut corner = start.to_vec();
            let outside = !(0.0..=1.0).contains(&(corner[axis] + edge));
            corner[axis] += if outside { -edge } else { edge };
            let value = self.value(&corner)?;
            simplex.push((corner, value));
        }
        while !self.is_over() && size(&simplex) > WIDTH_MIN {
            simplex.sort_by(|a, b| a.1.total_cmp(&b.1));
            self.step(&mut simplex)?;
        }
        Ok(())
    }

    /// One step on a simplex sorted by value.
    fn step(&mut self, simplex: &mut [(Vec<f64>, f64)]) -> Result<(), E> {
        let last = simplex.len() - 1;
        let center = center(&simplex[..last]);
        let worst = simplex[last].clone();
        let reflected = self.toward(&center, &worst.0, -1.0)?;
        if reflected.1 < simplex[0].1 {
            let expanded = self.toward(&center, &worst.0, -2.0)?;
            simplex[last] = if expanded.1 < reflected.1 { expanded } else { reflected };
            return Ok(());
        }
        if reflected.1 < simplex[last - 1].1 {
            simplex[last] = reflected;
            return Ok(());
        }
        let nearer = if reflected.1 < worst.1 { &reflected } else { &worst };
        let contracted = self.toward(&center, &nearer.0, 0.5)?;
        if contracted.1 < nearer.1 {
            simplex[last] = contracted;
            return Ok(());
        }
        let best = simplex[0].0.clone();
        for corner in &mut simplex[1..] {
            *corner = self.toward(&best, &corner.0, 0.5)?;
        }
        Ok(())
    }

    /// The point `share` of the way from `from` to `to`, within bounds, and its value.
    fn toward(&mut self, from: &[f64], to: &[f64], share: f64) -> Result<(Vec<f64>, f64), E> {
        let at: Vec<f64> = from.iter().zip(to).map(|(a, b)| (a + (b - a) * share).clamp(0.0, 1.0)).collect();
        let value = self.value(&at)?;
        Ok((at, value))
    }
}

fn center(corners: &[(Vec<f64>, f64)]) -> Vec<f64> {
    let count = corners.len() as f64;
    let axes = corners[0].0.len();
    (0..axes).map(|axis| corners.iter().map(|corner| corner.0[axis]).sum::<f64>() / count).collect()
}

/// The longest extent of the simplex along an axis.
fn size(simplex: &[(Vec<f64>, f64)]) -> f64 {
    let axes = simplex[0].0.len();
    let extent = |axis: usize| {
        let places = simplex.iter().map(|corner| corner.0[axis]);
        let (least, most) = places.fold((f64::INFINITY, f64::NEG_INFINITY), |(l, m), x| (l.min(x), m.max(x)));
        most - least
    };
    (0..axes).map(extent).fold(0.0, f64::max)
}
