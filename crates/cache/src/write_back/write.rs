//! Writes and zeros: cutting, merging of partial pages, zero detection, allocation.

use std::ops::Range;
use std::rc::Rc;

use futures_util::future::join;
use tier0_units::{ExtentId, PAGE_SECTORS, SlotRef, WriteCache};
use tier0_world::sync::oneshot;
use tier0_world::{Buf, BufMut, IoError, PlantedBug, planted};

use super::append::{Change, Logging, UnderWay};
use super::{Inner, PAGE_BYTES, WriteBack};
use crate::locks::{PageGuard, WHOLE};

/// An arrival buffer is kept as it is if at least one in so many of its allocation's bytes is data of the record.
const PINNED_SHARE: usize = 2;
/// The edges of a write that together with what lies between take so much are read at once: one command to a drive costs
/// less than two, also where it moves 64 KiB, the default stripe unit.
const EDGES_TOGETHER_SECTORS: u64 = 128;

impl WriteBack {
    /// Writes `buf` at a sector of an extent; it must not reach beyond the extent. Acknowledged as `mode` says; `durable`
    /// makes a volatile write stable in the log before it ends.
    ///
    /// Of two writes to a page the one that was called later wins. A read sees a write no later than at its end.
    ///
    /// # Errors
    /// [`IoError::NoSpace`] when the extent needs a slot and there is none: nothing has changed. Otherwise the log has
    /// failed, or a page that is to be merged could not be read, or (mode off) the pages could not be destaged; the
    /// range then holds old or new content, sector by sector. The same after a refusal ([`WriteBack::refuse`]).
    pub async fn write(
        &self,
        extent: ExtentId,
        first_sector: u64,
        buf: Buf,
        durable: bool,
        mode: WriteCache,
    ) -> Result<(), IoError> {
        if !self.has_log() {
            return self.0.write_through(extent, first_sector, buf, durable).await;
        }
        let mut logging = Vec::new();
        let step = self.0.capacity().record_pages_max() * PAGE_SECTORS;
        let (mut at, end) = (first_sector, first_sector + u64::from(buf.sectors()));
        while at < end {
            let to = ((at / PAGE_SECTORS) * PAGE_SECTORS + step).min(end);
            let part = buf.slice((at - first_sector) as u32, (to - at) as u32);
            let record = self.0.write_piece(extent, at, part).await?;
            logging.extend(record.map(|record| if to < end { record.go_on() } else { record.wait() }));
            at = to;
        }
        self.0.acknowledge(logging, durable, mode).await
    }

    /// Makes a range of an extent read as zeros, and gives its space back where that empties the extent. As
    /// [`WriteBack::write`] else; costs next to nothing where nothing is stored.
    pub async fn zero(
        &self,
        extent: ExtentId,
        first_sector: u64,
        sectors: u64,
        durable: bool,
        mode: WriteCache,
    ) -> Result<(), IoError> {
        let end = first_sector + sectors;
        if !self.has_log() {
            return self.0.zero_through(extent, first_sector..end, durable).await;
        }
        let whole = first_sector.next_multiple_of(PAGE_SECTORS)..end - end % PAGE_SECTORS;
        let mut logging = Vec::new();
        if whole.start >= whole.end {
            let middle = first_sector.next_multiple_of(PAGE_SECTORS).min(end);
            for part in [first_sector..middle, middle..end] {
                logging.extend(self.0.zero_part(extent, part).await?.map(Logging::go_on));
            }
        } else {
            logging.extend(self.0.zero_part(extent, first_sector..whole.start).await?.map(Logging::go_on));
            logging.extend(self.0.zero_pages(extent, &whole).await?.map(Logging::go_on));
            logging.extend(self.0.zero_part(extent, whole.end..end).await?.map(Logging::wait));
        }
        self.0.acknowledge(logging, durable, mode).await
    }
}

impl Inner {
    /// Waits for what the mode promises.
    async fn acknowledge(
        self: &Rc<Self>,
        logging: Vec<UnderWay>,
        durable: bool,
        mode: WriteCache,
    ) -> Result<(), IoError> {
        if mode == WriteCache::Volatile && !durable {
            return Ok(());
        }
        let sequences: Vec<u64> = match mode {
            WriteCache::Off => logging.iter().map(|record| record.sequence).collect(),
            _ => Vec::new(),
        };
        let mut result = Ok(());
        // They become stable in order, so the last to be waited for is the last to end.
        for record in logging {
            result = result.and(record.finish().await);
        }
        result?;
        for sequence in sequences {
            self.wait_destaged(sequence).await?;
        }
        Ok(())
    }

