//! The runner in virtual time against targets whose behaviour is known exactly.

mod course;
mod faults;
mod queueing;
mod target;
