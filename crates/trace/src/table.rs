//! Reads a line of text in columns.
//!
//! Comments (`#`), blank lines and headings are passed over, wherever they stand: files that were put one behind another have
//! them in their middle.

use crate::access::{Access, Op, Place};
use crate::columns::{Code, Column, Columns};
use crate::error::Misread;
use crate::preset::Preset;
use crate::reader::{CHECK_LINE, CLOCK, Clock, volume_error};
use crate::text::{Fields, Separator, decimal, number};
use crate::volumes::Volumes;

/// A text in columns that is being read.
pub(crate) struct Table {
    columns: Columns,
    /// None until the first line tells.
    separator: Option<Separator>,
    /// What a line holds, for errors.
    expected: &'static str,
    /// Whether a line that is no comment has come.
    has_begun: bool,
    /// The line before all requests that names the columns, if there is one.
    heading: Option<Vec<u8>>,
    /// The volume's name, of several columns.
    name: Vec<u8>,
}

/// What has been found in a line so far.
#[derive(Default)]
struct Found {
    time_ns: Option<u128>,
    op: Option<Op>,
    /// What is done is nothing that concerns a cache.
    is_other: bool,
    offset: u64,
    size: Option<u64>,
    /// Bytes of an offset's unit.
    unit: u64,
}

const AS_NAMED: &str = "a line with a value for each column that is named";
const TIME: &str = "a time: digits, and decimals behind a point";
const OFFSET: &str = "an offset: digits";
const SIZE: &str = "a size: digits";
const OP: &str = "what is done: R or read, W or write, D or discard, F or flush";
const RANGE: &str = "a range that ends within 2^64 bytes";
/// What to do where the number of columns is another.
const CHECK_COLUMNS: &str = "correct or delete the line, or name all columns (\"-\" for one that is not used, \"...\" at the \
                             end for all that follow)";

impl Table {
    /// Of columns that were listed.
    pub(crate) fn new(columns: Columns) -> Table {
        Table {
            columns,
            separator: None,
            expected: AS_NAMED,
            has_begun: false,
            heading: None,
            name: Vec::new(),
        }
    }

    /// Of a named form.
    pub(crate) fn of(preset: &Preset) -> Table {
        let separator = Some(Separator::Byte(b','));
        Table { separator, expected: preset.heading, ..Table::new(preset.columns()) }
    }

    /// Whether lines name volumes.
    pub(crate) fn has_volumes(&self) -> bool {
        self.columns.list.contains(&Column::Volume)
    }

    /// Its columns.
    pub(crate) fn columns(&self) -> &Columns {
        &self.columns
    }

    /// The access of a line; none where it is a comment, blank, a heading, or nothing that concerns a cache.
    #[inline]
    pub(crate) fn parse(
        &mut self,
        line: &[u8],
        volumes: &mut Volumes,
        clock: &mut Clock,
    ) -> Result<Option<Access>, Misread> {
        let separator = match self.separator {
            Some(separator) => separator,
            None if is_passed_over(line) => return Ok(None),
            None => *self.separator.insert(Separator::of(line)),
        };
        let parsed = self.request(line, separator, volumes, clock);
        let is_first = !std::mem::replace(&mut self.has_begun, true);
        match parsed {
            Err(_) if is_passed_over(line) => {
                self.has_begun = !is_first;
                Ok(None)
            }
            Err(_) if self.is_heading(line, separator, is_first) => Ok(None),
            Err(_) if !self.has_all_columns(line, separator) => {
                Err(Misread::new(self.expected, line, CHECK_COLUMNS))
            }
            parsed => parsed,
        }
    }

    #[cold]
    fn has_all_columns(&self, line: &[u8], separator: Separator) -> bool {
        let (fields, columns) = (Fields::new(line, separator).count(), self.columns.list.len());
        fields == columns || self.columns.is_open && fields > columns
    }

