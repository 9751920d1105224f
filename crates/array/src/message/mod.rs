//! What shards and the control task tell each other: plain data. The receiver has the code that carries it out.

pub(crate) mod command;
pub(crate) mod control;
pub(crate) mod request;
pub(crate) mod scrub;
pub(crate) mod volumes;
