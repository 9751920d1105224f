//! Compressed files: recognised by their first bytes, decompressed as a stream.

use std::fmt;
use std::io::{BufReader, Read};

use crate::gzip::GzipReader;
use crate::zstd::ZstdReader;

/// What a file can be compressed with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Compression {
    /// gzip (RFC 1952), of one or more members.
    Gzip,
    /// Zstandard (RFC 8878), of one or more frames.
    Zstd,
    /// xz, of one or more streams.
    Xz,
}

/// How many bytes it takes to recognise a compression.
pub(crate) const MAGIC_BYTES: usize = 6;
/// The largest window of a zstd stream, bytes: 128 MiB, which is the limit of the `zstd` program too. Levels up to 19 use
/// 8 MiB.
const ZSTD_WINDOW_MAX: u64 = 128 << 20;
/// The most memory that the xz decompressor may take, KiB; `xz -9` needs 65 MiB.
const XZ_MEMORY_MAX_KIB: u32 = 128 << 10;
/// How many compressed bytes are read at once.
const INPUT_BYTES: usize = 64 << 10;

impl Compression {
    /// What a file that begins like this is compressed with.
    pub fn recognise(first: &[u8]) -> Option<Compression> {
        match first {
            [0x1f, 0x8b, 0x08, ..] => Some(Compression::Gzip),
            [0x28, 0xb5, 0x2f, 0xfd, ..] => Some(Compression::Zstd),
            // A frame that zstd skips: some writers begin with one.
            [0x50..=0x5f, 0x2a, 0x4d, 0x18, ..] => Some(Compression::Zstd),
            [0xfd, b'7', b'z', b'X', b'Z', 0, ..] => Some(Compression::Xz),
            _ => None,
        }
    }

    /// The decompressed bytes of `input`.
    pub(crate) fn decompress(self, input: impl Read + Send + 'static) -> Box<dyn Read + Send> {
        let input = BufReader::with_capacity(INPUT_BYTES, input);
        match self {
            Compression::Gzip => Box::new(GzipReader::new(input)),
            Compression::Zstd => Box::new(ZstdReader::new(input, ZSTD_WINDOW_MAX)),
            Compression::Xz => Box::new(lzma_rust2::XzReader::new_mem_limit(input, true, XZ_MEMORY_MAX_KIB)),
        }
    }
}

impl fmt::Display for Compression {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Compression::Gzip => "gzip",
            Compression::Zstd => "zstd",
            Compression::Xz => "xz",
        })
    }
}
