//! A connected stream socket of either world.

use std::io;
use std::net::IpAddr;
use std::os::fd::OwnedFd;
use std::rc::Rc;

use super::PeerAddress;
use super::wire::End;
use crate::{BufMut, Gather, IoError, World, real};

/// A connected stream socket. Clones share it; at most one receive and one send may be under way at a time.
#[derive(Clone)]
pub struct Socket(Kind);

#[derive(Clone)]
enum Kind {
    Real(real::Socket),
    Virtual(Rc<End>),
}

impl Socket {
    pub(super) fn of_kernel(socket: real::Socket) -> Socket {
        Socket(Kind::Real(socket))
    }

    pub(super) fn of_network(end: Rc<End>) -> Socket {
        Socket(Kind::Virtual(end))
    }

    /// Connects. In the real world it blocks the thread while it does, which on loopback and for a client is no loss.
    pub fn connect(world: &World, address: &PeerAddress) -> io::Result<Socket> {
        match world.network() {
            Some(network) => network.connect(world, address).map(Socket::of_network),
            None => real::Socket::connect(world, address).map(Socket::of_kernel),
        }
    }

    /// Connects in a virtual world, whose other end sees this address, as of another machine. Without it, clients come as
    /// through a unix socket.
    ///
    /// # Errors
    /// Where nothing listens at `address`.
    ///
    /// # Panics
    /// In the real world, whose system says where a client is.
    pub fn connect_from(world: &World, host: IpAddr, address: &PeerAddress) -> io::Result<Socket> {
        let network = world.network().expect("a virtual world has a network");
        network.connect_from(world, Some(host), address).map(Socket::of_network)
    }

    /// Two sockets connected with each other.
    pub fn pair(world: &World) -> io::Result<(Socket, Socket)> {
        match world.network() {
            Some(network) => {
                let (near, far) = End::pair(world, &network);
                Ok((Socket::of_network(near), Socket::of_network(far)))
            }
            None => {
                let (near, far) = real::Socket::pair(world)?;
                Ok((Socket::of_kernel(near), Socket::of_kernel(far)))
            }
        }
    }

    /// A connected socket of this world from a descriptor, as another world gave it up.
    ///
    /// # Panics
    /// In a virtual world, which has no descriptors.
    pub fn from_fd(world: &World, fd: OwnedFd) -> Socket {
        assert!(!world.is_virtual(), "a virtual world has no descriptors");
        Socket::of_kernel(real::Socket::from_fd(world, fd))
    }

    /// Gives the socket up, so that another thread's world can take it; none where a clone of it or an operation on
    /// it still exists, and in a virtual world, which is one thread's.
    pub fn into_fd(self) -> Option<OwnedFd> {
        match self.0 {
            Kind::Real(socket) => socket.into_fd(),
            Kind::Virtual(_) => None,
        }
    }

    /// Who is at the other end: an address, or the process where it is on this machine and has none.
    pub fn peer(&self) -> String {
        match &self.0 {
            Kind::Real(socket) => socket.peer(),
            Kind::Virtual(_) => "modelled".to_owned(),
        }
    }

    /// The address of the other end; none where it came through a unix socket.
    pub fn peer_ip(&self) -> Option<IpAddr> {
        match &self.0 {
            Kind::Real(socket) => socket.peer_ip(),
            Kind::Virtual(end) => end.peer_ip(),
        }
    }

    /// Appends what has arrived to `bytes`, at least one byte and at most its spare capacity (which must not be
    /// zero). Zero means that the peer has closed.
    pub async fn receive(&self, bytes: Vec<u8>) -> (Result<usize, IoError>, Vec<u8>) {
        assert!(bytes.capacity() > bytes.len(), "a receive needs room");
        match &self.0 {
            Kind::Real(socket) => socket.receive(bytes).await,
            Kind::Virtual(end) => end.receive(bytes).await,
        }
    }

    /// Fills `buf` from byte `filled` on with what has arrived, at least one byte. Zero means that the peer has
    /// closed.
    pub async fn receive_into(&self, buf: BufMut, filled: usize) -> (Result<usize, IoError>, BufMut) {
        assert!(filled < buf.as_slice().len(), "a receive needs room");
        match &self.0 {
            Kind::Real(socket) => socket.receive_into(buf, filled).await,
            Kind::Virtual(end) => end.receive_into(buf, filled).await,
        }
    }

    /// Sends the whole list and gives it back empty.
    pub async fn send(&self, gather: Box<Gather>) -> (Result<(), IoError>, Box<Gather>) {
        self.send_noting(gather, |_| ()).await
    }

    /// Sends the whole list and gives it back empty; tells `progress` how many bytes the peer's side has taken, each time
    /// that it takes some.
    pub async fn send_noting(
        &self,
        mut gather: Box<Gather>,
        progress: impl Fn(usize),
    ) -> (Result<(), IoError>, Box<Gather>) {
        match &self.0 {
            Kind::Real(socket) => socket.send(gather, progress).await,
            Kind::Virtual(end) => {
                while gather.remaining_bytes() > 0 {
                    match end.send_some(&mut gather).await {
                        Ok(count) => progress(count),
                        Err(error) => return (Err(error), gather),
                    }
                }
                (Ok(()), gather)
            }
        }
    }

    /// Ends both directions; what is under way on it ends too.
    pub fn shutdown(&self) {
        match &self.0 {
            Kind::Real(socket) => socket.shutdown(),
            Kind::Virtual(end) => end.shutdown(),
        }
    }
}