    /// Whether a line names its columns. The first line does if it has words in the place of numbers. A later one must be the
    /// same, or that of the named form: other words among requests are damage.
    #[cold]
    fn is_heading(&mut self, line: &[u8], separator: Separator, is_first: bool) -> bool {
        let line = line.trim_ascii();
        if !is_first {
            let is_known = |heading: &[u8]| line.eq_ignore_ascii_case(heading);
            return is_known(self.expected.as_bytes()) || self.heading.as_deref().is_some_and(is_known);
        }
        let names_columns = self.has_words(line, separator);
        self.heading = names_columns.then(|| line.to_vec());
        names_columns
    }

    /// Whether words stand where numbers are to be.
    fn has_words(&self, line: &[u8], separator: Separator) -> bool {
        let mut fields = Fields::new(line, separator);
        for column in &self.columns.list {
            let Some(field) = fields.next() else { return false };
            if column.is_number()
                && !field.first().is_some_and(|byte| byte.is_ascii_alphabetic() || *byte == b'_')
            {
                return false;
            }
        }
        true
    }

    #[inline]
    fn request(
        &mut self,
        line: &[u8],
        separator: Separator,
        volumes: &mut Volumes,
        clock: &mut Clock,
    ) -> Result<Option<Access>, Misread> {
        let mut fields = Fields::new(line, separator);
        let mut found = Found::default();
        let mut volume: Option<&[u8]> = None;
        let mut is_several = false;
        for column in &self.columns.list {
            let Some(field) = fields.next() else {
                return Err(Misread::new(self.expected, line, CHECK_COLUMNS));
            };
            let Column::Volume = column else {
                found.take(*column, field)?;
                continue;
            };
            let Some(first) = volume else {
                volume = Some(field);
                continue;
            };
            if !is_several {
                self.name.clear();
                self.name.extend_from_slice(first);
                is_several = true;
            }
            // No field has it in itself, so different names have different keys.
            self.name.push(separator.byte());
            self.name.extend_from_slice(field);
        }
        if !self.columns.is_open && fields.next().is_some() {
            return Err(Misread::new(self.expected, line, CHECK_COLUMNS));
        }
        if found.is_other {
            return Ok(None);
        }
        let place = found.place().ok_or_else(|| Misread::new(RANGE, line, CHECK_LINE))?;
        let volume = match volume {
            Some(first) => {
                let key = if is_several { &self.name[..] } else { first };
                let name = |key: &[u8]| name_of(key, separator);
                volumes.number(key, name).map_err(|refusal| volume_error(&refusal, key))?
            }
            None => 0,
        };
        let at = match found.time_ns {
            None => None,
            Some(ns) => Some(clock.since_first_ns(ns).ok_or_else(|| Misread::new(CLOCK, line, CHECK_LINE))?),
        };
        Ok(Some(Access { at, volume, op: found.op.unwrap_or(Op::Read), place }))
    }
}

impl Found {
    #[inline]
    fn take(&mut self, column: Column, field: &[u8]) -> Result<(), Misread> {
        let wrong = |expected| Misread::new(expected, field, CHECK_LINE);
        match column {
            Column::Time { unit_ns } => {
                self.time_ns = Some(decimal(field, unit_ns).ok_or_else(|| wrong(TIME))?);
            }
            Column::Offset { unit } => {
                let offset = number(field).ok_or_else(|| wrong(OFFSET))?;
                self.offset = offset.checked_mul(unit).ok_or_else(|| wrong(RANGE))?;
                self.unit = unit;
            }
            Column::Size { unit } => {
                let size = number(field).ok_or_else(|| wrong(SIZE))?;
                self.size = Some(size.checked_mul(unit).ok_or_else(|| wrong(RANGE))?);
            }
            Column::Op(code) => match op(code, field).ok_or_else(|| wrong(OP))? {
                Some(op) => self.op = Some(op),
                None => self.is_other = true,
            },
            Column::Volume | Column::Unused => {}
        }
        Ok(())
    }

