//! Checkpoints on drives: read from untrusted slots, written in turn.

use std::rc::Rc;

use futures_util::future::join_all;
use tier0_drive::DriveHandle;
use tier0_journal::Position;
use tier0_units::{Lba, SECTOR_BYTES};
use tier0_world::{BufMut, IoError, PayloadWidth, PlantedBug, planted};
use uuid::Uuid;

use super::core::Core;
use crate::checkpoint::{
    self, HEADER_BYTES, Header, HeaderPlace, PIECE_BYTES, decode_header, encode_body, encode_pieces,
    join_pieces, slot_bytes,
};
use crate::features::KNOWN;
use crate::{MetadataArea, PoolError};

/// Bytes of one I/O: 16 pieces.
const IO_BYTES: usize = 16 * PIECE_BYTES;

/// A checkpoint as found in a slot.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Found {
    pub(super) header: Header,
    pub(super) body: Vec<u8>,
}

/// What a slot holds.
pub(super) enum Slot {
    Valid(Found),
    TooNew(u32),
    Unknown(u64),
    None,
}

/// Reads a slot. Whatever is not a valid checkpoint of this pool is none.
pub(super) async fn read_slot(
    drive: &DriveHandle,
    area: &MetadataArea,
    slot: u64,
    pool: Uuid,
) -> Result<Slot, IoError> {
    let start = area.checkpoint_start(slot);
    let front = read_bytes(drive, start, HEADER_BYTES).await?;
    let header = match decode_header(&front) {
        HeaderPlace::Valid(header) if header.pool == pool && header.generation % 2 == slot => header,
        HeaderPlace::TooNew(version) => return Ok(Slot::TooNew(version)),
        HeaderPlace::Unknown(bits) => return Ok(Slot::Unknown(bits)),
        HeaderPlace::Valid(_) | HeaderPlace::None => return Ok(Slot::None),
    };
    if header.body_bytes > area.body_bytes_max() {
        return Ok(Slot::None);
    }
    let bytes = slot_bytes(header.body_bytes) as usize - HEADER_BYTES;
    let mut pieces = Vec::with_capacity(bytes);
    while pieces.len() < bytes {
        let at = start.0 + (HEADER_BYTES + pieces.len()) as u64 / SECTOR_BYTES;
        let part = read_bytes(drive, Lba(at), (bytes - pieces.len()).min(IO_BYTES)).await?;
        pieces.extend_from_slice(&part);
    }
    Ok(join_pieces(&header, &pieces).map_or(Slot::None, |body| Slot::Valid(Found { header, body })))
}

async fn read_bytes(drive: &DriveHandle, at: Lba, bytes: usize) -> Result<Vec<u8>, IoError> {
    let buf = BufMut::new((bytes as u64 / SECTOR_BYTES) as u32, PayloadWidth::REAL);
    let (result, buf) = drive.read(at, buf).await;
    result.map(|()| buf.as_slice().to_vec())
}

/// Writes a checkpoint into the slot that is its generation's, and makes it stable: the pieces first, so that the
/// header is never there without them for want of anything but a lost write.
pub(super) async fn write_slot(
    drive: &DriveHandle,
    area: &MetadataArea,
    slot: u64,
    bytes: &[u8],
) -> Result<(), IoError> {
    let start = area.checkpoint_start(slot).0;
    let (header, pieces) = bytes.split_at(HEADER_BYTES);
    for (number, part) in (0u64..).zip(pieces.chunks(IO_BYTES)) {
        let at = start + (HEADER_BYTES as u64 + number * IO_BYTES as u64) / SECTOR_BYTES;
        let buf = BufMut::copy_from(part, PayloadWidth::REAL).freeze();
        drive.write(Lba(at), buf, false).await?;
    }
    drive.flush().await?;
    let buf = BufMut::copy_from(header, PayloadWidth::REAL).freeze();
    drive.write(Lba(start), buf, true).await?;
    drive.flush().await
}

