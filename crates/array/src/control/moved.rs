//! Files of drives that were moved while the array runs: nothing fails, and the next start may not find them.

use std::path::{Path, PathBuf};

use tier0_pool::PoolState;

use super::Control;
use super::report::Findings;
use crate::admin::{Event, Health, Severity};

/// A drive's file that was moved since it was opened.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Moved {
    /// Where it was opened.
    pub(crate) from: PathBuf,
    /// Where it lies now.
    pub(crate) to: PathBuf,
    /// Whether something else lies where it was opened.
    pub(crate) is_replaced: bool,
}

impl Moved {
    fn fact(&self) -> String {
        let Moved { from, to, .. } = self;
        let then = match self.is_replaced {
            true => {
                "another file lies there, and if that is a copy of the drive, a start goes on from what it holds"
            }
            false => "a start may not find it",
        };
        format!("its file was moved from {from:?} to {to:?} while it serves, and {then}")
    }

    fn event(&self, name: &str) -> Event {
        Event {
            age_s: 0,
            severity: if self.is_replaced { Severity::Critical } else { Severity::Warning },
            thing: format!("drive {name}"),
            what: self.fact(),
            remedy: self.remedy().to_owned(),
            original: self.is_replaced.then(|| self.to.clone()),
        }
    }

    fn remedy(&self) -> &'static str {
        match self.is_replaced {
            true => "take the other file away and move the drive's back, before the server ends",
            false => "move it back, or put its new place into the array file",
        }
    }
}

impl Control {
    /// Tells which drives that serve have been moved since the last look, and which lie again where they were opened.
    pub(super) fn look_at_moved_drives(&self, moved: Vec<Moved>) {
        let before = self.moved.replace(moved.clone());
        for number in 0..self.pools.len() {
            let state = self.guarded(number).metadata.state().clone();
            for (name, moved) in moved_of(&state, &moved) {
                if !before.contains(moved) {
                    self.tell_event(moved.event(&name));
                }
            }
            let harmed = self.harmed.borrow().clone();
            let is_back = |path: &Path| {
                !moved.iter().any(|one| one.from == path) && !harmed.iter().any(|(from, _)| from == path)
            };
            for (name, one) in moved_of(&state, &before).into_iter().filter(|(_, one)| is_back(&one.from)) {
                let what = format!("its file is at {:?} again", one.from);
                self.tell(Severity::Info, format!("drive {name}"), what, "");
            }
        }
    }
}

impl Findings {
    /// Drives that serve and do not lie any more where they were opened; that place, and where they are.
    pub(super) fn look_at_moved(&mut self, state: &PoolState, moved: &[Moved]) {
        for (name, moved) in moved_of(state, moved) {
            let health = if moved.is_replaced { Health::Degraded } else { Health::Warning };
            self.add(health, format!("drive {name}: {}; {}", moved.fact(), moved.remedy()));
        }
    }
}

/// The drives of a pool that serve and are among these.
fn moved_of<'a>(state: &PoolState, moved: &'a [Moved]) -> Vec<(String, &'a Moved)> {
    let serves = state.members().iter().filter(|member| member.is_active());
    serves
        .filter_map(|member| {
            let moved = moved.iter().find(|moved| moved.from.as_os_str() == member.path.as_str())?;
            Some((member.name.clone(), moved))
        })
        .collect()
}
