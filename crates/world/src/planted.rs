//! Bugs planted on purpose, to prove that the fault simulator finds them.
//!
//! Where the engine does something that a bug would leave out, it asks [`planted`]. In a build without debug assertions,
//! which every release is, that is a constant `false` and the compiler removes the question. In a build with them (tests
//! and the simulator) a bug is active only on the thread that called [`plant`], as long as it holds the answer.
//!
//! What it does not do: it is no way to configure anything, and no release build has it.

#[cfg(debug_assertions)]
use std::cell::Cell;

/// What the engine can be made to do wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum PlantedBug {
    /// A write is acknowledged when the first copy of the log has it.
    AckBeforeMirror,
    /// Destaging does not flush the drives before the log is released.
    SkipFlushBeforeRelease,
    /// The log does not wait until a frame is stable, because "writes reach the medium in order".
    TrustWriteOrder,
    /// A small write leaves the parity as it was.
    ForgetParityUpdate,
    /// Recovery replays intents whose slot was given back, or whose row was destaged again and released since.
    ReplayReleasedLog,
    /// A discard is acknowledged before its record is stable in the log.
    LoseDiscard,
    /// Every shard has the whole budget of a volume with ceilings, instead of all together. The simulator does not measure
    /// rates: a test of the array finds it.
    LeaseTwice,
    /// After a rebuild the set's column still names the old chunklet.
    WrongChunkletAfterRebuild,
    /// A rebuilt slot is committed before the spare is flushed.
    CommitRebuildBeforeFlush,
    /// Opening believes a drive that was lost while it was away.
    BelieveStaleDrive,
    /// A read does not check the checksum.
    IgnoreChecksum,
    /// A slot is handed out again before its unmapping is stable.
    FreeWhileMapped,
    /// A mapping is not committed before the log is released.
    ForgetMapping,
    /// Intents are not replayed after a power cut: the write hole is open.
    IgnoreIntents,
    /// A loss is remembered in memory only: neither superblocks nor metadata journal are told.
    ForgetLoss,
    /// A metadata record takes effect before it is stable.
    MetadataBeforeStable,
    /// A checkpoint overwrites the only valid one.
    CheckpointInPlace,
    /// A page of the map is written where the newest checkpoint still needs it.
    PageInPlace,
    /// A checkpoint's root is published before the pages that it names are stable.
    RootBeforePages,
    /// A page that changes while a checkpoint is written goes into it as it has become.
    ForgetFrozenPage,
    /// A scrub that finds mirrors different believes the first.
    ScrubBelievesFirstCopy,
    /// A partial page is completed with what lies on the drive, not with what the log holds.
    MergeOldPage,
    /// A write that fills a small log is delayed although nothing is dirty that could make room.
    DelayWhenNothingIsDirty,
    /// The turn of a delayed writer is not passed on to a writer of another volume.
    QueueSkipsVolume,
    /// A lane of the log keeps room for the intents of the group that takes fewest, not of any that its extents lie in.
    IntentsOfWrongGroup,
    /// Only the lane of a set's group settles before a column is rebuilt, and guards the slots that are.
    RebuildInWrongLane,
    /// A slot is discarded before it is stable that its extent has it no more.
    DiscardBeforeUnmapStable,
    /// The old slot of an extent that moves is free before its shard has left it.
    FreeBeforeMoveStable,
    /// Batches write an extent to its old slot while it is copied to another.
    WriteOldPlaceDuringMove,
    /// A volume changes its lane of the log while the one of before still has records of it.
    FlipLaneBeforeRetire,
    /// A checkpoint leaves out where volumes are to lie.
    PinForgotten,
    /// Parity is modified from zeros that a drive holds in the place of a page that was given up.
    TrustGivenUpPage,
    /// After a restart a column that was moving counts as moved.
    BelieveNewPlaceEarly,
    /// The superblock of a drive that has left is erased although it has joined again.
    EraseWhoJoinedAgain,
    /// Writes to a column that moves go to the new place before the row was copied.
    WritesGoToNewPlace,
    /// A loss is recorded although the sets cannot do without the drive.
    LoseBeyondRedundancy,
    /// A loss is recorded without a look at whether the other drives answer.
    TrustSilentDrives,
    /// Columns, sets and copies of the log go onto drives on which the verdict has fallen.
    PlaceOnFailed,
    /// The log is cut anew for other shards before what it holds is destaged.
    CutFullLog,
    /// A start believes drives that others could have gone on without.
    ServeWithoutConsent,
    /// Reads of a column that moves go to the new place before the row was copied.
    ReadsGoToNewPlace,
    /// After an outage nothing that the drive had acknowledged is written again.
    ForgetReplay,
    /// A guard does not make good an outage that another shard's guard has noticed.
    ReplayHereOnly,
    /// After an outage a guard writes again what a discard had left, over what other guards have written since.
    DiscardReplayed,
    /// A drive that has no sectors any more is taken for one whose store is full.
    TakeShortForFull,
    /// A new metadata journal begins while headers of the old one are on their way to the same place.
    HurryRollover,
    /// What a refused write left in memory is read before the log has it.
    ReadRefusedWrite,
    /// What has changed while a drive was lost is not rebuilt when it returns.
    ForgetChangedSlots,
    /// A log is recovered from its first copy alone.
    BelieveFirstLogCopy,
    /// A new pool's superblocks are written before its empty log.
    LabelsBeforeLog,
    /// What several drives of a row cannot read is given up at once.
    GiveUpUnreadable,
    /// The last resort does not say what is read from drives that have missed writes.
    HideStaleLosses,
    /// A server answers a write before the array has.
    AnswerBeforeWrite,
    /// A server writes what it has of a payload whose rest did not come.
    WriteHalfReceived,
    /// A page in memory stays what it was when its slot is written.
    KeepOldPageOnDestage,
    /// Pages of a slot stay in memory when it is given back.
    KeepPagesOfFreedSlot,
    /// What was read stays in memory although it may have been written meanwhile.
    FillAfterRead,
    /// Clean pages in memory are looked at before dirty ones.
    CleanBeforeDirty,
    /// What is written to an extent goes to a slot that another extent has too.
    WriteToSharedSlot,
    /// What recovery finds in the log of an extent goes to its slot, although another extent has that too.
    RecoverIntoSharedSlot,
    /// A volume is cloned before what was written to it is in its slots.
    CloneBeforeDestage,
    /// The flash cache's log says that a line is there before its data are stable.
    FlashInsertBeforeData,
    /// A line of the flash cache is written over before its log says that what was there is gone.
    FlashOverwriteBeforeEvicted,
    /// That pages of the flash cache are struck out is not logged.
    FlashStrikeNotLogged,
    /// A flash cache goes on under the epoch that it was opened with.
    FlashEpochNotRenewed,
    /// Opening a flash cache believes map pages of an earlier life.
    FlashTrustsOldMap,
    /// The write log lets go of a page before the flash cache has struck its older content out durably.
    LogGoesBeforeFlash,
    /// Pages of a slot stay on flash when it is given back.
    KeepFreedSlotOnFlash,
}

