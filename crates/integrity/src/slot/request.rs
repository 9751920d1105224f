//! What is asked of [`SlotIo`](crate::SlotIo) and what it answers.

use tier0_units::{ExtentId, SlotRef};
use tier0_world::Buf;

use crate::LogPlace;

/// New pages of one slot.
#[derive(Clone, Debug)]
pub struct SlotWrite {
    /// The extent that has the slot.
    pub extent: ExtentId,
    /// The slot.
    pub slot: SlotRef,
    /// Pages of 4 KiB by their number in the slot, ascending, each once.
    pub pages: Vec<(u32, PageContent)>,
}

/// The new content of a page.
#[derive(Clone, Debug)]
pub enum PageContent {
    /// All zeros: the page is marked so in the slot's table, nothing is stored.
    Zero,
    /// Data.
    Data {
        /// 8 sectors.
        buf: Buf,
        /// Where the log has the same bytes.
        log: LogPlace,
    },
    /// Something that no copy is right of: no read of the page passes before it is written.
    Lost,
}

/// What has become of one slot of a batch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SlotOutcome {
    /// The extent.
    pub extent: ExtentId,
    /// The slot.
    pub slot: SlotRef,
    /// Whether every page of the slot reads as zeros now, so that the extent needs no slot any more.
    pub all_zero: bool,
}
