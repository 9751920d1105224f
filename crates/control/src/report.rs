//! The array's status, put together from the metadata and what every shard says.

use std::collections::BTreeSet;
use std::rc::Rc;

use tier0_api::event::AddTo;
use tier0_api::finding::{LogCopyWay, LostPagesWay, Repair};
use tier0_api::{
    ApiVersion, Finding, FindingKind, GroupStatus, Health, IntegrityStatus, IoSummary, LaneStatus, LogStatus,
    PauseStatus, PinStatus, PoolStatus, RebuildPurpose, RebuildStatus, SetsStatus, Status, Subject,
    TablesStatus, VolumeStatus,
};
use tier0_cache::{Flushing, WriteBackStatus};
use tier0_pool::{Member, MemberState, PoolState, SetGroup};
use tier0_raid::layout::ColumnMask;
use tier0_raid::set::SetIndex;
use tier0_units::SECTOR_BYTES;

use crate::Control;
use crate::admin::{cache_switches, ceilings, flash_cache, flushing, read_cache_status, volume_place};
use crate::balance::column_moves::MoveReason;
use crate::caches::CachesPool;
use crate::caches::log_placement::has_room_for_copy;
use crate::message::command::ShardReport;
use crate::pool::Pool;
use crate::pool::can_return;
use crate::repair::RepairPool;
use crate::repair::lost_pages::{lost_ranges, way_of_lost_pages};
use crate::space::rules::{Part, Spares};
use crate::stats::PoolStats;
use crate::tiering::groups::TierGroups;
use crate::tiering::homing::migrating_bytes;

impl Control {
    /// How the array does.
    pub async fn status(self: &Rc<Self>) -> Status {
        self.space.collect_discarded().await;
        self.membership.look_at_moved_drives().await;
        let mut pools = Vec::new();
        for number in 0..self.context.pools.len() {
            let reports = self.space.reports(number).await;
            let stats = self.context.pool_stats(number).await;
            let gone = self.membership.gone_drives(number).await;
            pools.push(self.pool_status(number, &reports, &stats, &gone));
        }
        let health = pools.iter().map(|pool| pool.health).max().unwrap_or(Health::Healthy);
        let worst = pools.iter().find(|pool| pool.health == health);
        let summary = match worst.and_then(|pool| Some((pool, pool.problems.first()?))) {
            Some((pool, problem)) if self.context.pools.len() > 1 => format!("pool {}: {problem}", pool.name),
            Some((_, problem)) => problem.clone(),
            None if self.context.pools.iter().all(|pool| sets_tolerance(pool) > 0) => {
                "healthy: all drives online, fully redundant".to_owned()
            }
            None => "healthy: all drives online".to_owned(),
        };
        let events = self.context.events.all(self.context.world.now());
        Status {
            api: ApiVersion::CURRENT,
            array: self.context.array.clone(),
            health,
            summary,
            shards: self.context.shards.len(),
            listen: Vec::new(),
            connections: None,
            pools,
            events,
        }
    }