impl PlantedBug {
    /// Whether only mishaps, and administrators in the midst of them, bring it to light.
    pub const fn needs_mishaps(self) -> bool {
        self as usize > PlantedBug::TrustGivenUpPage as usize
            && !self.needs_network()
            && !self.needs_read_cache()
            && !self.needs_clones()
            && !self.needs_flash_cache()
    }

    /// Whether it is in what is kept in memory of what was read.
    pub const fn needs_read_cache(self) -> bool {
        let number = self as usize;
        PlantedBug::KeepOldPageOnDestage as usize <= number && number <= PlantedBug::CleanBeforeDirty as usize
    }

    /// Whether only volumes whose extents share slots bring it to light.
    pub const fn needs_clones(self) -> bool {
        let number = self as usize;
        PlantedBug::WriteToSharedSlot as usize <= number && number <= PlantedBug::CloneBeforeDestage as usize
    }

    /// Whether it is in the cache on flash.
    pub const fn needs_flash_cache(self) -> bool {
        self as usize >= PlantedBug::FlashInsertBeforeData as usize
    }

    /// Whether it is in what clients are connected to, and not in the array.
    pub const fn needs_network(self) -> bool {
        matches!(self, PlantedBug::AnswerBeforeWrite | PlantedBug::WriteHalfReceived)
    }

