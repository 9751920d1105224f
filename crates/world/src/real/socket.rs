//! Stream sockets: unix and TCP.

use std::io;
use std::net::{IpAddr, SocketAddr, TcpListener, TcpStream};
use std::os::fd::{AsFd, FromRawFd, OwnedFd};
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::Path;
use std::rc::Rc;
use std::time::Duration;

use rustix::fs::Mode;
use rustix::net::{
    AddressFamily, SocketAddrUnix, SocketFlags, SocketType, bind, connect, listen, socket_with,
};

use super::Fd;
use super::op::{Op, submit};
use super::retry_while_busy;
use crate::net::PeerAddress;
use crate::{BufMut, Gather, IoError, Payload, World};

/// A listening socket. A unix socket's file is removed when it is dropped.
pub(crate) struct Listener {
    world: World,
    fd: Fd,
    address: PeerAddress,
    /// A unix socket's file: its device and number there.
    file: Option<(u64, u64)>,
}

/// The socket's file at a path.
fn file_of(path: &Path) -> Option<(u64, u64)> {
    let about = std::fs::symlink_metadata(path).ok().filter(|about| about.file_type().is_socket())?;
    Some((about.dev(), about.ino()))
}

impl Listener {
    /// Listens on `address`. A unix socket's file is its owner's alone, and one that no process listens on any more is
    /// replaced; a path with something else is [`io::ErrorKind::AlreadyExists`], an address that stays in use for
    /// seconds [`io::ErrorKind::AddrInUse`].
    pub(crate) fn bind(world: &World, address: &PeerAddress) -> io::Result<Listener> {
        let (fd, address): (OwnedFd, _) = match address {
            PeerAddress::Unix(path) => (patiently(|| bind_unix(path))?.into(), address.clone()),
            PeerAddress::Tcp(wanted) => {
                let listener = patiently(|| TcpListener::bind(wanted))?;
                let bound = listener.local_addr()?;
                (listener.into(), PeerAddress::Tcp(bound))
            }
        };
        let file = match &address {
            PeerAddress::Unix(path) => file_of(path),
            PeerAddress::Tcp(_) => None,
        };
        Ok(Listener { world: world.clone(), fd: Rc::new(fd), address, file })
    }

    /// Where it listens; with the port that the system chose, where port 0 was asked for.
    pub(crate) fn address(&self) -> &PeerAddress {
        &self.address
    }

    /// Takes the next connection.
    pub(crate) async fn accept(&self) -> Result<Socket, IoError> {
        loop {
            match submit(&self.world, &self.fd, Op::Accept, Payload::None).await.0 {
                Ok(fd) => {
                    // SAFETY: accept has just returned this descriptor, and nothing else owns it.
                    let fd = unsafe { OwnedFd::from_raw_fd(fd as i32) };
                    if matches!(self.address, PeerAddress::Tcp(_)) {
                        // Replies are gathered by the sender already; Nagle's algorithm would only delay them.
                        let _ = rustix::net::sockopt::set_tcp_nodelay(&fd, true);
                        keep_alive(&fd);
                    }
                    return Ok(Socket::new(&self.world, fd));
                }
                Err(IoError::Os(libc::EINTR | libc::EAGAIN | libc::ECONNABORTED)) => {}
                Err(error) => return Err(error),
            }
        }
    }
}

impl Drop for Listener {
    fn drop(&mut self) {
        // An accept that is under way in the kernel keeps the socket open, and with it the address, until it ends.
        let _ = rustix::net::shutdown(self.fd.as_fd(), rustix::net::Shutdown::Both);
        if let PeerAddress::Unix(path) = &self.address {
            // Another process may have removed it already, and put something else there, another socket too.
            if self.file.is_some() && file_of(path) == self.file {
                let _ = std::fs::remove_file(path);
            }
        }
    }
}

