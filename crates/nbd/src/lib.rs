//! NBD, both ends: the protocol as pure state machines, and the server and client that drive them.

pub mod protocol;
