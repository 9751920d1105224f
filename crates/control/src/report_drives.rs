//! The drives' part of the status: what they hold, and how they do.

use std::collections::{BTreeMap, BTreeSet};

use tier0_api::{DriveHealth, DriveStanding, DriveState, DriveStatus, FindingKind, IoSummary, Subject};
use tier0_drive::guard::{HealthSnapshot, Patience, Standing};
use tier0_pool::{Member, MemberState, PoolState};
use tier0_units::{Nanos, SECTOR_BYTES};

use crate::admin::drive_class;
use crate::pool::can_return;
use crate::repair::RepairPool;
use crate::report::Findings;
use crate::stats::PoolStats;

fn seconds(time: Nanos) -> u64 {
    time.0 / Nanos::from_secs(1).0
}

impl RepairPool {
    /// The pool's drives but for those that have left.
    pub(crate) fn drives_status(
        &self,
        state: &PoolState,
        stats: &PoolStats,
        gone: &BTreeSet<u32>,
        now: Nanos,
    ) -> Vec<DriveStatus> {
        let carriers = self.metadata.carriers();
        let misplaced: BTreeMap<u32, u64> = state.misplaced_columns().collect();
        // One that has joined again serves in a new place; the old one is there until what it held is rebuilt and verified.
        let there = (0u32..).zip(state.members()).filter(|(place, member)| match member.state {
            MemberState::Removed => false,
            MemberState::Lost => state.serves_as(*place).is_none(),
            MemberState::Active => true,
        });
        let drive = |(place, member): (u32, &Member)| {
            let free = state.free_chunklets(place);
            let known = self.pauses.health(place);
            let lost_because = (!member.is_active()).then(|| self.lost_because(place, known.as_ref()));
            DriveStatus {
                name: member.name.clone(),
                state: match (member.is_active(), member.leaving) {
                    (true, false) => DriveState::Active,
                    (true, true) => DriveState::Leaving,
                    (false, _) => DriveState::Lost,
                },
                size_bytes: member.sectors * SECTOR_BYTES,
                chunklets_used: if member.is_active() { state.used_chunklets(place) } else { 0 },
                chunklets_free: free,
                for_data: state.is_for_data(place),
                misplaced_columns: misplaced.get(&place).copied().unwrap_or(0),
                holds_log: member.is_active() && state.log().copies().any(|copy| copy.member == place),
                flash_cache_bytes: state.flash_cache_bytes(place),
                holds_metadata: carriers.contains(&place),
                leaving: member.leaving,
                class: Some(drive_class(member.class)),
                group: state.name_of_group(member.group).map(str::to_owned),
                can_return: can_return(state, place) && !gone.contains(&place),
                group_left: state.group_is_gone(member.group),
                lost_because,
                io: IoSummary::from(&stats.of_drive(place)),
                health: known.map(|health| {
                    let health = self.drive_health(place, health, now);
                    // Its guard may never have found anything wrong with it.
                    let standing = if member.is_active() { health.standing } else { DriveStanding::Lost };
                    let lost_at = self.lost_at.borrow().get(&place).copied();
                    let since_s = lost_at.map_or(health.since_s, |at| seconds(now.saturating_sub(at)));
                    DriveHealth { standing, since_s, ..health }
                }),
            }
        };
        there.map(drive).collect()
    }

    /// Why a member does not serve, as half a sentence.
    fn lost_because(&self, member: u32, known: Option<&HealthSnapshot>) -> String {
        if self.taken_out.borrow().contains(&member) {
            return "it was taken out (tier0 drive fail, or drive remove --force)".to_owned();
        }
        let Some(known) = known else {
            return "it was not there at the start, or was lost before".to_owned();
        };
        known.last_error.clone().unwrap_or_else(|| "it did not answer".to_owned())
    }

    fn drive_health(&self, member: u32, known: HealthSnapshot, now: Nanos) -> DriveHealth {
        let patience = Patience::default();
        let (pages_repaired, pages_unrecoverable) = self.page_errors.pages_on(member);
        DriveHealth {
            standing: match known.standing {
                Standing::Healthy => DriveStanding::Healthy,
                Standing::Suspect => DriveStanding::Suspect,
                Standing::Awaited => DriveStanding::Awaited,
                Standing::Lost => DriveStanding::Lost,
            },
            since_s: seconds(now.saturating_sub(known.since)),
            last_error: known.last_error,
            read_errors: known.read_errors,
            write_errors: known.write_errors,
            flush_errors: known.flush_errors,
            slow: known.slow,
            retried: known.retried,
            outages: known.outages,
            no_space: known.no_space,
            on_device: self.pauses.is_on_device(member),
            pages_repaired,
            pages_unrecoverable,
            error_patience_s: seconds(patience.errors),
            answer_patience_s: seconds(patience.answer),
        }
    }
}

impl Findings {
    pub(crate) fn look_at_lost_drives(
        &mut self,
        state: &PoolState,
        gone: &BTreeSet<u32>,
        all_redundant: bool,
    ) {
        // One that leaves has been replaced or removed already.
        let is_lost = |(_, member): &(u32, &Member)| member.state == MemberState::Lost && !member.leaving;
        let lost = (0u32..).zip(state.members()).filter(is_lost);
        let (left, lost): (Vec<_>, Vec<_>) = lost.partition(|(_, member)| state.group_is_gone(member.group));
        let (back, others): (Vec<_>, Vec<_>) =
            lost.into_iter().partition(|(place, _)| can_return(state, *place) && !gone.contains(place));
        for (lost, returns, group_left) in [(back, true, false), (others, false, false), (left, false, true)]
        {
            if lost.is_empty() || !(all_redundant || group_left) {
                continue;
            }
            let drives: Vec<String> = lost.iter().map(|(_, member)| member.name.clone()).collect();
            let hold_data = lost.iter().any(|(place, _)| state.is_for_data(*place));
            let subject = Subject::drives(&drives);
            let kind = FindingKind::DrivesFailed { drives, can_return: returns, hold_data, group_left };
            self.add_about(subject, kind);
        }
    }

    /// What the guards say of the drives that serve.
    pub(crate) fn look_at_health(&mut self, drives: &[DriveStatus]) {
        for drive in drives.iter().filter(|drive| drive.state == DriveState::Active) {
            let Some(health) = &drive.health else { continue };
            let add = |found: &mut Findings, kind| found.add_about(Subject::drive(&drive.name), kind);
            if health.standing == DriveStanding::Suspect {
                let error = health.last_error.clone().unwrap_or_else(|| "it does not answer".to_owned());
                add(self, FindingKind::DriveSuspect { error });
            }
            if health.no_space {
                add(self, FindingKind::DriveFull { on_device: health.on_device });
            }
        }
    }
}
