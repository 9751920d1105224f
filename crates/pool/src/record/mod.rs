//! The records by which a pool's state changes, and their bytes in the metadata journal.
//!
//! A record says what is true from now on; it is checked against the state before it is accepted, so a journal that
//! is read back is accepted record by record or is damaged. What changes often is binary; what an administrator does
//! is JSON in a binary frame.

mod encode;
#[cfg(test)]
mod tests;

use std::ops::Range;

use serde::{Deserialize, Serialize};
use tier0_units::{ExtentId, SlotRef, WriteCache};

use crate::ChunkletAddress;
use crate::state::{
    CacheSwitches, Ceilings, CeilingsChange, DriveRole, FlashCachePlacement, LogPlacement, Member, Placement,
    Run, SetGroup, TierSettings, Volume,
};

pub(crate) use encode::decode_run;
pub use encode::{VERSION, decode, encode};

/// One change of a pool's state.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum MetaRecord {
    /// These extents, unmapped until now, have these slots, free until now.
    #[serde(skip)]
    MapExtents(Vec<MappedRun>),
    /// These extents, mapped until now, have no slots any more. A slot is free when no extent has it.
    #[serde(skip)]
    UnmapExtents(Vec<ExtentRun>),
    /// Extents of a volume, unmapped until now, have the slots that the same extents of another volume of its family have.
    #[serde(skip)]
    ShareExtents(Vec<SharedRun>),
    /// The target of a column that is being rebuilt holds these slots, stable. Slots are numbered in their set
    /// ([`crate::SlotHome::index`]).
    #[serde(skip)]
    SlotsRebuilt {
        /// The set.
        set: u32,
        /// The column.
        column: u32,
        /// The slots.
        ranges: Vec<Range<u32>>,
    },
    /// Allocation numbers below `end` may be in use on drives: the next ones are taken from there.
    #[serde(skip)]
    AllocationsReserved {
        /// The first number that is not reserved.
        end: u64,
    },
    /// How far the scrub is.
    #[serde(skip)]
    ScrubCursor(ScrubCursor),
    /// A member failed or was missing and is never believed again.
    MemberLost {
        /// Its place.
        member: u32,
    },
    /// A member joined; its place is the next one.
    MemberAdded(Member),
    /// A member that holds nothing left the pool.
    MemberRemoved {
        /// Its place.
        member: u32,
    },
    /// A member is to leave, or to stay after all.
    MemberLeaving {
        /// Its place.
        member: u32,
        /// Whether it is to leave.
        leaving: bool,
    },
    /// A member was found at another path.
    MemberMoved {
        /// Its place.
        member: u32,
        /// The path; empty if it is not known any more.
        path: String,
    },
    /// A member is for this from now on.
    MemberRole {
        /// Its place.
        member: u32,
        /// What it is for.
        role: DriveRole,
    },
    /// A member takes the place of another one: the columns that belong to this one belong to it.
    MemberReplaced {
        /// The place of the one that is replaced.
        member: u32,
        /// The place of the one that replaces it.
        by: u32,
    },
    /// Sets joined behind the present ones, their columns in order.
    SetsAdded {
        /// Chunklets of all sets, set after set.
        columns: Vec<ChunkletAddress>,
        /// How many of the sets make a band, see [`crate::SetBatch`].
        sets_per_band: u32,
        /// The group that they are of.
        #[serde(default, skip_serializing_if = "is_zero")]
        group: u32,
    },
    /// There is one more group of sets, without sets yet; its number is the next one.
    GroupAdded(SetGroup),
    /// A group of sets has another name; the only one of a pool gets one before others join it.
    GroupNamed {
        /// Its number.
        group: u32,
        /// Its name.
        name: String,
    },
    /// A group of sets is to leave, or to stay after all. Nothing new comes to one that leaves.
    GroupLeaving {
        /// Its number.
        group: u32,
        /// Whether it is to leave.
        leaving: bool,
    },
    /// A group that was to leave and in which nothing lies is gone: the columns of its sets are free. Its number, and those of its
    /// sets and slots, are never used again.
    GroupRemoved {
        /// Its number.
        group: u32,
    },
    /// A column is being rebuilt on a free chunklet, nothing of it yet; a rebuild under way starts again there.
    ColumnRebuilding {
        /// The set.
        set: u32,
        /// The column.
        column: u32,
        /// The chunklet that takes its place.
        target: ChunkletAddress,
    },
    /// As [`MetaRecord::ColumnRebuilding`], but the old chunklet is whole and goes on being the column's: it is copied to
    /// the target. If its drive is lost before the end, this becomes a rebuild, with the slots that were copied.
    ColumnEvacuating {
        /// The set.
        set: u32,
        /// The column.
        column: u32,
        /// The chunklet that takes its place.
        target: ChunkletAddress,
    },
    /// A column is rebuilt: the target is its place, the old chunklet is free (or gone with its drive).
    ColumnRebuilt {
        /// The set.
        set: u32,
        /// The column.
        column: u32,
        /// Pages are lost of which the old chunklet may hold the only right copy: if its drive is lost, it is remembered
        /// what lies there.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        with_lost_pages: bool,
    },
    /// A volume exists, all zeros.
    VolumeCreated(Volume),
    /// A volume is gone, and its slots are free that no other volume's extents have.
    VolumeDeleted {
        /// Its number.
        volume: u32,
    },
    /// The volumes of a family are of another group of sets. What they have written lies where it is.
    FamilyGroupChanged {
        /// The number of the family.
        family: u32,
        /// The group that they are of.
        group: u32,
    },
    /// A volume has another size; what lies behind a smaller one is unmapped before.
    VolumeResized {
        /// Its number.
        volume: u32,
        /// Its size in sectors.
        sectors: u64,
    },
    /// A volume has another name.
    VolumeRenamed {
        /// Its number.
        volume: u32,
        /// Its name.
        name: String,
    },
    /// A volume acknowledges writes in another way.
    ModeChanged {
        /// Its number.
        volume: u32,
        /// The way.
        write_cache: WriteCache,
    },
    /// Reads of a volume use the read cache, or do not.
    ReadCacheChanged {
        /// Its number.
        volume: u32,
        /// Whether they do.
        read_cache: bool,
    },
    /// The switches over the caches of all volumes stand so.
    PoolCacheChanged(CacheSwitches),
    /// The write log lies here now.
    LogPlaced(LogPlacement),
    /// The flash read cache lies here now, and its devices are to be believed under these epochs.
    FlashCachePlaced(FlashCachePlacement),
    /// From now on extents may lie in other groups than their volume's. Builds that do not know this record do not know that
    /// either.
    GroupsMixed {},
    /// A volume, or a part of it, is to lie here.
    PlacementChanged {
        /// Its number.
        volume: u32,
        /// Where.
        placement: Placement,
    },
    /// The tier works so.
    TierChanged(TierSettings),
    /// Hosts may ask so much of a volume from now on.
    CeilingsChanged {
        /// Its number.
        volume: u32,
        /// How much.
        ceilings: Ceilings,
    },
    /// A volume gets so much from now on in comparison with the others.
    WeightChanged {
        /// Its number.
        volume: u32,
        /// How much.
        weight: u32,
    },
}

