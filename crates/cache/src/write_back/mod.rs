//! The write-back cache of one shard and pool.
//!
//! | file | what it does |
//! |---|---|
//! | `state` | the bookkeeping, without I/O |
//! | `append` | records on their way into the log |
//! | `admit` | delays writers when memory or log get short |
//! | `turns` | whose turn it is among delayed writers, by the weights of volumes |
//! | `write` | writes and zeros: merging, zero detection, allocation |
//! | `read` | the newest content, from memory and slots |
//! | `select` | which pages are destaged next |
//! | `destage` | batches: intents, writes in place, mappings, release |
//! | `scheduler` | how many batches are under way, and when |
//! | `refuse` | hosts that shall not wait for a drive that is away |
//! | `forget` | extents that exist no more |
//! | `relocate` | extents that move to other slots |
//! | `copy` | extents that are written and whose slots others have too |
//! | `through` | writes where there is no log |

mod admit;
mod append;
mod copy;
mod destage;
mod forget;
mod read;
mod reclaim;
mod refuse;
mod relocate;
mod scheduler;
mod select;
mod state;
mod through;
mod turns;
mod write;

use std::cell::{Cell, OnceCell, RefCell};
use std::collections::BTreeSet;
use std::rc::Rc;

use tier0_flash_cache::FlashCache;
use tier0_integrity::SlotIo;
use tier0_journal::{Ring, RingError, Space};
use tier0_stats::{IoRecorder, IoStats};
use tier0_units::{ByteCount, ExtentId, Nanos, PAGE_SECTORS, SECTOR_BYTES, SlotRef};
use tier0_world::sync::Notify;
use tier0_world::{IoError, PlantedBug, World, planted};

use crate::AccessCounter;
use crate::level::{Capacity, Usage, intent_page_bytes};
use crate::locks::PageLocks;
use crate::read_cache::ReadCache;
use crate::readers::Readers;
use crate::write_back::refuse::Refusal;
pub(crate) use crate::write_back::state::DestageFailure;
use crate::write_back::state::State;
use crate::write_back::turns::FairQueue;
use crate::{Flushing, Mapping, Stage, WriteBackOptions, WriteBackStatus};

/// Bytes of a page and of a block of the log.
const PAGE_BYTES: u64 = PAGE_SECTORS * SECTOR_BYTES;
/// Dirty pages whose bookkeeping is counted as a page of memory: 64 bytes each, more than it takes.
const BOOKKEEPING_SHARE: u64 = PAGE_BYTES / 64;

/// The write side of the cache of one shard and pool; clones share it.
#[derive(Clone)]
pub struct WriteBack(pub(crate) Rc<Inner>);

/// Clean pages on flash.
struct FlashPages {
    cache: Rc<FlashCache>,
    /// By group: whether reads of its slots look for their pages there, and bring them in.
    fills: Vec<bool>,
}

impl FlashPages {
    /// The cache, if reads of this group's slots use it.
    fn of_group(&self, group: u32) -> Option<&Rc<FlashCache>> {
        self.fills.get(group as usize).copied().unwrap_or(false).then_some(&self.cache)
    }
}

pub(crate) struct Inner {
    pub(crate) world: World,
    /// None where writes go straight to the slots.
    ring: Option<Ring>,
    pub(crate) slots: SlotIo,
    pub(crate) mapping: Rc<dyn Mapping>,
    pub(crate) options: WriteBackOptions,
    pub(crate) state: RefCell<State>,
    locks: Rc<PageLocks>,
    /// Clean pages, where they are kept.
    clean: OnceCell<Rc<ReadCache>>,
    /// Clean pages on flash, where there may be some.
    flash: OnceCell<FlashPages>,
    /// Counts accesses to slots, where something depends on them.
    accesses: OnceCell<Rc<dyn AccessCounter>>,
    readers: Readers,
    refusal: Refusal,
    /// Records on their way into the log, as writes.
    logged: IoRecorder,
    /// Batches on their way to the slots, as writes.
    destaged: IoRecorder,
    /// Lets one delayed writer decide at a time.
    admission: FairQueue,
    /// Pages of writers that were not delayed, because their volumes had had less than others: who is delayed next waits for
    /// them too.
    passed: Cell<f64>,
    /// Rung when a record has become stable, or the log has failed.
    settled: Notify,
    /// Rung when a batch has ended, or room was given back.
    progress: Notify,
    /// Rung when the destager should look again.
    work: Notify,
}

