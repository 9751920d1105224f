//! The iterator over the accesses of a trace.

use std::fs::File;
use std::io::{ErrorKind, Read};
use std::path::{Path, PathBuf};

use tier0_units::Nanos;

use crate::access::Access;
use crate::blkparse::{Action, Blkparse};
use crate::error::{Misread, TraceError, excerpt};
use crate::source::Source;
use crate::volumes::{NAME_BYTES_MAX, Refusal, VOLUMES_MAX, Volumes};
use crate::{Compression, Format, binary, fio, format, ids, msr};

/// How much of a file its format is told by, bytes.
const HEAD_BYTES: usize = 4096;
/// A binary format whose first bytes are text, as many as these with an end of a line among them, was named by mistake.
const TEXT_BYTES_MIN: usize = 256;

/// What to do about a line that is malformed.
pub(crate) const CHECK_LINE: &str = "correct or delete the line, or name the format of the file";
/// What to do about a file that looks like another format.
pub(crate) const CHECK_FORMAT: &str = "check that the file is of the format that was named";

/// How a trace is to be read.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Options {
    /// The format; none to recognise it.
    pub format: Option<Format>,
    /// Which action of `blkparse` counts as the access. Other formats do not have it.
    pub action: Action,
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
    skipped: u64,
    is_over: bool,
}

/// What a format remembers.
enum Parser {
    Msr,
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
        let format = match options.format {
            Some(format) => format,
            None => Format::guess(source.file(), &head).ok_or_else(|| unrecognised(source.file(), &head))?,
        };
        if !format.is_text()
            && head.len() >= TEXT_BYTES_MIN
            && format::is_text(&head)
            && head.contains(&b'\n')
        {
            return Err(TraceError::Unrecognised {
                file: source.file().to_owned(),
                fact: format!("is text ({}), and {format} is binary", excerpt(&head)),
                remedy: "name another format, or none to have it recognised".to_owned(),
            });
        }
        let parser = match format {
            Format::Msr => Parser::Msr,
            Format::OracleGeneral => Parser::OracleGeneral,
            Format::Blkparse => Parser::Blkparse(Blkparse::new(options.action)),
            Format::Ids => Parser::Ids,
            Format::U32Be => Parser::U32Be,
            Format::U32Le => Parser::U32Le,
            Format::Fio => {
                let version = fio::version(source.line()?.unwrap_or_default());
                Parser::Fio(version.map_err(|misread| source.line_error(misread))?)
            }
        };
        let volumes = match format {
            Format::Msr | Format::Blkparse | Format::Fio => Volumes::new(),
            Format::Ids | Format::OracleGeneral | Format::U32Be | Format::U32Le => Volumes::single("trace"),
        };
        let clock = Clock::default();
        Ok(TraceReader { source, format, parser, volumes, clock, skipped: 0, is_over: false })
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

    /// How many lines so far were no accesses: comments, blank lines, headers, other actions, summaries.
    pub fn skipped(&self) -> u64 {
        self.skipped
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
            Parser::Msr => lines(source, skipped, |line, is_first| match is_first && msr::is_header(line) {
                true => Ok(None),
                false => msr::parse(line, volumes, clock).map(Some),
            }),
            Parser::Ids => lines(source, skipped, |line, _| ids::parse(line)),
            Parser::Blkparse(state) => lines(source, skipped, |line, _| state.parse(line, volumes, clock)),
            Parser::Fio(version) => {
                lines(source, skipped, |line, _| fio::parse(line, *version, volumes, clock))
            }
        }
    }
}

/// The access of the next line that has one.
#[inline]
fn lines(
    source: &mut Source,
    skipped: &mut u64,
    mut parse: impl FnMut(&[u8], bool) -> Result<Option<Access>, Misread>,
) -> Result<Option<Access>, TraceError> {
    loop {
        let is_first = source.offset() == 0;
        let Some(line) = source.line()? else { return Ok(None) };
        match parse(line, is_first) {
            Ok(Some(access)) => return Ok(Some(access)),
            Ok(None) => *skipped += 1,
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
    first: Option<u64>,
}

impl Clock {
    /// A time in units of so many nanoseconds, since the first that was given; zero where it is earlier. None where
    /// that is beyond 2^64 ns.
    #[inline]
    pub(crate) fn since_first(&mut self, ticks: u64, tick_ns: u64) -> Option<Nanos> {
        let first = *self.first.get_or_insert(ticks);
        ticks.saturating_sub(first).checked_mul(tick_ns).map(Nanos)
    }
}

/// Why a volume got no number.
#[cold]
pub(crate) fn volume_error(refusal: &Refusal, name: &[u8]) -> Misread {
    const { assert!(NAME_BYTES_MAX == 256 && VOLUMES_MAX == 4096, "the errors say so") };
    let (expected, remedy) = match refusal {
        Refusal::Long => ("the name of a volume, of at most 256 bytes", CHECK_FORMAT),
        Refusal::Many => ("one of the 4096 volumes that came before", "cut the trace into several"),
    };
    Misread::new(expected, name, remedy)
}

/// A file whose format nobody has named and that does not tell.
#[cold]
fn unrecognised(file: &Path, head: &[u8]) -> TraceError {
    let (fact, remedy) = if let Some(what) = format::foreign(head) {
        (format!("is {what}"), "name the file of a trace".to_owned())
    } else if format::is_text(head) {
        let first = excerpt(format::first_line(head).unwrap_or_default());
        let known = Format::ALL.into_iter().filter(|format| format.is_text()).collect::<Vec<_>>();
        (
            format!("is text of no known format (it begins with {first})"),
            format!("turn it into one of the formats {}", Format::names(&known)),
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
                "\"Read\" or \"Write\" is expected, and \"Re\\x1b[0m\" is there; correct or delete the line, or \
                 name the format of the file"
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
                "\"some.trace\" is text of no known format (it begins with \"time,lba\"); turn it into one of the \
                 formats msr, blkparse, fio or ids",
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
        let mut many = "fio version 2 iolog\n".to_owned();
        for number in 0..=VOLUMES_MAX {
            many.push_str(&format!("f{number} read 0 1\n"));
        }
        let error = told(many.leak().as_bytes(), Options::default());
        assert!(error.contains("line 4098: one of the 4096 volumes that came before is expected"), "{error}");
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
