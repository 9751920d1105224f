//! Reads: the newest content, whatever mix of memory and slot it is.

use std::rc::Rc;

use futures_util::future::join_all;
use tier0_flash_cache::{FlashCache, Offer};
use tier0_units::{ExtentId, Nanos, PAGE_SECTORS, SlotRef};
use tier0_world::{Buf, BufMut, IoError, PayloadWidth, PlantedBug, planted};

use super::{Inner, WriteBack};
use crate::AccessCounter;
use crate::read_cache::{Found, ReadCache, Source};

/// A dirty page as a read finds it: its number, and its data unless it is zeros.
type Overlay = Vec<(u32, Option<Buf>)>;

/// Where a read looks for clean pages, what it brings them into, and for whom it counts.
#[derive(Clone, Copy)]
struct Caches<'a> {
    clean: Option<&'a Rc<ReadCache>>,
    flash: Option<&'a Rc<FlashCache>>,
    counter: Option<(&'a dyn AccessCounter, ExtentId)>,
}

impl WriteBack {
    /// Reads as many sectors of an extent as `buf` holds; it must not reach beyond the extent. What is not mapped reads
    /// as zeros. `is_cached` says whether clean pages are looked for in memory, and kept there. The buffer comes back in any case; after an error its content is arbitrary.
    ///
    /// # Errors
    /// What the slot cannot be read for, or as [`WriteBack::refuse`] says.
    pub async fn read(
        &self,
        extent: ExtentId,
        first_sector: u64,
        buf: BufMut,
        is_cached: bool,
    ) -> (Result<(), IoError>, BufMut) {
        let (sectors, width) = (buf.sectors(), buf.width());
        if self.0.any_refused()
            && let Err(error) =
                Box::pin(self.0.until_readable(extent, first_sector, u64::from(sectors))).await
        {
            return (Err(error), buf);
        }
        let read = async {
            if is_cached {
                self.0.until_come(extent, first_sector, sectors).await;
            }
            self.0.read_at(extent, self.0.slot(extent), first_sector, buf, is_cached).await
        };
        // The buffer of a read that is refused stays with the drive.
        let refused = |error| (Err(error), BufMut::zeroed(sectors, width));
        self.0.unless_refused(read).await.unwrap_or_else(refused)
    }

    /// Reads sectors of an extent into memory for a reader that is expected to ask for them, where they can be kept and are not
    /// dirty. What cannot be read is the reader's matter.
    pub async fn prefetch(&self, extent: ExtentId, first_sector: u64, sectors: u32) {
        let inner = &self.0;
        let (Some(clean), Some(slot)) = (inner.clean.get(), inner.slot(extent)) else { return };
        // Under a dirty page the slot may be torn.
        let is_dirty = !inner.overlay(extent, first_sector, u64::from(sectors), false).is_empty();
        if is_dirty || clean.has(slot.slot, first_sector, sectors) {
            return;
        }
        let _reading = inner.readers.enter(slot.slot);
        if let Some(fill) = clean.begin_prefetch(slot.slot, first_sector, sectors) {
            // Where hosts are not to wait for a drive, neither does this.
            let read = inner.slots.read(slot, first_sector, inner.world.buffer(sectors));
            let Ok((result, buf)) = inner.unless_refused(read).await else { return };
            if result.is_ok() {
                fill.keep(first_sector, &buf);
                inner.fit_clean();
            }
        }
    }
}

