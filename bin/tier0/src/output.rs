//! Results on stdout: texts, tables, JSON. A closed stdout is no failure.

use std::io::{ErrorKind, IsTerminal, Write};

use comfy_table::{CellAlignment, ContentArrangement, LineStyle, Table, TableStyle};
use serde::Serialize;

use crate::failure::Failure;

/// One line, under the header: rows stay one line apart and tables short.
const STYLE: TableStyle = TableStyle::new().header_separator(LineStyle::none().fill('─').junction('─'));

/// The narrowest terminal on which columns are worth reading.
const COLUMNS_WIDTH_MIN: u16 = 60;

/// Writes `text` to stdout as it is.
pub(crate) fn print(text: &str) -> Result<(), Failure> {
    let mut stdout = std::io::stdout().lock();
    let written = stdout.write_all(text.as_bytes()).and_then(|()| stdout.flush());
    written.map_err(|error| match error.kind() {
        ErrorKind::BrokenPipe => Failure::Unread,
        _ => Failure::Run(format!("cannot write the result: {error}; check where stdout leads")),
    })
}

/// `value` as indented JSON with a line feed.
///
/// # Panics
/// Where `value` has a map whose keys are no texts; the program's own types have none.
pub(crate) fn json(value: &impl Serialize) -> String {
    let text = serde_json::to_string_pretty(value);
    format!("{}\n", text.expect("the program's results can be written as JSON"))
}

/// A table in the program's style. On a terminal, long cells are wrapped to its width.
pub(crate) fn table(header: &[&str]) -> Table {
    let mut table = Table::new();
    table.load_style(STYLE);
    table.set_header(header);
    if let Some(width) = terminal_width() {
        table.set_content_arrangement(ContentArrangement::Dynamic);
        table.set_width(width);
    }
    table
}

/// The table as text: on a terminal that is too narrow for columns, one record per row with a line for each field.
pub(crate) fn rendered(table: &Table) -> String {
    match terminal_width() {
        Some(width) if width < COLUMNS_WIDTH_MIN => records(table),
        _ => table.trim_fmt(),
    }
}

/// Every row as lines of `field: value`, with an empty line between rows.
fn records(table: &Table) -> String {
    let fields: Vec<String> =
        table.header().into_iter().flat_map(|row| row.cell_iter()).map(|cell| cell.content()).collect();
    let record = |row: &comfy_table::Row| {
        let cells = row.cell_iter().map(|cell| cell.content().trim().replace('\n', " "));
        let lines = fields.iter().zip(cells).filter(|(_, value)| !value.is_empty());
        let line = |(field, value): (&String, String)| match field.trim() {
            "" => value,
            field => format!("{field}: {value}"),
        };
        lines.map(line).collect::<Vec<_>>().join("\n")
    };
    table.row_iter().map(record).collect::<Vec<_>>().join("\n\n")
}

/// Aligns columns of figures.
pub(crate) fn align_right(table: &mut Table, columns: impl IntoIterator<Item = usize>) {
    for index in columns {
        if let Some(column) = table.column_mut(index) {
            column.set_cell_alignment(CellAlignment::Right);
        }
    }
}

/// A figure without decimals, its thousands separated: `12,345`.
pub(crate) fn thousands(figure: f64) -> String {
    let digits = format!("{:.0}", figure.max(0.0));
    let mut text = String::new();
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// The columns of the terminal that stdout is, if it is one; `COLUMNS` in the environment is believed before.
pub(crate) fn terminal_width() -> Option<u16> {
    let told = std::env::var("COLUMNS").ok().and_then(|columns| columns.parse().ok());
    if told.is_some_and(|columns: u16| columns > 0) {
        return told;
    }
    let stdout = std::io::stdout();
    let size = terminal_size::terminal_size_of(&stdout).filter(|_| stdout.is_terminal())?;
    Some(size.0.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_become_records_where_columns_do_not_fit() {
        let mut table = table(&["drive", "state", ""]);
        table.add_row(["d0", "active", "note"]);
        table.add_row(["d1", "", ""]);
        assert_eq!(records(&table), "drive: d0\nstate: active\nnote\n\ndrive: d1");
    }

    #[test]
    fn thousands_are_separated() {
        for (figure, text) in [(0.0, "0"), (999.6, "1,000"), (12_345.0, "12,345"), (1e6, "1,000,000")] {
            assert_eq!(thousands(figure), text);
        }
    }
}
