//! What both reports open with: which configuration is best under the load, and how far to trust that.

use tier0_units::counted;

use super::view::{RecordLine, interval, predictions};
use crate::ranking::{Ranked, Ranking, rankings};
use crate::record::format_number;
use crate::run::{Measured, StudyOutcome};
use crate::study::Metric;

const TB: f64 = 1e12;

/// The configurations of one load.
pub(super) struct RankingTable {
    pub(super) load: String,
    pub(super) lines: Vec<RankedLine>,
}

/// A configuration as a line of it.
pub(super) struct RankedLine {
    pub(super) rank: String,
    pub(super) id: String,
    pub(super) title: String,
    pub(super) iops: String,
    pub(super) interval: String,
    pub(super) p99_ms: String,
    pub(super) usable_tb: String,
    pub(super) drives: String,
    pub(super) watts: String,
    pub(super) headroom: String,
    pub(super) saturates: String,
}

impl RankedLine {
    fn of(ranked: Ranked) -> RankedLine {
        let (headroom, saturates) = ranked
            .headroom
            .map_or_else(Default::default, |(share, resource)| (format!("{:.0} %", share * 100.0), resource));
        RankedLine {
            rank: ranked.rank.to_string(),
            id: ranked.id,
            title: ranked.title,
            iops: ranked.iops.map_or("limit not kept".to_owned(), format_number),
            interval: interval(ranked.half_width),
            p99_ms: format_number(ranked.p99_ms),
            usable_tb: format_number(ranked.usable.0 as f64 / TB),
            drives: ranked.drives.to_string(),
            watts: format_number(ranked.drive_watts.round()),
            headroom,
            saturates,
        }
    }
}

pub(super) fn ranking_tables(outcome: &StudyOutcome) -> Vec<RankingTable> {
    let table = |ranking: Ranking| RankingTable {
        load: ranking.load,
        lines: ranking.lines.into_iter().map(RankedLine::of).collect(),
    };
    rankings(outcome).into_iter().map(table).collect()
}

/// How far to trust the figures, in one sentence.
pub(super) fn trust(
    outcome: &StudyOutcome,
    lines: &[RecordLine],
    assumptions: usize,
    imported: usize,
) -> String {
    let evidence = match predictions(lines) {
        (_, 0) => "no published figure tests them as a prediction".to_owned(),
        (within, compared) => {
            format!("{within} of {compared} published predictions are within their tolerance")
        }
    };
    let rates = lines.iter().zip(&outcome.records).filter(|(line, _)| line.unit == "IOPS");
    let mut widths: Vec<Option<f64>> = rates.map(|(_, judged)| judged.half_width).collect();
    if widths.is_empty() {
        // No record is a rate: those of the configurations are what the ranking shows.
        let of = |measured: &Measured| measured.measurement.half_width(Metric::Iops);
        widths = outcome.outside_grid().map(of).collect();
    }
    let widest = widths
        .iter()
        .flatten()
        .copied()
        .fold(None, |most: Option<f64>, one| Some(most.map_or(one, |most| most.max(one))));
    let unknown = widths.iter().filter(|width| width.is_none()).count();
    let scatter = match (widest, unknown) {
        (None, _) => "how far the simulation's rates scatter is not known".to_owned(),
        (Some(widest), 0) => format!("the simulation leaves rates ± {:.1} % at most", widest * 100.0),
        (Some(widest), unknown) => format!(
            "the simulation leaves rates ± {:.1} % at most, and {unknown} of {} unknown",
            widest * 100.0,
            widths.len()
        ),
    };
    let imported = match imported {
        0 => String::new(),
        imported => format!(" and {} fitted before", counted(imported as u64, "parameter")),
    };
    format!(
        "How far to trust these figures: {evidence}; {scatter}; they rest on {assumptions} assumptions{imported}, and \"tier0 lab \
         sensitivity\" shows which of the study's move them."
    )
}
