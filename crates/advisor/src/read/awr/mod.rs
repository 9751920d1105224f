//! AWR and Statspack reports of Oracle, as text and as HTML. Tables are found by their headings and columns, so releases that add
//! or move columns are read as well.
//!
//! | file | concept |
//! |---|---|
//! | `text` | tables of a text: columns by the ruler of dashes |
//! | `html` | tables of a page |
//! | `tables` | what tables mean |
//! | `segments` | I/Os and times of segments |

mod html;
mod segments;
mod tables;
mod text;

use std::io::BufRead;

use super::error::ReadError;
use crate::evidence::Collector;

/// A table of a report.
#[derive(Clone, Debug, Default, PartialEq)]
struct Table {
    /// Everything that names it: headings before it, its summary.
    heading: String,
    /// Names of columns.
    header: Vec<String>,
    rows: Vec<Vec<String>>,
}

/// The most rows that are kept of a report.
const ROWS_MAX: usize = 200_000;
/// The most columns of a table.
const COLUMNS_MAX: usize = 200;

/// Reads a report as text.
pub(super) fn read_text(file: &str, input: &mut dyn BufRead, to: &mut Collector) -> Result<(), ReadError> {
    let mut report = tables::Report::default();
    let lines = text::read(file, input, &mut report)?;
    report.deliver(file, lines, to)
}

/// Reads a report as HTML.
pub(super) fn read_html(file: &str, input: &mut dyn BufRead, to: &mut Collector) -> Result<(), ReadError> {
    let mut report = tables::Report::default();
    let lines = html::read(file, input, &mut report)?;
    report.deliver(file, lines, to)
}
