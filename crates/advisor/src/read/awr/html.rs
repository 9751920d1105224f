//! Tables of an HTML report. The pages are not well-formed, so tags are read one by one and what is not known is passed over.

use std::io::{BufRead, Read};

use super::super::error::ReadError;
use super::tables::Report;
use super::{COLUMNS_MAX, ROWS_MAX, Table};

/// The largest page. Reports have some 2 MB, those of a cluster some 20.
const PAGE_BYTES_MAX: u64 = 128 << 20;
/// The longest heading that is kept.
const HEADING_MAX: usize = 400;

/// What names the next table.
#[derive(Default)]
struct Headings {
    /// The last `h1` to `h6`.
    heading: String,
    /// The last text outside of tables.
    text: String,
}

/// Reads the tables into `report`; how many lines the page has.
pub(super) fn read(file: &str, input: &mut dyn BufRead, report: &mut Report) -> Result<u64, ReadError> {
    let mut bytes = Vec::new();
    let read = input.take(PAGE_BYTES_MAX + 1).read_to_end(&mut bytes);
    read.map_err(|source| ReadError::System { file: file.to_owned(), source })?;
    let lines = bytes.iter().filter(|byte| **byte == b'\n').count() as u64;
    let wrong =
        |fact: String| ReadError::Wrong { file: file.to_owned(), line: lines.max(1), column: None, fact };
    if bytes.len() as u64 > PAGE_BYTES_MAX {
        return Err(wrong(format!("the page has more than {PAGE_BYTES_MAX} bytes; give one report")));
    }
    let page = String::from_utf8_lossy(&bytes);
    let mut headings = Headings::default();
    // Tables within tables: the innermost gets the text.
    let mut open: Vec<Table> = Vec::new();
    let mut cell: Option<(String, bool)> = None;
    let mut row: Option<(Vec<String>, bool)> = None;
    let mut in_heading = false;
    let mut rows = 0;
    let mut rest = page.as_ref();
    while let Some(begin) = rest.find('<') {
        take_text(&rest[..begin], &mut cell, &mut headings, in_heading, open.is_empty());
        rest = &rest[begin..];
        if let Some(comment) = rest.strip_prefix("<!--") {
            rest = comment.find("-->").map_or("", |end| &comment[end + 3..]);
            continue;
        }
        let Some(end) = rest.find('>') else {
            break;
        };
        let tag = &rest[1..end];
        rest = &rest[end + 1..];
        let name: String = tag
            .trim_start_matches('/')
            .chars()
            .take_while(char::is_ascii_alphanumeric)
            .take(12)
            .map(|c| c.to_ascii_lowercase())
            .collect();
        let closes = tag.starts_with('/');
        match (name.as_str(), closes) {
            ("script" | "style", false) => {
                let end = format!("</{name}");
                let mut windows = rest.as_bytes().windows(end.len());
                let found = windows.position(|window| window.eq_ignore_ascii_case(end.as_bytes()));
                rest = found.map_or("", |at| &rest[at..]);
            }
            ("h1" | "h2" | "h3" | "h4" | "h5" | "h6", _) => {
                in_heading = !closes;
                if in_heading {
                    headings.heading.clear();
                    headings.text.clear();
                }
            }
            ("html", true) => report.end(),
            ("table", false) => {
                report.line(&headings.heading);
                if open.len() < 8 {
                    let heading = format!(
                        "{} | {} | {}",
                        headings.heading.trim(),
                        headings.text.trim(),
                        attribute(tag, "summary")
                    );
                    open.push(Table { heading, ..Table::default() });
                }
                headings.text.clear();
            }
            ("table", true) => {
                end_cell(&mut cell, &mut row);
                end_row(&mut row, &mut open, &mut rows);
                if let Some(table) = open.pop() {
                    report.table(&table);
                }
            }
            ("tr", closes) => {
                end_cell(&mut cell, &mut row);
                end_row(&mut row, &mut open, &mut rows);
                if !closes && !open.is_empty() {
                    row = Some((Vec::new(), true));
                }
            }
            ("td" | "th", closes) => {
                end_cell(&mut cell, &mut row);
                if !closes && row.is_some() {
                    cell = Some((String::new(), name == "th"));
                }
            }
            _ => {}
        }
        if rows > ROWS_MAX {
            return Err(wrong(format!("the report has more than {ROWS_MAX} rows; give one report")));
        }
    }
    // Where the page is cut off, rows that are complete count.
    open.iter().for_each(|table| report.table(table));
    Ok(lines)
}

fn take_text(
    text: &str,
    cell: &mut Option<(String, bool)>,
    headings: &mut Headings,
    in_heading: bool,
    outside: bool,
) {
    if text.trim().is_empty() {
        return;
    }
    let text = unescaped(text);
    if let Some((cell, _)) = cell {
        if cell.len() < 4096 {
            cell.push_str(&text);
        }
    } else if in_heading && headings.heading.len() < HEADING_MAX {
        headings.heading.push_str(&text);
    } else if outside {
        headings.text = text.chars().take(HEADING_MAX).collect();
    }
}

fn end_cell(cell: &mut Option<(String, bool)>, row: &mut Option<(Vec<String>, bool)>) {
    let (Some((text, is_head)), Some((cells, all_head))) = (cell.take(), row.as_mut()) else { return };
    if cells.len() < COLUMNS_MAX {
        cells.push(text.split_whitespace().collect::<Vec<_>>().join(" "));
        *all_head &= is_head;
    }
}

fn end_row(row: &mut Option<(Vec<String>, bool)>, open: &mut [Table], rows: &mut usize) {
    let (Some((cells, is_head)), Some(table)) = (row.take(), open.last_mut()) else { return };
    if cells.is_empty() {
        return;
    }
    if is_head && table.rows.is_empty() {
        table.header = cells;
    } else {
        *rows += 1;
        table.rows.push(cells);
    }
}

/// The value of an attribute in quotes.
fn attribute(tag: &str, name: &str) -> String {
    let begin = format!("{name}=");
    let value = tag.to_ascii_lowercase().find(&begin).and_then(|at| tag.get(at + begin.len()..));
    let Some(value) = value else { return String::new() };
    let quote = value.chars().next().filter(|c| ['"', '\''].contains(c));
    let inner = quote.and_then(|quote| value[1..].split(quote).next());
    inner.unwrap_or_default().chars().take(HEADING_MAX).collect()
}

fn unescaped(text: &str) -> String {
    let text = text.replace("&nbsp;", " ").replace("&#160;", " ").replace("&lt;", "<").replace("&gt;", ">");
    text.replace("&quot;", "\"").replace("&amp;", "&")
}
