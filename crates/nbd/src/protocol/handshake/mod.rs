//! Fixed newstyle negotiation, both sides ("Newstyle negotiation", "Fixed newstyle negotiation").
//!
//! Each side is a machine whose `advance` takes what was received so far, handles at most one whole message, appends
//! what is to be sent, and says how many bytes it used. One message per call bounds what a peer can make it write.

mod client;
mod client_reply;
mod option;
mod server;
mod server_reply;

pub use client::{ClientGoal, ClientHandshake, ClientStep, ListedExport, Negotiated, Refusal};
pub use server::{ServerHandshake, ServerStep, Session};

#[cfg(test)]
mod tests;
