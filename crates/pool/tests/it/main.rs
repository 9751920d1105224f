//! A pool's metadata through lives, power cuts and bad sectors: one program, for the engine in it takes long to compile.

mod bad_sectors;
mod common;
mod crash;
mod forgotten;
mod late_header;
mod lives;
mod overwritten;
mod paged;
mod readmission;
mod renewal;
mod upgrade;
