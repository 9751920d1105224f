//! Fuzzing of everything that reads bytes from outside: protocols, metadata on drives, configuration.
//!
//! | module | concept |
//! |---|---|
//! | [`target`] | what a target is, and running one input under watch |
//! | [`targets`] | the parsers, each with its seeds and the repair of its checksums |
//! | [`mutate`] | inputs from inputs: flips, splices, lengths, then the repair |
//! | [`allocation`] | how much memory an input made the parser take |
//!
//! `cargo xtask fuzz` builds this crate's program with coverage instrumentation and lets libFuzzer guide it. The
//! ordinary tests replay what was once found (`regressions/TARGET/`) and mutate the seeds for a moment, without guidance.
//!
//! What it checks of every input: no panic, no arithmetic overflow, no more memory than the target's bound, and what the
//! target itself asserts, such as that decoding and encoding agree and that it does not matter how a stream was cut. A hang
//! is seen by libFuzzer's time limit; parsers of streams count their steps besides.

pub mod allocation;
pub mod mutate;
pub mod target;
pub mod targets;

pub use target::{Target, find};

/// Counts what inputs allocate, in the tests and in the fuzzing program alike.
#[global_allocator]
static ALLOCATOR: allocation::Counting = allocation::Counting;
