//! Files of drives that were moved while the array runs: nothing fails, and the next start may not find them.

use std::path::{Path, PathBuf};

use tier0_pool::PoolState;

use super::Control;
use super::report::Findings;
use crate::admin::{Health, Severity};

/// What to do about a drive's file that was moved.
const REMEDY: &str = "move it back, or put its new place into the array file";

impl Control {
    /// Tells which drives that serve have been moved since the last look, and which lie again where they were opened.
    pub(super) fn look_at_moved_drives(&self, moved: Vec<(PathBuf, PathBuf)>) {
        let before = self.moved.replace(moved.clone());
        for number in 0..self.pools.len() {
            let state = self.guarded(number).metadata.state().clone();
            for (name, from, to) in moved_of(&state, &moved) {
                if !before.iter().any(|(known, place)| known == from && place == to) {
                    self.tell(Severity::Warning, format!("drive {name}"), fact(from, to), REMEDY);
                }
            }
            let harmed = self.harmed.borrow().clone();
            let is_back = |path: &Path| {
                !moved.iter().any(|(from, _)| from == path) && !harmed.iter().any(|(from, _)| from == path)
            };
            for (name, from, _) in moved_of(&state, &before).into_iter().filter(|(_, from, _)| is_back(from))
            {
                let what = format!("its file is at {from:?} again");
                self.tell(Severity::Info, format!("drive {name}"), what, "");
            }
        }
    }
}

impl Findings {
    /// Drives that serve and do not lie any more where they were opened; that place, and where they are.
    pub(super) fn look_at_moved(&mut self, state: &PoolState, moved: &[(PathBuf, PathBuf)]) {
        for (name, from, to) in moved_of(state, moved) {
            self.add(Health::Warning, format!("drive {name}: {}; {REMEDY}", fact(from, to)));
        }
    }
}

fn fact(from: &Path, to: &Path) -> String {
    format!("its file was moved from {from:?} to {to:?} while it serves, and a start may not find it")
}

/// The drives of a pool that serve and are among these.
fn moved_of<'a>(state: &PoolState, moved: &'a [(PathBuf, PathBuf)]) -> Vec<(String, &'a Path, &'a Path)> {
    let serves = state.members().iter().filter(|member| member.is_active());
    serves
        .filter_map(|member| {
            let (from, to) = moved.iter().find(|(from, _)| from.as_os_str() == member.path.as_str())?;
            Some((member.name.clone(), from.as_path(), to.as_path()))
        })
        .collect()
}
