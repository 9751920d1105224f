//! A pool as all wings know it.

use std::ops::Range;
use std::rc::Rc;
use std::sync::Arc;

use tier0_drive::DriveHandle;
use tier0_plan::PoolShape;
use tier0_pool::metadata::Metadata;
use tier0_pool::{Member, MemberState, MetaRecord, PoolState};
use tier0_raid::io::LostDrives;
use tier0_raid::layout::Column;
use tier0_raid::set::SetIndex;
use tier0_units::{ExtentId, Nanos, SlotRef};
use tier0_world::IoError;
use tier0_world::sync::Semaphore;

use crate::admin::AdminError;
use crate::pauses::Pauses;

/// Permits of [`Pool::column_places`]: more than commits are ever under way.
pub(crate) const ALL_PLACES: u64 = 1 << 32;

/// A pool. What a wing keeps of it besides derefs to this.
pub(crate) struct Pool {
    pub(crate) name: String,
    pub(crate) lost: Arc<LostDrives>,
    pub(crate) metadata: Metadata,
    pub(crate) shape: PoolShape,
    /// A task that records which slots of a column are there has one permit until that is stable; a task that moves
    /// columns or ends their rebuild has all: what is true of a column's old place must not be remembered of its new
    /// one, nor after the end.
    pub(crate) column_places: Rc<Semaphore>,
    pub(crate) pauses: Pauses,
}

impl Pool {
    /// A pool whose metadata are open, with its drives by member.
    pub(crate) fn new(
        metadata: Metadata,
        shape: PoolShape,
        lost: Arc<LostDrives>,
        drives: &[Option<DriveHandle>],
    ) -> Pool {
        let pauses = Pauses::default();
        for (member, drive) in (0u32..).zip(drives) {
            drive.iter().for_each(|drive| pauses.watch(member, drive));
        }
        let follower = shape.clone();
        metadata.on_sets_added(Rc::new(move |state| follower.follow(state)));
        let name = metadata.state().name().to_owned();
        let column_places = Rc::new(Semaphore::new(ALL_PLACES));
        Pool { name, lost, metadata, shape, column_places, pauses }
    }

    /// How many slots of a set have extents; `None` if there is no such set.
    pub(crate) fn used_slots(&self, set: u32) -> Option<u32> {
        let state = self.metadata.state();
        (set < state.set_count()).then(|| state.used_slots_of(set).count() as u32)
    }

    /// Makes records true and stable.
    pub(crate) async fn commit(&self, records: Vec<MetaRecord>) -> Result<(), IoError> {
        self.metadata.commit(records).await.map_err(|error| {
            tracing::error!("{error}");
            IoError::Gone
        })
    }

