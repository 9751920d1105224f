//! What a protocol adds to a target.

use std::error::Error;
use std::pin::Pin;

use super::Connection;

/// How a connection ended: in good order, or why not.
pub type Ended = Result<(), Box<dyn Error>>;

/// A block protocol.
pub trait Protocol<T>: 'static {
    /// Serves a connection until either side is done with it.
    fn serve(&self, connection: Connection<T>) -> Pin<Box<dyn Future<Output = Ended>>>;
}
