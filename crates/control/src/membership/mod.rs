//! Drives that join, leave and come back, and what becomes of those that serve: superblocks, foreign and moved drives, the
//! witness.

pub(crate) mod damaged_drives;
pub(crate) mod departed;
pub(crate) mod heartbeat;
pub(crate) mod join;
pub(crate) mod named_drives;
pub(crate) mod opener;
pub(crate) mod original_array;
pub(crate) mod overwritten_superblocks;
pub(crate) mod rejoin;
pub(crate) mod relocated_drives;
pub(crate) mod removal;
pub(crate) mod start_check;
pub(crate) mod witness;
pub(crate) mod witness_watch;
