//! Drives for the simulation of faults and power cuts, whose medium outlives the world they are used in.
//!
//! # Fault model
//!
//! A [`SimMedium`] has *stable* content and a volatile cache of writes. [`SimMedium::open`] makes a drive of it in a
//! world; a crash is: drop the runtime, apply [`SimMedium::power_cut`], open the medium in a new runtime.
//!
//! - **Time and order.** Each command takes a random time; commands under way end in any order. A write becomes visible
//!   in two parts, one somewhere between submission and completion and one at completion, so a read beside it may see
//!   a part of it.
//! - **Flush.** A flush makes stable what had completed when it was submitted, and nothing else. A durable write is
//!   stable when it completes. Without a volatile cache every write is.
//! - **Power cut.** Of every write that is not stable, completed or not, any subset of the sectors is kept (sectors
//!   are atomic, nothing larger is), independently of the order in which the writes were submitted or completed; of
//!   two writes to one sector that both stay, the one that the drive took last wins. All else of the cache is lost.
//!   See [`PowerCut`] for how the subset is drawn.
//! - **Process crash.** The commands under way do any part of their work, and the cache stays.
//! - **Outage.** A drive that loses its power under its handles loses its cache as above, and its handles are dead until
//!   they are revived, each by itself, or the drive that one of them found is accepted for all.
//! - **Loss.** An unplugged drive loses power as above and answers [`IoError::Gone`](tier0_world::IoError::Gone); a
//!   disconnected one keeps its cache. Either may come back with what it holds, or wiped.
//! - **Errors.** Unreadable sectors fail every read that touches them until they are written. A failed write leaves any
//!   part of itself. A failed flush makes nothing stable and may have dropped any part of the cache.
//! - **Silent faults.** Bit rot in stable content; writes lost, torn or misdirected though acknowledged.
//! - **Lies.** A drive may acknowledge flushes and durable writes, and keep them in a cache that a power cut empties.
//! - **Slowness.** Latency spikes; a hang is a latency beyond any patience ([`HANG`]).
//!
//! Every injected fault is in the medium's ledger. All randomness comes from the medium's seed, so a seed reproduces a
//! run; commands and faults enter the world's event hash.
//!
//! What it does not do: it knows nothing of redundancy, and injects what it is told even if no array can survive it.

mod content;
mod drive;
mod fate;
mod ledger;
mod medium;
mod power;
#[cfg(test)]
mod tests;

pub use drive::SimDrive;
pub use fate::PowerCut;
pub use ledger::{Injected, Injection};
pub use medium::{HANG, MediumImage, SimMedium, SimOptions};
pub use power::PowerSwitch;
