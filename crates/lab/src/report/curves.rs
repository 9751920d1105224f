//! Which curves a study's charts show.
//!
//! Of a grid, one chart for each axis: it varies that axis and keeps the others where the calibration figure lies (or at
//! their first points). Configurations outside of the grid share one chart.

use super::chart::{Chart, SERIES_MAX, Series};
use crate::run::{Measured, StudyOutcome};
use crate::study::{Goal, GridPlan, Measure, Metric};

/// All charts of a study.
pub(super) fn charts(outcome: &StudyOutcome) -> Vec<Chart> {
    let mut charts = Vec::new();
    if let Some(grid) = &outcome.study.grid {
        let reference = reference(outcome, grid);
        for (axis, title) in grid.axes.iter().enumerate() {
            charts.push(axis_chart(outcome, grid, &reference, axis, title));
        }
    }
    let others: Vec<&Measured> = outcome.outside_grid().collect();
    for (number, some) in others.chunks(SERIES_MAX).enumerate() {
        let title =
            if number == 0 { "configurations".to_owned() } else { format!("configurations, {}", number + 1) };
        let series = some.iter().map(|measured| series(outcome, measured, &measured.configuration.title));
        charts.push(chart(title, some, series.collect()));
    }
    charts
}

/// Where the other axes stand: at the first calibration figure that is a point of the grid.
fn reference(outcome: &StudyOutcome, grid: &GridPlan) -> Vec<usize> {
    let mut fitted_to =
        outcome.study.figures.calibration().iter().flat_map(|figure| figure.measure().configurations());
    let place = fitted_to.find_map(|place| {
        let id = &outcome.measured.get(place)?.configuration.id;
        grid.points.iter().find(|point| point.id == *id)
    });
    place.or(grid.points.first()).map_or_else(Vec::new, |point| point.places.clone())
}

fn axis_chart(
    outcome: &StudyOutcome,
    grid: &GridPlan,
    reference: &[usize],
    axis: usize,
    title: &str,
) -> Chart {
    let mut some = Vec::new();
    let mut curves = Vec::new();
    for (place, label) in grid.labels[axis].iter().enumerate() {
        let mut places = reference.to_vec();
        places[axis] = place;
        let point = grid.points.iter().find(|point| point.places == places);
        let measured = point
            .and_then(|point| outcome.measured.iter().find(|measured| measured.configuration.id == point.id));
        if let Some(measured) = measured {
            some.push(measured);
            curves.push(series(outcome, measured, label));
        }
    }
    let fixed = reference.iter().enumerate().filter(|(other, _)| *other != axis);
    let fixed: Vec<String> =
        fixed.map(|(other, place)| format!("{} {}", grid.axes[other], grid.labels[other][*place])).collect();
    chart(format!("by {title} ({})", fixed.join(", ")), &some, curves)
}

fn chart(title: String, some: &[&Measured], series: Vec<Series>) -> Chart {
    let limit = some.iter().find_map(|measured| match measured.configuration.setup.goal {
        Goal::LatencyLimit { limit_ms } => Some((limit_ms, format!("limit {limit_ms} ms"))),
        Goal::Users { .. } => None,
    });
    Chart {
        title,
        x_label: "I/Os per second".to_owned(),
        x_is_logarithmic: false,
        y_label: "mean latency (ms)".to_owned(),
        limit,
        series,
    }
}

/// Latency over rate. Where users were given, the few writes of a reading load would hide the reads, so reads count.
fn series(outcome: &StudyOutcome, measured: &Measured, label: &str) -> Series {
    let searched = matches!(measured.configuration.setup.goal, Goal::LatencyLimit { .. });
    let latency =
        |sample: &crate::search::Sample| if searched { sample.worse_latency_ms() } else { sample.latency_ms };
    let result = &measured.measurement.result;
    let published = published_iops(outcome, measured).map(|iops| (iops, latency(result)));
    Series {
        label: label.to_owned(),
        points: measured.measurement.curve.iter().map(|sample| (sample.iops, latency(sample))).collect(),
        result: Some((result.iops, latency(result))),
        published,
    }
}

fn published_iops(outcome: &StudyOutcome, measured: &Measured) -> Option<f64> {
    let place = outcome.measured.iter().position(|other| std::ptr::eq(other, measured))?;
    let mut figures = outcome.study.figures.reported();
    let figure = figures.find(|figure| *figure.measure == Measure::Of(Metric::Iops, place))?;
    figure.published?.number()
}
