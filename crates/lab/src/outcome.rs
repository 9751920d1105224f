//! From what was found to the figures of a study.

use crate::case::CaseReport;
use crate::measure::Measurement;
use crate::record::Figure;
use crate::study::{Measure, Metric, Order, Study};

/// What a load on an array or a database on an array gave.
#[derive(Clone, Debug)]
pub(crate) enum Finding {
    /// A load.
    Load(Box<Measurement>),
    /// A database.
    Case(Box<CaseReport>),
}

impl Finding {
    fn metric(&self, metric: Metric) -> Option<f64> {
        match self {
            Finding::Load(measurement) => measurement.metric(metric),
            Finding::Case(report) => report.metric(metric),
        }
    }

    fn half_width(&self, metric: Metric) -> Option<f64> {
        match self {
            Finding::Load(measurement) => measurement.half_width(metric),
            Finding::Case(report) => report.half_width(metric),
        }
    }
}

/// The figure of a measure; nothing where one of the findings has none.
pub(crate) fn figure<'a>(
    measure: &Measure,
    study: &Study,
    of: &dyn Fn(usize) -> Option<&'a Finding>,
) -> Option<Figure> {
    match measure {
        Measure::Order(order) => statement(order, study, of).map(Figure::Text),
        _ => number(measure, study, of).map(Figure::Number),
    }
}

/// The number of a measure; an order has none.
pub(crate) fn number<'a>(
    measure: &Measure,
    study: &Study,
    of: &dyn Fn(usize) -> Option<&'a Finding>,
) -> Option<f64> {
    let metric = |metric: Metric, place: usize| of(place)?.metric(metric);
    let drives = |place: usize| Some(f64::from(study.configurations.get(place)?.setup.drives_in_all()));
    match measure {
        Measure::Of(which, place) => metric(*which, *place),
        Measure::Ratio(which, a, b) => Some(metric(*which, *a)? / metric(*which, *b)?),
        Measure::RatioPerDrive(which, a, b) => {
            Some(metric(*which, *a)? / drives(*a)? / (metric(*which, *b)? / drives(*b)?))
        }
        Measure::Change(which, a, b) => Some((metric(*which, *a)? / metric(*which, *b)? - 1.0) * 100.0),
        Measure::Order(_) => None,
    }
}

/// Half the width of the 95 % interval that the simulation leaves a figure, as a share of it; an order has none, and neither has a
/// change, which may be zero.
pub(crate) fn half_width<'a>(measure: &Measure, of: &dyn Fn(usize) -> Option<&'a Finding>) -> Option<f64> {
    let of = |metric: Metric, place: usize| of(place)?.half_width(metric);
    match measure {
        Measure::Of(metric, place) => of(*metric, *place),
        Measure::Ratio(metric, a, b) | Measure::RatioPerDrive(metric, a, b) => {
            Some(of(*metric, *a)?.hypot(of(*metric, *b)?))
        }
        Measure::Change(..) | Measure::Order(_) => None,
    }
}

/// "a > b and a > c", with the relations that were found.
fn statement<'a>(order: &Order, study: &Study, of: &dyn Fn(usize) -> Option<&'a Finding>) -> Option<String> {
    let metric = |place: usize| of(place)?.metric(order.metric);
    let relation = |[first, second]: &[usize; 2]| {
        let sign = match metric(*first)?.total_cmp(&metric(*second)?) {
            std::cmp::Ordering::Greater => ">",
            std::cmp::Ordering::Equal => "=",
            std::cmp::Ordering::Less => "<",
        };
        Some(format!("{} {sign} {}", study.id_at(*first), study.id_at(*second)))
    };
    let relations: Option<Vec<String>> = order.pairs.iter().map(relation).collect();
    relations.map(|relations| relations.join(" and "))
}
