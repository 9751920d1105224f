//! Connecting and negotiating. A connection that does not come to be used is closed, whatever becomes of the attempt.

use std::net::ToSocketAddrs;
use std::pin::pin;

use futures_util::future::{Either, select};
use tier0_units::Nanos;
use tier0_world::net::{PeerAddress, Socket};
use tier0_world::{Gather, World};

use super::error::ClientError;
use super::options::ClientOptions;
use crate::protocol::handshake::{ClientGoal, ClientHandshake, ClientStep, ListedExport, Negotiated};
use crate::protocol::limits::HANDSHAKE_BUFFER_BYTES;
use crate::protocol::{NbdAddress, NbdUri};

/// The exports that the server at `address` lists.
///
/// # Errors
/// Where it cannot be reached, refuses, or does not speak NBD.
pub async fn list(world: &World, address: &NbdAddress) -> Result<Vec<ListedExport>, ClientError> {
    let timeout = ClientOptions::default().handshake_timeout;
    let opened = Opened::at(world, address)?;
    let (ended, _) = within(world, timeout, negotiate(opened.socket(), ClientGoal::List)).await?;
    match ended {
        End::Listed(listed) => Ok(listed),
        End::Ready(_) => unreachable!("a list was asked for"),
    }
}

/// A connection in transmission, on which the caller speaks for itself, and what the server has sent since the handshake.
///
/// # Errors
/// Where the server cannot be reached, refuses, or does not speak NBD.
pub async fn enter(
    world: &World,
    uri: &NbdUri,
    options: &ClientOptions,
) -> Result<(Socket, Negotiated, Vec<u8>), ClientError> {
    let goal = ClientGoal::Go {
        export: uri.export.clone(),
        structured_replies: options.structured_replies,
        block_status: options.block_status,
    };
    let opened = Opened::at(world, &uri.address)?;
    let (ended, received) =
        within(world, options.handshake_timeout, negotiate(opened.socket(), goal)).await?;
    match ended {
        End::Ready(negotiated) => Ok((opened.keep(), negotiated, received)),
        End::Listed(_) => unreachable!("an export was asked for"),
    }
}

/// A connection that is not entered yet. Dropped, it is shut down: a receive that is under way in the kernel would keep it
/// open otherwise.
struct Opened(Option<Socket>);

impl Opened {
    fn at(world: &World, address: &NbdAddress) -> Result<Opened, ClientError> {
        open(world, address).map(|socket| Opened(Some(socket)))
    }

    fn socket(&self) -> &Socket {
        self.0.as_ref().expect("it is there until it is kept")
    }

    fn keep(mut self) -> Socket {
        self.0.take().expect("it is there until it is kept")
    }
}

impl Drop for Opened {
    fn drop(&mut self) {
        self.0.iter().for_each(Socket::shutdown);
    }
}

fn open(world: &World, address: &NbdAddress) -> Result<Socket, ClientError> {
    let mut failure = std::io::Error::from(std::io::ErrorKind::AddrNotAvailable);
    for candidate in candidates(address)? {
        match Socket::connect(world, &candidate) {
            Ok(socket) => return Ok(socket),
            Err(error) => failure = error,
        }
    }
    let address = match address {
        NbdAddress::Unix(path) => path.display().to_string(),
        NbdAddress::Tcp { host, port } => format!("{host} port {port}"),
    };
    Err(ClientError::Connect { address, source: failure })
}

/// A host may have several addresses; they are tried in the resolver's order.
fn candidates(address: &NbdAddress) -> Result<Vec<PeerAddress>, ClientError> {
    match address {
        NbdAddress::Unix(path) => Ok(vec![PeerAddress::Unix(path.clone())]),
        NbdAddress::Tcp { host, port } => match (host.as_str(), *port).to_socket_addrs() {
            Ok(addresses) => Ok(addresses.map(PeerAddress::Tcp).collect()),
            Err(source) => Err(ClientError::Resolve { host: host.clone(), source }),
        },
    }
}

async fn within<R>(
    world: &World,
    timeout: Nanos,
    future: impl Future<Output = Result<R, ClientError>>,
) -> Result<R, ClientError> {
    match select(pin!(future), world.sleep(timeout)).await {
        Either::Left((result, _)) => result,
        Either::Right(_) => Err(ClientError::Timeout(timeout)),
    }
}

enum End {
    Ready(Negotiated),
    Listed(Vec<ListedExport>),
}

async fn negotiate(socket: &Socket, goal: ClientGoal) -> Result<(End, Vec<u8>), ClientError> {
    let mut handshake = ClientHandshake::new(goal);
    let mut received = Vec::with_capacity(HANDSHAKE_BUFFER_BYTES);
    let (mut out, mut gather) = (Vec::new(), Box::new(Gather::new()));
    loop {
        let (used, step) = handshake.advance(&received, &mut out)?;
        received.drain(..used);
        if !out.is_empty() {
            gather.push_header(&out);
            out.clear();
            let result;
            (result, gather) = socket.send(gather).await;
            result?;
        }
        match step {
            ClientStep::Continue => {}
            ClientStep::Ready(negotiated) => return Ok((End::Ready(negotiated), received)),
            ClientStep::Listed(listed) => return Ok((End::Listed(listed), received)),
            ClientStep::Refused(refusal) => return Err(refusal.into()),
            ClientStep::NeedMore => {
                let result;
                (result, received) = socket.receive(received).await;
                if result? == 0 {
                    return Err(ClientError::Closed);
                }
            }
        }
    }
}
