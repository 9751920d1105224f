//! How a server fails to offer an export, and why connections end.

use thiserror::Error;
use tier0_target::{Broken, TargetError};
use tier0_units::Nanos;
use tier0_world::IoError;

use crate::protocol::ProtocolError;

/// A server cannot do what its owner asks.
#[derive(Debug, Error)]
pub enum ServerError {
    /// No protocol could.
    #[error(transparent)]
    Target(#[from] TargetError),
    /// The name or description cannot be sent.
    #[error("{text:?} is not a valid export name or description; use at most 4096 bytes and no NUL")]
    BadText {
        /// The text.
        text: String,
    },
    /// The block size cannot be said in the protocol.
    #[error("export {name:?} has a block size of {block_bytes} bytes; use a power of two up to 64 KiB")]
    BadBlockSize {
        /// The export.
        name: String,
        /// Its block, in bytes.
        block_bytes: u64,
    },
}

/// Why a connection ended otherwise than in good order.
#[derive(Debug, Error)]
pub(super) enum ConnectionError {
    #[error(transparent)]
    Protocol(#[from] ProtocolError),
    #[error("the socket failed: {0}")]
    Socket(#[from] IoError),
    #[error("the handshake took longer than {0}")]
    HandshakeTimeout(Nanos),
    #[error(transparent)]
    Broken(#[from] Broken),
    #[error("client disconnected during {0}")]
    Truncated(&'static str),
}