    /// Where the request goes; none where its end is beyond 64 bits. Without a size, it is one unit of the offset.
    fn place(&self) -> Option<Place> {
        if self.op == Some(Op::Flush) {
            return Some(Place::Volume);
        }
        let (offset, length) = (self.offset, self.size.unwrap_or(self.unit));
        offset.checked_add(length).map(|_| Place::Bytes { offset, length })
    }
}

/// As the files of collections are called: `usr_0`.
fn name_of(key: &[u8], separator: Separator) -> String {
    let parts = key.split(|byte| *byte == separator.byte()).map(|part| part.escape_ascii().to_string());
    parts.collect::<Vec<_>>().join("_")
}

fn is_passed_over(line: &[u8]) -> bool {
    let line = line.trim_ascii();
    line.is_empty() || line.starts_with(b"#")
}

/// What is done; none within where it is nothing that concerns a cache, none where the field cannot be understood.
#[inline]
fn op(code: Code, field: &[u8]) -> Option<Option<Op>> {
    match field {
        b"R" | b"r" | b"Read" => Some(Some(Op::Read)),
        b"W" | b"w" | b"Write" => Some(Some(Op::Write)),
        _ => unusual_op(code, field),
    }
}

fn unusual_op(code: Code, field: &[u8]) -> Option<Option<Op>> {
    match (code, field) {
        (Code::WriteIsOne, b"0") | (Code::ReadIsOne, b"1") => return Some(Some(Op::Read)),
        (Code::WriteIsOne, b"1") | (Code::ReadIsOne, b"0") => return Some(Some(Op::Write)),
        (Code::Optional, b"") => return Some(None),
        (Code::Scsi, field) if field.first().is_some_and(u8::is_ascii_digit) => {
            return scsi_code(field).map(scsi_op);
        }
        _ => {}
    }
    let words: [(Op, &[&str]); 4] = [
        (Op::Read, &["read", "rs", "ra"]),
        (Op::Write, &["write", "ws"]),
        (Op::Discard, &["d", "discard", "trim", "unmap"]),
        (Op::Flush, &["f", "flush", "sync"]),
    ];
    let is_one_of = |words: &[&str]| words.iter().any(|word| field.eq_ignore_ascii_case(word.as_bytes()));
    words.into_iter().find(|(_, words)| is_one_of(words)).map(|(op, _)| Some(op))
}

/// The operation code of a command, decimal or hexadecimal behind `0x`.
fn scsi_code(field: &[u8]) -> Option<u8> {
    match field.strip_prefix(b"0x") {
        Some(digits) => u8::from_str_radix(std::str::from_utf8(digits).ok()?, 16).ok(),
        None => u8::try_from(number(field)?).ok(),
    }
}

