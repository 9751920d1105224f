//! What is known of volumes that come and go.

use std::collections::BTreeMap;

use crate::auditor::{CloneBook, ReadTicket};

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
pub(super) enum Content {
    Zeros,
    /// What the volume held of which it is a clone.
    Cloned,
    /// What was written to the volume with this number: itself, or one of which it is a clone.
    Written(u64),
}

/// A piece of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Piece {
    pub(super) content: Content,
    /// What a write that was not acknowledged makes of it: each sector is old or new.
    pub(super) becomes: Option<Content>,
}

impl Piece {
    pub(super) fn of(content: Content) -> Piece {
        Piece { content, becomes: None }
    }
}

/// A volume.
pub(super) struct Known {
    pub(super) fate: Fate,
    pub(super) number: u64,
    pub(super) sectors: u64,
    pub(super) pieces: Vec<Piece>,
    /// What it has of one of the users' volumes.
    pub(super) cloned: Option<CloneBook>,
    /// That volume is being cloned.
    pub(super) cloning: Option<ReadTicket>,
    /// It has this many sectors if a shrink that was not acknowledged was done.
    pub(super) shrinks_to: Option<u64>,
    /// It may be a clone of a later moment than the one at which it was asked for.
    pub(super) is_unsure: bool,
}

/// What is known of all of them.
#[derive(Default)]
pub(crate) struct Scratch {
    pub(super) volumes: BTreeMap<String, Known>,
    pub(super) ever: u64,
}

impl Scratch {
    /// The array is about to die: a clone that it was making has what its volume held until now.
    pub(crate) fn crash(&mut self, clone_of: impl Fn(&ReadTicket) -> CloneBook) {
        for known in self.volumes.values_mut() {
            if let Some(ticket) = known.cloning.take() {
                known.cloned = Some(clone_of(&ticket));
            }
        }
    }
}
