//! Images of drives, to which they may be put back.

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};

use tier0_drive::sim::MediumImage;

/// Images of drives as they were at the end of earlier lives.
#[derive(Default)]
pub(crate) struct Images {
    pub(crate) kept: RefCell<BTreeMap<String, MediumImage>>,
    /// Drives that were put back and have not been seen by a start, with what they held before.
    pub(crate) restored: RefCell<BTreeMap<String, MediumImage>>,
    /// Drives that were ever put back, or have a history of their own: some of them may be a whole array of other times,
    /// which starts by right.
    pub(crate) old: RefCell<BTreeSet<String>>,
}

impl Images {
    /// Drives that are put back to what they were, which may be before they joined the last time: the start that finds them
    /// may call those missing that they are now.
    pub(crate) fn take_restored(&self) -> BTreeMap<String, MediumImage> {
        self.restored.take()
    }

    /// A drive has a history of its own, with which it may start alone by right.
    pub(crate) fn note_old(&self, name: &str) {
        self.old.borrow_mut().insert(name.to_owned());
    }

    /// Whether a drive was ever put back, or has a history of its own.
    pub(crate) fn is_old(&self, name: &str) -> bool {
        self.old.borrow().contains(name)
    }
}
