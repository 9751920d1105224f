//! Drives that were harmed from outside while the array runs, and do not fail: a file that was deleted is served as long as
//! the server has it open, and one that was cut short, or a device that was made smaller, as far as nothing behind its end is
//! asked for. Nothing else tells.

use std::path::{Path, PathBuf};
use std::rc::Rc;

use tier0_api::{EventKind, FindingKind, Subject};
use tier0_pool::PoolState;
use tier0_units::Nanos;

use super::Control;
use super::report::Findings;
use crate::opener::Harm;

/// How often is looked.
const LOOK: Nanos = Nanos::from_secs(10);

impl Control {
    /// Looks for drives that were harmed or moved as long as the array runs.
    pub(super) async fn watch_harmed_drives(self: Rc<Self>) {
        let Some(opener) = self.opener.clone() else { return };
        loop {
            let before = self.look_at_harmed_drives(opener.harmed());
            self.look_at_drives_of_full_size(&before);
            self.look_at_moved_drives().await;
            self.world.sleep(LOOK).await;
        }
    }

    /// Tells which drives have been harmed since the last look; what that had found.
    fn look_at_harmed_drives(&self, found: Vec<(PathBuf, Harm)>) -> Vec<(PathBuf, Harm)> {
        let before = self.harmed.replace(found.clone());
        for number in 0..self.pools.len() {
            for (name, path, harm) in harmed_of(&self.core(number).metadata.state(), &found) {
                if !before.iter().any(|(known, as_known)| known == path && *as_known == harm) {
                    self.tell(Subject::drive(name), harm.event(path));
                }
            }
        }
        before
    }

    /// Has drives read that were cut short and have their size again: what lay behind the cut is zeros there.
    fn look_at_drives_of_full_size(self: &Rc<Self>, before: &[(PathBuf, Harm)]) {
        let now = self.harmed.borrow().clone();
        let was_cut = |path: &str| {
            let is_it =
                |(other, harm): &(PathBuf, Harm)| other.as_os_str() == path && *harm == Harm::CutShort;
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
            core.unverified.add_overwritten(&regrown.iter().map(|(place, _)| *place).collect::<Vec<_>>());
            for (_, name) in &regrown {
                self.tell(Subject::drive(name), EventKind::DriveSizeRestored);
            }
            self.start_scrub(number, None);
        }
    }

    /// The array ends, and the next start finds what lies there then: whatever was told before is told anew.
    pub async fn tell_harmed_drives_at_the_end(&self) {
        let Some(opener) = &self.opener else { return };
        let mut harmed = opener.harmed();
        // A start tells itself of one that is too small.
        harmed.retain(|(_, harm)| *harm != Harm::CutShort);
        self.harmed.take();
        self.look_at_harmed_drives(harmed);
        self.tell_moved_drives_anew().await;
    }
}

impl Findings {
    /// Drives that serve, and that a start would not find as they were.
    pub(super) fn look_at_harmed(&mut self, state: &PoolState, harmed: &[(PathBuf, Harm)]) {
        for (name, path, harm) in harmed_of(state, harmed) {
            self.add_about(Subject::drive(name), harm.finding(path));
        }
    }
}

/// The drives of a pool that serve and are among these.
fn harmed_of<'a>(state: &PoolState, harmed: &'a [(PathBuf, Harm)]) -> Vec<(String, &'a Path, Harm)> {
    let serves = state.members().iter().filter(|member| member.is_active());
    serves
        .filter_map(|member| {
            let (path, harm) = harmed.iter().find(|(path, _)| path.as_os_str() == member.path.as_str())?;
            Some((member.name.clone(), path.as_path(), *harm))
        })
        .collect()
}

impl Harm {
    fn event(self, path: &Path) -> EventKind {
        let path = path.to_owned();
        match self {
            Harm::Deleted { is_replaced } => EventKind::DriveFileDeleted { path, is_replaced },
            Harm::CutShort => EventKind::DriveCutShort { path },
        }
    }

    fn finding(self, path: &Path) -> FindingKind {
        let path = path.to_owned();
        match self {
            Harm::Deleted { is_replaced } => FindingKind::DriveFileDeleted { path, is_replaced },
            Harm::CutShort => FindingKind::DriveCutShort { path },
        }
    }
}