impl WriteBack {
    /// A write cache without dirty pages, whose log is `ring`, empty or no longer needed. It does nothing before
    /// [`WriteBack::start`] but keep what is written.
    pub fn new(
        world: &World,
        ring: Ring,
        slots: SlotIo,
        mapping: Rc<dyn Mapping>,
        options: WriteBackOptions,
    ) -> WriteBack {
        WriteBack::with_versions(world, Some(ring), slots, mapping, options, 1)
    }

    /// As [`WriteBack::new`], where records up to `first_version` may lie in some log.
    pub(crate) fn with_versions(
        world: &World,
        ring: Option<Ring>,
        slots: SlotIo,
        mapping: Rc<dyn Mapping>,
        options: WriteBackOptions,
        first_version: u64,
    ) -> WriteBack {
        assert!(options.batches_max > 0 && options.batch_pages_max > 0, "destaging needs a batch of a page");
        assert!(options.low_percent < options.high_percent && options.high_percent < 100, "low < high < 100");
        WriteBack(Rc::new(Inner {
            world: world.clone(),
            ring,
            slots,
            mapping,
            options,
            state: RefCell::new(State::new(options.age_max, first_version)),
            locks: Rc::default(),
            clean: OnceCell::new(),
            flash: OnceCell::new(),
            accesses: OnceCell::new(),
            readers: Readers::default(),
            refusal: Refusal::default(),
            logged: IoRecorder::default(),
            destaged: IoRecorder::default(),
            admission: FairQueue::default(),
            passed: Cell::default(),
            settled: Notify::new(),
            progress: Notify::new(),
            work: Notify::new(),
        }))
    }

    /// Keeps clean pages in `cache`, which other lanes on the same slots may share.
    ///
    /// # Panics
    /// Where it has one.
    pub fn keep_reads(&self, cache: Rc<ReadCache>) {
        self.0.slots.share_memory();
        assert!(self.0.clean.set(cache).is_ok(), "a write cache has one read cache beside it");
        self.0.leave_memory();
    }

    /// Keeps clean pages in `cache` on flash, which other lanes on the same slots may share: those of the groups of which `fills`
    /// says so, because their drives are slower than that. Whatever changes a slot is told to it in any case.
    ///
    /// # Panics
    /// Where it has one, or has no log.
    pub fn keep_on_flash(&self, cache: Rc<FlashCache>, fills: Vec<bool>) {
        assert!(self.has_log(), "what is struck on flash must be so before the log lets go of what is newer");
        assert!(self.0.flash.set(FlashPages { cache, fills }).is_ok(), "one cache on flash");
    }

    /// Has accesses to slots counted.
    ///
    /// # Panics
    /// Where they are already.
    pub fn count_accesses(&self, counter: Rc<dyn AccessCounter>) {
        assert!(self.0.accesses.set(counter).is_ok(), "one counter");
    }

    /// Where writers are delayed, a volume gets so much in proportion to the others; 10 where nothing is said.
    pub fn set_weight(&self, volume: u32, weight: u32) {
        self.0.admission.set_weight(volume, weight);
    }

    /// Starts destaging. Without a log nothing is ever dirty.
    pub fn start(&self) {
        if !self.has_log() || !self.0.state.borrow_mut().start() {
            return;
        }
        let inner = self.0.clone();
        self.0.world.spawn(async move { inner.schedule_batches().await }).detach();
    }

