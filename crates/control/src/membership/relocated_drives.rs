//! Drives that do not lie any more where they were opened: nothing fails, and the next start may not find them, or finds a copy
//! in their place. A file may have been moved, and so may a directory, a link, a mount or one of the file's names.

use std::path::Path;
use std::pin::pin;

use futures_util::future::{Either, select};
use tier0_api::event::FileMoved;
use tier0_api::{EventKind, FindingKind, Subject};
use tier0_pool::PoolState;
use tier0_units::Nanos;

use super::Membership;
use crate::membership::opener::RelocatedDrive;
use crate::report::Findings;

/// How long a look may take; what was seen before is told where it takes longer.
const LIMIT: Nanos = Nanos::from_secs(1);

impl RelocatedDrive {
    fn of_file(&self) -> FileMoved {
        let RelocatedDrive { from, to, is_replaced } = self.clone();
        FileMoved { from, to, is_replaced }
    }
}

impl Membership {
    /// Looks which drives that serve have been moved, tells which have been since the last look, and which lie again where they
    /// were opened.
    pub(crate) async fn look_at_moved_drives(&self) {
        let Some(moved) = self.moved_now().await else { return };
        let before = self.relocated.replace(moved);
        self.tell_moved_drives(&before);
    }

    /// The same, and tells those anew that were told before.
    pub(crate) async fn tell_moved_drives_anew(&self) {
        if let Some(moved) = self.moved_now().await {
            self.relocated.replace(moved);
        }
        self.tell_moved_drives(&[]);
    }

    async fn moved_now(&self) -> Option<Vec<RelocatedDrive>> {
        match select(self.opener.as_ref()?.relocated(), pin!(self.world.sleep(LIMIT))).await {
            Either::Left((moved, _)) => moved,
            Either::Right(_) => None,
        }
    }

    fn tell_moved_drives(&self, before: &[RelocatedDrive]) {
        let moved = self.relocated.borrow().clone();
        for number in 0..self.pools.len() {
            let state = self.core(number).metadata.state().clone();
            for (name, moved) in moved_of(&state, &moved) {
                if !before.contains(moved) {
                    self.tell(Subject::drive(name), EventKind::DriveFileMoved(moved.of_file()));
                }
            }
            let damaged = self.damaged.borrow().clone();
            let is_back = |path: &Path| {
                !moved.iter().any(|one| one.from == path) && !damaged.iter().any(|(from, _)| from == path)
            };
            for (name, one) in moved_of(&state, before).into_iter().filter(|(_, one)| is_back(&one.from)) {
                self.tell(Subject::drive(name), EventKind::DriveFileBack { path: one.from.clone() });
            }
        }
    }
}

impl Findings {
    /// Drives that serve and do not lie any more where they were opened; that place, and where they are.
    pub(crate) fn look_at_moved(&mut self, state: &PoolState, moved: &[RelocatedDrive]) {
        for (name, moved) in moved_of(state, moved) {
            self.add_about(Subject::drive(name), FindingKind::DriveFileMoved(moved.of_file()));
        }
    }
}

/// The drives of a pool that serve and are among these.
fn moved_of<'a>(state: &PoolState, moved: &'a [RelocatedDrive]) -> Vec<(String, &'a RelocatedDrive)> {
    let serves = state.members().iter().filter(|member| member.is_active());
    serves
        .filter_map(|member| {
            let moved = moved.iter().find(|moved| moved.from.as_os_str() == member.path.as_str())?;
            Some((member.name.clone(), moved))
        })
        .collect()
}
