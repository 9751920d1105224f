//! From the rings' entries back to a write cache with dirty pages.
//!
//! 1. All entries of all rings are decoded; anything unknown is refused, since it may be an acknowledged write.
//! 2. Intents whose slot is the extent's present one are replayed in the order of the log, with their data from the log,
//!    and made stable ([`replay`]): every row that a power cut may have torn is whole again.
//! 3. The newest version of each page is loaded as dirty; extents that have data and no slot get one ([`load`]).
//! 4. Pages that lie in another ring than this cache's (the number of shards has changed) are logged anew.
//!
//! A cut at any point leaves the rings as they were, or with more copies of the same versions: recovery begins again.
//! Nothing of any ring is released before [`WriteBack::start`]. Whoever has several shards recovers all of them, then
//! lets each disown what the others have taken over, gives up the rings that are nobody's own, then starts all: else a
//! power cut could find an old version in one ring when the other has destaged and released the newer one.

mod decode;
mod error;
mod load;
mod replay;

use std::rc::Rc;

use tier0_journal::{Entry, Record, Ring};
use tier0_units::ExtentId;
use tier0_world::{IoError, World};

pub use error::RecoverError;

use crate::recovery::decode::Decoded;
use crate::write_back::io_error;
use crate::{Mapping, SlotStore, WriteBack, WriteBackOptions, moved};

/// What was found in one ring.
#[derive(Clone, Debug, Default)]
pub struct RingEntries {
    /// Whether it is the ring that the write cache goes on with.
    pub own: bool,
    /// Its entries, in order, without a gap.
    pub entries: Vec<Entry>,
}

/// What recovery had to do.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RecoveryReport {
    /// Data records of extents of this shard.
    pub records: u64,
    /// Intents that were replayed.
    pub intents_replayed: u64,
    /// Intents that were not needed: the slot was freed, or the rows were stable.
    pub intents_skipped: u64,
    /// Pages that are dirty now.
    pub pages: u64,
    /// Of those, pages that were logged anew.
    pub pages_relogged: u64,
    /// Extents that got a slot.
    pub allocated: u64,
    /// Extents whose rows could not be made whole. Their pages are in memory and log; they are tried again.
    pub failures: Vec<(ExtentId, IoError)>,
}

impl<S: SlotStore> WriteBack<S> {
    /// The write cache of a shard after whatever happened. `logs` are the entries of all rings of the pool, that of
    /// `ring` among them if it is not new; `owns` says which extents are this shard's. An extent that exists no more is
    /// nobody's.
    ///
    /// # Errors
    /// [`RecoverError`]; nothing was given up, and recovery can be tried again.
    pub async fn recover(
        world: &World,
        ring: Ring,
        slots: S,
        mapping: Rc<dyn Mapping>,
        options: WriteBackOptions,
        logs: &[RingEntries],
        owns: impl Fn(ExtentId) -> bool,
    ) -> Result<(WriteBack<S>, RecoveryReport), RecoverError> {
        let decoded = Decoded::new(logs, owns)?;
        let mut report =
            RecoveryReport { records: decoded.records.len() as u64, ..RecoveryReport::default() };
        let failed = replay::replay(&slots, mapping.as_ref(), &decoded, &mut report).await?;
        let first_version = decoded.version_max + 1;
        let cache = WriteBack::with_versions(world, ring, slots, mapping, options, first_version);
        load::load(&cache.0, &decoded, failed, &mut report).await?;
        cache.0.state.borrow_mut().foreign = decoded.foreign;
        Ok((cache, report))
    }

    /// Says in the own ring that what it has of other shards' extents is void. To be called once all shards are
    /// recovered, and before any is started. Costs nothing where all shards own what they did before.
    ///
    /// # Errors
    /// [`RecoverError::Log`] when the log has failed.
    pub async fn disown(&self) -> Result<(), RecoverError> {
        let foreign = std::mem::take(&mut self.0.state.borrow_mut().foreign);
        if foreign.is_empty() {
            return Ok(());
        }
        let mark = Record { head: moved::encode(&foreign), pages: Vec::new() };
        let appended = self.0.ring.append_urgent(mark).await;
        appended.map(drop).map_err(|error| RecoverError::Log(io_error(&error)))
    }
}
