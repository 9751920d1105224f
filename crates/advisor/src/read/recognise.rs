//! Which kind of report a file is, by its first lines.

use super::csv::{TYPE_MARK, delimiter, plain};
use super::{iostat, mysql_status, sar};
use crate::evidence::Format;
use crate::samples::{mysql, postgres};

/// A kind of file, with the delimiter of tables.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Found {
    Files(Format, u8),
    BlitzResult(u8),
    Objects(u8),
    Perfmon(u8),
    Iostat,
    Sar,
    AwrText,
    AwrHtml,
    MysqlStatus,
    /// Samples that `tier0 advise collect` has taken.
    Collected(Format),
}

impl Found {
    /// The format that it counts as.
    pub(super) fn format(self) -> Format {
        match self {
            Found::Files(format, _) => format,
            Found::BlitzResult(_) => Format::BlitzFirst,
            Found::Objects(_) => Format::ObjectStatistics,
            Found::Perfmon(_) => Format::Perfmon,
            Found::Iostat => Format::Iostat,
            Found::Sar => Format::Sar,
            Found::AwrText | Found::AwrHtml => Format::Awr,
            Found::MysqlStatus => Format::MysqlStatus,
            Found::Collected(format) => format,
        }
    }
}

/// What the first bytes are of, or why that is not known and the remedy.
pub(super) fn recognise(head: &[u8]) -> Result<Found, String> {
    if head.iter().all(u8::is_ascii_whitespace) {
        return Err("the file is empty; give a report with its content".to_owned());
    }
    if head.iter().take(64).filter(|byte| **byte == 0).count() > 8 {
        return Err(
            "the file is binary; print sar files by \"sar -u -d -f FILE\" and Perfmon logs by \"relog -f csv\"".to_owned()
        );
    }
    let text = String::from_utf8_lossy(head);
    let text = text.trim_start();
    let marks = [
        (postgres::MARK, Format::Postgresql),
        (mysql::MARK, Format::Mysql),
        (mysql::MARK_MARIADB, Format::Mariadb),
    ];
    let is_marked = |(mark, _): &(&str, Format)| {
        text.lines().next().is_some_and(|line| line.contains(&format!("\"{mark}\"")))
    };
    if text.starts_with('{')
        && let Some((_, format)) = marks.into_iter().find(is_marked)
    {
        return Ok(Found::Collected(format));
    }
    let lower = text.to_ascii_lowercase();
    if lower.starts_with('<') {
        let is_awr =
            ["awr", "workload repository", "statspack", "db name"].iter().any(|word| lower.contains(word));
        return match is_awr {
            true => Ok(Found::AwrHtml),
            false => Err("the page is no AWR report; give the report that awrrpt.sql writes".to_owned()),
        };
    }
    let first = text.lines().find(|line| !line.starts_with(TYPE_MARK)).unwrap_or_default();
    if let Some(table) = of_header(first) {
        return Ok(table);
    }
    if ["workload repository report", "statspack report", "awr report", "db/inst:"]
        .iter()
        .any(|word| lower.contains(word))
    {
        return Ok(Found::AwrText);
    }
    if text.lines().any(iostat::is_header)
        || text.lines().any(|line| line.starts_with("Device") && line.contains("tps"))
    {
        return Ok(Found::Iostat);
    }
    let of_sar = |line: &str| sar::timed(line).is_some_and(|(_, words)| sar::is_header(&words));
    if text.lines().any(of_sar) {
        return Ok(Found::Sar);
    }
    if text.lines().any(mysql_status::has_reads) {
        return Ok(Found::MysqlStatus);
    }
    Err(
        "the kind of file is not recognised; known are SQL Server file statistics with their header as CSV, sp_BlitzFirst, object \
         execution statistics, Perfmon CSV (relog), iostat -x, sar, AWR and Statspack, MySQL status, and files of \"tier0 advise \
         collect\"; if it is a table, its header may be missing: export it with column names (SSMS: Query Options, Results, \"Include \
         column headers\")"
            .to_owned(),
    )
}

/// The table of a header line.
fn of_header(line: &str) -> Option<Found> {
    let delimiter = delimiter(line);
    if line.trim_start_matches('"').starts_with("(PDH-CSV") {
        return Some(Found::Perfmon(delimiter));
    }
    let names: Vec<String> = line.split(char::from(delimiter)).map(plain).collect();
    let has = |name: &str| names.iter().any(|known| known == name);
    if has("pattern") && has("readswrites") {
        return Some(Found::BlitzResult(delimiter));
    }
    let reads = ["numberreads", "numofreads", "numberofreads"].iter().any(|name| has(name));
    let writes = ["numberwrites", "numofwrites", "numberofwrites"].iter().any(|name| has(name));
    if reads && writes {
        let format = match () {
            () if has("numberreads") => Format::FileStatistics,
            () if has("checkdate") => Format::BlitzFirst,
            () => Format::VirtualFileStats,
        };
        return Some(Found::Files(format, delimiter));
    }
    let physical = ["totalphysicalreads", "physicalreads", "numphysicalreads"].iter().any(|name| has(name));
    physical.then_some(Found::Objects(delimiter))
}
