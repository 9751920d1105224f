//! A checked study.
//!
//! The separation that the lab rests on is in the types: [`CalibrationFigure`]s are what the fitter takes;
//! [`PredictionFigure`]s keep their published figure for the report alone, and there is no way from one to the other.

use serde::Serialize;

pub use super::file::Metric;
use super::setup::{FreeField, Setup};
use crate::record::{Figure, Role, Tolerance};

/// A study that can be run.
#[derive(Clone, Debug)]
pub struct Study {
    /// Its id, which begins every record's.
    pub id: String,
    /// A line for titles.
    pub title: String,
    /// A paragraph.
    pub description: String,
    /// Paragraphs: what is modelled how.
    pub mechanism: Vec<String>,
    /// The seed of every measurement, so that configurations meet the same requests.
    pub seed: u64,
    /// What the study assumes beside the catalogue.
    pub assumptions: Vec<Assumption>,
    /// Configurations, the grid's points among them.
    pub configurations: Vec<Configuration>,
    /// The grid, where there is one.
    pub grid: Option<GridPlan>,
    /// What may be fitted.
    pub parameters: Vec<FreeParameter>,
    /// What is reported.
    pub figures: Figures,
}

/// Something a study assumes.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Assumption {
    /// Of what.
    pub what: String,
    /// The assumption.
    pub value: String,
    /// The reasoning.
    pub source: String,
    /// What else it may be; a run for sensitivities takes one at a time.
    #[serde(skip)]
    pub variations: Vec<Variation>,
}

/// Another plausible value of an assumption.
#[derive(Clone, Debug, PartialEq)]
pub struct Variation {
    /// The value, in words.
    pub to: String,
    /// The configurations that it changes, by their place in [`Study::configurations`], free fields at their start values.
    pub setups: Vec<(usize, Setup)>,
    /// The catalogue that it changes.
    pub catalog: Option<CatalogValue>,
}

/// A number of the catalogue.
#[derive(Clone, Debug, PartialEq)]
pub struct CatalogValue {
    /// The entry, `id` or `id@calibration`.
    pub entry: String,
    /// Its parameter.
    pub parameter: String,
    /// The value.
    pub value: f64,
}

/// A configuration to be measured.
#[derive(Clone, Debug, PartialEq)]
pub struct Configuration {
    /// Its id within the study.
    pub id: String,
    /// A few words.
    pub title: String,
    /// Array and load, free fields at their start values.
    pub setup: Setup,
}

/// The product of axes.
#[derive(Clone, Debug, PartialEq)]
pub struct GridPlan {
    /// The figure of every point.
    pub metric: Metric,
    /// Its unit.
    pub unit: String,
    /// Titles of the axes.
    pub axes: Vec<String>,
    /// Labels of each axis' points.
    pub labels: Vec<Vec<String>>,
    /// All points.
    pub points: Vec<GridPoint>,
}

/// A point of a grid.
#[derive(Clone, Debug, PartialEq)]
pub struct GridPoint {
    /// The configuration's id.
    pub id: String,
    /// Its place on each axis.
    pub places: Vec<usize>,
}

/// A parameter that may be fitted.
#[derive(Clone, Debug, PartialEq)]
pub struct FreeParameter {
    /// Its name in reports.
    pub name: String,
    /// What it sets.
    pub field: FreeField,
    /// Its unit.
    pub unit: String,
    /// What it stands for, and why its range is what it is.
    pub stands_for: String,
    /// Where the fit begins.
    pub start: f64,
    /// The least value.
    pub least: f64,
    /// The greatest value.
    pub most: f64,
    /// The configurations it belongs to, by their place in [`Study::configurations`].
    pub configurations: Vec<usize>,
}

/// How a figure follows from measurements. Configurations are places in [`Study::configurations`].
#[derive(Clone, Debug, PartialEq)]
pub enum Measure {
    /// A metric of one configuration.
    Of(Metric, usize),
    /// The metric of the first over that of the second.
    Ratio(Metric, usize, usize),
    /// The same, each divided by its drives.
    RatioPerDrive(Metric, usize, usize),
    /// A statement of order.
    Order(Order),
}

