//! The write cache, the read cache, the flash cache and the write log: switches, sizes and places.

pub(crate) mod flash_cache;
pub(crate) mod log_placement;
pub(crate) mod switches;
