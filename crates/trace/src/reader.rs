//! The iterator over the accesses of a trace.

use std::fs::File;
use std::io::{ErrorKind, Read};
use std::path::{Path, PathBuf};

use tier0_units::{Nanos, counted};

use crate::access::Access;
use crate::blkparse::{Action, Blkparse};
use crate::columns::Columns;
use crate::error::{Misread, TraceError, excerpt};
use crate::preset::Preset;
use crate::source::{BUFFER_BYTES, Source, without_mark};
use crate::table::Table;
use crate::volumes::{NAME_BYTES_MAX, NAMES_BYTES_MAX, Refusal, Volumes};
use crate::{Compression, Format, binary, doubt, fio, format, ids};

/// How much of a file its format is told by, bytes.
const HEAD_BYTES: usize = 4096;

/// What to do about a line that is malformed.
pub(crate) const CHECK_LINE: &str = "correct or delete the line, or name the format of the file";
/// What to do about a file that looks like another format.
pub(crate) const CHECK_FORMAT: &str = "check that the file is of the format that was named";

/// What is expected of times.
pub(crate) const CLOCK: &str = "a time within 584 years of the first";

/// How a trace is to be read.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Options {
    /// The format; none to recognise it.
    pub format: Option<Format>,
    /// The columns of a text, which then has no other format.
    pub columns: Option<Columns>,
    /// Which action of `blkparse` counts as the access; none for the earliest that the recording has. Other formats do not have
    /// it.
    pub action: Option<Action>,
}

impl From<Format> for Options {
    fn from(format: Format) -> Options {
        Options { format: Some(format), ..Options::default() }
    }
}

/// A trace that is being read: an iterator of accesses, which ends after the first error.
pub struct TraceReader {
    source: Source,
    format: Format,
    parser: Parser,
    volumes: Volumes,
    clock: Clock,
    notes: Vec<String>,
    skipped: Skipped,
    is_over: bool,
}

/// Lines that were no accesses.
#[derive(Default)]
struct Skipped {
    count: u64,
    /// Which was the first, and what it is.
    first: Option<String>,
}

/// What a format remembers.
enum Parser {
    Table(Table),
    OracleGeneral,
    Blkparse(Blkparse),
    Fio(fio::Version),
    Ids,
    U32Be,
    U32Le,
}

impl TraceReader {
    /// Opens a file; its format is recognised where none is named.
    ///
    /// # Errors
    /// [`TraceError`] where there is no such file, or it is no trace, or its format must be named.
    pub fn open(path: impl AsRef<Path>, format: Option<Format>) -> Result<TraceReader, TraceError> {
        TraceReader::open_with(path, Options { format, ..Options::default() })
    }

    /// Opens a file that is to be read in a certain way.
    ///
    /// # Errors
    /// As [`TraceReader::open`].
    pub fn open_with(path: impl AsRef<Path>, options: Options) -> Result<TraceReader, TraceError> {
        let path = path.as_ref();
        match File::open(path) {
            Ok(file) => TraceReader::from_read(path, file, options),
            Err(source) if source.kind() == ErrorKind::IsADirectory => {
                Err(TraceError::Directory { file: path.to_owned() })
            }
            Err(source) => Err(TraceError::Open { file: path.to_owned(), source }),
        }
    }

    /// Reads a trace from anything; `name` stands for it in errors, and in telling the format.
    ///
    /// Needs no buffer in between: after the first bytes, `input` is asked for tens of KiB at once.
    ///
    /// # Errors
    /// As [`TraceReader::open`].
    pub fn from_read(
        name: impl Into<PathBuf>,
        input: impl Read + Send + 'static,
        options: Options,
    ) -> Result<TraceReader, TraceError> {
        let mut source = Source::open(name.into(), input)?;
        let head = source.head(HEAD_BYTES)?.to_vec();
        let format = match (&options.columns, options.format) {
            (Some(_), _) => Some(Format::Columns),
            (None, format) => format,
        };
        if let Some(doubt) = doubt::refusal(format, &head) {
            let file = source.file().to_owned();
            return Err(TraceError::Unrecognised { file, fact: doubt.fact, remedy: doubt.remedy });
        }
        let head = without_mark(&head);
        let is_recognised = format.is_none();
        let format = match format {
            Some(format) => format,
            None => Format::guess(source.file(), head).ok_or_else(|| unrecognised(source.file(), head))?,
        };
        let parser = parser(format, options, &mut source)?;
        let volumes = match &parser {
            Parser::Blkparse(_) | Parser::Fio(_) => Volumes::new(),
            Parser::Table(table) if table.has_volumes() => Volumes::new(),
            _ => Volumes::single("trace"),
        };
        let notes = notes(format, &parser, is_recognised, head);
        let clock = Clock::default();
        Ok(TraceReader {
            source,
            format,
            parser,
            volumes,
            clock,
            notes,
            skipped: Skipped::default(),
            is_over: false,
        })
    }

