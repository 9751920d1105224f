//! Why a peer's bytes end the connection.

use thiserror::Error;

use super::limits::{OPTION_BYTES_MAX, OPTIONS_MAX, STRING_BYTES_MAX};

/// Why bytes are not a string of the protocol.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum StringFault {
    /// More than [`STRING_BYTES_MAX`] bytes.
    #[error("longer than {STRING_BYTES_MAX} bytes")]
    TooLong,
    /// Not UTF-8.
    #[error("not UTF-8")]
    NotUtf8,
    /// A NUL inside.
    #[error("contains a NUL")]
    HasNul,
}

/// A peer broke the protocol; the connection cannot go on.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum ProtocolError {
    /// The other side does not speak newstyle NBD.
    #[error("peer does not speak newstyle NBD (starts with {found:#018x}); check the address")]
    NotNbd {
        /// The first eight bytes, or the second eight where the first are right.
        found: u64,
    },
    /// The server speaks newstyle but not fixed newstyle, and so knows no options.
    #[error("server does not speak fixed newstyle NBD; use a server that does")]
    NotFixedNewstyle,
    /// The client set flags that were not offered.
    #[error("client sets unknown handshake flags {flags:#010x}")]
    UnknownClientFlags {
        /// All flags as received.
        flags: u32,
    },
    /// An option without its magic number.
    #[error("option starts with {found:#018x} instead of its magic number")]
    BadOptionMagic {
        /// What stood in its place.
        found: u64,
    },
    /// An option whose data is too long to be meant well.
    #[error("option {option} carries {length} bytes; the limit is {OPTION_BYTES_MAX}")]
    OptionTooLong {
        /// Option type.
        option: u32,
        /// Length it claims, in bytes.
        length: u32,
    },
    /// More options than any client needs.
    #[error("client sent more than {OPTIONS_MAX} options without choosing an export")]
    TooManyOptions,
    /// An option other than `EXPORT_NAME` from a client that did not agree to fixed newstyle.
    #[error("client sends option {option} without having agreed to fixed newstyle")]
    OptionNeedsFixedNewstyle {
        /// Option type.
        option: u32,
    },
    /// `EXPORT_NAME` with a name that is no string; it has no error reply.
    #[error("export name is {0}")]
    BadExportName(StringFault),
    /// `EXPORT_NAME` of an export that is not there; it has no error reply.
    #[error("client asks for export {name:?}, which does not exist")]
    UnknownExport {
        /// The name asked for.
        name: String,
    },
    /// A request without its magic number.
    #[error("request starts with {found:#010x} instead of its magic number")]
    BadRequestMagic {
        /// What stood in its place.
        found: u32,
    },
    /// A write whose payload exceeds the advertised maximum; its bytes cannot be told from requests.
    #[error("write of {length} bytes; the advertised maximum is {max}")]
    PayloadTooLong {
        /// Length it claims, in bytes.
        length: u32,
        /// Longest payload allowed, in bytes.
        max: u32,
    },
    /// Bytes after a disconnect request.
    #[error("client sends bytes after its disconnect request")]
    BytesAfterDisconnect,
    /// A reply to an option without its magic number.
    #[error("option reply starts with {found:#018x} instead of its magic number")]
    BadOptionReplyMagic {
        /// What stood in its place.
        found: u64,
    },
    /// A reply to another option than the one sent.
    #[error("server replies to option {found} while option {sent} is pending")]
    ReplyToOtherOption {
        /// Option pending.
        sent: u32,
        /// Option named by the reply.
        found: u32,
    },
    /// A reply whose data does not have the form of its type.
    #[error("server's reply of type {reply:#x} to option {option} is malformed: {reason}")]
    MalformedOptionReply {
        /// Option pending.
        option: u32,
        /// Reply type.
        reply: u32,
        /// What is wrong with it.
        reason: &'static str,
    },
    /// More replies to an option than any server sends.
    #[error("server sends too many replies to option {option}")]
    TooManyOptionReplies {
        /// Option pending.
        option: u32,
    },
    /// A reply without a known magic number.
    #[error("reply starts with {found:#010x} instead of a magic number")]
    BadReplyMagic {
        /// What stood in its place.
        found: u32,
    },
    /// A structured reply although it was not negotiated, or a simple reply with data although it was.
    #[error("reply {cookie:#x} is of a kind that was not negotiated")]
    ReplyNotNegotiated {
        /// The request's cookie.
        cookie: u64,
    },
    /// A reply to a request that is not in flight.
    #[error("reply to request {cookie:#x}, which is not in flight")]
    UnknownCookie {
        /// The cookie of the reply.
        cookie: u64,
    },
    /// A chunk of a structured reply whose contents contradict its type, its header or its request.
    #[error("chunk of type {kind:#06x} for request {cookie:#x} is malformed: {reason}")]
    MalformedChunk {
        /// The request's cookie.
        cookie: u64,
        /// Chunk type.
        kind: u16,
        /// What is wrong with it.
        reason: &'static str,
    },
}
