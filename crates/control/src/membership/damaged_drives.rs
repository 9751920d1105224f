//! Drives that were damaged from outside while the array runs, and do not fail: a file that was deleted is served as long as
//! the server has it open, and one that was cut short, or a device that was made smaller, as far as nothing behind its end is
//! asked for. Nothing else tells.

use std::path::{Path, PathBuf};
use std::rc::Rc;

use tier0_api::{EventKind, FindingKind, Subject};
use tier0_pool::PoolState;
use tier0_units::Nanos;

use super::Membership;
use crate::membership::opener::Damage;
use crate::report::Findings;

/// How often is looked.
const LOOK: Nanos = Nanos::from_secs(10);

impl Membership {
    /// Looks for drives that were damaged or moved as long as the array runs.
    pub(crate) async fn watch_damaged_drives(self: Rc<Self>) {
        let Some(opener) = self.opener.clone() else { return };
        loop {
            let before = self.look_at_damaged_drives(opener.damaged());
            self.look_at_drives_of_full_size(&before);
            self.look_at_moved_drives().await;
            self.world.sleep(LOOK).await;
        }
    }

    /// Tells which drives have been damaged since the last look; what that had found.
    fn look_at_damaged_drives(&self, found: Vec<(PathBuf, Damage)>) -> Vec<(PathBuf, Damage)> {
        let before = self.damaged.replace(found.clone());
        for number in 0..self.pools.len() {
            for (name, path, damage) in damaged_of(&self.core(number).metadata.state(), &found) {
                if !before.iter().any(|(known, as_known)| known == path && *as_known == damage) {
                    self.tell(Subject::drive(name), damage.event(path));
                }
            }
        }
        before
    }

    /// Has drives read that were cut short and have their size again: what lay behind the cut is zeros there.
    fn look_at_drives_of_full_size(self: &Rc<Self>, before: &[(PathBuf, Damage)]) {
        let now = self.damaged.borrow().clone();
        let was_cut = |path: &str| {
            let is_it = |(other, damage): &(PathBuf, Damage)| {
                other.as_os_str() == path && *damage == Damage::CutShort
            };
            before.iter().any(is_it) && !now.iter().any(|(other, _)| other.as_os_str() == path)
        };
        for number in 0..self.pools.len() {
            let core = self.core(number);
            let regrown: Vec<(u32, String)> = {
                let state = core.metadata.state();
                let cut = state.members_by_place().filter(|(_, one)| one.is_active() && was_cut(&one.path));
                cut.map(|(place, member)| (place, member.name.clone())).collect()
            };
            if regrown.is_empty() {
                continue;
            }
            self.repair
                .core(number)
                .unverified
                .add_overwritten(&regrown.iter().map(|(place, _)| *place).collect::<Vec<_>>());
            for (_, name) in &regrown {
                self.tell(Subject::drive(name), EventKind::DriveSizeRestored);
            }
            self.repair.start_scrub(number, None);
        }
    }

    /// The array ends, and the next start finds what lies there then: whatever was told before is told anew.
    pub(crate) async fn tell_damaged_drives_at_the_end(&self) {
        let Some(opener) = &self.opener else { return };
        let mut damaged = opener.damaged();
        // A start tells itself of one that is too small.
        damaged.retain(|(_, damage)| *damage != Damage::CutShort);
        self.damaged.take();
        self.look_at_damaged_drives(damaged);
        self.tell_moved_drives_anew().await;
    }
}

impl Findings {
    /// Drives that serve, and that a start would not find as they were.
    pub(crate) fn look_at_damaged(&mut self, state: &PoolState, damaged: &[(PathBuf, Damage)]) {
        for (name, path, damage) in damaged_of(state, damaged) {
            self.add_about(Subject::drive(name), damage.finding(path));
        }
    }
}

/// The drives of a pool that serve and are among these.
fn damaged_of<'a>(state: &PoolState, damaged: &'a [(PathBuf, Damage)]) -> Vec<(String, &'a Path, Damage)> {
    let serves = state.members().iter().filter(|member| member.is_active());
    serves
        .filter_map(|member| {
            let (path, damage) = damaged.iter().find(|(path, _)| path.as_os_str() == member.path.as_str())?;
            Some((member.name.clone(), path.as_path(), *damage))
        })
        .collect()
}

impl Damage {
    fn event(self, path: &Path) -> EventKind {
        let path = path.to_owned();
        match self {
            Damage::Deleted { is_replaced } => EventKind::DriveFileDeleted { path, is_replaced },
            Damage::CutShort => EventKind::DriveCutShort { path },
        }
    }

    fn finding(self, path: &Path) -> FindingKind {
        let path = path.to_owned();
        match self {
            Damage::Deleted { is_replaced } => FindingKind::DriveFileDeleted { path, is_replaced },
            Damage::CutShort => FindingKind::DriveCutShort { path },
        }
    }
}
