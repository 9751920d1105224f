//! Which assumptions of a study move which figure, and by how much.
//!
//! The study is fitted once. Then every assumption that gives other plausible values takes each of them, one at a time,
//! with the fitted parameters as they are, and the configurations behind the published figures are measured again with
//! the same seed: the same requests in the same order, so that small changes are seen.
//!
//! Invariants: a figure's change is a share of the figure as the study has it; nothing is fitted to a changed study.

use std::collections::BTreeMap;
use std::time::Duration;

use serde::Serialize;

use crate::LabError;
use crate::calibrate::Fit;
use crate::outcome::{self, Finding};
use crate::run::{RunOptions, RunPhase, RunProgress, Runner, fitted, places};
use crate::study::{Assumption, Measure, Study, Variation};

/// A figure as the study has it.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct BaseFigure {
    /// Its id within the study.
    pub id: String,
    /// The unit of the value.
    pub unit: String,
    /// What the lab finds.
    pub value: f64,
    /// Half the width of the 95 % interval that the simulation leaves it, as a share.
    pub half_width: Option<f64>,
}

/// An assumption at another value.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Varied {
    /// What is assumed.
    pub assumption: String,
    /// As the study has it.
    pub from: String,
    /// The other value.
    pub to: String,
    /// By how much each figure changes, as a share of it, in the order of [`Sensitivity::figures`]; nothing where it has no
    /// value any more.
    pub changes: Vec<Option<f64>>,
}

/// What assumptions do to the figures of a study.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Sensitivity {
    /// The study's id.
    pub study: String,
    /// The seed in use.
    pub seed: u64,
    /// The figures that were published, also those kept back.
    pub figures: Vec<BaseFigure>,
    /// Every other value of every assumption that has any.
    pub variations: Vec<Varied>,
    /// Assumptions of the study that give no other value.
    pub not_varied: Vec<String>,
    /// Real time that it took.
    #[serde(skip)]
    pub elapsed: Duration,
}

/// Varies a study's assumptions.
///
/// # Errors
/// [`LabError`] where a configuration is impossible.
pub fn sensitivity(
    study: &Study,
    options: &RunOptions,
    progress: &(dyn Fn(&RunProgress) + Sync),
) -> Result<Sensitivity, LabError> {
    let runner = Runner::new(study, &RunOptions { curves: false, repeats: false, ..*options }, progress)?;
    let fit = runner.fit(study)?;
    let plain = fitted(study, fit.as_ref())?;
    let reported = study.figures.reported().filter(|reported| reported.published.is_some());
    let wanted: Vec<_> = reported.filter(|reported| !matches!(reported.measure, Measure::Order(_))).collect();
    let measures: Vec<&Measure> = wanted.iter().map(|reported| reported.measure).collect();
    let before = Figures::of(&measures, &plain, &runner)?;
    let figures =
        wanted.iter().zip(&measures).zip(&before.values).filter_map(|((reported, measure), value)| {
            Some(BaseFigure {
                id: reported.id.to_owned(),
                unit: reported.unit.to_owned(),
                value: (*value)?,
                half_width: before.half_width(measure),
            })
        });
    let figures: Vec<BaseFigure> = figures.collect();
    let kept: Vec<&Measure> =
        measures.iter().zip(&before.values).filter_map(|(measure, value)| value.map(|_| *measure)).collect();
    let all: Vec<(&Assumption, &Variation)> = study
        .assumptions
        .iter()
        .flat_map(|assumption| assumption.variations.iter().map(move |variation| (assumption, variation)))
        .collect();
    let mut variations = Vec::new();
    for (number, (assumption, variation)) in all.iter().enumerate() {
        let what = format!("{}: {}", assumption.what, variation.to);
        runner.tell(RunPhase::Varying, number, all.len(), what, None);
        let changed = study.changed(variation);
        let moved: Vec<&Measure> =
            kept.iter().copied().filter(|measure| measure.needs_any(&changed)).collect();
        let mut after = runner.figures_of(study, fit.as_ref(), variation, &moved)?.into_iter();
        let change = |(figure, measure): (&BaseFigure, &&Measure)| match measure.needs_any(&changed) {
            true => after.next().flatten().map(|after| after / figure.value - 1.0),
            false => Some(0.0),
        };
        variations.push(Varied {
            assumption: assumption.what.clone(),
            from: assumption.value.clone(),
            to: variation.to.clone(),
            changes: figures.iter().zip(&kept).map(change).collect(),
        });
    }
    let fixed = study.assumptions.iter().filter(|assumption| assumption.variations.is_empty());
    Ok(Sensitivity {
        study: study.id.clone(),
        seed: runner.seed,
        figures,
        variations,
        not_varied: fixed.map(|assumption| assumption.what.clone()).collect(),
        elapsed: runner.elapsed(),
    })
}