    /// The format that is read.
    pub fn format(&self) -> Format {
        self.format
    }

    /// What the file is compressed with.
    pub fn compression(&self) -> Option<Compression> {
        self.source.compression()
    }

    /// The names of the volumes that have come so far; [`Access::volume`] is a place in it. Formats without names have
    /// one volume, called "trace".
    pub fn volumes(&self) -> &[String] {
        self.volumes.names()
    }

    /// What was assumed about the file, and what speaks against it: sentences for whoever reads the results.
    pub fn notes(&self) -> &[String] {
        &self.notes
    }

    /// How many lines so far were no accesses: comments, blank lines, headers, other actions, summaries.
    pub fn skipped(&self) -> u64 {
        self.skipped.count
    }

    /// How many lines so far were no accesses, and what the first of them is: half a sentence for whoever reads the results;
    /// none where no line was skipped.
    pub fn skipped_note(&self) -> Option<String> {
        let first = self.skipped.first.as_ref()?;
        let skipped = counted(self.skipped(), "line");
        Some(format!("{skipped} skipped; the first is {first}"))
    }

    /// Whether the last line of a text had no end: it may be cut off there.
    pub fn has_open_line(&self) -> bool {
        self.source.has_open_line()
    }

    /// How many bytes of the trace have been read so far, after decompression.
    pub fn offset(&self) -> u64 {
        self.source.offset()
    }

    /// The next access, if there is one.
    #[inline]
    fn advance(&mut self) -> Result<Option<Access>, TraceError> {
        let TraceReader { source, parser, volumes, clock, skipped, .. } = self;
        match parser {
            Parser::U32Be => Ok(source.record()?.map(|record| binary::block(u32::from_be_bytes(record)))),
            Parser::U32Le => Ok(source.record()?.map(|record| binary::block(u32::from_le_bytes(record)))),
            Parser::OracleGeneral => {
                let Some(record) = source.record()? else { return Ok(None) };
                let access = binary::oracle_general(&record, clock);
                access.map(Some).map_err(|misread| source.record_error(misread, binary::ORACLE_BYTES as u64))
            }
            Parser::Table(table) => {
                let other = "names of columns, or no read, write, discard or flush";
                lines(source, skipped, other, |line| table.parse(line, volumes, clock))
            }
            Parser::Ids => lines(source, skipped, "", ids::parse),
            Parser::Blkparse(state) => {
                let other = "an event of another kind, not of a request, or part of the summary";
                lines(source, skipped, other, |line| state.parse(line, volumes, clock))
            }
            Parser::Fio(version) => {
                let other = "no read, write, discard or flush";
                lines(source, skipped, other, |line| fio::parse(line, version, volumes, clock))
            }
        }
    }
}

/// Begins to read a format.
fn parser(format: Format, options: Options, source: &mut Source) -> Result<Parser, TraceError> {
    Ok(match format {
        Format::OracleGeneral => Parser::OracleGeneral,
        Format::U32Be => Parser::U32Be,
        Format::U32Le => Parser::U32Le,
        Format::Ids => Parser::Ids,
        Format::Blkparse => Parser::Blkparse(match options.action {
            Some(action) => Blkparse::new(action),
            None => Blkparse::beginning(source.head(BUFFER_BYTES)?),
        }),
        Format::Fio => {
            let version = fio::version(source.line()?.unwrap_or_default());
            Parser::Fio(version.map_err(|misread| source.line_error(misread))?)
        }
        Format::Msr
        | Format::Alibaba
        | Format::Tencent
        | Format::Systor
        | Format::Spc
        | Format::Vscsi
        | Format::Columns => Parser::Table(match (options.columns, Preset::of(format)) {
            (Some(columns), _) => Table::new(columns),
            (None, Some(preset)) => Table::of(preset),
            (None, None) => return Err(TraceError::NoColumns { file: source.file().to_owned() }),
        }),
    })
}

