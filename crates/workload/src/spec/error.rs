//! What can be wrong with a description of a load: every message states the fact, then the remedy.

use thiserror::Error;
use tier0_units::ByteCount;

/// Why a text is no part of a load, or why a load cannot be run.
#[derive(Clone, Debug, PartialEq, Error)]
pub enum SpecError {
    /// A text that is no duration.
    #[error("{0:?} is not a duration; write a number and a unit, as in 500us, 10ms, 1.5s, 5min or 24h")]
    Duration(String),
    /// A text that is no access pattern.
    #[error(
        "{0:?} is not a pattern; write random, sequential, zipf:0.99 or hot-cold:80/20 \
         (80 % of the accesses to 20 % of the space)"
    )]
    Pattern(String),
    /// A text that is no mix of block sizes.
    #[error(
        "{0:?} is not a mix of block sizes; write one size, as in 8KiB, or sizes with weights, \
         as in \"8KiB:70 64KiB:30\""
    )]
    BlockMix(String),
    /// A text that is no part of a target.
    #[error(
        "{0:?} is not a size or a percentage; write a size, as in 100GiB, or a share of the target, as in 40%"
    )]
    Portion(String),
    /// A text that is no think time.
    #[error("{0:?} is not a think time; write none, 10ms (always) or exponential:10ms (on average)")]
    ThinkTime(String),

    /// A load without streams.
    #[error("the load file has no stream; add a [stream] table")]
    NoStream,
    /// Two streams that a report could not tell apart.
    #[error("two streams are named {0:?}; rename one")]
    NameTwice(String),
    /// A run that nothing would end.
    #[error("the run has no limit; set at least one of time, ios and bytes under [limits]")]
    NoLimit,
    /// A limit of nothing.
    #[error("the limit {0} is zero; raise it, or remove it")]
    ZeroLimit(&'static str),
    /// An interval of no length, or more intervals than a report can hold.
    #[error("{intervals} intervals are too many for a report; set interval so that there are 1 to {max}")]
    Intervals {
        /// How many intervals the run would have.
        intervals: u64,
        /// How many a report holds.
        max: u64,
    },
    /// A value outside its range, of the load as a whole.
    #[error("{field} is {value}; set it to {allowed}")]
    Field {
        /// The field's name in the description.
        field: &'static str,
        /// What was found.
        value: String,
        /// What is allowed.
        allowed: &'static str,
    },
    /// A value outside its range, of one stream.
    #[error("stream {stream:?}: {field} is {value}; set it to {allowed}")]
    StreamField {
        /// The stream's name.
        stream: String,
        /// The field's name in the description.
        field: &'static str,
        /// What was found.
        value: String,
        /// What is allowed.
        allowed: &'static str,
    },
    /// A range that begins or ends beyond the target.
    #[error(
        "stream {stream:?}: its range ends at {end:#}, beyond the target's capacity of {capacity:#}; reduce \
         length or start"
    )]
    BeyondTarget {
        /// The stream's name.
        stream: String,
        /// Where the range would end.
        end: ByteCount,
        /// What the target holds.
        capacity: ByteCount,
    },
    /// A range into which not even one block fits.
    #[error(
        "stream {stream:?}: its range of {range:#} is smaller than a block of {block:#}; enlarge the range"
    )]
    RangeTooSmall {
        /// The stream's name.
        stream: String,
        /// The range's size.
        range: ByteCount,
        /// The largest block.
        block: ByteCount,
    },
    /// Verification of more blocks than its map may hold.
    #[error(
        "verification would need {needed:#} of memory, more than {allowed:#}; reduce the range, or use larger blocks"
    )]
    VersionMapTooLarge {
        /// What the map would need.
        needed: ByteCount,
        /// What it may take.
        allowed: ByteCount,
    },
}
