//! Random draws of a load: which address, which size, read or write, when.
//!
//! Every draw comes from a [`tier0_world::Random`], a seeded PCG stream. Logarithms and powers come from the
//! `libm` crate or from `power`, not from the platform's library, so that one seed draws the same on every
//! machine.

mod exponential;
mod generator;
mod hot_cold;
mod likeliest;
mod plan;
mod power;
mod scramble;
mod uniform;
mod zipf;

pub use exponential::Exponential;
pub use generator::{IoKind, Request, RequestGenerator};
pub use hot_cold::HotCold;
pub use plan::StreamPlan;
pub use scramble::Scramble;
pub use uniform::{Share, below};
pub use zipf::Zipf;
