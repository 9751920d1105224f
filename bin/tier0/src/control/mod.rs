//! The control socket: how the administration verbs reach an array that is being served.
//!
//! One request and one reply per connection, each one line of JSON (`tier0_api::envelope`). A user who may connect to
//! the socket may do everything: it is its owner's alone, unless the array file says more.

mod addressee;
mod client;
mod connecting;
mod server;

pub(crate) use addressee::{Addressee, misunderstood};
pub(crate) use client::{ask_if_served, ask_socket, check_not_served, served_already, served_instead};
pub(crate) use server::{Unserved, serve};
