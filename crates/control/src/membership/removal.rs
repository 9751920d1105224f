//! Drives that are to leave: everything that the pool has on them is copied elsewhere first, then they are forgotten.
//!
//! The wish is a record of the metadata, so it outlives a restart. Such a drive serves as before and gets nothing new; its
//! columns are evacuated one after the other ([`tier0_raid::set::RaidSets::start_evacuation`]), its copy of the write log
//! is made elsewhere before this one is given up. No set and no log has less redundancy at any time. A drive that is lost
//! while it leaves is rebuilt like any other, and forgotten then.

use std::collections::BTreeSet;
use std::rc::Rc;

use tier0_api::render::replace_command;
use tier0_api::{EventKind, Finding, FindingKind, Subject};
use tier0_drive::DriveHandle;
use tier0_pool::metadata::superblock;
use tier0_pool::{Member, MemberState, MetaRecord, PoolState};
use tier0_units::{ByteCount, SECTOR_BYTES, counted};
use tier0_world::{PlantedBug, planted};
use uuid::Uuid;

use super::Membership;
use crate::admin::AdminError;
use crate::caches::log_placement;
use crate::context::Done;
use crate::membership::arrival::NewPlace;
use crate::message::command::ShardCommand;
use crate::repair::RepairPool;
use crate::report::{Findings, add_to_group, to_group};
use crate::space::rules::Spares;

/// How a drive is to leave.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Removal {
    /// What it holds is copied first.
    CopyFirst,
    /// It is taken out of service at once, and what it held is rebuilt.
    AtOnce,
}

/// What stands against emptying a drive; `None` if there is room for all that it holds.
pub(crate) fn lacking(state: &PoolState, member: u32) -> Option<String> {
    let homeless = state.homeless_without(member);
    let chunklet = state.geometry().chunklet_sectors * SECTOR_BYTES;
    if homeless > 0 {
        return Some(format!(
            "{} of {} on drives that can take them are lacking, {} in all",
            counted(homeless, "free chunklet"),
            ByteCount(chunklet),
            ByteCount(homeless * chunklet)
        ));
    }
    let without_log = log_placement::chunklets_homeless(state, member);
    (without_log > 0).then(|| {
        format!(
            "its copy of the write log needs {} side by side on a drive that has no copy, {} in all",
            counted(without_log, "free chunklet"),
            ByteCount(without_log * chunklet)
        )
    })
}

impl Findings {
    /// Drives that are to leave and cannot.
    pub(crate) fn look_at_leaving(&mut self, state: &PoolState, core: &RepairPool) {
        if core.rebuild.is_running() {
            return;
        }
        let leaving = state.members_by_place().filter(|(_, member)| member.is_active() && member.leaving);
        for (place, member) in leaving {
            let Some(lacks) = lacking(state, place) else { continue };
            let add_to = add_to_group(state, member.group);
            let kind = FindingKind::DriveCannotLeave { lacks, add_to };
            self.add_about(Subject::drive(&member.name), kind);
        }
    }
}

/// What becomes of a drive that takes no writes when it leaves.
const NOT_ERASED: &str = "; it has no space, so its superblock cannot be erased, and a start that finds it tells of it as of \
    a drive that was taken out: delete its file, overwrite the first and the last MiB of the device, or use it again with --force";

