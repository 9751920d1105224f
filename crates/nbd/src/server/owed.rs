//! A request that was admitted and owes its client a reply.

use std::rc::Rc;

use tier0_world::{Buf, IoError};

use super::connection::Connection;
use crate::errors::errno_of;
use crate::protocol::Errno;
use crate::protocol::transmission::{put_error, put_simple};

/// The token of an admitted request. Answering it puts the reply into the outbox; dropping it unanswered, as happens
/// when the connection ends in the middle of a payload, gives its share of the flow back.
pub(super) struct Owed<T> {
    pub(super) connection: Rc<Connection<T>>,
    pub(super) cookie: u64,
    admitted_bytes: u64,
    answered: bool,
}

impl<T> Owed<T> {
    /// Waits until `bytes` more may be in flight.
    pub(super) async fn admit(connection: &Rc<Connection<T>>, cookie: u64, bytes: u64) -> Owed<T> {
        connection.flow.admit(bytes).await;
        Owed { connection: connection.clone(), cookie, admitted_bytes: bytes, answered: false }
    }

    /// Whether structured replies were negotiated.
    pub(super) fn structured_replies(&self) -> bool {
        self.connection.session.structured_replies
    }

    /// Answers with what `put` writes, and data to follow it.
    pub(super) fn answer_with(mut self, put: impl FnOnce(&mut Vec<u8>, u64), data: Option<Buf>) {
        self.answered = true;
        let cookie = self.cookie;
        self.connection.outbox.push(self.admitted_bytes, |out| put(out, cookie), data);
    }

    /// Answers a request whose success carries no data. Where structured replies were negotiated, an error comes
    /// with its reason ("Structured reply chunk message").
    pub(super) fn answer(self, result: Result<(), (Errno, &str)>) {
        let structured = self.structured_replies();
        let put = |out: &mut Vec<u8>, cookie| match result {
            Err((errno, message)) if structured => put_error(out, cookie, errno, message),
            result => put_simple(out, cookie, result.err().map(|(errno, _)| errno)),
        };
        self.answer_with(put, None);
    }

    /// Answers with what the target said.
    pub(super) fn answer_io(self, result: Result<(), IoError>) {
        match result {
            Ok(()) => self.answer(Ok(())),
            Err(error) => self.answer(Err((errno_of(error), &error.to_string()))),
        }
    }
}

impl<T> Drop for Owed<T> {
    fn drop(&mut self) {
        if !self.answered {
            self.connection.flow.release(1, self.admitted_bytes);
        }
    }
}