    /// Ends destaging once the batches under way are done. What is dirty stays in memory and log.
    pub fn stop(&self) {
        self.0.state.borrow_mut().stop();
        self.0.work.notify_all();
    }

    /// Waits until everything that has completed is stable in the log.
    ///
    /// # Errors
    /// When the log has failed: whatever was not stable by then may be lost. As [`WriteBack::refuse`] says, where hosts
    /// are not to wait: then whatever was not stable may become so later, and the next flush that succeeds covers it.
    pub async fn flush(&self) -> Result<(), IoError> {
        self.0.unless_refused(self.0.until_stable()).await?
    }

    /// Destages everything that is dirty now, as fast as it goes.
    ///
    /// # Errors
    /// When some pages cannot be destaged: they stay dirty, and in the log.
    pub async fn drain(&self) -> Result<(), IoError> {
        self.0.until_stable().await?;
        let end = self.logged();
        let _draining = self.0.begin_drain();
        self.until_forgotten(end).await?;
        // The last batches may still be giving slots back when their pages are forgotten.
        let batches = self.0.state.borrow().batches_begun;
        while self.0.state.borrow().in_flight.first().is_some_and(|oldest| *oldest < batches) {
            self.0.check_log()?;
            self.0.progress.wait().await;
        }
        Ok(())
    }

    /// How many records came up to now: what [`WriteBack::retire`] is told.
    pub fn logged(&self) -> u64 {
        self.0.state.borrow().records.end()
    }

    /// Destages what is left of the first `records` records, and makes the log begin behind them on all its copies: what a
    /// copy has lost of them, unnoticed, no recovery needs any more.
    ///
    /// # Errors
    /// When some of it cannot be destaged; when the log has failed.
    pub async fn retire(&self, records: u64) -> Result<(), IoError> {
        if !self.has_log() {
            return Ok(());
        }
        self.0.until_stable().await?;
        let draining = self.0.begin_drain();
        self.until_forgotten(records).await?;
        drop(draining);
        self.0.ring().persist_tail().await.map_err(|error| io_error(&error))
    }

    /// Waits until the ring keeps nothing of before, on all its copies. Records that are not needed any more are kept as long as
    /// intents that lie before them: those of batches under way, and of extents that could not be destaged.
    ///
    /// # Errors
    /// When the log has failed.
    pub async fn let_log_go(&self) -> Result<(), IoError> {
        if !self.has_log() {
            return Ok(());
        }
        let end = self.0.state.borrow().records.position().unwrap_or_else(|| self.0.ring().stable());
        loop {
            self.0.check_log()?;
            if self.0.state.borrow().intents_floor().is_none_or(|floor| floor >= end) {
                break;
            }
            self.0.work.notify_all();
            self.0.progress.wait().await;
        }
        self.0.release();
        self.0.ring().persist_tail().await.map_err(|error| io_error(&error))
    }

    /// Waits until none of the first `records` records is needed, while the caller has everything destaged.
    async fn until_forgotten(&self, records: u64) -> Result<(), IoError> {
        loop {
            self.0.check_log()?;
            {
                let state = self.0.state.borrow();
                if state.records.first() >= records {
                    return Ok(());
                }
                if let Some(error) = state.only_failure(records) {
                    return Err(error);
                }
            }
            self.0.work.notify_all();
            self.0.progress.wait().await;
        }
    }

    /// Destages whatever recovery has found in the log. Until then the copies of a page that a power cut has caught may
    /// differ from each other and from their checksum: a scrub or a rebuild must not judge a slot by them. Costs
    /// nothing afterwards.
    ///
    /// Extents that cannot be destaged are left out; [`WriteBack::has_failed`] tells which.
    ///
    /// # Errors
    /// When the log has failed.
    pub async fn settle_recovered(&self) -> Result<(), IoError> {
        if self.0.is_settled() {
            return Ok(());
        }
        let _draining = self.0.begin_drain();
        while !self.0.is_settled() {
            self.0.check_log()?;
            self.0.work.notify_all();
            self.0.progress.wait().await;
        }
        Ok(())
    }

