//! Which requests may run: a request, the export and the session against the rules of "Request types",
//! "Command flags", "Block size constraints" and "Error values".

use super::super::constants::cmd_flag;
use super::super::errno::Errno;
use super::super::export::ExportInfo;
use super::request::{Request, RequestKind};

/// A request that may run: within the export, aligned, with flags that belong to it. Offsets and lengths in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Command {
    /// Answer with the bytes.
    Read {
        /// First byte.
        offset: u64,
        /// At most the export's maximum.
        length: u32,
        /// All in one chunk.
        dont_fragment: bool,
    },
    /// Write the payload.
    Write {
        /// First byte.
        offset: u64,
        /// Length of the payload, at most the export's maximum.
        length: u32,
        /// Answer only once it is persistent.
        fua: bool,
    },
    /// Persist every write answered before.
    Flush,
    /// Forget the bytes; a hint.
    Trim {
        /// First byte.
        offset: u64,
        /// May exceed the maximum of reads and writes.
        length: u32,
        /// Answer only once it is persistent.
        fua: bool,
    },
    /// Make the bytes zero.
    WriteZeroes {
        /// First byte.
        offset: u64,
        /// May exceed the maximum of reads and writes.
        length: u32,
        /// Answer only once it is persistent.
        fua: bool,
        /// The space may be given up.
        may_unmap: bool,
        /// Answer `ENOTSUP` rather than be as slow as a write.
        fast: bool,
    },
    /// Read ahead.
    Cache {
        /// First byte.
        offset: u64,
        /// May exceed the maximum of reads and writes.
        length: u32,
    },
    /// Answer with extents from `offset` on.
    BlockStatus {
        /// First byte.
        offset: u64,
        /// Not zero; may exceed the maximum of reads and writes.
        length: u32,
        /// One extent is enough.
        one_extent: bool,
    },
}

impl Command {
    /// What `request` asks of `export`, or the error to answer. A write's payload follows in either case.
    ///
    /// `structured_replies` and `block_status` say what was negotiated.
    pub fn check(
        request: &Request,
        export: &ExportInfo,
        structured_replies: bool,
        block_status: bool,
    ) -> Result<Command, Errno> {
        let kind = RequestKind::from_wire(request.kind).ok_or(Errno::Invalid)?;
        if request.flags & !allowed_flags(kind, export, structured_replies) != 0 {
            return Err(Errno::Invalid);
        }
        check_offered(kind, export, block_status)?;
        if kind == RequestKind::Flush {
            // Both fields are reserved and zero ("Request types", FLUSH).
            let reserved = request.offset != 0 || request.length != 0;
            return if reserved { Err(Errno::Invalid) } else { Ok(Command::Flush) };
        }
        check_range(kind, request, export)?;
        Ok(command(kind, request))
    }
}

/// `FUA` goes with every command where it is offered, even where it means nothing ("Command flags").
fn allowed_flags(kind: RequestKind, export: &ExportInfo, structured_replies: bool) -> u16 {
    let when = |on: bool, bit: u16| if on { bit } else { 0 };
    let own = match kind {
        RequestKind::Read => when(structured_replies, cmd_flag::DF),
        RequestKind::WriteZeroes => cmd_flag::NO_HOLE | when(export.features.fast_zero, cmd_flag::FAST_ZERO),
        RequestKind::BlockStatus => cmd_flag::REQ_ONE,
        _ => 0,
    };
    own | when(export.features.fua, cmd_flag::FUA)
}

/// What was not offered is `EINVAL`; what would change a read-only export is `EPERM` ("Error values").
fn check_offered(kind: RequestKind, export: &ExportInfo, block_status: bool) -> Result<(), Errno> {
    let features = &export.features;
    let changes = matches!(kind, RequestKind::Write | RequestKind::Trim | RequestKind::WriteZeroes);
    if features.read_only && changes {
        return Err(Errno::NotPermitted);
    }
    let offered = match kind {
        RequestKind::Read | RequestKind::Write => true,
        RequestKind::Flush => features.flush,
        RequestKind::Trim => features.trim,
        RequestKind::WriteZeroes => features.write_zeroes,
        RequestKind::Cache => features.cache,
        RequestKind::BlockStatus => block_status,
        // The stream never passes it on.
        RequestKind::Disconnect => false,
    };
    if offered { Ok(()) } else { Err(Errno::Invalid) }
}

fn check_range(kind: RequestKind, request: &Request, export: &ExportInfo) -> Result<(), Errno> {
    let end = request.offset.checked_add(u64::from(request.length));
    if end.is_none_or(|end| end > export.size_bytes) {
        // Beyond the end, writing is a want of space and all else is nonsense ("Error values").
        let writes = matches!(kind, RequestKind::Write | RequestKind::WriteZeroes);
        return Err(if writes { Errno::NoSpace } else { Errno::Invalid });
    }
    let sizes = &export.block_sizes;
    let minimum = u64::from(sizes.minimum);
    let aligned = request.offset.is_multiple_of(minimum) && request.length.is_multiple_of(sizes.minimum);
    let carries_data = matches!(kind, RequestKind::Read | RequestKind::Write);
    let too_long = carries_data && request.length > sizes.maximum;
    let empty = kind == RequestKind::BlockStatus && request.length == 0;
    if !aligned || too_long || empty { Err(Errno::Invalid) } else { Ok(()) }
}

fn command(kind: RequestKind, request: &Request) -> Command {
    let Request { offset, length, .. } = *request;
    let has = |bit: u16| request.flags & bit != 0;
    let fua = has(cmd_flag::FUA);
    match kind {
        RequestKind::Read => Command::Read { offset, length, dont_fragment: has(cmd_flag::DF) },
        RequestKind::Write => Command::Write { offset, length, fua },
        RequestKind::Trim => Command::Trim { offset, length, fua },
        RequestKind::WriteZeroes => {
            let may_unmap = !has(cmd_flag::NO_HOLE);
            Command::WriteZeroes { offset, length, fua, may_unmap, fast: has(cmd_flag::FAST_ZERO) }
        }
        RequestKind::Cache => Command::Cache { offset, length },
        RequestKind::BlockStatus => {
            Command::BlockStatus { offset, length, one_extent: has(cmd_flag::REQ_ONE) }
        }
        RequestKind::Flush | RequestKind::Disconnect => {
            unreachable!("have no range and were dealt with before")
        }
    }
}
