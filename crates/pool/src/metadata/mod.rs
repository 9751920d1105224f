//! A pool's metadata on its drives.

pub mod superblock;