/// Neighbouring extents that are mapped to neighbouring slots.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MappedRun {
    /// The volume.
    pub volume: u32,
    /// Extents, slots and allocations.
    pub run: Run,
}

/// Neighbouring extents of a volume.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ExtentRun {
    /// The first extent.
    pub first: ExtentId,
    /// How many.
    pub count: u32,
}

/// Neighbouring extents that get the slots of another volume's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SharedRun {
    /// The volume whose slots they are. Where it has none, nothing changes.
    pub of: u32,
    /// The first of the extents that get them.
    pub first: ExtentId,
    /// How many.
    pub count: u32,
}

/// How far the scrub is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ScrubCursor {
    /// The next slot it will look at.
    pub next_slot: u64,
    /// How often it went through all of them.
    pub passes: u64,
}

fn is_zero(number: &u32) -> bool {
    *number == 0
}

impl MetaRecord {
    /// The record that maps these extents.
    pub fn map(pairs: impl IntoIterator<Item = (ExtentId, SlotRef)>) -> MetaRecord {
        let mut runs: Vec<MappedRun> = Vec::new();
        for (extent, slot) in pairs {
            match runs.last_mut() {
                Some(last) if last.volume == extent.volume && last.run.continues_with(extent.index, slot) => {
                    last.run.count += 1;
                }
                _ => {
                    let run = Run { index: extent.index, count: 1, slot };
                    runs.push(MappedRun { volume: extent.volume, run });
                }
            }
        }
        MetaRecord::MapExtents(runs)
    }