    /// Makes one record of a write that is small enough; none if it changes nothing.
    async fn write_piece(
        self: &Rc<Self>,
        extent: ExtentId,
        first_sector: u64,
        buf: Buf,
    ) -> Result<Option<Logging>, IoError> {
        let end = first_sector + u64::from(buf.sectors());
        let pages = page_of(first_sector)..page_of(end.next_multiple_of(PAGE_SECTORS));
        let aligned = first_sector.is_multiple_of(PAGE_SECTORS) && end.is_multiple_of(PAGE_SECTORS);
        let admission = self.admit(extent.volume, u64::from(pages.end - pages.start)).await?;
        let (mut guard, slot) = self.unless_refused(self.enter(extent, &pages, !aligned)).await?;
        let buf = match aligned {
            true => own_pages(buf),
            // Out of line: databases seldom write parts of pages, and its future is large.
            false => {
                let completed = Box::pin(self.complete(extent, slot, first_sector, buf));
                self.unless_refused(completed).await??
            }
        };
        let mut change = Change::detect(pages.start, buf);
        if slot.is_none() {
            if !change.has_data() {
                return Ok(None);
            }
            change.drop_zeros();
            guard = self.take_slot_behind(extent, guard).await?;
        } else if self.slot(extent).is_some_and(|slot| self.needs_copy(extent, slot)) {
            guard = self.take_slot_behind(extent, guard).await?;
        }
        let record = self.log(extent, change, admission);
        drop(guard);
        Ok(Some(record))
    }

    /// Makes whole pages zeros.
    async fn zero_pages(
        self: &Rc<Self>,
        extent: ExtentId,
        sectors: &Range<u64>,
    ) -> Result<Option<Logging>, IoError> {
        let pages = page_of(sectors.start)..page_of(sectors.end);
        let admission = self.admit(extent.volume, 0).await?;
        let guard = loop {
            let (guard, slot) = self.unless_refused(self.enter(extent, &pages, false)).await?;
            let Some(slot) = slot else { return Ok(None) };
            if !self.needs_copy(extent, slot) {
                break guard;
            }
            if pages != (0..self.slots.pages_per_slot(slot.slot)) {
                break self.take_slot_behind(extent, guard).await?;
            }
            if self.claim_to_leave(extent) {
                let inner = self.clone();
                self.behind(guard, async move { inner.leave_slot(extent, slot).await }).await?;
                return Ok(None);
            }
            // What moves it needs the lock to end.
            drop(guard);
            self.unless_refused(self.until_idle(extent)).await?;
        };
        let none = self.world.buffer(0).freeze();
        let record = self.log(extent, Change::zeros(pages, none), admission);
        drop(guard);
        Ok((!planted(PlantedBug::LoseDiscard)).then_some(record))
    }

    /// Makes a part of one page zeros.
    async fn zero_part(
        self: &Rc<Self>,
        extent: ExtentId,
        sectors: Range<u64>,
    ) -> Result<Option<Logging>, IoError> {
        if sectors.is_empty() {
            return Ok(None);
        }
        let zeros = BufMut::zeroed((sectors.end - sectors.start) as u32, self.world.width()).freeze();
        Box::pin(self.write_piece(extent, sectors.start, zeros)).await
    }

    /// The slot of an extent that is about to be written, and a lock where one is needed: on the pages while they are
    /// merged, on the whole extent while it has no slot or needs one of its own. No earlier writer has any of it then.
    async fn enter(
        self: &Rc<Self>,
        extent: ExtentId,
        pages: &Range<u32>,
        merges: bool,
    ) -> (Option<PageGuard>, Option<SlotRef>) {
        loop {
            let slot = self.slot(extent);
            let is_ready = slot.is_some_and(|slot| !self.needs_copy(extent, slot));
            if is_ready && !merges && self.locks.is_free(extent, pages) {
                return (None, slot);
            }
            let wanted = if is_ready { pages.clone() } else { WHOLE };
            let guard = self.locks.lock(extent, wanted.clone()).await;
            let slot = self.slot(extent);
            if wanted == WHOLE || slot.is_some_and(|slot| !self.needs_copy(extent, slot)) {
                return (Some(guard), slot);
            }
            // The slot was given back meanwhile, or another extent has it now.
        }
    }

    /// Takes the slot that an extent needs which `guard` locks: its first, or one of its own for a copy.
    async fn take_slot_behind(
        self: &Rc<Self>,
        extent: ExtentId,
        guard: Option<PageGuard>,
    ) -> Result<Option<PageGuard>, IoError> {
        let inner = self.clone();
        let work = async move {
            match inner.slot(extent) {
                None => inner.allocate(extent).await.map(|_| ()),
                Some(_) => inner.allocate_copy(extent).await,
            }
        };
        self.behind(guard, work).await
    }