    /// Keeps a volume's extents in their slots until [`WriteBack::release`]: none of them begins to move.
    pub fn keep_in_place(&self, volume: u32) {
        self.0.state.borrow_mut().held.insert(volume);
    }

    /// Waits until no read is under way of a slot that no extent has any more, and forgets what is known of it.
    pub async fn until_unread(&self, slot: SlotRef) {
        self.0.until_free(slot).await;
    }

    /// The slots that are read or kept now; the extent of one may have left it since.
    pub fn slots_read(&self) -> Vec<u64> {
        self.0.readers.slots()
    }

    /// Waits until one of [`WriteBack::slots_read`] is read no more.
    pub async fn until_fewer_are_read(&self) {
        self.0.readers.until_fewer().await;
    }

    /// Holds a volume's extents in their slots, and ends when whatever was written to them before is there and the log has
    /// nothing of it. Writers must be kept away from the volume until [`WriteBack::release`].
    ///
    /// # Errors
    /// When some of the log cannot be destaged; when it has failed. The volume is not held.
    pub async fn hold(&self, volume: u32) -> Result<(), IoError> {
        self.keep_in_place(volume);
        let held = self.until_in_place(volume).await;
        if held.is_err() {
            self.release(volume);
        }
        held
    }

    /// The volume's extents may get other slots again.
    pub fn release(&self, volume: u32) {
        self.0.state.borrow_mut().held.remove(&volume);
    }

    /// [`crate::Mapping::slot`] knows nothing any more of a volume whose extents were forgotten: nor does this.
    pub fn has_gone(&self, volume: u32) {
        let mut state = self.0.state.borrow_mut();
        state.held.remove(&volume);
        state.emptied.retain(|extent| extent.volume != volume);
    }

    async fn until_in_place(&self, volume: u32) -> Result<(), IoError> {
        if !planted(PlantedBug::CloneBeforeDestage) {
            self.retire(self.logged()).await?;
        }
        let extents = ExtentId { volume, index: 0 }..=ExtentId { volume, index: u32::MAX };
        loop {
            self.0.check_log()?;
            {
                let state = self.0.state.borrow();
                let moves = state.busy.range(extents.clone()).next().is_some()
                    || state.emptied.range(extents.clone()).next().is_some()
                    || state.copies.range(extents.clone()).next().is_some();
                if !moves {
                    return Ok(());
                }
            }
            self.0.progress.wait().await;
        }
    }

    /// Whether an extent could not be destaged when it was last tried, so that its rows may be half written.
    pub fn has_failed(&self, extent: ExtentId) -> bool {
        self.0.state.borrow().failed.get(&extent).is_some_and(|failure| !failure.pages.is_empty())
    }

