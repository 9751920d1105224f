//! Slots of a pool: discards of freed ones, and the rules of its space.

pub(crate) mod discards;
pub(crate) mod rules;
