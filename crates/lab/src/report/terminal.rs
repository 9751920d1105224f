//! The report for a terminal: what was fitted, what that gives, what is predicted.

use std::fmt::Write as _;

use comfy_table::{CellAlignment, ContentArrangement, LineStyle, Table, TableStyle};

use super::answer::{ranking_tables, trust};
use super::caches::{neighbours, write_caches};
use super::cases::{COLUMNS, lines, sentences, terminal_table};
use super::matrix::matrices;
use super::view::{
    ImportedLine, MeasurementLine, RecordLine, WorkLine, agrees, doubts, imported, predictions,
};
use super::{Provenance, parameters_of_kind};
use tier0_catalog::SourceKind;

use crate::LabError;
use crate::profile::ProfileReport;
use crate::record::{Role, format_number};
use crate::run::StudyOutcome;

/// One line, under the header.
const STYLE: TableStyle = TableStyle::new().header_separator(LineStyle::none().fill('─').junction('─'));

/// The report as text without colour; with a width, long cells are wrapped to it.
///
/// # Errors
/// [`LabError::Lookup`] where the catalogue lacks what the study rests on.
pub fn terminal(
    outcome: &StudyOutcome,
    provenance: &Provenance,
    width: Option<u16>,
) -> Result<String, LabError> {
    let mut text = format!("{}\n{}\n", outcome.study.title, outcome.study.description);
    let lines: Vec<RecordLine> = outcome.records.iter().map(RecordLine::of).collect();
    let assumed = parameters_of_kind(&outcome.study, SourceKind::Assumed)?.len();
    let assumed = assumed + outcome.study.assumptions.len();
    let imported = imported(&outcome.study)?;
    ranked(&mut text, outcome, width);
    sentences(&outcome.cases).iter().for_each(|line| _ = write!(text, "\n{line}"));
    text.push_str(if outcome.cases.is_empty() { "" } else { "\n" });
    let _ = writeln!(text, "\n{}", trust(outcome, &lines, assumed, imported.len()));
    imports(&mut text, &imported, width);
    fitted(&mut text, outcome, width);
    let role = |role: Role| lines.iter().filter(move |line| line.role == role && line.is_published());
    records(
        &mut text,
        "calibration: parameters were fitted to these, so they prove nothing",
        role(Role::Calibration),
        width,
    );
    records(&mut text, "prediction: nothing was fitted to these", role(Role::Prediction), width);
    records(
        &mut text,
        "derived: true by construction, or quotients of figures that were fitted to, so they prove nothing",
        role(Role::Derived),
        width,
    );
    let is_unpublished =
        |line: &&RecordLine| line.role == Role::Unpublished && !line.is_of_grid(&outcome.study);
    let unpublished = lines.iter().filter(is_unpublished);
    records(&mut text, "unpublished: nothing to compare these with", unpublished, width);
    grid(&mut text, outcome, width);
    measurements(&mut text, outcome, width);
    databases(&mut text, outcome, width);
    work(&mut text, outcome, width);
    beside(&mut text, outcome, width);
    let (within, compared) = predictions(&lines);
    let evidence = match compared {
        0 => "none of the published figures is a prediction".to_owned(),
        compared => format!("{within} of {compared} published predictions within tolerance"),
    };
    let commit = provenance.commit.as_ref().map_or(String::new(), |commit| format!(", commit {commit}"));
    let _ = write!(
        text,
        "\n± is the 95 % interval of the simulation alone; what assumptions move is not in it; a range behind it is over assumptions \
         of which nothing says which holds\n{evidence} · {assumed} \
         assumptions (the HTML report and \
         \"tier0 catalog show\" list them)\n{} · seed {} · tier0 {}{commit} · {} simulated I/Os in {:.1} s\n",
        provenance.command,
        outcome.seed,
        provenance.version,
        format_number(outcome.simulated_ios as f64),
        outcome.elapsed.as_secs_f64(),
    );
    Ok(text)
}

