use std::convert::Infallible;

use super::*;
use crate::study::Study;

fn minimum(start: &[f64], enough: f64, max: usize, f: impl Fn(&[f64]) -> f64) -> Minimum {
    let Ok(found) = minimise(start, enough, max, |at| Ok::<_, Infallible>(f(at)));
    found
}

#[test]
fn golden_section_finds_the_bottom_of_a_valley() {
    for bottom in [0.0, 0.123, 0.5, 0.987, 1.0] {
        let found = minimum(&[0.4], 0.0, 100, |at| (at[0] - bottom).abs());
        assert!((found.at[0] - bottom).abs() < 0.003, "{bottom}: {found:?}");
        assert!(found.evaluations < 20);
    }
}

#[test]
fn nelder_mead_finds_the_bottom_of_a_bent_valley() {
    // Rosenbrock's function, moved into the unit square with its bottom at (0.6, 0.4).
    let banana = |at: &[f64]| {
        let (x, y) = (at[0] / 0.6, at[1] / 0.4);
        (1.0 - x).powi(2) + 10.0 * (y - x * x).powi(2)
    };
    let found = minimum(&[0.1, 0.9], 1e-6, 400, banana);
    assert!((found.at[0] - 0.6).abs() < 0.01 && (found.at[1] - 0.4).abs() < 0.01, "{found:?}");
}

#[test]
fn a_bottom_outside_ends_at_the_bound() {
    let found = minimum(&[0.5, 0.5], 0.0, 200, |at| at[0] + (at[1] - 0.3).powi(2));
    assert!(found.at[0] < 0.003 && (found.at[1] - 0.3).abs() < 0.06, "{found:?}");
}

#[test]
fn enough_is_enough_and_the_limit_holds() {
    let found = minimum(&[0.3], 0.01, 100, |at| (at[0] - 0.3).powi(2));
    assert_eq!(found.evaluations, 1);
    let found = minimum(&[0.3, 0.3], 0.0, 15, |at| at[0] + at[1]);
    assert!(found.evaluations <= 17);
}

const STUDY: &str = r#"
    id = "x"
    title = "x"
    description = "x"
    [base.set]
    array = "ps6100xv"
    drive = "sas-15k-146gb-sff"
    drives = 4
    raid = "raid10"
    volume_size = "1GiB"
    read_percent = 70
    latency_limit_ms = 20
    [[configuration]]
    id = "a"
    title = "a"
    [[parameter]]
    name = "commands"
    field = "write_cache_mib"
    unit = "commands"
    stands_for = "…"
    start = 10
    least = 1
    most = 1000
    [[record]]
    id = "known"
    unit = "IOPS"
    value = { metric = "iops", of = "a" }
    role = "calibration"
    published = 500
    tolerance = "10%"
    [[record]]
    id = "unknown"
    unit = "IOPS"
    value = { metric = "iops", of = "a" }
    role = "prediction"
    published = 900
    tolerance = "10%"
"#;

#[test]
fn the_fit_meets_the_calibration_and_does_not_know_the_prediction() {
    let study = Study::parse(STUDY, "test").expect("valid");
    assert_eq!(study.figures.calibration().len(), 1);
    // What is measured is ten times the square root of the parameter: 500 at 2,500, which the range excludes.
    let Ok(bound) = fit(&study.parameters, study.figures.calibration(), true, |values| {
        Ok::<_, Infallible>(vec![10.0 * values[0].sqrt()])
    });
    assert!(bound.parameters[0].at_bound && bound.parameters[0].value > 950.0, "{bound:?}");
    // Twice that: 500 at 625.
    let Ok(inside) = fit(&study.parameters, study.figures.calibration(), true, |values| {
        Ok::<_, Infallible>(vec![20.0 * values[0].sqrt()])
    });
    assert!(
        !inside.parameters[0].at_bound && (inside.parameters[0].value - 625.0).abs() < 10.0,
        "{inside:?}"
    );
    assert!(inside.distance <= 0.05);
}

#[test]
fn a_fit_says_how_far_its_parameters_can_be_moved() {
    let study = Study::parse(STUDY, "test").expect("valid");
    let fitted = |measure: &dyn Fn(f64) -> f64| {
        let Ok(found) = fit(&study.parameters, study.figures.calibration(), true, |values| {
            Ok::<_, Infallible>(vec![measure(values[0])])
        });
        assert!(found.evaluations <= evaluations_max(1));
        found.parameters[0].clone()
    };
    // Within a tenth of 500 from 506 to 756; of the steps between 1 and 1,000, on a logarithmic scale, none is inside.
    let sharp = fitted(&|value| 20.0 * value.sqrt());
    assert!(!sharp.is_vague && sharp.agrees == Some([sharp.value, sharp.value]), "{sharp:?}");
    // It hardly matters: from 400 to 550 over the whole range.
    let vague = fitted(&|value| 460.0 + 0.08 * value);
    assert!(vague.is_vague, "{vague:?}");
    let lost = fitted(&|_| 100.0);
    assert!(lost.agrees.is_none() && !lost.is_vague, "{lost:?}");
}