    fn pool_status(
        &self,
        number: usize,
        reports: &[ShardReport],
        stats: &PoolStats,
        gone: &BTreeSet<u32>,
    ) -> PoolStatus {
        let (core, space) = (self.repair.core(number), self.space.core(number));
        let state = core.metadata.state();
        let sets = sets_status(core, &state);
        let log = log_status(self.caches.core(number), &state, reports);
        let parts = space.parts(reports);
        let rebuild = core.rebuild.is_running().then(|| self.rebuild_status(number, &state, &sets));
        let lost = reports.iter().flat_map(|report| report.lost.iter().cloned()).collect();
        let (lost, not_listed) = lost_ranges(lost, |number| {
            let volume = state.volumes().find(|volume| volume.number == number);
            volume.map_or_else(|| format!("number {number}"), |volume| volume.name.clone())
        });
        let integrity = IntegrityStatus {
            checksums: state.geometry().checksums,
            repaired: reports.iter().map(|report| report.pages_repaired).sum(),
            unrecoverable: reports.iter().map(|report| report.pages_unrecoverable).sum(),
            lost,
            lost_left_off: not_listed + reports.iter().map(|report| report.lost_left_off).sum::<u64>(),
            tables: reports.iter().fold(TablesStatus::default(), |all, report| TablesStatus {
                bytes: all.bytes + report.tables.bytes,
                memory_bytes: all.memory_bytes + report.tables.memory_bytes,
                asked: all.asked + report.tables.asked,
                read: all.read + report.tables.read,
            }),
        };
        let drives = core.drives_status(&state, stats, gone, self.context.world.now());
        let paused = self.repair.pause_status(core);
        let mut found = Findings::of(state.name(), paused.is_some());
        found.look_at_sets(&sets, core, (&state, gone), rebuild.as_ref());
        found.look_at_lost_drives(&state, gone, sets.degraded == 0 && log.copies >= log.copies_wanted);
        found.look_at_unverified(&state, core);
        found.look_at_leaving(&state, core);
        let tier = (self.tiering.core(number), self.context.world.now());
        found.look_at_leaving_groups(&state, tier, reports);
        found.look_at_misplaced(&state);
        found.look_at_health(&drives);
        found.look_at_pause(paused.as_ref());
        found.look_at_log(&log, reports, sets_tolerance(core), &state);
        let is_under_way = core.rebuild.is_running() || core.scrub.running.get();
        let way = way_of_lost_pages(&state, is_under_way);
        found.look_at_integrity(&integrity, core.scrub.settled.get(), way);
        found.look_at_pages_lost_before(core.metadata.has_lost_pages(), &integrity);
        found.look_at_spares(&state, &sets);
        found.look_at_space(&parts);
        if let Some(opener) = &self.membership.opener {
            // As it is now: a drive that was deleted may have been replaced at the same path since.
            found.look_at_damaged(&state, &opener.damaged());
            found.look_at_moved(&state, &self.membership.relocated.borrow());
        }
        if let Some(fault) = &*self.repair.witness_fault.borrow() {
            found.add_about(
                self.context.array_subject(),
                FindingKind::WitnessUnusable { fault: fault.clone() },
            );
        }
        if core.metadata.failure().is_some() {
            found.add(FindingKind::MetadataFailed);
        }
        let is_paused = paused.is_some();
        PoolStatus {
            name: state.name().to_owned(),
            raid: raid_words(&state),
            health: found.health(),
            problems: found.problems(),
            findings: found.worst_first(),
            paused,
            drives,
            sets,
            groups: groups_status(&state, &parts, reports),
            rebuild,
            restripe: self.balance.core(number).restripe_status(self.context.world.now()),
            scrub: core.scrub.status(self.context.world.now()),
            scrubs_finished: state.scrub().passes,
            log: Some(log),
            cache: cache_switches(state.cache_switches()),
            space: space.space_status(&parts, is_paused),
            integrity,
            read_cache: stats.read_cache.map(read_cache_status),
            flash_cache: flash_cache(&state, stats),
            tier: self.tiering.status(number),
            volumes: volumes_status(core, &state, stats),
        }
    }

    fn rebuild_status(&self, number: usize, state: &PoolState, sets: &SetsStatus) -> RebuildStatus {
        let (core, balance) = (self.repair.core(number), self.balance.core(number));
        let progress = &core.rebuild;
        let rate = progress.rate_bytes_per_s(self.context.world.now());
        let (done, total) = (progress.done.get(), progress.total.get().max(progress.done.get()));
        let left_bytes = (total - done) * core.shape.slots.slot_sectors(0) * SECTOR_BYTES;
        let leaves = state.members().iter().any(|member| member.leaving && member.is_active());
        let purpose = match () {
            () if sets.degraded > 0 => RebuildPurpose::Rebuild,
            () if leaves => RebuildPurpose::Emptying,
            () if balance.growing.get() => RebuildPurpose::Growth,
            () if sets.evacuating > 0 && balance.move_reason.get() == MoveReason::CopyBack => {
                RebuildPurpose::CopyBack
            }
            () if sets.evacuating > 0 => RebuildPurpose::Spares,
            () => RebuildPurpose::Rebuild,
        };
        RebuildStatus {
            purpose,
            slots_done: done,
            slots_total: total,
            rate_bytes_per_s: rate,
            left_s: left_bytes.checked_div(rate),
            waits: progress.waits.get().map(|error| error.to_string()),
        }
    }
}

/// What is wrong with a pool.
pub(crate) struct Findings {
    pool: Subject,
    /// The pool waits for drives, and nothing else helps.
    is_paused: bool,
    found: Vec<Finding>,
}

