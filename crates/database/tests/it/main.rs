//! Tests of modelled databases as a whole.

mod log_first;
mod measured;
mod queueing;
mod station;
mod wrong;
