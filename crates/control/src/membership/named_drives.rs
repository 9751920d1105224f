//! Drives that a pool has, by their names; and drives that fail, or are taken out, while the array runs.

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::pin::pin;
use std::rc::Rc;

use futures_util::future::{Either, select};
use tier0_api::render::replace_command;
use tier0_pool::{Member, MemberState};
use tier0_units::Nanos;
use tier0_world::IoError;

use super::Membership;
use crate::admin::AdminError;
use crate::context::Done;
use crate::message::command::ShardCommand;
use crate::pool::can_return;
use crate::repair::arbiter::Objection;
use crate::report::sets_tolerance;

/// For so long it is waited until the state knows of a loss.
const STATE_LIMIT: Nanos = Nanos::from_secs(5);
/// More drives are not named in a message.
const NAMED_MAX: usize = 12;

/// How long a status waits to hear whether the files of lost drives are there.
const GONE_LIMIT: Nanos = Nanos::from_secs(1);

impl Membership {
    /// Lost drives of a pool that could be taken back, but that nothing lies where they lay.
    pub(crate) async fn gone_drives(&self, number: usize) -> BTreeSet<u32> {
        let Some(opener) = &self.opener else { return BTreeSet::new() };
        let moved = self.relocated.borrow().clone();
        let lost: Vec<(u32, PathBuf)> = {
            let state = self.core(number).metadata.state();
            let back = state.members_by_place().filter(|(place, _)| can_return(&state, *place));
            let lost = back.map(|(place, member)| (place, PathBuf::from(&member.path)));
            lost.filter(|(_, path)| path.is_absolute() && moved.iter().all(|moved| moved.from != *path))
                .collect()
        };
        if lost.is_empty() {
            return BTreeSet::new();
        }
        let asked = opener.gone(lost.iter().map(|(_, path)| path.clone()).collect());
        let Either::Left((gone, _)) = select(asked, pin!(self.world.sleep(GONE_LIMIT))).await else {
            return BTreeSet::new();
        };
        lost.into_iter().filter(|(_, path)| gone.contains(path)).map(|(place, _)| place).collect()
    }

    /// The place of a member by its drive's name, and how it stands.
    pub(crate) fn member_named(&self, name: &str) -> Result<(usize, u32, MemberState), AdminError> {
        for number in self.pools_meant(None)? {
            let state = self.core(number).metadata.state();
            let named =
                |(_, member): &(u32, &Member)| member.name == name && member.state != MemberState::Removed;
            // A drive that was lost and has joined again has two places until the old one is forgotten.
            let places = || (0u32..).zip(state.members()).filter(|one| named(one));
            let serving = places().find(|(_, member)| member.is_active());
            if let Some((place, member)) = serving.or_else(|| places().last()) {
                return Ok((number, place, member.state));
            }
        }
        let mut known = Vec::new();
        for number in self.pools_meant(None)? {
            let state = self.core(number).metadata.state();
            let named = state.members().iter().filter(|member| member.state != MemberState::Removed);
            known.extend(named.map(|member| member.name.clone()));
        }
        let drives = match known.len() <= NAMED_MAX {
            true => format!("the array has {}", known.join(", ")),
            false => "\"tier0 status\" lists the drives".to_owned(),
        };
        Err(AdminError::new(format!("there is no drive {name:?}; {drives}")))
    }

    /// Decides that the array does without this drive from now on.
    pub(crate) async fn fail_member(self: &Rc<Self>, number: usize, place: u32) -> Result<(), AdminError> {
        let name = self.core(number).drive_name(place);
        let failed = self.repair.fail_in_turn(number, place).await;
        failed.map_err(|objection| self.not_without(number, &name, &objection))
    }

