//! Compressed traces: every compression, whole, in parts, cut off, damaged, and such as want too much memory.

use std::io::{self, Read, Seek, Write};
use std::process::Command;

use tier0_trace::{Access, Compression, Format, Options, Place, TraceError, TraceReader};

const ALL: [Compression; 3] = [Compression::Gzip, Compression::Zstd, Compression::Xz];

fn compress(compression: Compression, bytes: &[u8]) -> Vec<u8> {
    match compression {
        Compression::Gzip => {
            let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::default());
            encoder.write_all(bytes).expect("memory");
            encoder.finish().expect("memory")
        }
        Compression::Zstd => {
            ruzstd::encoding::compress_to_vec(bytes, ruzstd::encoding::CompressionLevel::Fastest)
        }
        Compression::Xz => {
            let options = lzma_rust2::XzOptions::with_preset(1);
            let mut encoder = lzma_rust2::XzWriter::new(Vec::new(), options).expect("options");
            encoder.write_all(bytes).expect("memory");
            encoder.finish().expect("memory")
        }
    }
}

/// Numbers of blocks that do not compress to nothing.
fn blocks(count: u32) -> Vec<u32> {
    (0..count).map(|number| number.wrapping_mul(0x9e37_79b9) >> 8).collect()
}

fn bytes(blocks: &[u32]) -> Vec<u8> {
    blocks.iter().flat_map(|block| block.to_be_bytes()).collect()
}

/// What was delivered, and the error after it.
fn read(input: impl Read + Send + 'static) -> (Vec<u32>, Option<TraceError>) {
    let mut reader = match TraceReader::from_read("t", input, Options::from(Format::U32Be)) {
        Ok(reader) => reader,
        Err(error) => return (Vec::new(), Some(error)),
    };
    let mut blocks = Vec::new();
    for access in reader.by_ref() {
        match access {
            Ok(Access { place: Place::Object { id, .. }, .. }) => blocks.push(id as u32),
            Ok(other) => panic!("{other:?} is no block"),
            Err(error) => {
                assert!(reader.next().is_none(), "it ends after an error");
                return (blocks, Some(error));
            }
        }
    }
    (blocks, None)
}

/// Gives few bytes at a time.
struct Dribble(Vec<u8>, usize);

impl Read for Dribble {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let some = buffer.len().min(1 + self.1 % 7).min(self.0.len() - self.1);
        buffer[..some].copy_from_slice(&self.0[self.1..self.1 + some]);
        self.1 += some;
        Ok(some)
    }
}

#[test]
fn each_is_recognised_and_read_whole_and_in_parts() {
    let blocks = blocks(100_000);
    for compression in ALL {
        let compressed = compress(compression, &bytes(&blocks));
        assert_eq!(Compression::recognise(&compressed), Some(compression));
        let reader = TraceReader::from_read("t", io::Cursor::new(compressed.clone()), Format::U32Be.into());
        assert_eq!(reader.expect("a trace").compression(), Some(compression));
        let dribble = Dribble(compressed.clone(), 0);
        for (found, error) in [read(io::Cursor::new(compressed)), read(dribble)] {
            assert!(error.is_none() && found == blocks, "{compression}: {error:?}");
        }
    }
}

