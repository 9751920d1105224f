//! A listening socket of either world.

use std::io;
use std::rc::Rc;

use super::network::ListenQueue;
use super::{Network, PeerAddress, Socket};
use crate::{IoError, World, real};

/// A listening socket. Its address is free again when it is dropped, and so is a unix socket's file.
pub struct Listener(Kind);

enum Kind {
    Real(real::Listener),
    Virtual { network: Network, address: PeerAddress, queue: Rc<ListenQueue> },
}

impl Listener {
    /// Listens on `address`. A unix socket's file is its owner's alone, and one that no process listens on any more is
    /// replaced; a path with something else is [`io::ErrorKind::AlreadyExists`], an address that stays in use for
    /// seconds [`io::ErrorKind::AddrInUse`].
    pub fn bind(world: &World, address: &PeerAddress) -> io::Result<Listener> {
        match world.network() {
            Some(network) => {
                let (address, queue) = network.listen(address)?;
                Ok(Listener(Kind::Virtual { network, address, queue }))
            }
            None => real::Listener::bind(world, address).map(|listener| Listener(Kind::Real(listener))),
        }
    }

    /// Where it listens; with the port that the system chose, where port 0 was asked for.
    pub fn address(&self) -> &PeerAddress {
        match &self.0 {
            Kind::Real(listener) => listener.address(),
            Kind::Virtual { address, .. } => address,
        }
    }

    /// Takes the next connection.
    pub async fn accept(&self) -> Result<Socket, IoError> {
        match &self.0 {
            Kind::Real(listener) => listener.accept().await.map(Socket::of_kernel),
            Kind::Virtual { queue, .. } => loop {
                let arrived = queue.arrived.borrow_mut().pop_front();
                match arrived {
                    Some(end) => return Ok(Socket::of_network(end)),
                    None => queue.arrival.wait().await,
                }
            },
        }
    }
}

impl Drop for Listener {
    fn drop(&mut self) {
        if let Kind::Virtual { network, address, .. } = &self.0 {
            network.close(address);
        }
    }
}
