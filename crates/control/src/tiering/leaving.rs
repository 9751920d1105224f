//! Groups of sets that leave a pool while hosts go on.
//!
//! 1. No volume is of the group: they were migrated before. The metadata say that it is to leave. From then on nothing new comes to
//!    it, and it is neither fast nor slow, so what the tier has moved there goes home ([`super::homing`]).
//! 2. When nothing lies in it, and shards have none of its slots in reserve, the metadata say that it is gone. The chunklets of its
//!    sets are free, so its drives hold nothing and can be removed.
//!
//! A crash before step 2 leaves it as far as it is: which extents are left is in the map, and the next start goes on. To cancel is to
//! let it stay; what has gone home stays there until the tier moves it again.

use std::collections::{BTreeMap, BTreeSet};

use tier0_api::{EventKind, FindingKind};
use tier0_description::names::quoted;
use tier0_pool::{MetaRecord, Place, Placement, PoolState};
use tier0_units::{ByteCount, SECTOR_BYTES};

use super::groups::TierGroups;
use super::{TierPool, Tiering};
use crate::admin::AdminError;
use crate::context::{Done, TURN};
use crate::pool::ALL_PLACES;
use crate::report::Findings;
use crate::volumes::migrate::slots_in;

impl Tiering {
    /// Has a group leave its pool as soon as what lies in it has gone home.
    pub(crate) async fn remove_group(&self, pool: Option<&str>, name: &str) -> Done {
        let number = self.pool_meant(pool)?;
        let _turn = self.turn.acquire(1).await;
        let core = self.core(number);
        let group = core.group_meant(name)?;
        let used = core.bytes_of_slots(core.metadata.state().used_slot_count_of(group));
        if !core.metadata.state().group_stays(group) {
            return Err(AdminError::unchanged(format!(
                "group {name} of pool {} is leaving already: {used:#} of it are still to move; \"tier0 status\" shows what is left, \
                 and --cancel lets it stay",
                core.name
            )));
        }
        core.check_not_needed(group, name)?;
        core.check_no_pins(group, name, self.world.unix_s())?;
        self.check_room_at_home(number, group, name).await?;
        core.metadata
            .commit(vec![MetaRecord::GroupLeaving { group, leaving: true }])
            .await
            .map_err(AdminError::from)?;
        self.space.recall_slot_reserves(number).await;
        core.begin_round();
        core.homing.notify_all();
        let moves = match used.0 {
            0 => String::new(),
            _ => format!("{used:#} move to the groups of their volumes, then "),
        };
        let log = core.log_on_drives_of(group);
        Ok(format!(
            "group {name} leaves pool {}: {moves}its drives hold none of the pool's data and can be removed (tier0 drive remove){log}; \
             \"tier0 status\" shows what is left, and --cancel lets it stay",
            core.name
        ))
    }

    /// A group that is to leave stays after all.
    pub(crate) async fn keep_group(&self, pool: Option<&str>, name: &str) -> Done {
        let number = self.pool_meant(pool)?;
        let _turn = self.turn.acquire(1).await;
        let core = self.core(number);
        let group = core.group_meant(name)?;
        if core.metadata.state().group_stays(group) {
            return Err(AdminError::unchanged(format!(
                "group {name} of pool {} is not leaving; there is nothing to cancel",
                core.name
            )));
        }
        core.metadata
            .commit(vec![MetaRecord::GroupLeaving { group, leaving: false }])
            .await
            .map_err(AdminError::from)?;
        core.begin_round();
        Ok(format!(
            "group {name} stays in pool {}; what has left it comes back only as the tier or a pin moves it",
            core.name
        ))
    }

    /// Groups in which nothing lies any more are gone.
    pub(super) async fn end_leaving(&self, number: usize) {
        let core = self.core(number);
        let leaving: Vec<u32> = core.metadata.state().groups_that_leave().collect();
        for group in leaving {
            if core.metadata.state().used_slot_count_of(group) > 0 {
                continue;
            }
            if !core.metadata.is_group_empty(group) {
                // A shard may have been given some before the group was to leave.
                self.space.recall_slot_reserves(number).await;
            }
            // It is not let stay meanwhile, no column of it begins to move, and no discard of it is under way.
            let _turn = self.turn.acquire(1).await;
            let _alone = core.column_places.acquire(ALL_PLACES).await;
            let gone = MetaRecord::GroupRemoved { group };
            if !core.metadata.is_group_empty(group) || core.metadata.state().check(&gone).is_err() {
                continue;
            }
            let name = core.metadata.state().name_of_group(group).unwrap_or_default().to_owned();
            if core.commit(vec![gone]).await.is_err() {
                continue;
            }
            core.shape.give_up(&core.metadata.state(), group);
            self.tell(self.pool_subject(number), EventKind::GroupRemoved { group: name });
            // Drives of it that were to leave can.
            self.repair.start_rebuilds(number);
        }
    }

