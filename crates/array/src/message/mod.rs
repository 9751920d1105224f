//! What shards and the control task tell each other: plain data. Whoever carries something out has the code for it.

pub(crate) mod command;
pub(crate) mod control;
pub(crate) mod request;
pub(crate) mod scrub;
pub(crate) mod volumes;
