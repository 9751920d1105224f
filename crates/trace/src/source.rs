//! Bytes of a trace, decompressed, as lines and records.

use std::io::{self, Cursor, ErrorKind, Read};
use std::ops::Range;
use std::path::{Path, PathBuf};

use crate::compression::MAGIC_BYTES;
use crate::error::{Misread, TraceError, excerpt};
use crate::{Compression, reader};

/// How much of the trace is in memory, bytes.
pub(crate) const BUFFER_BYTES: usize = 256 << 10;
/// The longest line, bytes.
pub(crate) const LINE_BYTES_MAX: usize = 64 << 10;

/// The byte order mark that some programs write before UTF-8.
const MARK: &[u8] = b"\xef\xbb\xbf";

/// Text without the byte order mark before it.
#[inline]
pub(crate) fn without_mark(text: &[u8]) -> &[u8] {
    text.strip_prefix(MARK).unwrap_or(text)
}

/// A trace as a stream of bytes.
pub(crate) struct Source {
    file: PathBuf,
    input: Box<dyn Read + Send>,
    compression: Option<Compression>,
    buffer: Box<[u8]>,
    /// What of the buffer is still to be read.
    unread: Range<usize>,
    /// How many bytes have been read into the buffer so far.
    arrived: u64,
    /// How many lines have been taken.
    lines: u64,
    end: End,
    has_open_line: bool,
}

/// Whether more can come.
enum End {
    Open,
    Reached,
    /// It failed, which is told after what came before.
    Failed(io::Error),
}

impl Source {
    /// Begins to read; what is compressed is recognised.
    pub(crate) fn open(file: PathBuf, mut input: impl Read + Send + 'static) -> Result<Source, TraceError> {
        let mut magic = [0; MAGIC_BYTES];
        let mut held = 0;
        while held < MAGIC_BYTES {
            match input.read(&mut magic[held..]) {
                Ok(0) => break,
                Ok(more) => held += more,
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return Err(failure(&file, None, 0, error)),
            }
        }
        let magic = magic[..held].to_vec();
        let compression = Compression::recognise(&magic);
        let whole = Cursor::new(magic).chain(input);
        let input = match compression {
            None => Box::new(whole),
            Some(compression) => compression.decompress(whole),
        };
        let buffer = vec![0; BUFFER_BYTES].into_boxed_slice();
        Ok(Source {
            file,
            input,
            compression,
            buffer,
            unread: 0..0,
            arrived: 0,
            lines: 0,
            end: End::Open,
            has_open_line: false,
        })
    }

    /// The file's name.
    pub(crate) fn file(&self) -> &Path {
        &self.file
    }

    /// What it is compressed with.
    pub(crate) fn compression(&self) -> Option<Compression> {
        self.compression
    }

    /// Whether the last line had no end.
    pub(crate) fn has_open_line(&self) -> bool {
        self.has_open_line
    }

    /// The first bytes, as many as there are up to `most`; nothing has been taken yet.
    pub(crate) fn head(&mut self, most: usize) -> Result<&[u8], TraceError> {
        while self.unread.len() < most && self.fill() {}
        if self.unread.is_empty() {
            self.ended()?;
            return Err(TraceError::Empty { file: self.file.clone() });
        }
        let head = &self.buffer[self.unread.clone()];
        Ok(&head[..head.len().min(most)])
    }

    /// Takes the next line, without its end and without a byte order mark before it: files that were put one behind another have
    /// them in their middle. None after the last.
    #[inline]
    pub(crate) fn line(&mut self) -> Result<Option<&[u8]>, TraceError> {
        let unread = &self.buffer[self.unread.clone()];
        let length = match memchr::memchr(b'\n', unread) {
            Some(length) if length <= LINE_BYTES_MAX => length,
            _ => match self.seek_line_end()? {
                Some(length) => length,
                None => return Ok(None),
            },
        };
        self.lines += 1;
        let line = self.unread.start..self.unread.start + length;
        // The last line may be without an end.
        self.unread.start = (line.end + 1).min(self.unread.end);
        let line = &self.buffer[line];
        Ok(Some(without_mark(line.strip_suffix(b"\r").unwrap_or(line))))
    }

    /// The length of the next line, whose end is not in the buffer.
    #[cold]
    fn seek_line_end(&mut self) -> Result<Option<usize>, TraceError> {
        loop {
            let unread = &self.buffer[self.unread.clone()];
            let end = memchr::memchr(b'\n', &unread[..unread.len().min(LINE_BYTES_MAX + 1)]);
            if end.is_some() {
                return Ok(end);
            }
            if unread.len() > LINE_BYTES_MAX {
                let found = format!("{}, which is longer", excerpt(unread));
                self.lines += 1;
                let expected = "a line of at most 64 KiB";
                return Err(self.line_error(Misread { expected, found, remedy: reader::CHECK_FORMAT }));
            }
            if !self.fill() {
                // Half a line is no line where the stream broke off.
                self.ended()?;
                self.has_open_line = !self.unread.is_empty();
                return Ok(self.has_open_line.then_some(self.unread.len()));
            }
        }
    }