    /// All that the fault simulator looks for.
    pub const ALL: [PlantedBug; 67] = [
        PlantedBug::AckBeforeMirror,
        PlantedBug::SkipFlushBeforeRelease,
        PlantedBug::TrustWriteOrder,
        PlantedBug::ForgetParityUpdate,
        PlantedBug::ReplayReleasedLog,
        PlantedBug::LoseDiscard,
        PlantedBug::WrongChunkletAfterRebuild,
        PlantedBug::CommitRebuildBeforeFlush,
        PlantedBug::BelieveStaleDrive,
        PlantedBug::IgnoreChecksum,
        PlantedBug::FreeWhileMapped,
        PlantedBug::ForgetMapping,
        PlantedBug::IgnoreIntents,
        PlantedBug::ForgetLoss,
        PlantedBug::MetadataBeforeStable,
        PlantedBug::CheckpointInPlace,
        PlantedBug::PageInPlace,
        PlantedBug::RootBeforePages,
        PlantedBug::ForgetFrozenPage,
        PlantedBug::ScrubBelievesFirstCopy,
        PlantedBug::MergeOldPage,
        PlantedBug::DelayWhenNothingIsDirty,
        PlantedBug::QueueSkipsVolume,
        PlantedBug::IntentsOfWrongGroup,
        PlantedBug::RebuildInWrongLane,
        PlantedBug::DiscardBeforeUnmapStable,
        PlantedBug::FreeBeforeMoveStable,
        PlantedBug::WriteOldPlaceDuringMove,
        PlantedBug::FlipLaneBeforeRetire,
        PlantedBug::PinForgotten,
        PlantedBug::TrustGivenUpPage,
        PlantedBug::BelieveNewPlaceEarly,
        PlantedBug::EraseWhoJoinedAgain,
        PlantedBug::WritesGoToNewPlace,
        PlantedBug::LoseBeyondRedundancy,
        PlantedBug::TrustSilentDrives,
        PlantedBug::PlaceOnFailed,
        PlantedBug::CutFullLog,
        PlantedBug::ServeWithoutConsent,
        PlantedBug::ReadsGoToNewPlace,
        PlantedBug::ForgetReplay,
        PlantedBug::ReplayHereOnly,
        PlantedBug::DiscardReplayed,
        PlantedBug::TakeShortForFull,
        PlantedBug::HurryRollover,
        PlantedBug::ReadRefusedWrite,
        PlantedBug::ForgetChangedSlots,
        PlantedBug::BelieveFirstLogCopy,
        PlantedBug::LabelsBeforeLog,
        PlantedBug::GiveUpUnreadable,
        PlantedBug::HideStaleLosses,
        PlantedBug::AnswerBeforeWrite,
        PlantedBug::WriteHalfReceived,
        PlantedBug::KeepOldPageOnDestage,
        PlantedBug::KeepPagesOfFreedSlot,
        PlantedBug::FillAfterRead,
        PlantedBug::CleanBeforeDirty,
        PlantedBug::WriteToSharedSlot,
        PlantedBug::RecoverIntoSharedSlot,
        PlantedBug::CloneBeforeDestage,
        PlantedBug::FlashInsertBeforeData,
        PlantedBug::FlashOverwriteBeforeEvicted,
        PlantedBug::FlashStrikeNotLogged,
        PlantedBug::FlashEpochNotRenewed,
        PlantedBug::FlashTrustsOldMap,
        PlantedBug::LogGoesBeforeFlash,
        PlantedBug::KeepFreedSlotOnFlash,
    ];
}

#[cfg(debug_assertions)]
thread_local! {
    static ACTIVE: Cell<Option<PlantedBug>> = const { Cell::new(None) };
}

/// Whether `bug` is active on this thread.
#[cfg(debug_assertions)]
pub fn planted(bug: PlantedBug) -> bool {
    ACTIVE.get() == Some(bug)
}

/// Whether `bug` is active: never in this build.
#[cfg(not(debug_assertions))]
#[inline(always)]
pub const fn planted(_bug: PlantedBug) -> bool {
    false
}

/// A planted bug; dropping it removes it.
#[cfg(debug_assertions)]
#[must_use = "dropping it removes the bug"]
pub struct Planted(std::marker::PhantomData<*const ()>);

/// Makes `bug` active on this thread, alone.
#[cfg(debug_assertions)]
pub fn plant(bug: PlantedBug) -> Planted {
    assert_eq!(ACTIVE.replace(Some(bug)), None, "one bug at a time");
    Planted(std::marker::PhantomData)
}

#[cfg(debug_assertions)]
impl Drop for Planted {
    fn drop(&mut self) {
        ACTIVE.set(None);
    }
}

#[cfg(test)]
mod tests {
    /// Planted bugs exist in builds with debug assertions, so the profiles that users get must not ask for those.
    #[test]
    fn no_profile_asks_for_debug_assertions() {
        let workspace = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
        for file in ["Cargo.toml", ".cargo/config.toml"] {
            let text = std::fs::read_to_string(workspace.join(file)).expect("the workspace has it");
            assert!(!text.contains("debug-assertions"), "{file} sets debug-assertions");
        }
        let profile = std::env::vars().find(|(name, _)| name.ends_with("_DEBUG_ASSERTIONS"));
        assert_eq!(profile, None, "the environment sets debug assertions");
    }
}