impl Membership {
    /// Has a drive leave; or stay, if it is leaving.
    pub(crate) async fn remove_drive(self: &Rc<Self>, name: &str, leave: Removal) -> Done {
        let (number, place, state) = self.member_named(name)?;
        if state == MemberState::Active && leave == Removal::CopyFirst {
            self.check_room(number, place, name)?;
        }
        let is_needed = self.core(number).may_be_needed(place);
        if is_needed && leave == Removal::CopyFirst {
            return Err(self.refusal_to_give_up(number, place));
        }
        if is_needed {
            let core = self.core(number);
            core.given_up.borrow_mut().extend(core.lost_places_of(place));
        }
        let to_disk = {
            let core = self.core(number);
            let state = core.metadata.state();
            let wanted = self.caches.core(number).log_members_wanted(&state);
            log_placement::goes_to_disk(&state, place, &wanted)
                .map(|told| format!("; {told}"))
                .unwrap_or_default()
        };
        let lacks_space = self.core(number).pauses.health(place).is_some_and(|health| health.no_space);
        self.send_away(number, place, state, leave).await?;
        let held = self.core(number).metadata.state().check(&MetaRecord::MemberRemoved { member: place });
        let spares = Spares::shortage(&self.core(number).metadata.state());
        let spares = spares
            .map(|shortage| {
                let Finding { what, remedy, .. } = Finding::new(self.pool_subject(number), &shortage, false);
                format!("; then {what}: {remedy}")
            })
            .unwrap_or_default();
        self.repair.start_rebuilds(number);
        let done = match (state, leave) {
            (MemberState::Lost, _) if is_needed => format!(
                "drive {name} is lost and is forgotten as soon as what it held is rebuilt; what it may hold of lost pages is \
                 given up"
            ),
            (MemberState::Lost, _) if held.is_ok() => format!(
                "drive {name} is forgotten: it was lost, and what it held is rebuilt already, so nothing is less redundant"
            ),
            (MemberState::Active, Removal::CopyFirst) => format!(
                "what drive {name} holds is copied to the others, as \"tier0 status\" shows, then it is forgotten; nothing \
                 is less redundant meanwhile, and \"tier0 drive remove --stop\" keeps it"
            ),
            _ => format!(
                "drive {name} is out of service: what it held is rebuilt elsewhere, as \"tier0 status\" shows, then it is \
                 forgotten; until then the array is less redundant{}",
                if lacks_space { NOT_ERASED } else { "" }
            ),
        };
        Ok(format!("{done}{to_disk}{spares}"))
    }

    /// What a lost drive may hold of lost pages is given up only with force.
    fn refusal_to_give_up(&self, number: usize, place: u32) -> AdminError {
        let core = self.core(number);
        let name = core.drive_name(place);
        let is_leaving = core.metadata.state().member(place).is_some_and(|member| member.leaving);
        let keep = if is_leaving { "keep it (tier0 drive remove --stop), then " } else { "" };
        AdminError::new(format!(
            "drive {name:?} is lost and may hold what is right of pages of which no copy is; {keep}take it back (tier0 drive \
             rejoin), or give up what it holds (tier0 drive remove ARRAY {name} --force)"
        ))
    }

    /// A drive that is leaving stays. The columns that are under way go to the end of their way.
    pub(crate) async fn keep_drive(self: &Rc<Self>, name: &str) -> Done {
        let (number, place, state) = self.member_named(name)?;
        let leaving = self.core(number).metadata.state().member(place).is_some_and(|member| member.leaving);
        if state != MemberState::Active && leaving {
            self.pool(number).set_leaving(place, false).await?;
            self.core(number).leaving.borrow_mut().remove(&place);
            let kept = self.core(number).lost_places_of(place);
            self.core(number).given_up.borrow_mut().retain(|place| !kept.contains(place));
            return Ok(format!(
                "drive {name} is kept in mind: it is lost, and what it held is rebuilt; take it back if it answers (tier0 drive \
                 rejoin)"
            ));
        }
        if state != MemberState::Active {
            return Err(AdminError::unchanged(format!(
                "drive {name} is lost and not being removed; there is nothing to stop, and it can be taken back if it answers \
                 (tier0 drive rejoin)"
            )));
        }
        if !leaving {
            return Err(AdminError::unchanged(format!(
                "drive {name} is not being emptied; there is nothing to stop"
            )));
        }
        self.pool(number).set_leaving(place, false).await?;
        // Its copy of the log may have been given up already.
        self.repair.start_rebuilds(number);
        Ok(format!("drive {name} stays; what is being copied goes to its new place, and no more is begun"))
    }

    /// A new drive takes the place of another one, from which everything is copied first where it serves.
    pub(crate) async fn replace_drive(self: &Rc<Self>, old: &str, place: NewPlace) -> Done {
        let (number, leaving, _) = self.member_named(old)?;
        let name = place.name.clone();
        let group = self.group_of_member(number, leaving);
        self.join(number, group, place, Some(leaving)).await?;
        let smaller = self.smaller_than(number, leaving, &name);
        let done = self.retire(number, (old, leaving), &name).await?;
        Ok(format!("{done}{}", smaller.unwrap_or_default()))
    }