/// What was assumed.
fn notes(format: Format, parser: &Parser, is_recognised: bool, head: &[u8]) -> Vec<String> {
    let of_parser = match parser {
        // The form of MSR says more of itself than the others: a host, a disk, a word for what is done.
        Parser::Table(table) if is_recognised && format != Format::Msr => Some(format!(
            "read as {format}, whose columns are {}; name others with --columns if that is wrong",
            table.columns()
        )),
        Parser::Blkparse(blkparse) if blkparse.is_substitute() => Some(format!(
            "the recording has no {} events (requests as they were made); its {} events count, one for each request \
             as the drive {} it",
            Action::Queue.letter(),
            blkparse.action.letter(),
            if blkparse.action == Action::Dispatch { "was sent" } else { "answered" },
        )),
        _ => None,
    };
    of_parser.into_iter().chain(doubt::assumption(format, head)).collect()
}

impl Skipped {
    /// The line that was taken last is the first of them; `other` is what it is if it is neither blank nor a comment.
    #[cold]
    fn begin(number: u64, line: &[u8], other: &str) -> Skipped {
        let what = match line.trim_ascii() {
            b"" => "blank".to_owned(),
            [b'#', ..] => format!("a comment ({})", excerpt(line)),
            _ => format!("{other} ({})", excerpt(line)),
        };
        let first = format!("line {number}, which is {what}");
        Skipped { count: 1, first: Some(first) }
    }
}

/// The access of the next line that has one; `other` is what lines are that have none and are neither blank nor comments.
#[inline]
fn lines(
    source: &mut Source,
    skipped: &mut Skipped,
    other: &str,
    mut parse: impl FnMut(&[u8]) -> Result<Option<Access>, Misread>,
) -> Result<Option<Access>, TraceError> {
    loop {
        let Some(line) = source.line()? else { return Ok(None) };
        match parse(line) {
            Ok(Some(access)) => return Ok(Some(access)),
            Ok(None) if skipped.count > 0 => skipped.count += 1,
            Ok(None) => {
                let line = line.to_vec();
                *skipped = Skipped::begin(source.line_number(), &line, other);
            }
            Err(misread) => return Err(source.line_error(misread)),
        }
    }
}

impl Iterator for TraceReader {
    type Item = Result<Access, TraceError>;

    #[inline]
    fn next(&mut self) -> Option<Result<Access, TraceError>> {
        if self.is_over {
            return None;
        }
        let next = self.advance().transpose();
        self.is_over = !matches!(next, Some(Ok(_)));
        next
    }
}

impl std::iter::FusedIterator for TraceReader {}

impl std::fmt::Debug for TraceReader {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let mut form = f.debug_struct("TraceReader");
        form.field("file", &self.source.file()).field("format", &self.format).field("offset", &self.offset());
        form.finish_non_exhaustive()
    }
}

/// The time since the first access.
#[derive(Debug, Default)]
pub(crate) struct Clock {
    first_ns: Option<u128>,
}

impl Clock {
    /// A time in units of so many nanoseconds, since the first that was given; zero where it is earlier. None where
    /// that is beyond 2^64 ns.
    #[inline]
    pub(crate) fn since_first(&mut self, ticks: u64, tick_ns: u64) -> Option<Nanos> {
        self.since_first_ns(u128::from(ticks) * u128::from(tick_ns))
    }

    /// The same of nanoseconds.
    #[inline]
    pub(crate) fn since_first_ns(&mut self, ns: u128) -> Option<Nanos> {
        let first = *self.first_ns.get_or_insert(ns);
        u64::try_from(ns.saturating_sub(first)).ok().map(Nanos)
    }
}

