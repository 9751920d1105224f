//! The NBD protocol as pure state machines: bytes in, typed events and bytes out. No I/O, no clock, no tasks.
//!
//! Invariants: no input makes it panic; nothing is allocated on a peer's word beyond [`limits`]; every way of
//! cutting the same bytes into pieces gives the same events; bytes that cannot be meant well end in a
//! [`ProtocolError`] that says why.
//!
//! What it does not speak: oldstyle, TLS, extended headers, resize. Requests for them get the error reply that the
//! specification provides.

mod constants;
mod errno;
mod error;
mod export;
pub mod handshake;
pub mod limits;
pub mod transmission;
mod uri;
mod wire;

pub use errno::Errno;
pub use error::{ProtocolError, StringFault};
pub use export::{BlockSizes, ExportDirectory, ExportInfo, Features};
pub use uri::{DEFAULT_PORT, NbdAddress, NbdUri, ParseNbdUriError};