    /// That the drive of this name, which takes the place of a member, is smaller than it was; `None` if it is not.
    fn smaller_than(&self, number: usize, replaced: u32, name: &str) -> Option<String> {
        let state = self.core(number).metadata.state();
        let chunklets = |member: &Member| state.geometry().chunklets(member.sectors);
        let old = state.member(replaced)?;
        let (_, new) =
            state.members_by_place().find(|(_, member)| member.is_active() && member.name == name)?;
        (chunklets(new) < chunklets(old)).then(|| {
            format!(
                "; {name} has {:#} and is smaller than {} ({:#}): what it has no room for stays on the other drives, and takes \
                 free chunklets there",
                ByteCount(new.sectors * SECTOR_BYTES),
                old.name,
                ByteCount(old.sectors * SECTOR_BYTES)
            )
        })
    }

    /// A member goes that another one has replaced, of this name, which is there.
    pub(crate) async fn retire(
        self: &Rc<Self>,
        number: usize,
        (old, leaving): (&str, u32),
        name: &str,
    ) -> Done {
        self.caches.core(number).replace_flash_cache_drive(old, name);
        // It may have been lost meanwhile, or others that had room.
        let (_, _, state) = self.member_named(old)?;
        if state == MemberState::Active
            && let Err(error) = self.check_room(number, leaving, old)
        {
            // Its columns stay with it; the new drive was to have them.
            self.pool(number).set_leaving(leaving, false).await?;
            return Err(AdminError::failed(format!(
                "drive {name:?} is in the pool, and {old:?} stays: {error}"
            )));
        }
        if self.core(number).may_be_needed(leaving) {
            self.repair.start_rebuilds(number);
            return Ok(format!(
                "drive {name} is in the pool; {old} stays known, because it is lost and may hold what is right of pages of which no \
                 copy is: take it back (tier0 drive rejoin), or give up what it holds (tier0 drive remove ARRAY {old} --force)"
            ));
        }
        self.send_away(number, leaving, state, Removal::CopyFirst).await?;
        self.repair.start_rebuilds(number);
        self.caches.restore_flash_cache(number);
        Ok(match state {
            MemberState::Active => format!(
                "drive {name} is in the pool; what {old} holds is copied, as \"tier0 status\" shows, then it is forgotten; \
                 nothing is less redundant meanwhile"
            ),
            _ => {
                let lacks = lacking(&self.core(number).metadata.state(), leaving);
                let lacks =
                    lacks.map(|lacks| format!("; not all of it has room: {lacks}")).unwrap_or_default();
                format!("drive {name} takes the place of {old}; \"tier0 status\" shows the rebuild{lacks}")
            }
        })
    }

    fn check_room(&self, number: usize, place: u32, name: &str) -> Result<(), AdminError> {
        let state = self.core(number).metadata.state();
        let Some(lacking) = lacking(&state, place) else { return Ok(()) };
        let group = state.member(place).map_or(0, |member| member.group);
        if state.groups_that_leave().any(|leaving| leaving == group) {
            return Err(AdminError::new(format!(
                "drive {name:?} holds sets of group {:?}, which is leaving the pool; wait until the group has left (tier0 status)",
                state.name_of_group(group).unwrap_or_default()
            )));
        }
        let core = self.core(number);
        if core.pauses.since().is_some() {
            return Err(AdminError::new(format!(
                "drive {name:?} cannot be emptied: {lacking}; bring the drives back first that the pool waits for"
            )));
        }
        // What is sure to be refused is not advised.
        let at_once = match self.repair.core(number).objection(&BTreeSet::from([place])) {
            Ok(()) => ", or take it out at once and be less redundant (--force)",
            Err(_) => "",
        };
        Err(AdminError::new(format!(
            "drive {name:?} cannot be emptied: {lacking}; add a drive (tier0 drive add{}) or put one in its place \
             ({}){at_once}",
            state.member(place).map_or_else(String::new, |member| to_group(&state, member.group)),
            replace_command(name)
        )))
    }

