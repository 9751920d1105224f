//! One connection, from its greeting to its end.

use std::pin::pin;
use std::rc::Rc;

use futures_util::future::{Either, select};
use tier0_block::BlockTarget;
use tier0_target::{Channel, Connection, InUse};

use super::error::ConnectionError;
use super::negotiate::{Negotiated, negotiate};
use super::options::ServerOptions;
use super::reader::Reader;
use crate::protocol::ExportInfo;
use crate::protocol::handshake::Session;

/// What the tasks of one connection in transmission share.
pub(super) struct Client<T> {
    pub(super) channel: Rc<Channel>,
    pub(super) target: InUse<T>,
    /// What the client was told of it.
    pub(super) info: ExportInfo,
    pub(super) session: Session,
}

/// Serves a connection until either side is done with it.
pub(super) async fn serve<T: BlockTarget + 'static>(
    connection: Connection<T>,
    options: ServerOptions,
) -> Result<(), Box<dyn std::error::Error>> {
    match handshake(&connection, &options).await? {
        Negotiated::Transmission { export, info, session, received } => {
            let target = connection.choose(&export);
            let channel = connection.channel().clone();
            let client = Rc::new(Client { channel, target, info, session });
            let reading = async { Ok(Reader::new(&client, &options).read_requests(received).await?) };
            connection.transmit(reading).await
        }
        Negotiated::Aborted => Ok(()),
    }
}

async fn handshake<T: BlockTarget + 'static>(
    connection: &Connection<T>,
    options: &ServerOptions,
) -> Result<Negotiated<T>, ConnectionError> {
    let late = connection.world().sleep(options.handshake_timeout);
    let stopped = pin!(connection.stopped());
    let interrupted = select(late, stopped);
    match select(pin!(negotiate(connection, options.payload_bytes_max)), interrupted).await {
        Either::Left((negotiated, _)) => negotiated,
        Either::Right((Either::Left(_), _)) => {
            Err(ConnectionError::HandshakeTimeout(options.handshake_timeout))
        }
        Either::Right((Either::Right(_), _)) => Ok(Negotiated::Aborted),
    }
}
