//! What administrators set: where volumes and parts of them are to lie, and how the tier works. The next round begins at once.

use std::ops::Range;

use tier0_api::VolumePlace;
use tier0_pool::{DriveClass, MetaRecord, PINS_MAX, Pin, Place, Placement, PoolState, TierSettings};
use tier0_units::{ByteCount, ExtentId, SECTOR_BYTES, SlotRef};

use super::Tiering;
use super::groups::{TierGroups, is_fast};
use crate::admin::{AdminError, place_of, volume_place};
use crate::context::Done;
use crate::volumes::lifecycle::Meant;

/// A part of a volume that is to be pinned, in bytes.
pub(crate) struct PinnedPart {
    pub(crate) bytes: Range<u64>,
    pub(crate) to: VolumePlace,
    /// For ever where that is 0.
    pub(crate) until_unix_s: u64,
}

impl Tiering {
    /// Says where a volume is to lie.
    pub(crate) async fn set_place(&self, name: &str, place: VolumePlace) -> Done {
        let _turn = self.turn.acquire(1).await;
        let Meant { pool, record, .. } = self.volumes.volume_meant(name)?;
        let known = self.core(pool).metadata.state().placement(record.number);
        let wanted = Placement { place: place_of(place), pins: known.pins.clone() };
        if wanted == known {
            let text = format!("volume {name} already has place={}; nothing changed", place.text());
            return Err(AdminError::unchanged(text));
        }
        let whole = 0..self.core(pool).metadata.state().extents_of(record.sectors) as u32;
        self.place(pool, (name, record.number), wanted, whole, place).await?;
        let note = if place == VolumePlace::Fast { self.note_of_size(pool, &record) } else { String::new() };
        Ok(match place {
            VolumePlace::Slow => format!("volume {name} is to lie in its own group"),
            VolumePlace::Auto => {
                format!("the tier decides which parts of volume {name} lie in the fast group")
            }
            VolumePlace::Fast => format!("volume {name} is to lie in the fast group"),
        } + &note
            + "; \"tier0 status\" shows the moves")
    }

    /// Pins a part of a volume.
    pub(crate) async fn pin(&self, name: &str, part: PinnedPart) -> Done {
        let PinnedPart { bytes, to, until_unix_s } = part;
        let _turn = self.turn.acquire(1).await;
        let Meant { pool, record, .. } = self.volumes.volume_meant(name)?;
        let extents = self.extents_of_range(pool, &record, &bytes)?;
        if to == VolumePlace::Auto {
            return Err(AdminError::new("a pin holds extents in a group; use --to fast or --to slow"));
        }
        let now = self.world.unix_s();
        if until_unix_s != 0 && until_unix_s <= now {
            return Err(AdminError::new("the pin would end before now; give a later --until, or none"));
        }
        let known = self.core(pool).metadata.state().placement(record.number);
        let pin = Pin { extents: extents.clone(), to: place_of(to), until_unix_s };
        let wanted = known.at(now).with(pin);
        if wanted.pins.len() > PINS_MAX {
            return Err(AdminError::new(format!(
                "volume {name:?} would have more than {PINS_MAX} pins; pin larger ranges, or unpin some (tier0 volume unpin ARRAY.TOML {name})"
            )));
        }
        self.place(pool, (name, record.number), wanted, extents.clone(), to).await?;
        Ok(format!(
            "pinned {} of volume {name} to the {} group; \"tier0 status\" shows the moves",
            self.bytes_of(pool, extents.len() as u64),
            to.text()
        ))
    }

    /// Ends pins of a part of a volume.
    pub(crate) async fn unpin(&self, name: &str, bytes: Range<u64>) -> Done {
        let _turn = self.turn.acquire(1).await;
        let Meant { pool, record, .. } = self.volumes.volume_meant(name)?;
        let extents = self.extents_of_range(pool, &record, &bytes)?;
        let known = self.core(pool).metadata.state().placement(record.number);
        let wanted = known.clone().without(&extents);
        if wanted == known {
            return Err(AdminError::unchanged(format!(
                "nothing of volume {name} is pinned there; nothing changed"
            )));
        }
        let pinned = |placement: &Placement| -> u64 {
            placement.pins.iter().map(|pin| pin.extents.len() as u64).sum()
        };
        let ended = pinned(&known) - pinned(&wanted);
        self.record(pool, record.number, wanted).await?;
        Ok(format!("unpinned {} of volume {name}", self.bytes_of(pool, ended)))
    }

