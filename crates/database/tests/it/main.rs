//! Tests of modelled databases as a whole.

mod brokerage;
mod decision_support;
mod log_first;
mod measured;
mod queueing;
mod scan;
mod station;
mod wrong;
