//! What is owed to a client, in NBD's words.

use tier0_target::Owed;
use tier0_world::{Buf, IoError};

use crate::errors::errno_of;
use crate::protocol::Errno;
use crate::protocol::transmission::{put_error, put_simple};

/// The reply to one request that is owed: a token with the request's cookie.
pub(super) struct Answer {
    pub(super) owed: Owed,
    pub(super) cookie: u64,
    /// Whether structured replies were negotiated.
    pub(super) structured: bool,
}

impl Answer {
    /// Answers with what `put` writes, and data to follow it.
    pub(super) fn with(self, put: impl FnOnce(&mut Vec<u8>, u64), data: Option<Buf>) {
        let cookie = self.cookie;
        self.owed.answer(|out| put(out, cookie), data);
    }

    /// Answers a request whose success carries no data. Where structured replies were negotiated, an error comes
    /// with its reason ("Structured reply chunk message").
    pub(super) fn result(self, result: Result<(), (Errno, &str)>) {
        let structured = self.structured;
        let put = |out: &mut Vec<u8>, cookie| match result {
            Err((errno, message)) if structured => put_error(out, cookie, errno, message),
            result => put_simple(out, cookie, result.err().map(|(errno, _)| errno)),
        };
        self.with(put, None);
    }

    /// Answers with what the target said.
    pub(super) fn io(self, result: Result<(), IoError>) {
        match result {
            Ok(()) => self.result(Ok(())),
            Err(error) => self.result(Err((errno_of(error), &error.to_string()))),
        }
    }
}