    /// Whether the groups of the volumes have room for what lies in a group.
    async fn check_room_at_home(&self, number: usize, group: u32, name: &str) -> Result<(), AdminError> {
        let core = self.core(number);
        let guests: Vec<(u32, u32)> = {
            let state = core.metadata.state();
            // What a thick volume has elsewhere is reserved in its group.
            let thin = state.volumes().filter(|volume| volume.thin);
            let here = thin.filter(|volume| state.away_of(volume.number).any(|(other, _)| other == group));
            here.map(|volume| (volume.number, volume.group)).collect()
        };
        let mut wanted: BTreeMap<u32, u64> = BTreeMap::new();
        for (volume, home) in guests {
            let mut next = Some(0);
            while let Some(first) = next {
                let (some, last) =
                    slots_in(&core.metadata.state(), volume, first, |other| other == Some(group));
                *wanted.entry(home).or_default() += some;
                next = last;
                self.world.sleep(TURN).await;
            }
        }
        let state = core.metadata.state();
        for (home, wanted) in wanted {
            let room = room_for_returns(&state, home, group);
            if wanted <= room {
                continue;
            }
            let home = state.name_of_group(home).unwrap_or_default();
            return Err(AdminError::new(format!(
                "{:#} in group {name:?} are of volumes of group {home:?}, which has room for {:#}: {:#} are lacking; add drives to that \
                 group (tier0 drive add --group {home}, then tier0 pool grow), or discard or delete data",
                core.bytes_of_slots(wanted),
                core.bytes_of_slots(room),
                core.bytes_of_slots(wanted - room),
            )));
        }
        Ok(())
    }
}

impl TierPool {
    /// The group of this name.
    fn group_meant(&self, name: &str) -> Result<u32, AdminError> {
        let state = self.metadata.state();
        if !state.has_groups() {
            return Err(AdminError::new(format!(
                "pool {:?} has one group of sets, without a name; it cannot leave",
                self.name
            )));
        }
        state.group_named(name).ok_or_else(|| {
            AdminError::new(format!(
                "pool {:?} has no group {name:?}; use one of {}",
                self.name,
                quoted(state.group_names())
            ))
        })
    }

    /// Another group stays, and no volume is of this one.
    fn check_not_needed(&self, group: u32, name: &str) -> Result<(), AdminError> {
        let state = self.metadata.state();
        let others: Vec<u32> = state.groups_that_stay().filter(|other| *other != group).collect();
        let Some(other) = others.first().and_then(|other| state.name_of_group(*other)) else {
            let leaving = state.groups_that_leave().next().and_then(|other| state.name_of_group(other));
            return Err(AdminError::new(match leaving {
                None => format!(
                    "group {name:?} is the only one of pool {:?}; add another one first (tier0 pool add-group)",
                    self.name
                ),
                Some(leaving) => format!(
                    "group {name:?} is the last of pool {:?} that stays; let another one stay first (tier0 pool remove-group {leaving} \
                     --cancel)",
                    self.name
                ),
            }));
        };
        let own = || state.volumes().filter(|volume| volume.group == group);
        let told: Vec<&str> =
            own().filter(|volume| !volume.is_unfinished()).map(|volume| volume.name.as_str()).collect();
        match told.first() {
            Some(first) => Err(AdminError::new(format!(
                "group {name:?} is the group of the volumes {}; migrate them first (tier0 volume migrate {first} --group {other})",
                told.join(", ")
            ))),
            None if own().next().is_some() => Err(AdminError::new(format!(
                "a volume of group {name:?} is being made or deleted; try again"
            ))),
            None => Ok(()),
        }
    }

