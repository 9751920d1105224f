//! The drives that a pool waits for, and what the guards know of its drives. What follows from that is decided elsewhere
//! ([`crate::repair::pause`]).

use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::sync::Arc;

use tier0_drive::DriveHandle;
use tier0_drive::guard::{Health, HealthSnapshot};
use tier0_units::Nanos;

use crate::message::command::Refused;

/// Drives that were away together seldom come back in the same moment: when the first of them answers, the others get this
/// much time before one of them is arbitrated.
pub(crate) const RESPITE: Nanos = Nanos::from_secs(10);

/// The drives that a pool waits for, and what is known of all of them.
#[derive(Default)]
pub(crate) struct Pauses {
    pub(crate) awaited: RefCell<BTreeMap<u32, Awaited>>,
    /// Drives that events have named as waited for in this pause.
    pub(crate) named: RefCell<BTreeSet<u32>>,
    /// Since when some drive of a pause answers again while others are still waited for.
    pub(crate) returned_at: Cell<Option<Nanos>>,
    /// Since when the backing stores of serving drives have been full.
    pub(crate) full_since: RefCell<BTreeMap<u32, Nanos>>,
    /// What hosts are refused at present, by lane of the log.
    pub(crate) refused: RefCell<Vec<Refused>>,
    /// By member, where its drive has a guard.
    pub(crate) healths: RefCell<BTreeMap<u32, Arc<Health>>>,
    /// Members whose drives are block devices.
    pub(crate) devices: RefCell<BTreeSet<u32>>,
    /// What has been told of them.
    pub(crate) told: RefCell<BTreeMap<u32, HealthSnapshot>>,
}

/// A drive that is waited for.
pub(crate) struct Awaited {
    pub(crate) since: Nanos,
    /// Why it is not done without.
    pub(crate) reason: String,
}

impl Pauses {
    /// A member's drive, whose guard knows how it does.
    pub(crate) fn watch(&self, member: u32, drive: &DriveHandle) {
        if let Some(guard) = drive.guard() {
            self.healths.borrow_mut().insert(member, guard.health().clone());
        }
        // Asked now, when the drive has just been opened: later its directory may hang.
        if !drive.world().is_virtual() && is_device(Path::new(&drive.info().name)) {
            self.devices.borrow_mut().insert(member);
        }
    }

    /// Whether guards stand before the drives.
    pub(crate) fn has_guards(&self) -> bool {
        !self.healths.borrow().is_empty()
    }

    /// What is known of a member's drive, where it has a guard.
    pub(crate) fn health(&self, member: u32) -> Option<HealthSnapshot> {
        self.healths.borrow().get(&member).map(|health| health.snapshot())
    }

    /// The health of a member's drive that is to be closed, unless writes from before it was lost may still change it.
    pub(crate) fn forget(&self, member: u32) -> Option<Arc<Health>> {
        let mut healths = self.healths.borrow_mut();
        let is_quiet = healths.get(&member).is_some_and(|health| health.strays() == 0);
        is_quiet.then(|| healths.remove(&member)).flatten()
    }

    /// Whether a member's drive is a block device.
    pub(crate) fn is_on_device(&self, member: u32) -> bool {
        self.devices.borrow().contains(&member)
    }

    /// Whether the pool waits for this drive.
    pub(crate) fn awaits(&self, member: u32) -> bool {
        self.awaited.borrow().contains_key(&member)
    }

    /// Whether the pool waits for other drives than this one, of which none has come back yet.
    pub(crate) fn awaits_others_than(&self, member: u32) -> bool {
        self.returned_at.get().is_none() && self.awaited.borrow().keys().any(|other| *other != member)
    }

    /// Some drive of the pause answers again.
    pub(crate) fn note_return(&self, now: Nanos) {
        self.returned_at.set(self.returned_at.get().or(Some(now)));
    }

    /// Those that had come back are away again.
    pub(crate) fn forget_return(&self) {
        self.returned_at.set(None);
    }

    /// Whether the drives that are still waited for have time to come back, because others just have.
    pub(crate) fn has_respite(&self, now: Nanos) -> bool {
        self.returned_at.get().is_some_and(|at| now.saturating_sub(at) < RESPITE)
    }

    /// Since when the pool is paused, if it is.
    pub(crate) fn since(&self) -> Option<Nanos> {
        self.awaited.borrow().values().map(|awaited| awaited.since).min()
    }

    /// A member was taken out. What waits for space on its drive fails then: no error would ever ask for a verdict on it.
    pub(crate) fn end_waits_for_space(&self, member: u32, now: Nanos) {
        let health = self.healths.borrow().get(&member).cloned();
        if let Some(health) = health.filter(|health| health.snapshot().no_space) {
            health.lose(now);
        }
    }

    /// Notes since when which backing stores are full. A pool does not wait for the space of a drive that does not serve.
    pub(crate) fn look_for_space(&self, now: Nanos, serves: impl Fn(u32) -> bool) {
        let full: BTreeSet<u32> = self.full().into_iter().filter(|member| serves(*member)).collect();
        let mut since = self.full_since.borrow_mut();
        since.retain(|member, _| full.contains(member));
        full.into_iter().for_each(|member| {
            since.entry(member).or_insert(now);
        });
    }

    /// Members whose drives' backing store is full.
    pub(crate) fn full(&self) -> Vec<u32> {
        let healths = self.healths.borrow();
        healths.iter().filter(|(_, health)| health.snapshot().no_space).map(|(place, _)| *place).collect()
    }
}

/// Whether a path leads to a device.
fn is_device(path: &Path) -> bool {
    std::fs::canonicalize(path).is_ok_and(|plain| plain.starts_with("/dev"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_device_is_known_through_a_link() {
        let directory = tempfile::tempdir().expect("a directory");
        let link = directory.path().join("d0.dev");
        std::os::unix::fs::symlink("/dev/null", &link).expect("a link");
        std::fs::write(directory.path().join("d1.img"), [0]).expect("a file");
        assert!(is_device(&link) && is_device(Path::new("/dev/null")));
        assert!(!is_device(&directory.path().join("d1.img")) && !is_device(Path::new("d0")));
    }
}
