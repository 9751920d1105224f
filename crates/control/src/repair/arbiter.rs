//! The verdict on a drive that fails: lost, or waited for (decision 0008).
//!
//! A loss cannot be taken back, so it is decided only when a fresh probe of all other drives has shown that the pool does
//! without this one. One drive of a pool is arbitrated after the other; what is recorded afterwards may overlap, because the
//! superblocks that say it may have to wait for the next drive that is arbitrated.
//!
//! A drive counts as lost for the data only once the superblocks of all others say so.

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::{self, Display, Formatter};
use std::rc::Rc;

use futures_util::future::join_all;
use tier0_api::event::FailureCause;
use tier0_api::{EventKind, Subject};
use tier0_drive::guard::{Standing, Verdict};
use tier0_plan::{levels_of, sets_survive, sets_that_fail};
use tier0_pool::metadata::Seen;
use tier0_raid::layout::Column;
use tier0_raid::set::SetIndex;
use tier0_units::Nanos;
use tier0_world::sync::Semaphore;
use tier0_world::{IoError, PlantedBug, planted};

use super::{Repair, RepairPool};

use crate::pauses::RESPITE;

use crate::repair::guard_arbiter::look;
use crate::repair::placement::PendingPlacements;
use crate::repair::verification::were;
use crate::repair::witness::{SplitRecord, Waiting};

/// How long after one attempt the witness is told again of what did not come to pass.
const TELL_PAUSE: Nanos = Nanos::from_secs(10);

/// What speaks against doing without a member.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Objection {
    /// What would be left does not suffice: half a sentence.
    Lacking(String),
    /// The witness does not agree: the fact and the remedy.
    Witness(String),
}

impl Display for Objection {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let (Objection::Lacking(text) | Objection::Witness(text)) = self;
        f.write_str(text)
    }
}

/// Decides which drives of one pool have failed.
pub(crate) struct FailureArbiter {
    turn: Semaphore,
    /// Members that were found failed, whether or not that is recorded yet.
    failed: RefCell<BTreeSet<u32>>,
    /// Members whose copies of the log are not written any more, although the metadata still name them.
    log_given_up: RefCell<BTreeSet<u32>>,
    /// What is about to lie on other drives.
    pub(crate) pending_placements: PendingPlacements,
    /// Members that did not answer the last probe.
    silent: RefCell<BTreeSet<u32>>,
    /// When the newest arbitration of a member began that ended with [`Verdict::Wait`], and why.
    waited: RefCell<BTreeMap<u32, (Nanos, String)>>,
    /// Members of which the witness may know that the pool goes on without them, which it does not: it is being told.
    untold: RefCell<BTreeMap<u32, Waiting>>,
}

impl Default for FailureArbiter {
    fn default() -> FailureArbiter {
        FailureArbiter {
            turn: Semaphore::new(1),
            failed: RefCell::default(),
            log_given_up: RefCell::default(),
            pending_placements: PendingPlacements::default(),
            silent: RefCell::default(),
            waited: RefCell::default(),
            untold: RefCell::default(),
        }
    }
}

impl FailureArbiter {
    /// Whether a member was found failed, recorded or not.
    pub(crate) fn has_failed(&self, member: u32) -> bool {
        self.failed.borrow().contains(&member)
    }

    /// Members that did not answer when one was arbitrated last.
    pub(crate) fn silent(&self) -> BTreeSet<u32> {
        self.silent.borrow().clone()
    }
}

impl RepairPool {
    /// The copy of the log that a member has counts no more: it makes room for another one. No verdict relies on it from now
    /// on.
    ///
    /// # Errors
    /// When the others would not suffice: [`IoError::Gone`], and it goes on counting.
    pub(crate) async fn give_up_log_copy(&self, member: u32) -> Result<(), IoError> {
        let _turn = self.arbiter.turn.acquire(1).await;
        if !self.arbiter.log_given_up.borrow_mut().insert(member) {
            return Ok(());
        }
        let suffices = self.objection(&BTreeSet::new());
        if let Err(objection) = suffices {
            tracing::warn!("a copy of the write log cannot move now: {objection}");
            self.arbiter.log_given_up.borrow_mut().remove(&member);
            return Err(IoError::Gone);
        }
        Ok(())
    }

