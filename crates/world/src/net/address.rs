//! Where a stream socket listens or connects.

use std::fmt;
use std::net::SocketAddr;
use std::path::PathBuf;

/// Where a stream socket listens or connects.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum PeerAddress {
    /// A unix socket's path.
    Unix(PathBuf),
    /// An IP address and a port.
    Tcp(SocketAddr),
}

impl fmt::Display for PeerAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            PeerAddress::Unix(path) => write!(f, "{}", path.display()),
            PeerAddress::Tcp(address) => address.fmt(f),
        }
    }
}
