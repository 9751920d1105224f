//! Addresses to listen on.

use std::net::SocketAddr;
use std::path::PathBuf;

use tier0_world::net::PeerAddress;

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
            // The kernel's sockaddr_un has room for 107 bytes and a zero.
            if path.len() > 107 {
                return Err(format!(
                    "the unix socket's path has {} bytes, at most 107 fit; shorten it",
                    path.len()
                ));
            }
            return Ok(ListenAddress(PeerAddress::Unix(PathBuf::from(path))));
        }
        let address: SocketAddr = text.parse().map_err(|_| {
            format!("{text:?} is no address; write \"unix:/path\" or an IP address with a port, as in \"127.0.0.1:10809\"")
        })?;
        if !address.ip().is_loopback() && !allow_remote {
            return Err(format!(
                "{address} can be reached from other machines, and NBD asks nobody for a password; \
                 use 127.0.0.1 or set \"allow_remote = true\""
            ));
        }
        Ok(ListenAddress(PeerAddress::Tcp(address)))
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