/// A peer that says nothing for so long is asked whether it is there.
const KEEPALIVE_IDLE: Duration = Duration::from_secs(60);
/// And again so often, at this interval, before it counts as gone: two minutes after its last word.
const KEEPALIVE_TRIES: u32 = 6;
const KEEPALIVE_INTERVAL: Duration = Duration::from_secs(10);

/// Has the kernel find out when the peer's machine is gone. Where it refuses, its own patience of two hours does.
fn keep_alive(fd: &OwnedFd) {
    use rustix::net::sockopt;
    let _ = sockopt::set_tcp_keepidle(fd, KEEPALIVE_IDLE);
    let _ = sockopt::set_tcp_keepintvl(fd, KEEPALIVE_INTERVAL);
    let _ = sockopt::set_tcp_keepcnt(fd, KEEPALIVE_TRIES);
    let _ = sockopt::set_socket_keepalive(fd, true);
}

/// How often an address that is in use is tried: for 3 s.
const BIND_TRIES: u32 = 300;

fn patiently<T>(bind: impl Fn() -> io::Result<T>) -> io::Result<T> {
    retry_while_busy(BIND_TRIES, bind, |error| error.kind() == io::ErrorKind::AddrInUse)
}

/// Connections that wait to be accepted.
const BACKLOG: i32 = 1024;

/// A listener at `path` that only its owner may connect to, from the first moment on.
fn bind_private(path: &Path) -> io::Result<UnixListener> {
    let address = SocketAddrUnix::new(path)?;
    let fd = socket_with(AddressFamily::UNIX, SocketType::STREAM, SocketFlags::CLOEXEC, None)?;
    // Linux gives the file the mode of the socket.
    rustix::fs::fchmod(&fd, Mode::RUSR | Mode::WUSR)?;
    bind(&fd, &address)?;
    listen(&fd, BACKLOG)?;
    Ok(UnixListener::from(fd))
}

fn bind_unix(path: &Path) -> io::Result<UnixListener> {
    match bind_private(path) {
        Err(error) if error.kind() == io::ErrorKind::AddrInUse => {
            if !std::fs::symlink_metadata(path)?.file_type().is_socket() {
                let fact = "the path exists and is not a socket";
                return Err(io::Error::new(io::ErrorKind::AlreadyExists, fact));
            }
            if !remove_deserted(path)? {
                return Err(error);
            }
            bind_private(path)
        }
        result => result,
    }
}

/// Removes a socket that a process has left which is gone; whether it did. A listener does the same, and its thread stands still
/// for the [tries](DESERTED_TRIES) that it takes: who has time before calls this.
///
/// # Errors
/// What the system says of the path.
pub fn remove_deserted(path: &Path) -> io::Result<bool> {
    let is_socket = std::fs::symlink_metadata(path)?.file_type().is_socket();
    if !is_socket || !is_deserted(path)? {
        return Ok(false);
    }
    std::fs::remove_file(path)?;
    Ok(true)
}

/// Another program may have bound its socket and be about to listen: it is asked so often, 10 ms apart.
const DESERTED_TRIES: u32 = 50;

/// Whether no process listens at a socket. Never waits for one that does not accept: its backlog may be full.
fn is_deserted(path: &Path) -> io::Result<bool> {
    // A name that is too long is an error, and nobody's socket.
    SocketAddrUnix::new(path)?;
    let is_refused = |error: &io::Error| error.kind() == io::ErrorKind::ConnectionRefused;
    let asked = retry_while_busy(DESERTED_TRIES, || listens(path), is_refused);
    Ok(asked.is_err_and(|error| is_refused(&error)))
}

/// Ends well where a process listens at a unix socket, whether it takes connections or not. Waits for nothing.
///
/// # Errors
/// What the system says of connecting.
pub fn listens(path: &Path) -> io::Result<()> {
    let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
    let fd = socket_with(AddressFamily::UNIX, SocketType::STREAM, flags, None)?;
    match connect(&fd, &SocketAddrUnix::new(path)?) {
        Ok(()) | Err(rustix::io::Errno::AGAIN) => Ok(()),
        Err(error) => Err(error.into()),
    }
}

