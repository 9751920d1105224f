//! NBD, both ends: the protocol as pure state machines, and the server and client that drive them.
//!
//! - [`protocol`]: bytes to events and back, no I/O; also [`protocol::NbdUri`].
//! - [`server`]: offers any [`BlockTarget`](tier0_block::BlockTarget) as exports of a [`tier0_target::Target`].
//! - [`client`]: an export on a server as a [`BlockTarget`](tier0_block::BlockTarget), with many requests in flight.
//!
//! Invariants: whatever a peer sends, only its own connection ends; what a connection may make this process hold is
//! bounded by [`server::ServerOptions`]; payload is not copied between the engine's buffers and the socket, except
//! that small writes are copied once out of the receive buffer.
//!
//! What it does not do: TLS, authentication (listen on loopback or on a unix socket's path that only the right people
//! can reach), or anything about volumes.

pub mod client;
mod errors;
pub mod protocol;
pub mod server;
