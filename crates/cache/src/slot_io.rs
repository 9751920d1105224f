//! The slots of `tier0-integrity` as the write cache uses them.

use tier0_integrity::{Intent, IntentLog, SlotIo, SlotOutcome, SlotWrite};
use tier0_units::SlotRef;
use tier0_world::{Buf, BufMut, IoError};

use crate::SlotStore;

impl SlotStore for SlotIo {
    async fn read(&self, slot: SlotRef, first_sector: u64, buf: BufMut) -> (Result<(), IoError>, BufMut) {
        SlotIo::read(self, slot, first_sector, buf).await
    }

    async fn write_batch(
        &self,
        writes: Vec<SlotWrite>,
        intents: &dyn IntentLog,
    ) -> Result<Vec<SlotOutcome>, IoError> {
        SlotIo::write_batch(self, writes, intents).await
    }

    async fn replay_intents(&self, intents: &[(&Intent, &[Buf])]) -> Result<(), IoError> {
        SlotIo::replay_intents(self, intents).await
    }

    async fn write_through(
        &self,
        slot: SlotRef,
        first_sector: u64,
        buf: Buf,
        durable: bool,
    ) -> Result<(), IoError> {
        SlotIo::write_through(self, slot, first_sector, buf, durable).await
    }

    async fn flush(&self) -> Result<(), IoError> {
        self.raid().flush().await
    }

    async fn sync(&self) -> Result<(), IoError> {
        SlotIo::sync(self).await
    }

    fn allocate(&self, slot: SlotRef) {
        SlotIo::allocate(self, slot);
    }

    async fn make_known(&self, slot: SlotRef) -> Result<(), IoError> {
        SlotIo::make_known(self, slot).await
    }

    fn free(&self, slot: SlotRef) {
        SlotIo::free(self, slot);
    }

    fn row_pages(&self) -> u32 {
        self.raid().sets().layout().row_pages() as u32
    }

    fn parity_columns(&self) -> u32 {
        self.raid().sets().layout().parities() as u32
    }
}
