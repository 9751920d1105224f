//! The real world: wall clock, io_uring (or epoll and threads), files and sockets.

mod awake;
mod clock;
mod driver;
mod each_in_time;
mod file;
mod op;
mod receives;
mod retry_while_busy;
mod runtime;
mod socket;
mod spin;
mod threads;
mod uring;
mod workers;

pub use awake::keep_awake;
pub(crate) use clock::WallClock;
pub(crate) use driver::Driver;
pub use each_in_time::each_in_time;
pub use file::{BlockFile, Submission};
pub use op::Fd;
pub(crate) use op::Operation;
pub use retry_while_busy::retry_while_busy;
pub use runtime::{Backend, RealOptions, RealRuntime};
pub(crate) use socket::{Listener, Socket};
pub use socket::{listens, readable, remove_deserted};
