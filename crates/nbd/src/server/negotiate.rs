//! Drives the handshake over a socket.

use std::rc::Rc;

use tier0_world::Gather;
use tier0_world::net::Socket;

use super::error::ConnectionError;
use super::export::Export;
use crate::protocol::ExportDirectory;
use crate::protocol::handshake::{ServerHandshake, ServerStep, Session};
use crate::protocol::limits::HANDSHAKE_BUFFER_BYTES;

/// What came of a handshake.
pub(super) enum Negotiated<T> {
    /// The client chose an export; `received` is what it has sent since.
    Transmission { export: Rc<Export<T>>, session: Session, received: Vec<u8> },
    /// The client left in good order.
    Aborted,
}

/// Negotiates with whoever connected. `exports` gives the exports as they are at that moment.
pub(super) async fn negotiate<T>(
    socket: &Socket,
    exports: impl Fn() -> Rc<[Rc<Export<T>>]>,
) -> Result<Negotiated<T>, ConnectionError> {
    let mut handshake = ServerHandshake::default();
    let mut received = Vec::with_capacity(4096);
    let mut out = Vec::with_capacity(4096);
    let mut gather = Box::new(Gather::new());
    out.extend(ServerHandshake::greeting());
    loop {
        if !out.is_empty() {
            gather.push_header(&out);
            out.clear();
            let result;
            (result, gather) = socket.send(gather).await;
            result?;
        }
        let exports = exports();
        let (used, step) = handshake.advance(&received, &*exports, &mut out)?;
        received.drain(..used);
        match step {
            ServerStep::Continue => {}
            ServerStep::NeedMore => received = receive_more(socket, received).await?,
            ServerStep::Aborted | ServerStep::Transmission(_) => {
                gather.push_header(&out);
                // A client that aborts need not wait for the answer.
                let (result, _) = socket.send(gather).await;
                let ServerStep::Transmission(session) = step else { return Ok(Negotiated::Aborted) };
                result?;
                debug_assert!(session.export < exports.count());
                let export = exports[session.export].clone();
                return Ok(Negotiated::Transmission { export, session, received });
            }
        }
    }
}

/// Options are small: the buffer grows only for one that claims to be long, and never past the longest allowed.
async fn receive_more(socket: &Socket, mut received: Vec<u8>) -> Result<Vec<u8>, ConnectionError> {
    if received.len() == received.capacity() {
        let room = HANDSHAKE_BUFFER_BYTES.saturating_sub(received.len());
        received.reserve_exact(room.min(received.len()).max(4096));
    }
    let was_empty = received.is_empty();
    let (result, received) = socket.receive(received).await;
    match result? {
        0 if was_empty => Err(ConnectionError::Truncated("the handshake")),
        0 => Err(ConnectionError::Truncated("an option")),
        _ => Ok(received),
    }
}
