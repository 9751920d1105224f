//! Administration of a running array: what can be asked of it, and what it says of itself.
//!
//! The types travel as JSON over the control socket and are what `--json` prints; carrying a request out is the
//! control task's business. Nothing here does any I/O.

mod io;
mod request;
mod status;

pub use tier0_cache::{FlushCounts, Flushed, Flushing, ReadCacheStatus};
pub use tier0_flash_cache::FlashCacheStatus;

pub use io::{
    CONNECTIONS_MAX, CONNECTIONS_WITH_LATENCIES, ConnectionIo, IoReport, NamedFlushing, NamedIo, PoolIo,
};
pub use request::{AdminError, AdminReply, AdminRequest};
pub use status::{
    ConnectionsStatus, DriveHealth, DriveStanding, DriveStatus, Event, GroupStatus, Health, IntegrityStatus,
    LaneStatus, LastScrub, LogStatus, LostRange, PauseStatus, PoolStatus, RebuildPurpose, RebuildStatus,
    RestripeStatus, ScrubResult, ScrubStatus, SetsStatus, Severity, SpaceStatus, Status, TablesStatus,
    VolumeStatus,
};
