//! A checked study.
//!
//! The separation that the lab rests on is in the types: [`CalibrationFigure`]s are what the fitter takes;
//! [`PredictionFigure`]s keep their published figure for the report alone, and there is no way from one to the other.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};
use toml::Table;

pub use super::file::Metric;
use super::setup::{Setup, SetupField};
use crate::case::{Case, CaseError, lay_over, put};
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
    /// Loads on arrays, the grid's points among them.
    pub configurations: Vec<Configuration>,
    /// Databases on arrays. Figures refer to both kinds by one place: these come after the others.
    pub cases: Vec<CaseConfiguration>,
    /// The grid, where there is one.
    pub grid: Option<GridPlan>,
    /// What may be fitted.
    pub parameters: Vec<FreeParameter>,
    /// What is reported.
    pub figures: Figures,
}

impl Study {
    /// The study with free fields set: the parameter's place, and the value.
    ///
    /// # Errors
    /// A case cannot have such a value.
    pub(crate) fn with_values(
        &self,
        values: impl IntoIterator<Item = (usize, f64)>,
    ) -> Result<Study, CaseError> {
        let mut study = self.clone();
        for (place, value) in values {
            let parameter = &self.parameters[place];
            for place in &parameter.configurations {
                match &parameter.field {
                    FreeField::Setup(field) => study.configurations[*place].setup.set(*field, value),
                    FreeField::Case(path) => {
                        study.cases[*place] = study.cases[*place].with_field(path, value, &parameter.unit)?;
                    }
                }
            }
        }
        Ok(study)
    }

    /// The study with an assumption at another value, free fields at their start values; a varied catalogue is not in it.
    pub(crate) fn varied(&self, variation: &Variation) -> Study {
        let mut study = self.clone();
        variation.setups.iter().for_each(|(place, setup)| study.configurations[*place].setup = setup.clone());
        variation.cases.iter().for_each(|(place, case)| study.cases[*place] = case.clone());
        study
    }

    /// Whether the load or database at one place is that at another, whatever their names.
    pub(crate) fn are_same(&self, a: usize, b: usize) -> bool {
        let loads = self.configurations.len();
        match (a.checked_sub(loads), b.checked_sub(loads)) {
            (None, None) => self.configurations[a].setup == self.configurations[b].setup,
            (Some(a), Some(b)) => self.cases[a].is_same_case(&self.cases[b]),
            _ => false,
        }
    }

    /// The id of the load or database at a place of a [`Measure`].
    pub(crate) fn id_at(&self, place: usize) -> &str {
        match place.checked_sub(self.configurations.len()) {
            None => &self.configurations[place].id,
            Some(place) => &self.cases[place].id,
        }
    }
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
    /// Nothing says which of these it is: a run gives figures as a range over all.
    #[serde(skip)]
    pub is_band: bool,
}

/// Another plausible value of an assumption.
#[derive(Clone, Debug, PartialEq)]
pub struct Variation {
    /// The value, in words.
    pub to: String,
    /// The configurations that it changes, by their place in [`Study::configurations`], free fields at their start values.
    pub setups: Vec<(usize, Setup)>,
    /// The same of [`Study::cases`].
    pub cases: Vec<(usize, CaseConfiguration)>,
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

/// A database on an array that is to be measured.
#[derive(Clone, Debug)]
pub struct CaseConfiguration {
    /// Its id within the study.
    pub id: String,
    /// A few words.
    pub title: String,
    /// What the file says of it, free fields at their start values.
    table: Table,
    /// The case that it makes.
    pub case: Case,
}

impl PartialEq for CaseConfiguration {
    fn eq(&self, other: &CaseConfiguration) -> bool {
        self.id == other.id && self.is_same_case(other)
    }
}

impl CaseConfiguration {
    /// The configuration of a table.
    pub(super) fn of(id: &str, title: &str, table: Table) -> Result<CaseConfiguration, CaseError> {
        let case = Case::of(id, table.clone())?;
        Ok(CaseConfiguration { id: id.to_owned(), title: title.to_owned(), table, case })
    }

    /// Whether both are the same database on the same array, whatever their names.
    pub(crate) fn is_same_case(&self, other: &CaseConfiguration) -> bool {
        self.table == other.table
    }

    /// The same with other tables laid over its own.
    pub(super) fn with_tables(&self, over: &Table) -> Result<CaseConfiguration, CaseError> {
        let mut table = self.table.clone();
        lay_over(&mut table, over);
        CaseConfiguration::of(&self.id, &self.title, table)
    }

    /// The same with a free field set.
    fn with_field(&self, path: &str, value: f64, unit: &str) -> Result<CaseConfiguration, CaseError> {
        let mut table = self.table.clone();
        put(&mut table, path, value, unit).map_err(|fact| CaseError { case: self.id.clone(), fact })?;
        CaseConfiguration::of(&self.id, &self.title, table)
    }
}

/// What may be free.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(untagged)]
pub enum FreeField {
    /// A field of loads on arrays.
    Setup(SetupField),
    /// A field of databases on arrays, by its path.
    Case(String),
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
    /// The configurations it belongs to, by their place in [`Study::configurations`], or in [`Study::cases`] if it is a field of
    /// these.
    pub configurations: Vec<usize>,
}

/// How a figure follows from measurements. Places count [`Study::configurations`], then [`Study::cases`].
#[derive(Clone, Debug, PartialEq)]
pub enum Measure {
    /// A metric of one configuration.
    Of(Metric, usize),
    /// The metric of the first over that of the second.
    Ratio(Metric, usize, usize),
    /// The same, each divided by its drives.
    RatioPerDrive(Metric, usize, usize),
    /// By how many percent the metric of the first is more than that of the second.
    Change(Metric, usize, usize),
    /// A statement of order.
    Order(Order),
}

impl Measure {
    /// The configurations it needs.
    pub fn configurations(&self) -> Vec<usize> {
        match self {
            Measure::Of(_, one) => vec![*one],
            Measure::Ratio(_, a, b) | Measure::RatioPerDrive(_, a, b) | Measure::Change(_, a, b) => {
                vec![*a, *b]
            }
            Measure::Order(order) => order.pairs.iter().flatten().copied().collect(),
        }
    }

    /// Whether it needs any of these.
    pub(crate) fn needs_any(&self, places: &BTreeSet<usize>) -> bool {
        self.configurations().iter().any(|place| places.contains(place))
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
    pub(super) published: Figure,
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
            .distance(value, self.published.number())
            .expect("a calibration figure has a published number, or a range or a bound as its tolerance")
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
    pub(super) straight_line: Option<f64>,
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
    pub(crate) straight_line: Option<f64>,
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
            straight_line: self.straight_line,
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
            published: Some(figure.published.clone()),
            tolerance: Some(figure.tolerance),
            straight_line: None,
        });
        let prediction = self.prediction.iter().map(|figure| figure.reported(Role::Prediction));
        let derived = self.derived.iter().map(|figure| figure.reported(Role::Derived));
        let unpublished = self.unpublished.iter().map(|figure| figure.reported(Role::Unpublished));
        calibration.chain(prediction).chain(derived).chain(unpublished)
    }
}
