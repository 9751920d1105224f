//! What can go wrong with a trace, in words that name the place and the remedy.

use std::io;
use std::path::PathBuf;

use crate::Compression;

/// A trace that cannot be read, or not any further.
#[derive(Debug, thiserror::Error)]
pub enum TraceError {
    /// The file cannot be opened.
    #[error("cannot open the trace \"{}\" ({source}); check that it exists and may be read", .file.display())]
    Open {
        /// The file.
        file: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// A directory instead of a file.
    #[error("\"{}\" is a directory, and a trace is one file; name the file", .file.display())]
    Directory {
        /// The directory.
        file: PathBuf,
    },
    /// No bytes at all, or none after decompression.
    #[error("the trace \"{}\" is empty; check that it was copied or downloaded whole", .file.display())]
    Empty {
        /// The file.
        file: PathBuf,
    },
    /// A file whose format cannot be told, or that is no trace.
    #[error("\"{}\" {fact}; {remedy}", .file.display())]
    Unrecognised {
        /// The file.
        file: PathBuf,
        /// What it is, as far as it can be told.
        fact: String,
        /// What to do about it.
        remedy: String,
    },
    /// Text in columns that nobody has listed.
    #[error(
        "the format of \"{}\" is named as columns, and they are not; list them, as in --columns \
         time,volume,offset,size,op", .file.display()
    )]
    NoColumns {
        /// The file.
        file: PathBuf,
    },
    /// The system cannot read on.
    #[error("cannot read \"{}\" at byte {offset} ({source}); check the drive that it lies on", .file.display())]
    Read {
        /// The file.
        file: PathBuf,
        /// How many bytes, decompressed, came before.
        offset: u64,
        /// What the system said.
        source: io::Error,
    },
    /// A compressed stream that ends too early, is damaged, or needs too much memory.
    #[error("the {compression} stream of \"{}\" {fact} after {offset} decompressed bytes; {remedy}", .file.display())]
    Stream {
        /// The file.
        file: PathBuf,
        /// What it is compressed with.
        compression: Compression,
        /// How many decompressed bytes came before.
        offset: u64,
        /// What is wrong.
        fact: String,
        /// What to do about it.
        remedy: String,
    },
    /// A line that is not what the format has there.
    #[error("\"{}\", line {line}: {expected} is expected, and {found} is there; {remedy}", .file.display())]
    Line {
        /// The file.
        file: PathBuf,
        /// The line, from 1.
        line: u64,
        /// What the format has there.
        expected: &'static str,
        /// What is there, of bounded length and printable.
        found: String,
        /// What to do about it.
        remedy: &'static str,
    },
    /// A binary record that is not what the format has there.
    #[error("\"{}\", byte {offset}: {expected} is expected, and {found} is there; {remedy}", .file.display())]
    Record {
        /// The file.
        file: PathBuf,
        /// Where the record begins, in bytes after decompression.
        offset: u64,
        /// What the format has there.
        expected: &'static str,
        /// What is there, of bounded length and printable.
        found: String,
        /// What to do about it.
        remedy: &'static str,
    },
}

/// What a parser has against a line or a record; the reader knows where that is.
#[derive(Debug, PartialEq)]
pub(crate) struct Misread {
    pub(crate) expected: &'static str,
    pub(crate) found: String,
    pub(crate) remedy: &'static str,
}

impl Misread {
    /// These bytes are something else.
    #[cold]
    pub(crate) fn new(expected: &'static str, found: &[u8], remedy: &'static str) -> Misread {
        Misread { expected, found: excerpt(found), remedy }
    }
}

/// How much of a file an error shows, bytes.
const EXCERPT_BYTES: usize = 60;

/// The beginning of what a file has, as printable text.
pub(crate) fn excerpt(bytes: &[u8]) -> String {
    match bytes.get(..EXCERPT_BYTES) {
        _ if bytes.is_empty() => "nothing".to_owned(),
        Some(first) if first.len() < bytes.len() => format!("\"{}…\"", first.escape_ascii()),
        _ => format!("\"{}\"", bytes.escape_ascii()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn excerpts_are_short_and_printable() {
        assert_eq!(excerpt(b""), "nothing");
        assert_eq!(excerpt(b"a\x1b[2J\"\xff"), r#""a\x1b[2J\"\xff""#);
        let long = excerpt(&[0; 1 << 20]);
        assert!(long.len() < 300 && long.ends_with("…\""), "{long}");
    }

    #[test]
    fn errors_are_small_enough_to_be_passed_around() {
        assert!(size_of::<TraceError>() <= 96, "{}", size_of::<TraceError>());
    }
}
