//! What shards and the control task tell each other: plain data. The receiver has the code that carries it out.

pub mod command;
pub mod control;
pub mod request;
pub mod scrub;
pub mod tier;
pub mod volumes;