    /// Switches a tier on or off, or limits what it moves.
    pub(crate) async fn set_tier(
        &self,
        pool: Option<&str>,
        is_on: Option<bool>,
        rate: Option<ByteCount>,
    ) -> Done {
        let _turn = self.turn.acquire(1).await;
        let number = self.pool_meant(pool)?;
        let core = self.core(number);
        let known = core.metadata.state().tier();
        let wanted = TierSettings {
            is_on: is_on.unwrap_or(known.is_on),
            rate_bytes_per_s: rate.map_or(known.rate_bytes_per_s, |rate| rate.0),
        };
        if wanted == known {
            return Err(AdminError::unchanged(format!(
                "the tier of pool {} is so already; nothing changed",
                core.name
            )));
        }
        core.metadata.commit(vec![MetaRecord::TierChanged(wanted)]).await.map_err(AdminError::from)?;
        core.begin_round();
        let rate = match wanted.rate_bytes_per_s {
            0 => "as fast as hosts let it".to_owned(),
            rate => format!("at most {:#} per second", ByteCount(rate)),
        };
        Ok(match wanted.is_on {
            true => format!("the tier of pool {} is on; it moves {rate}", core.name),
            false => format!(
                "the tier of pool {} is off; what lies in the fast group stays there, and what is placed or pinned by hand \
                 still moves",
                core.name
            ),
        })
    }

    /// Places extents of a volume, if there is room for those that are to lie in the fast group.
    async fn place(
        &self,
        pool: usize,
        (name, volume): (&str, u32),
        wanted: Placement,
        extents: Range<u32>,
        place: VolumePlace,
    ) -> Result<(), AdminError> {
        if place != VolumePlace::Slow {
            let groups = self.groups_for(pool, (name, volume))?;
            if place == VolumePlace::Fast {
                self.check_room(pool, (name, volume), &groups, extents)?;
            }
        }
        self.record(pool, volume, wanted).await
    }

    async fn record(&self, pool: usize, volume: u32, placement: Placement) -> Result<(), AdminError> {
        let record = MetaRecord::PlacementChanged { volume, placement };
        self.core(pool).metadata.commit(vec![record]).await.map_err(AdminError::from)?;
        self.begin_counting(pool);
        self.core(pool).homing.notify_all();
        Ok(())
    }

    /// The groups between which a volume can move.
    fn groups_for(&self, pool: usize, (name, volume): (&str, u32)) -> Result<TierGroups, AdminError> {
        let core = self.core(pool);
        let Some(groups) = TierGroups::of(core) else {
            let state = core.metadata.state();
            if let Some(leaving) = lacking_leaves(&state) {
                return Err(AdminError::new(format!(
                    "group {leaving:?} is leaving pool {:?}, so nothing can move between a fast and a slow group; let it stay (tier0 \
                     pool remove-group {leaving} --cancel), or add another one (tier0 pool add-group)",
                    core.name
                )));
            }
            let has_flash = state.members().iter().any(|member| member.class == DriveClass::Flash);
            let lacks =
                if has_flash { "no group of disks beside one of flash" } else { "no drives of class flash" };
            return Err(AdminError::new(format!(
                "pool {:?} has {lacks}, so nothing can move between a fast and a slow group; add the group that is missing (tier0 pool \
                 add-group, with --class flash for flash that the kernel does not know as such)",
                core.name
            )));
        };
        let group = core.metadata.state().volume(volume).map_or(0, |volume| volume.group);
        match groups.slow.contains_key(&group) {
            true => Ok(groups),
            false => Err(AdminError::new(format!(
                "volume {name:?} lies in the fast group already; only volumes of slower groups can be placed"
            ))),
        }
    }

