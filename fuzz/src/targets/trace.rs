//! Block traces, in every format and compression.
//!
//! The first byte names the format, a list of columns, or none; the rest is the file. It is read whole and in pieces. What is not
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
    // Buffers of 256 and 64 KiB. A few bytes can be decompressed to a new name for each access, of up to 1.5 KiB.
    memory_bytes_max: (10 << 20, 64),
};

/// A small input can be decompressed to gigabytes; so many accesses are enough.
const ACCESSES_MAX: usize = 5000;

/// Lists of columns that are tried.
const LISTS: [&str; 3] = [
    "time:ms,volume,offset:sectors,size,op",
    "offset:4KiB",
    "op:scsi,volume,-,volume,offset:8EiB,time:100ns,...",
];

/// What a file is read as.
#[derive(Clone, Copy)]
enum As {
    /// What it says that it is.
    Told,
    Format(Format),
    /// One of [`LISTS`].
    Listed(usize),
}

fn seeds() -> Vec<Vec<u8>> {
    use As::{Listed, Told};
    let named = As::Format;
    let files: [(As, &[u8]); 23] = [
        (Told, b"128166372003061629,usr,0,Read,7014609920,24576,41286\r\n128166372016382155,web,1,Write,0,4096,703\n"),
        (named(Format::Msr), b"\xef\xbb\xbfTimestamp,Hostname,DiskNumber,Type,Offset,Size,ResponseTime\n1,a,0,Read,0,1,1\n\n"),
        (Told, b"419,W,8792731648,16384,1577808144360767\n725,R,59110326272,360448,1577808144360814\n"),
        (Told, b"1538323200,12910952,128,0,1063\n1538323200,6265016,8,1,1627\n"),
        (Told, b"Timestamp,Response,IOType,LUN,Offset,Size\n1455592208.007456000,0.000057,W,0,50331648,4096\n2.1,,,0,0,0\n"),
        (Told, b"0,20941264,8192,W,0.551706\n0,20939840,8192,r,0.554041,1\n"),
        (Told, b"#Vscsi Cmd Trace.\n2147483692,4096,1,write,24048792,2756778716647\n7,0,1,0x12,0,2756778716648\n"),
        (Listed(0), b"t,v,lba,n,op\n1.5,a,8,16,trim\n2,b,9,1,sync\n"),
        (Listed(1), b"7\n8\n"),
        (Listed(2), b"40 a x b 0 2.25 more\n0x2a a x c 0 3\n"),
        (
            named(Format::Blkparse),
            b"  8,0    3        1     0.000000000   697  A   W 223490 + 8 <- (8,1) 223427\n\
              8,0    3        2     0.000001829   697  Q   W 223490 + 8 [kjournald]\n\
              8,16   3        7     1.200000000   697  Q FWS [kjournald]\n\
              8,0    3        9     1.400000000   697  Q  DS 2048 + 2048 [fstrim]\n\
            CPU3 (8,0):\n Reads Queued:           1,        4KiB\n\nTotal (8,0):\n",
        ),
        (Told, b"8,0 3 1 0.000000000 697 D W 223490 + 8 [x]\n8,0 3 1 0.000000009 697 C W 8 + 8 [0]\n"),
        (Told, b"fio version 2 iolog\n/dev/sdb add\n/dev/sdb read 0 4096\n/dev/sdc trim 8192 512\n/dev/sdb sync 0 0\n"),
        (named(Format::Fio), b"fio version 3 iolog\n20 f add\n104 f read 0 4096\n135 f datasync 16384 0\n"),
        (Told, b"# blocks\n0\r\n1\r\n\r\n18446744073709551615"),
        (named(Format::Ids), b"7\n8\n9\n7\n"),
        (named(Format::U32Be), b"\0\x0d\xce\xca\0\x0d\xad\xff"),
        (named(Format::U32Le), b"\xca\xce\x0d\0\xff\xad\x0d\0"),
        (named(Format::OracleGeneral), &[1; 72]),
        (Told, GZIP),
        (Told, ZSTD),
        (Told, XZ),
        (named(Format::U32Be), XZ),
    ];
    files.map(|(read_as, file)| [&[choice(read_as)], file].concat()).into()
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

/// The byte that names what a file is read as.
fn choice(read_as: As) -> u8 {
    match read_as {
        As::Told => 0,
        As::Format(format) => {
            let place = Format::ALL.iter().position(|other| *other == format);
            place.expect("it can be named") as u8 + 1
        }
        As::Listed(list) => (Format::ALL.len() + 1 + list) as u8,
    }
}

/// What a byte names.
fn options(choice: u8) -> Options {
    let Some(place) = usize::from(choice).checked_sub(1) else { return Options::default() };
    match Format::ALL.get(place) {
        Some(format) => Options::from(*format),
        None => {
            let list = LISTS.get(place - Format::ALL.len());
            Options { columns: list.map(|list| list.parse().expect(list)), ..Options::default() }
        }
    }
}

fn run(bytes: &[u8]) -> bool {
    let Some((choice, file)) = bytes.split_first() else { return false };
    let options = options(*choice);
    let whole = read(&options, io::Cursor::new(file.to_vec()));
    for pieces in Pieces::several(file) {
        let cut = read(&options, InPieces::new(pieces));
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

fn read(options: &Options, input: impl Read + Send + 'static) -> Outcome {
    let mut outcome = Outcome::default();
    let mut reader = match TraceReader::from_read("input", input, options.clone()) {
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
