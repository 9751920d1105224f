//! Drives that were taken back by what has changed, or overwritten from outside, until a scrub has read them whole.
//!
//! A drive that was taken back is as it was left, as far as its superblock tells. An administrator who has put it back to an older
//! image of the same superblock has left pages on it that nothing here knows to be old; a scrub finds them by their
//! checksums while its partners have the right ones. The old place of the drive stays among the members until that
//! scrub has ended, so a restart knows of it too.

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};

use tier0_api::{FindingKind, Subject};
use tier0_plan::sets_survive;
use tier0_pool::PoolState;
use tier0_raid::set::SetIndex;
use tier0_units::named;

use super::{Repair, RepairPool};
use crate::admin::AdminError;
use crate::report::Findings;

/// The old places of drives that were taken back and not read whole since.
#[derive(Default)]
pub(crate) struct Unverified {
    /// Each with whether all that was to be rebuilt of it is: what is not there yet, a scrub does not read.
    places: RefCell<BTreeMap<u32, bool>>,
    /// Those of an earlier run. Some of these drives had joined blank, under the name of a lost one, and are whole.
    resumed: RefCell<BTreeSet<u32>>,
    /// Those for whose sake the pass of the scrub that goes on, or was stopped, has begun at the first slot.
    covered: RefCell<BTreeSet<u32>>,
    /// Members that were overwritten from outside while they serve.
    overwritten: RefCell<BTreeSet<u32>>,
    /// Those of them for whose sake the pass has begun at the first slot.
    overwritten_covered: RefCell<BTreeSet<u32>>,
}

impl Unverified {
    /// A drive was taken back by what has changed since it had this place.
    pub(crate) fn add(&self, place: u32) {
        self.places.borrow_mut().insert(place, false);
        self.covered.borrow_mut().remove(&place);
        self.resumed.borrow_mut().remove(&place);
    }

    /// Members were overwritten: what the scrub that goes on has read before tells nothing of them.
    pub(crate) fn add_overwritten(&self, members: &[u32]) {
        self.overwritten.borrow_mut().extend(members);
        self.overwritten_covered.borrow_mut().retain(|member| !members.contains(member));
    }

    fn overwritten(&self, state: &PoolState) -> Vec<u32> {
        self.overwritten.borrow().iter().copied().filter(|member| state.is_active(*member)).collect()
    }

    /// What an earlier run has taken back and not forgotten. Some may be verified, or have been rebuilt wholly: that it did
    /// not note.
    pub(crate) fn resume(&self, state: &PoolState) {
        let places = (0..state.members().len() as u32).filter(|place| state.serves_as(*place).is_some());
        let places: BTreeSet<u32> = places.collect();
        self.places.borrow_mut().extend(places.iter().map(|place| (*place, false)));
        *self.resumed.borrow_mut() = places;
    }

    /// A rebuild has ended: which drives have all that is to be there.
    pub(crate) fn note_rebuilt(&self, state: &PoolState) {
        for (place, is_rebuilt) in self.places.borrow_mut().iter_mut() {
            let Some(member) = state.serves_as(*place) else { continue };
            let lacks = state.lost_columns().any(|(set, column)| state.column(set, column).drive == *place)
                || state.rebuilds().any(|(_, _, rebuild)| rebuild.target.drive == member);
            *is_rebuilt |= !lacks;
        }
    }

    /// Whether the place must not be forgotten yet.
    pub(crate) fn holds(&self, state: &PoolState, place: u32) -> bool {
        self.places.borrow().contains_key(&place) && state.serves_as(place).is_some()
    }

    /// The members that the drives serve as.
    pub(crate) fn members(&self, state: &PoolState) -> BTreeSet<u32> {
        let taken_back = self.places.borrow();
        let taken_back = taken_back.keys().filter_map(|place| state.serves_as(*place));
        taken_back.chain(self.overwritten(state)).collect()
    }

    /// Of those, the ones of which this run knows itself.
    pub(crate) fn members_of_this_run(&self, state: &PoolState) -> BTreeSet<u32> {
        let (places, resumed) = (self.places.borrow(), self.resumed.borrow());
        let own = places.keys().filter(|place| !resumed.contains(place));
        own.filter_map(|place| state.serves_as(*place)).chain(self.overwritten(state)).collect()
    }

    /// The places of which a scrub reads everything.
    fn rebuilt(&self) -> BTreeSet<u32> {
        self.places.borrow().iter().filter(|(_, is_rebuilt)| **is_rebuilt).map(|(place, _)| *place).collect()
    }

    /// Whether a scrub is due.
    pub(crate) fn is_due(&self, state: &PoolState) -> bool {
        self.rebuilt().into_iter().any(|place| state.serves_as(place).is_some())
    }

    /// A pass of a scrub begins: whether it must begin at the first slot, because it goes for drives for which the last one
    /// did not.
    pub(crate) fn begin_pass(&self) -> bool {
        let (rebuilt, mut covered) = (self.rebuilt(), self.covered.borrow_mut());
        let (overwritten, mut overwritten_covered) =
            (self.overwritten.borrow(), self.overwritten_covered.borrow_mut());
        if rebuilt.is_subset(&covered) && overwritten.is_subset(&overwritten_covered) {
            return false;
        }
        *covered = rebuilt;
        overwritten_covered.clone_from(&overwritten);
        true
    }