    /// Members whose copies of the log were given up, although the metadata may still name them.
    pub(crate) fn log_copies_given_up(&self) -> BTreeSet<u32> {
        self.arbiter.log_given_up.borrow().clone()
    }

    /// The metadata name a copy on another drive, or the same one made again, in the place of one that was given up.
    pub(crate) fn log_copy_counts(&self, from: u32, to: u32) {
        let mut given_up = self.arbiter.log_given_up.borrow_mut();
        given_up.remove(&from);
        given_up.remove(&to);
    }

    /// What speaks against doing without these members besides those that are lost already, as half a sentence.
    pub(crate) fn objection(&self, without: &BTreeSet<u32>) -> Result<(), String> {
        self.objection_with(without, &BTreeSet::new())
    }

    /// The same where these members' data may be old ([`crate::repair::verification`]).
    fn objection_with(&self, without: &BTreeSet<u32>, doubtful: &BTreeSet<u32>) -> Result<(), String> {
        let failed = self.arbiter.failed.borrow();
        let gone = |member: u32| {
            without.contains(&member) || failed.contains(&member) || self.lost.is_lost(member as usize)
        };
        let state = self.metadata.state();
        let sets = &self.shape.sets;
        let pending_placements = &self.arbiter.pending_placements;
        let lacks = |set, column, drive| {
            gone(drive)
                || doubtful.contains(&drive)
                || sets.lacking_columns(set).contains(column)
                || pending_placements.column_lacks(set, column, gone)
        };
        let failed = sets_that_fail(sets, state.set_count(), lacks);
        let mut groups: BTreeSet<u32> = failed.map(|set| state.group_number_of(set.0)).collect();
        if !pending_placements.sets_survive(gone) {
            groups.extend(state.groups_there().map(|(group, _)| group));
        }
        if !groups.is_empty() && !planted(PlantedBug::LoseBeyondRedundancy) {
            return Err(format!(
                "RAID sets would lack more than {} makes up for",
                levels_of(&state, &groups)
            ));
        }
        let serves = |member: u32| state.is_active(member) && !gone(member);
        let given_up = self.arbiter.log_given_up.borrow();
        let counts = |member: u32| serves(member) && !given_up.contains(&member);
        let suffice = |holders: &[u32]| holders.iter().any(|member| counts(*member));
        let has_log = state.log().rings.iter().all(|ring| {
            let holders: Vec<u32> = ring.copies.iter().map(|copy| copy.member).collect();
            suffice(&holders) && suffice(&pending_placements.log_holders(holders))
        });
        if !has_log {
            return Err("no copy of the write log would be left".to_owned());
        }
        if !self.metadata.carriers().iter().any(|member| serves(*member)) {
            return Err("no copy of the metadata would be left".to_owned());
        }
        Ok(())
    }
}

/// Who asks whether a pool does without a member.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Asked {
    /// Its guard, because it fails.
    ByItsFailure,
    /// An administrator, who has been told what may be lost.
    ByAdministrator,
}

impl Repair {
    /// Arbitrates a member that has failed with `error` for longer than its patience. Ends when the verdict counts.
    pub(crate) async fn arbitrate(self: &Rc<Self>, number: usize, member: usize, error: IoError) -> Verdict {
        let core = self.core(number);
        let place = member as u32;
        let asked = self.world.now();
        let known = || core.lost.is_lost(member) || core.arbiter.failed.borrow().contains(&place);
        if !known() {
            let _turn = core.arbiter.turn.acquire(1).await;
            // The guards of other shards have asked the same.
            let answered = |waited: &BTreeMap<u32, (Nanos, String)>| {
                waited.get(&place).is_some_and(|(at, _)| *at >= asked)
            };
            if !known() {
                if answered(&core.arbiter.waited.borrow()) {
                    return Verdict::Wait;
                }
                let began = self.world.now();
                if let Err(objection) = self.fail_when_due(number, place).await {
                    let reason = objection.to_string();
                    core.arbiter.waited.borrow_mut().insert(place, (began, reason.clone()));
                    self.await_drive(number, place, error, &reason);
                    return Verdict::Wait;
                }
            }
        }
        match core.lose(member, error).await {
            true => Verdict::Lost,
            false => Verdict::Wait,
        }
    }

