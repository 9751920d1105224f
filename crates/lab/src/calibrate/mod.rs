//! Fitting the free parameters of a study to its calibration figures.
//!
//! The fitter minimises the sum of squared distances of the calibration figures, each measured in its own tolerance
//! ([`CalibrationFigure::distance`]). It is given calibration figures and nothing else: the published value of a
//! prediction is of another type and cannot get here.
//!
//! Invariants: the fit is deterministic; no value leaves its range; parameters whose range spans more than a decade are
//! searched for on a logarithmic scale.

mod minimise;

use serde::Serialize;

pub use minimise::{Minimum, minimise};

use crate::study::{CalibrationFigure, FreeParameter};

/// Good enough: every figure within a twentieth of its tolerance.
const CLOSE_DISTANCE: f64 = 0.05;
/// A parameter this close to an end of its range, as a share of it, is reported to be at its bound.
const BOUND_SHARE: f64 = 0.01;

/// Where a parameter can be moved through this share of its range and every calibration figure stays within its tolerance,
/// the calibration hardly identifies it.
const VAGUE_SHARE: f64 = 0.5;
/// Into so many steps the range of a parameter is cut to see how far it can be moved.
const PROFILE_STEPS: u32 = 8;
/// The most evaluations of that: the fitted value, and both ends of every step.
const PROFILE_EVALUATIONS: usize = PROFILE_STEPS as usize + 2;

/// The most evaluations of a fit of that many parameters.
pub fn evaluations_max(parameters: usize) -> usize {
    let search = match parameters {
        0 => 0,
        1 => 24,
        n => 40 * n,
    };
    search + parameters * PROFILE_EVALUATIONS
}

/// Where a parameter ended.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Fitted {
    /// Its name.
    pub name: String,
    /// The fitted value.
    pub value: f64,
    /// Its unit.
    pub unit: String,
    /// Where the fit began.
    pub start: f64,
    /// The least value it could take.
    pub least: f64,
    /// The greatest.
    pub most: f64,
    /// It ended at the edge of its range: the fit would go on, so the mechanism is in doubt.
    pub at_bound: bool,
    /// The least and the greatest value looked at, next to the fitted one and the other parameters as fitted, at which every
    /// calibration figure is within its tolerance; nothing where none is.
    pub agrees: Option<[f64; 2]>,
    /// These span half of the range or more: the calibration hardly says what it is.
    pub is_vague: bool,
    /// What it stands for.
    pub stands_for: String,
}

/// The result of a fit.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Fit {
    /// The parameters.
    pub parameters: Vec<Fitted>,
    /// Root mean square of the figures' distances, with 1 at the edge of the tolerances.
    pub distance: f64,
    /// The figures that it was fitted to.
    pub figures: usize,
    /// Evaluations that it took.
    pub evaluations: usize,
}

impl Fit {
    /// Fits that share no figure as one, each with its parameters' places in the study. Nothing where there are none.
    pub(crate) fn joined(fits: Vec<(Vec<usize>, Fit)>) -> Option<Fit> {
        let squares: f64 = fits.iter().map(|(_, fit)| fit.distance.powi(2) * fit.figures as f64).sum();
        let figures = fits.iter().map(|(_, fit)| fit.figures).sum::<usize>();
        let evaluations = fits.iter().map(|(_, fit)| fit.evaluations).sum();
        let placed = fits.into_iter().flat_map(|(places, fit)| places.into_iter().zip(fit.parameters));
        let mut placed: Vec<(usize, Fitted)> = placed.collect();
        placed.sort_by_key(|(place, _)| *place);
        let parameters: Vec<Fitted> = placed.into_iter().map(|(_, fitted)| fitted).collect();
        let distance = (squares / figures.max(1) as f64).sqrt();
        (!parameters.is_empty()).then_some(Fit { parameters, distance, figures, evaluations })
    }
}

