//! CSV of any delimiter, streamed. A record has bounded size; its buffers are allocated once.

use std::io::BufRead;

use csv_core::{ReadRecordResult, Reader, ReaderBuilder};

use super::error::ReadError;
use super::number::{count, is_none, number};

/// The largest record, bytes. Perfmon of a large host has some ten thousand counters of 80 bytes in its header.
const RECORD_BYTES_MAX: usize = 4 << 20;
/// The most columns.
const COLUMNS_MAX: usize = 65_536;

/// What PowerShell's `Export-Csv` writes above a header: the type of the rows.
pub(super) const TYPE_MARK: &str = "#TYPE ";

/// A table with a header.
pub(super) struct Csv<'a> {
    file: &'a str,
    input: &'a mut dyn BufRead,
    parser: Reader,
    bytes: Vec<u8>,
    ends: Vec<usize>,
    /// Cells of the record that was read last.
    cells: usize,
    line: u64,
    /// As it is written.
    pub(super) header: Vec<String>,
    /// Columns that have a name or stand before one that has.
    columns: usize,
    comma_is_decimal: bool,
    /// Whether the last record may be cut off, as that of a log that is still being written; it is left out then.
    pub(super) may_be_cut: bool,
}

/// The delimiter of a header line: the most frequent of the customary ones outside of quotes.
pub(super) fn delimiter(header: &str) -> u8 {
    let mut counts = [(b',', 0), (b';', 0), (b'\t', 0), (b'|', 0)];
    let mut quoted = false;
    for byte in header.bytes() {
        quoted ^= byte == b'"';
        if let Some((_, count)) = counts.iter_mut().find(|(delimiter, _)| *delimiter == byte && !quoted) {
            *count += 1;
        }
    }
    // The first of those that are equally frequent.
    counts.iter().rev().max_by_key(|(_, count)| *count).map_or(b',', |(delimiter, _)| *delimiter)
}

/// A name as it is compared: letters and digits, in lower case.
pub(super) fn plain(name: &str) -> String {
    name.chars().filter(char::is_ascii_alphanumeric).map(|c| c.to_ascii_lowercase()).collect()
}

