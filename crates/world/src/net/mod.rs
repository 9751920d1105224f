//! Stream sockets, in both worlds: connections between processes over TCP and unix sockets in the real one
//! ([`crate::real`]), and over a modelled [`Network`] in virtual time.
//!
//! Invariants: a server or client does not know which it is; at most one receive and one send of a socket are under way
//! at a time; bytes arrive in order, whole or not at all, but in arbitrary pieces.
//!
//! What it does not do: names, TLS, datagrams.

mod address;
mod listener;
mod network;
mod pipe;
mod socket;
#[cfg(test)]
mod tests;
mod wire;

pub use address::PeerAddress;
pub use listener::Listener;
pub use network::{Death, Mortality, Network, NetworkOptions};
pub use socket::Socket;
