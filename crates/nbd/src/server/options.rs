//! What a server allows its clients.

use std::net::{Ipv4Addr, SocketAddr, SocketAddrV4};

use tier0_target::TargetOptions;
use tier0_units::Nanos;

use crate::protocol::DEFAULT_PORT;
use crate::protocol::limits::PAYLOAD_BYTES_MAX;

/// Where to listen unless told otherwise: this machine only, since NBD without TLS knows no authentication.
pub const DEFAULT_TCP_ADDRESS: SocketAddr =
    SocketAddr::V4(SocketAddrV4::new(Ipv4Addr::LOCALHOST, DEFAULT_PORT));

/// Limits of a server. One connection can make it hold what the target's options allow, and one receive buffer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ServerOptions {
    /// Of all protocols.
    pub target: TargetOptions,
    /// A client that has not chosen an export after this long is dropped.
    pub handshake_timeout: Nanos,
    /// Longest payload of one read or write, in bytes; a multiple of every export's block.
    pub payload_bytes_max: u32,
    /// Longer requests are carried out in pieces of so many bytes; a multiple of every export's block.
    pub piece_bytes: u32,
    /// Size of a connection's receive buffer, in bytes. Payload that is longer goes straight to its place.
    pub receive_buffer_bytes: usize,
}

impl Default for ServerOptions {
    /// Pieces: the longest buffers whose memory stays at hand (`world::memory`). Receive buffer: 32 writes of 8 KiB with
    /// their headers, so that a full queue arrives in one receive.
    fn default() -> ServerOptions {
        ServerOptions {
            target: TargetOptions::default(),
            handshake_timeout: Nanos::from_secs(10),
            payload_bytes_max: PAYLOAD_BYTES_MAX,
            piece_bytes: 128 << 10,
            receive_buffer_bytes: 32 * (8192 + 28),
        }
    }
}

impl ServerOptions {
    /// Panics where they contradict each other.
    pub(super) fn assert_sensible(&self) {
        assert!(
            self.target.reserve_bytes >= u64::from(self.piece_bytes),
            "a connection needs a reserve of one piece"
        );
        assert!(
            self.target.pool_bytes >= u64::from(self.payload_bytes_max),
            "a read in one chunk needs a pool of one payload"
        );
    }
}
