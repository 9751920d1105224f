//! Results on stdout: texts, tables, JSON. A closed stdout is no failure.

use std::io::{ErrorKind, IsTerminal, Write};
use std::sync::atomic::{AtomicBool, Ordering};

use comfy_table::{CellAlignment, ColumnConstraint, ContentArrangement, LineStyle, Table, TableStyle, Width};
use serde::Serialize;

use crate::failure::Failure;

/// One line, under the header: rows stay one line apart and tables short.
const STYLE: TableStyle = TableStyle::new().header_separator(LineStyle::none().fill('─').junction('─'));

/// Blanks before and behind a cell's content, and those of a table that has no room for as many.
const PADDINGS: [(u16, u16); 2] = [(1, 1), (0, 1)];

/// Whether anything was written to stdout.
static HAS_PRINTED: AtomicBool = AtomicBool::new(false);

/// Why a verb has no result, for JSON.
#[derive(Serialize)]
struct Unfinished<'a> {
    /// `refused` (nothing was changed) or `failed`.
    result: &'a str,
    /// One sentence.
    text: String,
}

/// Tells as JSON why a verb has no result, unless it has said something already.
pub(crate) fn tell_failure(failure: &Failure) {
    let Some(text) = failure.text().filter(|_| !HAS_PRINTED.load(Ordering::Relaxed)) else { return };
    // It is said on stderr too, and the code says the rest.
    let _ = print(&json(&Unfinished { result: failure.result(), text }));
}