impl WriteBack {
    /// Has sectors of an extent count as read before, on flash and with `in_memory` in memory, without I/O: how a performance study
    /// gets warm caches. What is dirty, or is not mapped, stays as it is.
    ///
    /// # Panics
    /// In a world that keeps content.
    pub fn bring_in(&self, extent: ExtentId, first_sector: u64, sectors: u32, in_memory: bool) {
        let inner = &self.0;
        assert_eq!(inner.world.width(), PayloadWidth::NONE, "content cannot be brought in without I/O");
        let Some(slot) = inner.slot(extent) else { return };
        if !inner.overlay(extent, first_sector, u64::from(sectors), false).is_empty() {
            return;
        }
        if let Some(flash) = inner.flash_of(slot) {
            let pages =
                first_sector.div_ceil(PAGE_SECTORS)..(first_sector + u64::from(sectors)) / PAGE_SECTORS;
            flash.bring_in(slot.slot, pages.start as u32..pages.end as u32);
        }
        let fill = |clean: &'_ Rc<ReadCache>| {
            let fill = clean.begin_fill(slot.slot, first_sector, sectors, Source::Read);
            if let Some(fill) = fill {
                fill.keep(first_sector, &inner.world.buffer(sectors));
            }
        };
        inner.clean.get().filter(|_| in_memory).into_iter().for_each(fill);
    }

    /// The budgets of the caches on flash are used up, as those of caches that have been in use for long.
    pub fn use_up_flash_budget(&self) {
        self.0.flash.get().into_iter().for_each(|flash| flash.cache.use_up_budget());
    }
}

impl Inner {
    /// The cache on flash, if reads of this slot use it.
    fn flash_of(&self, slot: SlotRef) -> Option<&Rc<FlashCache>> {
        self.flash.get()?.of_group(self.slots.slots().group_of(slot.slot))
    }

    /// Waits for a read that is under way and brings all of these sectors into memory.
    async fn until_come(&self, extent: ExtentId, first_sector: u64, sectors: u32) {
        let Some(clean) = self.clean.get() else { return };
        // Others that begin meanwhile are not waited for: pages that are written all the time would never come.
        let begun = clean.begun();
        let is_coming =
            || self.slot(extent).is_some_and(|slot| clean.is_coming(slot.slot, first_sector, sectors, begun));
        while is_coming() {
            clean.until_filled().await;
        }
    }

    /// As [`WriteBack::read`], of an extent whose slot was looked up just now.
    pub(crate) async fn read_at(
        &self,
        extent: ExtentId,
        slot: Option<SlotRef>,
        first_sector: u64,
        mut buf: BufMut,
        is_cached: bool,
    ) -> (Result<(), IoError>, BufMut) {
        debug_assert_eq!(slot, self.slot(extent), "the slot was looked up just now");
        let Some(slot) = slot else {
            buf.set_zero();
            return (Ok(()), buf);
        };
        let clean = self.clean.get().filter(|_| is_cached);
        let flash = self.flash_of(slot).filter(|flash| is_cached && flash.is_on());
        let counter = self.counter().map(|counter| (counter, extent));
        let caches = Caches { clean, flash, counter };
        if planted(PlantedBug::CleanBeforeDirty)
            && let Some(clean) = clean
            && clean.read(slot.slot, first_sector, &mut buf).is_all()
        {
            return (Ok(()), buf);
        }
        let overlay = self.overlay(extent, first_sector, u64::from(buf.sectors()), clean.is_some());
        if overlay.is_empty() {
            return self.read_clean(slot, first_sector, buf, caches).await;
        }
        Box::pin(self.read_mixed(slot, first_sector, buf, overlay, caches)).await
    }

    /// Reads what is not dirty, from memory, from flash or from the slot.
    async fn read_clean(
        &self,
        slot: SlotRef,
        first_sector: u64,
        mut buf: BufMut,
        caches: Caches<'_>,
    ) -> (Result<(), IoError>, BufMut) {
        let Caches { clean, flash, .. } = caches;
        if let Some(clean) = clean
            && let Found::All { again } = clean.read(slot.slot, first_sector, &mut buf)
        {
            if let Some(flash) = flash.filter(|_| again) {
                flash.offer(slot.slot, first_sector, &buf, Offer::Again);
            }
            return (Ok(()), buf);
        }
        // Until what was read is in memory nothing is written to these pages, nor is the slot given back.
        let reading = self.readers.enter(slot.slot);
        let begin = |buf: &BufMut| clean?.begin_fill(slot.slot, first_sector, buf.sectors(), Source::Read);
        let mut fill = begin(&buf);
        let (result, buf) = self.read_beneath(slot, first_sector, buf, caches).await;
        if planted(PlantedBug::FillAfterRead) && fill.is_some() {
            drop(reading);
            self.world.sleep(Nanos::from_millis(50)).await;
            fill = begin(&buf);
        }
        if let (Ok(()), Some(fill)) = (result, fill) {
            fill.keep(first_sector, &buf);
            self.fit_clean();
        }
        (result, buf)
    }

