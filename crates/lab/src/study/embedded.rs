//! The studies that the program carries.

use serde::Serialize;

use super::{Study, StudyError};

/// Name and text of each.
const STUDIES: [(&str, &str); 8] = [
    ("3par7450", include_str!("../../../../studies/3par7450.toml")),
    ("cx4-oracle", include_str!("../../../../studies/cx4-oracle.toml")),
    ("cx4-read-cache", include_str!("../../../../studies/cx4-read-cache.toml")),
    ("cx4-write-cache", include_str!("../../../../studies/cx4-write-cache.toml")),
    ("cx4-sql", include_str!("../../../../studies/cx4-sql.toml")),
    ("msa2040", include_str!("../../../../studies/msa2040.toml")),
    ("ps6100xv", include_str!("../../../../studies/ps6100xv.toml")),
    ("ps6100xv-oltp", include_str!("../../../../studies/ps6100xv-oltp.toml")),
];

/// A line of `tier0 lab list`.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct StudySummary {
    /// The study's id.
    pub id: String,
    /// Its title.
    pub title: String,
    /// Its description.
    pub description: String,
    /// Configurations to measure.
    pub configurations: usize,
    /// Parameters that are fitted.
    pub free_parameters: usize,
    /// Figures they are fitted to.
    pub calibration_figures: usize,
    /// Figures that are predicted.
    pub prediction_figures: usize,
}

/// The study `name`.
///
/// # Errors
/// [`StudyError::Unknown`] where there is none of that name.
pub fn embedded(name: &str) -> Result<Study, StudyError> {
    let found = STUDIES.iter().find(|(known, _)| *known == name);
    let (name, text) = found.ok_or_else(|| StudyError::Unknown {
        name: name.to_owned(),
        known: STUDIES.iter().map(|(known, _)| (*known).to_owned()).collect(),
    })?;
    Study::parse(text, &format!("studies/{name}.toml"))
}

/// All studies.
///
/// # Panics
/// If an embedded study is wrong, which the tests exclude.
pub fn list() -> Vec<StudySummary> {
    let summary = |(name, _): &(&str, &str)| {
        let study = embedded(name).unwrap_or_else(|error| panic!("the embedded study is faulty: {error}"));
        StudySummary {
            id: study.id,
            title: study.title,
            description: study.description,
            configurations: study.configurations.len() + study.cases.len(),
            free_parameters: study.parameters.len(),
            calibration_figures: study.figures.calibration().len(),
            prediction_figures: study.figures.prediction_count(),
        }
    };
    STUDIES.iter().map(summary).collect()
}