    /// Keeps the slot of an extent from being given back until this is dropped, for a scrub or a rebuild of all of it;
    /// none where the extent has another and is not being copied to it, or is being closed.
    pub fn keep(&self, extent: ExtentId, slot: SlotRef) -> Option<impl Drop + '_> {
        let is_copied = || self.0.state.borrow().copies.get(&extent) == Some(&slot);
        (self.0.slot(extent) == Some(slot) || is_copied()).then(|| self.0.readers.enter(slot.slot))
    }

    /// How it stands.
    pub fn status(&self) -> WriteBackStatus {
        let space = self.0.log_space();
        let state = self.0.state.borrow();
        let (capacity, usage) = (self.0.capacity(), self.0.usage(&state));
        let level = capacity.level(&usage);
        let flushed = state.counts.flushed.all();
        WriteBackStatus {
            stage: self.0.stage(level, &state),
            dirty_pages: state.pages.len(),
            dirty_bytes: state.records.pages() * PAGE_BYTES,
            log_used_bytes: (space.live + space.waiting) * SECTOR_BYTES,
            log_bytes: space.capacity * SECTOR_BYTES,
            level,
            flushing: Flushing {
                memory_utilisation: capacity.memory_utilisation(&usage),
                log_utilisation: capacity.log_utilisation(&usage),
                watermark_low: self.0.low(),
                watermark_high: self.0.high(),
                counts: state.counts.flushed,
            },
            destage_pages_per_s: state.destage_rate.pages_per_s(),
            written_pages: state.counts.written_pages,
            destaged_pages: flushed.pages,
            batches: flushed.batches,
            delayed: Nanos(state.counts.flushed.delayed_ns),
            failures: state.counts.failures,
            last_failure: state.last_failure,
            failed_extents: state.failed.len() as u64,
            log_failure: state.log_failure,
        }
    }

    /// Records that went into the log, as writes: how many, their data, and how long until they were stable.
    pub fn log_stats(&self) -> IoStats {
        self.0.logged.snapshot()
    }

    /// Batches that were destaged, as writes: how many, their pages, and how long they took.
    pub fn destage_stats(&self) -> IoStats {
        self.0.destaged.snapshot()
    }

    /// Memory that dirty pages may take.
    pub fn memory_max(&self) -> ByteCount {
        self.0.options.memory_max
    }
}

impl Inner {
    /// Waits until everything that has completed is stable: in the log, however long that takes, or where there is none in
    /// its place.
    async fn until_stable(&self) -> Result<(), IoError> {
        if self.ring.is_none() {
            return self.slots.raid().flush().await;
        }
        let end = self.state.borrow().records.end();
        loop {
            if self.state.borrow().records.settled() >= end {
                return Ok(());
            }
            self.check_log()?;
            self.settled.wait().await;
        }
    }

    /// The slot of an extent, none while it is being given back.
    fn slot(&self, extent: ExtentId) -> Option<SlotRef> {
        if self.state.borrow().emptied.contains(&extent) {
            return None;
        }
        self.mapping.slot(extent)
    }

    /// What there is of memory and log, and what intents take of it: as much as those of the sets that take most. Sets may
    /// join.
    pub(crate) fn capacity(&self) -> Capacity {
        let intents = self.slots.row_kinds().map(|(parity, pages)| intent_page_bytes(parity, pages));
        Capacity {
            pages: (self.options.memory_max.0 / PAGE_BYTES).max(1),
            blocks: self.ring.as_ref().map_or(u64::MAX, |ring| ring.space().capacity / PAGE_SECTORS),
            intent_page_bytes: match planted(PlantedBug::IntentsOfWrongGroup) {
                true => intents.min(),
                false => intents.max(),
            }
            .unwrap_or(0),
        }
    }

    /// How full memory and log are with so many pages and blocks more.
    pub(crate) fn level(&self, more_pages: u64, more_blocks: u64) -> f64 {
        let mut usage = self.usage(&self.state.borrow());
        usage.pages += more_pages;
        usage.dirty_pages += more_pages;
        usage.used_blocks += more_blocks;
        self.capacity().level(&usage)
    }

    /// What is in use, and what admitted writers are about to.
    fn usage(&self, state: &State) -> Usage {
        let space = self.log_space();
        Usage {
            pages: state.records.pages() + state.pages.len() / BOOKKEEPING_SHARE + state.reserved_pages,
            used_blocks: (space.live + space.waiting) / PAGE_SECTORS
                + state.reserved_blocks
                + state.intents_due.values().sum::<u64>(),
            dirty_pages: state.pages.data_len()
                + state.voided_pages
                + state.records.destaged()
                + state.reserved_pages,
        }
    }

    /// Slot tables and clean pages have what dirty pages do not take.
    fn leave_memory(&self) {
        let dirty = self.state.borrow().records.pages() * PAGE_BYTES;
        self.slots.leave_memory(dirty as usize);
        self.fit_clean();
    }