#[test]
fn what_the_usual_programs_write_is_read() {
    let blocks = blocks(100_000);
    let commands: [(Compression, &[&str]); 7] = [
        (Compression::Gzip, &["gzip", "-9"]),
        (Compression::Zstd, &["zstd", "-q", "-1"]),
        (Compression::Zstd, &["zstd", "-q", "-19", "--no-check"]),
        (Compression::Zstd, &["zstd", "-q", "--ultra", "-22", "--long=27"]),
        (Compression::Xz, &["xz", "-0"]),
        (Compression::Xz, &["xz", "-9", "--check=sha256"]),
        (Compression::Xz, &["xz", "--block-size=64KiB", "--check=crc32"]),
    ];
    for (compression, command) in commands {
        let mut plain = tempfile::tempfile().expect("a file");
        plain.write_all(&bytes(&blocks)).expect("room");
        plain.rewind().expect("a file");
        let output = Command::new(command[0]).args(&command[1..]).arg("-c").stdin(plain).output();
        let Ok(output) = output else {
            eprintln!("skipped: {} is not installed", command[0]);
            continue;
        };
        assert!(output.status.success(), "{command:?}");
        let (found, error) = read(io::Cursor::new(output.stdout));
        assert!(error.is_none() && found == blocks, "{compression} by {command:?}: {error:?}");
    }
}

#[test]
fn a_frame_that_zstd_skips_is_skipped() {
    let blocks = blocks(1000);
    let skipped = [0x5a, 0x2a, 0x4d, 0x18, 3, 0, 0, 0, 1, 2, 3];
    let frame = compress(Compression::Zstd, &bytes(&blocks));
    let around = [&skipped[..], &frame, &skipped].concat();
    let (found, error) = read(io::Cursor::new(around.clone()));
    assert!(error.is_none() && found == blocks, "{error:?}");
    let (found, error) = read(io::Cursor::new(around[..around.len() - 1].to_vec()));
    assert!(found == blocks && error.expect("it is cut off").to_string().contains("is cut off"));
}

#[test]
fn streams_that_follow_each_other_are_one() {
    let blocks = blocks(5000);
    let (first, second) = blocks.split_at(1234);
    for compression in ALL {
        let mut compressed = compress(compression, &bytes(first));
        compressed.extend(compress(compression, &bytes(second)));
        let (found, error) = read(io::Cursor::new(compressed));
        assert!(error.is_none() && found == blocks, "{compression}: {error:?}");
    }
}

/// Tapes and block devices fill their last block with zeros, which was told as damage.
#[test]
fn zeros_behind_gzip_members_are_passed_over() {
    let blocks = blocks(5000);
    let member = |blocks: &[u32]| compress(Compression::Gzip, &bytes(blocks));
    for zeros in [1, 511, 100_000] {
        let padding = vec![0; zeros];
        let padded = [&member(&blocks[..1234])[..], &padding, &member(&blocks[1234..]), &padding].concat();
        let (found, error) = read(Dribble(padded.clone(), 0));
        assert!(error.is_none() && found == blocks, "{zeros}: {error:?}");
        let (found, error) = read(io::Cursor::new([&padded[..], b"garbage that is long enough"].concat()));
        let told = error.expect("it is no member").to_string();
        assert!(found == blocks && told.contains("is damaged"), "{zeros}: {told}");
    }
}

#[test]
fn a_stream_that_is_cut_off_is_an_error_after_all_that_came_before() {
    let blocks = blocks(300_000);
    for compression in ALL {
        let compressed = compress(compression, &bytes(&blocks));
        for cut in [7, 20, 1000, compressed.len() / 2, compressed.len() - 10, compressed.len() - 1] {
            let (found, error) = read(io::Cursor::new(compressed[..cut].to_vec()));
            let error = error.expect("it is cut off");
            let TraceError::Stream { offset, .. } = error else { panic!("{compression} at {cut}: {error}") };
            assert!(error.to_string().contains("is cut off"), "{error}");
            assert_eq!(found.len() as u64, offset / 4, "{compression} at {cut}: {error}");
            assert!(found == blocks[..found.len()], "{compression} at {cut}");
            // Nothing much is kept back: a decompressor works in blocks of its format.
            let expected = 4 * blocks.len() * cut / compressed.len();
            let lost = expected.saturating_sub(4 * found.len());
            assert!(lost <= 512 << 10, "{compression} at {cut}: {lost} bytes were not delivered");
        }
    }
}