    /// Who counts accesses now.
    pub(super) fn counter(&self) -> Option<&dyn AccessCounter> {
        self.accesses.get().map(|counter| &**counter).filter(|counter| counter.is_on())
    }

    /// Reads what is not in memory, from flash or from the slot.
    async fn read_beneath(
        &self,
        slot: SlotRef,
        first_sector: u64,
        mut buf: BufMut,
        Caches { flash, counter, .. }: Caches<'_>,
    ) -> (Result<(), IoError>, BufMut) {
        let sectors = u64::from(buf.sectors());
        if let Some(flash) = flash {
            let is_there;
            (is_there, buf) = flash.read(slot.slot, first_sector, buf).await;
            if is_there {
                counter.inspect(|(counter, extent)| counter.read(*extent, slot, sectors, None));
                return (Ok(()), buf);
            }
        }
        let began = counter.map(|_| self.world.now());
        let (result, buf) = self.slots.read(slot, first_sector, buf).await;
        let took = began.map(|began| self.world.now().saturating_sub(began));
        counter.inspect(|(counter, extent)| counter.read(*extent, slot, sectors, took));
        if let (Ok(()), Some(flash)) = (result, flash) {
            flash.offer(slot.slot, first_sector, &buf, Offer::First);
        }
        (result, buf)
    }

    /// The dirty pages in a range, with their content.
    fn overlay(&self, extent: ExtentId, first_sector: u64, sectors: u64, is_cached: bool) -> Overlay {
        let mut state = self.state.borrow_mut();
        if state.pages.is_empty() {
            return Vec::new();
        }
        let end = first_sector + sectors;
        let pages = (first_sector / PAGE_SECTORS) as u32..end.div_ceil(PAGE_SECTORS) as u32;
        let content = |(number, page): (u32, crate::pages::Page)| {
            (number, page.index().map(|index| state.records.get(page.record).page(index)))
        };
        let overlay: Overlay = state.pages.range(extent, pages.clone()).map(content).collect();
        if is_cached && !overlay.is_empty() {
            state.pages.note_read(extent, pages);
        }
        overlay
    }

    /// Copies what is dirty, and reads the stretches between.
    async fn read_mixed(
        &self,
        slot: SlotRef,
        first_sector: u64,
        mut buf: BufMut,
        overlay: Overlay,
        caches: Caches<'_>,
    ) -> (Result<(), IoError>, BufMut) {
        let end = first_sector + u64::from(buf.sectors());
        let mut parts: Vec<(Option<u64>, BufMut)> = Vec::with_capacity(2 * overlay.len() + 1);
        let mut at = first_sector;
        for (number, content) in &overlay {
            let start = u64::from(*number) * PAGE_SECTORS;
            let (from, to) = (start.max(first_sector), (start + PAGE_SECTORS).min(end));
            if at < from {
                parts.push((Some(at), buf.split_to((from - at) as u32)));
            }
            let mut piece = buf.split_to((to - from) as u32);
            match content {
                Some(page) => {
                    let page = page.slice((from - start) as u32, (to - from) as u32);
                    piece.as_mut_slice().copy_from_slice(page.as_slice());
                }
                None => piece.set_zero(),
            }
            parts.push((None, piece));
            at = to;
        }
        parts.push((Some(at), buf));
        drop(overlay);
        if let Some(clean) = caches.clean
            && parts.iter().all(|(sector, piece)| sector.is_none() || piece.sectors() == 0)
        {
            clean.count_dirty_hit();
        }
        // None of them waits for the others: nothing comes between their looks at what is there.
        let _reading = self.readers.enter(slot.slot);
        let reads = parts.into_iter().map(|(sector, piece)| async move {
            match sector {
                Some(sector) if piece.sectors() > 0 => self.read_clean(slot, sector, piece, caches).await,
                _ => (Ok(()), piece),
            }
        });
        let mut parts = join_all(reads).await.into_iter();
        let (mut result, mut whole) = parts.next().expect("a read has parts");
        for (other, piece) in parts {
            whole.append(piece);
            result = result.and(other);
        }
        (result, whole)
    }
}