/// Fits `parameters` so that `evaluate` (values in, one figure's value each out) comes close to `figures`. With
/// `profiles`, then determines how far each parameter can be moved.
///
/// # Errors
/// The first error of an evaluation.
pub fn fit<E>(
    parameters: &[FreeParameter],
    figures: &[CalibrationFigure],
    profiles: bool,
    mut evaluate: impl FnMut(&[f64]) -> Result<Vec<f64>, E>,
) -> Result<Fit, E> {
    let scales: Vec<Scale> = parameters.iter().map(Scale::of).collect();
    let real =
        |unit: &[f64]| -> Vec<f64> { unit.iter().zip(&scales).map(|(x, scale)| scale.real(*x)).collect() };
    let start: Vec<f64> = parameters.iter().zip(&scales).map(|(p, scale)| scale.unit(p.start)).collect();
    let count = figures.len().max(1) as f64;
    let mut distances = |unit: &[f64]| -> Result<Vec<f64>, E> {
        let values = evaluate(&real(unit))?;
        assert_eq!(values.len(), figures.len(), "an evaluation gives every figure");
        Ok(figures.iter().zip(&values).map(|(figure, value)| figure.distance(*value)).collect())
    };
    let most = evaluations_max(parameters.len()) - parameters.len() * PROFILE_EVALUATIONS;
    let found = minimise(&start, CLOSE_DISTANCE * CLOSE_DISTANCE, most, |unit| {
        Ok(distances(unit)?.iter().map(|distance| distance.powi(2)).sum::<f64>() / count)
    })?;
    let mut agrees = |unit: &[f64]| Ok(distances(unit)?.iter().all(|distance| *distance <= 1.0));
    let mut evaluations = found.evaluations;
    let values = real(&found.at);
    let mut fitted = Vec::new();
    for (place, (parameter, value)) in parameters.iter().zip(values).enumerate() {
        let unit = found.at[place];
        let profile = match profiles {
            true => profile(&found.at, place, &mut evaluations, &mut agrees)?,
            false => None,
        };
        fitted.push(Fitted {
            name: parameter.name.clone(),
            value,
            unit: parameter.unit.clone(),
            start: parameter.start,
            least: parameter.least,
            most: parameter.most,
            at_bound: unit <= BOUND_SHARE || unit >= 1.0 - BOUND_SHARE,
            agrees: profile.map(|ends| ends.map(|end| scales[place].real(end))),
            is_vague: profile.is_some_and(|[low, high]| high - low >= VAGUE_SHARE),
            stands_for: parameter.stands_for.clone(),
        });
    }
    Ok(Fit { parameters: fitted, distance: found.value.sqrt(), figures: figures.len(), evaluations })
}

/// How far one variable can be moved to either side, in steps, while all figures stay within their tolerances.
fn profile<E>(
    at: &[f64],
    place: usize,
    evaluations: &mut usize,
    agrees: &mut impl FnMut(&[f64]) -> Result<bool, E>,
) -> Result<Option<[f64; 2]>, E> {
    let mut check = |value: f64| {
        let mut moved = at.to_vec();
        moved[place] = value;
        *evaluations += 1;
        agrees(&moved)
    };
    if !check(at[place])? {
        return Ok(None);
    }
    let steps = || (0..=PROFILE_STEPS).map(|step| f64::from(step) / f64::from(PROFILE_STEPS));
    let (mut low, mut high) = (at[place], at[place]);
    for value in steps().rev().filter(|value| *value < at[place]) {
        if !check(value)? {
            break;
        }
        low = value;
    }
    for value in steps().filter(|value| *value > at[place]) {
        if !check(value)? {
            break;
        }
        high = value;
    }
    Ok(Some([low, high]))
}

/// From a parameter's range to 0 to 1 and back.
#[derive(Clone, Copy, Debug)]
struct Scale {
    least: f64,
    most: f64,
    logarithmic: bool,
}

impl Scale {
    fn of(parameter: &FreeParameter) -> Scale {
        let (least, most) = (parameter.least, parameter.most);
        Scale { least, most, logarithmic: least > 0.0 && most / least > 10.0 }
    }

    fn real(&self, unit: f64) -> f64 {
        let value = match self.logarithmic {
            true => self.least * (self.most / self.least).powf(unit),
            false => self.least + (self.most - self.least) * unit,
        };
        value.clamp(self.least, self.most)
    }

    fn unit(&self, value: f64) -> f64 {
        match self.logarithmic {
            true => (value / self.least).ln() / (self.most / self.least).ln(),
            false => (value - self.least) / (self.most - self.least),
        }
    }
}

#[cfg(test)]
mod tests;