    /// A pass has ended and has read everything, or left something out.
    pub(crate) fn end_pass(&self, has_read_all: bool) -> EndOfPass {
        let covered = self.covered.take();
        let overwritten_covered = self.overwritten_covered.take();
        let is_due_again =
            !self.rebuilt().is_subset(&covered) || !self.overwritten.borrow().is_subset(&overwritten_covered);
        if has_read_all {
            self.places.borrow_mut().retain(|place, _| !covered.contains(place));
            self.overwritten.borrow_mut().retain(|member| !overwritten_covered.contains(member));
        }
        EndOfPass { has_verified: has_read_all && !covered.is_empty(), is_due_again }
    }
}

/// What the end of a pass has brought.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct EndOfPass {
    /// Drives are verified now.
    pub(crate) has_verified: bool,
    /// Another pass is due, for drives that came while this one went on.
    pub(crate) is_due_again: bool,
}

impl Repair {
    /// The old places of drives that have joined again are to be forgotten. A crash, or an error, may have come before that was
    /// noted.
    pub(crate) async fn finish_rejoins(&self, number: usize) -> Result<(), AdminError> {
        let old: Vec<u32> = {
            let state = self.core(number).metadata.state();
            let members = (0u32..).zip(state.members());
            let stays =
                members.filter(|(place, member)| !member.leaving && state.serves_as(*place).is_some());
            stays.map(|(place, _)| place).collect()
        };
        for place in old {
            self.pool(number).set_leaving(place, true).await?;
        }
        Ok(())
    }

    /// Whether a drive can be taken out by an administrator while others are not verified, or gave something wrong.
    pub(crate) fn check_verified(&self, number: usize, place: u32) -> Result<(), AdminError> {
        let core = self.core(number);
        let state = core.metadata.state();
        let unverified = core.unverified.members(&state);
        let untrue = core.page_errors.untrue();
        let sets = &core.shape.sets;
        let survives = |doubted: &BTreeSet<u32>| {
            let is_without =
                |drive: u32| drive == place || doubted.contains(&drive) || !state.is_active(drive);
            let lacks = |set: SetIndex, column, drive: u32| {
                is_without(drive) || sets.lacking_columns(set).contains(column)
            };
            !doubted.iter().any(|drive| *drive != place) || sets_survive(sets, state.set_count(), lacks)
        };
        let but_it = |doubted: &BTreeSet<u32>| core.names(&(doubted - &BTreeSet::from([place])));
        let (why, wait) = if !survives(&unverified) {
            let names = but_it(&unverified);
            let why = format!("{} taken back, or overwritten, and not verified yet", were(&names));
            (why, "wait for the end of the scrub (tier0 status)")
        } else if !survives(&(&unverified | &untrue)) {
            let names = but_it(&untrue);
            let names: Vec<&str> = names.iter().map(String::as_str).collect();
            let why = format!("{} had bad pages, and no full scrub has run since", named("drive", &names));
            (why, "scrub first (tier0 scrub)")
        } else {
            return Ok(());
        };
        Err(AdminError::new(format!(
            "{why}, and drive {:?} may hold the only good copy; {wait}, or force it (tier0 drive remove --force)",
            core.drive_name(place)
        )))
    }
}

/// "drive d1 was", "drives d1, d2 were".
pub(crate) fn were(names: &[String]) -> String {
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    format!("{} {}", named("drive", &names), if names.len() == 1 { "was" } else { "were" })
}

impl RepairPool {
    fn names(&self, members: &BTreeSet<u32>) -> Vec<String> {
        members.iter().map(|place| self.drive_name(*place)).collect()
    }
}

impl Findings {
    pub(crate) fn look_at_unverified(&mut self, state: &PoolState, core: &RepairPool) {
        let names = core.names(&core.unverified.members(state));
        if names.is_empty() {
            return;
        }
        let is_under_way = core.rebuild.is_running() || core.scrub.running.get();
        let subject = Subject::drives(&names);
        self.add_about(subject, FindingKind::DrivesUnverified { drives: names, is_under_way });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pass_that_had_begun_before_verifies_nothing() {
        let unverified = Unverified::default();
        assert!(!unverified.begin_pass(), "it goes on where the last one was stopped");
        unverified.add(3);
        let end = |has_verified, is_due_again| EndOfPass { has_verified, is_due_again };
        assert!(!unverified.begin_pass(), "what is still being rebuilt is not read");
        assert_eq!(unverified.end_pass(true), end(false, false));
        unverified.places.borrow_mut().insert(3, true);
        assert_eq!(unverified.end_pass(true), end(false, true), "another one is due");
        assert!(unverified.begin_pass(), "it begins at the first slot");
        assert_eq!(
            unverified.end_pass(false),
            end(false, false),
            "what it left out is not read again at once"
        );
        assert!(unverified.begin_pass());
        // It was stopped, and goes on.
        assert!(!unverified.begin_pass());
        assert_eq!(unverified.end_pass(true), end(true, false));
        assert!(unverified.places.borrow().is_empty());
    }

    /// A scrub that was going on, or went on where one had been stopped, called a drive right that had been overwritten behind
    /// it.
    #[test]
    fn a_pass_that_had_begun_before_says_nothing_of_what_was_overwritten() {
        let unverified = Unverified::default();
        let end = |is_due_again| EndOfPass { has_verified: false, is_due_again };
        assert!(!unverified.begin_pass());
        unverified.add_overwritten(&[0]);
        assert_eq!(unverified.end_pass(true), end(true), "another one is due");
        assert!(unverified.begin_pass(), "it begins at the first slot");
        assert!(!unverified.begin_pass(), "it was stopped, and goes on");
        unverified.add_overwritten(&[0]);
        assert_eq!(unverified.end_pass(true), end(true), "it was overwritten again");
        assert!(unverified.begin_pass());
        assert_eq!(unverified.end_pass(true), end(false));
        assert!(unverified.overwritten.borrow().is_empty());
    }
}