impl<'a> Csv<'a> {
    /// Reads the header of `input`.
    pub(super) fn open(
        file: &'a str,
        input: &'a mut dyn BufRead,
        delimiter: u8,
    ) -> Result<Csv<'a>, ReadError> {
        let parser = ReaderBuilder::new().delimiter(delimiter).build();
        let mut csv = Csv {
            file,
            input,
            parser,
            bytes: vec![0; 64 << 10],
            ends: vec![0; 256],
            cells: 0,
            line: 1,
            header: Vec::new(),
            columns: 0,
            comma_is_decimal: delimiter == b';',
            may_be_cut: false,
        };
        let mut has_header = csv.next()?;
        if has_header && csv.text(0).starts_with(TYPE_MARK) {
            has_header = csv.next()?;
        }
        if !has_header {
            return Err(csv.wrong(None, "there is no header; export the table with its column names"));
        }
        csv.header = (0..csv.cells).map(|at| csv.text(at)).collect();
        csv.columns = csv.header.iter().rposition(|name| !name.is_empty()).map_or(0, |at| at + 1);
        Ok(csv)
    }

    /// Reads the next record of the table; whether there is one. A line of a single cell is none of a table of several columns:
    /// sqlcmd ends with "(12 rows affected)", and typeperf with "The command completed successfully.".
    pub(super) fn next(&mut self) -> Result<bool, ReadError> {
        while self.record()? {
            if self.cells == 1 && self.columns > 1 || self.is_ruler() {
                continue;
            }
            if self.cells >= self.columns {
                return Ok(true);
            }
            if self.may_be_cut && self.is_last()? {
                return Ok(false);
            }
            let fact = format!(
                "the record has {} cells and its header {}; the file may be cut off, so export it again",
                self.cells, self.columns
            );
            return Err(self.wrong(None, fact));
        }
        Ok(false)
    }

    /// Whether the record is the line of dashes that sqlcmd writes under a header, filled up with blanks or not.
    fn is_ruler(&self) -> bool {
        let text = &self.bytes[..self.ends[self.cells - 1]];
        let dashes = text.iter().filter(|byte| **byte == b'-').count();
        self.columns > 0 && dashes > 1 && text.iter().all(|byte| b"- ".contains(byte))
    }

    fn is_last(&mut self) -> Result<bool, ReadError> {
        let rest = self.input.fill_buf();
        Ok(rest.map_err(|source| ReadError::System { file: self.file.to_owned(), source })?.is_empty())
    }

    /// Reads the next record that is not empty; whether there is one.
    fn record(&mut self) -> Result<bool, ReadError> {
        let (mut filled, mut ended) = (0, 0);
        loop {
            self.line = self.parser.line();
            let available = self.input.fill_buf();
            let available =
                available.map_err(|source| ReadError::System { file: self.file.to_owned(), source })?;
            let (result, taken, written, fields) =
                self.parser.read_record(available, &mut self.bytes[filled..], &mut self.ends[ended..]);
            self.input.consume(taken);
            filled += written;
            ended += fields;
            match result {
                ReadRecordResult::InputEmpty => {}
                ReadRecordResult::OutputFull => {
                    if self.bytes.len() >= RECORD_BYTES_MAX {
                        let fact = format!(
                            "the record has more than {RECORD_BYTES_MAX} bytes; look for a quotation mark that is not closed"
                        );
                        return Err(self.wrong(None, fact));
                    }
                    self.bytes.resize(self.bytes.len() * 2, 0);
                }
                ReadRecordResult::OutputEndsFull => {
                    if self.ends.len() >= COLUMNS_MAX {
                        let fact = format!("there are more than {COLUMNS_MAX} columns; export fewer");
                        return Err(self.wrong(None, fact));
                    }
                    self.ends.resize(self.ends.len() * 2, 0);
                }
                ReadRecordResult::Record => {
                    self.cells = ended;
                    // A line of nothing but blanks, as at the end of an export.
                    if ended == 1 && self.text(0).trim().is_empty() {
                        (filled, ended) = (0, 0);
                        continue;
                    }
                    return Ok(true);
                }
                ReadRecordResult::End => return Ok(false),
            }
        }
    }

    /// The column of one of these names, which are compared as [`plain`].
    pub(super) fn find(&self, names: &[&str]) -> Option<usize> {
        names.iter().find_map(|name| self.header.iter().position(|header| plain(header) == *name))
    }

    /// The same where there must be one.
    pub(super) fn need(&self, names: &[&str], shown: &str) -> Result<usize, ReadError> {
        self.find(names)
            .ok_or_else(|| self.wrong(Some(shown), "the column is missing; export the table with it"))
    }

    /// A cell's text; empty where the record is short.
    pub(super) fn text(&self, column: usize) -> String {
        if column >= self.cells {
            return String::new();
        }
        let begin = if column == 0 { 0 } else { self.ends[column - 1] };
        String::from_utf8_lossy(&self.bytes[begin..self.ends[column]]).trim().to_owned()
    }

    /// The text of a column that may not be there.
    pub(super) fn text_of(&self, column: Option<usize>) -> String {
        column.map_or_else(String::new, |column| self.text(column))
    }

    /// A cell's number; none where the cell says that there is none.
    pub(super) fn figure(&self, column: Option<usize>) -> Result<Option<f64>, ReadError> {
        let of = |text: &str| number(text, self.comma_is_decimal);
        self.value(column, of, "is not a count; export the table again as it is")
    }

    /// The same of a column whose numbers are whole. In tables with decimal commas its points separate thousands.
    pub(super) fn count(&self, column: Option<usize>) -> Result<Option<f64>, ReadError> {
        if !self.comma_is_decimal {
            return self.figure(column);
        }
        self.value(column, count, "is not a whole count; export the table with counts as digits alone")
    }

    fn value(
        &self,
        column: Option<usize>,
        of: impl Fn(&str) -> Option<f64>,
        wrong: &str,
    ) -> Result<Option<f64>, ReadError> {
        let Some(column) = column else { return Ok(None) };
        let text = self.text(column);
        if is_none(&text) {
            return Ok(None);
        }
        match of(&text) {
            Some(value) if value >= 0.0 => Ok(Some(value)),
            _ => {
                let short: String = text.chars().take(40).collect();
                let name = self.header.get(column).map(String::as_str);
                Err(self.wrong(name, format!("{short:?} {wrong}")))
            }
        }
    }

    /// An error in the record that was read last.
    pub(super) fn wrong(&self, column: Option<&str>, fact: impl Into<String>) -> ReadError {
        ReadError::Wrong {
            file: self.file.to_owned(),
            line: self.line,
            column: column.map(str::to_owned),
            fact: fact.into(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quoted_cells_and_other_delimiters_are_read() {
        let text = "a;b;\"c;d\";\n--;-;---\n1;\"x\"\"y\";3,5\n\n2;;NULL\n(2 rows affected)\n";
        let mut input = text.as_bytes();
        let mut csv = Csv::open("f", &mut input, delimiter("a;b;\"c;d\"")).expect("a header");
        assert_eq!(csv.header, ["a", "b", "c;d", ""]);
        assert!(csv.next().expect("a record"));
        assert_eq!((csv.text(1).as_str(), csv.figure(Some(2)).expect("a number")), ("x\"y", Some(3.5)));
        assert!(csv.next().expect("a record"));
        assert_eq!(csv.figure(Some(2)).expect("no number"), None);
        assert_eq!(csv.text(7), "");
        assert!(!csv.next().expect("the end"));
    }

    #[test]
    fn a_record_that_is_cut_off_is_an_error_or_the_end() {
        let mut input = "a,b,c\n1,2,3\n4,5".as_bytes();
        let mut csv = Csv::open("f", &mut input, b',').expect("a header");
        assert!(csv.next().expect("a record"));
        let error = csv.next().expect_err("it is cut").to_string();
        assert!(
            error.contains("line 3") && error.contains("2 cells") && error.contains("cut off"),
            "{error}"
        );
        let mut input = "a,b,c\n4,5\n1,2,3\n4,5".as_bytes();
        let mut csv = Csv::open("f", &mut input, b',').expect("a header");
        csv.may_be_cut = true;
        assert!(csv.next().is_err(), "it is not at the end");
        assert!(csv.next().expect("a record"));
        assert!(!csv.next().expect("the end"));
    }

    #[test]
    fn an_open_quotation_does_not_fill_the_memory() {
        let text = format!("a,b\n1,\"{}", "x".repeat(RECORD_BYTES_MAX + 10));
        let mut input = text.as_bytes();
        let mut csv = Csv::open("f", &mut input, b',').expect("a header");
        let error = csv.next().expect_err("it is too long").to_string();
        assert!(error.contains("line 2") && error.contains("quotation mark"), "{error}");
    }

    #[test]
    fn a_wrong_cell_is_named() {
        let mut input = "name,reads\nx,12z\n".as_bytes();
        let mut csv = Csv::open("f.csv", &mut input, b',').expect("a header");
        csv.next().expect("a record");
        let error = csv.figure(Some(1)).expect_err("no number").to_string();
        assert_eq!(
            error,
            "f.csv, line 2, column \"reads\": \"12z\" is not a count; export the table again as it is"
        );
    }
}
