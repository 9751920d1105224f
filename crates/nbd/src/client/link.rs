//! One connection in transmission.

use std::cell::{Cell, RefCell};
use std::rc::Rc;

use tier0_target::{Outbox, Stop};
use tier0_world::net::Socket;
use tier0_world::{Buf, IoError, Payload, World};

use super::error::ClientError;
use super::table::{Sink, Table};
use crate::protocol::handshake::Negotiated;
use crate::protocol::transmission::{ReplyStream, Request, RequestKind};

/// Receive buffer, in bytes: a full queue of 32 reads of 8 KiB with their headers.
const RECEIVE_BUFFER_BYTES: usize = 32 * (8192 + 28);

/// Data of which at least this many bytes are still to come is received straight into its buffer.
const DIRECT_BYTES_MIN: u32 = 64 << 10;

/// What the tasks of one connection share.
pub(super) struct Link {
    world: World,
    socket: Socket,
    table: RefCell<Table>,
    outbox: Outbox,
    /// No request may be sent any more.
    closed: Cell<bool>,
    ended: Stop,
}

impl Link {
    /// Starts the tasks of a negotiated connection; `received` is what came with the handshake.
    pub(super) fn start(
        world: &World,
        socket: Socket,
        negotiated: &Negotiated,
        received: Vec<u8>,
    ) -> Rc<Link> {
        let link = Rc::new(Link {
            world: world.clone(),
            socket,
            table: RefCell::default(),
            outbox: Outbox::new(),
            closed: Cell::new(false),
            ended: Stop::default(),
        });
        let sender = link.clone();
        world.spawn(async move { sender.outbox.send_all(&sender.socket, &()).await }).detach();
        let stream = ReplyStream::new(negotiated.structured_replies, negotiated.base_allocation);
        let receiver = link.clone();
        let receiving = async move {
            if let Err(reason) = receiver.receive(stream, received).await
                && !receiver.closed.get()
            {
                tracing::warn!(%reason, "lost a connection to an NBD server");
            }
            receiver.closed.set(true);
            receiver.socket.shutdown();
            receiver.outbox.close();
            receiver.table.borrow_mut().fail_all(IoError::Gone);
            receiver.ended.request();
        };
        world.spawn(receiving).detach();
        link
    }

    /// Sends a request, with `data` behind it, and waits for its reply. The buffer in `sink` comes back.
    pub(super) async fn call(
        &self,
        request: impl FnOnce(u64) -> Request,
        sink: Sink,
        data: Option<Buf>,
    ) -> (Result<(), IoError>, Payload) {
        if self.closed.get() {
            return (Err(IoError::Gone), sink.into_payload());
        }
        let (completion, reply) = self.world.completion();
        let request = self.table.borrow_mut().insert(request, sink, completion);
        self.outbox.push(0, |out| out.extend(request.to_wire()), data);
        let (outcome, payload) = reply.await;
        (outcome.map(|_| ()), payload)
    }

    /// Says goodbye and waits until the server has closed the connection. Requests in flight are answered first.
    pub(super) async fn close(&self) {
        if !self.closed.replace(true) {
            let disconnect = Request::new(RequestKind::Disconnect, 0, 0, 0);
            self.outbox.push(0, |out| out.extend(disconnect.to_wire()), None);
            self.outbox.close();
        }
        self.ended.requested().await;
    }

    /// Ends the connection without a word.
    pub(super) fn abort(&self) {
        self.closed.set(true);
        self.socket.shutdown();
    }

    /// Receives replies until the connection ends.
    async fn receive(&self, mut stream: ReplyStream, received: Vec<u8>) -> Result<(), ClientError> {
        let mut bytes = Vec::with_capacity(RECEIVE_BUFFER_BYTES.max(received.len() + 4096));
        bytes.extend(received);
        loop {
            let left = self.apply(&mut stream, &bytes)?;
            let used = bytes.len() - left;
            bytes.drain(..used);
            if bytes.is_empty() && self.receive_data(&mut stream).await? {
                continue;
            }
            let result;
            (result, bytes) = self.socket.receive(bytes).await;
            if result? == 0 {
                let idle = bytes.is_empty() && self.table.borrow().is_empty() && self.closed.get();
                return if idle { Ok(()) } else { Err(ClientError::Closed) };
            }
        }
    }

    /// Enters everything that `bytes` hold whole; returns how many bytes are left over.
    fn apply(&self, stream: &mut ReplyStream, bytes: &[u8]) -> Result<usize, ClientError> {
        let mut table = self.table.borrow_mut();
        let mut input = bytes;
        while let Some(event) = stream.next(&mut input, &mut *table)? {
            table.apply(event);
        }
        Ok(input.len())
    }

    /// Receives the rest of a long chunk of data straight into its buffer; false where that does not pay.
    async fn receive_data(&self, stream: &mut ReplyStream) -> Result<bool, ClientError> {
        let Some((cookie, at, left)) = stream.data_expected() else { return Ok(false) };
        if left < DIRECT_BYTES_MIN {
            return Ok(false);
        }
        let buf = self.table.borrow_mut().take_buffer(cookie, at, left);
        let Some(buf) = buf else { return Ok(false) };
        let (result, buf) = self.socket.receive_into(buf, at as usize).await;
        self.table.borrow_mut().return_buffer(cookie, buf);
        match result? {
            0 => Err(ClientError::Closed),
            count => {
                stream.data_received(count as u32);
                Ok(true)
            }
        }
    }
}
