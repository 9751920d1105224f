//! Pages of the map on drives: read and proved from all carriers at once, and written to the side that does not count.

use std::collections::BTreeMap;
use std::ops::Range;

use futures_util::future::join_all;
use tier0_drive::DriveHandle;
use tier0_units::{Lba, Nanos, PAGE_SECTORS};
use tier0_world::{BufMut, IoError, PayloadWidth, PlantedBug, World, planted};

use super::core::Core;
use crate::checkpoint::{PAGE_BYTES, PageBytes, PageTable, Stored, decode_page, is_page};
use crate::state::PoolState;
use crate::{MetadataArea, PoolError};

/// Pages of one I/O, 1 MiB, and of a batch that is in memory.
const IO_PAGES: u64 = 256;
/// Places of no interest that are read along with those on either side of them.
const GAP: u64 = 16;
/// I/Os of a batch on each carrier.
const RUNS_AT_ONCE: usize = 32;
/// Pages that are encoded or taken in before others have their turn: 2,016 slots, well below a millisecond.
const TURN_PAGES: usize = 8;
/// How long others have their turn.
const TURN: Nanos = Nanos::from_micros(1);

/// Lets others have their turn.
pub(super) async fn rest(world: &World) {
    world.sleep(TURN).await;
}

/// What reading the pages of a root ends with.
pub(super) enum Pages {
    /// All were there. By carrier: the blocks that it lacks.
    Whole(BTreeMap<u32, Vec<Stored>>),
    /// No carrier has one of them.
    Incomplete,
}

/// Reads the pages of a root into its state. Carriers that are gone are named in `failed`, and done without.
pub(super) async fn load(
    area: &MetadataArea,
    state: &mut PoolState,
    table: &PageTable,
    carriers: &[(u32, DriveHandle)],
    failed: &mut Vec<(u32, IoError)>,
) -> Result<Pages, PoolError> {
    let mut lacking: BTreeMap<u32, Vec<Stored>> = BTreeMap::new();
    let mut first = 0;
    while first < table.count() {
        let pages = first..(first + IO_PAGES).min(table.count());
        let there: Vec<&(u32, DriveHandle)> =
            carriers.iter().filter(|(member, _)| failed.iter().all(|(gone, _)| gone != member)).collect();
        let wanted = stored_of(table, pages.clone());
        let reads = there.iter().map(|(_, drive)| read_blocks(drive, area, &wanted));
        let mut copies: Vec<(u32, Blocks)> = Vec::new();
        for ((member, _), result) in there.iter().zip(join_all(reads.collect::<Vec<_>>()).await) {
            match result {
                Ok(found) => copies.push((*member, found)),
                Err(error) => failed.push((*member, error)),
            }
        }
        for stored in &wanted {
            if copies.iter().all(|(_, found)| !found.contains_key(stored)) {
                return Ok(Pages::Incomplete);
            }
            for (member, found) in &copies {
                if !found.contains_key(stored) {
                    lacking.entry(*member).or_default().push(*stored);
                }
            }
        }
        let bytes_of = |stored: &Stored| copies.iter().find_map(|(_, found)| found.get(stored));
        let stored = pages.clone().filter_map(|page| {
            let (own, branches) = table.stored(page);
            Some((page, own?, branches))
        });
        for (number, (page, own, branches)) in stored.enumerate() {
            let damaged = || PoolError::from(contradiction(page));
            let own = bytes_of(&own).ok_or_else(damaged)?;
            let branches = branches.as_ref().and_then(bytes_of).map(Vec::as_slice);
            let tenants = decode_page(own, branches, state.id(), page).ok_or_else(damaged)?;
            state.take_in(&tenants)?;
            if number % TURN_PAGES == TURN_PAGES - 1 {
                rest(carriers[0].1.world()).await;
            }
        }
        first = pages.end;
    }
    Ok(Pages::Whole(lacking))
}

fn contradiction(page: u64) -> crate::MetaError {
    crate::MetaError::Contradiction { fact: format!("page {page} of its map is another page") }
}

/// Blocks that a drive has as a table names them.
type Blocks = BTreeMap<Stored, Vec<u8>>;

/// The stored blocks of some pages, as they lie on a drive from its end on.
fn stored_of(table: &PageTable, pages: Range<u64>) -> Vec<Stored> {
    let blocks = pages.map(|page| table.stored(page));
    let mut stored: Vec<Stored> =
        blocks.flat_map(|(own, branches)| own.into_iter().chain(branches)).collect();
    stored.sort_unstable();
    stored
}

/// Those of some blocks, in order, that a drive has.
async fn read_blocks(drive: &DriveHandle, area: &MetadataArea, wanted: &[Stored]) -> Result<Blocks, IoError> {
    let mut found = Blocks::new();
    let is_near = |one: &Stored, next: &Stored| one.side == next.side && next.place - one.place <= GAP;
    for some in wanted.chunk_by(is_near).flat_map(|near| near.chunks(IO_PAGES as usize)) {
        let (first, last) = (some[0], some[some.len() - 1]);
        let read = match read_range(drive, area, first.side, first.place..last.place + 1).await {
            Ok(read) => read,
            Err(IoError::Gone) => return Err(IoError::Gone),
            // A bad sector spoils a block.
            Err(_) => read_each(drive, area, some).await?,
        };
        for stored in some {
            let bytes = read.get(&stored.place).filter(|bytes| is_page(bytes, stored.sum));
            found.extend(bytes.map(|bytes| (*stored, bytes.clone())));
        }
    }
    Ok(found)
}

