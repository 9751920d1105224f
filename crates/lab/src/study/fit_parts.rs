//! Which parameters of a study are fitted together, and what a changed assumption moves.

use std::collections::BTreeSet;

use super::plan::{FreeField, FreeParameter, Study, Variation};
use crate::calibrate::Fit;

/// Parameters that are fitted together, and the calibration figures that they are fitted to, by their places.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct FitPart {
    pub(crate) parameters: Vec<usize>,
    pub(crate) figures: Vec<usize>,
}

impl FitPart {
    /// The fitted value of each parameter, by its place.
    pub(crate) fn values(&self, fit: &Fit) -> impl Iterator<Item = (usize, f64)> {
        self.parameters.iter().copied().zip(fit.parameters.iter().map(|fitted| fitted.value))
    }
}

impl Study {
    /// The parameters by the calibration figures that they change: those that share a figure are fitted together.
    pub(crate) fn fit_parts(&self) -> Vec<FitPart> {
        let figures = self.figures.calibration();
        let mut parts: Vec<FitPart> = Vec::new();
        for (place, parameter) in self.parameters.iter().enumerate() {
            let own = self.places_of(parameter);
            let changed = |figure: &usize| figures[*figure].measure().needs_any(&own);
            let changed: Vec<usize> = (0..figures.len()).filter(changed).collect();
            let mut joined = FitPart { parameters: vec![place], figures: changed.clone() };
            for part in parts.extract_if(.., |part| part.figures.iter().any(|one| changed.contains(one))) {
                joined.parameters.extend(part.parameters);
                joined.figures.extend(part.figures);
            }
            joined.parameters.sort_unstable();
            joined.figures.sort_unstable();
            joined.figures.dedup();
            parts.push(joined);
        }
        parts
    }

    /// The places of loads and databases that a variation changes, by itself or by way of parameters that it makes fitted again, and
    /// the parts of the fit with these.
    pub(crate) fn moved(&self, variation: &Variation) -> (BTreeSet<usize>, Vec<FitPart>) {
        let mut moved = self.changed(variation);
        let figures = self.figures.calibration();
        let is_changed =
            |part: &FitPart| part.figures.iter().any(|figure| figures[*figure].measure().needs_any(&moved));
        let again: Vec<FitPart> = self.fit_parts().into_iter().filter(is_changed).collect();
        let parameters = again.iter().flat_map(|part| &part.parameters);
        moved.extend(parameters.flat_map(|place| self.places_of(&self.parameters[*place])));
        (moved, again)
    }

    /// The places of loads and databases that a variation changes by itself. A number of the catalogue may change any of them.
    pub(crate) fn changed(&self, variation: &Variation) -> BTreeSet<usize> {
        let loads = self.configurations.len();
        match variation.catalog {
            Some(_) => (0..loads + self.cases.len()).collect(),
            None => {
                let cases = variation.cases.iter().map(|(place, _)| loads + place);
                variation.setups.iter().map(|(place, _)| *place).chain(cases).collect()
            }
        }
    }

    /// The places of the loads or databases that a parameter belongs to.
    fn places_of(&self, parameter: &FreeParameter) -> BTreeSet<usize> {
        let first = match parameter.field {
            FreeField::Setup(_) => 0,
            FreeField::Case(_) => self.configurations.len(),
        };
        parameter.configurations.iter().map(|place| first + place).collect()
    }
}
