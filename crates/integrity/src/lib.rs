//! Integrity: checksums of data at rest, and verified reads and writes of slots.
//!
//! - [`table`] has the checksums of a slot's pages: their bytes and where the copies lie.
//! - [`Intent`] says what is about to be written in a row; [`IntentLog`] keeps it stable until that is done.
//! - [`SlotIo`] reads slots and verifies every page; it takes batches of dirty pages ([`SlotWrite`]) to their places in
//!   an order that a power cut may break off anywhere, replays intents, scrubs and rebuilds.
//! - [`IntegrityCounts`] tells what was found wrong and what became of it.
//!
//! Invariants: a page is handed out only if it is what its table says; a table is never older than what the log has
//! forgotten; with parity, nothing is written in place before its intent is stable.
//!
//! What it does not do: it knows no volumes, keeps no dirty pages, allocates no slots and has no log of its own.

mod counts;
mod intent;
mod lost;
mod slot;
pub mod table;
mod zero;

pub use counts::{IntegrityCounts, SlotPage, TableEvent, TableFault};
pub use intent::{Intent, IntentError, IntentLog, IntentPage, LogPlace, ParityPiece};
pub use slot::{
    MemoryShare, PageContent, ReplayedRow, SlotIo, SlotIoOptions, SlotOutcome, SlotRebuilt, SlotScrub,
    SlotWrite,
};
pub use zero::split_zero_pages;
