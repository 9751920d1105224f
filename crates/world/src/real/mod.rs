//! The real world: wall clock, io_uring (or epoll and threads), files and sockets.

mod awake;
mod cheaper;
mod clock;
mod convoy;
mod driver;
mod file;
mod leisure;
mod op;
mod outlast;
mod pieces;
mod receives;
mod room_polls;
mod runtime;
mod send_buffer;
mod sends;
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
