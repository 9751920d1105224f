//! Findings: what is wrong now, as data. [`crate::render`] makes the sentences.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use crate::event::{AddTo, FileMoved, GroupHeld, SpaceLevel, WayBack};
use crate::{FindingId, Health, Subject, render};

/// Something that is wrong, as it travels and is printed.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Finding {
    /// Which finding it is, for programs.
    #[cfg_attr(test, schemars(with = "FindingId"))]
    pub id: String,
    /// How urgent it is.
    pub health: Health,
    /// What it is about.
    pub subject: Subject,
    /// What is wrong.
    pub what: String,
    /// What to do. Empty: nothing, or nothing while the pool waits for drives.
    pub remedy: String,
}

/// What is wrong, with its cause.
#[derive(Clone, Debug, PartialEq, Eq)]
#[expect(
    missing_docs,
    reason = "ids.rs has the meaning of each kind, and fields have the names of what they are"
)]
pub enum FindingKind {
    SetsFailed {
        failed: u64,
        sets: u64,
    },
    SetsDegraded {
        degraded: u64,
        sets: u64,
        repair: Repair,
    },
    PoolPaused {
        since_s: u64,
        drives: Vec<String>,
        why: String,
        next: String,
    },
    LogFailed,
    LogLacksCopies {
        copies: u32,
        wanted: u32,
        way: LogCopyWay,
    },
    LogLessRedundant {
        copies: u32,
        tolerance: u32,
    },
    /// `absent`: drives that the array file names and that do not hold the log; `are_lost`: they have failed.
    LogMisplaced {
        on: Vec<String>,
        wanted: Vec<String>,
        absent: Vec<String>,
        are_lost: bool,
    },
    DestageFailed {
        error: String,
    },
    MetadataFailed,
    PagesLost {
        pages: u64,
        way: LostPagesWay,
    },
    PagesLostBefore,
    PagesRepaired {
        pages: u64,
    },
    /// `can_return`: they may be brought back; `hold_data`: they are for data of volumes; `group_left`: their group has left the
    /// pool, so they can only be removed.
    DrivesFailed {
        drives: Vec<String>,
        can_return: bool,
        hold_data: bool,
        group_left: bool,
    },
    DriveSuspect {
        error: String,
    },
    DriveFull {
        on_device: bool,
    },
    DrivesUnverified {
        drives: Vec<String>,
        is_under_way: bool,
    },
    DriveCannotLeave {
        lacks: String,
        add_to: AddTo,
    },
    GroupCannotLeave {
        group: String,
        held: GroupHeld,
    },
    DriveFileDeleted {
        path: PathBuf,
        is_replaced: bool,
    },
    DriveCutShort {
        path: PathBuf,
    },
    DriveFileMoved(FileMoved),
    ColumnsMisplaced {
        columns: u64,
        drives: Vec<String>,
        way_back: WayBack,
    },
    SparesLacking {
        group: Option<String>,
        free: u64,
        kept: u64,
        add_to: AddTo,
    },
    Space {
        level: SpaceLevel,
        group: Option<String>,
    },
    WitnessUnusable {
        fault: String,
    },
    ServerTrouble {
        text: String,
    },
    StartRefused {
        text: String,
    },
    ArrayFileBroken {
        fault: String,
    },
}

/// How far the repair of sets that lack a drive is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Repair {
    /// It runs. None: it has not counted its slots yet.
    Runs(Option<(u64, u64)>),
    /// No chunklet is free for some columns.
    LacksSpace {
        /// How many columns.
        columns: u64,
        /// Where a drive is to be added.
        add_to: AddTo,
        /// Whether a failed drive could be brought back.
        can_return: bool,
    },
    /// It has not begun.
    Waits,
}

/// How the write log gets its copies again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LogCopyWay {
    /// A drive has room for a copy.
    HasRoom,
    /// No drive has room, and a failed one could be brought back.
    CanReturn,
    /// No drive has room, and a failed one could be replaced.
    NoRoom,
    /// No drive has room, and none that failed can be replaced.
    NoneToReplace,
}

/// What helps where no copy of a page is right.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LostPagesWay {
    /// These drives have failed and may hold what is right; `are_removed`: they are being removed.
    BringBack {
        /// Their names.
        drives: Vec<String>,
        /// Whether one of them is being removed.
        are_removed: bool,
    },
    /// These drives were brought back and may hold what is right.
    WaitForReturned {
        /// Their names.
        drives: Vec<String>,
    },
    /// A rebuild or a scrub runs.
    WaitForRepair,
    /// Nothing but a backup.
    Restore,
}

impl Finding {
    /// A finding about `subject`. While the pool `is_paused`, remedies are left out that it could not follow.
    pub fn new(subject: Subject, kind: &FindingKind, is_paused: bool) -> Finding {
        let (what, remedy) = render::finding(kind, &subject, is_paused);
        Finding { id: kind.id().name().to_owned(), health: kind.health(), subject, what, remedy }
    }

