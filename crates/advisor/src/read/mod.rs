//! Readers of reports. A kind of file is recognised by its content, never by its name.
//!
//! | file | concept |
//! |---|---|
//! | `recognise` | which kind a file is |
//! | `csv`, `lines`, `number`, `time`, `utf16` | records, lines, numbers, times and encoding of any report |
//! | `file_statistics` | SQL Server's files: report, `sys.dm_io_virtual_file_stats`, tables of `sp_BlitzFirst` |
//! | `blitz_result` | the result of `sp_BlitzFirst` |
//! | `object_statistics` | SQL Server's objects |
//! | `perfmon`, `iostat`, `sar` | the host and its devices |
//! | `awr` | Oracle |
//! | `mysql_status` | status of MySQL |
//! | `collected` | lines of samples of `tier0 advise collect`, of any server |
//! | `postgres`, `mysql_samples` | samples of PostgreSQL, and of MySQL and MariaDB |
//!
//! Invariants: files are read as streams; lines, records, rows and objects are bounded before memory is taken; no input makes a
//! reader panic; an error names file, line, column and remedy.

mod awr;
mod blitz_result;
mod collected;
mod csv;
mod error;
mod file_statistics;
mod iostat;
mod lines;
mod mysql_samples;
mod mysql_status;
mod number;
mod object_statistics;
mod perfmon;
mod postgres;
mod recognise;
mod sar;
mod time;
mod utf16;

use std::io::{BufRead, BufReader, Cursor, Read};
use std::path::Path;

use crate::evidence::{Collector, Format};
use recognise::Found;
use utf16::Utf8;

pub use error::ReadError;
pub use file_statistics::SizeUnit;

/// How much of a file is looked at to recognise it.
const HEAD_BYTES: u64 = 64 << 10;
/// What some tools write before a text in UTF-8.
const BYTE_ORDER_MARK: &[u8] = "\u{feff}".as_bytes();

/// Reads the file at `path`.
///
/// # Errors
/// It cannot be read, is of no known kind, or is wrong somewhere.
pub fn read_file(path: &Path, unit: Option<SizeUnit>, to: &mut Collector) -> Result<Format, ReadError> {
    let file = path.display().to_string();
    let opened = std::fs::File::open(path);
    let opened = opened.map_err(|source| ReadError::System { file: file.clone(), source })?;
    read(&file, opened, unit, to)
}

/// Reads a file; `file` is its name in messages, `unit` that of sizes whose header says none.
///
/// # Errors
/// As [`read_file`].
pub fn read(
    file: &str,
    input: impl Read,
    unit: Option<SizeUnit>,
    to: &mut Collector,
) -> Result<Format, ReadError> {
    let mut input: Box<dyn Read + '_> = Box::new(input);
    let mut head = head_of(file, &mut input)?;
    if let Some(order) = utf16::order(&head) {
        input = Box::new(Utf8::new(Cursor::new(head).chain(input), order));
        head = head_of(file, &mut input)?;
    }
    if head.starts_with(BYTE_ORDER_MARK) {
        head.drain(..BYTE_ORDER_MARK.len());
    }
    let unknown = |fact: String| ReadError::Unknown { file: file.to_owned(), fact };
    let found = recognise::recognise(&head).map_err(unknown)?;
    let format = found.format();
    to.begin(file, format);
    let mut input = BufReader::with_capacity(64 << 10, head.as_slice().chain(input));
    let input: &mut dyn BufRead = &mut input;
    match found {
        Found::Files(format, delimiter) => file_statistics::read(file, input, delimiter, format, unit, to)?,
        Found::BlitzResult(delimiter) => blitz_result::read(file, input, delimiter, to)?,
        Found::Objects(delimiter) => object_statistics::read(file, input, delimiter, to)?,
        Found::Perfmon(delimiter) => perfmon::read(file, input, delimiter, to)?,
        Found::Iostat => iostat::read(file, input, to)?,
        Found::Sar => sar::read(file, input, to)?,
        Found::AwrText => awr::read_text(file, input, to)?,
        Found::AwrHtml => awr::read_html(file, input, to)?,
        Found::MysqlStatus => mysql_status::read(file, input, to)?,
        Found::Collected(Format::Postgresql) => postgres::read(file, input, to)?,
        Found::Collected(_) => mysql_samples::read(file, input, to)?,
    }
    Ok(format)
}

/// The first bytes of a file.
fn head_of(file: &str, input: &mut dyn Read) -> Result<Vec<u8>, ReadError> {
    let mut head = Vec::new();
    let taken = input.take(HEAD_BYTES).read_to_end(&mut head);
    taken.map_err(|source| ReadError::System { file: file.to_owned(), source })?;
    Ok(head)
}
