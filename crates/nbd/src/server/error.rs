//! How a server fails to start, and why connections end.

use thiserror::Error;
use tier0_units::Nanos;
use tier0_world::IoError;
use tier0_world::net::PeerAddress;

use crate::protocol::ProtocolError;

/// A server cannot do what its owner asks.
#[derive(Debug, Error)]
pub enum ServerError {
    /// The address cannot be listened on.
    #[error("cannot listen on {address}: {source}; {}", listen_remedy(source))]
    Listen {
        /// The address.
        address: PeerAddress,
        /// Why not.
        source: std::io::Error,
    },
    /// There is an export of that name.
    #[error("there is already an export {name:?}; choose another name")]
    NameTaken {
        /// The name.
        name: String,
    },
    /// The name or description cannot be sent.
    #[error("{text:?} cannot be an export's name or description; use at most 4096 bytes and no NUL")]
    BadText {
        /// The text.
        text: String,
    },
    /// The block size cannot be said in the protocol.
    #[error("export {name:?} has blocks of {block_bytes} bytes; NBD allows powers of two up to 64 KiB")]
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
    #[error("the handshake was not over after {0}")]
    HandshakeTimeout(Nanos),
    #[error("client does not take its replies")]
    RepliesNotTaken,
    #[error("client left in the middle of {0}")]
    Truncated(&'static str),
}

fn listen_remedy(source: &std::io::Error) -> &'static str {
    match source.kind() {
        std::io::ErrorKind::NotFound => "make the directory that it lies in, or choose another address",
        _ => "choose another address or stop who uses it",
    }
}
