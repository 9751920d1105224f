//! A shard's part in a scrub: its slots in ascending order.

use std::pin::pin;
use std::rc::Rc;

use futures_util::future::{Either, select, try_join_all};
use tier0_cache::Mapping;
use tier0_control::message::scrub::ScrubShared;
use tier0_units::{ExtentId, Nanos, PAGE_SECTORS, SECTOR_BYTES, SlotRef};

use super::pace::Pace;
use crate::shard::Shard;

/// How often a scrub that waits for the log looks whether it was stopped.
const STOP_LOOK: Nanos = Nanos::from_millis(100);

impl Shard {
    /// Scrubs this shard's slots from where the scrub begins. What cannot be repaired is logged by address and counted;
    /// the scrub goes on.
    pub(crate) async fn scrub_slots(self: &Rc<Self>, number: usize, rate: Option<u64>, shared: &ScrubShared) {
        let pool = self.pool(number).clone();
        // Copies of a page that a power cut has caught may all fail its checksum until the log has written it again.
        if let Err(error) = pool.settle_recovered().await {
            tracing::error!("the scrub cannot begin: {error}");
            shared.skip(pool.mapping.slots().len() as u64);
            return;
        }
        tracing::debug!(shard = self.index, pool = number, "a scrub begins");
        let logged: Vec<u64> = pool.lanes().iter().map(|lane| lane.write_back.logged()).collect();
        let mut pace = Pace::new(&self.world, &self.activity, rate);
        let mut slots: Vec<(ExtentId, SlotRef)> = pool.mapping.slots();
        slots.retain(|(_, slot)| slot.slot >= shared.from());
        slots.sort_by_key(|(_, slot)| slot.slot);
        for (known, slot) in slots {
            if shared.is_stopping() {
                return;
            }
            shared.look_at(self.index, slot.slot);
            let begun = self.world.now();
            let Some((extent, pinned)) = pool.mapping.pin_for_any(known, slot) else {
                shared.count_vacated();
                continue;
            };
            if pool.lane_of(extent).write_back.has_failed(extent) {
                tracing::error!(
                    "{} cannot be scrubbed before what is written to it is in its place",
                    self.extent_name(&pool, extent)
                );
                shared.skip(1);
                continue;
            }
            // Of an extent that is being closed nothing is left; its table may never have been written.
            let Some(kept) = pool.lane_of(extent).write_back.keep(extent, slot) else {
                // Others may have it still.
                match pool.mapping.is_shared(slot) {
                    true => shared.skip(1),
                    false => shared.count_vacated(),
                }
                continue;
            };
            match pool.slot_io.scrub_slot(slot).await {
                Ok(found) => {
                    shared.count_slot(pool.extent_sectors / PAGE_SECTORS);
                    let repaired = found.rows.repaired + found.tables_repaired;
                    shared.count_wrong(repaired, found.lost_pages.len() as u64);
                    for page in found.lost_pages {
                        let sector =
                            u64::from(extent.index) * pool.extent_sectors + u64::from(page) * PAGE_SECTORS;
                        tracing::error!(
                            "volume {} sectors {sector}+{PAGE_SECTORS}: no copy passes its checksum; restore them from a backup",
                            self.volume_name(&pool, extent.volume)
                        );
                    }
                }
                Err(error) => {
                    tracing::error!("{} cannot be scrubbed: {error}", self.extent_name(&pool, extent));
                    shared.skip(1);
                }
            }
            drop((kept, pinned));
            // A slow scrub rests for minutes, and is stopped in the middle of that.
            pace.rest_unless(begun, pool.extent_sectors * SECTOR_BYTES, || shared.is_stopping()).await;
        }
        // A scrub promises that what it has seen stays right: repairs that reads have made before it, too.
        if let Err(error) = pool.slot_io.raid().flush().await {
            tracing::error!("what the scrub has repaired may not be stable: {error}");
        }
        // A scrub does not compare the copies of the log: what they had when it began goes to its place instead, and
        // most of it has done so by now.
        let lanes = pool.lanes().iter().zip(logged);
        let retired = pin!(try_join_all(lanes.map(|(lane, logged)| lane.write_back.retire(logged))));
        match select(retired, pin!(self.until_stopped(shared))).await {
            Either::Left((Ok(_), _)) => {}
            Either::Left((Err(error), _)) => {
                tracing::error!("what the log had when the scrub began cannot leave it: {error}");
            }
            Either::Right(_) => return,
        }
        shared.look_at(self.index, u64::MAX);
    }

    /// Scrubs the rows whose parity recovery has taken from this shard's log, as the pace of background work allows. It does not
    /// wait until the log is destaged, for then nothing remembers these rows: what they hold agrees with their checksums since
    /// they were replayed.
    pub(crate) async fn scrub_replayed(self: &Rc<Self>, number: usize) {
        let pool = self.pool(number).clone();
        let rows = pool.slot_io.take_replayed();
        if rows.is_empty() {
            return;
        }
        tracing::info!(
            shard = self.index,
            pool = number,
            rows = rows.len(),
            "rows of the last run's log are scrubbed"
        );
        let mut pace = Pace::new(&self.world, &self.activity, None);
        for row in rows {
            let begun = self.world.now();
            let Some((extent, pinned)) = pool.mapping.pin_for_any(row.extent, row.slot) else { continue };
            let write_back = &pool.lane_of(extent).write_back;
            let Some(kept) = write_back.keep(extent, row.slot) else { continue };
            if !write_back.has_failed(extent)
                && let Err(error) = pool.slot_io.scrub_replayed(row).await
            {
                tracing::warn!("{} is not scrubbed: {error}", self.extent_name(&pool, extent));
            }
            drop((kept, pinned));
            let set = pool.slot_io.slots().place(row.slot.slot).set;
            let row_sectors = pool.slot_io.raid().sets().layout(set).row_sectors().0;
            pace.rest(begun, row_sectors * SECTOR_BYTES).await;
        }
    }

    async fn until_stopped(&self, shared: &ScrubShared) {
        while !shared.is_stopping() {
            self.world.sleep(STOP_LOOK).await;
        }
    }
}
