//! Devices without space for good: the pool does without them, where it can.
//!
//! A file system that is full is waited for: it is somebody's to clear, and rarely holds one drive alone. A device that ends
//! too early, or whose store is full, is waited for too, as long as its patience lasts; then hosts should not get "no space"
//! for one device of a pool that is redundant. Members that lack space count all together: where the pool cannot do without
//! all of them, as when one store holds every leg, none is given up.

use std::collections::BTreeSet;
use std::rc::Rc;

use tier0_units::Nanos;

use super::Control;

/// How long a device may be without space, in time in which the runtime turned: as long as a command may take.
const PATIENCE: Nanos = Nanos::from_secs(30);
/// How often is looked.
const LOOK: Nanos = Nanos::from_secs(1);

impl Control {
    /// Does without devices that have been without space for longer than patience lasts, as long as the array runs. To record
    /// that takes as long as the other drives do, so nobody else waits for it.
    pub(super) async fn watch_full_devices(self: Rc<Self>, number: usize) {
        while self.guarded(number).pauses.has_guards() {
            self.world.sleep(LOOK).await;
            self.give_up_full_devices(number).await;
        }
    }

    async fn give_up_full_devices(self: &Rc<Self>, number: usize) {
        for place in self.full_for_long(number) {
            let guarded = self.guarded(number);
            if let Err(objection) = self.condemn_in_turn(number, place).await {
                let drive = guarded.drive_name(place);
                tracing::debug!(drive, "has no space and cannot be done without: {objection}");
                guarded.pauses.waits_for_space_anew(place, self.world.turned());
                continue;
            }
            self.take_out(number, place).await;
            self.start_rebuilds(number);
        }
    }

    /// Whether the pool can do without everything that lacks space now, and will if it goes on: only devices do.
    pub(super) fn does_without_full_devices(&self, number: usize) -> bool {
        let guarded = self.guarded(number);
        let full = self.full_serving(number);
        full.iter().all(|place| guarded.pauses.is_on_device(*place))
            && guarded.objection(&self.pools[number], &full).is_ok()
    }

    fn full_serving(&self, number: usize) -> BTreeSet<u32> {
        let guarded = self.guarded(number);
        let serves = |place: &u32| guarded.metadata.state().is_active(*place);
        guarded.pauses.full().into_iter().filter(serves).collect()
    }

    /// Devices without space for long, if the pool can do without everything that lacks space now.
    fn full_for_long(&self, number: usize) -> Vec<u32> {
        let guarded = self.guarded(number);
        let full = self.full_serving(number);
        let turned = self.world.turned();
        let due = guarded.pauses.without_space(&full, turned, PATIENCE);
        match due.is_empty() || guarded.objection(&self.pools[number], &full).is_err() {
            true => Vec::new(),
            false => due,
        }
    }
}
