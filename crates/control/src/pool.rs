//! A pool as the control task keeps it.

use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;
use std::rc::Rc;
use std::sync::Arc;

use tier0_drive::DriveHandle;
use tier0_plan::PoolShape;
use tier0_pool::metadata::Metadata;
use tier0_pool::{ChunkletAddress, Claim, MetaRecord, PoolError, SlotRun, SpaceRules};
use tier0_raid::io::LostDrives;
use tier0_raid::layout::Column;
use tier0_raid::set::SetIndex;
use tier0_units::{ExtentId, Nanos, SlotRef};
use tier0_world::IoError;
use tier0_world::sync::Semaphore;

use crate::balance::mover::{MOVES_AT_ONCE, Mover};
use crate::balance::restripe::RestripeProgress;
use crate::caches::flash_cache::FlashCacheUpkeep;
use crate::message::control::SlotRebuiltNote;
use crate::repair::arbiter::FailureArbiter;
use crate::repair::page_errors::PageErrors;
use crate::repair::pause::Pauses;
use crate::repair::rebuild::RebuildProgress;
use crate::repair::scrub::ScrubProgress;
use crate::repair::verification::Unverified;
use crate::space::discards::Discards;
use crate::volumes::extent_commits::ExtentCommits;

/// Allocation numbers that are reserved at once: one metadata record for so many new extents.
const ALLOCATIONS_RESERVED: u64 = 1 << 16;
/// The most slots that are allocated at once: enough that asking is rare, few enough that none lie idle for long.
const BATCH_MAX: u64 = 64;
/// A batch is at most this share of what is left for every shard, so that the last slots are not hoarded.
const BATCH_SHARE: u64 = 4;

/// Permits of [`PoolCore::column_places`]: more than commits are ever under way.
pub(crate) const ALL_PLACES: u64 = 1 << 32;

/// A pool.
pub(crate) struct PoolControl {
    pub(crate) name: String,
    pub(crate) lost: Arc<LostDrives>,
    pub(crate) core: PoolCore,
}

/// What the control task keeps of a pool, for all that it does there.
pub(crate) struct PoolCore {
    pub(crate) metadata: Metadata,
    pub(crate) shape: PoolShape,
    /// Numbers that are reserved and not given.
    allocations: RefCell<Range<u64>>,
    /// One reserves allocation numbers for all.
    reserving: Semaphore,
    /// A task that records which slots of a column are there has one permit until that is stable; a task that moves
    /// columns or ends their rebuild has all: what is true of a column's old place must not be remembered of its new
    /// one, nor after the end.
    pub(crate) column_places: Semaphore,
    /// Lost members that are to be forgotten although what they hold may be needed.
    pub(crate) given_up: RefCell<BTreeSet<u32>>,
    /// Members that are to be forgotten when nothing is theirs any more, with their drives where they answer.
    pub(crate) leaving: RefCell<BTreeMap<u32, Option<DriveHandle>>>,
    pub(crate) extent_commits: ExtentCommits,
    pub(crate) arbiter: FailureArbiter,
    pub(crate) pauses: Pauses,
    pub(crate) page_errors: PageErrors,
    /// Whether the last event about a rebuild said that one goes on.
    pub(crate) rebuild_told: Cell<bool>,
    /// Of how many columns events have told last that there is no spare chunklet for them.
    pub(crate) room_told: Cell<u64>,
    /// How urgent the last event about space was.
    pub(crate) space_told: RefCell<BTreeMap<u32, u8>>,
    /// When the administrator is told about space, and what thin volumes do not get.
    pub(crate) space_rules: RefCell<SpaceRules>,
    /// The drives that are to hold the write log, where the array file says so.
    pub(crate) log_drives: RefCell<Vec<String>>,
    /// Members that are not for data of which was told that they have columns.
    pub(crate) misplaced_told: RefCell<BTreeSet<u32>>,
    pub(crate) flash_cache: FlashCacheUpkeep,
    pub(crate) rebuild: RebuildProgress,
    pub(crate) scrub: ScrubProgress,
    pub(crate) restripe: RestripeProgress,
    /// The lost member whose drive joins again at present.
    pub(crate) rejoining: Cell<Option<u32>>,
    /// Columns that are rebuilt where they were until their drive was lost: set, column and place.
    pub(crate) returned: RefCell<BTreeMap<(u32, u32), ChunkletAddress>>,
    /// Drives that were taken back by what has changed, until a scrub has read them whole.
    pub(crate) unverified: Unverified,
    /// Members that the administrator has taken out of service, in this run.
    pub(crate) taken_out: RefCell<BTreeSet<u32>>,
    /// When members were lost, in this run.
    pub(crate) lost_at: RefCell<BTreeMap<u32, Nanos>>,
    /// The administrator has asked for sets that need columns to move first.
    pub(crate) growing: Cell<bool>,
    /// Freed slots on their way back.
    pub(crate) discards: Rc<Discards>,
    /// Extents on their way.
    pub(crate) mover: Rc<Mover>,
    /// Extents move, or columns are rebuilt, not both: a move has one permit, a rebuild all of them.
    pub(crate) extents_or_rebuild: Semaphore,
}

