//! Looking after the witness while the array runs: what is wrong with it is told before it is needed, and how far the pools
//! have come is noted. The control task does not wait for that: a note comes later than what it says, and service does
//! not depend on it.

use std::rc::Rc;

use tier0_api::EventKind;
use tier0_units::Nanos;

use super::Repair;
use crate::repair::witness::Progress;

/// How often the witness is looked at.
const LOOK: Nanos = Nanos::from_secs(5);

impl Repair {
    /// Looks whether the witness could be used, as long as the array runs. The status tells what was found last, so a
    /// file system that hangs does not hold it up.
    pub(crate) async fn watch_witness(self: Rc<Self>) {
        let Some(witness) = self.witness.clone() else { return };
        let mut noted: Vec<Progress> = Vec::new();
        loop {
            let progress = self.progress();
            let news = progress.iter().filter(|one| !noted.contains(one)).cloned().collect();
            let fault = witness.look_after(&self.world, news).await.err();
            if fault.is_none() {
                noted = progress;
            }
            let before = self.witness_fault.replace(fault.clone());
            match (before, fault) {
                (before, Some(fault)) if before.as_ref() != Some(&fault) => {
                    self.tell(self.array_subject(), EventKind::WitnessUnusable { fault });
                }
                (Some(_), None) => self.tell(self.array_subject(), EventKind::WitnessUsable),
                _ => {}
            }
            self.world.sleep(LOOK).await;
        }
    }

    fn progress(&self) -> Vec<Progress> {
        let of = |number: usize| {
            let metadata = &self.core(number).metadata;
            Progress::of(&metadata.state(), metadata.settled())
        };
        (0..self.pools.len()).map(of).collect()
    }
}
