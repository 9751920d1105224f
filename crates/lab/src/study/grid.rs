//! The grid of a study: the product of its axes.

use super::file::GridSection;
use super::plan::{GridPlan, GridPoint};
use super::setup::SetupPatch;

/// The grid, and each point's id and patch, in the order of the axes, the last turning fastest.
pub(super) fn expand(section: &GridSection) -> (GridPlan, Vec<(String, String, SetupPatch)>) {
    let mut points: Vec<(Vec<usize>, SetupPatch)> = vec![(Vec::new(), SetupPatch::default())];
    for axis in &section.axes {
        let longer = points.iter().flat_map(|(places, patch)| {
            axis.point.iter().enumerate().map(|(place, point)| {
                let places = places.iter().copied().chain([place]).collect();
                (places, patch.overlaid(&point.set))
            })
        });
        points = longer.collect();
    }
    let join = |places: &[usize], pick: &dyn Fn(usize, usize) -> String, between: &str| {
        let parts: Vec<String> = places.iter().enumerate().map(|(axis, place)| pick(axis, *place)).collect();
        parts.join(between)
    };
    let id = |places: &[usize]| join(places, &|axis, place| section.axes[axis].point[place].id.clone(), ".");
    let label =
        |places: &[usize]| join(places, &|axis, place| section.axes[axis].point[place].label.clone(), ", ");
    let grid = GridPlan {
        metric: section.metric,
        unit: section.unit.clone(),
        axes: section.axes.iter().map(|axis| axis.title.get_ref().clone()).collect(),
        labels: section
            .axes
            .iter()
            .map(|axis| axis.point.iter().map(|p| p.label.clone()).collect())
            .collect(),
        points: points
            .iter()
            .map(|(places, _)| GridPoint { id: id(places), places: places.clone() })
            .collect(),
    };
    let patches = points.into_iter().map(|(places, patch)| (id(&places), label(&places), patch)).collect();
    (grid, patches)
}
