//! A checkpoint in its slot: a header block, then the body in pieces of 64 KiB.
//!
//! Every piece carries the checkpoint's generation, so that a piece that an older checkpoint left in the slot is never
//! taken for one of this; each has a checksum of its own, so that damage is found where it is.

use uuid::Uuid;

use crate::codec::{Reader, Writer, crc64};
use crate::features::{FEATURES_BYTES, Features, IN_CHECKPOINTS};

/// The newest format of checkpoints that is known, and the one that is written.
pub const VERSION: u32 = 3;
/// The format whose bodies have the map, which is read too.
const UNPAGED: u32 = 2;
/// The format without feature flags, which is read too.
const WITHOUT_FEATURES: u32 = 1;

const MAGIC: [u8; 8] = *b"tier0cp\0";
/// The header's block, bytes.
pub(crate) const HEADER_BYTES: usize = 4096;
/// What the header's checksum covers, in front of it; in version 1 the features are not there.
const HEADER_USED_BYTES: usize = HEADER_USED_BYTES_V1 + FEATURES_BYTES;
const HEADER_USED_BYTES_V1: usize = 72;
/// A piece on the drive, bytes; the last one may be shorter, a multiple of 4096.
pub(crate) const PIECE_BYTES: usize = 64 << 10;
/// Checksum, generation, number, length.
const PIECE_FRONT_BYTES: usize = 24;
const PIECE_BODY_BYTES: usize = PIECE_BYTES - PIECE_FRONT_BYTES;

/// What a checkpoint says of itself. One that is written is of the newest version.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Header {
    /// The version of the format.
    pub version: u32,
    /// The pool.
    pub pool: Uuid,
    /// How many checkpoints there were before; the newest valid one counts.
    pub generation: u64,
    /// The journal that goes on from this checkpoint.
    pub journal: Uuid,
    /// Records of that journal before this position are in the checkpoint.
    pub position: u64,
    /// Bytes of the body.
    pub body_bytes: u64,
    /// What it has beyond its version.
    pub features: Features,
}

impl Header {
    /// Whether the map is not in the body but in pages.
    pub(crate) fn is_paged(&self) -> bool {
        self.version > UNPAGED
    }
}

/// What a slot's header block holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HeaderPlace {
    /// A checkpoint's header.
    Valid(Header),
    /// A format that is not known.
    TooNew(u32),
    /// Incompatible features that are not known, a bit each.
    Unknown(u64),
    /// Something else, or a damaged header.
    None,
}

/// Pieces of a body of this many bytes.
pub(crate) fn piece_count(body_bytes: u64) -> u64 {
    body_bytes.div_ceil(PIECE_BODY_BYTES as u64)
}

/// Bytes of a slot for bodies of up to `body_bytes`.
pub(crate) fn slot_bytes(body_bytes: u64) -> u64 {
    let (whole, rest) = (body_bytes / PIECE_BODY_BYTES as u64, body_bytes % PIECE_BODY_BYTES as u64);
    let last = if rest == 0 { 0 } else { (rest + PIECE_FRONT_BYTES as u64).next_multiple_of(4096) };
    HEADER_BYTES as u64 + whole * PIECE_BYTES as u64 + last
}

/// Bytes of the largest body that fits a slot.
pub(crate) fn body_bytes_max(slot_bytes: u64) -> u64 {
    let room = slot_bytes.saturating_sub(HEADER_BYTES as u64) / 4096 * 4096;
    let (whole, rest) = (room / PIECE_BYTES as u64, room % PIECE_BYTES as u64);
    whole * PIECE_BODY_BYTES as u64 + rest.saturating_sub(PIECE_FRONT_BYTES as u64)
}

/// The header's block.
pub(crate) fn encode_header(header: &Header) -> Vec<u8> {
    let mut writer = Writer::default();
    writer.0.extend_from_slice(&MAGIC);
    writer.u32(VERSION);
    writer.u32(PIECE_BYTES as u32);
    writer.uuid(header.pool);
    writer.u64(header.generation);
    writer.uuid(header.journal);
    writer.u64(header.position);
    writer.u64(header.body_bytes);
    header.features.encode(&mut writer);
    debug_assert_eq!(writer.0.len(), HEADER_USED_BYTES);
    let checksum = crc64(&[&writer.0]);
    writer.u64(checksum);
    writer.0.resize(HEADER_BYTES, 0);
    writer.0
}

