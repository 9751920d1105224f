//! Volumes that change their group of sets while hosts go on, with all that was cloned from them: to another RAID level, another
//! kind of drives, another lane of the write log.
//!
//! 1. What the log has of them goes into its place, while hosts go on.
//! 2. Every shard lets wait what writes to them, and brings the rest into place: their lane of the log has nothing of them. Then it
//!    lets wait what reads them, until none of their slots is read.
//! 3. The metadata have them in the new group. What is written from then on for the first time gets its slots there.
//! 4. Shards let the requests of all of them pass the lane of that group, and what waited goes on.
//! 5. Their extents come after them ([`crate::tiering::homing`]).
//!
//! A crash before step 3 leaves them in the group of before, one after it in the new one, and the next start goes on with step 5:
//! which extents are left is in the map. To cancel is to migrate them back.

use std::rc::Rc;
use std::sync::Arc;

use tier0_description::names::quoted;
use tier0_pool::{Claim, MetaRecord, Place, Placement, PoolState, Volume as VolumeRecord};
use tier0_units::{ByteCount, ExtentId, SECTOR_BYTES};
use tier0_world::{PlantedBug, planted};

use super::Volumes;
use super::lifecycle::Meant;
use super::settle::{Purpose, all};
use crate::admin::AdminError;
use crate::context::TURN;
use crate::message::volumes::VolumesCommand;

/// Extents that are looked at before others have their turn.
const EXTENTS_AT_ONCE: usize = 4096;
const MIGRATE: Purpose = Purpose { verb: "migrate", done: "migrated" };

/// A family that has changed its group.
pub(crate) struct Migrated {
    pub(crate) pool: usize,
    /// The names of all its volumes.
    pub(crate) names: Vec<String>,
    /// What moves to the new group.
    pub(crate) bytes: ByteCount,
    /// Whether something was said of their places, which is forgotten.
    pub(crate) are_unplaced: bool,
}

/// A family that is to change its group.
struct Family {
    pool: usize,
    number: u32,
    /// The volumes, with their numbers in the array.
    volumes: Vec<(VolumeRecord, u32)>,
    group: u32,
}

impl Volumes {
    /// Makes a volume and its family one of another group. Where that one has no disks, what was said of their places is forgotten.
    /// `taken`: slots of a group of a pool, free now, that a volume, thin or thick, does not get.
    pub(crate) async fn change_group(
        self: &Rc<Self>,
        name: &str,
        group: &str,
        taken: impl Fn(usize, u32, bool) -> u64,
    ) -> Result<Migrated, AdminError> {
        let meant = || {
            let Family { pool, volumes, .. } = self.family_meant(name, group)?;
            Ok((pool, volumes.into_iter().map(|(volume, number)| (volume.name, number)).collect()))
        };
        self.settle(name, MIGRATE, meant).await?;
        let _turn = self.turn.acquire(1).await;
        let family = self.family_meant(name, group)?;
        let Family { pool, number, ref volumes, group } = family;
        let wanted = self.slots_wanted(&family).await;
        let is_thin = volumes.iter().any(|(volume, _)| volume.thin);
        self.check_room_for_family(&family, wanted, taken(pool, group, is_thin))?;
        let core = self.core(pool);
        if !core.metadata.state().is_mixed() {
            core.metadata.commit(vec![MetaRecord::GroupsMixed {}]).await.map_err(AdminError::from)?;
        }
        let changed = MetaRecord::FamilyGroupChanged { family: number, group };
        core.metadata.state().check(&changed)?;
        let has_disks = core.metadata.state().has_disks(group);
        let placed = |(volume, _): &&(VolumeRecord, u32)| {
            !has_disks && !core.metadata.state().placement(volume.number).is_default()
        };
        let forgotten = volumes.iter().filter(placed).map(|(volume, _)| MetaRecord::PlacementChanged {
            volume: volume.number,
            placement: Placement::default(),
        });
        let records: Vec<MetaRecord> = forgotten.chain([changed]).collect();
        let are_unplaced = records.len() > 1;
        self.hold_family(volumes).await?;
        let changed = core.metadata.commit(records).await;
        if changed.is_ok() {
            let changes: Arc<[(u32, Claim)]> = volumes
                .iter()
                .map(|(volume, number)| (*number, Claim { group, thin: volume.thin }))
                .collect();
            // Without an answer the array is about to end.
            let _ = self.command(|reply| VolumesCommand::Regroup { volumes: changes.clone(), reply }).await;
        }
        self.open_family(volumes).await;
        changed.map_err(AdminError::from)?;
        let extent = core.metadata.state().geometry().extent_sectors * SECTOR_BYTES;
        let names = volumes.iter().map(|(volume, _)| volume.name.clone()).collect();
        Ok(Migrated { pool, names, bytes: ByteCount(wanted * extent), are_unplaced })
    }