impl Core {
    /// Writes a checkpoint to these members; those that fail are lost. Ends when every member that is left has it.
    pub(super) async fn write_checkpoint(
        self: &Rc<Self>,
        header: &Header,
        body: &[u8],
        members: &[u32],
    ) -> Result<(), PoolError> {
        let (area, bytes) = (self.state.borrow().geometry().area, encode_pieces(header, body));
        let slot = if planted(PlantedBug::CheckpointInPlace) { 0 } else { header.generation % 2 };
        let write = |member: u32| {
            let (drive, bytes, area) = (self.drive(member), &bytes, &area);
            async move {
                match drive {
                    Some(drive) => (member, write_slot(&drive, area, slot, bytes).await),
                    // It was lost in the meantime.
                    None => (member, Ok(())),
                }
            }
        };
        for (member, result) in join_all(members.iter().map(|member| write(*member))).await {
            if let Err(error) = result {
                self.lose(member, error).await?;
            }
        }
        match members.iter().any(|member| self.drive(*member).is_some()) {
            true => Ok(()),
            false => Err(self.fail()),
        }
    }

    /// Writes a checkpoint and releases the journal up to it.
    pub(super) async fn checkpoint(self: &Rc<Self>) -> Result<(), PoolError> {
        let _turn = self.checkpoint_turn.acquire(1).await;
        self.check_works()?;
        let (header, body, carriers, ring) = {
            let mut journal = self.journal.borrow_mut();
            let Some(ring) = journal.ring.clone() else { return Ok(()) };
            let body = encode_body(&self.state.borrow());
            journal.generation += 1;
            let header = Header {
                pool: self.state.borrow().id(),
                generation: journal.generation,
                journal: journal.id,
                position: journal.position,
                body_bytes: body.len() as u64,
                features: KNOWN,
            };
            (header, body, journal.carriers.clone(), ring)
        };
        self.write_checkpoint(&header, &body, &carriers).await?;
        ring.release(Position(header.position));
        Ok(())
    }
}

/// The newest valid checkpoint of these drives, and which of the drives have it. A drive that is gone is named with its
/// error; a bad sector spoils one slot, which is written again.
pub(super) struct Newest {
    pub(super) found: Found,
    pub(super) holders: Vec<u32>,
    pub(super) failed: Vec<(u32, IoError)>,
}

/// Looks for the newest checkpoint of a pool on its carriers.
pub(super) async fn newest(
    pool: &str,
    id: Uuid,
    area: &MetadataArea,
    carriers: &[(u32, DriveHandle)],
) -> Result<Newest, PoolError> {
    let mut best: Option<(Found, Vec<u32>)> = None;
    let mut failed = Vec::new();
    for (member, drive) in carriers {
        for slot in 0..2 {
            let found = match read_slot(drive, area, slot, id).await {
                Ok(Slot::Valid(found)) => found,
                Ok(Slot::TooNew(found)) => {
                    let known = checkpoint::VERSION;
                    return Err(PoolError::CheckpointTooNew { pool: pool.to_owned(), found, known });
                }
                Ok(Slot::Unknown(bits)) => {
                    return Err(PoolError::Features {
                        what: format!("the checkpoint of pool {pool:?}"),
                        bits,
                    });
                }
                Err(IoError::Gone) => {
                    failed.push((*member, IoError::Gone));
                    break;
                }
                Ok(Slot::None) | Err(_) => continue,
            };
            match &mut best {
                Some((known, holders)) if known.header == found.header && known.body == found.body => {
                    holders.push(*member);
                }
                Some((known, _)) if known.header.generation >= found.header.generation => {}
                _ => best = Some((found, vec![*member])),
            }
        }
    }
    let (found, holders) = best.ok_or_else(|| PoolError::NoCheckpoint { pool: pool.to_owned() })?;
    Ok(Newest { found, holders, failed })
}
