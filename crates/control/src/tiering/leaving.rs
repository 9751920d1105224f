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

use tier0_api::EventKind;
use tier0_description::names::quoted;
use tier0_pool::{MetaRecord, Place, Placement};
use tier0_units::{ByteCount, SECTOR_BYTES, SlotRef};

use super::groups::TierGroups;
use super::moves::EXTENTS_AT_ONCE;
use super::{TierPool, Tiering};
use crate::admin::AdminError;
use crate::context::{Done, TURN};
use crate::pool::ALL_PLACES;
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
        let pins = self.note_of_pins(number, group).await;
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
            "group {name} leaves pool {}: {moves}its drives hold none of the pool's data and can be removed (tier0 drive remove){log}{pins}; \
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
        core.forget_stuck(group);
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
            core.forget_stuck(group);
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
        // What hosts have discarded is free.
        self.space.collect_discarded().await;
        let reports = self.reports(number).await;
        let state = core.metadata.state();
        for (home, wanted) in wanted {
            let promised = core.promised_in(home, Some(group));
            let (free, kept) = self.space.core(number).room_beside_reserve(&reports, home, Some(group));
            let room = free.saturating_sub(promised);
            if wanted <= room {
                continue;
            }
            let home = state.name_of_group(home).unwrap_or_default();
            let bytes = |slots: u64| core.bytes_of_slots(slots);
            let also = |slots: u64, what: &str| match slots {
                0 => String::new(),
                _ => format!(", beside {:#} {what}", bytes(slots)),
            };
            let (on_its_way, reserve) =
                (also(promised, "that are on their way there"), also(kept, "of the reserve"));
            let lower = if kept > 0 { "lower the reserve (tier0 pool reserve), " } else { "" };
            return Err(AdminError::new(format!(
                "{:#} in group {name:?} are of volumes of group {home:?}, which has room for {:#}{on_its_way}{reserve}: {:#} are \
                 lacking; add drives to that group (tier0 drive add --group {home}, then tier0 pool grow), {lower}or discard or \
                 delete data",
                bytes(wanted),
                bytes(room),
                bytes(wanted - room),
            )));
        }
        Ok(())
    }
}

impl Tiering {
    /// What becomes of the extents in a group that an administrator has placed or pinned there, where another group becomes the
    /// fast one.
    async fn note_of_pins(&self, number: usize, group: u32) -> String {
        let core = self.core(number);
        let Some(other) = core.other_fast(group) else { return String::new() };
        let now = self.world.unix_s();
        let placed: Vec<(u32, Placement)> = {
            let state = core.metadata.state();
            state.placements().map(|(volume, placement)| (volume, placement.clone())).collect()
        };
        let mut pinned = 0;
        for (volume, placement) in placed {
            let mut next = Some(0);
            while let Some(first) = next {
                let some: Vec<(u32, SlotRef)> = {
                    let state = core.metadata.state();
                    let own = state.map(volume).into_iter().flat_map(|map| map.iter_from(first));
                    own.take(EXTENTS_AT_ONCE + 1).collect()
                };
                let is_meant = |(index, slot): &&(u32, SlotRef)| {
                    placement.of(*index, now) == Place::Fast && core.shape.slots.group_of(slot.slot) == group
                };
                pinned += some.iter().take(EXTENTS_AT_ONCE).filter(is_meant).count() as u64;
                next = some.get(EXTENTS_AT_ONCE).map(|(index, _)| *index);
                self.world.sleep(TURN).await;
            }
        }
        let kept = self.space.core(number).kept_slots(other);
        let room = core.metadata.free_slots(other).saturating_sub(kept);
        let state = core.metadata.state();
        let name = state.name_of_group(other).unwrap_or_default();
        match (pinned, pinned.saturating_sub(room)) {
            (0, _) => String::new(),
            (_, 0) => format!("; what is placed or pinned there moves to group {name}"),
            (_, lacking) => format!(
                "; {:#} are placed or pinned there and move to group {name}, which lacks room for {:#}: as long as it does, so much \
                 lies in the groups of the volumes",
                core.bytes_of_slots(pinned),
                core.bytes_of_slots(lacking)
            ),
        }
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
        if TierGroups::of(&self.pool).is_none_or(|groups| groups.fast != group)
            || self.other_fast(group).is_some()
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

    /// The group that would be the fast one without this one.
    fn other_fast(&self, group: u32) -> Option<u32> {
        let state = self.metadata.state();
        state.groups_that_stay().find(|other| *other != group && super::groups::is_fast(&state, *other))
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
