//! From a ring's entries back to a write cache with dirty pages.
//!
//! 1. All entries are decoded; anything unknown is refused, since it may be an acknowledged write.
//! 2. Intents whose slot is the extent's present one are replayed in the order of the log, with their data from the log,
//!    and made stable ([`replay`]): every row that a power cut may have torn is whole again.
//! 3. The newest version of each page is loaded as dirty; extents that have data and no slot get one ([`load`]).
//!
//! A cut at any point leaves the ring as it was: recovery begins again. Nothing is released before [`WriteBack::start`].

mod decode;
mod error;
mod load;
mod replay;

use std::rc::Rc;

use tier0_integrity::SlotIo;
use tier0_journal::{Entry, Ring};
use tier0_units::ExtentId;
use tier0_world::{IoError, World};

pub use error::RecoverError;

use crate::recovery::decode::Decoded;
use crate::{Mapping, WriteBack, WriteBackOptions};

/// What recovery had to do.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RecoveryReport {
    /// Data records of extents that exist.
    pub records: u64,
    /// Intents that were replayed.
    pub intents_replayed: u64,
    /// Intents that were not needed: the slot was freed, or the rows were stable.
    pub intents_skipped: u64,
    /// Pages that are dirty now.
    pub pages: u64,
    /// Extents that got a slot.
    pub allocated: u64,
    /// Extents whose rows could not be made whole. Their pages are in memory and log; they are tried again.
    pub failures: Vec<(ExtentId, IoError)>,
}

/// Where an extent belongs that a log has records of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Belongs {
    /// To the write cache that the log is of.
    Here,
    /// It exists no more.
    Nowhere,
    /// To another write cache, of which two must never have a page.
    Elsewhere,
}

impl WriteBack {
    /// The write cache of a shard after whatever happened. `entries` are those of `ring`, in order, without a gap; `belongs`
    /// says of an extent whose it is: what is in the log of those that are nowhere is given up.
    ///
    /// # Errors
    /// [`RecoverError`]; nothing was given up, and recovery can be tried again.
    pub async fn recover(
        world: &World,
        ring: Ring,
        slots: SlotIo,
        mapping: Rc<dyn Mapping>,
        options: WriteBackOptions,
        entries: &[Entry],
        belongs: impl Fn(ExtentId) -> Belongs,
    ) -> Result<(WriteBack, RecoveryReport), RecoverError> {
        let decoded = Decoded::new(entries, belongs)?;
        let mut report =
            RecoveryReport { records: decoded.records.len() as u64, ..RecoveryReport::default() };
        let failed = replay::replay(&slots, mapping.as_ref(), &decoded, &mut report).await?;
        let first_version = decoded.version_max + 1;
        let cache = WriteBack::with_versions(world, Some(ring), slots, mapping, options, first_version);
        load::load(&cache.0, &decoded, failed, &mut report).await?;
        Ok((cache, report))
    }
}
