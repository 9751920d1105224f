//! The client: an export on a server as a [`BlockTarget`](tier0_block::BlockTarget).
//!
//! Requests of any number of tasks are in flight at once, over one or more connections. Requests that are ready
//! together go out in one call. When a connection fails, every request on it ends with
//! [`IoError::Gone`](tier0_world::IoError::Gone); nothing is retried, since only the caller knows whether it may be.

mod connect;
mod error;
mod link;
mod options;
mod table;
mod target;

pub use connect::{enter, list};
pub use error::ClientError;
pub use options::ClientOptions;
pub use target::Client;
