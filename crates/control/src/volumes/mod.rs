//! Volumes that come, change and go; clones; commits of extents that move.

pub(crate) mod clones;
pub(crate) mod extent_commits;
pub(crate) mod lifecycle;
pub(crate) mod shrink;
