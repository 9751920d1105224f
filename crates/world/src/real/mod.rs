//! The real world: wall clock, io_uring (or epoll and threads), files and sockets.

mod awake;
mod clock;
mod driver;
mod file;
mod op;
mod outlast;
mod receives;
mod runtime;
mod socket;
mod spin;
mod threads;
mod uring;
mod workers;

pub use awake::keep_awake;
pub(crate) use clock::WallClock;
pub(crate) use driver::Driver;
pub use file::{BlockFile, Submission};
pub use op::Fd;
pub(crate) use op::Operation;
pub use outlast::outlast;
pub use runtime::{Backend, RealOptions, RealRuntime};
pub use socket::readable;
pub(crate) use socket::{Listener, Socket};
