//! The curves as an HTML page.

use tier0_lab::report::{Chart, Provenance, Series, curves_html};

use super::{Pair, scene};
use crate::error::BenchError;
use crate::machine;

/// One chart for each pair.
pub(super) fn render(pairs: &[Pair]) -> Result<String, BenchError> {
    let charts = pairs.iter().map(chart).collect();
    let provenance = Provenance {
        command: "cargo xtask bench curves --html FILE".to_owned(),
        version: env!("CARGO_PKG_VERSION").to_owned(),
        commit: machine::commit(),
    };
    curves_html("An array with caches and without", &scene::sizes(), charts, &provenance)
        .map_err(|error| BenchError::Failed(error.to_string()))
}

fn chart(pair: &Pair) -> Chart {
    let series = |label: &str, points: &[(f64, f64)]| Series {
        label: label.to_owned(),
        points: points.to_vec(),
        result: None,
        published: None,
    };
    Chart {
        title: format!("{}: {}", pair.name, pair.of),
        x_label: "seconds since a cold start".to_owned(),
        x_is_logarithmic: false,
        y_label: format!("{} per second", pair.of),
        limit: None,
        series: vec![series("with caches", &pair.with.points), series("without", &pair.without.points)],
    }
}
