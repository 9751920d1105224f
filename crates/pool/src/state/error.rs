//! Why a state refuses a record.

use thiserror::Error;
use tier0_units::{ExtentId, SectorCount};

use crate::ChunkletAddress;
use crate::state::PATH_BYTES_MAX;

/// A record that contradicts the state of the pool.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum MetaError {
    /// A path that is too long to be remembered.
    #[error("the path of drive {member} has {bytes} bytes, more than {PATH_BYTES_MAX}; shorten it")]
    PathTooLong {
        /// The drive's place.
        member: u32,
        /// Its bytes.
        bytes: usize,
    },
    /// No such volume.
    #[error("the pool has no volume {volume}; \"tier0 status\" lists its volumes")]
    NoVolume {
        /// Its number.
        volume: u32,
    },
    /// A number that was used before.
    #[error("volume number {volume} was used before; the next is {next}")]
    VolumeNumber {
        /// The number.
        volume: u32,
        /// The next one.
        next: u32,
    },
    /// A name or identity that exists.
    #[error("the pool already has a {what} {name:?}; choose another name")]
    Exists {
        /// Volume or drive.
        what: &'static str,
        /// Its name.
        name: String,
    },
    /// A name that is empty or too long.
    #[error("{name:?} is not a valid name for a {what}; use 1 to 255 bytes")]
    BadName {
        /// Volume, drive, pool or array.
        what: &'static str,
        /// The name.
        name: String,
    },
    /// A size that cannot be.
    #[error("{what} cannot have {sectors} sectors; choose a size from 1 sector to {max}")]
    BadSize {
        /// Volume, drive or extent.
        what: &'static str,
        /// The size.
        sectors: u64,
        /// The largest.
        max: u64,
    },
    /// An extent behind the volume's end.
    #[error("{extent} is beyond the end of the volume; resize the volume first")]
    ExtentOutside {
        /// The extent.
        extent: ExtentId,
    },
    /// An extent that has a slot, or has it twice in one record.
    #[error("{extent} is mapped already; unmap it first")]
    ExtentMapped {
        /// The extent.
        extent: ExtentId,
    },
    /// An extent without a slot.
    #[error("{extent} is not mapped, so it cannot be unmapped")]
    ExtentUnmapped {
        /// The extent.
        extent: ExtentId,
    },
    /// A flash cache that cannot lie where it is to.
    #[error("the flash cache cannot lie there: {fact}")]
    BadFlashCache {
        /// Why.
        fact: String,
    },
    /// A volume that cannot have its place in a family.
    #[error("volume {name:?} cannot be a branch of another volume: {fact}")]
    Branch {
        /// Its name.
        name: String,
        /// Why.
        fact: String,
    },
    /// Volumes of different families, or one with itself.
    #[error("volumes {volume} and {other} share no slots: neither is a clone of the other")]
    NotOfFamily {
        /// The one that was to get slots.
        volume: u32,
        /// The one that has them.
        other: u32,
    },
    /// A thick volume, whose extents have slots of their own.
    #[error("volume {name:?} is thick and shares no slots; make it thin")]
    SharesThick {
        /// Its name.
        name: String,
    },
    /// A slot behind the last one.
    #[error("the pool has {count} slots and none numbered {slot}; add drives for more")]
    SlotOutside {
        /// The slot.
        slot: u64,
        /// How many there are.
        count: u64,
    },
    /// A slot that another extent has.
    #[error("slot {slot} has an extent already; free it first")]
    SlotTaken {
        /// The slot.
        slot: u64,
    },
    /// An allocation number that was not reserved, or is given twice in one record.
    #[error(
        "allocation number {allocation} is not among the reserved ones, which end at {end}, or is used twice"
    )]
    Allocation {
        /// The number.
        allocation: u64,
        /// The first that is not reserved.
        end: u64,
    },
    /// Space is promised to thick volumes.
    #[error(
        "{wanted} extents are needed, but only {free} are free and not reserved for thick volumes; add \
         drives, or delete volumes"
    )]
    NoSpace {
        /// Extents wanted.
        wanted: u64,
        /// Slots that are free and not reserved.
        free: u64,
    },
    /// No such group of sets.
    #[error("there is no group {group}: the pool has {count}")]
    NoGroup {
        /// The number.
        group: u32,
        /// How many there are.
        count: usize,
    },
    /// A group that is to leave gets nothing new.
    #[error(
        "group {name:?} is leaving the pool; use another group, or let it stay (tier0 pool remove-group --cancel)"
    )]
    GroupLeaves {
        /// Its name.
        name: String,
    },
    /// A group that has left the pool.
    #[error("group {name:?} has left the pool; use another group, or add it again (tier0 pool add-group)")]
    GroupGone {
        /// The name that it had.
        name: String,
    },
    /// A group that cannot leave the pool yet.
    #[error("group {name:?} cannot leave the pool: {what}; wait until it is empty (tier0 status)")]
    GroupInUse {
        /// Its name.
        name: String,
        /// What stands against it.
        what: String,
    },
    /// A drive is of another group than the sets that are to have columns on it.
    #[error(
        "drive {name:?} is in group {group}, but the set is in group {wanted}; use a drive of that group"
    )]
    OtherGroup {
        /// The drive.
        name: String,
        /// Its group.
        group: u32,
        /// The group of the sets.
        wanted: u32,
    },
    /// No such member.
    #[error("the pool has no drive {member}; it has had {count} drives")]
    NoMember {
        /// Its place.
        member: u32,
        /// Members there are.
        count: usize,
    },
    /// A member in the wrong state for this.
    #[error("drive {name:?} is {state}; use a drive that is online")]
    MemberState {
        /// Its name.
        name: String,
        /// Its state in a word.
        state: &'static str,
    },
    /// A drive too small for metadata and data.
    #[error(
        "drive {name:?} holds {}, too small for metadata, spare chunklets and one more chunklet ({}); use a \
         larger drive",
        SectorCount(*.sectors).saturating_bytes(),
        SectorCount(*.needed).saturating_bytes()
    )]
    MemberTooSmall {
        /// Its name.
        name: String,
        /// Its size in sectors.
        sectors: u64,
        /// What is needed, sectors.
        needed: u64,
    },
    /// A member that is still needed.
    #[error("drive {name:?} still holds {what}; move it to other drives before you remove the drive")]
    MemberInUse {
        /// Its name.
        name: String,
        /// What it holds.
        what: String,
    },
    /// A chunklet that is not on its drive.
    #[error("drive {} has no chunklet {}; it has {count}", chunklet.drive, chunklet.index)]
    ChunkletOutside {
        /// The chunklet.
        chunklet: ChunkletAddress,
        /// Chunklets of that drive.
        count: u64,
    },
    /// A chunklet with two owners.
    #[error("chunklet {} of drive {} already belongs to {owner}; choose a free one", chunklet.index, chunklet.drive)]
    ChunkletTaken {
        /// The chunklet.
        chunklet: ChunkletAddress,
        /// Whose it is.
        owner: String,
    },
    /// The chunklets kept for rebuilding would be used up.
    #[error(
        "drive {name:?} would have {left} free chunklets, but {spare} are reserved as spares; use fewer sets \
         or fewer spares"
    )]
    SparesTaken {
        /// The drive's name.
        name: String,
        /// What would be left.
        left: u64,
        /// What must be left.
        spare: u64,
    },
    /// A set that cannot be.
    #[error("set {set} {fact}")]
    BadSet {
        /// Its number.
        set: u32,
        /// What is wrong with it, and what to do.
        fact: String,
    },
    /// No such column.
    #[error("there is no column {column} of set {set}; the pool has {sets} sets of {columns} columns")]
    NoColumn {
        /// The set.
        set: u32,
        /// The column.
        column: u32,
        /// Sets there are.
        sets: u32,
        /// Columns of each.
        columns: u32,
    },
    /// A column that is not being rebuilt.
    #[error("column {column} of set {set} is not being rebuilt; start its rebuild first")]
    NotRebuilding {
        /// The set.
        set: u32,
        /// The column.
        column: u32,
    },
    /// A rebuild that is not complete.
    #[error("column {column} of set {set} lacks the slot {slot}, which has an extent; rebuild it first")]
    NotRebuilt {
        /// The set.
        set: u32,
        /// The column.
        column: u32,
        /// The slot.
        slot: u64,
    },
    /// Slots that a set does not have.
    #[error("slots {start} to {end} are not among the {count} of a set")]
    BadSlots {
        /// The first.
        start: u32,
        /// Behind the last.
        end: u32,
        /// Slots per set.
        count: u32,
    },
    /// A log that cannot be.
    #[error("invalid write log placement: {fact}")]
    BadLog {
        /// What is wrong with it, and what to do.
        fact: String,
    },
    /// Something that never goes back went back.
    #[error("{what} cannot go from {from} back to {to}")]
    Backwards {
        /// What.
        what: &'static str,
        /// Its value.
        from: u64,
        /// The lower value.
        to: u64,
    },
    /// Geometry that cannot be.
    #[error("invalid pool geometry: {fact}")]
    Geometry {
        /// What is wrong with it, and what to do.
        fact: String,
    },
    /// The metadata area is too small for this state.
    #[error(
        "the pool's metadata could grow to {bytes} bytes, but its drives have space for {room}; create another pool"
    )]
    TooLarge {
        /// Bytes of the largest checkpoint this state could need.
        bytes: u64,
        /// Bytes there are.
        room: u64,
    },
    /// Derived data that does not match: a bug, or damage that no checksum noticed.
    #[error("the pool's metadata is inconsistent: {fact}; restore the pool from a backup")]
    Contradiction {
        /// What does not match.
        fact: String,
    },
}
