//! Drive models and the conformance of every kind of drive: one program, for the engine in it takes long to compile.

mod conformance;
mod disk_common;
mod disk_datasheet;
mod disk_disksim;
mod disk_mechanics;
mod disk_schedule;
mod disk_validation;
mod flash_common;
mod flash_datasheets;
mod flash_mapping;
mod flash_theory;
mod flash_timing;
mod flash_window;
mod flash_write_amplification;