/// The probes of a target's profile and what they come to, as text.
pub fn profile(report: &ProfileReport, width: Option<u16>) -> String {
    let header = ["under way", "IOPS", "MB/s", "mean ms", "read ms", "write ms", ""];
    let mut table = table(width, header, &[0, 1, 2, 3, 4, 5]);
    let ms = |latency: Option<f64>| latency.map_or("–".to_owned(), format_number);
    for sample in &report.found.probes {
        let beyond = sample.worse_latency_ms() > report.latency_limit_ms;
        table.add_row([
            sample.outstanding.to_string(),
            format_number(sample.iops),
            format_number(sample.megabytes_per_s),
            format_number(sample.latency_ms),
            ms(sample.read_latency_ms),
            ms(sample.write_latency_ms),
            if beyond { "beyond the limit".to_owned() } else { String::new() },
        ]);
    }
    let steadiness: String = report.steadiness().into_iter().map(|line| line + "\n").collect();
    format!("{table}\n\n{}\n{steadiness}", report.sentence())
}

fn ranked(text: &mut String, outcome: &StudyOutcome, width: Option<u16>) {
    for ranking in ranking_tables(outcome) {
        let header = [
            "",
            "configuration",
            "IOPS",
            "",
            "p99 ms",
            "usable TB",
            "drives",
            "W",
            "headroom",
            "first to saturate",
        ];
        let mut table = table(width, header, &[0, 2, 3, 4, 5, 6, 7, 8]);
        for l in ranking.lines {
            table.add_row([
                l.rank,
                l.id,
                l.iops,
                l.interval,
                l.p99_ms,
                l.usable_tb,
                l.drives,
                l.watts,
                l.headroom,
                l.saturates,
            ]);
        }
        let _ = writeln!(text, "\n{}\n{table}", ranking.load);
    }
}

fn fitted(text: &mut String, outcome: &StudyOutcome, width: Option<u16>) {
    let Some(fit) = &outcome.fit else { return };
    let mut table = table(width, ["fitted parameter", "value", "unit", "range", "agrees", ""], &[1]);
    for parameter in &fit.parameters {
        table.add_row([
            parameter.name.clone(),
            format_number(parameter.value),
            parameter.unit.clone(),
            format!("{} to {}", format_number(parameter.least), format_number(parameter.most)),
            agrees(parameter),
            doubts(parameter).join("; "),
        ]);
    }
    let _ = writeln!(
        text,
        "\nfitted in {} evaluations; \"agrees\": where every calibration figure is within its tolerance\n{table}",
        fit.evaluations
    );
}

fn imports(text: &mut String, imported: &[ImportedLine], width: Option<u16>) {
    if imported.is_empty() {
        return;
    }
    let mut table = table(width, ["of the catalogue", "parameter", "value", "fitted to"], &[2]);
    for l in imported {
        table.add_row([&l.entry, &l.parameter, &l.value, &l.fitted_to]);
    }
    let _ = writeln!(
        text,
        "\nparameters that were fitted before, to these figures, which they therefore do not predict\n{table}"
    );
}

fn records<'a>(
    text: &mut String,
    title: &str,
    lines: impl Iterator<Item = &'a RecordLine>,
    width: Option<u16>,
) {
    let lines: Vec<&RecordLine> = lines.collect();
    let has_line = lines.iter().any(|line| !line.straight_line.is_empty());
    let mut header = vec!["figure", "value", "", "unit", "published", "error", "tolerance", ""];
    header.extend(has_line.then_some("straight line"));
    let mut table = table(width, header, &[1, 2, 4, 5, 8]);
    for line in &lines {
        let verdict = match line.is_near_edge() {
            true => format!("{}, near its edge", line.verdict),
            false => line.verdict.to_string(),
        };
        let name = line.name();
        let mut row = vec![
            name,
            &line.value,
            &line.interval,
            &line.unit,
            &line.published,
            &line.error,
            &line.tolerance,
            &verdict,
        ];
        row.extend(has_line.then_some(line.straight_line.as_str()));
        table.add_row(row);
    }
    if !lines.is_empty() {
        let _ = writeln!(text, "\n{title}\n{table}");
    }
}

fn grid(text: &mut String, outcome: &StudyOutcome, width: Option<u16>) {
    let unit = outcome.study.grid.as_ref().map_or("", |grid| grid.unit.as_str());
    for matrix in matrices(outcome) {
        let header = std::iter::once(matrix.corner.clone()).chain(matrix.columns.iter().cloned());
        let right: Vec<usize> = (1..=matrix.columns.len()).collect();
        let mut table = table(width, header, &right);
        for (label, cells) in &matrix.rows {
            let cells = cells.iter().map(|cell| match cell.calibration {
                true => format!("* {}", cell.text),
                false => cell.text.clone(),
            });
            table.add_row(std::iter::once(label.clone()).chain(cells));
        }
        let _ = writeln!(text, "\n{unit}, {} (* fitted)\n{table}", matrix.title);
    }
}

