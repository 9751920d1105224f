//! Drives that do not lie any more where they were opened: nothing fails, and the next start may not find them, or finds a copy
//! in their place. A file may have been moved, and so may a directory, a link, a mount or one of the file's names.

use std::path::Path;
use std::pin::pin;

use futures_util::future::{Either, select};
use tier0_api::{Event, Health, Severity};
use tier0_pool::PoolState;
use tier0_units::Nanos;

use super::Control;
use super::report::Findings;
use crate::opener::Moved;

/// How long a look may take; what was seen before is told where it takes longer.
const LIMIT: Nanos = Nanos::from_secs(1);

impl Moved {
    fn fact(&self) -> String {
        let Moved { from, to, is_replaced } = self;
        let becomes = match to {
            Some(to) => format!("its file was moved from {from:?} to {to:?} while it serves"),
            None => format!("{from:?} does not lead to its file any more"),
        };
        let then = match is_replaced {
            true => {
                "another file lies there, and if that is a copy of the drive, a start goes on from what it holds"
            }
            false => "a start may not find it",
        };
        format!("{becomes}, and {then}")
    }

    fn event(&self, name: &str) -> Event {
        Event {
            age_s: 0,
            severity: if self.is_replaced { Severity::Critical } else { Severity::Warning },
            thing: format!("drive {name}"),
            what: self.fact(),
            remedy: self.remedy().to_owned(),
            original: self.to.clone().filter(|_| self.is_replaced),
        }
    }

    fn remedy(&self) -> &'static str {
        match (self.is_replaced, &self.to) {
            (true, Some(_)) => "take the other file away and move the drive's back, before the server ends",
            (false, Some(_)) => "move it back, or put its new place into the array file",
            (true, None) => {
                "undo the rename, the link or the mount that has put the other file there, before the server ends"
            }
            (false, None) => "undo the rename, the link or the mount that has hidden it",
        }
    }
}

impl Control {
    /// Looks which drives that serve have been moved, tells which have been since the last look, and which lie again where they
    /// were opened.
    pub(super) async fn look_at_moved_drives(&self) {
        let Some(moved) = self.moved_now().await else { return };
        let before = self.moved.replace(moved);
        self.tell_moved_drives(&before);
    }

    /// The same, and tells those anew that were told before.
    pub(super) async fn tell_moved_drives_anew(&self) {
        if let Some(moved) = self.moved_now().await {
            self.moved.replace(moved);
        }
        self.tell_moved_drives(&[]);
    }

    async fn moved_now(&self) -> Option<Vec<Moved>> {
        match select(self.opener.as_ref()?.moved(), pin!(self.world.sleep(LIMIT))).await {
            Either::Left((moved, _)) => moved,
            Either::Right(_) => None,
        }
    }

    fn tell_moved_drives(&self, before: &[Moved]) {
        let moved = self.moved.borrow().clone();
        for number in 0..self.pools.len() {
            let state = self.core(number).metadata.state().clone();
            for (name, moved) in moved_of(&state, &moved) {
                if !before.contains(moved) {
                    self.tell_event(moved.event(&name));
                }
            }
            let harmed = self.harmed.borrow().clone();
            let is_back = |path: &Path| {
                !moved.iter().any(|one| one.from == path) && !harmed.iter().any(|(from, _)| from == path)
            };
            for (name, one) in moved_of(&state, before).into_iter().filter(|(_, one)| is_back(&one.from)) {
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