/// What a command does, of those of the SCSI block commands (SBC-3) that concern a cache.
fn scsi_op(code: u8) -> Option<Op> {
    match code {
        // READ (6), (10), (12), (16).
        0x08 | 0x28 | 0xa8 | 0x88 => Some(Op::Read),
        // WRITE (6), (10), (12), (16); WRITE AND VERIFY (10), (12), (16); WRITE SAME (10), (16); COMPARE AND WRITE.
        0x0a | 0x2a | 0xaa | 0x8a | 0x2e | 0xae | 0x8e | 0x41 | 0x93 | 0x89 => Some(Op::Write),
        // UNMAP.
        0x42 => Some(Op::Discard),
        // SYNCHRONIZE CACHE (10), (16).
        0x35 | 0x91 => Some(Op::Flush),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use tier0_units::Nanos;

    use super::*;
    use crate::Format;

    type Told = (Option<u64>, String, Op, Place);

    fn read(table: &mut Table, text: &str) -> Vec<Told> {
        let (mut volumes, mut clock) = (Volumes::new(), Clock::default());
        let mut accesses = Vec::new();
        for line in text.lines() {
            accesses.extend(table.parse(line.as_bytes(), &mut volumes, &mut clock).expect(line));
        }
        let name = |volume: u32| volumes.names().get(volume as usize).map_or_else(String::new, String::clone);
        let told =
            |access: &Access| (access.at.map(|Nanos(ns)| ns), name(access.volume), access.op, access.place);
        accesses.iter().map(told).collect()
    }

    fn listed(columns: &str) -> Table {
        Table::new(columns.parse().expect(columns))
    }

    fn named(format: Format) -> Table {
        Table::of(Preset::of(format).expect("it is text in columns"))
    }

    fn place(offset: u64, length: u64) -> Place {
        Place::Bytes { offset, length }
    }

    /// A first and a second line of each, as their collections have them.
    #[test]
    fn named_forms_are_read() {
        for (format, text, first, second) in [
            (
                Format::Msr,
                "128166372003061629,usr,0,Read,7014609920,24576,41286\n128166372016382155,usr,1,Write,2517696512,4096,7",
                ("usr_0", Op::Read, place(7_014_609_920, 24_576)),
                (1_332_052_600, "usr_1", Op::Write, place(2_517_696_512, 4096)),
            ),
            (
                Format::Alibaba,
                "419,W,8792731648,16384,1577808144360767\n725,R,59110326272,360448,1577808144360814",
                ("419", Op::Write, place(8_792_731_648, 16_384)),
                (47_000, "725", Op::Read, place(59_110_326_272, 360_448)),
            ),
            (
                Format::Tencent,
                "1538323200,12910952,128,0,1063\n1538323201,6265016,8,1,1627",
                ("1063", Op::Read, place(12_910_952 * 512, 128 * 512)),
                (1_000_000_000, "1627", Op::Write, place(6_265_016 * 512, 4096)),
            ),
            (
                Format::Systor,
                "Timestamp,Response,IOType,LUN,Offset,Size\n1455592208.007456000,0.000057,W,0,50331648,4096\n\
                 1455592208.007460000,,,3,0,0\n1455592208.107456001,0.1,R,3,8192,512",
                ("0", Op::Write, place(50_331_648, 4096)),
                (100_000_001, "3", Op::Read, place(8192, 512)),
            ),
            (
                Format::Spc,
                "0,20941264,8192,W,0.551706\n1,20939840,8192,r,0.554041,1,x",
                ("0", Op::Write, place(20_941_264 * 512, 8192)),
                (2_335_000, "1", Op::Read, place(20_939_840 * 512, 8192)),
            ),
            (
                Format::Vscsi,
                "#Vscsi Cmd Trace. (Trace Format Version 1)\n#Serial Number,IO Data Length,…\n\
                 2147483692,4096,1,write,24048792,2756778716647\n2147483692,0,1,0x12,0,2756778716648\n\
                 2147483693,512,1,0x28,8,2756778716650",
                ("", Op::Write, place(24_048_792 * 512, 4096)),
                (3000, "", Op::Read, place(4096, 512)),
            ),
        ] {
            let told = read(&mut named(format), text);
            let (volume, op, at) = first;
            let expected = [
                (Some(0), volume.to_owned(), op, at),
                (Some(second.0), second.1.to_owned(), second.2, second.3),
            ];
            assert_eq!(told, expected, "{format}");
        }
    }

    #[test]
    fn listed_columns_have_their_units() {
        let told = read(&mut named(Format::Vscsi), "7,512,1,0x89,8,1\n7,512,1,137,16,2");
        assert!(
            told.iter().all(|(_, _, op, _)| *op == Op::Write) && told.len() == 2,
            "compare and write: {told:?}"
        );
        let told = read(
            &mut listed("op:10,-,time:ms,offset:4KiB,size:sectors"),
            "1 x 10.5 2 8\n0\ty\t12.25\t3\t16\n",
        );
        let none = String::new;
        assert_eq!(
            told,
            [
                (Some(0), none(), Op::Read, place(8192, 4096)),
                (Some(1_750_000), none(), Op::Write, place(12_288, 8192))
            ]
        );
        let told = read(&mut listed("offset:8KiB"), "# warm-up\nlbn\n7\n\n");
        assert_eq!(told, [(None, none(), Op::Read, place(7 * 8192, 8192))]);
        let told = read(&mut listed("volume, volume, op, offset, size, ..."), "a; b; TRIM; 0; 512; 9; 9\n");
        assert_eq!(told, [(None, "a_b".to_owned(), Op::Discard, place(0, 512))]);
        let told = read(&mut listed("op,offset"), "flush,0\n");
        assert_eq!(told, [(None, none(), Op::Flush, Place::Volume)]);
    }

    /// Files that were put one behind another have headings in their middle, and blank lines at their ends.
    #[test]
    fn headings_may_be_repeated() {
        let header = "Timestamp,Hostname,DiskNumber,Type,Offset,Size,ResponseTime";
        let line = "1,usr,0,Read,0,512,1";
        let text = format!("{header}\n{line}\n\n{header}\n{line}\n  \n");
        assert_eq!(read(&mut named(Format::Msr), &text).len(), 2);
        let own = read(&mut listed("time,offset,size"), "t,lba,len\n1,2,3\nt,lba,len\n1,2,3\n");
        assert_eq!(own.len(), 2);
    }

    #[test]
    fn what_is_wrong_is_named() {
        for (format, line, expected, found) in [
            (Format::Msr, "1,usr,0,Read,0,512", "timestamp,hostname", "\"1,usr,0,Read,0,512\""),
            (Format::Msr, "1,usr,0,Read,0,512,3,4", "timestamp,hostname", "\"1,usr,0,Read,0,512,3,4\""),
            (Format::Msr, "x,usr,0,Read,0,512,1", "a time", "\"x\""),
            (Format::Msr, "1,usr,0,Erase,0,512,1", "what is done", "\"Erase\""),
            (Format::Msr, "1,usr,0,,0,512,1", "what is done", "nothing"),
            (Format::Msr, "1,usr,0,Read,-1,512,1", "an offset", "\"-1\""),
            (Format::Msr, "1,usr,0,Read,18446744073709551616,512,1", "an offset", "\"18446744073709551616\""),
            (Format::Msr, "1,usr,0,Read,0,4 KiB,1", "a size", "\"4 KiB\""),
            (
                Format::Msr,
                "1,usr,0,Read,18446744073709551615,1,1",
                "a range that ends",
                "\"1,usr,0,Read,18446744073709551615,1,1\"",
            ),
            (Format::Tencent, "1538323200,36028797018963968,8,0,1", "a range", "\"36028797018963968\""),
            (Format::Spc, "0,1,2,W", "asu,lba", "\"0,1,2,W\""),
            (Format::Spc, "0,1,2,W,.5.", "a time", "\".5.\""),
        ] {
            let (mut volumes, mut clock) = (Volumes::new(), Clock::default());
            let parsed = named(format).parse(line.as_bytes(), &mut volumes, &mut clock);
            let misread = parsed.expect_err(line);
            assert!(misread.expected.starts_with(expected), "{line}: {misread:?}");
            assert_eq!(misread.found, found, "{line}");
        }
        // Words among requests are damage, unless they repeat the heading of the file.
        for (columns, text) in [("time,offset", "1,2\nx,2"), ("time,offset", "1,2\nx,y"), ("offset", "1\nx")]
        {
            let mut table = listed(columns);
            let (mut volumes, mut clock) = (Volumes::new(), Clock::default());
            let mut parse = |line: &str| table.parse(line.as_bytes(), &mut volumes, &mut clock);
            let (first, second) = text.split_once('\n').expect("two lines");
            assert!(parse(first).is_ok_and(|access| access.is_some()), "{text}");
            assert!(parse(second).is_err(), "{text}");
        }
        let mut clock = Clock::default();
        let mut read = |line: &str| {
            let parsed = named(Format::Msr).parse(line.as_bytes(), &mut Volumes::new(), &mut clock);
            parsed.map_err(|misread| misread.expected)
        };
        assert!(read("0,a,0,Read,0,1,1").is_ok());
        assert_eq!(read("18446744073709551615,a,0,Read,0,1,1"), Err(CLOCK));
    }
}
