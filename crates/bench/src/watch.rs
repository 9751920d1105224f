//! How a caller sees how far work is, and asks for an early end.

use std::future::Future;
use std::pin::pin;
use std::time::Duration;

use futures_util::future::{Either, select};
use tokio_postgres::{Client, NoTls};

use crate::error::BenchError;

/// How often the caller's wish is looked at.
pub(crate) const LOOK: Duration = Duration::from_millis(100);

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
}

/// What a request to the server gives, unless `over` comes first: then the server is told to cancel it.
///
/// # Errors
/// [`BenchError::Stopped`] where `over` came first.
pub(crate) async fn unless_over<T>(
    client: &Client,
    request: impl Future<Output = T>,
    over: impl Future<Output = ()>,
) -> Result<T, BenchError> {
    match select(pin!(request), pin!(over)).await {
        Either::Left((given, _)) => Ok(given),
        Either::Right(_) => {
            // If the server cannot be told, it sees the closed connection when the request ends.
            let _ = client.cancel_token().cancel_query(NoTls).await;
            Err(BenchError::Stopped)
        }
    }
}