impl Measure {
    /// The configurations it needs.
    pub fn configurations(&self) -> Vec<usize> {
        match self {
            Measure::Of(_, one) => vec![*one],
            Measure::Ratio(_, a, b) | Measure::RatioPerDrive(_, a, b) => vec![*a, *b],
            Measure::Order(order) => order.pairs.iter().flatten().copied().collect(),
        }
    }
}

/// Pairs of which the first should have the greater metric.
#[derive(Clone, Debug, PartialEq)]
pub struct Order {
    /// Of what.
    pub metric: Metric,
    /// The pairs.
    pub pairs: Vec<[usize; 2]>,
}

/// A published figure that free parameters may be fitted to.
#[derive(Clone, Debug, PartialEq)]
pub struct CalibrationFigure {
    pub(super) id: String,
    pub(super) unit: String,
    pub(super) measure: Measure,
    pub(super) published: f64,
    pub(super) tolerance: Tolerance,
}

impl CalibrationFigure {
    /// How it follows from measurements.
    pub fn measure(&self) -> &Measure {
        &self.measure
    }

    /// How far a value is from the published one, with 1 at the tolerance's edge.
    pub fn distance(&self, value: f64) -> f64 {
        self.tolerance
            .distance(value, Some(self.published))
            .expect("a calibration figure has a published number")
    }
}

/// A figure that nothing is fitted to. Its published value, if any, can only be looked at by a report.
#[derive(Clone, Debug, PartialEq)]
pub struct PredictionFigure {
    pub(super) id: String,
    pub(super) unit: String,
    pub(super) measure: Measure,
    pub(super) published: Option<Figure>,
    pub(super) tolerance: Option<Tolerance>,
}

/// All figures of a study.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Figures {
    pub(super) calibration: Vec<CalibrationFigure>,
    pub(super) prediction: Vec<PredictionFigure>,
    pub(super) derived: Vec<PredictionFigure>,
    pub(super) unpublished: Vec<PredictionFigure>,
}

/// A figure as a report sees it.
#[derive(Clone, Debug)]
pub(crate) struct ReportedFigure<'a> {
    pub(crate) id: &'a str,
    pub(crate) unit: &'a str,
    pub(crate) measure: &'a Measure,
    pub(crate) role: Role,
    pub(crate) published: Option<Figure>,
    pub(crate) tolerance: Option<Tolerance>,
}

impl PredictionFigure {
    fn reported(&self, role: Role) -> ReportedFigure<'_> {
        ReportedFigure {
            id: &self.id,
            unit: &self.unit,
            measure: &self.measure,
            role,
            published: self.published.clone(),
            tolerance: self.tolerance,
        }
    }
}

impl Figures {
    /// What the fitter may see.
    pub fn calibration(&self) -> &[CalibrationFigure] {
        &self.calibration
    }

    /// How many figures are predicted.
    pub fn prediction_count(&self) -> usize {
        self.prediction.len()
    }

    /// All, for a report: calibration first.
    pub(crate) fn reported(&self) -> impl Iterator<Item = ReportedFigure<'_>> {
        let calibration = self.calibration.iter().map(|figure| ReportedFigure {
            id: &figure.id,
            unit: &figure.unit,
            measure: &figure.measure,
            role: Role::Calibration,
            published: Some(Figure::Number(figure.published)),
            tolerance: Some(figure.tolerance),
        });
        let prediction = self.prediction.iter().map(|figure| figure.reported(Role::Prediction));
        let derived = self.derived.iter().map(|figure| figure.reported(Role::Derived));
        let unpublished = self.unpublished.iter().map(|figure| figure.reported(Role::Unpublished));
        calibration.chain(prediction).chain(derived).chain(unpublished)
    }
}
