//! What is known of volumes that come and go.

use std::collections::BTreeMap;

/// Whether it is there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Fate {
    /// Its creation is not acknowledged.
    Coming,
    There,
    /// Its deletion is not acknowledged.
    Going,
}

/// What a piece of it holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Piece {
    Zeros,
    /// A write of it was not acknowledged: each sector is old or new.
    UnderWay,
    Written,
}

/// A volume.
#[derive(Clone, Debug)]
pub(super) struct Known {
    pub(super) fate: Fate,
    pub(super) number: u64,
    pub(super) pieces: Vec<Piece>,
}

/// What is known of all of them.
#[derive(Debug, Default)]
pub(crate) struct Scratch {
    pub(super) volumes: BTreeMap<String, Known>,
    pub(super) ever: u64,
}