    /// Does `work` behind a lock. If waiting for it is refused, the lock is held until it is done: who comes next finds what
    /// it has done.
    async fn behind(
        &self,
        guard: Option<PageGuard>,
        work: impl Future<Output = Result<(), IoError>> + 'static,
    ) -> Result<Option<PageGuard>, IoError> {
        let (reply, answer) = oneshot::channel();
        let work = async move {
            let result = work.await;
            // The writer may have been refused and be gone.
            let _ = reply.send((guard, result));
        };
        self.world.spawn(work).detach();
        let (guard, result) = self.unless_refused(answer).await?.map_err(|_| IoError::Gone)?;
        result.map(|()| guard)
    }

    /// Takes a slot for an extent that has none; no other task may be about to.
    pub(crate) async fn allocate(&self, extent: ExtentId) -> Result<SlotRef, IoError> {
        let slot = self.mapping.allocate(extent).await?;
        self.allocate_slot(slot);
        self.state.borrow_mut().fresh.insert(extent, slot);
        Ok(slot)
    }

    /// Whole pages: `buf`, and around it what the first and the last page hold.
    async fn complete(
        &self,
        extent: ExtentId,
        slot: Option<SlotRef>,
        first_sector: u64,
        buf: Buf,
    ) -> Result<Buf, IoError> {
        let before = first_sector % PAGE_SECTORS;
        let end = first_sector + u64::from(buf.sectors());
        let whole_end = end.next_multiple_of(PAGE_SECTORS);
        let whole = first_sector - before..whole_end;
        if self.any_refused() {
            // Merged into this record it would look like what was never refused.
            self.until_readable(extent, whole.start, whole.end - whole.start).await?;
        }
        let (front, back) = self.edges(extent, slot, whole, before as u32, (whole_end - end) as u32).await?;
        let parts = [front, Some(buf.clone()), back];
        Ok(BufMut::concat(parts.iter().flatten(), buf.width()).freeze())
    }

    /// The first `before` and the last `after` sectors of a range of whole pages.
    async fn edges(
        &self,
        extent: ExtentId,
        slot: Option<SlotRef>,
        whole: Range<u64>,
        before: u32,
        after: u32,
    ) -> Result<(Option<Buf>, Option<Buf>), IoError> {
        let page = PAGE_SECTORS as u32;
        let front = |pages: &Buf| (before > 0).then(|| pages.slice(0, before));
        let back = |pages: &Buf| (after > 0).then(|| pages.slice(pages.sectors() - after, after));
        let is_near = whole.end - whole.start <= EDGES_TOGETHER_SECTORS;
        if before > 0 && after > 0 && is_near {
            let sectors = (whole.end - whole.start) as u32;
            // Where a page between cannot be read, the write makes it good, provided that the edges can.
            if let Ok(pages) = self.read_pages(extent, slot, whole.start, sectors).await {
                let pages = pages.freeze();
                return Ok((front(&pages), back(&pages)));
            }
        }
        let edge = async |wanted: bool, sector: u64| match wanted {
            true => self.read_pages(extent, slot, sector, page).await.map(|pages| Some(pages.freeze())),
            false => Ok(None),
        };
        let edges = join(edge(before > 0, whole.start), edge(after > 0, whole.end - PAGE_SECTORS));
        let (first, last) = edges.await;
        Ok((first?.as_ref().and_then(front), last?.as_ref().and_then(back)))
    }

    /// What whole pages hold, from `sector` on.
    async fn read_pages(
        &self,
        extent: ExtentId,
        slot: Option<SlotRef>,
        sector: u64,
        sectors: u32,
    ) -> Result<BufMut, IoError> {
        let buf = self.world.buffer(sectors);
        if planted(PlantedBug::MergeOldPage)
            && let Some(slot) = slot
        {
            let _reading = self.readers.enter(slot.slot);
            let (result, buf) = self.slots.read(slot, sector, buf).await;
            return result.map(|()| buf);
        }
        let (result, buf) = self.read_at(extent, slot, sector, buf, false).await;
        result.map(|()| buf)
    }
}

pub(super) fn page_of(sector: u64) -> u32 {
    u32::try_from(sector / PAGE_SECTORS).expect("an extent has fewer than 2^32 pages")
}

/// The buffer itself where it is made of pages and keeps little else in memory, or a copy.
fn own_pages(buf: Buf) -> Buf {
    let bytes = buf.as_slice();
    let is_page = (bytes.as_ptr() as usize).is_multiple_of(PAGE_BYTES as usize);
    if bytes.is_empty() || (is_page && buf.allocation_bytes() <= bytes.len() * PINNED_SHARE) {
        return buf;
    }
    BufMut::copy_from(bytes, buf.width()).freeze()
}
