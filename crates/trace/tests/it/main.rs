//! Traces in all forms, read and written.

mod compressed;
mod round_trip;
mod shared;
