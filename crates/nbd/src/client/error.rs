//! How connecting fails, and how connections break.

use thiserror::Error;
use tier0_units::Nanos;
use tier0_world::IoError;

use crate::protocol::ProtocolError;
use crate::protocol::handshake::Refusal;

/// A client cannot get or keep what it wants.
#[derive(Debug, Error)]
pub enum ClientError {
    /// The host has no address.
    #[error("cannot resolve {host:?}: {source}; check the name")]
    Resolve {
        /// The host.
        host: String,
        /// What the resolver says.
        source: std::io::Error,
    },
    /// No server answers there.
    #[error("cannot connect to {address}: {source}; check that the server is running and listens there")]
    Connect {
        /// The address.
        address: String,
        /// What the system says.
        source: std::io::Error,
    },
    /// The server did not finish the handshake in time.
    #[error("the server did not complete the handshake within {0}; check that it is an NBD server")]
    Timeout(Nanos),
    /// The server says no.
    #[error(transparent)]
    Refused(#[from] Refusal),
    /// The export does not promise that connections see each other's writes.
    #[error("export {export:?} does not allow multiple connections; use one")]
    NoMultiConn {
        /// The export.
        export: String,
    },
    /// The server broke the protocol.
    #[error(transparent)]
    Protocol(#[from] ProtocolError),
    /// The socket failed.
    #[error("the connection failed: {0}")]
    Socket(#[from] IoError),
    /// The server closed the connection.
    #[error("the server closed the connection")]
    Closed,
}