impl Findings {
    fn of(pool: &str, is_paused: bool) -> Findings {
        Findings { pool: Subject::pool(pool), is_paused, found: Vec::new() }
    }

    /// Something is wrong with the pool.
    pub(crate) fn add(&mut self, kind: FindingKind) {
        self.add_about(self.pool.clone(), kind);
    }

    /// Something is wrong with one of its drives, or with the array.
    pub(crate) fn add_about(&mut self, subject: Subject, kind: FindingKind) {
        self.found.push(Finding::new(subject, &kind, self.is_paused));
    }

    fn health(&self) -> Health {
        self.found.iter().map(|one| one.health).max().unwrap_or(Health::Healthy)
    }

    fn worst_first(&self) -> Vec<Finding> {
        let mut found = self.found.clone();
        found.sort_by_key(|one| std::cmp::Reverse(one.health));
        found
    }

    fn problems(&self) -> Vec<String> {
        self.worst_first().iter().map(Finding::text).collect()
    }

    fn look_at_sets(
        &mut self,
        sets: &SetsStatus,
        core: &RepairPool,
        (state, gone): (&PoolState, &BTreeSet<u32>),
        rebuild: Option<&RebuildStatus>,
    ) {
        if sets.failed > 0 {
            self.add(FindingKind::SetsFailed { failed: sets.failed, sets: sets.count });
        }
        if sets.degraded == 0 {
            return;
        }
        // Some may have got a place since the last round of rebuilds: their drive was taken back.
        let columns = core.rebuild.without_spare.get().min(state.lost_columns().count() as u64);
        let repair = match rebuild {
            Some(rebuild) if columns == 0 => {
                let slots = (rebuild.slots_done, rebuild.slots_total);
                Repair::Runs(Some(slots).filter(|(_, total)| *total > 0))
            }
            _ if columns > 0 => Repair::LacksSpace {
                columns,
                add_to: lacking_groups(state),
                can_return: (0..state.members().len() as u32)
                    .any(|place| can_return(state, place) && !gone.contains(&place)),
            },
            _ => Repair::Waits,
        };
        let (degraded, sets) = (sets.degraded, sets.count);
        self.add(FindingKind::SetsDegraded { degraded, sets, repair });
    }

    fn look_at_pause(&mut self, paused: Option<&PauseStatus>) {
        let Some(PauseStatus { since_s, drives, why, next }) = paused.cloned() else { return };
        self.add(FindingKind::PoolPaused { since_s, drives, why, next });
    }

    fn look_at_log(&mut self, log: &LogStatus, reports: &[ShardReport], tolerance: u32, state: &PoolState) {
        if lanes(reports).any(|lane| lane.log_failure.is_some()) {
            self.add(FindingKind::LogFailed);
        } else if log.copies < log.copies_wanted {
            let way = match (has_room_for_copy(state), any_can_return(state)) {
                (true, _) => LogCopyWay::HasRoom,
                (false, true) => LogCopyWay::CanReturn,
                (false, false) if any_can_be_replaced(state) => LogCopyWay::NoRoom,
                (false, false) => LogCopyWay::NoneToReplace,
            };
            self.add(FindingKind::LogLacksCopies { copies: log.copies, wanted: log.copies_wanted, way });
        } else if log.copies <= tolerance {
            self.add(FindingKind::LogLessRedundant { copies: log.copies, tolerance });
        }
        let serves_as = |name: &str, wanted: MemberState| {
            state.members().iter().any(|member| member.name == name && member.state == wanted)
        };
        let is_lost =
            |name: &str| serves_as(name, MemberState::Lost) && !serves_as(name, MemberState::Active);
        if let Some(kind) = log_astray(log, is_lost) {
            self.add(kind);
        }
        if let Some(error) = lanes(reports).find_map(|lane| lane.last_failure) {
            self.add(FindingKind::DestageFailed { error: error.to_string() });
        }
    }

    /// `settled` of them were before a scrub that found everything right; and what was written anew is lost no more.
    fn look_at_integrity(&mut self, integrity: &IntegrityStatus, settled: (u64, u64), way: LostPagesWay) {
        let repaired = integrity.repaired.saturating_sub(settled.0);
        let listed: u64 = integrity.lost.iter().map(|range| range.pages).sum();
        let unsettled = integrity.unrecoverable.saturating_sub(settled.1);
        let lost = unsettled.min(listed + integrity.lost_left_off);
        if lost > 0 {
            self.add(FindingKind::PagesLost { pages: lost, way });
        }
        if repaired > 0 {
            self.add(FindingKind::PagesRepaired { pages: repaired });
        }
    }

