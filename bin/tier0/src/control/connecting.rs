//! Connecting to a unix socket without waiting for ever: a process that listens and takes no connection has its backlog
//! full some day, and a plain connect waits then as long as that lasts.

use std::io;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::Duration;

use rustix::io::retry_on_intr;
use rustix::net::sockopt::{Timeout, set_socket_timeout};
use rustix::net::{AddressFamily, SocketAddrUnix, SocketFlags, SocketType, connect, socket_with};

/// Connects.
///
/// # Errors
/// What the system says; [`io::ErrorKind::WouldBlock`] where who listens has not taken connections for `limit`.
pub(super) fn connected(path: &Path, limit: Duration) -> io::Result<UnixStream> {
    let fd = socket_with(AddressFamily::UNIX, SocketType::STREAM, SocketFlags::CLOEXEC, None)?;
    // Linux has a connect wait for a place in the backlog as long as a send may take (af_unix.c, unix_stream_connect).
    set_socket_timeout(&fd, Timeout::Send, Some(limit))?;
    let address = SocketAddrUnix::new(path)?;
    retry_on_intr(|| connect(&fd, &address))?;
    Ok(fd.into())
}

#[cfg(test)]
mod tests {
    use rustix::net::{bind, listen};
    use tier0_world::real::listens;

    use super::*;

    #[test]
    fn a_full_backlog_is_waited_for_and_not_for_ever() {
        let directory = tempfile::tempdir().expect("a directory");
        let path = directory.path().join("s");
        let limit = Duration::from_millis(20);
        assert_eq!(
            connected(&path, limit).map_err(|error| error.kind()).err(),
            Some(io::ErrorKind::NotFound)
        );
        let listener = socket_with(AddressFamily::UNIX, SocketType::STREAM, SocketFlags::CLOEXEC, None);
        let listener = listener.expect("a socket");
        bind(&listener, &SocketAddrUnix::new(&path).expect("a short path")).expect("bind");
        let refused = listens(&path).expect_err("it does not listen yet");
        assert_eq!(refused.kind(), io::ErrorKind::ConnectionRefused);
        listen(&listener, 0).expect("listen");
        let mut waiting = Vec::new();
        let full = loop {
            match connected(&path, limit) {
                Ok(stream) => waiting.push(stream),
                Err(error) => break error,
            }
        };
        assert_eq!(full.kind(), io::ErrorKind::WouldBlock);
        assert!(!waiting.is_empty() && listens(&path).is_ok(), "it listens all the same");
    }
}
