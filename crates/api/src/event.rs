//! Events: what has happened, as data. [`crate::render`] makes the sentences.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};
use tier0_units::ByteCount;

use crate::{DriveClass, EventId, LostRange, RebuildPurpose, render};

/// How much an event matters.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum Severity {
    /// Good to know.
    Info,
    /// The administrator should look.
    Warning,
    /// Hosts notice it, or redundancy is gone.
    Critical,
}

/// What an event or a finding is about.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(tag = "kind", rename_all = "kebab-case")]
pub enum Subject {
    /// The array or its server.
    Array {
        /// Its name.
        name: String,
    },
    /// A pool.
    Pool {
        /// Its name.
        name: String,
    },
    /// A group of the sets of a pool.
    Group {
        /// The name of the pool.
        pool: String,
        /// The name of the group.
        name: String,
    },
    /// A drive.
    Drive {
        /// Its name.
        name: String,
    },
    /// Several drives at once.
    Drives {
        /// Their names.
        names: Vec<String>,
    },
}

/// Something that has happened, as it travels and is printed.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Event {
    /// How long ago, in seconds.
    pub age_s: u64,
    /// How much it matters.
    pub severity: Severity,
    /// The subject as a text, such as `drive d0` or `pool pool0`.
    pub thing: String,
    /// What happened, and its cause.
    pub what: String,
    /// What to do. Empty: nothing.
    pub remedy: String,
    /// Which event it is, for programs.
    #[cfg_attr(test, schemars(with = "EventId"))]
    pub id: String,
    /// What it is about, for programs.
    pub subject: Subject,
    /// Where the file of a drive is that was moved, if another file has its path. A start takes that file for the drive if
    /// it is a copy.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub original: Option<PathBuf>,
}

/// What has happened, with its cause.
#[derive(Clone, Debug, PartialEq, Eq)]
#[expect(
    missing_docs,
    reason = "ids.rs has the meaning of each kind, and fields have the names of what they are"
)]
pub enum EventKind {
    ServerStarted {
        version: String,
        process: u32,
    },
    ServerEnded {
        error: Option<String>,
    },
    ServerKilled {
        last_event: String,
    },
    StartWarning {
        text: String,
    },
    ConnectionsCrowded {
        text: String,
    },
    SocketLost {
        text: String,
    },
    SocketRestored {
        text: String,
    },
    EventsMissed {
        count: u64,
    },
    ProcessStalled {
        ms: u64,
    },
    RequestDone {
        text: String,
    },
    RequestFailed {
        text: String,
    },
    WitnessUnusable {
        fault: String,
    },
    WitnessUsable,
    ArrayRecovered {
        volumes_harmed: Vec<String>,
    },
    DriveSuspect {
        error: String,
    },
    DriveAnswers,
    DriveAwaited {
        error: String,
        reason: String,
    },
    /// `is_removed`: an administrator removed it, so nothing is to be done. `group_left`: its group has left the pool, so it can
    /// only be removed.
    DriveFailed {
        cause: FailureCause,
        is_removed: bool,
        group_left: bool,
    },
    DriveReturned {
        pool: String,
    },
    DriveLeft {
        pool: String,
    },
    DriveFull {
        on_device: bool,
    },
    DriveHasSpace,
    DriveClassDiffers {
        class: DriveClass,
        other: String,
        other_class: DriveClass,
    },
    DriveFileDeleted {
        path: PathBuf,
        is_replaced: bool,
    },
    DriveCutShort {
        path: PathBuf,
    },
    DriveSizeRestored,
    /// `error`: why the metadata could not be written again.
    DriveFrontOverwritten {
        error: Option<String>,
    },
    DriveFileMoved(FileMoved),
    DriveFileBack {
        path: PathBuf,
    },
    DriveMayBeCopy {
        original: PathBuf,
        moved_at: String,
    },
    SuperblockNotErased {
        error: String,
    },
    PagesRepaired(PagesFound),
    PagesLost(PagesFound),
    ChecksumsRepaired(PagesFound),
    ChecksumsLost {
        volume: String,
        sector: u64,
        sectors: u64,
    },
    ColumnsMisplaced {
        columns: u64,
        way_back: WayBack,
    },
    ColumnsReturned,
    RebuildStarted,
    MoveStarted {
        purpose: RebuildPurpose,
    },
    RebuildFinished,
    /// `has_ended`: a rebuild has ended before; otherwise none could begin.
    RebuildLacksSpace {
        columns: u64,
        has_ended: bool,
        add_to: AddTo,
    },
    ScrubFinished {
        pages: u64,
    },
    ScrubFoundErrors {
        pages: u64,
        repaired: u64,
        lost: u64,
        extents_skipped: u64,
    },
    ScrubStopped,
    ScrubFailed,
    PoolPaused {
        drives: Vec<String>,
    },
    PoolResumed {
        after_s: u64,
    },
    HostsRefused {
        wait: WaitFor,
        after_s: u64,
    },
    PoolGrown {
        sets: u64,
        bytes: ByteCount,
    },
    VolumeMigrated {
        volume: String,
        group: String,
    },
    GroupRemoved {
        group: String,
    },
    GroupCannotLeave {
        group: String,
        held: GroupHeld,
    },
    GrowthStuck,
    GrowthFailed {
        error: String,
    },
    Space {
        level: SpaceLevel,
        group: Option<String>,
    },
    SpaceAvailable {
        group: Option<String>,
    },
    FlashCacheIncomplete {
        drives: Vec<String>,
    },
    /// `is_in_file`: the array file asked for it, and no administrator.
    FlashCacheDiffers {
        error: String,
        is_in_file: bool,
    },
    FlashCacheOff {
        error: Option<String>,
    },
}

