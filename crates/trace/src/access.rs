//! What an access is, whichever format it comes from.

use tier0_units::Nanos;

/// One request of a trace.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Access {
    /// When, since the first access of the trace; none where the format has no times. Traces of several disks may step
    /// back in time; what is earlier than the first access counts as at the same time.
    pub at: Option<Nanos>,
    /// Which volume: the number of a name in [`TraceReader::volumes`](crate::TraceReader::volumes). Zero where the
    /// format knows only one.
    pub volume: u32,
    /// What was asked for.
    pub op: Op,
    /// Where.
    pub place: Place,
}

/// Kinds of requests.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Op {
    /// A read. Formats that do not tell reads from writes have reads only.
    Read,
    /// A write.
    Write,
    /// A discard (trim).
    Discard,
    /// A flush, without data.
    Flush,
}

/// What a request touches.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Place {
    /// A range of the volume. Its end fits into 64 bits; its length is zero only where the trace says so.
    Bytes {
        /// First byte.
        offset: u64,
        /// How many bytes.
        length: u64,
    },
    /// A block or an object that the trace knows by a number.
    Object {
        /// The number.
        id: u64,
        /// Its size in bytes, where the format has one.
        bytes: Option<u32>,
    },
    /// The volume as a whole: flushes.
    Volume,
}