/// Neighbouring places of a side, and what is there.
async fn read_range(
    drive: &DriveHandle,
    area: &MetadataArea,
    side: u64,
    places: Range<u64>,
) -> Result<BTreeMap<u64, Vec<u8>>, IoError> {
    let sectors = (places.end - places.start) * PAGE_SECTORS;
    let at = area.page_start(side, places.end - 1);
    let (result, buf) = drive.read(at, BufMut::new(sectors as u32, PayloadWidth::REAL)).await;
    result?;
    // The last place lies in front.
    Ok(places.rev().zip(buf.as_slice().chunks(PAGE_BYTES).map(<[u8]>::to_vec)).collect())
}

async fn read_each(
    drive: &DriveHandle,
    area: &MetadataArea,
    blocks: &[Stored],
) -> Result<BTreeMap<u64, Vec<u8>>, IoError> {
    let mut found = BTreeMap::new();
    for Stored { side, place, .. } in blocks {
        match read_range(drive, area, *side, *place..*place + 1).await {
            Ok(read) => found.extend(read),
            Err(IoError::Gone) => return Err(IoError::Gone),
            Err(_) => {}
        }
    }
    Ok(found)
}

/// Copies blocks from drives that have them to one that lacks them; false if none has one of them any more. They are not
/// stable yet.
pub(super) async fn copy(
    area: &MetadataArea,
    blocks: &[Stored],
    from: &[DriveHandle],
    to: &DriveHandle,
) -> Result<bool, IoError> {
    for stored in blocks {
        let mut found = None;
        for drive in from {
            let read = read_blocks(drive, area, &[*stored]).await;
            found = found.or(read.unwrap_or_default().remove(stored));
        }
        let Some(bytes) = found else { return Ok(false) };
        let buf = BufMut::copy_from(&bytes, PayloadWidth::REAL).freeze();
        to.write(area.page_start(stored.side, stored.place), buf, false).await?;
    }
    Ok(true)
}

/// Blocks that lie one after the other, to be written at once.
struct PageRun {
    at: Lba,
    /// The place and side of the last one that was put in front.
    next: (u64, u64),
    bytes: Vec<u8>,
}

/// The writes of blocks, by descending place: so they lie on a drive.
fn runs_of(area: &MetadataArea, blocks: &BTreeMap<(u64, u64), Vec<u8>>) -> Vec<PageRun> {
    let mut runs: Vec<PageRun> = Vec::new();
    for ((side, place), bytes) in blocks.iter().rev() {
        match runs.last_mut() {
            Some(run) if run.next == (place + 1, *side) => {
                run.bytes.extend_from_slice(bytes);
                run.next.0 = *place;
            }
            _ => runs.push(PageRun {
                at: area.page_start(*side, *place),
                next: (*place, *side),
                bytes: bytes.clone(),
            }),
        }
    }
    runs
}

/// Writes pages, a few runs at once. They are not stable yet.
async fn write_runs(drive: &DriveHandle, runs: &[PageRun]) -> Result<(), IoError> {
    for some in runs.chunks(RUNS_AT_ONCE) {
        let write = |run: &PageRun| {
            let buf = BufMut::copy_from(&run.bytes, PayloadWidth::REAL).freeze();
            drive.write(run.at, buf, false)
        };
        join_all(some.iter().map(write).collect::<Vec<_>>()).await.into_iter().collect::<Result<(), _>>()?;
    }
    Ok(())
}

impl Core {
    /// Writes the frozen pages to these members, each to the side that does not count. They are not stable yet. Members
    /// that fail are lost. The table with them.
    pub(super) async fn write_pages(
        self: &std::rc::Rc<Self>,
        members: &[u32],
    ) -> Result<PageTable, PoolError> {
        let area = self.state.borrow().geometry().area;
        let mut table = self.pages.borrow().table.clone();
        let mut next = Some(0);
        while next.is_some() {
            let mut batch: BTreeMap<(u64, u64), Vec<u8>> = BTreeMap::new();
            while let Some(from) = next
                && (batch.len() as u64) < IO_PAGES
            {
                let (pages, then) = self.pages.borrow_mut().take(&self.state.borrow(), from, TURN_PAGES);
                pages.iter().for_each(|(page, bytes)| turn(&mut table, *page, bytes, &mut batch));
                next = then;
                rest(&self.world).await;
            }
            let runs = runs_of(&area, &batch);
            let write = |member: u32| {
                let (drive, runs) = (self.drive(member), &runs);
                async move {
                    match drive {
                        Some(drive) => (member, write_runs(&drive, runs).await),
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
        }
        Ok(table)
    }
}

/// Puts a page on its other side, and what is to be written for that into the batch, by side and place.
fn turn(table: &mut PageTable, page: u64, bytes: &PageBytes, batch: &mut BTreeMap<(u64, u64), Vec<u8>>) {
    let blocks = match planted(PlantedBug::PageInPlace) {
        true => table.set(page, bytes),
        false => table.turn(page, bytes),
    };
    batch.extend(blocks.into_iter().map(|(stored, bytes)| ((stored.side, stored.place), bytes.to_vec())));
}

/// Proves all invariants of a state, with turns for others.
pub(super) async fn prove(world: &World, state: &PoolState) -> Result<(), PoolError> {
    let mut proof = state.begin_proof()?;
    while !state.prove(&mut proof, TURN_PAGES * crate::checkpoint::PAGE_SLOTS as usize)? {
        rest(world).await;
    }
    Ok(())
}

/// The table of a state whose newest checkpoint has no pages: as if all lay, empty, on the side of that checkpoint.
pub(super) fn unpaged(state: &PoolState, generation: u64) -> PageTable {
    PageTable::empty(crate::checkpoint::page_count(state.slot_count()), generation % 2)
}