/// Why a drive is out of service.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FailureCause {
    /// An administrator took it out.
    TakenOut,
    /// The last error of its commands.
    Error(String),
    /// Nothing is known.
    Unknown,
}

/// The file of a drive is no longer at its path.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FileMoved {
    /// Its path.
    pub from: PathBuf,
    /// Where it is. None: unknown.
    pub to: Option<PathBuf>,
    /// Whether another file has its path.
    pub is_replaced: bool,
}

/// Pages of a drive, or copies of checksums on it, that were found wrong at about the same time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PagesFound {
    /// The first one.
    pub first: PageFound,
    /// Some of the others.
    pub others: Vec<PlaceFound>,
    /// How many others there are.
    pub others_count: u64,
}

/// A page that was found wrong.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PageFound {
    /// Where it is.
    pub place: PlaceFound,
    /// What is wrong with it.
    pub fault: PageFault,
    /// Whether it was about to be overwritten, so that no repair was needed.
    pub is_overwritten: bool,
}

/// Where a page is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PlaceFound {
    /// The byte on the drive.
    pub byte: u64,
    /// The volume, or volumes that share it, and the first sector and the number of sectors there. None: parity, metadata, or
    /// free space.
    pub volume: Option<(String, u64, u64)>,
}

/// What is wrong with a page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PageFault {
    /// Its checksum does not match.
    Checksum,
    /// The drive cannot read it.
    Unreadable,
    /// It differs from its copies.
    CopiesDiffer,
    /// Parity does not match the data.
    ParityDiffers,
    /// It does not have the form that it should have.
    Damaged,
}

/// What brings columns of sets back to drives of data.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum WayBack {
    /// They are moving already.
    Moving,
    /// They need room.
    NeedsRoom {
        /// Where a drive is to be added.
        add_to: AddTo,
        /// A drive that has failed and can be replaced instead.
        failed: Option<String>,
    },
}

/// What keeps a group that is to leave.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum GroupHeld {
    /// These groups, to which its contents are to move, have no room.
    Full(Vec<String>),
    /// No copy of some of its contents is right.
    Lost {
        /// What that is, the first ones.
        ranges: Vec<LostRange>,
        /// How many others there are.
        others: u64,
    },
}

/// Where a drive is to be added.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AddTo {
    /// To the pool, which has no named groups.
    Pool,
    /// To a group, no matter which.
    AnyGroup,
    /// To one of these groups.
    Groups(Vec<String>),
}

/// What hosts have waited for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WaitFor {
    /// Drives.
    Drives,
    /// Space under the drives.
    Space,
}

/// How full a pool is, or a group of its sets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SpaceLevel {
    /// Nothing is free.
    Full,
    /// No more is free than the reserve.
    AtReserve {
        /// What is free.
        free: ByteCount,
        /// The reserve.
        reserve: ByteCount,
    },
    /// A level of which the administrator wants to know.
    Filling {
        /// How full, in percent, rounded down.
        percent: u64,
        /// The bytes behind that.
        taken: ByteCount,
        /// What volumes can use in all.
        usable: ByteCount,
    },
    /// Volumes are larger together than the pool. That alone is no event.
    Overcommitted {
        /// Their size.
        promised: ByteCount,
        /// What volumes can use in all.
        usable: ByteCount,
    },
}

