//! What stands against listening at an address, found before anything is written: a start that is refused has changed
//! nothing then, and `tier0 check` says the same.
//!
//! Another process may still take an address between this look and the bind, which fails then as the system says.

use std::io::{self, ErrorKind};
use std::net::SocketAddr;
use std::os::unix::fs::FileTypeExt;
use std::path::Path;

use rustix::net::sockopt::set_socket_reuseaddr;
use rustix::net::{AddressFamily, SocketFlags, SocketType, bind, socket_with};
use tier0_description::ListenAddress;
use tier0_world::net::PeerAddress;
use tier0_world::real::{listens, remove_deserted, retry_while_busy};

use crate::history::takes_files;

/// How often an address that is in use is tried, 10 ms apart: a killed server's is, while the kernel winds it up.
const TAKEN_TRIES: u32 = 300;

/// Whether an address that is in use is waited for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Patience {
    /// A server that was killed a moment ago may have it.
    Start,
    /// It is looked at once.
    Look,
}

impl Patience {
    fn tries(self) -> u32 {
        match self {
            Patience::Start => TAKEN_TRIES,
            Patience::Look => 1,
        }
    }
}

/// That two of the addresses of a server, the control socket's included, are one.
pub(crate) fn conflict(field: &str, listen: &[ListenAddress], control: Option<&Path>) -> Option<String> {
    let control = control.map(|path| PeerAddress::Unix(path.to_owned()));
    let all: Vec<&PeerAddress> = listen.iter().map(|address| &address.0).collect();
    let collides = |(number, address): (usize, &&PeerAddress)| {
        let other = all[..number].iter().copied().chain(&control).find(|other| are_one(address, other))?;
        Some(match Some(other) == control.as_ref() {
            true => format!(
                "{field}: {address} is the control socket's path (array.control); choose another address"
            ),
            false => format!("{field}: {address} and {other} overlap; remove one of them"),
        })
    };
    all.iter().enumerate().find_map(collides)
}

/// Whether who listens at one address keeps others from the other one.
fn are_one(one: &PeerAddress, other: &PeerAddress) -> bool {
    match (one, other) {
        (PeerAddress::Unix(one), PeerAddress::Unix(other)) => {
            let plain = |path: &Path| {
                let directory = path.parent().filter(|parent| !parent.as_os_str().is_empty());
                let directory = directory.unwrap_or(Path::new(".")).canonicalize();
                directory.map_or(path.to_owned(), |at| at.join(path.file_name().unwrap_or_default()))
            };
            plain(one) == plain(other)
        }
        (PeerAddress::Tcp(one), PeerAddress::Tcp(other)) => {
            // The kernel has a listener at all addresses of version 6 at those of version 4, too.
            let has_all = |this: &SocketAddr, that: &SocketAddr| {
                this.ip().is_unspecified() && (this.is_ipv6() || that.is_ipv4())
            };
            one.port() == other.port()
                && one.port() != 0
                && (one.ip() == other.ip() || has_all(one, other) || has_all(other, one))
        }
        _ => false,
    }
}

/// What stands against listening at unix sockets, whoever listens there now: what kind of error it is, the fact and the
/// remedy. `field` is where the addresses stand.
pub(crate) fn unusable(field: &str, addresses: &[ListenAddress]) -> Vec<(ErrorKind, String)> {
    unix_paths(addresses).filter_map(|path| unusable_path(field, path)).collect()
}

fn unix_paths(addresses: &[ListenAddress]) -> impl Iterator<Item = &Path> {
    addresses.iter().filter_map(|address| match &address.0 {
        PeerAddress::Unix(path) => Some(path.as_path()),
        PeerAddress::Tcp(_) => None,
    })
}

fn unusable_path(field: &str, path: &Path) -> Option<(ErrorKind, String)> {
    if let Some(directory) = absent_directory(path) {
        let text = format!(
            "{field}: cannot listen: the unix socket's directory {directory:?} does not exist; create it, or \
             correct the address"
        );
        return Some((ErrorKind::NotFound, text));
    }
    if is_other_file(path) {
        let text = format!(
            "{field}: cannot listen: {path:?} exists and is not a socket; remove it, or correct the address"
        );
        return Some((ErrorKind::AlreadyExists, text));
    }
    closed_directory(field, path)
}

/// The first of these addresses that another process listens at, or that this machine does not have: the fact and the
/// remedy.
pub(crate) fn taken(field: &str, addresses: &[ListenAddress], patience: Patience) -> Option<String> {
    addresses.iter().find_map(|address| {
        let error = try_out(&address.0, patience).err()?;
        let at = &address.0;
        Some(match error.kind() {
            ErrorKind::AddrInUse => format!(
                "{field}: cannot listen on {at}: the address is in use by another process; stop that \
                 process, or choose another address"
            ),
            _ => format!("{field}: cannot listen on {at}: {error}; choose another address"),
        })
    })
}

