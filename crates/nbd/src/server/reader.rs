//! Reads requests off a connection and starts them.

use std::rc::Rc;

use tier0_drive::BlockTarget;
use tier0_units::SECTOR_BYTES;
use tier0_world::BufMut;

use super::connection::Connection;
use super::error::ConnectionError;
use super::options::ServerOptions;
use super::owed::Owed;
use super::request;
use crate::protocol::Errno;
use crate::protocol::transmission::{Command, Request, RequestEvent, RequestStream};

/// Payload of which at least this many bytes are still to come is received straight into its buffer; less is worth
/// a copy, because the same receive may bring the requests behind it.
const DIRECT_BYTES_MIN: u32 = 64 << 10;

/// What a request without payload counts for in the flow, in bytes.
const SMALL_REQUEST_BYTES: u64 = 512;

/// A write whose payload is arriving.
struct Incoming<T> {
    owed: Owed<T>,
    outcome: Outcome,
}

/// What becomes of a write once its payload is there.
enum Outcome {
    Write { offset: u64, fua: bool, buf: BufMut, filled: usize },
    Refused(Errno),
}

impl<T: BlockTarget + 'static> Incoming<T> {
    fn take(&mut self, payload: &[u8]) {
        if let Outcome::Write { buf, filled, .. } = &mut self.outcome {
            buf.as_mut_slice()[*filled..*filled + payload.len()].copy_from_slice(payload);
            *filled += payload.len();
        }
    }

    /// Starts the write, or answers the refusal.
    fn finish(self) {
        match self.outcome {
            Outcome::Write { offset, fua, buf, .. } => {
                request::spawn_write(self.owed, offset, buf.freeze(), fua)
            }
            Outcome::Refused(errno) => refuse(self.owed, errno),
        }
    }

    fn is_refused(&self) -> bool {
        matches!(self.outcome, Outcome::Refused(_))
    }
}

/// Reads until the client disconnects or breaks the protocol. `received` is what came with the handshake.
pub(super) async fn read_requests<T: BlockTarget + 'static>(
    connection: &Rc<Connection<T>>,
    received: Vec<u8>,
    options: &ServerOptions,
) -> Result<(), ConnectionError> {
    let mut stream = RequestStream::new(options.payload_bytes_max);
    let mut bytes = Vec::with_capacity(options.receive_buffer_bytes.max(received.len() + 4096));
    bytes.extend(received);
    let mut incoming: Option<Incoming<T>> = None;
    loop {
        let mut input = &bytes[..];
        while let Some(event) = stream.next(&mut input)? {
            match event {
                RequestEvent::Disconnect => return Ok(()),
                RequestEvent::Request(request) => incoming = start(connection, &request).await,
                RequestEvent::Payload(payload) => {
                    incoming.as_mut().expect("payload belongs to a write").take(payload)
                }
            }
            if stream.payload_bytes_left() == 0
                && let Some(write) = incoming.take()
            {
                write.finish();
            }
        }
        let used = bytes.len() - input.len();
        bytes.drain(..used);
        if stream.payload_bytes_left() >= DIRECT_BYTES_MIN
            && let Some(write) = incoming.take_if(|write| !write.is_refused())
        {
            receive_payload(connection, &mut stream, write).await?;
            continue;
        }
        let result;
        (result, bytes) = connection.socket.receive(bytes).await;
        if result? == 0 {
            return end_of_input(bytes.is_empty() && incoming.is_none());
        }
    }
}

/// A client that is gone without a disconnect request is no error between requests; within one it is.
fn end_of_input(between_requests: bool) -> Result<(), ConnectionError> {
    if between_requests { Ok(()) } else { Err(ConnectionError::Truncated("a request")) }
}

/// Admits a request and starts it. A write comes back, to be finished once its payload is there.
async fn start<T: BlockTarget + 'static>(
    connection: &Rc<Connection<T>>,
    request: &Request,
) -> Option<Incoming<T>> {
    let session = &connection.session;
    let checked =
        Command::check(request, &connection.export.info, session.structured_replies, session.block_status);
    let bytes = match checked {
        Ok(Command::Read { length, .. } | Command::Write { length, .. }) => u64::from(length),
        _ => SMALL_REQUEST_BYTES,
    };
    let owed = Owed::admit(connection, request.cookie, bytes).await;
    if request.carries_payload() {
        let outcome = match checked {
            Ok(Command::Write { offset, length, fua }) => {
                let sectors = u64::from(length) / SECTOR_BYTES;
                Outcome::Write { offset, fua, buf: connection.world.buffer(sectors as u32), filled: 0 }
            }
            Ok(command) => unreachable!("a write was checked as {command:?}"),
            Err(errno) => Outcome::Refused(errno),
        };
        return Some(Incoming { owed, outcome });
    }
    match checked {
        Ok(command) => request::spawn(owed, command),
        Err(errno) => refuse(owed, errno),
    }
    None
}

/// Answers a request that may not run.
fn refuse<T>(owed: Owed<T>, errno: Errno) {
    tracing::debug!(export = owed.connection.export.info.name, %errno, "refused a request");
    owed.answer(Err((errno, "the request does not suit the export")));
}

/// Receives the rest of a long payload straight into its buffer, and starts the write.
async fn receive_payload<T: BlockTarget + 'static>(
    connection: &Rc<Connection<T>>,
    stream: &mut RequestStream,
    incoming: Incoming<T>,
) -> Result<(), ConnectionError> {
    let Incoming { owed, outcome } = incoming;
    let Outcome::Write { offset, fua, mut buf, mut filled } = outcome else {
        unreachable!("a refused write has no buffer")
    };
    while stream.payload_bytes_left() > 0 {
        let result;
        (result, buf) = connection.socket.receive_into(buf, filled).await;
        let count = result?;
        if count == 0 {
            return Err(ConnectionError::Truncated("a write"));
        }
        filled += count;
        stream.payload_received(count as u32);
    }
    request::spawn_write(owed, offset, buf.freeze(), fua);
    Ok(())
}
