//! The control socket: how the administration verbs reach an array that is being served.
//!
//! One request and one reply per connection, each one line of JSON (`tier0_array::admin`). The socket is the owner's
//! alone (mode 0600); whoever may open it may do everything.

mod client;
mod server;

pub(crate) use client::{ask, ask_if_served};
pub(crate) use server::serve;
