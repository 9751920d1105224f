//! The modelled flash drive: a state machine that says, at submission, when a command will complete.
//!
//! Purpose: predict the service times of a NAND drive inside a simulated array, at several million commands
//! per second, with what makes flash differ from a disk: parallel dies behind shared channels, a
//! write buffer, a page mapping with garbage collection, over-provisioning and wear.
//!
//! Invariants
//! - No time passes inside: every answer is a function of the calls before it and of the seed.
//! - Every resource (controller core, host link, channel, die) is a *busy-until* time in integer nanoseconds.
//! - The mapping pairs logical pages with valid physical slots one to one ([`FlashModel::assert_consistent`]).
//! - No allocation after construction.
//!
//! What it does not do: it holds no data, injects no errors (the fault wrapper does), knows nothing of the
//! executor, and models neither an SLC cache nor a read cache nor thermal throttling.
//!
//! ```text
//! command -> admission -> controller -> read:  ftl -> die -> channel -> link -> done
//!            (queue       (cores)       write: link -> write buffer -> done
//!             depth)                                   `-> ftl -> channel -> die   (background)
//! ```
//!
//! | file | concept |
//! |---|---|
//! | `parameters` | what describes a drive, with units and ranges |
//! | `from_catalog` | the catalogue's entries as such parameters |
//! | `geometry` | the shape derived from it, and the scale of the modelled span |
//! | `model`, `read`, `write` | the drive and the ways of its commands through the resources |
//! | `admission`, `cores`, `backlog`, `die`, `channel` | the resources |
//! | `costs` | the parameters in the units of the data path |
//! | `ftl`, `collect`, `blocks` | page mapping, garbage collection, free blocks and wear levelling |
//! | `precondition` | bringing the mapping into its steady state before a measurement |
//! | `statistics` | counters, write amplification, wear gauge |

mod admission;
mod backlog;
mod blocks;
mod channel;
mod collect;
mod cores;
mod costs;
mod die;
mod from_catalog;
mod ftl;
mod geometry;
mod model;
mod parameters;
mod precondition;
mod read;
mod statistics;
mod write;

pub use model::{FlashCommand, FlashModel};
pub use parameters::{FlashParameters, FlashParametersError, ReadScheduling};
pub use precondition::Precondition;
pub use statistics::FlashStatistics;