/// A connected stream socket. Clones share it; at most one receive and one send may be under way at a time.
#[derive(Clone)]
pub(crate) struct Socket {
    world: World,
    fd: Fd,
}

impl Socket {
    fn new(world: &World, fd: OwnedFd) -> Socket {
        Socket { world: world.clone(), fd: Rc::new(fd) }
    }

    /// Who is at the other end.
    pub(crate) fn peer(&self) -> String {
        let address = rustix::net::getpeername(&self.fd).ok().flatten();
        if let Some(Ok(address)) = address.map(SocketAddr::try_from) {
            return address.to_string();
        }
        match rustix::net::sockopt::socket_peercred(&self.fd) {
            Ok(process) => format!("process {}", process.pid),
            Err(_) => "unknown".to_owned(),
        }
    }

    /// The address of the other end; none where it came through a unix socket.
    pub(crate) fn peer_ip(&self) -> Option<IpAddr> {
        let address = rustix::net::getpeername(&self.fd).ok().flatten()?;
        SocketAddr::try_from(address).ok().map(|address| address.ip())
    }

    /// Connects. It blocks the thread while it does, which on loopback and for a client is no loss.
    pub(crate) fn connect(world: &World, address: &PeerAddress) -> io::Result<Socket> {
        let fd: OwnedFd = match address {
            PeerAddress::Unix(path) => UnixStream::connect(path)?.into(),
            PeerAddress::Tcp(address) => {
                let stream = TcpStream::connect_timeout(address, Duration::from_secs(10))?;
                stream.set_nodelay(true)?;
                stream.into()
            }
        };
        Ok(Socket::new(world, fd))
    }

    /// A connected socket of this world from a descriptor, as another world gave it up.
    pub(crate) fn from_fd(world: &World, fd: OwnedFd) -> Socket {
        Socket::new(world, fd)
    }

    /// Gives the socket up, so that another thread's world can take it; none where a clone of it or an operation on
    /// it still exists.
    pub(crate) fn into_fd(self) -> Option<OwnedFd> {
        Rc::into_inner(self.fd)
    }

    /// Two sockets connected with each other.
    pub(crate) fn pair(world: &World) -> io::Result<(Socket, Socket)> {
        let (a, b) = UnixStream::pair()?;
        Ok((Socket::new(world, a.into()), Socket::new(world, b.into())))
    }

    /// Appends what has arrived to `bytes`, at least one byte and at most its spare capacity (which must not be
    /// zero). Zero means that the peer has closed.
    pub(crate) async fn receive(&self, bytes: Vec<u8>) -> (Result<usize, IoError>, Vec<u8>) {
        assert!(bytes.capacity() > bytes.len(), "a receive needs room");
        let (outcome, payload) = self.run(Op::Receive { skip: 0 }, Payload::Bytes(bytes)).await;
        let mut bytes = payload.into_bytes();
        if let Ok(count) = outcome {
            // SAFETY: the kernel has written `count` bytes into the spare capacity, which starts at len.
            unsafe { bytes.set_len(bytes.len() + count) }
        }
        (outcome, bytes)
    }

    /// Fills `buf` from byte `filled` on with what has arrived, at least one byte. Zero means that the peer has
    /// closed.
    pub(crate) async fn receive_into(&self, buf: BufMut, filled: usize) -> (Result<usize, IoError>, BufMut) {
        assert!(filled < buf.as_slice().len(), "a receive needs room");
        let (outcome, payload) = self.run(Op::Receive { skip: filled }, Payload::Read(buf)).await;
        (outcome, payload.into_read())
    }

