//! The *world*: the small seam under the engine, and the executor that runs on it.
//!
//! A [`World`] gives the engine its time, timers, tasks, randomness and block buffers, and carries the
//! completions of its drives. Two runtimes drive a world:
//!
//! - [`VirtualRuntime`]: simulated time in integer nanoseconds, and a modelled network ([`net`]). Nothing waits; the clock
//!   jumps from event to event. A seed reproduces a run byte for byte, and [`World::event_hash`] proves it.
//! - [`RealRuntime`]: the wall clock, files, block devices and sockets through io_uring, or through epoll and a
//!   few threads where io_uring is forbidden. It sleeps when idle.
//!
//! Invariants:
//! - A world belongs to one thread. Only [`Remote`] and the channels of [`sync`] cross threads.
//! - Ready tasks run in the order in which they became ready; timers of one instant fire in the order in which
//!   they were set.
//! - A buffer handed to the kernel or to a drive belongs to its completion slot until the completion arrives,
//!   whatever becomes of the future that waits for it.
//! - A [`Completion`] must be completed: dropping it unanswered panics.
//!
//! What it does not do: it knows nothing of drives' names, RAID, volumes or protocols.

mod buffer;
mod completion;
mod error;
mod lender;
mod memory;
pub mod net;
mod page_store;
mod payload;
mod planted;
mod prefetch;
mod random;
mod ready;
pub mod real;
pub mod sync;
mod timer;
mod turns;
mod virtual_runtime;
mod world;

pub use async_task::Task;
pub use buffer::{Buf, BufMut};
pub use completion::{Completion, Observer, Outcome, Pending, UnderWay};
pub use error::IoError;
pub use lender::Lender;
pub use page_store::PageStore;
pub use payload::{Gather, Payload, PayloadWidth};
#[cfg(debug_assertions)]
pub use planted::{Planted, plant};
pub use planted::{PlantedBug, planted};
pub use prefetch::prefetch;
pub use random::Random;
pub use ready::Remote;
pub use real::{RealOptions, RealRuntime};
pub use timer::{Sleep, TimerTarget};
pub use turns::SlowTurns;
pub use virtual_runtime::VirtualRuntime;
pub use world::World;
