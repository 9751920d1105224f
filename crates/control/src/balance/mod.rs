//! Where extents and columns lie: the mover, restriping, moves of columns, growth of a pool.

pub(crate) mod column_moves;
pub(crate) mod grow;
pub(crate) mod misplaced_columns;
pub(crate) mod mover;
pub(crate) mod restripe;