    /// Whether the pool keeps the spares that it was created with. What is lost and not replaced is told as that, and so are
    /// sets that lack a drive.
    fn look_at_spares(&mut self, state: &PoolState, sets: &SetsStatus) {
        let lost = state.members().iter().any(|member| member.state == MemberState::Lost && !member.leaving);
        if sets.degraded > 0 || lost {
            return;
        }
        if let Some(shortage) = Spares::shortage(state) {
            self.add(shortage);
        }
    }

    fn look_at_space(&mut self, parts: &[Part]) {
        for part in parts {
            for warning in part.warnings().iter().filter(|warning| warning.urgency() > 0) {
                self.add(part.finding(warning));
            }
        }
    }
}

/// The option by which a drive is added to a group: nothing where a pool has no named ones.
pub(crate) fn to_group(state: &PoolState, group: u32) -> String {
    state.name_of_group(group).map_or_else(String::new, |name| format!(" --group {name}"))
}

/// The group that a drive is to be added to.
pub(crate) fn add_to_group(state: &PoolState, group: u32) -> AddTo {
    state.name_of_group(group).map_or(AddTo::Pool, |name| AddTo::Groups(vec![name.to_owned()]))
}

/// The groups that a drive is to be added to: those whose sets lack one, or any.
pub(crate) fn lacking_groups(state: &PoolState) -> AddTo {
    let lacking: BTreeSet<u32> = state.lost_columns().map(|(set, _)| state.group_number_of(set)).collect();
    let names = lacking.iter().map(|group| state.groups()[*group as usize].name.clone());
    match (state.has_groups(), lacking.is_empty()) {
        (false, _) => AddTo::Pool,
        (true, true) => AddTo::AnyGroup,
        (true, false) => AddTo::Groups(names.collect()),
    }
}

/// How many drives any set may lose.
pub(crate) fn sets_tolerance(pool: &Pool) -> u32 {
    let state = pool.metadata.state();
    let layouts = state.groups_there().map(|(group, _)| pool.shape.layout_of(&state, group));
    let tolerated = layouts.map(|layout| match layout.parities() {
        0 => layout.copies_per_unit() as u32 - 1,
        parities => parities as u32,
    });
    tolerated.min().unwrap_or(0)
}

/// Levels and widths of the sets: "raid10 of 4", "raid10 of 4 and raid5 of 5".
fn raid_words(state: &PoolState) -> String {
    let mut words: Vec<String> = state.groups_there().map(|(_, group)| shape_words(group)).collect();
    words.dedup();
    words.join(" and ")
}

fn shape_words(group: &SetGroup) -> String {
    format!("{} of {}", group.raid.level, group.raid.set_size)
}

fn groups_status(state: &PoolState, parts: &[Part], reports: &[ShardReport]) -> Vec<GroupStatus> {
    let sets = |number| state.batches().iter().filter(move |batch| batch.group == number);
    let status = |((number, group), part): ((u32, &SetGroup), &Part)| GroupStatus {
        name: group.name.clone(),
        raid: shape_words(group),
        sets: sets(number).map(|batch| u64::from(batch.sets)).sum(),
        usable_bytes: part.space.usable.0,
        used_bytes: part.space.used.0,
        reserved_bytes: part.space.reserved.0,
        leaving: !group.stays(),
        log: lane_status(state, number as usize, reports),
    };
    let there = (0..).zip(state.groups()).zip(parts).filter(|((_, group), _)| !group.is_gone());
    there.filter(|_| state.has_groups()).map(status).collect()
}

/// What a group has of the log; none where it has no lane of its own.
fn lane_status(state: &PoolState, lane: usize, reports: &[ShardReport]) -> Option<LaneStatus> {
    if state.log().lanes == 1 {
        return None;
    }
    Some(together(reports.iter().filter_map(|report| report.lanes.get(lane))))
}

/// Whether a drive is lost whose group is still there.
fn any_can_be_replaced(state: &PoolState) -> bool {
    let is_lost = |member: &Member| member.state == MemberState::Lost && !state.group_is_gone(member.group);
    state.members().iter().any(is_lost)
}

