//! What administrators ask of an array, and what it answers: requests, replies, status, counters and the description of pools.
//!
//! The types travel as JSON over the control socket, and `--json` prints them. They are a contract: a change that another
//! program could notice increases [`ApiVersion::CURRENT`]. Types of the engine do not appear here. `control` converts them,
//! so the engine can change its types without a change of this contract.
//!
//! | module | concept |
//! |---|---|
//! | [`version`] | the version of the contract |
//! | [`envelope`] | a request and a reply with the version of their sender |
//! | [`request`] | what can be asked, and what comes back |
//! | [`status`] | the state of an array |
//! | [`event`] | what has happened |
//! | [`finding`] | what is wrong now |
//! | [`ids`] | the ids of events and findings, with their meanings |
//! | [`render`] | the sentences of events and findings |
//! | [`io`] | counters of requests, since the start |
//! | [`summary`] | the same in a few figures |
//! | [`caches`] | counters and levels of the caches |
//! | [`tier`] | the performance tier: how it does, why an extent lies where it lies, what it does next |
//! | [`ceilings`] | the ceilings of volumes, and what they held back |
//! | [`facts`] | what pools consist of |
//!
//! Nothing here does any I/O, and nothing here knows how a request is carried out.

pub mod caches;
pub mod ceilings;
pub mod envelope;
pub mod event;
pub mod facts;
pub mod finding;
pub mod ids;
pub mod io;
pub mod render;
pub mod request;
#[cfg(test)]
mod schema;
pub mod status;
pub mod summary;
pub mod tier;
pub mod version;

pub use caches::{CacheSwitches, FlashCacheStatus, FlushCounts, Flushed, Flushing, ReadCacheStatus};
pub use ceilings::{Ceilings, Throttling};
pub use envelope::{OtherVersion, ReplyEnvelope, RequestEnvelope};
pub use event::{Event, EventKind, Severity, Subject};
pub use facts::{DriveFacts, GroupFacts, PoolFacts, Reserve, SpaceFacts, VolumeFacts};
pub use finding::{Finding, FindingKind};
pub use ids::{EventId, FindingId};
pub use io::{
    CONNECTIONS_MAX, CONNECTIONS_WITH_LATENCIES, ConnectionIo, IoReport, NamedFlushing, NamedIo, PoolIo,
};
pub use request::{AdminReply, AdminRequest, GroupDrive, GroupShape};
pub use status::{
    ConnectionsStatus, DriveClass, DriveHealth, DriveStanding, DriveState, DriveStatus, GroupStatus, Health,
    IntegrityStatus, LaneStatus, LastScrub, LogStatus, LostRange, PauseStatus, PoolStatus, RebuildPurpose,
    RebuildStatus, RestripeStatus, ScrubResult, ScrubStatus, SetsStatus, SpaceStatus, Status, TablesStatus,
    VolumeStatus,
};
pub use summary::{IoSummary, OpSummary};
pub use tier::{
    PinStatus, TierCurvePoint, TierExplanation, TierHold, TierIo, TierMove, TierMoves, TierPlan, TierReason,
    TierStatus, VolumePlace,
};
pub use version::ApiVersion;