    /// Whether what a member holds may be all that is right, because drives that were taken back in this run are not verified
    /// yet: then the pool waits for it.
    ///
    /// # Errors
    /// It may be.
    fn check_only_right(&self, number: usize, member: u32) -> Result<(), Objection> {
        let core = self.core(number);
        let doubtful = core.unverified.members_of_this_run(&core.metadata.state());
        let without = BTreeSet::from([member]);
        if doubtful.is_empty() || core.objection(&without).is_err() {
            return Ok(());
        }
        let names: Vec<String> = doubtful.iter().map(|place| core.drive_name(*place)).collect();
        core.objection_with(&without, &doubtful).map_err(|_| {
            Objection::Lacking(format!(
                "what it holds may be all that is right, for {} taken back, or overwritten, and not verified yet; if it does not come back, \
                 do without it all the same (tier0 drive remove --force)",
                were(&names)
            ))
        })
    }

    /// Decides that the pool does without a member from now on, for an administrator. Nothing is recorded yet.
    ///
    /// # Errors
    /// What speaks against it.
    pub(crate) async fn fail_in_turn(self: &Rc<Self>, number: usize, member: u32) -> Result<(), Objection> {
        let _turn = self.core(number).arbiter.turn.acquire(1).await;
        self.fail(number, member, Asked::ByAdministrator).await
    }

    /// Whether the pool would do without a member now, where these others have not answered.
    ///
    /// # Errors
    /// What speaks against it.
    fn check_without(
        &self,
        number: usize,
        member: u32,
        silent: &BTreeSet<u32>,
        asked: Asked,
    ) -> Result<(), Objection> {
        let core = self.core(number);
        if asked == Asked::ByItsFailure {
            self.check_only_right(number, member)?;
        }
        let mut without = silent.clone();
        without.insert(member);
        core.objection(&without).map_err(|objection| {
            let names: Vec<String> = silent.iter().map(|place| core.drive_name(*place)).collect();
            Objection::Lacking(match &names[..] {
                [] => objection,
                [name] => format!("{objection}, because drive {name} does not answer either"),
                names => format!("{objection}, because drives {} do not answer either", names.join(", ")),
            })
        })
    }

    /// The verdict on a member that has failed for long, unless drives that were away with it have just come back: then it gets
    /// time to come back too.
    async fn fail_when_due(self: &Rc<Self>, number: usize, member: u32) -> Result<(), Objection> {
        let pauses = &self.core(number).pauses;
        if pauses.awaits_others_than(member) {
            let silent = self.silent_members(number, member).await;
            self.check_without(number, member, &silent, Asked::ByItsFailure)?;
            pauses.note_return(self.world.now());
        }
        if pauses.has_respite(self.world.now()) {
            return Err(Objection::Lacking(format!(
                "drives that were away with it have just come back, and it gets {} s to do so too",
                RESPITE.0 / Nanos::from_secs(1).0
            )));
        }
        let failed = self.fail(number, member, Asked::ByItsFailure).await;
        failed.inspect_err(|_| pauses.forget_return())
    }

    /// The verdict on a member, by a fresh probe of all others.
    async fn fail(self: &Rc<Self>, number: usize, member: u32, asked: Asked) -> Result<(), Objection> {
        let silent = self.silent_members(number, member).await;
        self.check_without(number, member, &silent, asked)?;
        if let Some(split) = self.split_record(number, member)
            && let Some(witness) = &self.witness
        {
            self.core(number).arbiter.untold.borrow_mut().remove(&member);
            let noted = witness.note(&self.world, split.clone(), false).await.map_err(Objection::Witness);
            // Something may have been put onto the drive while the witness was asked.
            if let Err(reason) = noted.and_then(|()| self.check_without(number, member, &silent, asked)) {
                self.take_note_back(number, member, split);
                return Err(reason);
            }
        }
        self.core(number).arbiter.failed.borrow_mut().insert(member);
        Ok(())
    }

    /// The pool does not go on without a member, and the witness may have heard that it does: then the pool could not
    /// do without the others later. It is told until it answers, or until the member is arbitrated again.
    fn take_note_back(self: &Rc<Self>, number: usize, member: u32, split: SplitRecord) {
        let Some(witness) = self.witness.clone() else { return };
        let Some(id) = self.core(number).metadata.state().member(member).map(|one| one.id) else { return };
        let waiting = Waiting::default();
        let given_up = waiting.given_up();
        self.core(number).arbiter.untold.borrow_mut().insert(member, waiting);
        let repair = self.clone();
        let tell = async move {
            while !given_up.is_set() {
                let told = witness.take_back(&repair.world, split.clone(), id, given_up.clone()).await;
                let Err(fact) = told else { break };
                tracing::debug!(member, "{fact}; it may know of a loss that was none");
                repair.world.sleep(TELL_PAUSE).await;
            }
        };
        self.world.spawn(tell).detach();
    }