/// Whether a lost drive could be taken back.
fn any_can_return(state: &PoolState) -> bool {
    (0..state.members().len() as u32).any(|place| can_return(state, place))
}

/// Some lanes as one.
fn together<'a>(lanes: impl Iterator<Item = &'a WriteBackStatus>) -> LaneStatus {
    let mut all =
        LaneStatus { size_bytes: 0, used_bytes: 0, dirty_bytes: 0, flushing: tier0_api::Flushing::default() };
    let mut flushed = Flushing::default();
    for lane in lanes {
        all.size_bytes += lane.log_bytes;
        all.used_bytes += lane.log_used_bytes;
        all.dirty_bytes += lane.dirty_bytes;
        flushed.merge(&lane.flushing);
    }
    LaneStatus { flushing: flushing(flushed), ..all }
}

fn sets_status(pool: &Pool, state: &PoolState) -> SetsStatus {
    let mut status = SetsStatus::default();
    let sets = &pool.shape.sets;
    for set in (0..state.set_count()).filter(|set| !sets.is_gone(SetIndex(*set))) {
        status.count += 1;
        let columns = sets.columns(SetIndex(set));
        let rebuilding = sets.lacking_columns(SetIndex(set));
        let moving = sets.rebuilding_columns(SetIndex(set)) - rebuilding;
        let on_lost = |column: &tier0_raid::layout::Column| {
            let chunklets =
                [Some(sets.chunklet(SetIndex(set), *column)), sets.source(SetIndex(set), *column)];
            chunklets.iter().flatten().any(|chunklet| pool.lost.is_lost(chunklet.drive as usize))
        };
        let lost: ColumnMask = columns.filter(on_lost).collect();
        let lacking = lost | rebuilding;
        status.degraded += u64::from(!lacking.is_empty());
        status.rebuilding += u64::from(!rebuilding.is_empty());
        status.evacuating += u64::from(!moving.is_empty());
        status.failed += u64::from(!sets.layout(SetIndex(set)).survives(lacking));
    }
    status
}

/// What is to be told of a log that is not on the drives that the array file names for it.
fn log_astray(log: &LogStatus, is_lost: impl Fn(&str) -> bool) -> Option<FindingKind> {
    let without = |some: &[String], others: &[String]| -> Vec<String> {
        some.iter().filter(|drive| !others.contains(drive)).cloned().collect()
    };
    let absent = without(&log.drives_wanted, &log.drives);
    let is_astray = !absent.is_empty() && !without(&log.drives, &log.drives_wanted).is_empty();
    let are_lost = absent.iter().all(|drive| is_lost(drive));
    let (on, wanted) = (log.drives.clone(), log.drives_wanted.clone());
    is_astray.then_some(FindingKind::LogMisplaced { on, wanted, absent, are_lost })
}

/// The lanes of all shards.
fn lanes(reports: &[ShardReport]) -> impl Iterator<Item = &WriteBackStatus> {
    reports.iter().flat_map(|report| &report.lanes)
}

fn log_status(core: &CachesPool, state: &PoolState, reports: &[ShardReport]) -> LogStatus {
    let wanted = state.log().rings.iter().map(|ring| ring.copies.len()).max().unwrap_or(0);
    let LaneStatus { size_bytes, used_bytes, dirty_bytes, flushing } = together(lanes(reports));
    let names = |members: BTreeSet<u32>| {
        let names: BTreeSet<String> = members.into_iter().map(|member| core.drive_name(member)).collect();
        names.into_iter().collect()
    };
    let serves = |member: &u32| state.is_active(*member);
    LogStatus {
        size_bytes,
        used_bytes,
        copies: reports.iter().map(|report| report.log_copies).min().unwrap_or(0),
        copies_wanted: wanted as u32,
        dirty_bytes,
        flushing,
        drives: names(state.log().copies().map(|copy| copy.member).filter(serves).collect()),
        drives_wanted: names(core.log_members_wanted(state)),
    }
}