impl PoolCore {
    /// How many slots of a set have extents; `None` if there is no such set.
    pub(crate) fn used_slots(&self, set: u32) -> Option<u32> {
        let state = self.metadata.state();
        (set < state.set_count()).then(|| state.used_slots_of(set).count() as u32)
    }

    /// A pool whose metadata are open, with its drives by member.
    pub(crate) fn new(metadata: Metadata, shape: PoolShape, drives: &[Option<DriveHandle>]) -> PoolCore {
        let pauses = Pauses::default();
        for (member, drive) in (0u32..).zip(drives) {
            drive.iter().for_each(|drive| pauses.watch(member, drive));
        }
        let follower = shape.clone();
        metadata.on_sets_added(Rc::new(move |state| follower.follow(state)));
        let discards = Discards::start(&metadata, &shape);
        PoolCore {
            metadata,
            shape,
            allocations: RefCell::new(0..0),
            reserving: Semaphore::new(1),
            column_places: Semaphore::new(ALL_PLACES),
            given_up: RefCell::default(),
            leaving: RefCell::default(),
            extent_commits: ExtentCommits::default(),
            arbiter: FailureArbiter::default(),
            pauses,
            page_errors: PageErrors::default(),
            rebuild_told: Cell::new(false),
            room_told: Cell::new(0),
            space_told: RefCell::default(),
            space_rules: RefCell::default(),
            log_drives: RefCell::default(),
            misplaced_told: RefCell::default(),
            flash_cache: FlashCacheUpkeep::default(),
            rebuild: RebuildProgress::default(),
            scrub: ScrubProgress::default(),
            restripe: RestripeProgress::default(),
            rejoining: Cell::default(),
            returned: RefCell::default(),
            unverified: Unverified::default(),
            taken_out: RefCell::default(),
            lost_at: RefCell::default(),
            growing: Cell::new(false),
            discards,
            mover: Rc::default(),
            extents_or_rebuild: Semaphore::new(u64::from(MOVES_AT_ONCE)),
        }
    }

    /// The numbers of its volumes, in order.
    pub(crate) fn volume_numbers(&self) -> Vec<u32> {
        self.metadata.state().volumes().map(|volume| volume.number).collect()
    }

    /// Numbers for `count` allocations, never used before and never again, whatever happens: a power cut must not let
    /// a number that some table on a drive has name another tenant.
    async fn allocations(&self, count: u64) -> Result<u64, PoolError> {
        let _turn = self.reserving.acquire(1).await;
        let missing = {
            let numbers = self.allocations.borrow();
            numbers.end - numbers.start < count
        };
        if missing {
            *self.allocations.borrow_mut() =
                self.metadata.reserve_allocations(count.max(ALLOCATIONS_RESERVED)).await?;
        }
        let mut numbers = self.allocations.borrow_mut();
        numbers.start += count;
        Ok(numbers.start - count)
    }

    /// Makes records true and stable.
    pub(crate) async fn commit(&self, records: Vec<MetaRecord>) -> Result<(), IoError> {
        self.metadata.commit(records).await.map_err(|error| {
            tracing::error!("{error}");
            IoError::Gone
        })
    }