#[test]
fn damage_is_an_error() {
    let blocks = blocks(50_000);
    for compression in ALL {
        let mut compressed = compress(compression, &bytes(&blocks));
        let middle = compressed.len() / 2;
        compressed[middle..middle + 64].fill(0x55);
        let (_, error) = read(io::Cursor::new(compressed));
        let error = error.expect("it is damaged");
        let told = error.to_string();
        assert!(matches!(error, TraceError::Stream { .. }), "{compression}: {told}");
        assert!(told.contains("is damaged") && told.contains(&format!("{compression} -t")), "{told}");
    }
}

#[test]
fn empty_streams_are_empty_traces() {
    for compression in ALL {
        let (_, error) = read(io::Cursor::new(compress(compression, b"")));
        assert!(matches!(error, Some(TraceError::Empty { .. })), "{compression}: {error:?}");
    }
}

#[test]
fn a_window_beyond_the_limit_is_refused() {
    // A zstd frame whose header asks for a window of 2 GiB.
    let frame = [0x28, 0xb5, 0x2f, 0xfd, 0x00, (31 - 10) << 3, 0x01, 0x00, 0x00];
    let (_, error) = read(io::Cursor::new(frame.to_vec()));
    let told = error.expect("too large").to_string();
    assert!(told.contains("needs more than 128 MiB of memory") && told.contains("smaller window"), "{told}");
    // An xz stream with a dictionary of 1 GiB; the encoder would need several times as much, so the header is edited.
    let mut compressed = compress(Compression::Xz, &bytes(&blocks(1000)));
    // Stream header of 12 bytes; then size, flags, id of LZMA2 (0x21), size of its property, the property.
    assert_eq!(compressed[14..16], [0x21, 1]);
    compressed[16] = 36;
    let header = 12..12 + (usize::from(compressed[12]) + 1) * 4;
    let mut crc = flate2::Crc::new();
    crc.update(&compressed[header.start..header.end - 4]);
    compressed[header.end - 4..header.end].copy_from_slice(&crc.sum().to_le_bytes());
    let (_, error) = read(io::Cursor::new(compressed));
    let told = error.expect("too large").to_string();
    assert!(told.contains("needs more than 128 MiB of memory"), "{told}");
}

#[test]
fn a_bomb_is_a_stream_like_any_other() {
    // 64 MiB of zeros in some kilobytes; the first million of accesses is enough.
    for compression in ALL {
        let compressed = compress(compression, &vec![0; 64 << 20]);
        assert!(compressed.len() < 128 << 10, "{compression}");
        let reader = TraceReader::from_read("t", io::Cursor::new(compressed), Format::U32Le.into());
        let taken = reader.expect("a trace").take(1 << 20).filter_map(Result::ok).count();
        assert_eq!(taken, 1 << 20, "{compression}");
        // As text it is one line, which is too long.
        let compressed = compress(compression, &vec![b'1'; 8 << 20]);
        let reader = TraceReader::from_read("t", io::Cursor::new(compressed), Format::Ids.into());
        let error = reader.expect("a trace").next().expect("an error").expect_err("a long line");
        assert!(error.to_string().contains("64 KiB"), "{error}");
    }
}

#[test]
fn failures_of_the_input_are_told_as_such() {
    struct Failing;
    impl Read for Failing {
        fn read(&mut self, _: &mut [u8]) -> io::Result<usize> {
            Err(io::Error::from_raw_os_error(5))
        }
    }
    let (found, error) = read(io::Cursor::new(bytes(&blocks(3))).chain(Failing));
    assert_eq!(found.len(), 3);
    assert!(matches!(error, Some(TraceError::Read { offset: 12, .. })), "{error:?}");
    let compressed = compress(Compression::Gzip, &bytes(&blocks(1000)));
    let (_, error) = read(io::Cursor::new(compressed[..100].to_vec()).chain(Failing));
    assert!(matches!(error, Some(TraceError::Read { .. })), "{error:?}");
}
