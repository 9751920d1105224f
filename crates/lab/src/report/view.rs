//! What both reports show, as texts.

use tier0_catalog::{LookupError, SourceKind};
use tier0_units::counted;

use super::{CatalogParameter, parameters_of_kind};
use crate::calibrate::Fitted;
use crate::record::{Figure, Role, Verdict, WITHHELD, format_number};
use crate::run::{JudgedRecord, Measured};
use crate::study::{Goal, Study};
use crate::work::{FlushShares, Took};

/// Beyond this share of its tolerance a fitted figure is near the edge.
const EDGE_SHARE: f64 = 0.8;

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
    /// What a straight line through other published figures says.
    pub(super) straight_line: String,
    pub(super) verdict: Verdict,
    /// The signed distance from the published figure, with 1 at the tolerance's edge.
    pub(super) distance: Option<f64>,
    /// The 95 % interval that the simulation leaves the value, and the band of what is published nowhere.
    pub(super) interval: String,
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
            straight_line: record.straight_line.map_or(String::new(), format_number),
            verdict: record.judge(judged.tolerance.as_ref()),
            distance,
            interval: match record.band {
                None => interval(judged.half_width),
                Some([low, high]) => {
                    let width = interval(judged.half_width);
                    let between = if width.is_empty() { "" } else { ", " };
                    format!("{width}{between}{} to {}", format_number(low), format_number(high))
                }
            },
        }
    }

    /// A figure that was fitted to and has hardly come within its tolerance: the mechanism pulls elsewhere.
    pub(super) fn is_near_edge(&self) -> bool {
        self.role == Role::Calibration
            && self.verdict == Verdict::Within
            && self.distance.is_some_and(|distance| distance.abs() > EDGE_SHARE)
    }

    /// Whether anything was ever published of it, even if kept back.
    pub(super) fn is_published(&self) -> bool {
        !self.published.is_empty()
    }

    /// Whether it is a point of the study's grid.
    pub(super) fn is_of_grid(&self, study: &Study) -> bool {
        study.grid.iter().flat_map(|grid| &grid.points).any(|point| point.id == self.name())
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

/// Half the width of a 95 % interval; nothing where it is not known.
pub(super) fn interval(half_width: Option<f64>) -> String {
    half_width.map_or(String::new(), |share| format!("± {:.1} %", share * 100.0))
}

/// The values of a fitted parameter at which every calibration figure is within its tolerance.
pub(super) fn agrees(parameter: &Fitted) -> String {
    match parameter.agrees {
        Some([low, high]) if low < high => format!("{} to {}", format_number(low), format_number(high)),
        Some([only, _]) => format!("at {}", format_number(only)),
        None => "nowhere".to_owned(),
    }
}

/// What is to be said of a fitted parameter.
pub(super) fn doubts(parameter: &Fitted) -> Vec<&'static str> {
    let mut doubts = Vec::new();
    if parameter.at_bound {
        doubts.push("at its bound: the mechanism is in doubt");
    }
    if parameter.is_vague {
        doubts.push("the calibration hardly says what it is");
    }
    doubts
}

/// How many of the published predictions are within their tolerance, and how many there are. Other figures are no evidence.
pub(super) fn predictions(lines: &[RecordLine]) -> (usize, usize) {
    let compared =
        || lines.iter().filter(|line| line.role == Role::Prediction && line.verdict != Verdict::Open);
    (compared().filter(|line| line.verdict == Verdict::Within).count(), compared().count())
}

/// What an array did for a load, as a line of a table.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct WorkLine {
    pub(super) id: String,
    pub(super) drive_reads: String,
    pub(super) drive_writes: String,
    pub(super) drive_read_ms: String,
    pub(super) drive_write_ms: String,
    pub(super) log_ms: String,
    pub(super) destaged_kib: String,
    pub(super) flushed: String,
    pub(super) delayed: String,
    pub(super) read_hits: String,
}

impl WorkLine {
    pub(super) fn of(measured: &Measured) -> WorkLine {
        let work = &measured.measurement.work;
        let took = |took: Option<Took>| {
            took.map_or("–".to_owned(), |took| {
                format!("{} / {}", format_number(took.mean_ms), format_number(took.p99_ms))
            })
        };
        WorkLine {
            id: measured.configuration.id.clone(),
            drive_reads: format!("{:.3}", work.drive_reads),
            drive_writes: format!("{:.3}", work.drive_writes),
            drive_read_ms: took(work.drive_read),
            drive_write_ms: took(work.drive_write),
            log_ms: took(work.log),
            destaged_kib: work.destaged_kib.map_or("–".to_owned(), format_number),
            flushed: work.flushed.map_or("–".to_owned(), flush_shares),
            delayed: work.delay_ms.map_or("–".to_owned(), |ms| {
                format!("{:.0} % / {}", work.delayed_writes * 100.0, format_number(ms))
            }),
            read_hits: match (work.read_hits, work.flash_hits) {
                (memory, None) => hit_rate(memory),
                (memory, flash) => format!("{} / {}", hit_rate(memory), hit_rate(flash)),
            },
        }
    }
}

fn hit_rate(share: Option<f64>) -> String {
    share.map_or("–".to_owned(), |share| format!("{:.1} %", share * 100.0))
}

/// Percent of the pages that were destaged: idle, between the watermarks, forced; and what was demanded, if anything was.
pub(super) fn flush_shares(shares: FlushShares) -> String {
    let FlushShares { idle, high_watermark, forced, demanded } = shares;
    let mut told = vec![idle, high_watermark, forced];
    told.extend(Some(demanded).filter(|share| *share > 0.0));
    let told: Vec<String> = told.iter().map(|share| format!("{:.0}", share * 100.0)).collect();
    told.join(" / ")
}

/// A parameter of the catalogue that was fitted elsewhere, as a line of a table.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct ImportedLine {
    pub(super) entry: String,
    pub(super) parameter: String,
    pub(super) value: String,
    pub(super) fitted_to: String,
    pub(super) source: String,
}

/// The parameters of the catalogue that a study rests on and that were fitted to figures.
pub(super) fn imported(study: &Study) -> Result<Vec<ImportedLine>, LookupError> {
    let line = |row: CatalogParameter| ImportedLine {
        entry: row.entry,
        parameter: row.parameter,
        value: row.value,
        fitted_to: row.fitted_to.join(", "),
        source: row.source,
    };
    Ok(parameters_of_kind(study, SourceKind::Fitted)?.into_iter().map(line).collect())
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
            outstanding: match measured.configuration.setup.goal {
                Goal::LatencyLimit { .. } => result.outstanding.to_string(),
                Goal::Users { users, .. } => counted(users.into(), "user"),
            },
            busiest: busiest
                .map_or(String::new(), |row| format!("{} {:.0} %", row.resource, row.busy * 100.0)),
        }
    }
}
