//! Tables of a text report: a header of one to four lines, a ruler of dashes that says where columns begin, rows.
//!
//! Tables of tablespaces and files have two lines for each row, and a header and a ruler for each of them.

use std::io::BufRead;

use super::super::error::ReadError;
use super::super::lines::Lines;
use super::tables::Report;
use super::{COLUMNS_MAX, ROWS_MAX, Table};

/// Header lines that are kept.
const HEADER_LINES_MAX: usize = 5;

/// Columns of a ruler: where each begins and ends.
type Spans = Vec<(usize, usize)>;

/// The spans of a ruler; none where the line is none.
fn ruler(line: &str) -> Option<Spans> {
    let trimmed = line.trim();
    if trimmed.len() < 3 || !trimmed.bytes().all(|byte| byte == b'-' || byte == b' ') {
        return None;
    }
    let mut spans = Spans::new();
    let mut begin = None;
    for (at, byte) in line.bytes().chain([b' ']).enumerate() {
        match (byte == b'-', begin) {
            (true, None) => begin = Some(at),
            (false, Some(from)) => {
                spans.push((from, at));
                begin = None;
            }
            _ => {}
        }
    }
    (!spans.is_empty() && spans.len() <= COLUMNS_MAX).then_some(spans)
}

/// Words of header lines, each in the column that it overlaps most or is nearest to.
fn header_cells(lines: &[String], spans: &Spans) -> Vec<String> {
    let mut cells = vec![String::new(); spans.len()];
    for line in lines {
        let mut at = 0;
        for word in line.split_inclusive(char::is_whitespace) {
            let (from, trimmed) = (at, word.trim_end());
            at += word.len();
            if trimmed.is_empty() {
                continue;
            }
            let to = from + trimmed.len();
            let distance = |(begin, end): &(usize, usize)| {
                let overlap = to.min(*end).saturating_sub(from.max(*begin)) as i64;
                let apart = (from.max(*begin) as i64 - to.min(*end) as i64).max(0);
                apart - overlap
            };
            let nearest = spans.iter().enumerate().min_by_key(|(_, span)| distance(span));
            let Some((index, _)) = nearest else { continue };
            if !cells[index].is_empty() {
                cells[index].push(' ');
            }
            cells[index].push_str(trimmed);
        }
    }
    cells
}

/// The cells of a row: from where a column begins to where the next one does.
fn cells(line: &str, spans: &Spans) -> Vec<String> {
    let bound = |mut at: usize| {
        at = at.min(line.len());
        while !line.is_char_boundary(at) {
            at -= 1;
        }
        at
    };
    let cell = |index: usize| {
        let begin = if index == 0 { 0 } else { bound(spans[index].0) };
        let end = spans.get(index + 1).map_or(line.len(), |next| bound(next.0));
        line[begin..end.max(begin)].trim().to_owned()
    };
    (0..spans.len()).map(cell).collect()
}

/// A table that is being read.
struct Open {
    table: Table,
    /// One for each line of a row.
    spans: Vec<Spans>,
    /// Cells of the lines of a row that is not complete.
    pending: Vec<String>,
    /// The line of a row that comes next.
    next: usize,
}

/// Reads the tables into `report`; how many lines there were.
pub(super) fn read(file: &str, input: &mut dyn BufRead, report: &mut Report) -> Result<u64, ReadError> {
    let mut lines = Lines::new(file, input);
    let mut heading = String::new();
    let mut header: Vec<String> = Vec::new();
    let mut open: Option<Open> = None;
    let mut rows = 0_usize;
    let mut last = String::new();
    while let Some(line) = lines.next()? {
        let line = line.trim_start_matches('\u{c}').replace('\t', "        ");
        let above = std::mem::replace(&mut last, line.clone());
        if line.trim_start().starts_with("End of Report") {
            report.end();
        }
        // The last line of a report that is cut off may have half of a number.
        if !lines.is_cut {
            report.line(&line);
        }
        if line.contains("DB/Inst:") || line.contains("for DB:") {
            finish(&mut open, report);
            heading = line;
            header.clear();
            continue;
        }
        if line.trim_start().starts_with("~~") {
            // The heading is underlined; words beside the line belong to columns. Under a table without an end it looked like a row.
            if let Some(open) = &mut open
                && open.pending.is_empty()
                && !above.is_empty()
            {
                open.table.rows.pop();
            }
            finish(&mut open, report);
            if !above.is_empty() {
                heading.clone_from(&above);
            }
            header.push(line.replace('~', " "));
            continue;
        }
        if let Some(spans) = ruler(&line) {
            match &mut open {
                Some(table) if table.table.rows.is_empty() && table.pending.is_empty() => {
                    table.table.header.extend(header_cells(&header, &spans));
                    table.spans.push(spans);
                }
                Some(_) => finish(&mut open, report),
                None => {
                    let table = Table {
                        heading: heading.clone(),
                        header: header_cells(&header, &spans),
                        rows: Vec::new(),
                    };
                    open = Some(Open { table, spans: vec![spans], pending: Vec::new(), next: 0 });
                }
            }
            header.clear();
            continue;
        }
        let blank = line.trim().is_empty();
        let Some(table) = &mut open else {
            if blank || line.trim_start().starts_with("->") {
                header.clear();
            } else {
                if header.len() >= HEADER_LINES_MAX {
                    header.remove(0);
                }
                header.push(line);
            }
            continue;
        };
        // The second header of a table whose rows have two lines stands directly under the first ruler.
        if table.table.rows.is_empty() && table.spans.len() == 1 && is_second_header(&line, &header) {
            header.push(line);
            continue;
        }
        if !header.is_empty() && table.table.rows.is_empty() && table.spans.len() == 1 {
            // It was no header: these are rows.
            for line in std::mem::take(&mut header) {
                add(table, &line, &mut rows);
            }
        }
        if blank {
            if !table.table.rows.is_empty() {
                finish(&mut open, report);
            }
            continue;
        }
        add(table, &line, &mut rows);
        if rows > ROWS_MAX {
            return Err(lines.wrong(format!("the report has more than {ROWS_MAX} rows; give one report")));
        }
    }
    if lines.is_cut
        && let Some(open) = &mut open
        && open.pending.is_empty()
    {
        open.table.rows.pop();
    }
    finish(&mut open, report);
    Ok(lines.number)
}

/// Whether a line under the first ruler is of a second header: words of headers alone, beginning with averages.
fn is_second_header(line: &str, header: &[String]) -> bool {
    let words: Vec<&str> = line.split_whitespace().collect();
    let of_header = ["Av", "Reads", "Rd(ms)", "Blks/Rd", "Writes", "Buffer", "Reads/s", "Rds/s"];
    let begins = words.first().is_some_and(|word| of_header.contains(word));
    begins && (words.len() >= 3 || !header.is_empty())
}

fn add(open: &mut Open, line: &str, rows: &mut usize) {
    open.pending.extend(cells(line, &open.spans[open.next]));
    open.next += 1;
    if open.next == open.spans.len() {
        open.next = 0;
        *rows += 1;
        open.table.rows.push(std::mem::take(&mut open.pending));
    }
}

fn finish(open: &mut Option<Open>, report: &mut Report) {
    if let Some(open) = open.take() {
        report.table(&open.table);
    }
}