    /// Whether all of these extents of a volume find room in the fast group.
    fn check_room(
        &self,
        pool: usize,
        (name, volume): (&str, u32),
        groups: &TierGroups,
        extents: Range<u32>,
    ) -> Result<(), AdminError> {
        let core = self.core(pool);
        let state = core.metadata.state();
        let is_fast = |slot: u64| core.shape.slots.group_of(slot) == groups.fast;
        let own = state.map(volume).into_iter().flat_map(|map| map.iter_from(extents.start));
        let own = own.take_while(|(index, _)| *index < extents.end);
        let lacking = own.filter(|(_, slot)| !is_fast(slot.slot)).count() as u64;
        let stays = |extent: ExtentId| extent.volume == volume && extents.contains(&extent.index);
        let gives_way = extents_that_give_way(&state, self.world.unix_s(), |extent, slot| {
            is_fast(slot) && !stays(extent)
        });
        let kept = self.space.core(pool).kept_slots(groups.fast);
        let room = core.metadata.free_slots(groups.fast).saturating_sub(kept) + gives_way;
        if lacking <= room {
            return Ok(());
        }
        drop(state);
        Err(AdminError::new(format!(
            "{} of volume {name:?} would have to move to the fast group, and {} of it are free or may give way: {} are lacking; \
             add drives to the fast group, or pin a smaller part (tier0 volume pin ARRAY.TOML {name} --range A..B --to fast)",
            self.bytes_of(pool, lacking),
            self.bytes_of(pool, room),
            self.bytes_of(pool, lacking - room)
        )))
    }

    /// That a volume is larger than the fast group, if it is: what is written later stays in its own group.
    fn note_of_size(&self, pool: usize, volume: &tier0_pool::Volume) -> String {
        let core = self.core(pool);
        let state = core.metadata.state();
        let all = TierGroups::of(core).map_or(0, |groups| state.slot_count_of(groups.fast));
        let wanted = state.extents_of(volume.sectors);
        drop(state);
        match wanted > all {
            true => format!(
                " as far as there is room: it has {} and the group {}",
                self.bytes_of(pool, wanted),
                self.bytes_of(pool, all)
            ),
            false => String::new(),
        }
    }

    /// The extents that a range of bytes touches.
    fn extents_of_range(
        &self,
        pool: usize,
        volume: &tier0_pool::Volume,
        bytes: &Range<u64>,
    ) -> Result<Range<u32>, AdminError> {
        let size = volume.sectors * SECTOR_BYTES;
        if bytes.is_empty() || bytes.start >= size {
            return Err(AdminError::new(format!(
                "the range {}..{} is empty, or begins behind the end of volume {:?}, which has {:#}; give one inside it",
                ByteCount(bytes.start),
                ByteCount(bytes.end),
                volume.name,
                ByteCount(size)
            )));
        }
        let extent = self.core(pool).metadata.state().geometry().extent_sectors * SECTOR_BYTES;
        Ok((bytes.start / extent) as u32..bytes.end.min(size).div_ceil(extent) as u32)
    }

    fn bytes_of(&self, pool: usize, extents: u64) -> String {
        let extent = self.core(pool).metadata.state().geometry().extent_sectors;
        format!("{:#}", ByteCount(extents * extent * SECTOR_BYTES))
    }
}

/// The group that is to leave and without which a pool that lacks a fast group, or a slow one, has both.
fn lacking_leaves(state: &PoolState) -> Option<&str> {
    let has_fast = state.groups_that_stay().any(|group| is_fast(state, group));
    let lacks = |group: &u32| if has_fast { state.has_disks(*group) } else { is_fast(state, *group) };
    state.groups_that_leave().find(lacks).and_then(|group| state.name_of_group(group))
}

/// How many extents the tier may move as it likes, of those that `is_meant`.
fn extents_that_give_way(
    state: &PoolState,
    now_unix_s: u64,
    is_meant: impl Fn(ExtentId, u64) -> bool,
) -> u64 {
    let of_volume = |(volume, placement): (u32, &Placement)| {
        let gives_way = |(index, slot): &(u32, SlotRef)| {
            placement.of(*index, now_unix_s) == Place::Auto
                && is_meant(ExtentId { volume, index: *index }, slot.slot)
        };
        state.map(volume).into_iter().flat_map(|map| map.iter()).filter(gives_way).count() as u64
    };
    state.placements().map(of_volume).sum()
}

/// Where an extent of a volume is to lie, for the contract.
pub(crate) fn place_at(state: &PoolState, volume: u32, extent: u32, now_unix_s: u64) -> VolumePlace {
    volume_place(state.placement(volume).of(extent, now_unix_s))
}
