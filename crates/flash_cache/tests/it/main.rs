//! Tests of the flash cache on simulated drives.

mod common;
mod epochs;
mod faults;
mod formats;
mod lives;
mod maps;
mod model;
mod planted;