    /// The fact and the remedy in one sentence.
    pub fn text(&self) -> String {
        match self.remedy.as_str() {
            "" => self.what.clone(),
            remedy => format!("{}; {remedy}", self.what),
        }
    }
}

impl FindingKind {
    /// The id.
    pub fn id(&self) -> FindingId {
        match self {
            FindingKind::SetsFailed { .. } => FindingId::SetsFailed,
            FindingKind::SetsDegraded { .. } => FindingId::SetsDegraded,
            FindingKind::PoolPaused { .. } => FindingId::PoolPaused,
            FindingKind::LogFailed => FindingId::LogFailed,
            FindingKind::LogLacksCopies { .. } => FindingId::LogLacksCopies,
            FindingKind::LogLessRedundant { .. } => FindingId::LogLessRedundant,
            FindingKind::LogMisplaced { .. } => FindingId::LogMisplaced,
            FindingKind::DestageFailed { .. } => FindingId::DestageFailed,
            FindingKind::MetadataFailed => FindingId::MetadataFailed,
            FindingKind::PagesLost { .. } => FindingId::PagesLost,
            FindingKind::PagesLostBefore => FindingId::PagesLostBefore,
            FindingKind::PagesRepaired { .. } => FindingId::PagesRepaired,
            FindingKind::DrivesFailed { .. } => FindingId::DrivesFailed,
            FindingKind::DriveSuspect { .. } => FindingId::DriveSuspect,
            FindingKind::DriveFull { .. } => FindingId::DriveFull,
            FindingKind::DrivesUnverified { .. } => FindingId::DrivesUnverified,
            FindingKind::DriveCannotLeave { .. } => FindingId::DriveCannotLeave,
            FindingKind::GroupCannotLeave { .. } => FindingId::GroupCannotLeave,
            FindingKind::DriveFileDeleted { .. } => FindingId::DriveFileDeleted,
            FindingKind::DriveCutShort { .. } => FindingId::DriveCutShort,
            FindingKind::DriveFileMoved(_) => FindingId::DriveFileMoved,
            FindingKind::ColumnsMisplaced { .. } => FindingId::ColumnsMisplaced,
            FindingKind::SparesLacking { .. } => FindingId::SparesLacking,
            FindingKind::Space { level: SpaceLevel::Full, .. } => FindingId::SpaceFull,
            FindingKind::Space { level: SpaceLevel::AtReserve { .. }, .. } => FindingId::SpaceReserved,
            FindingKind::Space { .. } => FindingId::SpaceFilling,
            FindingKind::WitnessUnusable { .. } => FindingId::WitnessUnusable,
            FindingKind::ServerTrouble { .. } => FindingId::ServerTrouble,
            FindingKind::StartRefused { .. } => FindingId::StartRefused,
            FindingKind::ArrayFileBroken { .. } => FindingId::ArrayFileBroken,
        }
    }

    /// How urgent it is.
    pub fn health(&self) -> Health {
        match self {
            FindingKind::SetsFailed { .. }
            | FindingKind::PoolPaused { .. }
            | FindingKind::LogFailed
            | FindingKind::DestageFailed { .. }
            | FindingKind::MetadataFailed
            | FindingKind::PagesLost { .. }
            | FindingKind::PagesLostBefore
            | FindingKind::DriveFull { .. }
            | FindingKind::Space { level: SpaceLevel::Full | SpaceLevel::AtReserve { .. }, .. } => {
                Health::Critical
            }
            FindingKind::SetsDegraded { .. }
            | FindingKind::LogLacksCopies { .. }
            | FindingKind::DriveFileDeleted { .. }
            | FindingKind::DriveCutShort { .. }
            | FindingKind::DriveFileMoved(FileMoved { is_replaced: true, .. }) => Health::Degraded,
            FindingKind::LogLessRedundant { .. }
            | FindingKind::LogMisplaced { .. }
            | FindingKind::PagesRepaired { .. }
            | FindingKind::DrivesFailed { .. }
            | FindingKind::DriveSuspect { .. }
            | FindingKind::DrivesUnverified { .. }
            | FindingKind::DriveCannotLeave { .. }
            | FindingKind::GroupCannotLeave { .. }
            | FindingKind::DriveFileMoved(_)
            | FindingKind::ColumnsMisplaced { .. }
            | FindingKind::SparesLacking { .. }
            | FindingKind::Space { .. }
            | FindingKind::WitnessUnusable { .. }
            | FindingKind::ServerTrouble { .. }
            | FindingKind::StartRefused { .. }
            | FindingKind::ArrayFileBroken { .. } => Health::Warning,
        }
    }
}