    /// Nothing is to lie in this group by an administrator's word, unless another one takes its place.
    fn check_no_pins(&self, group: u32, name: &str, now_unix_s: u64) -> Result<(), AdminError> {
        if TierGroups::of(&self.pool).is_none_or(|groups| groups.fast != group) || self.has_other_fast(group)
        {
            return Ok(());
        }
        let state = self.metadata.state();
        let named = |is_meant: &dyn Fn(&Placement) -> bool| -> Vec<String> {
            let meant = state.placements().filter(|(_, placement)| is_meant(placement));
            meant.filter_map(|(volume, _)| state.volume(volume).map(|volume| volume.name.clone())).collect()
        };
        let placed = named(&|placement| placement.place == Place::Fast);
        let pinned = named(&|placement| {
            placement.pins.iter().any(|pin| pin.to == Place::Fast && pin.holds_at(now_unix_s))
        });
        let mut against = Vec::new();
        if let Some(first) = placed.first() {
            against.push((
                format!("the volumes {} are placed", placed.join(", ")),
                format!("tier0 volume set {first} place=auto"),
            ));
        }
        if let Some(first) = pinned.first() {
            against.push((
                format!("parts of the volumes {} are pinned", pinned.join(", ")),
                format!("tier0 volume unpin {first}"),
            ));
        }
        if against.is_empty() {
            return Ok(());
        }
        let (facts, remedies): (Vec<String>, Vec<String>) = against.into_iter().unzip();
        Err(AdminError::new(format!(
            "{} in group {name:?}; end that first ({})",
            facts.join(", and "),
            remedies.join(", ")
        )))
    }

    /// Whether another group that stays would be the fast one.
    fn has_other_fast(&self, group: u32) -> bool {
        let state = self.metadata.state();
        state.groups_that_stay().any(|other| other != group && super::groups::is_fast(&state, other))
    }

    /// What is to be told of a write log on the drives of a group.
    fn log_on_drives_of(&self, group: u32) -> String {
        let state = self.metadata.state();
        let members: BTreeSet<u32> = state.log().copies().map(|copy| copy.member).collect();
        let own = members.into_iter().filter_map(|member| state.member(member));
        let names: Vec<&str> =
            own.filter(|member| member.group == group).map(|member| member.name.as_str()).collect();
        match names.is_empty() {
            true => String::new(),
            false => format!(
                "; the write log on {} moves with that, or before to drives of your choice (tier0 pool log)",
                names.join(", ")
            ),
        }
    }

    fn bytes_of_slots(&self, slots: u64) -> ByteCount {
        ByteCount(slots * self.metadata.state().geometry().extent_sectors * SECTOR_BYTES)
    }
}

impl Findings {
    /// Groups that are to leave and cannot, because the groups of the volumes whose extents lie there are full.
    pub(crate) fn look_at_leaving_groups(&mut self, state: &PoolState) {
        for group in state.groups_that_leave() {
            let guests = state.volumes().filter(|volume| {
                volume.thin && state.away_of(volume.number).any(|(other, _)| other == group)
            });
            let homes: BTreeSet<u32> = guests.map(|volume| volume.group).collect();
            let is_full = |home: &u32| state.room_in(*home) + state.lent_to_tier(*home) == 0;
            let full = homes.into_iter().filter(is_full).filter_map(|home| state.name_of_group(home));
            let full: Vec<String> = full.map(str::to_owned).collect();
            let Some(name) = state.name_of_group(group).filter(|_| !full.is_empty()) else { continue };
            self.add(FindingKind::GroupCannotLeave { group: name.to_owned(), full });
        }
    }
}

/// Slots of a group for extents of its thin volumes that come back from `from`: those that are free, and those that give way to them,
/// without what others that are on their way need.
fn room_for_returns(state: &PoolState, home: u32, from: u32) -> u64 {
    let comes =
        state.volumes().filter(|volume| volume.thin && volume.group == home && !volume.is_unfinished());
    let is_default = |volume: u32| state.placement(volume).is_default();
    let promised: u64 = comes
        .filter(|volume| is_default(volume.number))
        .flat_map(|volume| state.away_of(volume.number))
        .filter(|(other, _)| *other != from)
        .map(|(_, count)| count)
        .sum();
    (state.room_in(home) + state.lent_to_tier(home)).saturating_sub(promised)
}
