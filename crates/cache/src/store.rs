//! What lies below: verified slots, as `tier0-integrity` has them.

use std::future::Future;

use tier0_integrity::{Intent, IntentLog, SlotOutcome, SlotWrite};
use tier0_units::SlotRef;
use tier0_world::{Buf, BufMut, IoError};

/// Slots with checksums and parity; clones share them.
///
/// The write cache never reads pages that a batch is writing, never has two batches on one slot, and touches no slot that
/// it has given back.
pub trait SlotStore: Clone + 'static {
    /// Reads as many sectors as `buf` holds, from a sector of the slot on; what was never stored is zeros. The buffer
    /// comes back in any case.
    fn read(
        &self,
        slot: SlotRef,
        first_sector: u64,
        buf: BufMut,
    ) -> impl Future<Output = (Result<(), IoError>, BufMut)>;

    /// Writes pages in place, intents first where the level has parity; stable when it ends. After an error any part may
    /// have been done.
    fn write_batch(
        &self,
        writes: Vec<SlotWrite>,
        intents: &dyn IntentLog,
    ) -> impl Future<Output = Result<Vec<SlotOutcome>, IoError>>;

    /// Writes the rows of one extent as its intents say, in the order of the log, each with the contents of its pages
    /// that lie in the log. Stable after [`SlotStore::sync`].
    fn replay_intents(&self, intents: &[(&Intent, &[Buf])]) -> impl Future<Output = Result<(), IoError>>;

    /// Writes sectors of a slot in place, with nothing before that: for pools without a log.
    fn write_through(
        &self,
        slot: SlotRef,
        first_sector: u64,
        buf: Buf,
        durable: bool,
    ) -> impl Future<Output = Result<(), IoError>>;

    /// Makes everything that was written through stable.
    fn flush(&self) -> impl Future<Output = Result<(), IoError>>;

    /// Makes everything that was replayed stable.
    fn sync(&self) -> impl Future<Output = Result<(), IoError>>;

    /// The slot was just allocated and reads as zeros.
    fn allocate(&self, slot: SlotRef);

    /// Makes stable that an allocated slot reads as zeros, unless something of it was written before. Whatever is mapped
    /// durably must be found after a crash.
    fn make_known(&self, slot: SlotRef) -> impl Future<Output = Result<(), IoError>>;

    /// The slot is about to be given back: nothing of it may be remembered.
    fn free(&self, slot: SlotRef);

    /// Pages of a row, at least 1: writing all of them at once needs no reads.
    fn row_pages(&self) -> u32;

    /// Parity columns of a row.
    fn parity_columns(&self) -> u32;
}