    /// Records that a member is to leave, or is not. A task that has chosen a chunklet of it has recorded that by then.
    pub(crate) async fn set_leaving(&self, place: u32, leaving: bool) -> Result<(), AdminError> {
        let _alone = self.column_places.acquire(ALL_PLACES).await;
        let record = MetaRecord::MemberLeaving { member: place, leaving };
        self.commit(vec![record])
            .await
            .map_err(|error| AdminError::failed(format!("the pool's metadata cannot be written: {error}")))
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

    /// Whether the drive of a lost member may hold what is right of pages of which no copy is: what it held was not rebuilt
    /// elsewhere, or while pages were lost. It may have been lost more than once.
    pub(crate) fn may_be_needed(&self, place: u32) -> bool {
        let places = self.lost_places_of(place);
        let state = self.metadata.state();
        let holds = |place: &u32| state.returning(*place).next().is_some();
        self.metadata.has_lost_pages() && places.iter().any(holds)
    }

    /// The lost members that a lost member's drive has been, this one included; empty for one that is not lost.
    pub(crate) fn lost_places_of(&self, place: u32) -> Vec<u32> {
        let state = self.metadata.state();
        let lost = |member: &&Member| member.state == MemberState::Lost;
        let Some(own) = state.member(place).filter(lost) else { return Vec::new() };
        let is_it = |(_, member): &(u32, &Member)| lost(member) && member.name == own.name;
        state.members_by_place().filter(is_it).map(|(place, _)| place).collect()
    }

    /// Bytes of the data of a slot of a set.
    pub(crate) fn slot_bytes(&self, set: SetIndex) -> u64 {
        self.shape.slots.slot_sectors_of(set) * tier0_units::SECTOR_BYTES
    }

    /// The members that are lost.
    pub(crate) fn lost_members(&self) -> Vec<usize> {
        (0..self.lost.room()).filter(|member| self.lost.is_lost(*member)).collect()
    }

    /// Makes the loss of a member durable; false if that cannot be. A second caller waits for the first. The pool does
    /// not do without the member before: what it lacks by then must not be believed after a crash.
    pub(crate) async fn lose(&self, member: usize, error: IoError) -> bool {
        let recorded = self.metadata.lose(member as u32, error).await;
        if let Err(error) = &recorded {
            tracing::error!("{error}");
            return false;
        }
        self.lost.set_lost(member);
        true
    }

    /// Whether a lane of the log needs a member's drive: one of a group in which extents of its volumes lie, or one that holds the
    /// log or the metadata.
    fn is_needed_in(&self, lane: usize, member: u32) -> bool {
        let state = self.metadata.state();
        self.metadata.carriers().contains(&member)
            || state.log().copies().any(|copy| copy.member == member)
            || state.member(member).is_some_and(|known| self.reaches(lane, known.group))
    }

    /// Whether extents of the volumes of a lane may lie in a group.
    fn reaches(&self, lane: usize, group: u32) -> bool {
        let state = self.metadata.state();
        if !state.is_mixed() {
            return state.log().lane_of(group) == lane;
        }
        let mut own = (0..state.groups().len() as u32).filter(|own| state.log().lane_of(*own) == lane);
        own.any(|own| state.groups_reached_from(own).contains(&group))
    }

    /// Since when drives are waited for that a lane of the log needs.
    pub(crate) fn awaited_since_in(&self, lane: usize) -> Option<Nanos> {
        let awaited = self.pauses.awaited.borrow();
        let needed = awaited.iter().filter(|(member, _)| self.is_needed_in(lane, **member));
        needed.map(|(_, awaited)| awaited.since).min()
    }

    /// Since when there is no space under drives that a lane of the log needs.
    pub(crate) fn full_since_in(&self, lane: usize) -> Option<Nanos> {
        let full = self.pauses.full_since.borrow();
        full.iter().filter(|(member, _)| self.is_needed_in(lane, **member)).map(|(_, since)| *since).min()
    }

    /// The names of the drives that the pool waits for.
    pub(crate) fn awaited_drives(&self) -> Vec<String> {
        self.pauses.awaited.borrow().keys().map(|member| self.drive_name(*member)).collect()
    }

    /// The name of a member's drive.
    pub(crate) fn drive_name(&self, member: u32) -> String {
        let state = self.metadata.state();
        state.member(member).map_or_else(|| format!("number {member}"), |known| known.name.clone())
    }

    /// The column of a set by its number.
    pub(crate) fn column(set: u32, column: u32) -> (SetIndex, Column) {
        (SetIndex(set), Column(column as u8))
    }
}

/// The list of ranges that has this slot of a set alone.
pub(crate) fn one_slot(index: u32) -> Vec<Range<u32>> {
    std::iter::once(index..index + 1).collect()
}

pub(crate) fn not_written(error: IoError) -> AdminError {
    AdminError::failed(format!("the pool's metadata cannot be written: {error}"))
}

/// Whether a member is lost and could be taken back, as far as the pool knows: it is not being removed, its group has not left,
/// and no other one has its name, or serves from where it lay.
pub(crate) fn can_return(state: &PoolState, place: u32) -> bool {
    let lost = state.member(place).filter(|member| member.state == MemberState::Lost && !member.leaving);
    lost.filter(|lost| !state.group_is_gone(lost.group)).is_some_and(|lost| {
        let has_its_place = |other: &Member| !other.path.is_empty() && other.path == lost.path;
        let stands_in = |other: &Member| other.name == lost.name || has_its_place(other);
        !state.members().iter().any(|other| other.is_active() && stands_in(other))
    })
}
