//! Map pages are written back, so that the log can be released.
//!
//! A page is an image of the table at some instant: of lines whose data are stable, and of nothing that is still being
//! written. It may be ahead of the log, in either direction. That does no harm:
//!
//! - A line that is in the image and in no record yet is one whose data are stable. If it goes before a record tells of
//!   it, a record tells that it is gone, because every change is logged as what lies there now.
//! - A line that is not in the image although the log has it was struck out or gave way, and a record tells so before
//!   anybody relies on it.
//! - A record whose change is not in the image was appended after the image was taken, so it names the page anew, and is
//!   not released before the next image.
//! - A page that was torn fails its checksum and counts as empty. Of its lines only those come back that records say are
//!   there, and records are replayed from the oldest that is not released to the newest, without a gap. What a line was
//!   before these records is lost, and what it was after them never is.
//!
//! Pages are written, the drive is flushed, and only then records are released.

use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;

use futures_util::future::join_all;
use tier0_journal::{Position, Ring};
use tier0_units::PAGE_SECTORS;
use tier0_world::{Buf, BufMut, PayloadWidth};

use crate::device::Device;
use crate::map_page::{self, ENTRIES, MapHead};
use crate::patience::Fault;
use crate::place::MapPage;

/// Map pages that are written at once.
const PAGES_AT_ONCE: usize = 64;
/// A checkpoint begins when the log is fuller than half, and ends when less than a quarter of it is needed.
const DUE_SHARE: u64 = 2;
const DONE_SHARE: u64 = 4;

/// Map pages that are older than records in the log.
#[derive(Default)]
pub(crate) struct Dirty {
    /// The oldest record whose changes a page lacks.
    first: BTreeMap<MapPage, u64>,
    by_position: BTreeSet<(u64, MapPage)>,
    /// The oldest record whose changes are missing in pages that are being written.
    writing: Option<u64>,
}

impl Dirty {
    /// A record names a page.
    pub(crate) fn name(&mut self, page: MapPage, position: u64) {
        if let std::collections::btree_map::Entry::Vacant(place) = self.first.entry(page) {
            place.insert(position);
            self.by_position.insert((position, page));
        }
    }

    /// Begins to write the pages that hold back the log most.
    fn take(&mut self, count: usize) -> Vec<MapPage> {
        self.writing = self.by_position.first().map(|(position, _)| *position);
        let mut pages = Vec::with_capacity(count);
        while pages.len() < count
            && let Some((_, page)) = self.by_position.pop_first()
        {
            self.first.remove(&page);
            pages.push(page);
        }
        pages.sort_unstable();
        pages
    }

    /// Those pages are stable.
    fn written(&mut self) {
        self.writing = None;
    }

    /// The oldest record that is needed.
    fn oldest(&self) -> Option<u64> {
        let first = self.by_position.first().map(|(position, _)| *position);
        self.writing.into_iter().chain(first).min()
    }

    /// Ways from this one on are gone.
    pub(crate) fn drop_ways(&mut self, ways: u64) {
        self.first.retain(|page, _| u64::from(page.way) < ways);
        self.by_position.retain(|(_, page)| u64::from(page.way) < ways);
    }
}

impl Device {
    /// Begins a checkpoint if the log is so full that one is due.
    pub(crate) fn checkpoint_if_due(self: &Rc<Self>, ring: &Ring) {
        let space = ring.space();
        if space.live * DUE_SHARE <= space.capacity || self.is_checkpointing.replace(true) {
            return;
        }
        let (device, ring) = (self.clone(), ring.clone());
        self.world
            .spawn(async move {
                let result = device.checkpoint(&ring).await;
                device.is_checkpointing.set(false);
                if let Err(fault) = result {
                    device.fail(&fault);
                }
                device.changed.notify_all();
            })
            .detach();
    }

    async fn checkpoint(self: &Rc<Self>, ring: &Ring) -> Result<(), Fault> {
        loop {
            let space = ring.space();
            if space.live * DONE_SHARE < space.capacity {
                return Ok(());
            }
            let _turn = self.map_turn.acquire(1).await;
            let pages = {
                let mut state = self.state.borrow_mut();
                if state.is_off() {
                    return Ok(());
                }
                state.dirty.take(PAGES_AT_ONCE)
            };
            if pages.is_empty() {
                self.release(ring);
                return Ok(());
            }
            self.write_pages(&pages).await?;
            self.flush().await?;
            self.state.borrow_mut().dirty.written();
            self.release(ring);
            self.changed.notify_all();
        }
    }

    /// Releases what no map page lacks. The newest record stays: it says what is left of the budget.
    fn release(&self, ring: &Ring) {
        let state = self.state.borrow();
        let newest = state.log_end.saturating_sub(1);
        let needed = state.dirty.oldest().unwrap_or(u64::MAX);
        drop(state);
        ring.release(Position(needed.min(newest)));
    }

    async fn write_pages(self: &Rc<Self>, pages: &[MapPage]) -> Result<(), Fault> {
        let mut writes = Vec::with_capacity(pages.len());
        {
            let mut state = self.state.borrow_mut();
            if state.is_off() {
                return Err(Fault::Off);
            }
            for page in pages {
                let image = self.image(&state, *page);
                let at = state.shape.map_at(*page);
                for (lba, _) in state.place.runs(at, 1) {
                    let (drive, image) = (self.drive.clone(), image.clone());
                    writes.push(self.command(async move { drive.write(lba, image, false).await }));
                }
            }
            let bytes = pages.len() as u64 * map_page::BYTES as u64;
            state.admission.budget.charge(bytes, self.world.now());
            self.shared.counters.borrow_mut().written_bytes += bytes;
        }
        join_all(writes).await.into_iter().collect()
    }

    /// A map page as it is to be now.
    fn image(&self, state: &crate::state::State, page: MapPage) -> Buf {
        let mut image = BufMut::new(PAGE_SECTORS as u32, PayloadWidth::REAL);
        let head = MapHead {
            id: self.id,
            format: state.header.format,
            born: state.header.born[usize::from(page.way)],
            way: page.way,
            index: page.index,
        };
        let entries = state.table.column(page.way, page.index * ENTRIES as u32);
        map_page::encode(&head, entries, image.as_mut_slice());
        image.freeze()
    }
}
