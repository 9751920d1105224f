//! The numbers of the protocol, under the names the specification gives them (without its `NBD_` prefix).
//!
//! Source: "The NBD protocol", <https://github.com/NetworkBlockDevice/nbd/blob/master/doc/proto.md>; the other
//! modules cite its section titles. All integers on the wire are big-endian ("Conventions").

/// First eight bytes of every server's greeting: ASCII `NBDMAGIC`.
pub(crate) const INIT_PASSWD: u64 = 0x4e42_444d_4147_4943;
/// Marks the newstyle greeting and every option: ASCII `IHAVEOPT`.
pub(crate) const IHAVEOPT: u64 = 0x4948_4156_454f_5054;
/// Marks every reply to an option.
pub(crate) const OPTION_REPLY_MAGIC: u64 = 0x0003_e889_0455_65a9;
/// Marks every request.
pub(crate) const REQUEST_MAGIC: u32 = 0x2560_9513;
/// Marks a simple reply.
pub(crate) const SIMPLE_REPLY_MAGIC: u32 = 0x6744_6698;
/// Marks a chunk of a structured reply.
pub(crate) const STRUCTURED_REPLY_MAGIC: u32 = 0x668e_33ef;

/// The only metadata context this crate knows ("Metadata contexts").
pub(crate) const BASE_ALLOCATION: &str = "base:allocation";

/// Handshake flags (server, 16 bits) and client flags (32 bits) share these bits ("Handshake phase").
pub(crate) mod handshake_flag {
    pub(crate) const FIXED_NEWSTYLE: u16 = 1 << 0;
    pub(crate) const NO_ZEROES: u16 = 1 << 1;
}

/// Transmission flags: what an export can do.
pub(crate) mod transmission_flag {
    pub(crate) const HAS_FLAGS: u16 = 1 << 0;
    pub(crate) const READ_ONLY: u16 = 1 << 1;
    pub(crate) const SEND_FLUSH: u16 = 1 << 2;
    pub(crate) const SEND_FUA: u16 = 1 << 3;
    pub(crate) const ROTATIONAL: u16 = 1 << 4;
    pub(crate) const SEND_TRIM: u16 = 1 << 5;
    pub(crate) const SEND_WRITE_ZEROES: u16 = 1 << 6;
    pub(crate) const SEND_DF: u16 = 1 << 7;
    pub(crate) const CAN_MULTI_CONN: u16 = 1 << 8;
    pub(crate) const SEND_CACHE: u16 = 1 << 10;
    pub(crate) const SEND_FAST_ZERO: u16 = 1 << 11;
}

/// Option types.
pub(crate) mod opt {
    pub(crate) const EXPORT_NAME: u32 = 1;
    pub(crate) const ABORT: u32 = 2;
    pub(crate) const LIST: u32 = 3;
    pub(crate) const STARTTLS: u32 = 5;
    pub(crate) const INFO: u32 = 6;
    pub(crate) const GO: u32 = 7;
    pub(crate) const STRUCTURED_REPLY: u32 = 8;
    pub(crate) const LIST_META_CONTEXT: u32 = 9;
    pub(crate) const SET_META_CONTEXT: u32 = 10;
    pub(crate) const EXTENDED_HEADERS: u32 = 11;
}

/// Option reply types; bit 31 marks an error.
pub(crate) mod rep {
    pub(crate) const ACK: u32 = 1;
    pub(crate) const SERVER: u32 = 2;
    pub(crate) const INFO: u32 = 3;
    pub(crate) const META_CONTEXT: u32 = 4;
    pub(crate) const ERROR_BIT: u32 = 1 << 31;
    pub(crate) const ERR_UNSUP: u32 = ERROR_BIT | 1;
    pub(crate) const ERR_POLICY: u32 = ERROR_BIT | 2;
    pub(crate) const ERR_INVALID: u32 = ERROR_BIT | 3;
    pub(crate) const ERR_TLS_REQD: u32 = ERROR_BIT | 5;
    pub(crate) const ERR_UNKNOWN: u32 = ERROR_BIT | 6;
    pub(crate) const ERR_SHUTDOWN: u32 = ERROR_BIT | 7;
    pub(crate) const ERR_BLOCK_SIZE_REQD: u32 = ERROR_BIT | 8;
}

/// Information types of `OPT_INFO` and `OPT_GO`.
pub(crate) mod info {
    pub(crate) const EXPORT: u16 = 0;
    pub(crate) const NAME: u16 = 1;
    pub(crate) const DESCRIPTION: u16 = 2;
    pub(crate) const BLOCK_SIZE: u16 = 3;
}

/// Request types.
pub(crate) mod cmd {
    pub(crate) const READ: u16 = 0;
    pub(crate) const WRITE: u16 = 1;
    pub(crate) const DISC: u16 = 2;
    pub(crate) const FLUSH: u16 = 3;
    pub(crate) const TRIM: u16 = 4;
    pub(crate) const CACHE: u16 = 5;
    pub(crate) const WRITE_ZEROES: u16 = 6;
    pub(crate) const BLOCK_STATUS: u16 = 7;
}

/// Command flags.
pub(crate) mod cmd_flag {
    pub(crate) const FUA: u16 = 1 << 0;
    pub(crate) const NO_HOLE: u16 = 1 << 1;
    pub(crate) const DF: u16 = 1 << 2;
    pub(crate) const REQ_ONE: u16 = 1 << 3;
    pub(crate) const FAST_ZERO: u16 = 1 << 4;
}

/// Structured reply types and their one flag.
pub(crate) mod chunk {
    pub(crate) const FLAG_DONE: u16 = 1 << 0;
    pub(crate) const NONE: u16 = 0;
    pub(crate) const OFFSET_DATA: u16 = 1;
    pub(crate) const OFFSET_HOLE: u16 = 2;
    pub(crate) const BLOCK_STATUS: u16 = 5;
    pub(crate) const ERROR_BIT: u16 = 1 << 15;
    pub(crate) const ERROR: u16 = ERROR_BIT | 1;
    pub(crate) const ERROR_OFFSET: u16 = ERROR_BIT | 2;
}

/// Status flags of `base:allocation`.
pub(crate) mod state {
    pub(crate) const HOLE: u32 = 1 << 0;
    pub(crate) const ZERO: u32 = 1 << 1;
}
