//! The benchmarks.

pub(crate) mod cache;
pub(crate) mod curves;
pub(crate) mod databases;
pub(crate) mod durability;
pub(crate) mod fairness;
pub(crate) mod file;
pub(crate) mod hybrid;
pub(crate) mod idle;
pub(crate) mod metadata;
pub(crate) mod nbd;
pub(crate) mod qos;
pub(crate) mod rebuild;
pub(crate) mod recovery;
mod served;
pub(crate) mod small_writes;
pub(crate) mod stats;
mod through_nbd;
pub(crate) mod tier;
pub(crate) mod virtual_time;

use std::path::Path;

use comfy_table::{CellAlignment, LineStyle, Table, TableStyle};
use tempfile::TempDir;

use crate::error::BenchError;

/// A table whose columns but the first are figures.
pub(crate) fn table(header: &[&str]) -> Table {
    let mut table = Table::new();
    table.load_style(TableStyle::new().header_separator(LineStyle::none().fill('-').junction('-')));
    table.set_header(header);
    table.column_iter_mut().skip(1).for_each(|column| column.set_cell_alignment(CellAlignment::Right));
    table
}

/// A directory for sockets and files of one benchmark.
fn scratch() -> Result<TempDir, BenchError> {
    tempfile::tempdir().map_err(BenchError::system("no temporary directory can be made"))
}

fn write(path: &Path, text: &str) -> Result<(), BenchError> {
    std::fs::write(path, text).map_err(BenchError::system(format!("{} cannot be written", path.display())))
}

/// Runs two things in the order of a round, which is the last one's reversed: a shared machine is faster and slower by the
/// second.
fn in_turn<T>(
    number: u32,
    one: impl FnOnce() -> Result<T, BenchError>,
    other: impl FnOnce() -> Result<T, BenchError>,
) -> Result<(T, T), BenchError> {
    if number.is_multiple_of(2) {
        return Ok((one()?, other()?));
    }
    let second = other()?;
    Ok((one()?, second))
}

/// `1.23 x: reached` or `missed`, for a ratio that should be at least `least`.
fn judge_at_least(ratio: f64, least: f64) -> &'static str {
    if ratio >= least { "reached" } else { "missed" }
}

/// The same for a figure that should be at most `most`.
fn judge_at_most(figure: f64, most: f64) -> &'static str {
    if figure <= most { "reached" } else { "missed" }
}