/// Removes the unix sockets that a killed server has left.
pub(crate) fn clear(listen: &[ListenAddress], control: Option<&Path>) {
    for path in unix_paths(listen).chain(control) {
        // What stands against it the bind says.
        let _ = remove_deserted(path);
    }
}

/// Whether another process listens at a control socket.
pub(crate) fn is_control_taken(path: &Path, patience: Patience) -> bool {
    try_out(&PeerAddress::Unix(path.to_owned()), patience).is_err()
}

fn try_out(address: &PeerAddress, patience: Patience) -> io::Result<()> {
    let once = || match address {
        PeerAddress::Unix(path) => match listens(path) {
            Ok(()) => Err(ErrorKind::AddrInUse.into()),
            // What else there is to say of the path, the bind says.
            Err(_) => Ok(()),
        },
        PeerAddress::Tcp(address) => bound(address),
    };
    retry_while_busy(patience.tries(), once, |error| error.kind() == ErrorKind::AddrInUse)
}

/// Takes a TCP address as a server does, without listening there: no client notices.
fn bound(address: &SocketAddr) -> io::Result<()> {
    let family = if address.is_ipv4() { AddressFamily::INET } else { AddressFamily::INET6 };
    let fd = socket_with(family, SocketType::STREAM, SocketFlags::CLOEXEC, None)?;
    set_socket_reuseaddr(&fd, true)?;
    Ok(bind(&fd, address)?)
}

/// That no socket can be made at a path, because its directory takes no files, as one of a file system that is read-only.
pub(crate) fn closed_directory(field: &str, socket: &Path) -> Option<(ErrorKind, String)> {
    let directory = socket.parent().filter(|directory| directory.is_dir())?;
    let error = takes_files(directory).err()?;
    let text = format!(
        "{field}: cannot create a socket in the directory {directory:?}: {error}; make it writable, or \
         choose another path"
    );
    Some((error.kind(), text))
}

/// Whether what lies at a socket's path is none.
pub(crate) fn is_other_file(socket: &Path) -> bool {
    std::fs::symlink_metadata(socket).is_ok_and(|about| !about.file_type().is_socket())
}

/// The directory of a socket, where it is not there.
pub(crate) fn absent_directory(socket: &Path) -> Option<&Path> {
    socket.parent().filter(|directory| !directory.as_os_str().is_empty() && !directory.is_dir())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_that_keep_each_other_out_are_one() {
        let directory = tempfile::tempdir().expect("a directory");
        let socket = directory.path().join("s");
        let again = directory.path().join(".").join("s");
        let tcp = |text: &str| ListenAddress(PeerAddress::Tcp(text.parse().expect("an address")));
        let unix = |path: &Path| ListenAddress(PeerAddress::Unix(path.to_owned()));
        let said = |listen: &[ListenAddress], control| conflict("f", listen, control).unwrap_or_default();
        for (one, other) in [
            ("127.0.0.1:1", "127.0.0.1:1"),
            ("0.0.0.0:1", "127.0.0.1:1"),
            ("127.0.0.1:1", "[::]:1"),
            ("[::1]:1", "[::]:1"),
        ] {
            assert!(said(&[tcp(one), tcp(other)], None).contains("overlap"), "{one} {other}");
        }
        for (one, other) in [
            ("127.0.0.1:1", "127.0.0.1:2"),
            ("127.0.0.1:0", "127.0.0.1:0"),
            ("127.0.0.1:1", "127.0.0.2:1"),
            ("0.0.0.0:1", "[::1]:1"),
        ] {
            assert_eq!(said(&[tcp(one), tcp(other)], None), "", "{one} {other}");
        }
        assert!(said(&[unix(&socket), unix(&again)], None).contains("overlap"));
        assert!(said(&[tcp("127.0.0.1:1"), unix(&again)], Some(&socket)).contains("control socket"));
        assert_eq!(said(&[unix(&socket)], Some(&directory.path().join("c"))), "");
    }

    #[test]
    fn an_address_is_taken_as_long_as_somebody_listens_there() {
        let directory = tempfile::tempdir().expect("a directory");
        let path = directory.path().join("s");
        let unix = ListenAddress(PeerAddress::Unix(path.clone()));
        let tcp = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
        let port = ListenAddress(PeerAddress::Tcp(tcp.local_addr().expect("an address")));
        let is_taken =
            |address: &ListenAddress| taken("f", std::slice::from_ref(address), Patience::Look).is_some();
        assert!(is_taken(&port) && !is_taken(&unix));
        let listener = std::os::unix::net::UnixListener::bind(&path).expect("a socket");
        assert!(is_taken(&unix));
        drop((tcp, listener));
        assert!(!is_taken(&port) && !is_taken(&unix), "what a dead server left is free");
    }
}
