//! From a trace's file to requests in memory.

use std::path::Path;

use thiserror::Error;
use tier0_trace::{Access, Format, Op, Options, Place, TraceError, TraceReader};

use super::requests::{Requests, RequestsError, Writes};

/// How a trace is taken in.
#[derive(Clone, Debug)]
pub struct LoadOptions {
    /// How its file is read.
    pub reading: Options,
    /// Bytes of a block, of traces that have bytes.
    pub block_bytes: u64,
    /// What becomes of writes.
    pub writes: Writes,
    /// No more requests than these.
    pub limit: Option<u64>,
}

/// A trace that was taken in.
pub struct Loaded {
    /// What it is written in.
    pub format: Format,
    /// Its requests.
    pub requests: Requests,
    /// Whether the last line of a text had no end: it may be cut off there.
    pub has_open_line: bool,
    /// What was assumed about the file, and what was skipped: sentences for whoever reads the results.
    pub notes: Vec<String>,
}

/// Why a trace cannot be replayed.
#[derive(Debug, Error)]
pub enum LoadError {
    /// It cannot be read.
    #[error(transparent)]
    Trace(#[from] TraceError),
    /// It is too large.
    #[error("{trace}, request {request}: {source}")]
    Requests {
        /// The file.
        trace: String,
        /// The request, counted from 1.
        request: u64,
        /// Why.
        source: RequestsError,
    },
    /// Nothing is in it that a cache could serve.
    #[error("{trace} has no request that counts; look at its format ({format}) and at --writes")]
    Empty {
        /// The file.
        trace: String,
        /// What it was read as.
        format: Format,
    },
}

/// Requests between two calls of who waits.
const TOLD_EVERY: u64 = 1 << 20;

/// Takes a trace in; `told` learns how many requests were read so far.
///
/// # Errors
/// [`LoadError`] where it cannot be read, is too large, or has nothing in it.
pub fn load(path: &Path, options: &LoadOptions, told: impl Fn(u64)) -> Result<Loaded, LoadError> {
    let mut reader = TraceReader::open_with(path, options.reading.clone())?;
    let format = reader.format();
    // Numbers of blocks say nothing of bytes; a block is what was traced.
    let mut requests = Requests::new(options.block_bytes, options.writes);
    let trace = || path.display().to_string();
    let mut read = 0;
    for access in &mut reader {
        if options.limit.is_some_and(|limit| read >= limit) {
            break;
        }
        read += 1;
        let access = access?;
        requests.set_time(access.at);
        let taken = take(&mut requests, &access, options.block_bytes);
        taken.map_err(|source| LoadError::Requests { trace: trace(), request: read, source })?;
        if read % TOLD_EVERY == 0 {
            told(read);
        }
    }
    if requests.count() == 0 {
        return Err(LoadError::Empty { trace: trace(), format });
    }
    let notes = reader.notes().iter().cloned().chain(reader.skipped_note()).collect();
    Ok(Loaded { format, requests, has_open_line: reader.has_open_line(), notes })
}

fn take(requests: &mut Requests, access: &Access, block_bytes: u64) -> Result<(), RequestsError> {
    let (first, blocks) = match access.place {
        Place::Volume => return Ok(()),
        Place::Object { id, bytes: Some(bytes) } => return requests.read_object(id, bytes),
        Place::Object { id, bytes: None } => (id, 1),
        Place::Bytes { length: 0, .. } => return Ok(()),
        Place::Bytes { offset, length } => {
            let (first, last) = (offset / block_bytes, (offset + (length - 1)) / block_bytes);
            (first, last - first + 1)
        }
    };
    match access.op {
        Op::Read => requests.read(access.volume, first, blocks),
        Op::Write => requests.write(access.volume, first, blocks),
        Op::Discard => requests.forget(access.volume, first, blocks),
        Op::Flush => Ok(()),
    }
}
