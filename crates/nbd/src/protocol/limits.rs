//! What a peer may ask for before anything is allocated for it.

/// Longest string, in bytes: export names, descriptions, queries, error messages ("Conventions").
pub const STRING_BYTES_MAX: usize = 4096;

/// Longest data of one option, in bytes. The longest sensible one, a name and fifteen full queries of metadata
/// contexts, is 4 + 4096 + 4 + 15 × (4 + 4096) = 65,604 bytes; nothing in use comes near.
pub const OPTION_BYTES_MAX: u32 = 64 << 10;

/// Header of an option, in bytes: magic, option, length.
pub const OPTION_HEADER_BYTES: usize = 16;

/// Longest message of the handshake either side must hold to parse it, in bytes.
pub const HANDSHAKE_BUFFER_BYTES: usize = 4 + OPTION_HEADER_BYTES + OPTION_BYTES_MAX as usize;

/// Most options in one handshake. A client that lists a server asks three per export at most.
pub const OPTIONS_MAX: u32 = 4096;

/// Most exports a client accepts in a list.
pub const LISTED_EXPORTS_MAX: usize = 10_000;

/// Most replies to one option that a client accepts besides those that list exports.
pub const INFO_REPLIES_MAX: u32 = 64;

/// Longest payload of one read or write unless an export says otherwise, in bytes: the 32 MiB which a client may
/// assume where nothing was negotiated ("Block size constraints").
pub const PAYLOAD_BYTES_MAX: u32 = 32 << 20;

/// Bytes that a reply's fixed parts and a full error message can need: what a client must be able to buffer.
pub const REPLY_BUFFER_BYTES: usize = 20 + 14 + STRING_BYTES_MAX;