    /// What is on a member is to go elsewhere, and the member is to be forgotten then.
    async fn send_away(
        self: &Rc<Self>,
        number: usize,
        place: u32,
        state: MemberState,
        leave: Removal,
    ) -> Result<(), AdminError> {
        let core = self.core(number);
        let at_once = state == MemberState::Active && leave == Removal::AtOnce;
        let drive = core.metadata.drive(place);
        if at_once {
            self.fail_member(number, place).await?;
        } else {
            self.caches.take_flash_cache_from(number, place).await?;
        }
        let is_recorded = core.metadata.state().member(place).is_some_and(|member| member.leaving);
        if !is_recorded {
            self.pool(number).set_leaving(place, true).await?;
        }
        core.leaving.borrow_mut().insert(place, drive);
        if at_once {
            self.repair.core(number).taken_out.borrow_mut().insert(place);
            self.take_out(number, place).await;
        }
        Ok(())
    }

    /// Forgets the members that are to leave and hold nothing any more, of lost pages neither unless that is given up. The
    /// superblocks on their drives are erased.
    pub(crate) async fn forget_leaving(self: &Rc<Self>, number: usize) {
        let core = self.core(number);
        let leaves = |(_, member): &(u32, &Member)| member.leaving && member.state != MemberState::Removed;
        let leaving: Vec<u32> = {
            let state = core.metadata.state();
            let leaving = (0u32..).zip(state.members()).filter(leaves).map(|(place, _)| place);
            let is_given_up = |place: &u32| core.given_up.borrow().contains(place);
            let is_kept = |place: &u32| core.may_be_needed(*place) && !is_given_up(place);
            leaving
                .filter(|place| !self.repair.core(number).unverified.holds(&state, *place) && !is_kept(place))
                .collect()
        };
        for place in leaving {
            let record = MetaRecord::MemberRemoved { member: place };
            if core.metadata.state().check(&record).is_err() {
                continue;
            }
            let known = core.leaving.borrow_mut().remove(&place).flatten();
            let drive = known.or_else(|| core.metadata.drive(place));
            if let Err(error) = core.metadata.remove_member(place).await {
                tracing::warn!("a drive cannot be forgotten: {error}");
                continue;
            }
            let id = core.metadata.state().member(place).map(|member| member.id);
            let name = core.drive_name(place);
            // One that has joined again under its name serves as another member.
            if self.member_named(&name).is_err() {
                self.tell_left(number, &name);
            }
            let membership = self.clone();
            let end = async move {
                // Late, and only a courtesy: the pool's other drives say already that it is no member.
                if let Some(drive) = &drive {
                    membership.erase_superblock(&name, drive, id).await;
                }
                membership.close_drive(number, place, drive).await;
            };
            self.world.spawn(end).detach();
        }
    }

    /// Closes and unlocks the drive of a member that has left, in every shard, so that its file can be deleted and its device
    /// used.
    async fn close_drive(&self, number: usize, place: u32, drive: Option<DriveHandle>) {
        // A drive that hangs stays open, and what lies there cannot join again before its last write has ended.
        let Some(opener) = &self.opener else { return };
        let Some(health) = self.core(number).pauses.forget(place) else { return };
        let member = place as usize;
        // What a shard still has to write to or to flush there needs neither.
        self.pools[number].lost.set_lost(member);
        opener.forget(&health);
        self.ask_all(|reply| ShardCommand::CloseDrive { pool: number, member, reply }).await;
        drive.inspect(|drive| drive.close());
    }

    /// Erases the superblock on the drive of a member that has left, unless it has joined again meanwhile.
    async fn erase_superblock(&self, name: &str, drive: &DriveHandle, member: Option<Uuid>) {
        let _turn = self.turn.acquire(1).await;
        let erased = match superblock::read(drive).await {
            Ok(Some(newest))
                if Some(newest.superblock.member) == member || planted(PlantedBug::EraseWhoJoinedAgain) =>
            {
                superblock::erase(drive).await.map_err(|error| error.to_string())
            }
            Ok(_) => Ok(()),
            Err(error) => Err(error.to_string()),
        };
        if let Err(error) = erased {
            self.tell(Subject::drive(name), EventKind::SuperblockNotErased { error });
        }
    }
}