fn volumes_status(pool: &Pool, state: &PoolState, stats: &PoolStats) -> Vec<VolumeStatus> {
    let tier = TierGroups::of(pool);
    let volume = |volume: &tier0_pool::Volume| VolumeStatus {
        name: volume.name.clone(),
        size_bytes: volume.sectors * SECTOR_BYTES,
        mapped_bytes: state.map(volume.number).map_or(0, tier0_pool::ExtentMap::count)
            * state.geometry().extent_sectors
            * SECTOR_BYTES,
        thin: volume.thin,
        write_cache: Some(state.caching(volume).write),
        read_cache: state.caching(volume).read,
        group: state.name_of_group(volume.group).map(str::to_owned),
        place: volume_place(state.placement(volume.number).place),
        pins: pins_of(state, volume.number),
        away_bytes: state.away_of(volume.number).map(|(_, count)| count).sum::<u64>()
            * state.geometry().extent_sectors
            * SECTOR_BYTES,
        migrating_bytes: migrating_bytes(state, volume, tier.as_ref()),
        ceilings: ceilings(state.ceilings(volume.number)),
        weight: state.weight(volume.number),
        family: state.family_names(volume),
        connections: stats.connections.iter().filter(|one| one.volume == volume.name).count(),
        io: stats.volumes.get(&volume.number).map(IoSummary::from).unwrap_or_default(),
    };
    state.volumes().filter(|volume| !volume.is_unfinished()).map(volume).collect()
}

/// The parts of a volume that are pinned.
fn pins_of(state: &PoolState, volume: u32) -> Vec<PinStatus> {
    let extent_bytes = state.geometry().extent_sectors * SECTOR_BYTES;
    let pin = |pin: &tier0_pool::Pin| PinStatus {
        from_bytes: u64::from(pin.extents.start) * extent_bytes,
        to_bytes: u64::from(pin.extents.end) * extent_bytes,
        place: volume_place(pin.to),
        until_unix_s: Some(pin.until_unix_s).filter(|until| *until > 0),
    };
    state.placement(volume).pins.iter().map(pin).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use tier0_api::LostRange;

    #[test]
    fn a_log_that_lies_elsewhere_is_told() {
        let log = |drives: &[&str], wanted: &[&str]| {
            let names = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect();
            let status = LogStatus {
                size_bytes: 0,
                used_bytes: 0,
                copies: 2,
                copies_wanted: 2,
                dirty_bytes: 0,
                flushing: tier0_api::Flushing::default(),
                drives: names(drives),
                drives_wanted: names(wanted),
            };
            log_astray(&status, |drive| drive == "d1")
        };
        let are_lost = |told| match told {
            Some(FindingKind::LogMisplaced { absent, are_lost, .. }) => (absent, are_lost),
            told => panic!("it is not told: {told:?}"),
        };
        assert_eq!(are_lost(log(&["d0", "d2"], &["d0", "d1"])), (vec!["d1".to_owned()], true));
        assert_eq!(are_lost(log(&["d0", "d1"], &["d0", "d3"])), (vec!["d3".to_owned()], false));
        for (drives, wanted) in [
            (&["d0", "d1"][..], &["d0", "d1"][..]),
            (&["d0", "d2"], &[]),
            // The file names one more than there are copies, or one that the pool does not have.
            (&["d0", "d1"], &["d0", "d1", "d2"]),
            (&["d0", "d2"], &["d0"]),
        ] {
            assert_eq!(log(drives, wanted), None);
        }
    }

    /// Pages that were lost and written anew stood in the summary until a restart.
    #[test]
    fn what_was_written_anew_is_lost_no_more() {
        let range = |pages| LostRange { volume: "lun0".into(), from: 0, to: pages * 4096, pages };
        let told = |unrecoverable, lost, lost_left_off, settled| {
            let mut found = Findings::of("p", false);
            let integrity =
                IntegrityStatus { unrecoverable, lost, lost_left_off, ..IntegrityStatus::default() };
            found.look_at_integrity(&integrity, (0, settled), LostPagesWay::Restore);
            found.problems()
        };
        assert!(told(5, vec![range(5)], 0, 0)[0].contains("of 5 pages;"));
        assert!(told(5, vec![range(1), range(1)], 0, 0)[0].contains("of 2 pages;"));
        assert!(told(5000, vec![range(1)], 904, 0)[0].contains("of 905 pages;"));
        assert_eq!(told(5, Vec::new(), 0, 0), [""; 0]);
        assert_eq!(told(5000, Vec::new(), 904, 5000), [""; 0]);
    }
}
