//! A pool's metadata on its drives.
//!
//! [`survey`] reads who drives are; [`FoundPool::open`] makes a [`Metadata`] of a pool that was found,
//! [`Metadata::create`] a new one. [`Metadata::commit`] makes records true and durable; [`Metadata::lose`] makes known
//! that a drive must not be believed any more.
//!
//! Who says what: superblocks, on all drives, say which members serve and which of them carry the metadata. Journal and
//! checkpoints, on up to three carriers, say everything else. A change of members is written to the superblocks first
//! and to the journal after; opening makes up for a crash in between.
//!
//! Invariants:
//! - A commit ends only when its records are stable on every carrier, or the superblocks of all other drives say that the
//!   carrier is lost.
//! - Nothing of the newest valid checkpoint is ever overwritten, no page of its map either; the journal is released only as far as a checkpoint covers it that
//!   is stable on every carrier.
//! - A journal is used by one opening only: each begins with a checkpoint of its own and an empty journal, so that
//!   nothing an earlier one left behind is ever read as this one's.
//! - [`Metadata::state`] is what was accepted. It may be ahead of what is stable by the commits under way; who must not
//!   be ahead waits for the end of his commit. A slot that was unmapped is allocated again only when that is stable.
//!
//! What it does not do: it does not notice a failing drive except by its own writes, starts no rebuild, and knows no data.

mod allocation;
mod carriers;
mod checkpoints;
mod commit;
mod core;
mod create;
mod fronts;
mod groups;
mod journal;
mod labels;
mod lineage;
mod members;
mod open;
mod page_io;
mod pages;
mod readmission;
mod recognise;
mod rollover;
mod starts;
pub mod superblock;
mod survey;
#[cfg(test)]
mod tests;

pub use commit::Commit;
pub use core::{FreedHook, LossHook, Metadata, SetsHook};
pub use open::Inspected;
pub use readmission::Unbelieved;
pub use recognise::Seen;
pub use starts::Starts;
pub use survey::{FoundMember, FoundPool, OtherDrive, Standing, Survey, survey, survey_without};
