//! What both reports show, as texts.

use crate::record::{Figure, Role, Verdict, WITHHELD, format_number};
use crate::run::{JudgedRecord, Measured};

/// A record as a line of a table.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct RecordLine {
    pub(super) id: String,
    pub(super) value: String,
    pub(super) unit: String,
    pub(super) role: Role,
    pub(super) published: String,
    pub(super) error: String,
    pub(super) tolerance: String,
    pub(super) verdict: Verdict,
    /// The signed distance from the published figure, with 1 at the tolerance's edge.
    pub(super) distance: Option<f64>,
}

impl RecordLine {
    pub(super) fn of(judged: &JudgedRecord) -> RecordLine {
        let record = &judged.record;
        let text = |figure: &Option<Figure>| figure.as_ref().map_or("–".to_owned(), Figure::to_string);
        let numbers = record
            .value
            .as_ref()
            .and_then(Figure::number)
            .zip(record.published.as_ref().and_then(Figure::number));
        let distance = judged.tolerance.zip(numbers).and_then(|(tolerance, (value, published))| {
            Some(tolerance.distance_from_published(value, published)?.copysign(value - published))
        });
        RecordLine {
            id: record.id.clone(),
            value: text(&record.value),
            unit: record.unit.clone(),
            role: record.role,
            published: record.published.as_ref().map_or(String::new(), Figure::to_string),
            error: record.error.map_or(String::new(), |error| format!("{:+.1} %", error * 100.0)),
            tolerance: judged.tolerance.map_or(String::new(), |tolerance| tolerance.to_string()),
            verdict: record.judge(judged.tolerance.as_ref()),
            distance,
        }
    }

    /// Whether anything was ever published of it, even if kept back.
    pub(super) fn is_published(&self) -> bool {
        !self.published.is_empty()
    }

    /// The id without the study's.
    pub(super) fn name(&self) -> &str {
        self.id.split_once('.').map_or(&self.id, |(_, name)| name)
    }

    /// The class of the value's cell: numbers are aligned and never broken, statements may be.
    pub(super) fn number_class(&self) -> &'static str {
        if self.value.chars().any(char::is_alphabetic) { "t" } else { "n" }
    }

    pub(super) fn is_withheld(&self) -> bool {
        self.published == WITHHELD
    }
}

/// How many of the published predictions are within their tolerance, and how many there are. Other figures are no evidence.
pub(super) fn predictions(lines: &[RecordLine]) -> (usize, usize) {
    let compared =
        || lines.iter().filter(|line| line.role == Role::Prediction && line.verdict != Verdict::Open);
    (compared().filter(|line| line.verdict == Verdict::Within).count(), compared().count())
}

/// A configuration's measurement as a line of a table.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct MeasurementLine {
    pub(super) id: String,
    pub(super) iops: String,
    pub(super) megabytes_per_s: String,
    pub(super) read_ms: String,
    pub(super) write_ms: String,
    pub(super) outstanding: String,
    pub(super) busiest: String,
}

impl MeasurementLine {
    pub(super) fn of(measured: &Measured) -> MeasurementLine {
        let result = &measured.measurement.result;
        let ms = |latency: Option<f64>| latency.map_or("–".to_owned(), format_number);
        let busiest = measured.measurement.usage.busiest();
        MeasurementLine {
            id: measured.configuration.id.clone(),
            iops: format_number(result.iops),
            megabytes_per_s: format_number(result.megabytes_per_s),
            read_ms: ms(result.read_latency_ms),
            write_ms: ms(result.write_latency_ms),
            outstanding: result.outstanding.to_string(),
            busiest: busiest
                .map_or(String::new(), |row| format!("{} {:.0} %", row.resource, row.busy * 100.0)),
        }
    }
}
