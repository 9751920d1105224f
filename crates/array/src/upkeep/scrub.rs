//! A shard's part in a scrub: its slots in ascending order.

use std::pin::pin;
use std::rc::Rc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use futures_util::future::{Either, select};
use tier0_units::{ExtentId, Nanos, PAGE_SECTORS, SECTOR_BYTES, SlotRef};

use super::pace::Pace;
use crate::shard::Shard;

/// How often a scrub that waits for the log looks whether it was stopped.
const STOP_LOOK: Nanos = Nanos::from_millis(100);

/// A scrub of a pool as all its shards and the control task see it.
#[derive(Debug)]
pub(crate) struct ScrubShared {
    stop: AtomicBool,
    /// By shard: the slot it looks at next.
    next: Box<[AtomicU64]>,
    from: u64,
    slots_done: AtomicU64,
    pages: AtomicU64,
    repaired: AtomicU64,
    unrecoverable: AtomicU64,
    /// Slots that could not be looked at.
    skipped: AtomicU64,
}

impl ScrubShared {
    /// A scrub of so many shards from slot `from` on.
    pub(crate) fn new(shards: usize, from: u64) -> ScrubShared {
        ScrubShared {
            stop: AtomicBool::new(false),
            next: (0..shards).map(|_| AtomicU64::new(from)).collect(),
            from,
            slots_done: AtomicU64::new(0),
            pages: AtomicU64::new(0),
            repaired: AtomicU64::new(0),
            unrecoverable: AtomicU64::new(0),
            skipped: AtomicU64::new(0),
        }
    }

    /// Asks all shards to stop after the slot they look at.
    pub(crate) fn stop(&self) {
        self.stop.store(true, Ordering::Relaxed);
    }

    pub(crate) fn is_stopping(&self) -> bool {
        self.stop.load(Ordering::Relaxed)
    }

    /// Everything before this slot has been looked at by all shards.
    pub(crate) fn next_slot(&self) -> u64 {
        self.next.iter().map(|next| next.load(Ordering::Relaxed)).min().unwrap_or(self.from)
    }

    pub(crate) fn slots_done(&self) -> u64 {
        self.slots_done.load(Ordering::Relaxed)
    }

    pub(crate) fn pages(&self) -> u64 {
        self.pages.load(Ordering::Relaxed)
    }

    pub(crate) fn repaired(&self) -> u64 {
        self.repaired.load(Ordering::Relaxed)
    }

    /// Whether it has seen everything, and everything was right.
    pub(crate) fn found_nothing(&self) -> bool {
        self.repaired() == 0 && self.unrecoverable() == 0 && self.skipped() == 0
    }

    /// Slots that could not be looked at.
    pub(crate) fn skipped(&self) -> u64 {
        self.skipped.load(Ordering::Relaxed)
    }

    fn skip(&self, slots: u64) {
        self.skipped.fetch_add(slots, Ordering::Relaxed);
    }

    pub(crate) fn unrecoverable(&self) -> u64 {
        self.unrecoverable.load(Ordering::Relaxed)
    }
}

impl Shard {
    /// Scrubs this shard's slots from where the scrub begins. What cannot be repaired is logged by address and counted;
    /// the scrub goes on.
    pub(crate) async fn scrub_slots(self: &Rc<Self>, number: usize, rate: Option<u64>, shared: &ScrubShared) {
        let pool = self.pool(number).clone();
        // Copies of a page that a power cut has caught may all fail its checksum until the log has written it again.
        if let Err(error) = pool.write_back.settle_recovered().await {
            tracing::error!("the scrub cannot begin: {error}");
            shared.skip(pool.mapping.extents().len() as u64);
            return;
        }
        tracing::debug!(shard = self.index, pool = number, "a scrub begins");
        let logged = pool.write_back.logged();
        let mut pace = Pace::new(&self.world, &self.activity, rate);
        let mut slots: Vec<(ExtentId, SlotRef)> = pool.mapping.extents();
        slots.retain(|(_, slot)| slot.slot >= shared.from);
        slots.sort_by_key(|(_, slot)| slot.slot);
        for (extent, slot) in slots {
            if shared.is_stopping() {
                return;
            }
            shared.next[self.index].store(slot.slot, Ordering::Relaxed);
            let begun = self.world.now();
            if pool.write_back.is_troubled(extent) {
                tracing::error!("{extent} cannot be scrubbed before what is written to it is in its place");
                shared.skip(1);
                continue;
            }
            let Some(held) = pool.mapping.hold(extent, slot) else { continue };
            // Of an extent that is being closed nothing is left; its table may never have been written.
            let Some(kept) = pool.write_back.keep(extent, slot) else { continue };
            match pool.slot_io.scrub_slot(slot).await {
                Ok(found) => {
                    let repaired = found.rows.repaired + found.tables_repaired;
                    shared.repaired.fetch_add(repaired, Ordering::Relaxed);
                    shared.unrecoverable.fetch_add(found.lost_pages.len() as u64, Ordering::Relaxed);
                    for page in found.lost_pages {
                        let sector =
                            u64::from(extent.index) * pool.extent_sectors + u64::from(page) * PAGE_SECTORS;
                        tracing::error!(
                            "volume {} sectors {sector}+{PAGE_SECTORS}: no copy passes its checksum; restore them from a backup",
                            extent.volume
                        );
                    }
                }
                Err(error) => {
                    tracing::error!("{extent} cannot be scrubbed: {error}");
                    shared.skip(1);
                }
            }
            drop((kept, held));
            shared.slots_done.fetch_add(1, Ordering::Relaxed);
            shared.pages.fetch_add(pool.extent_sectors / PAGE_SECTORS, Ordering::Relaxed);
            // A slow scrub rests for minutes, and is stopped in the middle of that.
            pace.rest_unless(begun, pool.extent_sectors * SECTOR_BYTES, || shared.is_stopping()).await;
        }
        // A scrub promises that what it has seen stays right: repairs that reads have made before it, too.
        if let Err(error) = pool.slot_io.raid().flush().await {
            tracing::error!("what the scrub has repaired may not be stable: {error}");
        }
        // Nobody compares the copies of the log: what they had when the scrub began goes to its place instead, and most of
        // it has done so by now.
        let retired = pin!(pool.write_back.retire(logged));
        match select(retired, pin!(self.until_stopped(shared))).await {
            Either::Left((Ok(()), _)) => {}
            Either::Left((Err(error), _)) => {
                tracing::error!("what the log had when the scrub began cannot leave it: {error}");
            }
            Either::Right(_) => return,
        }
        shared.next[self.index].store(u64::MAX, Ordering::Relaxed);
    }

    async fn until_stopped(&self, shared: &ScrubShared) {
        while !shared.is_stopping() {
            self.world.sleep(STOP_LOOK).await;
        }
    }
}
