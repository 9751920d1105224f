//! The server: exports of one world on its sockets.
//!
//! A connection has a reader that parses every request a receive brought, one task per request, and a writer that
//! sends all replies that are ready in one call. Requests and bytes in flight are bounded per connection: a client
//! that floods or does not take its replies stops being read, and waits for itself.
//!
//! Invariants: a request that was admitted is answered or its connection is gone; a write's success is sent only
//! after the target reported it; shutting down answers what is in flight before it closes.

mod connection;
mod error;
mod export;
mod flow;
mod negotiate;
mod options;
mod owed;
mod reader;
mod request;
mod shared;
mod throttle;

pub use error::ServerError;
pub use export::ExportOptions;
pub use options::{DEFAULT_TCP_ADDRESS, ServerOptions};
pub use shared::Server;
pub use throttle::Throttle;
