//! Requests and latency over time as an HTML page.

use tier0_lab::report::{Chart, Provenance, Series, curves_html};

use super::{Compared, array};
use crate::error::BenchError;
use crate::machine;

/// Two charts for each load.
pub(super) fn render(compared: &[Compared]) -> Result<String, BenchError> {
    let charts = compared.iter().flat_map(|one| {
        [chart(one, "requests per second", |point| point.1), chart(one, "mean latency, ms", |point| point.2)]
    });
    let provenance = Provenance {
        command: "cargo xtask bench tier --html FILE".to_owned(),
        version: env!("CARGO_PKG_VERSION").to_owned(),
        commit: machine::commit(),
    };
    curves_html("Disks, a read cache and a tier", &array::sizes(), charts.collect(), &provenance)
        .map_err(|error| BenchError::Failed(error.to_string()))
}

fn chart(compared: &Compared, figure: &str, value: impl Fn(&(f64, f64, f64)) -> f64) -> Chart {
    let series = compared.all.iter().map(|(flash, figures)| Series {
        label: flash.name().to_owned(),
        points: figures.points.iter().map(|point| (point.0, value(point))).collect(),
        result: None,
        published: None,
    });
    Chart {
        title: format!("{}: {figure}", compared.scene.name),
        x_label: "seconds since a cold start".to_owned(),
        x_is_logarithmic: false,
        y_label: figure.to_owned(),
        limit: None,
        series: series.collect(),
    }
}