/// Why a volume got no number.
#[cold]
pub(crate) fn volume_error(refusal: &Refusal, name: &[u8]) -> Misread {
    const { assert!(NAME_BYTES_MAX == 256 && NAMES_BYTES_MAX == 256 << 20, "the errors say so") };
    let (expected, remedy) = match refusal {
        Refusal::Long => ("the name of a volume, of at most 256 bytes", CHECK_FORMAT),
        Refusal::Full => (
            "one of the volumes that came before, whose names take 256 MiB of memory, the limit,",
            "check which column is the volume, or cut the trace into several",
        ),
    };
    Misread::new(expected, name, remedy)
}

/// A file whose format nobody has named and that does not tell.
#[cold]
fn unrecognised(file: &Path, head: &[u8]) -> TraceError {
    let (fact, remedy) = if let Some(what) = doubt::foreign(head) {
        (format!("is {what}"), "name the file of a trace".to_owned())
    } else if format::is_text(head) {
        let first = excerpt(format::first_line(head).unwrap_or_default());
        let known = Format::ALL.into_iter().filter(|format| format.is_text()).collect::<Vec<_>>();
        (
            format!("is text of no known format (it begins with {first})"),
            format!("name its columns with --columns, or its format: {}", Format::names(&known)),
        )
    } else {
        (
            format!("does not say which format it has (it begins with {})", excerpt(head)),
            format!("if it is a trace, name its format: {}", Format::names(&Format::BINARY)),
        )
    };
    TraceError::Unrecognised { file: file.to_owned(), fact, remedy }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn open(text: &'static [u8], options: Options) -> Result<TraceReader, TraceError> {
        TraceReader::from_read("some.trace", text, options)
    }

    fn told(text: &'static [u8], options: Options) -> String {
        match open(text, options) {
            Err(error) => error.to_string(),
            Ok(reader) => {
                let errors: Vec<_> = reader.filter_map(Result::err).collect();
                assert_eq!(errors.len(), 1, "the iterator ends after an error: {errors:?}");
                errors[0].to_string()
            }
        }
    }

    #[test]
    fn every_format_is_read() {
        for (text, format, count, skipped) in [
            (&b"1,a,0,Read,0,512,1\n2,a,1,Write,0,512,1\n"[..], Format::Msr, 2, 0),
            (
                b"timestamp,hostname,disknumber,type,offset,size,responsetime\n1,a,0,Read,0,512,1",
                Format::Msr,
                1,
                1,
            ),
            (
                b"8,0 1 1 0.000000000 7 Q R 8 + 8 [a]\n8,0 1 2 0.000000001 7 G R 8 + 8 [a]\n",
                Format::Blkparse,
                1,
                1,
            ),
            // A byte order mark, blank lines, and the heading of another file behind the first.
            (
                b"\xef\xbb\xbfTimestamp,Hostname,DiskNumber,Type,Offset,Size,ResponseTime\r\n1,a,0,Read,0,512,1\r\n\r\n\
                  \xef\xbb\xbfTimestamp,Hostname,DiskNumber,Type,Offset,Size,ResponseTime\r\n1,a,0,Read,0,512,1\r\n\r\n",
                Format::Msr,
                2,
                4,
            ),
            (b"\xef\xbb\xbf7\n8\n", Format::Ids, 2, 0),
            (b"\xef\xbb\xbffio version 2 iolog\nf read 0 512\n\n", Format::Fio, 1, 1),
            (b"419,W,0,4096,1577808144360767\n725,R,0,4096,1577808144360814\n", Format::Alibaba, 2, 0),
            (b"0,20941264,8192,W,0.551706\n", Format::Spc, 1, 0),
            (
                b"8,0 1 1 0.000000000 7 D R 8 + 8 [a]\n8,0 1 2 0.000000001 7 C R 8 + 8 [0]\n",
                Format::Blkparse,
                1,
                1,
            ),
            (b"fio version 2 iolog\nf add\nf read 0 512\nf sync\n", Format::Fio, 2, 1),
            (b"fio version 3 iolog\n0 f add\n1 f read 0 512\n", Format::Fio, 1, 1),
            (b"0\r\n1\r\n\r\n# end\r\n2", Format::Ids, 3, 2),
            (b"\0\0\0\x01\0\0\0\x02", Format::U32Be, 2, 0),
            (b"\x01\0\0\0\x02\0\0\0", Format::U32Le, 2, 0),
            (&[0; 72], Format::OracleGeneral, 3, 0),
        ] {
            let options = if format.is_text() { Options::default() } else { format.into() };
            let mut reader = open(text, options).expect("a trace");
            let accesses: Vec<Access> = reader.by_ref().map(|access| access.expect("an access")).collect();
            assert_eq!((reader.format(), accesses.len(), reader.skipped()), (format, count, skipped));
            assert_eq!(reader.offset(), text.len() as u64);
            assert_eq!(reader.skipped_note().is_some(), skipped > 0);
            assert!(accesses.iter().all(|access| reader.volumes().get(access.volume as usize).is_some()));
        }
    }

    #[test]
    fn errors_name_the_place_and_the_remedy() {
        let line = |line, rest: &str| format!("\"some.trace\", line {line}: {rest}");
        assert_eq!(
            told(b"0\n1\n*\n", Options::default()),
            line(
                3,
                "the decimal number of a block, below 2^64 is expected, and \"*\" is there; some collections mark the \
                 end of a trace so; delete the line"
            )
        );
        assert_eq!(
            told(b"1,a,0,Read,0,512,1\n1,a,0,Re\x1b[0m,0,512,1\n", Options::default()),
            line(
                2,
                "what is done: R or read, W or write, D or discard, F or flush is expected, and \"Re\\x1b[0m\" is there; \
                 correct or delete the line, or name the format of the file"
            )
        );
        assert_eq!(
            told(b"\0\0\0\x01\0\0", Format::U32Be.into()),
            "\"some.trace\", byte 4: a record of 4 bytes is expected, and the end of the file after 2 of them is \
             there; the file is cut off, or it has another format; copy it again, or name its format"
        );
        assert!(
            told(&[0; 47], Format::OracleGeneral.into())
                .contains("byte 24: a record of 24 bytes is expected")
        );
        let wrong = told(&[0xf0; 48], Format::OracleGeneral.into());
        assert!(
            wrong.contains("byte 0: an oracleGeneral record") && wrong.contains("check that the file"),
            "{wrong}"
        );
        assert!(
            told(b"fio version 4 iolog\n", Options::default()).contains("line 1: \"fio version 2 iolog\" or")
        );
    }

    #[test]
    fn what_is_no_trace_is_told() {
        for (text, known) in [
            (&b""[..], "the trace \"some.trace\" is empty; check that it was copied or downloaded whole"),
            (b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR", "\"some.trace\" is a PNG image; name the file of a trace"),
            (
                b"time,lba\n1,2\n",
                "\"some.trace\" is text of no known format (it begins with \"time,lba\"); name its columns with \
                 --columns, or its format: msr, alibaba, tencent, systor, spc, vscsi, blkparse, fio or ids",
            ),
            (
                b"\0\0\0\x01",
                "\"some.trace\" does not say which format it has (it begins with \"\\x00\\x00\\x00\\x01\"); if it \
                 is a trace, name its format: oracle-general, u32-be or u32-le",
            ),
        ] {
            assert_eq!(told(text, Options::default()), known);
        }
        // Named, and wrong nevertheless.
        assert!(
            told(b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR", Format::Msr.into()).contains("line 1: timestamp,hostname")
        );
        let text = b"0\n1\n2\n3\n".repeat(32).leak();
        assert!(told(text, Format::U32Le.into()).contains("is text (\"0\\n1\\n2"));
    }

    #[test]
    fn what_was_taken_for_granted_is_told() {
        for (text, options, told) in [
            (&b"1\n2\n"[..], Options::default(), ""),
            (b"1,a,0,Read,0,512,1\n", Format::Msr.into(), ""),
            (b"1,a,0,Read,0,512,1\n", Options::default(), ""),
            (
                b"0,8,512,R,0.5\n",
                Options::default(),
                "read as spc, whose columns are volume,offset:sectors,size:bytes",
            ),
            (b"8,0 1 1 0.000000000 7 Q R 8 + 8 [a]\n", Options::default(), ""),
            (b"8,0 1 1 0.000000000 7 D R 8 + 8 [a]\n", Options::default(), "has no Q events"),
            (b"8,0 1 1 0.000000000 7 C R 8 + 8 [0]\n", Options::default(), "its C events count"),
            (b"\x01\0\0\0", Format::U32Le.into(), "read as u32-le: every 4 bytes are the number of a block"),
        ] {
            let reader = open(text, options).expect("a trace");
            let notes = reader.notes().concat();
            assert!(notes.contains(told) && notes.is_empty() == told.is_empty(), "{notes}");
        }
    }

    #[test]
    fn what_was_skipped_is_told() {
        for (text, told) in [
            (&b"7\n# end\n\n"[..], "2 lines skipped; the first is line 2, which is a comment (\"# end\")"),
            (b"7\n\n", "1 line skipped; the first is line 2, which is blank"),
            (
                b"timestamp,hostname,disknumber,type,offset,size,responsetime\n1,a,0,Read,0,512,1",
                "1 line skipped; the first is line 1, which is names of columns, or no read, write, discard or flush \
                 (\"timestamp,hostname,disknumber,type,offset,size,responsetime\")",
            ),
        ] {
            let mut reader = open(text, Options::default()).expect("a trace");
            assert_eq!(reader.by_ref().filter_map(Result::ok).count(), 1);
            assert_eq!(reader.skipped_note().as_deref(), Some(told));
        }
    }

    #[test]
    fn columns_can_be_listed() {
        let columns = "time:ms,offset:sectors,op,-".parse().expect("columns");
        let options = Options { columns: Some(columns), ..Options::default() };
        let mut reader = open(b"t,lba,op,x\n7,8,W,1\n9,16,R,1\n", options).expect("a trace");
        let accesses: Vec<Access> = reader.by_ref().map(|access| access.expect("an access")).collect();
        assert_eq!((reader.format(), accesses.len(), reader.volumes().len()), (Format::Columns, 2, 1));
        assert_eq!((accesses[1].at, accesses[0].op), (Some(Nanos::from_millis(2)), crate::Op::Write));
        let told = told(b"1,2\n", Format::Columns.into());
        assert_eq!(
            told,
            "the format of \"some.trace\" is named as columns, and they are not; list them, as in --columns \
             time,volume,offset,size,op"
        );
    }

    #[test]
    fn text_of_two_bytes_a_character_is_told() {
        let text = b"\xff\xfe1\x00,\x002\0\r\0\n\0";
        for options in [Options::default(), Format::Spc.into(), Format::U32Le.into()] {
            let told = told(text, options);
            assert!(told.contains("UTF-16") && told.contains("iconv -f UTF-16 -t UTF-8"), "{told}");
        }
    }

    #[test]
    fn files_are_opened_by_their_names() {
        let folder = tempfile::tempdir().expect("a folder");
        let file = folder.path().join("a.oracleGeneral");
        let error = TraceReader::open(&file, None).expect_err("no file yet");
        assert!(matches!(error, TraceError::Open { .. }), "{error}");
        std::fs::write(&file, [0; 48]).expect("a writable folder");
        let reader = TraceReader::open(&file, None).expect("a trace");
        assert_eq!((reader.format(), reader.filter_map(Result::ok).count()), (Format::OracleGeneral, 2));
        let error = TraceReader::open(folder.path(), Some(Format::U32Be)).expect_err("a directory");
        assert!(matches!(error, TraceError::Directory { .. }), "{error}");
    }

    #[test]
    fn lines_and_volumes_are_limited() {
        let long = [&b"0\n"[..], &vec![b'1'; (64 << 10) + 1]].concat().leak();
        let error = told(long, Options::default());
        assert!(error.contains("line 2: a line of at most 64 KiB is expected"), "{error}");
        assert!(error.len() < 512, "{error}");
        let fits = [&b"0\n#"[..], &vec![b'1'; (64 << 10) - 1], b"\n1\n"].concat().leak();
        assert_eq!(open(fits, Options::default()).expect("a trace").filter_map(Result::ok).count(), 2);
        let name = format!("fio version 2 iolog\n{} read 0 1\n", "n".repeat(NAME_BYTES_MAX + 1));
        assert!(told(name.leak().as_bytes(), Options::default()).contains("of at most 256 bytes"));
    }

    #[test]
    fn times_count_from_the_first() {
        let mut clock = Clock::default();
        let told = [100, 103, 90, u64::MAX].map(|ticks| clock.since_first(ticks, 1000));
        assert_eq!(told, [Some(Nanos(0)), Some(Nanos(3000)), Some(Nanos(0)), None]);
    }
}
