//! Addresses to listen on.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};

use tier0_world::net::PeerAddress;

/// The kernel's `sockaddr_un` has room for so many bytes and a zero.
const SOCKET_PATH_BYTES_MAX: usize = 107;

/// Whether a path has no room in the address of a unix socket.
pub(super) fn is_too_long(path: &Path) -> bool {
    path.as_os_str().len() > SOCKET_PATH_BYTES_MAX
}

/// An address to listen on: `unix:/path` or `127.0.0.1:10809`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ListenAddress(pub PeerAddress);

impl ListenAddress {
    /// Reads an address; `allow_remote` permits what other machines can reach.
    pub fn parse(text: &str, allow_remote: bool) -> Result<ListenAddress, String> {
        if let Some(path) = text.strip_prefix("unix:") {
            if path.is_empty() {
                return Err("a unix socket needs a path, as in \"unix:/run/tier0.sock\"".into());
            }
            return ListenAddress::unix(PathBuf::from(path));
        }
        let address: SocketAddr = text.parse().map_err(|_| {
            format!(
                "{text:?} is not an address; write \"unix:/path\" or an IP address with a port, as in \
                 \"127.0.0.1:10809\""
            )
        })?;
        if !address.ip().is_loopback() && !allow_remote {
            return Err(format!(
                "{address} is reachable from other machines, and NBD has no authentication; use 127.0.0.1, \
                 or set \"allow_remote = true\""
            ));
        }
        Ok(ListenAddress(PeerAddress::Tcp(address)))
    }

    /// A unix socket.
    fn unix(path: PathBuf) -> Result<ListenAddress, String> {
        if is_too_long(&path) {
            let bytes = path.as_os_str().len();
            return Err(format!(
                "the unix socket path {path:?} has {bytes} bytes, more than {SOCKET_PATH_BYTES_MAX}; shorten it"
            ));
        }
        Ok(ListenAddress(PeerAddress::Unix(path)))
    }

    /// The same with the path of a socket made another one.
    pub(super) fn resolved(self, resolve: impl Fn(PathBuf) -> PathBuf) -> Result<ListenAddress, String> {
        match self.0 {
            PeerAddress::Unix(path) => ListenAddress::unix(resolve(path)),
            PeerAddress::Tcp(_) => Ok(self),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn loopback_unless_told_otherwise() {
        assert!(ListenAddress::parse("127.0.0.1:10809", false).is_ok());
        assert!(ListenAddress::parse("[::1]:10809", false).is_ok());
        assert!(ListenAddress::parse("unix:/tmp/x", false).is_ok());
        assert!(ListenAddress::parse("0.0.0.0:10809", true).is_ok());
        for text in ["0.0.0.0:10809", "192.168.0.1:1", "unix:", "localhost", "127.0.0.1"] {
            assert!(ListenAddress::parse(text, false).is_err(), "{text}");
        }
    }
}
