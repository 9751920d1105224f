//! NBD on a [`Target`](tier0_target::Target): exports of one world on its sockets.
//!
//! A connection has a reader that parses every request a receive brought and starts it, one task per piece of it, and a
//! writer that sends all replies that are ready in one call. Requests longer than a piece are carried out a piece at a time,
//! each admitted by itself: a long write begins while it arrives, and a long read is answered in chunks where the client
//! takes them. What a connection may have in flight, and when others have their turn, the target decides.
//!
//! Invariants: a request that was admitted is answered or its connection is gone; a write's success is sent only
//! after the target reported it for every piece; shutting down answers what is in flight before it closes.

mod answer;
mod connection;
mod error;
mod exports;
mod negotiate;
mod options;
mod pieces;
mod reader;
mod request;
mod shared;
mod write;

pub use error::ServerError;
pub use options::{DEFAULT_TCP_ADDRESS, ServerOptions};
pub use shared::Server;
pub use tier0_target::{ConnectionCounts, ConnectionsNow, ExportOptions, TargetError, TargetOptions, User};