    /// Takes the next record of `N` bytes; none after the last.
    #[inline]
    pub(crate) fn record<const N: usize>(&mut self) -> Result<Option<[u8; N]>, TraceError> {
        if self.unread.len() < N && !self.seek_record(N)? {
            return Ok(None);
        }
        let start = self.unread.start;
        self.unread.start += N;
        let record = &self.buffer[start..start + N];
        Ok(Some(record.try_into().expect("as long as it was cut")))
    }

    /// Whether there is another record of `bytes` bytes.
    #[cold]
    fn seek_record(&mut self, bytes: usize) -> Result<bool, TraceError> {
        while self.unread.len() < bytes {
            if !self.fill() {
                self.ended()?;
                if self.unread.is_empty() {
                    return Ok(false);
                }
                return Err(TraceError::Record {
                    file: self.file.clone(),
                    offset: self.offset(),
                    expected: match bytes {
                        4 => "a record of 4 bytes",
                        _ => "a record of 24 bytes",
                    },
                    found: format!("the end of the file after {} of them", self.unread.len()),
                    remedy: "the file is cut off, or it has another format; copy it again, or name its format",
                });
            }
        }
        Ok(true)
    }

    /// How many bytes, decompressed, have been taken.
    pub(crate) fn offset(&self) -> u64 {
        self.arrived - self.unread.len() as u64
    }

    /// How many lines have been taken: the number of the last one.
    pub(crate) fn line_number(&self) -> u64 {
        self.lines
    }

    /// A parser's complaint about the line that was taken last.
    #[cold]
    pub(crate) fn line_error(&self, misread: Misread) -> TraceError {
        let Misread { expected, found, remedy } = misread;
        TraceError::Line { file: self.file.clone(), line: self.lines, expected, found, remedy }
    }

    /// A parser's complaint about the record that was taken last.
    #[cold]
    pub(crate) fn record_error(&self, misread: Misread, bytes: u64) -> TraceError {
        let Misread { expected, found, remedy } = misread;
        let offset = self.offset() - bytes;
        TraceError::Record { file: self.file.clone(), offset, expected, found, remedy }
    }

    /// Gets more bytes; false when there are none, or no room.
    #[cold]
    fn fill(&mut self) -> bool {
        if !matches!(self.end, End::Open) {
            return false;
        }
        if self.unread.start > 0 {
            self.buffer.copy_within(self.unread.clone(), 0);
            self.unread = 0..self.unread.len();
        }
        let room = &mut self.buffer[self.unread.end..];
        if room.is_empty() {
            return false;
        }
        loop {
            match self.input.read(room) {
                Ok(0) => self.end = End::Reached,
                Ok(more) => {
                    self.unread.end += more;
                    self.arrived += more as u64;
                    return true;
                }
                Err(error) if error.kind() == ErrorKind::Interrupted => continue,
                Err(error) => self.end = End::Failed(error),
            }
            return false;
        }
    }

    /// Nothing more comes; an error if that is because it failed.
    #[cold]
    fn ended(&mut self) -> Result<(), TraceError> {
        match std::mem::replace(&mut self.end, End::Reached) {
            End::Failed(error) => Err(failure(&self.file, self.compression, self.arrived, error)),
            End::Open | End::Reached => Ok(()),
        }
    }
}

/// What the system or a decompressor said.
#[cold]
fn failure(file: &Path, compression: Option<Compression>, offset: u64, source: io::Error) -> TraceError {
    let file = file.to_owned();
    // Decompressors have no error numbers of the system.
    let Some(compression) = compression.filter(|_| source.raw_os_error().is_none()) else {
        return match source.kind() {
            ErrorKind::IsADirectory => TraceError::Directory { file },
            _ => TraceError::Read { file, offset, source },
        };
    };
    let (fact, remedy) = if source.kind() == ErrorKind::UnexpectedEof {
        ("is cut off".to_owned(), "copy or download it again".to_owned())
    } else if source.kind() == ErrorKind::OutOfMemory {
        (
            "needs more than 128 MiB of memory".to_owned(),
            "decompress it first, or compress it with a smaller window (zstd without --long, xz with -9 or less)"
                .to_owned(),
        )
    } else {
        let said = excerpt(source.to_string().as_bytes());
        (format!("is damaged ({said})"), format!("check it with \"{compression} -t\", and copy it again"))
    };
    TraceError::Stream { file, compression, offset, fact, remedy }
}
