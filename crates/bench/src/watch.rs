//! How a caller sees how far work is, and asks for an early end.

use std::future::Future;
use std::pin::pin;
use std::time::Duration;

use futures_util::future::{Either, select};
use tokio::time::timeout;
use tokio_postgres::{CancelToken, NoTls};

use crate::error::BenchError;

/// How often the caller's wish is looked at.
pub(crate) const LOOK: Duration = Duration::from_millis(100);
/// How long the server may take to end what it was told to cancel, which is milliseconds unless it hangs.
pub(crate) const CANCEL_LIMIT: Duration = Duration::from_secs(5);
/// How long it may take to say what it has or has counted: milliseconds, or some seconds where its disks are very busy.
pub(crate) const ANSWER_LIMIT: Duration = Duration::from_secs(60);

/// The caller's side of something that takes long.
#[derive(Clone, Copy)]
pub struct Watch<'a> {
    /// Takes a line of progress, about one a second.
    pub say: &'a (dyn Fn(&str) + Sync),
    /// Whether the caller wants an end.
    pub is_over: &'a (dyn Fn() -> bool + Sync),
}

impl Watch<'_> {
    /// One that shows nothing and never ends early.
    pub fn none() -> Watch<'static> {
        Watch { say: &|_| {}, is_over: &|| false }
    }

    /// Ends once the caller wants an end.
    pub(crate) async fn over(&self) {
        while !(self.is_over)() {
            tokio::time::sleep(LOOK).await;
        }
    }

    /// The answer to a question that changes nothing at the server, which may not take longer than [`ANSWER_LIMIT`].
    ///
    /// # Errors
    /// No answer in time; what the question ends with; [`BenchError::Stopped`] where the caller wants an end before.
    pub(crate) async fn asked<T>(
        &self,
        what: &str,
        question: impl Future<Output = Result<T, BenchError>>,
    ) -> Result<T, BenchError> {
        match select(pin!(timeout(ANSWER_LIMIT, question)), pin!(self.over())).await {
            Either::Left((answer, _)) => answer.unwrap_or_else(|_| {
                Err(BenchError::NoAnswer { what: what.to_owned(), seconds: ANSWER_LIMIT.as_secs() })
            }),
            Either::Right(_) => Err(BenchError::Stopped),
        }
    }
}

/// What a request to the server gives, unless `over` comes first: then the server is told to cancel it, and
/// has [`CANCEL_LIMIT`] to end it.
///
/// # Errors
/// [`BenchError::Stopped`] where `over` came first.
pub(crate) async fn unless_over<T>(
    token: CancelToken,
    request: impl Future<Output = T>,
    over: impl Future<Output = ()>,
) -> Result<T, BenchError> {
    match select(pin!(request), pin!(over)).await {
        Either::Left((given, _)) => Ok(given),
        Either::Right(((), request)) => {
            cancel(token, request).await;
            Err(BenchError::Stopped)
        }
    }
}

/// Tells the server to cancel a request, and waits for its end, no longer than [`CANCEL_LIMIT`]. If the server cannot be told, it sees
/// the closed connection when the request ends.
pub(crate) async fn cancel<T>(token: CancelToken, request: impl Future<Output = T>) {
    let _ = timeout(CANCEL_LIMIT, async { (token.cancel_query(NoTls).await, request.await) }).await;
}