    /// Clean pages have what neither dirty pages nor slot tables take.
    pub(crate) fn fit_clean(&self) {
        if let Some(clean) = self.clean.get() {
            clean.fit(self.slots.memory_left() as u64);
        }
    }

    /// A slot is free: nothing is remembered of it.
    pub(crate) fn free_slot(&self, slot: SlotRef) {
        self.forget_clean(slot);
        self.slots.free(slot);
    }

    /// A slot is to be used that no extent had.
    pub(crate) fn allocate_slot(&self, slot: SlotRef) {
        self.forget_clean(slot);
        self.slots.allocate(slot);
    }

    fn forget_clean(&self, slot: SlotRef) {
        if planted(PlantedBug::KeepPagesOfFreedSlot) {
            return;
        }
        if let Some(clean) = self.clean.get() {
            clean.forget_slot(slot.slot, self.slots.pages_per_slot(slot.slot));
        }
        if let Some(flash) = self.flash.get()
            && !planted(PlantedBug::KeepFreedSlotOnFlash)
        {
            flash.cache.forget_slot(slot.slot);
        }
    }

    /// No opening believes any more what the cache on flash held of pages that have changed. To be waited for before the log
    /// lets go of what is newer, and before a slot becomes an extent's.
    async fn settle_flash(&self) {
        if let Some(flash) = self.flash.get()
            && !planted(PlantedBug::LogGoesBeforeFlash)
        {
            flash.cache.settle().await;
        }
    }

    /// Whether every page that recovery has loaded is destaged, but for those of extents that cannot be.
    fn is_settled(&self) -> bool {
        let state = self.state.borrow();
        if state.pages.unsettled() == 0 {
            return true;
        }
        let stuck = state.failed.keys().filter(|extent| !state.busy.contains(extent));
        let stuck: BTreeSet<ExtentId> = stuck.copied().collect();
        !stuck.is_empty() && state.pages.unsettled_extents().all(|extent| stuck.contains(&extent))
    }

    fn low(&self) -> f64 {
        f64::from(self.options.low_percent) / 100.0
    }

    fn high(&self) -> f64 {
        f64::from(self.options.high_percent) / 100.0
    }

    fn stage(&self, level: f64, state: &State) -> Stage {
        if level >= self.high() {
            Stage::Throttling
        } else if level >= self.low() || state.draining > 0 {
            Stage::Pressing
        } else if state.pages.is_empty() {
            Stage::Idle
        } else {
            Stage::Coalescing
        }
    }

    /// The log of a pool that has one: nothing is ever dirty in the others.
    pub(crate) fn ring(&self) -> &Ring {
        self.ring.as_ref().expect("only a pool with a log has records")
    }

    fn log_space(&self) -> Space {
        let none = Space { capacity: 0, used: 0, live: 0, waiting: 0 };
        self.ring.as_ref().map_or(none, Ring::space)
    }

    fn check_log(&self) -> Result<(), IoError> {
        self.state.borrow().log_failure.map_or(Ok(()), Err)
    }

    /// Gives the log back up to the oldest record that is needed.
    fn release(&self) {
        let mut state = self.state.borrow_mut();
        state.records.trim();
        if !state.holds_log {
            // Without records, everything that is acknowledged is an intent, and its batch says whether it is needed.
            let Some(ring) = &self.ring else { return };
            let data = state.records.position().unwrap_or_else(|| ring.stable());
            let up_to = state.intents_floor().map_or(data, |floor| floor.min(data));
            drop(state);
            ring.release(up_to);
        }
    }
}

/// What a writer is told when the log has failed.
pub(crate) fn io_error(error: &RingError) -> IoError {
    match error {
        RingError::AllCopiesLost { source }
        | RingError::Drive { source, .. }
        | RingError::Unreadable { source, .. } => *source,
        _ => IoError::Gone,
    }
}
