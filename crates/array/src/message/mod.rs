//! What shards and the control task tell each other: plain data. Whoever carries something out has the code for it.

pub(crate) mod ask;
pub(crate) mod control;
pub(crate) mod order;
pub(crate) mod scrub;
pub(crate) mod volumes;
