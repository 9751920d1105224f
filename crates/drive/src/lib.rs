//! Drives: real files and block devices, memory, modelled disks, flash and write caches, and a wrapper that injects faults.
//!
//! All are a [`Drive`]: commands go in with a completion token, completions come out. A [`DriveHandle`] is a
//! [`BlockTarget`](tier0_block::BlockTarget) too.
//!
//! Invariants: a drive answers every command exactly once; it never touches sectors outside of a command's range;
//! data is stable after a flush that was submitted after the write's completion, and not before, unless the write
//! was durable or the drive says that it has no volatile cache.
//!
//! What it does not do: a drive knows nothing of pools, sets or volumes, and repairs nothing.

mod backing;
pub mod conformance;
pub mod disk;
mod drive;
mod fault;
mod file;
pub mod flash;
pub mod guard;
mod modelled;
mod nvram;
mod ram;
pub mod sim;
mod store;
mod stream_copy;
mod target;

pub use backing::SparseStore;
pub use drive::{Command, Drive, DriveHandle, DriveInfo};
pub use fault::{Fault, FaultDrive, FaultPlan};
pub use file::{FileDrive, FileMedium, HeldAs, LoopDevice, OpenError, SystemUse, is_rotational};
pub use modelled::{Content, DiskDrive, FlashDrive, NvramDrive};
pub use nvram::NvramModel;
pub use ram::{RamDrive, RamMedium};
pub use store::StoreDrive;
