//! One connection, from its greeting to its end.

use std::pin::pin;
use std::rc::Rc;

use futures_util::future::{Either, select};
use tier0_drive::BlockTarget;
use tier0_world::World;
use tier0_world::net::Socket;

use super::error::ConnectionError;
use super::export::Export;
use super::flow::Flow;
use super::negotiate::{Negotiated, negotiate};
use super::options::ServerOptions;
use super::reader::read_requests;
use crate::outbox::Outbox;
use crate::protocol::handshake::Session;
use crate::stop::Stop;

/// What the tasks of one connection in transmission share.
pub(super) struct Connection<T> {
    pub(super) world: World,
    pub(super) socket: Socket,
    pub(super) export: Rc<Export<T>>,
    pub(super) session: Session,
    pub(super) flow: Flow,
    pub(super) outbox: Outbox,
}

/// Serves `socket` until either side is done with it. `stop` ends it from outside: what is in flight is answered.
/// `exports` gives the exports as they are when asked; `chosen` is told which one the client uses.
pub(super) async fn run<T: BlockTarget + 'static>(
    world: &World,
    socket: Socket,
    options: &ServerOptions,
    exports: impl Fn() -> Rc<[Rc<Export<T>>]>,
    stop: &Stop,
    chosen: impl FnOnce(&Rc<Export<T>>),
) -> Result<(), ConnectionError> {
    let ended = match handshake(world, &socket, options, exports, stop).await {
        Ok(Negotiated::Transmission { export, session, received }) => {
            chosen(&export);
            let flow = Flow::new(options.in_flight_requests_max, options.in_flight_bytes_max);
            let (world, socket) = (world.clone(), socket.clone());
            let connection = Connection { world, socket, export, session, flow, outbox: Outbox::new() };
            transmission(Rc::new(connection), received, options, stop).await
        }
        Ok(Negotiated::Aborted) => Ok(()),
        Err(reason) => Err(reason),
    };
    socket.shutdown();
    ended
}

async fn handshake<T>(
    world: &World,
    socket: &Socket,
    options: &ServerOptions,
    exports: impl Fn() -> Rc<[Rc<Export<T>>]>,
    stop: &Stop,
) -> Result<Negotiated<T>, ConnectionError> {
    let stopped = pin!(stop.requested());
    let interrupted = select(world.sleep(options.handshake_timeout), stopped);
    match select(pin!(negotiate(socket, exports)), interrupted).await {
        Either::Left((negotiated, _)) => negotiated,
        Either::Right((Either::Left(_), _)) => {
            Err(ConnectionError::HandshakeTimeout(options.handshake_timeout))
        }
        Either::Right((Either::Right(_), _)) => Ok(Negotiated::Aborted),
    }
}

async fn transmission<T: BlockTarget + 'static>(
    connection: Rc<Connection<T>>,
    received: Vec<u8>,
    options: &ServerOptions,
    stop: &Stop,
) -> Result<(), ConnectionError> {
    let writer = connection.world.spawn({
        let connection = connection.clone();
        async move {
            let sent = |requests, bytes| connection.flow.release(requests, bytes);
            connection.outbox.send_all(&connection.socket, sent).await
        }
    });
    let mut ended = {
        let reading = pin!(read_requests(&connection, received, options));
        match select(reading, pin!(stop.requested())).await {
            Either::Left((ended, _)) => ended,
            Either::Right(_) => Ok(()),
        }
    };
    let patience = connection.world.sleep(options.drain_timeout);
    if let Either::Right(_) = select(pin!(connection.flow.drained()), patience).await {
        connection.socket.shutdown();
        connection.flow.drained().await;
        ended = ended.and(Err(ConnectionError::RepliesNotTaken));
    }
    connection.outbox.close();
    writer.await;
    ended
}
