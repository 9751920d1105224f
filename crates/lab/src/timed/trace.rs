//! From a trace's file to requests with times, in memory: 32 bytes each.

use std::path::Path;

use tier0_trace::{Access, Format, Op, Options, Place, TraceReader};
use tier0_units::{ByteCount, Nanos, SECTOR_BYTES};

use super::TimedError;

/// The largest read or write: far more than any host asks for at once.
const SECTORS_MAX: u64 = (1 << 30) / SECTOR_BYTES;
/// Requests between two calls of who waits.
const TOLD_EVERY: u64 = 1 << 18;

/// How a trace is taken in.
#[derive(Clone, Debug)]
pub struct TimedOptions {
    /// How its file is read.
    pub reading: Options,
    /// Bytes of a block, of traces that number blocks.
    pub block_bytes: u64,
    /// No more requests than these.
    pub limit: Option<u64>,
}

/// A trace that was taken in.
pub struct TimedTrace {
    /// Its file.
    pub name: String,
    /// What it is written in.
    pub format: Format,
    /// Its volumes, in the order in which they came.
    pub volumes: Vec<TracedVolume>,
    /// Whether its requests have times.
    pub has_times: bool,
    /// Whether it numbers blocks, whose size it does not say.
    pub numbers_blocks: bool,
    /// Requests without data, which are left out.
    pub empty: u64,
    /// What was assumed about the file, and what was skipped: sentences for the reader of the results.
    pub notes: Vec<String>,
    pub(super) requests: Vec<TimedRequest>,
}

/// A volume of a trace.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TracedVolume {
    /// Its name.
    pub name: String,
    /// Sectors up to the end of its last read or write.
    pub sectors: u64,
}

/// A request of a trace.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct TimedRequest {
    /// When, since the first; zero where the trace has no times.
    pub(super) at: Nanos,
    /// Its first sector on the traced volume.
    pub(super) sector: u64,
    /// Its sectors; a longer discard has as many as fit.
    pub(super) sectors: u32,
    /// The traced volume.
    pub(super) volume: u32,
    pub(super) op: Op,
}

/// Takes in the trace of a file, in the order of its times; `told` learns how many requests were read so far.
///
/// # Errors
/// It cannot be read, or it has requests that no array can serve.
pub fn read_timed(path: &Path, options: &TimedOptions, told: impl Fn(u64)) -> Result<TimedTrace, TimedError> {
    let reader = TraceReader::open_with(path, options.reading.clone())?;
    take_in(reader, path.display().to_string(), options, told)
}

/// The same of a trace that is open; `name` stands for it in errors.
pub(super) fn take_in(
    mut reader: TraceReader,
    name: String,
    options: &TimedOptions,
    told: impl Fn(u64),
) -> Result<TimedTrace, TimedError> {
    let mut taken = Taken { has_times: true, ..Taken::default() };
    let mut read = 0;
    for access in &mut reader {
        if options.limit.is_some_and(|limit| read >= limit) {
            break;
        }
        read += 1;
        taken.take(access?, options.block_bytes).map_err(|refused| refused.error(name.clone(), read))?;
        if read % TOLD_EVERY == 0 {
            told(read);
        }
    }
    if taken.ends.iter().all(|end| *end == 0) {
        return Err(TimedError::Empty { trace: name });
    }
    let mut notes: Vec<String> = reader.notes().iter().cloned().chain(reader.skipped_note()).collect();
    if reader.has_open_line() {
        notes.push("the last line has no end; if the trace is cut off there, copy it again".to_owned());
    }
    // Traces of several disks step back in time.
    taken.requests.sort_by_key(|request| request.at);
    let names = reader.volumes().iter().cloned();
    let volumes = names
        .zip(taken.ends.iter().copied().chain(std::iter::repeat(0)))
        .map(|(name, sectors)| TracedVolume { name, sectors });
    let (format, volumes) = (reader.format(), volumes.collect());
    let Taken { requests, has_times, numbers_blocks, empty, .. } = taken;
    Ok(TimedTrace { name, format, volumes, has_times, numbers_blocks, empty, notes, requests })
}

/// What was read so far.
#[derive(Default)]
struct Taken {
    requests: Vec<TimedRequest>,
    /// The end of the last read or write, by volume.
    ends: Vec<u64>,
    has_times: bool,
    numbers_blocks: bool,
    empty: u64,
}

/// Why a request cannot be played.
enum Refused {
    TooLong(u64),
    Object,
}

impl Refused {
    fn error(self, trace: String, request: u64) -> TimedError {
        match self {
            Refused::TooLong(bytes) => TimedError::TooLong { trace, request, size: ByteCount(bytes) },
            Refused::Object => TimedError::Objects { trace },
        }
    }
}

impl Taken {
    fn take(&mut self, access: Access, block_bytes: u64) -> Result<(), Refused> {
        let (offset, length) = match access.place {
            Place::Volume => (0, 0),
            Place::Bytes { offset, length } => (offset, length),
            Place::Object { bytes: Some(_), .. } => return Err(Refused::Object),
            Place::Object { id, bytes: None } => {
                self.numbers_blocks = true;
                (id.saturating_mul(block_bytes), block_bytes)
            }
        };
        if length == 0 && access.op != Op::Flush {
            self.empty += 1;
            return Ok(());
        }
        let (first, end) = (offset / SECTOR_BYTES, offset.saturating_add(length).div_ceil(SECTOR_BYTES));
        let is_data = matches!(access.op, Op::Read | Op::Write);
        if is_data && end - first > SECTORS_MAX {
            return Err(Refused::TooLong(length));
        }
        let volume = access.volume as usize;
        if self.ends.len() <= volume {
            self.ends.resize(volume + 1, 0);
        }
        if is_data {
            self.ends[volume] = self.ends[volume].max(end);
        }
        self.has_times &= access.at.is_some();
        self.requests.push(TimedRequest {
            at: access.at.unwrap_or_default(),
            sector: first,
            sectors: u32::try_from(end - first).unwrap_or(u32::MAX),
            volume: access.volume,
            op: access.op,
        });
        Ok(())
    }
}

impl TimedTrace {
    /// How many requests are played.
    pub fn count(&self) -> u64 {
        self.requests.len() as u64
    }

    /// When the last request comes, since the first.
    pub fn lasts(&self) -> Nanos {
        self.requests.last().map_or(Nanos::ZERO, |request| request.at)
    }
}