    /// Whether the array would do without a drive, before the administrator is asked to agree to that. No drive is probed.
    ///
    /// # Errors
    /// It would not.
    pub(crate) fn refusal_to_fail(&self, name: &str) -> Result<(), AdminError> {
        let (number, place, state) = self.member_named(name)?;
        if state != MemberState::Active {
            return Ok(());
        }
        let objection = self.repair.core(number).objection(&BTreeSet::from([place]));
        objection.map_err(|text| self.not_without(number, name, &Objection::Lacking(text)))
    }

    /// Why the array does not do without a drive, and what helps as it is now. The witness says itself what to do.
    fn not_without(&self, number: usize, drive: &str, objection: &Objection) -> AdminError {
        let remedy = match objection {
            Objection::Witness(_) => String::new(),
            Objection::Lacking(_) => format!("; {}", self.remedy_without(number, drive)),
        };
        AdminError::new(format!("the array cannot do without drive {drive:?} now: {objection}{remedy}"))
    }

    fn remedy_without(&self, number: usize, drive: &str) -> String {
        let (pool, core) = (&self.pools[number], self.core(number));
        if core.pauses.since().is_some() {
            return "bring the drives back that it waits for".to_owned();
        }
        if sets_tolerance(core) == 0 {
            return format!(
                "{} has no redundancy, so what the drive holds must be copied off it first: put another one in its place \
                 ({})",
                tier0_plan::levels(&core.metadata.state()),
                replace_command(drive)
            );
        }
        let mut remedies = Vec::new();
        if self.repair.is_rebuilding(number) {
            remedies.push("wait for the rebuild (tier0 status)");
        }
        let is_lost = |(place, member): (usize, &Member)| {
            member.state == MemberState::Lost
                || pool.lost.is_lost(place) && member.state != MemberState::Removed
        };
        if core.metadata.state().members().iter().enumerate().any(is_lost) {
            remedies.push("bring other drives back");
        }
        remedies.push("add a drive (tier0 drive add)");
        remedies.join(", or ")
    }

    pub(crate) async fn take_out(&self, number: usize, place: u32) {
        let core = self.core(number);
        if self.pools[number].lose(place as usize, IoError::Gone).await {
            core.pauses.end_waits_for_space(place, self.world.now());
            // Requests to a drive that hangs are let go before its patience has run out.
            let own = core.metadata.drive(place);
            own.iter().filter_map(|drive| drive.guard()).for_each(|guard| guard.give_up());
            self.ask_all(|reply| ShardCommand::GiveUpDrive { pool: number, member: place as usize, reply })
                .await;
        }
        self.caches.drop_log_copies(number, place as usize).await;
        // The superblocks know; the state follows when the journal takes records, which it does not while a new one is made.
        let is_known = || !core.metadata.state().is_active(place) || core.metadata.failure().is_some();
        let known = async {
            while !is_known() {
                core.metadata.changed().wait().await;
            }
        };
        select(pin!(known), pin!(self.world.sleep(STATE_LIMIT))).await;
    }

    pub(crate) async fn fail_drive(self: &Rc<Self>, name: &str) -> Done {
        let (number, place, state) = self.member_named(name)?;
        if state == MemberState::Lost {
            let state = self.core(number).metadata.state();
            if state.member(place).is_some_and(|lost| state.group_is_gone(lost.group)) {
                return Err(AdminError::new(format!(
                    "drive {name:?} is lost already, and its group has left the pool; remove it (tier0 drive remove)"
                )));
            }
            let can_return = can_return(&state, place);
            let return_it = if can_return { "take it back if it answers (tier0 drive rejoin), " } else { "" };
            return Err(AdminError::new(format!(
                "drive {name:?} is lost already; {return_it}replace it with a new one ({}), or remove it (tier0 drive \
                 remove)",
                replace_command(name)
            )));
        }
        self.repair.check_verified(number, place)?;
        self.fail_member(number, place).await?;
        self.repair.core(number).taken_out.borrow_mut().insert(place);
        self.take_out(number, place).await;
        self.repair.start_rebuilds(number);
        Ok(format!("failed drive {name}; \"tier0 status\" shows the rebuild"))
    }
}