    /// The family of a volume, and the group to which it is to go.
    fn family_meant(&self, name: &str, group: &str) -> Result<Family, AdminError> {
        let Meant { pool, record, .. } = self.volume_meant(name)?;
        let core = self.core(pool);
        let state = core.metadata.state();
        let Some(to) = state.group_named(group).filter(|_| state.has_groups()) else {
            let known: Vec<&str> = state.group_names().collect();
            return Err(AdminError::new(match known.is_empty() {
                true => format!(
                    "pool {:?} has one group of sets; add another one first (tier0 pool add-group)",
                    core.name
                ),
                false => format!(
                    "pool {:?} has no group {group:?}; use one of {}, or add it (tier0 pool add-group)",
                    core.name,
                    quoted(known.into_iter())
                ),
            }));
        };
        if !state.group_stays(to) {
            return Err(AdminError::new(format!(
                "group {group:?} is leaving pool {:?}; use another group, or let it stay (tier0 pool remove-group {group} --cancel)",
                core.name
            )));
        }
        if record.group == to {
            return Err(AdminError::unchanged(format!(
                "volume {name} is of group {group} already; nothing changed"
            )));
        }
        let volumes = state.family(record.family()).filter(|volume| !volume.is_unfinished());
        let volumes = volumes.map(|volume| (volume.clone(), self.number_of(pool, volume.number)));
        let volumes: Option<Vec<_>> = volumes.map(|(volume, number)| Some((volume, number?))).collect();
        let volumes =
            volumes.ok_or_else(|| AdminError::failed("a volume was deleted meanwhile; try again"))?;
        Ok(Family { pool, number: record.family(), volumes, group: to })
    }

    /// Slots that a family needs in the group besides those that it has there.
    async fn slots_wanted(&self, family: &Family) -> u64 {
        let core = self.core(family.pool);
        let mut wanted = 0;
        for (volume, _) in &family.volumes {
            if !volume.thin {
                wanted += core.metadata.state().wanted_in(volume, family.group);
                continue;
            }
            let mut next = Some(0);
            while let Some(first) = next {
                let (some, last) =
                    slots_in(&core.metadata.state(), volume.number, first, |own| own != Some(family.group));
                wanted += some;
                next = last;
                self.world.sleep(TURN).await;
            }
        }
        wanted
    }

    fn check_room_for_family(&self, family: &Family, wanted: u64, taken: u64) -> Result<(), AdminError> {
        let core = self.core(family.pool);
        let state = core.metadata.state();
        let here = |volume: u32| -> u64 {
            state.away_of(volume).filter(|(own, _)| *own == family.group).map(|(_, count)| count).sum()
        };
        // What a tier has moved there gives way, but not what belongs to the family, which stays.
        let is_auto = |volume: &VolumeRecord| state.placement(volume.number).place == Place::Auto;
        let own = family.volumes.iter().filter(|(volume, _)| is_auto(volume));
        let own: u64 = own.map(|(volume, _)| here(volume.number)).sum();
        let lent = state.lent_to_tier(family.group).saturating_sub(own);
        let room = (state.room_in(family.group) + lent).saturating_sub(taken);
        if wanted <= room {
            return Ok(());
        }
        let bytes = |slots: u64| ByteCount(slots * state.geometry().extent_sectors * SECTOR_BYTES);
        let names: Vec<&str> = family.volumes.iter().map(|(volume, _)| volume.name.as_str()).collect();
        Err(AdminError::new(format!(
            "{} would have to move to group {:?}, which has room for {:#}: {:#} are lacking for volume {}; add drives to the group \
             (tier0 drive add --group {}, then tier0 pool grow), or migrate a smaller volume",
            format_args!("{:#}", bytes(wanted)),
            state.groups()[family.group as usize].name,
            bytes(room),
            bytes(wanted - room),
            names.join(", "),
            state.groups()[family.group as usize].name,
        )))
    }

    async fn hold_family(&self, volumes: &[(VolumeRecord, u32)]) -> Result<(), AdminError> {
        if planted(PlantedBug::FlipLaneBeforeRetire) {
            return Ok(());
        }
        let numbers: Arc<[u32]> = volumes.iter().map(|(_, number)| *number).collect();
        let held =
            self.command(|reply| VolumesCommand::HoldFamily { numbers: numbers.clone(), reply }).await?;
        let result = all(held);
        if result.is_err() {
            // One shard may hold them although another one does not.
            self.open_family(volumes).await;
        }
        result.map_err(|error| MIGRATE.not_in_place(&volumes[0].0.name, error))
    }

    async fn open_family(&self, volumes: &[(VolumeRecord, u32)]) {
        for (_, number) in volumes {
            // Without an answer the array is about to end.
            let _ = self.command(|reply| VolumesCommand::Open { number: *number, reply }).await;
        }
    }
}

/// Of some extents of a volume from the one of number `first` on, how many slots lie in a group that `is_meant`; and where to go on.
/// What several extents have counts for the first of them.
pub(crate) fn slots_in(
    state: &PoolState,
    volume: u32,
    first: u32,
    is_meant: impl Fn(Option<u32>) -> bool,
) -> (u64, Option<u32>) {
    let mut count = 0;
    let map = state.map(volume);
    for (number, (index, slot)) in map.into_iter().flat_map(|map| map.iter_from(first)).enumerate() {
        if number == EXTENTS_AT_ONCE {
            return (count, Some(index));
        }
        let is_first = state.owners(slot.slot).next() == Some(ExtentId { volume, index });
        let home = state.slot_home(slot.slot).map(|home| state.group_number_of(home.set));
        count += u64::from(is_first && is_meant(home));
    }
    (count, None)
}