fn measurements(text: &mut String, outcome: &StudyOutcome, width: Option<u16>) {
    let header = ["configuration", "IOPS", "MB/s", "read ms", "write ms", "under way", "busiest"];
    let mut table = table(width, header, &[1, 2, 3, 4, 5]);
    let mut any = false;
    for measured in outcome.outside_grid() {
        let l = MeasurementLine::of(measured);
        any = true;
        table.add_row([l.id, l.iops, l.megabytes_per_s, l.read_ms, l.write_ms, l.outstanding, l.busiest]);
    }
    if any {
        let _ = writeln!(text, "\n{table}");
    }
}

fn databases(text: &mut String, outcome: &StudyOutcome, width: Option<u16>) {
    if outcome.cases.is_empty() {
        return;
    }
    let table = terminal_table(lines(&outcome.cases), "database", "x first", None, width);
    let _ = writeln!(text, "\n{COLUMNS}\n{table}");
}

fn work(text: &mut String, outcome: &StudyOutcome, width: Option<u16>) {
    let header = [
        "configuration",
        "drive reads",
        "drive writes",
        "drive r ms",
        "drive w ms",
        "log ms",
        "destaged KiB",
        "flushed %",
        "delayed / ms",
        "read hits",
    ];
    let mut table = table(width, header, &[1, 2, 3, 4, 5, 6, 7, 8, 9]);
    let mut any = false;
    for measured in outcome.outside_grid() {
        let l = WorkLine::of(measured);
        any = true;
        table.add_row([
            l.id,
            l.drive_reads,
            l.drive_writes,
            l.drive_read_ms,
            l.drive_write_ms,
            l.log_ms,
            l.destaged_kib,
            l.flushed,
            l.delayed,
            l.read_hits,
        ]);
    }
    if any {
        let _ = writeln!(
            text,
            "\nwhat the arrays did, by their own counters: reads and writes of drives for one host I/O; ms: mean / 99th percentile of one command of a drive, or of a record of \
             the write log; flushed: shares of the pages that were destaged idle (below the low watermark) / between the \
             watermarks / forced (writers were delayed); delayed: writes that waited for room, for one write of a host, \
             and for how long on average; read hits: reads that found their pages in the read cache, of those that looked for \
             them, and behind a slash the same of a flash cache\n{table}"
        );
    }
}

/// Write caches that serve several groups of sets, and the loads beside the measured ones.
fn beside(text: &mut String, outcome: &StudyOutcome, width: Option<u16>) {
    let lines = write_caches(outcome.measured.iter());
    if !lines.is_empty() {
        let header =
            ["configuration", "write cache", "destaged MiB", "flushed %", "delayed writes", "", "ms each"];
        let mut table = table(width, header, &[2, 3, 4, 5, 6]);
        for l in lines {
            table.add_row([l.id, l.name, l.flushed_mib, l.flushed, l.delayed, l.delayed_percent, l.delay_ms]);
        }
        let _ = writeln!(
            text,
            "\nwrite caches: what they destaged, in percent idle / between the watermarks / forced / demanded, and the writes \
             that waited for room\n{table}"
        );
    }
    let lines = neighbours(outcome.measured.iter());
    if !lines.is_empty() {
        let header = ["configuration", "neighbour", "IOPS", "MB/s", "read ms", "write ms"];
        let mut table = table(width, header, &[2, 3, 4, 5]);
        for l in lines {
            table.add_row([l.id, l.name, l.iops, l.megabytes_per_s, l.read_ms, l.write_ms]);
        }
        let _ = writeln!(text, "\nthe loads beside the measured ones\n{table}");
    }
}

pub(super) fn table<T: Into<comfy_table::Cell>>(
    width: Option<u16>,
    header: impl IntoIterator<Item = T>,
    right: &[usize],
) -> Table {
    let mut table = Table::new();
    table.load_style(STYLE);
    if let Some(width) = width {
        table.set_content_arrangement(ContentArrangement::Dynamic).set_width(width);
    }
    table.set_header(header.into_iter().map(Into::into).collect::<Vec<comfy_table::Cell>>());
    for column in right {
        if let Some(column) = table.column_mut(*column) {
            column.set_cell_alignment(CellAlignment::Right);
        }
    }
    table
}
