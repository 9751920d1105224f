//! From measurements to the figures of a study.

use crate::measure::Measurement;
use crate::record::Figure;
use crate::study::{Configuration, Measure, Metric, Order};

/// The figure of a measure; nothing where a configuration has none.
pub(crate) fn figure(
    measure: &Measure,
    configurations: &[Configuration],
    measurements: &[Measurement],
) -> Option<Figure> {
    let of = |place: usize| measurements.get(place);
    match measure {
        Measure::Order(order) => statement(order, configurations, measurements).map(Figure::Text),
        _ => number(measure, configurations, &of).map(Figure::Number),
    }
}

/// The number of a measure; an order has none.
pub(crate) fn number<'a>(
    measure: &Measure,
    configurations: &[Configuration],
    of: &dyn Fn(usize) -> Option<&'a Measurement>,
) -> Option<f64> {
    let metric = |metric: Metric, place: usize| of(place)?.metric(metric);
    let drives = |place: usize| f64::from(configurations[place].setup.drives_in_all());
    match measure {
        Measure::Of(which, place) => metric(*which, *place),
        Measure::Ratio(which, a, b) => Some(metric(*which, *a)? / metric(*which, *b)?),
        Measure::RatioPerDrive(which, a, b) => {
            Some(metric(*which, *a)? / drives(*a) / (metric(*which, *b)? / drives(*b)))
        }
        Measure::Order(_) => None,
    }
}

/// Half the width of the 95 % interval that the simulation leaves a figure, as a share of it; an order has none.
pub(crate) fn half_width<'a>(
    measure: &Measure,
    of: &dyn Fn(usize) -> Option<&'a Measurement>,
) -> Option<f64> {
    let of = |metric: Metric, place: usize| of(place)?.half_width(metric);
    match measure {
        Measure::Of(metric, place) => of(*metric, *place),
        Measure::Ratio(metric, a, b) | Measure::RatioPerDrive(metric, a, b) => {
            Some(of(*metric, *a)?.hypot(of(*metric, *b)?))
        }
        Measure::Order(_) => None,
    }
}

/// "a > b and a > c", with the relations that were found.
fn statement(
    order: &Order,
    configurations: &[Configuration],
    measurements: &[Measurement],
) -> Option<String> {
    let relation = |[first, second]: &[usize; 2]| {
        let (a, b) =
            (measurements[*first].metric(order.metric)?, measurements[*second].metric(order.metric)?);
        let sign = match a.total_cmp(&b) {
            std::cmp::Ordering::Greater => ">",
            std::cmp::Ordering::Equal => "=",
            std::cmp::Ordering::Less => "<",
        };
        Some(format!("{} {sign} {}", configurations[*first].id, configurations[*second].id))
    };
    let relations: Option<Vec<String>> = order.pairs.iter().map(relation).collect();
    relations.map(|relations| relations.join(" and "))
}