    /// The records by which extents have other slots: of each move the extents, which have one slot, and the one that they
    /// get, if any.
    pub fn moves<'a>(moves: impl IntoIterator<Item = (&'a [ExtentId], Option<SlotRef>)>) -> Vec<MetaRecord> {
        let (mut all, mut pairs, mut shared) = (Vec::new(), Vec::new(), Vec::new());
        for (extents, to) in moves {
            all.extend_from_slice(extents);
            let (Some(to), Some((first, others))) = (to, extents.split_first()) else { continue };
            pairs.push((*first, to));
            let share = |extent: &ExtentId| SharedRun { of: first.volume, first: *extent, count: 1 };
            shared.extend(others.iter().map(share));
        }
        let mut records = vec![MetaRecord::unmap(all)];
        records.extend((!pairs.is_empty()).then(|| MetaRecord::map(pairs)));
        records.extend((!shared.is_empty()).then_some(MetaRecord::ShareExtents(shared)));
        records
    }

    /// The records by which a volume exists.
    pub fn create(volume: Volume) -> Vec<MetaRecord> {
        let (number, read_cache) = (volume.number, volume.read_cache);
        let mut records = vec![MetaRecord::VolumeCreated(Volume { read_cache: true, ..volume })];
        records.extend(
            (!read_cache).then_some(MetaRecord::ReadCacheChanged { volume: number, read_cache: false }),
        );
        records
    }

    /// The records that switch a volume's caches, as far as something is said and it is not so already.
    pub fn switch_caches(known: &Volume, read: Option<bool>, write: Option<WriteCache>) -> Vec<MetaRecord> {
        let volume = known.number;
        let mode = write.filter(|mode| *mode != known.write_cache);
        let own = read.filter(|on| *on != known.read_cache);
        let mode = mode.map(|write_cache| MetaRecord::ModeChanged { volume, write_cache });
        let own = own.map(|read_cache| MetaRecord::ReadCacheChanged { volume, read_cache });
        mode.into_iter().chain(own).collect()
    }

    /// The record that changes a volume's ceilings; none where they are so already.
    pub fn limit(volume: u32, known: Ceilings, change: CeilingsChange) -> Option<MetaRecord> {
        let ceilings = change.of(known);
        (ceilings != known).then_some(MetaRecord::CeilingsChanged { volume, ceilings })
    }

    /// The record that unmaps these extents.
    pub fn unmap(extents: impl IntoIterator<Item = ExtentId>) -> MetaRecord {
        let mut runs: Vec<ExtentRun> = Vec::new();
        for extent in extents {
            match runs.last_mut() {
                Some(last)
                    if last.first.volume == extent.volume
                        && u64::from(last.first.index) + u64::from(last.count) == u64::from(extent.index) =>
                {
                    last.count += 1;
                }
                _ => runs.push(ExtentRun { first: extent, count: 1 }),
            }
        }
        MetaRecord::UnmapExtents(runs)
    }
}
