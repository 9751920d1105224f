//! What a client asks for.

use tier0_units::Nanos;

/// How to connect.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClientOptions {
    /// Connections to spread requests over, at least one; more than one only where the export allows it.
    pub connections: usize,
    /// Ask for structured replies, without which holes travel as zeroes and failed reads cost the connection.
    pub structured_replies: bool,
    /// Ask for the block status; needs structured replies.
    pub block_status: bool,
    /// Time for the whole handshake.
    pub handshake_timeout: Nanos,
}

impl Default for ClientOptions {
    fn default() -> ClientOptions {
        ClientOptions {
            connections: 1,
            structured_replies: true,
            block_status: true,
            handshake_timeout: Nanos::from_secs(10),
        }
    }
}
