//! How a target fails to do what its owner asks, and why connections are cut off.

use thiserror::Error;
use tier0_units::Nanos;
use tier0_world::net::PeerAddress;

/// A target cannot do what its owner asks.
#[derive(Debug, Error)]
pub enum TargetError {
    /// The address cannot be listened on.
    #[error("cannot listen on {address}: {source}; {}", listen_remedy(source))]
    Listen {
        /// The address.
        address: PeerAddress,
        /// Why not.
        source: std::io::Error,
    },
    /// There is an export of that name.
    #[error("export {name:?} already exists; choose another name")]
    NameTaken {
        /// The name.
        name: String,
    },
}

/// Why a connection was cut off from this side.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum CutOff {
    /// It has not taken the replies owed to it.
    #[error("client does not read its replies")]
    RepliesNotTaken,
    /// It has begun a message and not gone on.
    #[error("client stalled for {0} in the middle of a message")]
    HalfSent(Nanos),
}

fn listen_remedy(source: &std::io::Error) -> &'static str {
    match source.kind() {
        std::io::ErrorKind::NotFound => "create its directory, or choose another address",
        std::io::ErrorKind::AlreadyExists => "remove that file, or choose another address",
        _ => "choose another address, or stop the process that uses it",
    }
}