/// Writes `text` to stdout as it is.
pub(crate) fn print(text: &str) -> Result<(), Failure> {
    HAS_PRINTED.store(true, Ordering::Relaxed);
    let mut stdout = std::io::stdout().lock();
    let written = stdout.write_all(text.as_bytes()).and_then(|()| stdout.flush());
    written.map_err(|error| match error.kind() {
        ErrorKind::BrokenPipe => Failure::Unread,
        _ => Failure::Run(format!("cannot write to stdout: {error}; check where it is redirected")),
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

/// `value` as JSON on one line.
///
/// # Panics
/// As [`json`].
pub(crate) fn json_line(value: &impl Serialize) -> String {
    let text = serde_json::to_string(value);
    format!("{}\n", text.expect("the program's results can be written as JSON"))
}

/// A text of others, such as the name of a table, so that it cannot command a terminal: characters that control it, or the direction
/// of what is written, become their escapes.
pub(crate) fn escaped(text: &str) -> String {
    let is_harmful = |c: char| {
        c.is_control()
            || matches!(c, '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
    };
    let mut safe = String::with_capacity(text.len());
    for c in text.chars() {
        match is_harmful(c) {
            true => safe.extend(c.escape_unicode()),
            false => safe.push(c),
        }
    }
    safe
}

/// [`escaped`] for a text of several lines.
pub(crate) fn escaped_lines(text: &str) -> String {
    text.split('\n').map(escaped).collect::<Vec<_>>().join("\n")
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

/// The table as text: on a terminal that is too narrow for columns of whole words, one record per row with a line for
/// each field.
pub(crate) fn rendered(table: &Table) -> String {
    terminal_width().map_or_else(|| table.trim_fmt(), |width| rendered_at(table, width))
}

/// [`rendered`] on so many columns.
fn rendered_at(table: &Table, width: u16) -> String {
    let text = PADDINGS.iter().find_map(|padding| columns_at(table, width, *padding));
    text.unwrap_or_else(|| records(table, width.into()))
}

/// The table as columns of whole words, with so many blanks around them; none where that is wider than `width`.
fn columns_at(table: &Table, width: u16, padding: (u16, u16)) -> Option<String> {
    let words = longest_words(table);
    let blanks = padding.0 + padding.1;
    let least: u16 = words.iter().map(|word| word + blanks).sum();
    if least > width {
        return None;
    }
    let mut table = table.clone();
    for (index, word) in words.into_iter().enumerate() {
        if let Some(column) = table.column_mut(index) {
            column.set_padding(padding);
            column.set_constraint(ColumnConstraint::LowerBoundary(Width::Fixed(word + blanks)));
        }
    }
    let text = table.trim_fmt();
    // What keeps columns apart counts too.
    let fits = text.lines().all(|line| line.chars().count() <= usize::from(width));
    fits.then_some(text)
}

/// The longest word of each column, the header's included: narrower, and words would be cut.
fn longest_words(table: &Table) -> Vec<u16> {
    let mut longest: Vec<u16> = Vec::new();
    for row in table.header().into_iter().chain(table.row_iter()) {
        for (index, cell) in row.cell_iter().enumerate() {
            let content = cell.content();
            let word = content.split_whitespace().map(|word| word.chars().count()).max().unwrap_or(0);
            if longest.len() <= index {
                longest.resize(index + 1, 0);
            }
            longest[index] = longest[index].max(word.try_into().unwrap_or(u16::MAX / 64));
        }
    }
    longest
}

/// `line` in lines that fit the terminal, those after the first begun with `hanging`; as it is where there is no terminal.
/// Words that are longer than a line stay whole.
pub(crate) fn wrapped(line: &str, hanging: &str) -> String {
    terminal_width().map_or_else(|| line.to_owned(), |width| wrapped_to(line, hanging, width.into()))
}

/// [`wrapped`] to so many columns.
pub(crate) fn wrapped_to(line: &str, hanging: &str, width: usize) -> String {
    let indent = &line[..line.len() - line.trim_start().len()];
    let mut lines = vec![indent.to_owned()];
    let mut bare = true;
    for word in line.split_whitespace() {
        let last = lines.last_mut().expect("there is a first line");
        if !bare && last.chars().count() + 1 + word.chars().count() > width {
            lines.push(format!("{hanging}{word}"));
            continue;
        }
        if !bare {
            last.push(' ');
        }
        last.push_str(word);
        bare = false;
    }
    lines.join("\n")
}

/// Every row as lines of `field: value` of so many columns, with an empty line between rows.
fn records(table: &Table, width: usize) -> String {
    let fields: Vec<String> =
        table.header().into_iter().flat_map(|row| row.cell_iter()).map(|cell| cell.content()).collect();
    let record = |row: &comfy_table::Row| {
        let cells = row.cell_iter().map(|cell| cell.content().trim().replace('\n', " "));
        let lines = fields.iter().zip(cells).filter(|(_, value)| !value.is_empty());
        let line = |(field, value): (&String, String)| match field.trim() {
            "" => wrapped_to(&value, "  ", width),
            field => wrapped_to(&format!("{field}: {value}"), "  ", width),
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
    let size = rustix::termios::tcgetwinsize(&stdout).ok().filter(|_| stdout.is_terminal())?;
    // A serial line does not know how wide its terminal is.
    Some(size.ws_col).filter(|columns| *columns > 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_become_records_where_columns_do_not_fit() {
        let mut table = table(&["drive", "state", ""]);
        table.add_row(["d0", "active", "note"]);
        table.add_row(["d1", "", ""]);
        assert_eq!(rendered_at(&table, 15), "drive: d0\nstate: active\nnote\n\ndrive: d1");
        assert_eq!(rendered_at(&table, 11), "drive: d0\nstate:\n  active\nnote\n\ndrive: d1");
        assert!(rendered_at(&table, 40).starts_with(" drive"), "{}", rendered_at(&table, 40));
    }

    /// A table whose words just fitted was a few columns wider than the terminal.
    #[test]
    fn no_table_is_wider_than_the_terminal() {
        let mut table = Table::new();
        table.load_style(STYLE);
        table.set_content_arrangement(ContentArrangement::Dynamic);
        table.set_header(["volume", "size", "mapped", "kind", "write cache"]);
        table.add_row(["lun0", "24MiB", "24MiB", "thick", "durable"]);
        table.add_row(["a-longer-name", "1.5TiB", "1023.5GiB", "thin", "volatile"]);
        for width in 20..80 {
            let mut table = table.clone();
            table.set_width(width);
            let text = rendered_at(&table, width);
            let widest = text.lines().map(|line| line.chars().count()).max();
            assert!(widest <= Some(width.into()), "{width}: {text}");
        }
    }

    /// A table of figures was two columns wider than 80, and its rows became records.
    #[test]
    fn columns_move_together_before_rows_become_records() {
        let mut table = Table::new();
        table.load_style(STYLE);
        table.set_content_arrangement(ContentArrangement::Dynamic);
        table.set_header(["", "r/s", "w/s", "rMB/s"]);
        table.add_row(["data", "123456", "123456", "1234"]);
        let at = |width: u16| {
            let mut table = table.clone();
            table.set_width(width);
            rendered_at(&table, width)
        };
        assert!(at(36).starts_with(" "), "{}", at(36));
        let told = at(29);
        assert!(told.contains("\ndata  123456  123456  1234"), "{told}");
        assert!(told.lines().all(|line| line.chars().count() <= 29), "{told}");
        assert_eq!(at(20), "data\nr/s: 123456\nw/s: 123456\nrMB/s: 1234");
    }

    /// At 80 columns, words of the narrow columns were cut in the middle for the sake of the wide one.
    #[test]
    fn no_word_of_a_table_is_cut() {
        let mut table = Table::new();
        table.load_style(STYLE);
        table.set_content_arrangement(ContentArrangement::Dynamic);
        table.set_width(60);
        table.set_header(["id", "class", "calibration", "what it is"]);
        table.add_row([
            "fc-15k-300gb",
            "15k disk",
            "conservative",
            "300 GB 15k Fibre Channel disk, 3.5 inch, fast",
        ]);
        let text = rendered_at(&table, 60);
        for word in ["fc-15k-300gb", "conservative", "calibration", "Channel"] {
            assert!(text.contains(word), "{word} is cut: {text}");
        }
        assert!(text.lines().all(|line| line.chars().count() <= 60), "{text}");
    }

    #[test]
    fn lines_are_wrapped_under_themselves() {
        assert_eq!(wrapped_to("  one two three", "    ", 9), "  one two\n    three");
        assert_eq!(wrapped_to("longer-than-that x", "  ", 5), "longer-than-that\n  x");
        assert_eq!(wrapped_to("", "  ", 5), "");
    }

    #[test]
    fn thousands_are_separated() {
        for (figure, text) in [(0.0, "0"), (999.6, "1,000"), (12_345.0, "12,345"), (1e6, "1,000,000")] {
            assert_eq!(thousands(figure), text);
        }
    }
}
