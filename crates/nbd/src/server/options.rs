//! What a server allows its clients.

use std::net::{Ipv4Addr, SocketAddr, SocketAddrV4};

use tier0_units::Nanos;

use crate::protocol::DEFAULT_PORT;
use crate::protocol::limits::PAYLOAD_BYTES_MAX;

/// Where to listen unless told otherwise: this machine only, since NBD without TLS knows no authentication.
pub const DEFAULT_TCP_ADDRESS: SocketAddr =
    SocketAddr::V4(SocketAddrV4::new(Ipv4Addr::LOCALHOST, DEFAULT_PORT));

/// Limits of a server. One connection can make it hold `in_flight_bytes_max` and one receive buffer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ServerOptions {
    /// Connections at a time; further ones are closed at once.
    pub connections_max: usize,
    /// A client that has not chosen an export after this long is dropped.
    pub handshake_timeout: Nanos,
    /// A client that has not taken the replies owed to it this long after the connection's end was decided is cut
    /// off.
    pub drain_timeout: Nanos,
    /// Requests of one connection that are admitted and not yet answered.
    pub in_flight_requests_max: u32,
    /// Bytes of payload of those requests; at least the longest payload allowed.
    pub in_flight_bytes_max: u64,
    /// Longest payload of one read or write, in bytes; a multiple of every export's block.
    pub payload_bytes_max: u32,
    /// Size of a connection's receive buffer, in bytes. Payload that is longer goes straight to its place.
    pub receive_buffer_bytes: usize,
}

impl Default for ServerOptions {
    /// Receive buffer: 32 writes of 8 KiB with their headers, so that a full queue arrives in one receive.
    fn default() -> ServerOptions {
        ServerOptions {
            connections_max: 1024,
            handshake_timeout: Nanos::from_secs(10),
            drain_timeout: Nanos::from_secs(10),
            in_flight_requests_max: 1024,
            in_flight_bytes_max: 2 * PAYLOAD_BYTES_MAX as u64,
            payload_bytes_max: PAYLOAD_BYTES_MAX,
            receive_buffer_bytes: 32 * (8192 + 28),
        }
    }
}
