//! The superblock: a pool's record on each of its drives, in two copies that are written in turn.
//!
//! A copy starts at byte 65,536 (copy 0) or 327,680 (copy 1) and has room for 262,144 bytes, little-endian:
//!
//! | bytes | content |
//! |---|---|
//! | 0–7 | `tier0sb` and a zero byte |
//! | 8–11 | format version, 1 |
//! | 12–15 | length of the body, bytes |
//! | 16–23 | generation; the valid copy with the highest counts |
//! | 24–39 | this member's identity (UUID) |
//! | 40–47 | CRC-64/NVME of bytes 0–39 and the body |
//! | 48– | body: the [`PoolRecord`] as JSON |
//!
//! A torn write damages one copy and leaves the other. The format is read from untrusted bytes: every length is
//! checked before it is used.

use tier0_drive::DriveHandle;
use tier0_units::{Lba, SECTOR_BYTES};
use tier0_world::BufMut;
use uuid::Uuid;

use crate::{PoolError, PoolRecord};

/// The newest format this code knows, and the one it writes.
pub const VERSION: u32 = 1;

const MAGIC: [u8; 8] = *b"tier0sb\0";
const HEADER_BYTES: usize = 48;
const COPY_BYTES: usize = 256 << 10;
const COPIES: u64 = 2;
const FIRST_COPY_BYTE: u64 = 64 << 10;

/// Sectors before which no chunklet may start, for the superblock's sake.
pub const END_SECTORS: u64 = (FIRST_COPY_BYTE + COPIES * COPY_BYTES as u64) / SECTOR_BYTES;

/// A superblock as read from a drive.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Superblock {
    /// How often it has been written.
    pub generation: u64,
    /// Which member this drive is.
    pub member: Uuid,
    /// The pool.
    pub record: PoolRecord,
}

/// What one copy's place holds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Copy {
    /// A valid superblock.
    Valid(Box<Superblock>),
    /// A format this code does not know.
    TooNew(u32),
    /// The magic is there, the rest is damaged.
    Damaged,
    /// Something else.
    None,
}

/// Turns a superblock into the bytes of a copy.
pub fn encode(superblock: &Superblock) -> Result<Vec<u8>, PoolError> {
    let body = serde_json::to_vec(&superblock.record).expect("a record has only text and numbers");
    let room = COPY_BYTES - HEADER_BYTES;
    if body.len() > room {
        return Err(PoolError::RecordTooLarge { bytes: body.len(), room });
    }
    let mut bytes = Vec::with_capacity(COPY_BYTES);
    bytes.extend_from_slice(&MAGIC);
    bytes.extend_from_slice(&VERSION.to_le_bytes());
    bytes.extend_from_slice(&(body.len() as u32).to_le_bytes());
    bytes.extend_from_slice(&superblock.generation.to_le_bytes());
    bytes.extend_from_slice(superblock.member.as_bytes());
    let checksum = checksum(&bytes, &body);
    bytes.extend_from_slice(&checksum.to_le_bytes());
    bytes.extend_from_slice(&body);
    bytes.resize(bytes.len().next_multiple_of(4096), 0);
    Ok(bytes)
}

/// Reads a copy from arbitrary bytes.
pub fn decode(bytes: &[u8]) -> Copy {
    let Some((header, rest)) = bytes.split_first_chunk::<HEADER_BYTES>() else { return Copy::None };
    if header[..8] != MAGIC {
        return Copy::None;
    }
    let word = |at: usize| u32::from_le_bytes(header[at..at + 4].try_into().expect("four bytes"));
    let long = |at: usize| u64::from_le_bytes(header[at..at + 8].try_into().expect("eight bytes"));
    if word(8) > VERSION {
        return Copy::TooNew(word(8));
    }
    let Some(body) = rest.get(..word(12) as usize) else { return Copy::Damaged };
    if checksum(&header[..40], body) != long(40) {
        return Copy::Damaged;
    }
    let member = Uuid::from_bytes(header[24..40].try_into().expect("sixteen bytes"));
    match serde_json::from_slice(body) {
        Ok(record) => Copy::Valid(Box::new(Superblock { generation: long(16), member, record })),
        Err(_) => Copy::Damaged,
    }
}