    /// The records that say which columns under rebuild have fresh slots.
    pub(crate) fn fresh_slots(&self, mapped: &[(ExtentId, SlotRef)]) -> Vec<MetaRecord> {
        let sets = &self.shape.sets;
        if !sets.any_rebuilding() {
            return Vec::new();
        }
        let state = self.metadata.state();
        let mut records = Vec::new();
        for (_, slot) in mapped {
            let Some(home) = state.slot_home(slot.slot) else { continue };
            let set = SetIndex(home.set);
            let rows = self.shape.slots.rows(slot.slot);
            for column in sets.rebuilding_columns(set).iter() {
                let known = state.rebuild(home.set, u32::from(column.0));
                let unknown = known.is_some_and(|rebuild| !rebuild.rebuilt.contains(u64::from(home.index)));
                if unknown && !sets.is_unfilled(set, column, rows.start) {
                    records.push(MetaRecord::SlotsRebuilt {
                        set: home.set,
                        column: u32::from(column.0),
                        ranges: one_slot(home.index),
                    });
                }
            }
        }
        records
    }
}

impl PoolControl {
    /// Free slots for one of so many shards, or a single one of those that recover; empty where there are none, or where the
    /// metadata cannot be written any more. What is kept from thin volumes is not allocated to them; what was acknowledged
    /// before a crash gets its slots nevertheless.
    pub(crate) async fn allocate_slots(&self, claim: Claim, shards: Option<usize>) -> Vec<SlotRef> {
        let core = &self.core;
        let left = core.metadata.allocatable_slots(claim.group);
        let count = shards.map_or(1, |shards| (left / (BATCH_SHARE * shards as u64)).clamp(1, BATCH_MAX));
        let kept = if shards.is_some() { core.kept_slots(claim.group) } else { 0 };
        let most = match claim.thin {
            true => core.metadata.free_slots(claim.group).saturating_sub(kept),
            false => u64::MAX,
        };
        let runs = core.metadata.allocate_slots(claim, count.min(most));
        let slots: Vec<u64> = runs.iter().flat_map(|run| run.first..run.first + run.count).collect();
        match core.allocations(slots.len() as u64).await {
            Ok(first) => {
                (first..).zip(slots).map(|(allocation, slot)| SlotRef { slot, allocation }).collect()
            }
            Err(error) => {
                tracing::error!("{error}");
                core.metadata.return_slots(&runs);
                Vec::new()
            }
        }
    }

    /// Takes slots back that a shard was handed and has not used.
    pub(crate) fn take_back(&self, slots: Vec<SlotRef>) {
        let core = &self.core;
        let runs: Vec<SlotRun> = slots.iter().map(|slot| SlotRun { first: slot.slot, count: 1 }).collect();
        core.metadata.return_slots(&runs);
    }

    /// Makes changes of the map stable; then unmapped slots are free. Of a volume that was deleted nothing is mapped any
    /// more: its shards will give the slots back. But a power cut may yet undo the deletion, so the answer comes only when
    /// that is stable: then no recovery needs what the log has of the volume.
    pub(crate) async fn commit(
        &self,
        mut mapped: Vec<(ExtentId, SlotRef)>,
        unmapped: Vec<(ExtentId, SlotRef)>,
    ) -> Result<(), IoError> {
        let core = &self.core;
        let is_there = |extent: &ExtentId| core.metadata.state().volume(extent.volume).is_some();
        loop {
            let result = self.commit_once(core, &mut mapped, &unmapped).await;
            // A volume may have been deleted while the change waited for its turn: the others' extents are mapped all the same.
            let overtaken = mapped.iter().any(|(extent, _)| !is_there(extent));
            if result.is_ok() || !overtaken {
                return result;
            }
        }
    }