    /// The split that the witness has to know of before the pool goes on without this member too; `None` if those that
    /// are lost could not go on by themselves. Nothing else is recorded before.
    fn split_record(&self, number: usize, member: u32) -> Option<SplitRecord> {
        self.witness.as_ref()?;
        let core = self.core(number);
        let mut lost: Vec<u32> =
            self.pools[number].lost_members().into_iter().map(|place| place as u32).collect();
        lost.extend(core.arbiter.failed.borrow().iter());
        lost.push(member);
        let state = core.metadata.state();
        let serves_only = |_: SetIndex, _: Column, drive: u32| !lost.contains(&drive);
        let could_go_on = sets_survive(&core.shape.sets, state.set_count(), serves_only);
        could_go_on.then(|| SplitRecord::of(&state, &lost))
    }

    /// The members besides this one that should serve and do not answer a probe. All are asked at once.
    async fn silent_members(&self, number: usize, except: u32) -> BTreeSet<u32> {
        let core = self.core(number);
        if planted(PlantedBug::TrustSilentDrives) {
            return BTreeSet::new();
        }
        let others: Vec<u32> = {
            let state = core.metadata.state();
            let active = state.members_by_place().filter(|(_, member)| member.is_active());
            active.map(|(place, _)| place).filter(|place| *place != except).collect()
        };
        let probe = |place: u32| async move {
            let answers = match core.metadata.drive(place) {
                Some(drive) if drive.is_cut_short() => Err("it ends too early".to_owned()),
                Some(drive) => match look(&drive).await {
                    Ok(seen) => core.metadata.recognise(place, &seen),
                    Err(fact) => Err(fact),
                },
                None => Err("it is not open".to_owned()),
            };
            answers.err().map(|fact| (place, fact))
        };
        let silent = join_all(others.into_iter().map(probe)).await.into_iter().flatten();
        let silent: BTreeSet<u32> = silent
            .map(|(place, fact)| {
                // What its guard knows has been told.
                match self.rouse(number, place) {
                    true => tracing::warn!(member = place, "a drive does not answer a probe: {fact}"),
                    false => tracing::debug!(member = place, "a drive does not answer a probe: {fact}"),
                }
                place
            })
            .collect();
        core.arbiter.silent.borrow_mut().clone_from(&silent);
        silent
    }

    /// Has the guard of a drive notice that it does not answer, and bring it back if it can: the pool may not have
    /// asked the drive for anything since its device went away and came back. Whether that is news to it.
    fn rouse(&self, number: usize, member: u32) -> bool {
        let core = self.core(number);
        let Some(drive) = core.metadata.drive(member) else { return true };
        let knows =
            drive.guard().is_some_and(|guard| guard.health().snapshot().standing != Standing::Healthy);
        if !knows {
            // The guard decides what comes of it.
            self.world.spawn(async move { drop(Seen::read(&drive).await) }).detach();
        }
        !knows
    }

    /// Tells that a member is lost, once the others know.
    pub(crate) fn tell_lost(&self, number: usize, member: usize) {
        let core = self.core(number);
        let member = member as u32;
        core.lost_at.borrow_mut().entry(member).or_insert_with(|| self.world.now());
        let known = core.pauses.health(member).and_then(|health| health.last_error);
        let cause = match core.taken_out.borrow().contains(&member) {
            true => FailureCause::TakenOut,
            false => known.map_or(FailureCause::Unknown, FailureCause::Error),
        };
        let (is_removed, group_left) = {
            let state = core.metadata.state();
            let lost = state.member(member);
            (lost.is_some_and(|lost| lost.leaving), lost.is_some_and(|lost| state.group_is_gone(lost.group)))
        };
        let drive = Subject::drive(core.drive_name(member));
        self.tell(drive, EventKind::DriveFailed { cause, is_removed, group_left });
    }
}