fn checksum(header: &[u8], body: &[u8]) -> u64 {
    let mut digest = crc_fast::Digest::new(crc_fast::CrcAlgorithm::Crc64Nvme);
    digest.update(header);
    digest.update(body);
    digest.finalize()
}

/// Reads a drive's superblock: none if it never had one.
pub async fn read(drive: &DriveHandle) -> Result<Option<Superblock>, PoolError> {
    if drive.info().sectors.0 < END_SECTORS {
        return Ok(None);
    }
    let mut best: Option<Superblock> = None;
    let mut damaged = false;
    for copy in 0..COPIES {
        let buf = BufMut::new((COPY_BYTES as u64 / SECTOR_BYTES) as u32, drive.world().width());
        let (result, buf) = drive.read(copy_lba(copy), buf).await;
        result.map_err(|source| PoolError::Drive { drive: drive.info().name.clone(), source })?;
        match decode(buf.as_slice()) {
            Copy::Valid(superblock) if best.as_ref().is_none_or(|b| b.generation < superblock.generation) => {
                best = Some(*superblock);
            }
            Copy::Valid(_) | Copy::None => {}
            Copy::Damaged => damaged = true,
            Copy::TooNew(found) => {
                return Err(PoolError::TooNew { drive: drive.info().name.clone(), found, known: VERSION });
            }
        }
    }
    if best.is_none() && damaged {
        return Err(PoolError::Damaged { drive: drive.info().name.clone() });
    }
    Ok(best)
}

/// Writes the copy that is this generation's turn, and makes it stable.
pub async fn write(drive: &DriveHandle, superblock: &Superblock) -> Result<(), PoolError> {
    let bytes = encode(superblock)?;
    let buf = BufMut::copy_from(&bytes, drive.world().width()).freeze();
    let failed = |source| PoolError::Drive { drive: drive.info().name.clone(), source };
    drive.write(copy_lba(superblock.generation % COPIES), buf, true).await.map_err(failed)?;
    drive.flush().await.map_err(failed)
}

fn copy_lba(copy: u64) -> Lba {
    Lba((FIRST_COPY_BYTE + copy * COPY_BYTES as u64) / SECTOR_BYTES)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::{MemberRecord, RaidRecord, SlotRun, VolumeRecord};

    fn superblock(generation: u64) -> Superblock {
        let member = Uuid::from_u128(7);
        let record = PoolRecord {
            array: "lab".into(),
            name: "pool0".into(),
            id: Uuid::from_u128(1),
            chunklet_sectors: 2048,
            extent_sectors: 2048,
            spare_chunklets: 1,
            raid: RaidRecord { level: "raid10".into(), set_size: 4, groups: 1, stripe_unit_sectors: 128 },
            members: vec![MemberRecord { id: member, name: "d0".into(), sectors: 1 << 20, lost: false }],
            volumes: vec![VolumeRecord {
                id: Uuid::from_u128(9),
                name: "db".into(),
                sectors: 4096,
                runs: vec![SlotRun { first: 0, count: 2 }],
            }],
        };
        Superblock { generation, member, record }
    }

    #[test]
    fn comes_back_as_written() {
        let bytes = encode(&superblock(5)).expect("it fits");
        assert_eq!(decode(&bytes), Copy::Valid(Box::new(superblock(5))));
    }

    #[test]
    fn a_newer_format_is_recognised() {
        let mut bytes = encode(&superblock(5)).expect("it fits");
        bytes[8] = 2;
        assert_eq!(decode(&bytes), Copy::TooNew(2));
    }

    proptest! {
        #[test]
        fn any_flipped_bit_is_damage(bit in 0usize..8 * 400) {
            let mut bytes = encode(&superblock(5)).expect("it fits");
            prop_assume!(bit / 8 < HEADER_BYTES + serde_json::to_vec(&superblock(5).record).expect("text").len());
            bytes[bit / 8] ^= 1 << (bit % 8);
            prop_assert!(!matches!(decode(&bytes), Copy::Valid(_)));
        }

        #[test]
        fn arbitrary_bytes_do_no_harm(mut bytes in proptest::collection::vec(any::<u8>(), 0..200), magic: bool) {
            if magic && bytes.len() >= 12 {
                bytes[..8].copy_from_slice(&MAGIC);
                bytes[8..12].copy_from_slice(&1u32.to_le_bytes());
            }
            prop_assert!(!matches!(decode(&bytes), Copy::Valid(_)));
        }
    }
}
