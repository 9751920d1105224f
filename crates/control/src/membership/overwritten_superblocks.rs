//! Drives whose front was overwritten from outside while they serve. The array has in memory all that a start needs, so it
//! writes its metadata anew, and a scrub repairs what else was overwritten. Without that the next start would know none of
//! the drives.
//!
//! What it does not do: pages of the map that are damaged behind a checkpoint's head that is right show at the next scrub, which
//! writes the metadata anew in any case.

use std::rc::Rc;

use futures_util::future::join_all;
use tier0_api::{EventKind, Subject};
use tier0_drive::guard::Standing;
use tier0_units::Nanos;

use super::Membership;

/// How often is looked.
const LOOK: Nanos = Nanos::from_secs(10);

impl Membership {
    /// Looks at the metadata on a pool's drives as long as the array runs.
    pub(crate) async fn watch_fronts(self: Rc<Self>, number: usize) {
        loop {
            self.world.sleep(LOOK).await;
            if self.core(number).pauses.since().is_none() {
                self.look_at_fronts(number).await;
            }
        }
    }

    async fn look_at_fronts(self: &Rc<Self>, number: usize) {
        let core = self.core(number);
        let serving: Vec<u32> = {
            let state = core.metadata.state();
            let active = state.members_by_place().filter(|(_, member)| member.is_active());
            active.map(|(place, _)| place).collect()
        };
        let answers = |place: &u32| {
            core.pauses.health(*place).is_none_or(|health| health.standing == Standing::Healthy)
        };
        let looks = serving
            .into_iter()
            .filter(answers)
            .map(|place| async move { (!core.metadata.has_own_front(place).await).then_some(place) });
        let overwritten: Vec<u32> = join_all(looks).await.into_iter().flatten().collect();
        let still_serves = |place: &u32| core.metadata.state().is_active(*place);
        let overwritten: Vec<u32> = overwritten.into_iter().filter(still_serves).collect();
        let names: Vec<String> = overwritten.iter().map(|place| core.drive_name(*place)).collect();
        if names.is_empty() {
            return;
        }
        self.repair.core(number).unverified.add_overwritten(&overwritten);
        let drives = Subject::drives(&names);
        match core.metadata.renew().await {
            Ok(()) => {
                self.tell(drives, EventKind::DriveFrontOverwritten { error: None });
                // One that is going on has read a part before: another one follows it.
                self.repair.start_scrub(number, None);
            }
            Err(error) => {
                self.tell(drives, EventKind::DriveFrontOverwritten { error: Some(error.to_string()) });
            }
        }
    }
}
