//! What every block protocol needs to serve its clients: listeners, connections and their limits, flow control, replies
//! that are owed, exports that come and go.
//!
//! - [`Target`]: the exports of one world, served to every client that connects, over any number of protocols at once.
//! - [`Protocol`]: what a protocol adds; it is given each [`Connection`] and speaks on its [`Channel`].
//! - [`Channel`] and [`Owed`]: a connection's socket, its share of memory and work, and the replies that are owed on it.
//! - [`Outbox`]: messages that go out together, for either end of a connection.
//!
//! Invariants:
//! - Whatever a peer does, only its own connection ends.
//! - Nothing is admitted beyond what [`TargetOptions`] allow a connection and all of them together, and every connection can
//!   always have its reserve, whatever the others hold.
//! - What was admitted is answered or given back; work whose receiver is gone is not begun.
//! - A connection that has much to do does it a turn at a time, and stands behind the others after each.
//! - Clients of one address leave places for those of others, and who stays silent gives way to who comes ([`TargetOptions`]).
//! - A client that stops in the middle of a message, or takes nothing of what is owed, is cut off after a while.
//!
//! What it does not do: it knows no protocol's bytes, no volumes, no authentication.

mod admission;
mod channel;
mod connection;
mod counts;
mod error;
mod export;
mod flow;
mod in_use;
mod neighbour;
mod options;
mod outbox;
mod owed;
mod pool;
mod protocol;
mod stop;
mod target;
mod throttle;
mod watch;

pub use channel::{Broken, Channel};
pub use connection::Connection;
pub use counts::{ConnectionCounts, ConnectionsNow};
pub use error::{CutOff, TargetError};
pub use export::{Export, ExportOptions};
pub use in_use::InUse;
pub use options::TargetOptions;
pub use outbox::{Account, Outbox};
pub use owed::Owed;
pub use protocol::{Ended, Protocol};
pub use stop::Stop;
pub use target::{Target, User};
pub use throttle::Throttle;