    /// Sends the whole list and gives it back empty; tells `progress` of each part that the kernel takes.
    pub(crate) async fn send(
        &self,
        mut gather: Box<Gather>,
        progress: impl Fn(usize),
    ) -> (Result<(), IoError>, Box<Gather>) {
        while gather.remaining_bytes() > 0 {
            let (outcome, payload) = self.run(Op::Send, Payload::Gather(gather)).await;
            gather = payload.into_gather();
            match outcome {
                Ok(count) => {
                    gather.advance(count);
                    progress(count);
                }
                Err(error) => return (Err(error), gather),
            }
        }
        (Ok(()), gather)
    }

    /// Ends both directions; what is under way on it ends too.
    pub(crate) fn shutdown(&self) {
        // A peer that is gone already cannot be shut down, which is the goal.
        let _ = rustix::net::shutdown(self.fd.as_fd(), rustix::net::Shutdown::Both);
    }

    async fn run(&self, op: Op, mut payload: Payload) -> (Result<usize, IoError>, Payload) {
        loop {
            let outcome;
            (outcome, payload) = submit(&self.world, &self.fd, op.clone(), payload).await;
            match outcome {
                Err(IoError::Os(libc::EINTR | libc::EAGAIN)) => {}
                outcome => return (outcome.map(|count| count as usize), payload),
            }
        }
    }
}

/// Waits until `fd` has something to read (a signal's pipe, say).
pub async fn readable(world: &World, fd: &Fd) -> Result<(), IoError> {
    submit(world, fd, Op::Readable, Payload::None).await.0.map(|_| ())
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc::channel;

    use super::*;

    /// Far longer than a socket is asked.
    const LONG: Duration = Duration::from_secs(20);

    /// A socket that is bound, and whose process does not listen yet.
    fn bound(path: &Path) -> OwnedFd {
        let fd = socket_with(AddressFamily::UNIX, SocketType::STREAM, SocketFlags::CLOEXEC, None);
        let fd = fd.expect("a socket");
        bind(&fd, &SocketAddrUnix::new(path).expect("a short path")).expect("bind");
        fd
    }

    /// A server asked such a socket with a connect that waits, and hung.
    #[test]
    #[expect(clippy::disallowed_methods, reason = "what hangs must not hang the test")]
    fn a_socket_whose_backlog_is_full_is_not_deserted() {
        let directory = tempfile::tempdir().expect("a directory");
        let path = directory.path().join("socket");
        let listener = bound(&path);
        listen(&listener, 0).expect("listen");
        let address = SocketAddrUnix::new(&path).expect("a short path");
        let mut waiting = Vec::new();
        loop {
            let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
            let fd = socket_with(AddressFamily::UNIX, SocketType::STREAM, flags, None).expect("a socket");
            match connect(&fd, &address) {
                Ok(()) => waiting.push(fd),
                Err(error) => {
                    assert_eq!(error, rustix::io::Errno::AGAIN);
                    break;
                }
            }
        }
        let (tell, told) = channel();
        std::thread::spawn(move || tell.send(is_deserted(&path).expect("it is asked")));
        assert_eq!(told.recv_timeout(LONG), Ok(false));
    }

    #[test]
    #[expect(clippy::disallowed_methods, reason = "the owner is another process's thread, so to speak")]
    fn a_socket_whose_owner_is_about_to_listen_is_not_deserted() {
        let directory = tempfile::tempdir().expect("a directory");
        let path = directory.path().join("socket");
        let fd = bound(&path);
        let owner = std::thread::spawn(move || {
            std::thread::sleep(Duration::from_millis(100));
            listen(&fd, BACKLOG).expect("listen");
            fd
        });
        assert!(!is_deserted(&path).expect("it is asked"));
        drop(owner.join().expect("it listens"));
        assert!(is_deserted(&path).expect("it is asked"), "its owner has gone");
    }

    #[test]
    fn a_socket_at_which_nobody_ever_listens_is_deserted() {
        let directory = tempfile::tempdir().expect("a directory");
        let path = directory.path().join("socket");
        let _bound = bound(&path);
        assert!(is_deserted(&path).expect("it is asked"));
    }
}
