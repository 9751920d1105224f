//! The grid as tables: the first axis down, the second across, a table for each point of the rest.

use crate::record::{Figure, Role, format_number};
use crate::run::StudyOutcome;
use crate::study::GridPlan;

/// One table.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Matrix {
    /// The point of the further axes.
    pub(super) title: String,
    /// What goes down and across.
    pub(super) corner: String,
    /// Labels across.
    pub(super) columns: Vec<String>,
    /// Labels down, with their cells.
    pub(super) rows: Vec<(String, Vec<Cell>)>,
}

/// One point.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Cell {
    /// The value.
    pub(super) text: String,
    /// Its share of the greatest value of the grid, in percent, for shading.
    pub(super) share: f64,
    /// The published figure, where there is one.
    pub(super) published: Option<String>,
    /// Whether it was fitted to.
    pub(super) calibration: bool,
}

/// The tables of a study's grid; none where it has no grid.
pub(super) fn matrices(outcome: &StudyOutcome) -> Vec<Matrix> {
    let Some(grid) = &outcome.study.grid else { return Vec::new() };
    let (down, across) = (grid.labels.first(), grid.labels.get(1));
    let Some(down) = down else { return Vec::new() };
    let one = vec![String::new()];
    let across = across.unwrap_or(&one);
    let most = grid.points.iter().filter_map(|point| value(outcome, &point.id)).fold(0.0, f64::max);
    rest(grid)
        .into_iter()
        .map(|places| {
            let row = |i: usize| {
                let cells = (0..across.len()).map(|j| cell(outcome, grid, i, j, &places, most));
                (down[i].clone(), cells.collect())
            };
            let named = places
                .iter()
                .enumerate()
                .map(|(axis, place)| format!("{} {}", grid.axes[axis + 2], grid.labels[axis + 2][*place]));
            Matrix {
                title: named.collect::<Vec<_>>().join(", "),
                corner: grid.axes.iter().take(2).cloned().collect::<Vec<_>>().join(" × "),
                columns: across.clone(),
                rows: (0..down.len()).map(row).collect(),
            }
        })
        .collect()
}

/// The points of the axes from the third on.
fn rest(grid: &GridPlan) -> Vec<Vec<usize>> {
    let mut places: Vec<Vec<usize>> = vec![Vec::new()];
    for labels in grid.labels.iter().skip(2) {
        let longer = places
            .iter()
            .flat_map(|place| (0..labels.len()).map(|next| place.iter().copied().chain([next]).collect()));
        places = longer.collect();
    }
    places
}

fn cell(outcome: &StudyOutcome, grid: &GridPlan, i: usize, j: usize, places: &[usize], most: f64) -> Cell {
    let wanted = [i, j].into_iter().chain(places.iter().copied());
    let wanted: Vec<usize> = wanted.take(grid.axes.len()).collect();
    let Some(point) = grid.points.iter().find(|point| point.places == wanted) else { return Cell::default() };
    let Some(value) = value(outcome, &point.id) else {
        return Cell { text: "–".into(), ..Cell::default() };
    };
    let id = format!("{}.{}", outcome.study.id, point.id);
    let record = outcome.records.iter().map(|judged| &judged.record).find(|record| record.id == id);
    Cell {
        text: format_number(value),
        share: if most > 0.0 { value / most * 100.0 } else { 0.0 },
        published: record.and_then(|record| record.published.as_ref()).map(Figure::to_string),
        calibration: record.is_some_and(|record| record.role == Role::Calibration),
    }
}

fn value(outcome: &StudyOutcome, id: &str) -> Option<f64> {
    let grid = outcome.study.grid.as_ref()?;
    let found = outcome.measured.iter().find(|measured| measured.configuration.id == id)?;
    found.measurement.metric(grid.metric)
}