impl Runner<'_> {
    /// The figures under a variation.
    fn figures_of(
        &self,
        study: &Study,
        fit: Option<&Fit>,
        variation: &Variation,
        measures: &[&Measure],
    ) -> Result<Vec<Option<f64>>, LabError> {
        let varied = study.varied(variation);
        let runner = self.varied(variation, &varied, &places(measures.iter().copied()))?;
        let set = fitted(&varied, fit)?;
        Ok(Figures::of(measures, &set, &runner)?.values)
    }
}

/// Figures with what is behind them.
struct Figures {
    values: Vec<Option<f64>>,
    /// By place.
    found: BTreeMap<usize, Finding>,
}

impl Figures {
    /// Finds what `measures` need of a study.
    fn of(measures: &[&Measure], study: &Study, runner: &Runner<'_>) -> Result<Figures, LabError> {
        let found = runner.find_quietly(study, &places(measures.iter().copied()))?;
        let of = |place: usize| found.get(&place);
        let values = measures.iter().map(|measure| outcome::number(measure, study, &of)).collect();
        Ok(Figures { values, found })
    }

    fn half_width(&self, measure: &Measure) -> Option<f64> {
        outcome::half_width(measure, &|place| self.found.get(&place))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const STUDY: &str = r#"
        id = "x"
        title = "x"
        description = "x"
        [[assumption]]
        what = "drives"
        value = "4"
        source = "…"
        vary = [{ to = "8", set = { drives = 8 } }, { to = "8 elsewhere", set = { drives = 8 }, configurations = ["b"] }]
        [[assumption]]
        what = "seek"
        value = "2.9 ms"
        source = "…"
        vary = [{ to = "3.9 ms", entry = "sas-15k-146gb-sff", parameter = "seek_average_read_ms", value = 3.9 }]
        [[assumption]]
        what = "weather"
        value = "fair"
        source = "…"
        [base.set]
        array = "ps6100xv"
        drive = "sas-15k-146gb-sff"
        drives = 4
        raid = "raid10"
        used_percent = 80
        read_percent = 100
        users = 16
        ios = 2000
        [[configuration]]
        id = "a"
        title = "a"
        [[configuration]]
        id = "b"
        title = "b"
        [[record]]
        id = "known"
        unit = "IOPS"
        value = { metric = "iops", of = "a" }
        role = "prediction"
        published = 500
        tolerance = "10%"
        [[record]]
        id = "unpublished"
        unit = "IOPS"
        value = { metric = "iops", of = "b" }
        role = "prediction"
    "#;

    #[test]
    fn more_drives_help_slower_ones_do_not_and_other_configurations_do_not_matter() {
        let study = Study::parse(STUDY, "test").expect("valid");
        let found = sensitivity(&study, &RunOptions::default(), &|_| {}).expect("possible");
        let ids: Vec<&str> = found.figures.iter().map(|figure| figure.id.as_str()).collect();
        assert_eq!(ids, ["known"], "what was not published is nobody's concern");
        let change = |number: usize| found.variations[number].changes[0].expect("a value");
        assert!(change(0) > 0.3, "twice the drives: {:+.3}", change(0));
        assert_eq!(change(1), 0.0);
        // The endpoints of the seek curve stay, so short seeks, which a sorted queue prefers, slow down by more than 34 %.
        assert!((-0.34..-0.05).contains(&change(2)), "a mean seek of 3.9 for 2.9 ms: {:+.3}", change(2));
        assert_eq!(found.not_varied, ["weather"]);
    }

    #[test]
    fn a_variation_that_makes_no_sense_is_refused_with_its_place() {
        let refused = |from: &str, to: &str| {
            assert!(STUDY.contains(from), "{from}");
            Study::parse(&STUDY.replace(from, to), "test").expect_err("refused").to_string()
        };
        let text = refused("set = { drives = 8 } },", "set = { drives = 0 } },");
        assert!(text.contains("drives, varied to \"8\"") && text.contains("1 to 1024"), "{text}");
        let text = refused("parameter = \"seek_average_read_ms\", ", "");
        assert!(text.contains("entry, parameter and value together"), "{text}");
        let text = refused("seek_average_read_ms", "seek_average_ms");
        assert!(text.contains("no numeric parameter \"seek_average_ms\""), "{text}");
        let text = refused("{ to = \"8\", set = { drives = 8 } }", "{ to = \"8\" }");
        assert!(text.contains("give either set, or some of database"), "{text}");
        let text = refused("configurations = [\"b\"]", "configurations = [\"c\"]");
        assert!(text.contains("no configuration \"c\""), "{text}");
    }
}
