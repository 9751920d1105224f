//! The transmission phase ("Transmission"): requests and replies, read and written by both sides.
//!
//! [`RequestStream`] and [`ReplyStream`] cut received bytes into events and hold what is half received;
//! [`Command::check`] decides whether a request may run; the `put_*` functions write replies.

mod command;
mod extent;
mod reply;
mod reply_stream;
mod request;

pub use command::Command;
pub use extent::Extent;
pub use reply::{
    DATA_HEADER_BYTES, SIMPLE_REPLY_BYTES, put_block_status, put_data_header, put_done, put_error,
    put_error_at, put_hole, put_simple,
};
pub use reply_stream::{InFlight, PendingReply, ReplyEvent, ReplyStream};
pub use request::{REQUEST_BYTES, Request, RequestEvent, RequestKind, RequestStream};

/// The identifier this server gives the context `base:allocation`.
pub const BASE_ALLOCATION_ID: u32 = 1;

#[cfg(test)]
mod tests;
