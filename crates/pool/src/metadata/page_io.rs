//! Pages of the map on drives: read and proved from all carriers at once, and written to the side that does not count.

use std::collections::BTreeMap;
use std::ops::Range;

use futures_util::future::join_all;
use tier0_drive::DriveHandle;
use tier0_units::{Lba, Nanos, PAGE_SECTORS};
use tier0_world::{BufMut, IoError, PayloadWidth, PlantedBug, World, planted};

use super::core::Core;
use super::pages::PageBytes;
use crate::checkpoint::{EMPTY, PAGE_BYTES, PageTable, decode_page, is_page, sum_of};
use crate::state::PoolState;
use crate::{MetadataArea, PoolError};

/// Pages of one I/O, 1 MiB, and of a batch that is in memory.
const IO_PAGES: u64 = 256;
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
    /// All were there. By carrier: the pages that it lacks.
    Whole(BTreeMap<u32, Vec<u64>>),
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
    let mut lacking: BTreeMap<u32, Vec<u64>> = BTreeMap::new();
    let mut first = 0;
    while first < table.count() {
        let pages = first..(first + IO_PAGES).min(table.count());
        let there: Vec<&(u32, DriveHandle)> =
            carriers.iter().filter(|(member, _)| failed.iter().all(|(gone, _)| gone != member)).collect();
        let reads = there.iter().map(|(_, drive)| read_pages(drive, area, table, pages.clone()));
        let mut copies: Vec<(u32, BTreeMap<u64, Vec<u8>>)> = Vec::new();
        for ((member, _), result) in there.iter().zip(join_all(reads.collect::<Vec<_>>()).await) {
            match result {
                Ok(found) => copies.push((*member, found)),
                Err(error) => failed.push((*member, error)),
            }
        }
        let stored = pages.clone().filter(|page| table.sums[*page as usize] != EMPTY);
        for (number, page) in stored.enumerate() {
            let holders = copies.iter().filter_map(|(_, found)| found.get(&page));
            let Some(bytes) = holders.into_iter().next() else { return Ok(Pages::Incomplete) };
            let damaged = || PoolError::from(contradiction(page));
            let extents = decode_page(bytes, state.id(), page).ok_or_else(damaged)?;
            state.take_in(&extents)?;
            for (member, found) in &copies {
                if !found.contains_key(&page) {
                    lacking.entry(*member).or_default().push(page);
                }
            }
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

/// The pages of a range that a drive has as the table names them.
async fn read_pages(
    drive: &DriveHandle,
    area: &MetadataArea,
    table: &PageTable,
    pages: Range<u64>,
) -> Result<BTreeMap<u64, Vec<u8>>, IoError> {
    let mut found = BTreeMap::new();
    for side in 0..2 {
        let wanted: Vec<u64> = pages
            .clone()
            .filter(|page| table.sums[*page as usize] != EMPTY && table.side(*page) == side)
            .collect();
        let (Some(first), Some(last)) = (wanted.first(), wanted.last()) else { continue };
        let bytes = match read_range(drive, area, side, *first..*last + 1).await {
            Ok(bytes) => bytes,
            Err(IoError::Gone) => return Err(IoError::Gone),
            // A bad sector spoils a page.
            Err(_) => read_each(drive, area, side, &wanted).await?,
        };
        for (page, bytes) in bytes {
            let is_wanted = table.side(page) == side && table.sums[page as usize] != EMPTY;
            if is_wanted && is_page(&bytes, table.sums[page as usize]) {
                found.insert(page, bytes);
            }
        }
    }
    Ok(found)
}

/// Neighbouring pages of a side.
async fn read_range(
    drive: &DriveHandle,
    area: &MetadataArea,
    side: u64,
    pages: Range<u64>,
) -> Result<Vec<(u64, Vec<u8>)>, IoError> {
    let sectors = (pages.end - pages.start) * PAGE_SECTORS;
    let at = area.page_start(side, pages.end - 1);
    let (result, buf) = drive.read(at, BufMut::new(sectors as u32, PayloadWidth::REAL)).await;
    result?;
    // The last page lies in front.
    Ok(pages.rev().zip(buf.as_slice().chunks(PAGE_BYTES).map(<[u8]>::to_vec)).collect())
}

async fn read_each(
    drive: &DriveHandle,
    area: &MetadataArea,
    side: u64,
    pages: &[u64],
) -> Result<Vec<(u64, Vec<u8>)>, IoError> {
    let mut found = Vec::new();
    for page in pages {
        match read_range(drive, area, side, *page..*page + 1).await {
            Ok(read) => found.extend(read),
            Err(IoError::Gone) => return Err(IoError::Gone),
            Err(_) => {}
        }
    }
    Ok(found)
}

/// Copies pages from drives that have them to one that lacks them; false if none has one of them any more. They are not
/// stable yet.
pub(super) async fn copy(
    area: &MetadataArea,
    table: &PageTable,
    pages: &[u64],
    from: &[DriveHandle],
    to: &DriveHandle,
) -> Result<bool, IoError> {
    for page in pages {
        let mut found = None;
        for drive in from {
            let read = read_pages(drive, area, table, *page..*page + 1).await;
            found = found.or(read.unwrap_or_default().remove(page));
        }
        let Some(bytes) = found else { return Ok(false) };
        let buf = BufMut::copy_from(&bytes, PayloadWidth::REAL).freeze();
        to.write(area.page_start(table.side(*page), *page), buf, false).await?;
    }
    Ok(true)
}

/// Pages that lie one after the other, to be written at once.
struct PageRun {
    at: Lba,
    /// The number and side of the last one that was put in front.
    next: (u64, u64),
    bytes: Vec<u8>,
}

/// The writes of pages, by descending number: so they lie on a drive.
fn runs_of(area: &MetadataArea, pages: &[(u64, u64, Vec<u8>)]) -> Vec<PageRun> {
    let mut runs: Vec<PageRun> = Vec::new();
    for (page, side, bytes) in pages.iter().rev() {
        match runs.last_mut() {
            Some(run) if run.next == (page + 1, *side) => {
                run.bytes.extend_from_slice(bytes);
                run.next.0 = *page;
            }
            _ => runs.push(PageRun {
                at: area.page_start(*side, *page),
                next: (*page, *side),
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
            let mut batch: Vec<(u64, u64, Vec<u8>)> = Vec::new();
            while let Some(from) = next
                && (batch.len() as u64) < IO_PAGES
            {
                let (pages, then) = self.pages.borrow_mut().take(&self.state.borrow(), from, TURN_PAGES);
                batch.extend(pages.into_iter().filter_map(|page| turn(&mut table, page)));
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

/// Puts a page on its other side; where to, and the bytes, if it is stored at all.
fn turn(table: &mut PageTable, (page, bytes): PageBytes) -> Option<(u64, u64, Vec<u8>)> {
    let Some(bytes) = bytes else {
        table.sums[page as usize] = EMPTY;
        return None;
    };
    if planted(PlantedBug::PageInPlace) {
        table.sums[page as usize] = sum_of(&bytes);
    } else {
        table.turn(page, sum_of(&bytes));
    }
    Some((page, table.side(page), bytes))
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
