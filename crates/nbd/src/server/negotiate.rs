//! Drives the handshake over a socket.

use std::rc::Rc;

use tier0_block::BlockTarget;
use tier0_target::{Channel, Connection, Export};
use tier0_world::Gather;

use super::error::ConnectionError;
use super::exports::Directory;
use crate::protocol::ExportInfo;
use crate::protocol::handshake::{ServerHandshake, ServerStep, Session};
use crate::protocol::limits::HANDSHAKE_BUFFER_BYTES;

/// What came of a handshake.
pub(super) enum Negotiated<T> {
    /// The client chose an export; `received` is what it has sent since.
    Transmission { export: Rc<Export<T>>, info: ExportInfo, session: Session, received: Vec<u8> },
    /// The client left in good order.
    Aborted,
}

/// Negotiates with a client that has connected.
pub(super) async fn negotiate<T: BlockTarget + 'static>(
    connection: &Connection<T>,
    payload_bytes_max: u32,
) -> Result<Negotiated<T>, ConnectionError> {
    let channel = connection.channel();
    let mut handshake = ServerHandshake::default();
    let mut received = Vec::with_capacity(4096);
    let mut out = Vec::with_capacity(4096);
    let mut gather = Box::new(Gather::new());
    let mut directory = Directory::new(connection.exports(), payload_bytes_max);
    out.extend(ServerHandshake::greeting());
    loop {
        if !out.is_empty() {
            gather.push_header(&out);
            out.clear();
            let result;
            (result, gather) = channel.send(gather).await;
            result?;
        }
        let exports = connection.exports();
        if !directory.is_of(&exports) {
            directory = Directory::new(exports, payload_bytes_max);
        }
        let (used, step) = handshake.advance(&received, &directory, &mut out)?;
        received.drain(..used);
        match step {
            ServerStep::Continue => {}
            ServerStep::NeedMore => received = receive_more(channel, received).await?,
            ServerStep::Aborted | ServerStep::Transmission(_) => {
                gather.push_header(&out);
                // A client that aborts need not wait for the answer.
                let (result, _) = channel.send(gather).await;
                let ServerStep::Transmission(session) = step else { return Ok(Negotiated::Aborted) };
                result?;
                let (info, export) = directory.take(session.export);
                return Ok(Negotiated::Transmission { export, info, session, received });
            }
        }
    }
}

/// Options are small: the buffer grows only for one that claims to be long, and never past the longest allowed.
async fn receive_more(channel: &Channel, mut received: Vec<u8>) -> Result<Vec<u8>, ConnectionError> {
    if received.len() == received.capacity() {
        let room = HANDSHAKE_BUFFER_BYTES.saturating_sub(received.len());
        received.reserve_exact(room.min(received.len()).max(4096));
    }
    let was_empty = received.is_empty();
    let (result, received) = channel.receive(received, false).await;
    match result? {
        0 if was_empty => Err(ConnectionError::Truncated("the handshake")),
        0 => Err(ConnectionError::Truncated("an option")),
        _ => Ok(received),
    }
}
