//! Checkpoints on drives: read from untrusted slots, written in turn.

use std::collections::BTreeMap;
use std::rc::Rc;

use futures_util::future::join_all;
use tier0_drive::DriveHandle;
use tier0_journal::Position;
use tier0_units::{Lba, SECTOR_BYTES};
use tier0_world::{BufMut, IoError, PayloadWidth, PlantedBug, planted};
use uuid::Uuid;

use super::core::Core;
use super::page_io;
use crate::checkpoint::{
    self, Around, HEADER_BYTES, Header, HeaderPlace, PIECE_BYTES, PageTable, Stored, decode_body,
    decode_header, encode_pieces, encode_state, join_pieces, slot_bytes,
};
use crate::features::IN_CHECKPOINTS;
use crate::state::PoolState;
use crate::{MetadataArea, PoolError};

/// Bytes of one I/O: 16 pieces.
const IO_BYTES: usize = 16 * PIECE_BYTES;

/// A checkpoint as found in a slot, without the pages of its map.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Found {
    header: Header,
    body: Vec<u8>,
}

/// What a slot holds.
enum Slot {
    Valid(Found),
    TooNew(u32),
    Unknown(u64),
    None,
}

/// Reads a slot. Whatever is not a valid checkpoint of this pool is none.
async fn read_slot(drive: &DriveHandle, area: &MetadataArea, slot: u64, pool: Uuid) -> Result<Slot, IoError> {
    let start = area.checkpoint_start(slot);
    let front = read_bytes(drive, start, HEADER_BYTES).await?;
    let header = match decode_header(&front) {
        HeaderPlace::Valid(header) if header.pool == pool && header.generation % 2 == slot => header,
        HeaderPlace::TooNew(version) => return Ok(Slot::TooNew(version)),
        HeaderPlace::Unknown(bits) => return Ok(Slot::Unknown(bits)),
        HeaderPlace::Valid(_) | HeaderPlace::None => return Ok(Slot::None),
    };
    if header.body_bytes > area.body_bytes_max(0) {
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

/// Whether a drive holds the header of a checkpoint of this generation, or of a newer one in its slot.
pub(super) async fn has(
    drive: &DriveHandle,
    area: &MetadataArea,
    pool: Uuid,
    generation: u64,
) -> Result<bool, IoError> {
    let front = read_bytes(drive, area.checkpoint_start(slot_of(generation)), HEADER_BYTES).await?;
    Ok(match decode_header(&front) {
        HeaderPlace::Valid(header) => header.pool == pool && header.generation >= generation,
        HeaderPlace::TooNew(_) | HeaderPlace::Unknown(_) | HeaderPlace::None => false,
    })
}

/// The slot that checkpoints of this generation take.
fn slot_of(generation: u64) -> u64 {
    if planted(PlantedBug::CheckpointInPlace) { 0 } else { generation % 2 }
}

async fn read_bytes(drive: &DriveHandle, at: Lba, bytes: usize) -> Result<Vec<u8>, IoError> {
    let buf = BufMut::new((bytes as u64 / SECTOR_BYTES) as u32, PayloadWidth::REAL);
    let (result, buf) = drive.read(at, buf).await;
    result.map(|()| buf.as_slice().to_vec())
}

async fn write_bytes(drive: &DriveHandle, at: u64, bytes: &[u8], durable: bool) -> Result<(), IoError> {
    let buf = BufMut::copy_from(bytes, PayloadWidth::REAL).freeze();
    drive.write(Lba(at), buf, durable).await
}

/// Writes a root into its slot and makes it stable, and all that was written before: the pieces first, so that the header
/// is never there without them, and without its pages, for want of anything but a lost write.
async fn write_slot(
    drive: &DriveHandle,
    area: &MetadataArea,
    slot: u64,
    bytes: &[u8],
) -> Result<(), IoError> {
    let start = area.checkpoint_start(slot).0;
    let (header, pieces) = bytes.split_at(HEADER_BYTES);
    for (number, part) in (0u64..).zip(pieces.chunks(IO_BYTES)) {
        let at = start + (HEADER_BYTES as u64 + number * IO_BYTES as u64) / SECTOR_BYTES;
        write_bytes(drive, at, part, false).await?;
    }
    if planted(PlantedBug::RootBeforePages) {
        return write_bytes(drive, start, header, true).await;
    }
    drive.flush().await?;
    write_bytes(drive, start, header, true).await?;
    drive.flush().await
}

impl Core {
    /// Writes a checkpoint of the state as it is now, `begin` says for which journal and from which position on, to these
    /// members; those that fail are lost. Ends when every member that is left has it. The caller has the turn.
    pub(super) async fn write_checkpoint(
        self: &Rc<Self>,
        journal: (Uuid, u64),
        members: &[u32],
    ) -> Result<(), PoolError> {
        let (mut header, around) = self.freeze(journal, members);
        let table = self.write_pages(members).await?;
        let body = around.with_table(&table);
        header.body_bytes = body.len() as u64;
        self.write_roots(&header, &body, members).await?;
        self.pages.borrow_mut().finish(table);
        let mut holders: Vec<u32> = members.to_vec();
        holders.retain(|member| self.drive(*member).is_some());
        let mut journal = self.journal.borrow_mut();
        (journal.complete, journal.holders) = (header.generation, holders);
        Ok(())
    }

    /// What is written from now on is of this instant.
    fn freeze(&self, (journal_id, position): (Uuid, u64), members: &[u32]) -> (Header, Around) {
        let (state, mut journal, mut pages) =
            (self.state.borrow(), self.journal.borrow_mut(), self.pages.borrow_mut());
        let lacks_pages = |member: &u32| self.drive(*member).is_some() && !journal.holders.contains(member);
        if members.iter().any(lacks_pages) {
            // Who has no page of the newest gets all, and a root names one side for all carriers.
            pages.note_all(&state);
        }
        journal.generation += 1;
        pages.freeze(&state, journal.generation);
        let around = encode_state(&state);
        let header = Header {
            version: checkpoint::VERSION,
            pool: state.id(),
            generation: journal.generation,
            journal: journal_id,
            position,
            body_bytes: 0,
            features: around.features(),
        };
        (header, around)
    }

    async fn write_roots(
        self: &Rc<Self>,
        header: &Header,
        body: &[u8],
        members: &[u32],
    ) -> Result<(), PoolError> {
        let (area, bytes) = (self.state.borrow().geometry().area, encode_pieces(header, body));
        let slot = slot_of(header.generation);
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

    /// Writes a checkpoint to the carriers, and to these members beside, and releases the journal up to it. Commits go on
    /// meanwhile.
    pub(super) async fn checkpoint(self: &Rc<Self>, beside: &[u32]) -> Result<(), PoolError> {
        let _turn = self.checkpoint_turn.acquire(1).await;
        self.check_works()?;
        let (journal, mut members, ring) = {
            let journal = self.journal.borrow();
            let Some(ring) = journal.ring.clone() else { return Ok(()) };
            ((journal.id, journal.position), journal.carriers.clone(), ring)
        };
        members.extend(beside.iter().copied().filter(|member| !members.contains(member)).collect::<Vec<_>>());
        self.write_checkpoint(journal, &members).await?;
        ring.release(Position(journal.1));
        Ok(())
    }
}

/// The newest valid checkpoint of a pool's carriers, and which of them lack it. A drive that is gone is named with its
/// error; a bad sector spoils a root or a page, which is written again.
pub(super) struct Newest {
    pub(super) header: Header,
    pub(super) state: PoolState,
    /// The pages; none before version 3.
    table: Option<PageTable>,
    area: MetadataArea,
    holders: Vec<u32>,
    lacking: Vec<Lacking>,
    pub(super) failed: Vec<(u32, IoError)>,
}

/// What a carrier lacks of a checkpoint.
struct Lacking {
    member: u32,
    root: bool,
    pages: Vec<Stored>,
}

impl Newest {
    /// The table of pages with which the pool goes on; the state as it was read.
    pub(super) fn table(&self) -> PageTable {
        self.table.clone().unwrap_or_else(|| page_io::unpaged(&self.state, self.header.generation))
    }

    /// Whether all pages have to be written: there are none yet.
    pub(super) fn is_unpaged(&self) -> bool {
        self.table.is_none()
    }
}

/// What carriers have and lack, without the state, which has gone on.
pub(super) struct Copies {
    header: Header,
    area: MetadataArea,
    holders: Vec<u32>,
    lacking: Vec<Lacking>,
}

impl Newest {
    /// Parts the state from what is still to be written of the checkpoint that it came from.
    pub(super) fn into_parts(self) -> (PoolState, Copies) {
        let Newest { header, state, area, holders, lacking, .. } = self;
        (state, Copies { header, area, holders, lacking })
    }
}

impl Copies {
    /// Gives every carrier that lacks some of the newest checkpoint the rest of it, so that the next one overwrites no
    /// valid one. Drives that fail are lost. Who has it then.
    pub(super) async fn complete(self, core: &Rc<Core>) -> Result<Vec<u32>, PoolError> {
        let is_whole = |member: &u32| self.lacking.iter().all(|lacking| lacking.member != *member);
        let mut holders: Vec<u32> = self.holders.iter().copied().filter(is_whole).collect();
        for lacking in &self.lacking {
            let Some(drive) = core.drive(lacking.member) else { continue };
            let carriers = core.journal.borrow().carriers.clone();
            let others = |members: &[u32]| -> Vec<DriveHandle> {
                let others = members.iter().filter(|member| **member != lacking.member);
                others.filter_map(|member| core.drive(*member)).collect()
            };
            match self.copy(lacking, &others(&self.holders), &others(&carriers), &drive).await {
                Ok(true) => holders.push(lacking.member),
                Ok(false) => {}
                Err(error) => core.lose(lacking.member, error).await?,
            }
        }
        holders.retain(|member| core.drive(*member).is_some());
        Ok(holders)
    }

    /// Copies what a carrier lacks; false where no carrier can be read any more.
    async fn copy(
        &self,
        lacking: &Lacking,
        roots: &[DriveHandle],
        pages: &[DriveHandle],
        to: &DriveHandle,
    ) -> Result<bool, IoError> {
        if !page_io::copy(&self.area, &lacking.pages, pages, to).await? {
            return Ok(false);
        }
        if !lacking.root {
            to.flush().await?;
            return Ok(true);
        }
        let slot = self.header.generation % 2;
        for drive in roots {
            if let Ok(bytes) = read_root(drive, &self.area, &self.header).await {
                write_slot(to, &self.area, slot, &bytes).await?;
                return Ok(true);
            }
        }
        Ok(false)
    }
}

/// A root as it lies in its slot, byte by byte.
async fn read_root(drive: &DriveHandle, area: &MetadataArea, header: &Header) -> Result<Vec<u8>, IoError> {
    let (start, total) =
        (area.checkpoint_start(header.generation % 2).0, slot_bytes(header.body_bytes) as usize);
    let mut bytes = Vec::with_capacity(total);
    while bytes.len() < total {
        let at = start + bytes.len() as u64 / SECTOR_BYTES;
        bytes.extend(read_bytes(drive, Lba(at), (total - bytes.len()).min(IO_BYTES)).await?);
    }
    Ok(bytes)
}

/// Looks for the newest checkpoint of a pool on its carriers, reads and proves it.
pub(super) async fn newest(
    pool: &str,
    id: Uuid,
    area: &MetadataArea,
    carriers: &[(u32, DriveHandle)],
) -> Result<Newest, PoolError> {
    let mut failed = Vec::new();
    let mut roots = find_roots(pool, id, area, carriers, &mut failed).await?;
    while let Some((_, candidates)) = roots.pop_last() {
        for (found, holders) in candidates {
            let features = found.header.features;
            features.check_writable(IN_CHECKPOINTS, || format!("the checkpoint of pool {pool:?}"))?;
            let body = decode_body(&found.body, &found.header, area)?;
            let (header, mut state, table) = (found.header, body.state, body.table);
            let mut pages = BTreeMap::new();
            if let Some(table) = &table {
                match page_io::load(area, &mut state, table, carriers, &mut failed).await? {
                    page_io::Pages::Whole(lacking) => pages = lacking,
                    page_io::Pages::Incomplete => continue,
                }
            }
            let lacks = |(member, _): &(u32, DriveHandle)| {
                let root = !holders.contains(member);
                let pages = pages.get(member).cloned().unwrap_or_default();
                let lacks = Lacking { member: *member, root, pages };
                (lacks.root || !lacks.pages.is_empty()).then_some(lacks)
            };
            let lacking: Vec<Lacking> = carriers.iter().filter_map(lacks).collect();
            return Ok(Newest { header, state, table, area: *area, holders, lacking, failed });
        }
    }
    Err(PoolError::NoCheckpoint { pool: pool.to_owned() })
}

/// Roots by generation, different ones of the same generation apart, each with the members that have it.
type Roots = BTreeMap<u64, Vec<(Found, Vec<u32>)>>;

/// All valid roots that may count.
async fn find_roots(
    pool: &str,
    id: Uuid,
    area: &MetadataArea,
    carriers: &[(u32, DriveHandle)],
    failed: &mut Vec<(u32, IoError)>,
) -> Result<Roots, PoolError> {
    let mut roots = Roots::new();
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
            let same = roots.entry(found.header.generation).or_default();
            match same.iter_mut().find(|(known, _)| *known == found) {
                Some((_, holders)) => holders.push(*member),
                None => same.push((found, vec![*member])),
            }
        }
        // One that has its map with it lacks nothing: those before it, which may be large, are not needed.
        let whole =
            roots.iter().rev().find(|(_, same)| same.iter().any(|(found, _)| !found.header.is_paged()));
        if let Some(whole) = whole.map(|(generation, _)| *generation) {
            roots = roots.split_off(&whole);
        }
    }
    Ok(roots)
}
