//! Block traces, in every format and compression.
//!
//! The first byte names the format, or none; the rest is the file. It is read whole and in pieces. What is not
//! compressed must come out the same; in a damaged stream it depends on the pieces how much a decompressor gives before
//! it notices.

use std::hash::{DefaultHasher, Hash, Hasher};
use std::io::{self, Read};

use tier0_trace::{Compression, Format, Options, TraceReader};

use super::pieces::Pieces;
use crate::Target;

pub(super) const TARGET: Target = Target {
    name: "trace",
    seeds,
    repair: |_| {},
    run,
    input_bytes_max: 16 << 10,
    inputs_in_tests: 4000,
    // Buffers of 256 and 64 KiB. A few bytes can be decompressed to all the names that a trace may have, each of which
    // takes up to 1.5 KiB.
    memory_bytes_max: (8 << 20, 64),
};

/// A small input can be decompressed to gigabytes; so many accesses are enough.
const ACCESSES_MAX: usize = 20_000;

fn seeds() -> Vec<Vec<u8>> {
    let files: [(Option<Format>, &[u8]); 13] = [
        (None, b"128166372003061629,usr,0,Read,7014609920,24576,41286\r\n128166372016382155,web,1,Write,0,4096,703\n"),
        (
            Some(Format::Blkparse),
            b"  8,0    3        1     0.000000000   697  A   W 223490 + 8 <- (8,1) 223427\n\
              8,0    3        2     0.000001829   697  Q   W 223490 + 8 [kjournald]\n\
              8,16   3        7     1.200000000   697  Q FWS [kjournald]\n\
              8,0    3        9     1.400000000   697  Q  DS 2048 + 2048 [fstrim]\n\
            CPU3 (8,0):\n Reads Queued:           1,        4KiB\n\nTotal (8,0):\n",
        ),
        (None, b"fio version 2 iolog\n/dev/sdb add\n/dev/sdb read 0 4096\n/dev/sdc trim 8192 512\n/dev/sdb sync 0 0\n"),
        (Some(Format::Fio), b"fio version 3 iolog\n20 f add\n104 f read 0 4096\n135 f datasync 16384 0\n"),
        (None, b"# blocks\n0\r\n1\r\n\r\n18446744073709551615"),
        (Some(Format::Ids), b"7\n8\n9\n7\n"),
        (Some(Format::U32Be), b"\0\x0d\xce\xca\0\x0d\xad\xff"),
        (Some(Format::U32Le), b"\xca\xce\x0d\0\xff\xad\x0d\0"),
        (Some(Format::OracleGeneral), &[1; 72]),
        (None, GZIP),
        (None, ZSTD),
        (None, XZ),
        (Some(Format::U32Be), XZ),
    ];
    files.map(|(format, file)| [&[choice(format)], file].concat()).into()
}

/// `7\n8\n9\n7\n`, as gzip makes of it.
const GZIP: &[u8] =
    b"\x1f\x8b\x08\0\0\0\0\0\x02\x03\x33\xe7\xb2\xe0\xb2\xe4\x32\xe7\x02\0\xf5\x3c\xa5\x1c\x08\0\0\0";
/// The same of zstd.
const ZSTD: &[u8] = b"\x28\xb5\x2f\xfd\x04\x68\x41\0\x00\x37\n8\n9\n7\n\xd9\x27\xa0\x45";
/// The same of xz.
const XZ: &[u8] =
    b"\xfd7zXZ\0\0\x01\x69\x22\xde\x36\x02\0\x21\x01\x0c\0\0\0\x8f\x98\x41\x9c\x01\0\x07\x37\n8\n9\n7\n\0\
    \xf5\x3c\xa5\x1c\0\x01\x1c\x08\x44\x60\x2a\xc8\x90\x42\x99\x0d\x01\0\0\0\0\x01YZ";

/// The byte that names a format.
fn choice(format: Option<Format>) -> u8 {
    let place = format.and_then(|format| Format::ALL.iter().position(|other| *other == format));
    place.map_or(0, |place| place as u8 + 1)
}

fn run(bytes: &[u8]) -> bool {
    let Some((choice, file)) = bytes.split_first() else { return false };
    let format = usize::from(*choice).checked_sub(1).and_then(|place| Format::ALL.get(place).copied());
    let whole = read(format, io::Cursor::new(file.to_vec()));
    for pieces in Pieces::several(file) {
        let cut = read(format, InPieces::new(pieces));
        let is_same = whole == cut || Compression::recognise(file).is_some();
        assert!(is_same, "it matters how the file is cut: {whole:?} against {cut:?}");
    }
    whole.error.is_none() && whole.accesses > 0
}

/// What was made of a file.
#[derive(Debug, Default, PartialEq)]
struct Outcome {
    accesses: usize,
    skipped: u64,
    hash: u64,
    error: Option<String>,
}

fn read(format: Option<Format>, input: impl Read + Send + 'static) -> Outcome {
    let mut outcome = Outcome::default();
    let options = Options { format, ..Options::default() };
    let mut reader = match TraceReader::from_read("input", input, options) {
        Ok(reader) => reader,
        Err(error) => {
            outcome.error = Some(error.to_string());
            return outcome;
        }
    };
    let mut hasher = DefaultHasher::new();
    while let Some(access) = (outcome.accesses < ACCESSES_MAX).then(|| reader.next()).flatten() {
        match access {
            Ok(access) => {
                assert!(reader.volumes().len() > access.volume as usize, "{access:?} has no volume");
                outcome.accesses += 1;
                access.hash(&mut hasher);
            }
            Err(error) => {
                let told = error.to_string();
                assert!(told.len() < 1024, "{} bytes of error: {told}", told.len());
                assert!(!told.contains(char::is_control), "unprintable: {told:?}");
                assert!(reader.next().is_none(), "it ends after an error");
                outcome.error = Some(told);
            }
        }
    }
    outcome.skipped = reader.skipped();
    outcome.hash = hasher.finish();
    outcome
}

/// A file that comes in pieces.
struct InPieces {
    pieces: std::vec::IntoIter<Vec<u8>>,
}

impl InPieces {
    fn new(mut pieces: Pieces<'_>) -> InPieces {
        let mut all = Vec::new();
        let mut piece = Vec::new();
        while pieces.receive(&mut piece) {
            all.push(std::mem::take(&mut piece));
        }
        InPieces { pieces: all.into_iter() }
    }
}

impl Read for InPieces {
    /// Gives one piece at a time, or of a larger one what fits.
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let Some(piece) = self.pieces.as_mut_slice().first_mut() else { return Ok(0) };
        let some = piece.len().min(buffer.len());
        buffer[..some].copy_from_slice(&piece[..some]);
        piece.drain(..some);
        if piece.is_empty() {
            self.pieces.next();
        }
        Ok(some)
    }
}
