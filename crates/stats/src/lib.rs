//! What the array counts of itself: requests, bytes, errors and latencies, by volume and by drive.
//!
//! | module | concept |
//! |---|---|
//! | [`recorder`] | counters of one thread, fed by the shard that does the work |
//! | [`io`] | what they have come to: merged from all shards, subtracted from what came later, sent as JSON |
//! | [`latencies`] | a distribution of latencies, exact to 1 % |
//!
//! Counters only grow, from the start of the array on: a caller that wants rates asks twice and subtracts. Nothing here
//! does any I/O or asks for the time.

pub mod io;
pub mod latencies;
pub mod recorder;

pub use io::{IoStats, OpStats};
pub use latencies::Latencies;
pub use recorder::{IoRecorder, Op};