    async fn commit_once(
        &self,
        core: &PoolCore,
        mapped: &mut Vec<(ExtentId, SlotRef)>,
        unmapped: &[(ExtentId, SlotRef)],
    ) -> Result<(), IoError> {
        let _still = core.column_places.acquire(1).await;
        let asked = mapped.len();
        mapped.retain(|(extent, _)| core.metadata.state().volume(extent.volume).is_some());
        let follows_deletion = mapped.len() < asked;
        let mut records = Vec::new();
        let mut never_mapped = Vec::new();
        if !mapped.is_empty() {
            records.push(MetaRecord::map(mapped.iter().copied()));
            records.extend(core.fresh_slots(mapped));
        }
        let mut unmap = Vec::new();
        for (extent, slot) in unmapped.iter().copied() {
            let known = core.metadata.state().slot(extent) == Some(slot);
            if known || mapped.contains(&(extent, slot)) {
                unmap.push(extent);
            } else {
                never_mapped.push(SlotRun { first: slot.slot, count: 1 });
            }
        }
        if !unmap.is_empty() {
            records.push(MetaRecord::unmap(unmap));
        }
        // Commits become stable in their order, one without records too.
        if follows_deletion || !records.is_empty() {
            core.commit(records).await?;
        }
        core.metadata.return_slots(&never_mapped);
        Ok(())
    }

    /// Takes a slot back that an extent has left or never got.
    pub(crate) fn give_back(&self, slot: SlotRef) {
        let core = &self.core;
        // A move that failed half way, with the metadata: nothing is allocated any more.
        let in_use = core.metadata.state().used_slots().contains(slot.slot);
        if !in_use {
            core.discards.release(&core.metadata, vec![slot.slot]);
        }
    }

    /// Allocates the lowest free slot of a set for an extent that moves there; `None` if the set is full, or where thick
    /// volumes have reserved all that is free.
    pub(crate) async fn allocate_in(&self, set: u32) -> Option<SlotRef> {
        let core = &self.core;
        let slot = core.metadata.allocate_slot_of(set)?;
        match core.allocations(1).await {
            Ok(allocation) => Some(SlotRef { slot, allocation }),
            Err(error) => {
                tracing::error!("{error}");
                core.metadata.return_slots(&[SlotRun { first: slot, count: 1 }]);
                None
            }
        }
    }

    /// Remembers that a slot is rebuilt, unless its column has moved on meanwhile.
    pub(crate) async fn slot_rebuilt(&self, note: &SlotRebuiltNote) -> Result<(), IoError> {
        let core = &self.core;
        let Some(home) = core.metadata.state().slot_home(note.slot) else {
            return Err(IoError::OutOfRange);
        };
        let _still = core.column_places.acquire(1).await;
        let (set, column) = PoolCore::column(note.set, note.column);
        let is_lost = !core.metadata.state().is_active(note.target.drive);
        if is_lost || core.shape.sets.chunklet(set, column) != note.target {
            return Err(IoError::Gone);
        }
        let ranges = one_slot(home.index);
        let record = MetaRecord::SlotsRebuilt { set: note.set, column: note.column, ranges };
        core.commit(vec![record]).await?;
        core.rebuild.count_slot(self.slot_bytes(SetIndex(note.set)));
        Ok(())
    }

    /// Bytes of the data of a slot of a set.
    pub(crate) fn slot_bytes(&self, set: SetIndex) -> u64 {
        self.core.shape.slots.slot_sectors_of(set) * tier0_units::SECTOR_BYTES
    }

    /// The members that are lost.
    pub(crate) fn lost_members(&self) -> Vec<usize> {
        (0..self.lost.room()).filter(|member| self.lost.is_lost(*member)).collect()
    }

    /// Makes the loss of a member durable; false if that cannot be. A second caller waits for the first. The pool does
    /// not do without the member before: what it lacks by then must not be believed after a crash.
    pub(crate) async fn lose(&self, member: usize, error: IoError) -> bool {
        let recorded = self.core.metadata.lose(member as u32, error).await;
        if let Err(error) = &recorded {
            tracing::error!("{error}");
            return false;
        }
        self.lost.set_lost(member);
        true
    }
}

/// The list of ranges that has this slot of a set alone.
fn one_slot(index: u32) -> Vec<Range<u32>> {
    std::iter::once(index..index + 1).collect()
}

impl PoolCore {
    /// The column of a set by its number.
    pub(crate) fn column(set: u32, column: u32) -> (SetIndex, Column) {
        (SetIndex(set), Column(column as u8))
    }
}