impl Event {
    /// Something has happened now.
    pub fn new(subject: Subject, kind: &EventKind) -> Event {
        let (what, remedy) = render::event(kind, &subject);
        let original = match kind {
            EventKind::DriveFileMoved(moved) => moved.to.clone().filter(|_| moved.is_replaced),
            EventKind::DriveMayBeCopy { original, .. } => Some(original.clone()),
            _ => None,
        };
        let (severity, id) = (kind.severity(), kind.id().name().to_owned());
        Event { age_s: 0, severity, thing: render::subject(&subject), what, remedy, id, subject, original }
    }
}

impl Subject {
    /// The array.
    pub fn array(name: impl Into<String>) -> Subject {
        Subject::Array { name: name.into() }
    }

    /// A pool.
    pub fn pool(name: impl Into<String>) -> Subject {
        Subject::Pool { name: name.into() }
    }

    /// A drive.
    pub fn drive(name: impl Into<String>) -> Subject {
        Subject::Drive { name: name.into() }
    }

    /// One or several drives.
    pub fn drives(names: &[String]) -> Subject {
        match names {
            [name] => Subject::drive(name.as_str()),
            names => Subject::Drives { names: names.to_vec() },
        }
    }
}

impl EventKind {
    /// The id.
    pub fn id(&self) -> EventId {
        match self {
            EventKind::ServerStarted { .. } => EventId::ServerStarted,
            EventKind::ServerEnded { .. } => EventId::ServerEnded,
            EventKind::ServerKilled { .. } => EventId::ServerKilled,
            EventKind::StartWarning { .. } => EventId::StartWarning,
            EventKind::ConnectionsCrowded { .. } => EventId::ConnectionsCrowded,
            EventKind::SocketLost { .. } => EventId::SocketLost,
            EventKind::SocketRestored { .. } => EventId::SocketRestored,
            EventKind::EventsMissed { .. } => EventId::EventsMissed,
            EventKind::ProcessStalled { .. } => EventId::ProcessStalled,
            EventKind::RequestDone { .. } => EventId::RequestDone,
            EventKind::RequestFailed { .. } => EventId::RequestFailed,
            EventKind::WitnessUnusable { .. } => EventId::WitnessUnusable,
            EventKind::WitnessUsable => EventId::WitnessUsable,
            EventKind::ArrayRecovered { .. } => EventId::ArrayRecovered,
            EventKind::DriveSuspect { .. } => EventId::DriveSuspect,
            EventKind::DriveAnswers => EventId::DriveAnswers,
            EventKind::DriveAwaited { .. } => EventId::DriveAwaited,
            EventKind::DriveFailed { .. } => EventId::DriveFailed,
            EventKind::DriveReturned { .. } => EventId::DriveReturned,
            EventKind::DriveLeft { .. } => EventId::DriveLeft,
            EventKind::DriveFull { .. } => EventId::DriveFull,
            EventKind::DriveHasSpace => EventId::DriveHasSpace,
            EventKind::DriveClassDiffers { .. } => EventId::DriveClassDiffers,
            EventKind::DriveFileDeleted { .. } => EventId::DriveFileDeleted,
            EventKind::DriveCutShort { .. } => EventId::DriveCutShort,
            EventKind::DriveSizeRestored => EventId::DriveSizeRestored,
            EventKind::DriveFrontOverwritten { .. } => EventId::DriveFrontOverwritten,
            EventKind::DriveFileMoved(_) => EventId::DriveFileMoved,
            EventKind::DriveFileBack { .. } => EventId::DriveFileBack,
            EventKind::DriveMayBeCopy { .. } => EventId::DriveMayBeCopy,
            EventKind::SuperblockNotErased { .. } => EventId::SuperblockNotErased,
            EventKind::PagesRepaired(_) => EventId::PagesRepaired,
            EventKind::PagesLost(_) => EventId::PagesLost,
            EventKind::ChecksumsRepaired(_) => EventId::ChecksumsRepaired,
            EventKind::ChecksumsLost { .. } => EventId::ChecksumsLost,
            EventKind::ColumnsMisplaced { .. } => EventId::ColumnsMisplaced,
            EventKind::ColumnsReturned => EventId::ColumnsReturned,
            EventKind::RebuildStarted => EventId::RebuildStarted,
            EventKind::MoveStarted { .. } => EventId::MoveStarted,
            EventKind::RebuildFinished => EventId::RebuildFinished,
            EventKind::RebuildLacksSpace { .. } => EventId::RebuildLacksSpace,
            EventKind::ScrubFinished { .. } => EventId::ScrubFinished,
            EventKind::ScrubFoundErrors { .. } => EventId::ScrubFoundErrors,
            EventKind::ScrubStopped => EventId::ScrubStopped,
            EventKind::ScrubFailed => EventId::ScrubFailed,
            EventKind::PoolPaused { .. } => EventId::PoolPaused,
            EventKind::PoolResumed { .. } => EventId::PoolResumed,
            EventKind::HostsRefused { .. } => EventId::HostsRefused,
            EventKind::PoolGrown { .. } => EventId::PoolGrown,
            EventKind::VolumeMigrated { .. } => EventId::VolumeMigrated,
            EventKind::GroupRemoved { .. } => EventId::GroupRemoved,
            EventKind::GroupCannotLeave { .. } => EventId::GroupCannotLeave,
            EventKind::GrowthStuck => EventId::GrowthStuck,
            EventKind::GrowthFailed { .. } => EventId::GrowthFailed,
            EventKind::Space { level: SpaceLevel::Full, .. } => EventId::SpaceFull,
            EventKind::Space { level: SpaceLevel::AtReserve { .. }, .. } => EventId::SpaceReserved,
            EventKind::Space { .. } => EventId::SpaceFilling,
            EventKind::SpaceAvailable { .. } => EventId::SpaceAvailable,
            EventKind::FlashCacheIncomplete { .. } => EventId::FlashCacheIncomplete,
            EventKind::FlashCacheDiffers { .. } => EventId::FlashCacheDiffers,
            EventKind::FlashCacheOff { .. } => EventId::FlashCacheOff,
        }
    }