/// Reads a header's block from arbitrary bytes.
pub(crate) fn decode_header(bytes: &[u8]) -> HeaderPlace {
    if bytes.len() < HEADER_USED_BYTES + 8 || bytes[..8] != MAGIC {
        return HeaderPlace::None;
    }
    match decode_known(bytes) {
        Some(Err(version)) => HeaderPlace::TooNew(version),
        Some(Ok(header)) => match header.features.beyond(IN_CHECKPOINTS).incompatible {
            0 => HeaderPlace::Valid(header),
            unknown => HeaderPlace::Unknown(unknown),
        },
        None => HeaderPlace::None,
    }
}

fn decode_known(bytes: &[u8]) -> Option<Result<Header, u32>> {
    let mut reader = Reader(&bytes[8..]);
    let version = reader.u32()?;
    if version > VERSION {
        return Some(Err(version));
    }
    let piece_bytes = reader.u32()?;
    let mut header = Header {
        version,
        pool: reader.uuid()?,
        generation: reader.u64()?,
        journal: reader.uuid()?,
        position: reader.u64()?,
        body_bytes: reader.u64()?,
        features: Features::default(),
    };
    let used = match version {
        VERSION | UNPAGED => HEADER_USED_BYTES,
        WITHOUT_FEATURES => HEADER_USED_BYTES_V1,
        _ => return None,
    };
    if version != WITHOUT_FEATURES {
        header.features = Features::decode(&mut reader)?;
    }
    let sound = reader.u64()? == crc64(&[&bytes[..used]]);
    (sound && piece_bytes as usize == PIECE_BYTES).then_some(Ok(header))
}

/// The bytes of a whole checkpoint: header and pieces, a multiple of 4096.
pub(crate) fn encode_pieces(header: &Header, body: &[u8]) -> Vec<u8> {
    assert_eq!(header.body_bytes, body.len() as u64, "the header says how long the body is");
    debug_assert_eq!(header.version, VERSION);
    let mut bytes = encode_header(header);
    bytes.reserve_exact(slot_bytes(header.body_bytes) as usize - bytes.len());
    for (number, piece) in (0u32..).zip(body.chunks(PIECE_BODY_BYTES)) {
        let mut front = Writer::default();
        front.u64(header.generation);
        front.u32(number);
        front.u32(piece.len() as u32);
        bytes.extend_from_slice(&crc64(&[&front.0, piece]).to_le_bytes());
        bytes.extend_from_slice(&front.0);
        bytes.extend_from_slice(piece);
        bytes.resize(bytes.len().next_multiple_of(4096), 0);
    }
    bytes
}

/// The body, from the arbitrary bytes behind the header; none if a piece is damaged or another checkpoint's.
pub(crate) fn join_pieces(header: &Header, bytes: &[u8]) -> Option<Vec<u8>> {
    let mut body = Vec::with_capacity(bytes.len().min(usize::try_from(header.body_bytes).ok()?));
    let mut pieces = bytes.chunks(PIECE_BYTES);
    for number in 0..piece_count(header.body_bytes) {
        let mut reader = Reader(pieces.next()?);
        let checksum = reader.u64()?;
        let front = reader.0.get(..PIECE_FRONT_BYTES - 8)?;
        let (generation, place, length) = (reader.u64()?, reader.u32()?, reader.u32()?);
        let expected = (header.body_bytes - body.len() as u64).min(PIECE_BODY_BYTES as u64);
        if generation != header.generation || u64::from(place) != number || u64::from(length) != expected {
            return None;
        }
        let content = reader.bytes(length as usize)?;
        if crc64(&[front, content]) != checksum {
            return None;
        }
        body.extend_from_slice(content);
    }
    Some(body)
}
