//! Reads requests off a connection and starts them.

use std::rc::Rc;

use tier0_block::BlockTarget;

use super::answer::Answer;
use super::connection::Client;
use super::error::ConnectionError;
use super::options::ServerOptions;
use super::pieces::Pieces;
use super::request::{self, BLOCK_STATUS_BYTES};
use super::write::{Incoming, SMALL_REQUEST_BYTES};
use crate::protocol::transmission::{Command, Request, RequestEvent, RequestStream};

/// Payload of which at least this many bytes are still to come is received straight into its buffer; less is worth
/// a copy, because the same receive may bring the requests behind it.
const DIRECT_BYTES_MIN: u32 = 64 << 10;

/// What reads a connection's requests.
pub(super) struct Reader<'a, T> {
    client: &'a Rc<Client<T>>,
    options: &'a ServerOptions,
    stream: RequestStream,
    incoming: Option<Incoming<T>>,
}

impl<'a, T: BlockTarget + 'static> Reader<'a, T> {
    pub(super) fn new(client: &'a Rc<Client<T>>, options: &'a ServerOptions) -> Reader<'a, T> {
        Reader { client, options, stream: RequestStream::new(options.payload_bytes_max), incoming: None }
    }

    /// Reads until the client disconnects, breaks the protocol or is gone. `received` is what came with the handshake.
    pub(super) async fn read_requests(mut self, received: Vec<u8>) -> Result<(), ConnectionError> {
        let mut bytes = Vec::with_capacity(self.options.receive_buffer_bytes.max(received.len() + 4096));
        bytes.extend(received);
        loop {
            let mut input = &bytes[..];
            if self.parse(&mut input).await? {
                return Ok(());
            }
            let used = bytes.len() - input.len();
            bytes.drain(..used);
            let direct = self.stream.payload_bytes_left() >= DIRECT_BYTES_MIN;
            if direct && self.incoming.as_ref().is_some_and(|write| !write.is_refused()) {
                self.receive_payload().await?;
                continue;
            }
            let begun = !bytes.is_empty() || self.incoming.is_some();
            let result;
            (result, bytes) = self.client.channel.receive(bytes, begun).await;
            if !matches!(result, Ok(1..)) {
                return self.end_of_input(result.map(|_| ()), bytes.is_empty());
            }
        }
    }

    /// Starts everything that `input` holds whole; whether the client has said goodbye.
    async fn parse(&mut self, input: &mut &[u8]) -> Result<bool, ConnectionError> {
        while let Some(event) = self.stream.next(input)? {
            match event {
                RequestEvent::Disconnect => return Ok(true),
                RequestEvent::Request(request) => self.incoming = self.start(&request).await?,
                RequestEvent::Payload(payload) => {
                    self.incoming.as_mut().expect("payload belongs to a write").take(payload).await?;
                }
            }
            self.finish_write();
        }
        Ok(false)
    }

    fn finish_write(&mut self) {
        if self.stream.payload_bytes_left() == 0
            && let Some(write) = self.incoming.take()
        {
            write.finish();
        }
    }

    /// A client that is gone without a disconnect request is no error between requests; within one it is.
    fn end_of_input(
        mut self,
        result: Result<(), tier0_world::IoError>,
        between_messages: bool,
    ) -> Result<(), ConnectionError> {
        self.client.channel.client_left();
        let incoming = self.incoming.take();
        let between_messages = between_messages && incoming.is_none();
        incoming.into_iter().for_each(Incoming::truncated);
        result?;
        if between_messages { Ok(()) } else { Err(ConnectionError::Truncated("a request")) }
    }

    /// Receives the rest of a long payload straight to where it belongs.
    async fn receive_payload(&mut self) -> Result<(), ConnectionError> {
        while self.stream.payload_bytes_left() > 0 {
            let write = self.incoming.as_mut().expect("payload belongs to a write");
            let result = write.receive().await?;
            match result {
                Ok(count @ 1..) => self.stream.payload_received(count as u32),
                result => {
                    self.client.channel.client_left();
                    self.incoming.take().into_iter().for_each(Incoming::truncated);
                    result?;
                    return Err(ConnectionError::Truncated("a write"));
                }
            }
        }
        self.finish_write();
        Ok(())
    }

    /// Admits a request and starts it. A write comes back, to be finished once its payload is there.
    async fn start(&mut self, request: &Request) -> Result<Option<Incoming<T>>, ConnectionError> {
        let (client, session) = (self.client, &self.client.session);
        let checked = Command::check(request, &client.info, session.structured_replies, session.block_status);
        match checked {
            Ok(Command::Write { offset, length, fua }) if length > 0 => {
                let range = (offset, length);
                let piece_bytes = self.options.piece_bytes;
                return Ok(Some(Incoming::write(client, request.cookie, range, fua, piece_bytes)));
            }
            Ok(Command::Read { offset, length, dont_fragment }) => {
                self.start_read(request.cookie, offset, length, dont_fragment).await?;
            }
            Ok(command) => {
                let bytes = match command {
                    Command::BlockStatus { one_extent: false, .. } => BLOCK_STATUS_BYTES,
                    _ => SMALL_REQUEST_BYTES,
                };
                let answer = self.admit(request.cookie, bytes).await?;
                request::spawn(client, answer, command);
            }
            Err(errno) => {
                let answer = self.admit(request.cookie, SMALL_REQUEST_BYTES).await?;
                if request.carries_payload() {
                    return Ok(Some(Incoming::refused(client, request.cookie, answer.owed, errno)));
                }
                request::refuse(client, answer, errno);
            }
        }
        Ok(None)
    }

    /// A long read is answered in chunks as its pieces are there, where the client takes chunks.
    async fn start_read(
        &mut self,
        cookie: u64,
        offset: u64,
        length: u32,
        whole: bool,
    ) -> Result<(), ConnectionError> {
        let piece_bytes = self.options.piece_bytes;
        if length <= piece_bytes || whole || !self.client.session.structured_replies {
            let answer = self.admit(cookie, u64::from(length).max(SMALL_REQUEST_BYTES)).await?;
            request::spawn_read(self.client, answer, offset, length, piece_bytes);
            return Ok(());
        }
        let pieces = Pieces::new(length, piece_bytes);
        let mut done = 0;
        while done < length {
            let bytes = piece_bytes.min(length - done);
            let answer = self.admit(cookie, u64::from(bytes)).await?;
            request::spawn_read_piece(self.client, answer, offset + u64::from(done), bytes, pieces.clone());
            done += bytes;
        }
        Ok(())
    }

    async fn admit(&self, cookie: u64, bytes: u64) -> Result<Answer, ConnectionError> {
        let owed = self.client.channel.admit(bytes).await?;
        Ok(Answer { owed, cookie, structured: self.client.session.structured_replies })
    }
}