    /// How much it matters.
    pub fn severity(&self) -> Severity {
        match self {
            EventKind::ServerEnded { error: Some(_) }
            | EventKind::DriveAwaited { .. }
            | EventKind::DriveFailed { .. }
            | EventKind::DriveFull { .. }
            | EventKind::DriveFileDeleted { .. }
            | EventKind::DriveCutShort { .. }
            | EventKind::DriveSizeRestored
            | EventKind::DriveFrontOverwritten { .. }
            | EventKind::DriveFileMoved(FileMoved { is_replaced: true, .. })
            | EventKind::DriveMayBeCopy { .. }
            | EventKind::PagesLost(_)
            | EventKind::ChecksumsLost { .. }
            | EventKind::PoolPaused { .. }
            | EventKind::HostsRefused { .. }
            | EventKind::Space { level: SpaceLevel::Full | SpaceLevel::AtReserve { .. }, .. } => {
                Severity::Critical
            }
            EventKind::ArrayRecovered { volumes_harmed } if !volumes_harmed.is_empty() => Severity::Critical,
            EventKind::ArrayRecovered { .. }
            | EventKind::ServerKilled { .. }
            | EventKind::StartWarning { .. }
            | EventKind::ConnectionsCrowded { .. }
            | EventKind::SocketLost { .. }
            | EventKind::EventsMissed { .. }
            | EventKind::ProcessStalled { .. }
            | EventKind::RequestFailed { .. }
            | EventKind::WitnessUnusable { .. }
            | EventKind::DriveSuspect { .. }
            | EventKind::DriveClassDiffers { .. }
            | EventKind::DriveFileMoved(_)
            | EventKind::SuperblockNotErased { .. }
            | EventKind::PagesRepaired(_)
            | EventKind::ChecksumsRepaired(_)
            | EventKind::ColumnsMisplaced { .. }
            | EventKind::RebuildLacksSpace { .. }
            | EventKind::ScrubFoundErrors { .. }
            | EventKind::ScrubFailed
            | EventKind::GroupCannotLeave { .. }
            | EventKind::GrowthStuck
            | EventKind::GrowthFailed { .. }
            | EventKind::Space { .. }
            | EventKind::FlashCacheIncomplete { .. }
            | EventKind::FlashCacheDiffers { .. }
            | EventKind::FlashCacheOff { .. } => Severity::Warning,
            EventKind::ServerStarted { .. }
            | EventKind::ServerEnded { error: None }
            | EventKind::SocketRestored { .. }
            | EventKind::RequestDone { .. }
            | EventKind::WitnessUsable
            | EventKind::DriveAnswers
            | EventKind::DriveReturned { .. }
            | EventKind::DriveLeft { .. }
            | EventKind::DriveHasSpace
            | EventKind::DriveFileBack { .. }
            | EventKind::ColumnsReturned
            | EventKind::RebuildStarted
            | EventKind::MoveStarted { .. }
            | EventKind::RebuildFinished
            | EventKind::ScrubFinished { .. }
            | EventKind::ScrubStopped
            | EventKind::PoolResumed { .. }
            | EventKind::PoolGrown { .. }
            | EventKind::VolumeMigrated { .. }
            | EventKind::GroupRemoved { .. }
            | EventKind::SpaceAvailable { .. } => Severity::Info,
        }
    }
}
