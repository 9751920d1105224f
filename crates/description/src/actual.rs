//! The description of an array as it is: what the drives know, and what only its file says.

use tier0_pool::{
    Ceilings, CeilingsChange, DriveClass, Place as VolumePlace, RaidRecord, SpaceRules, WEIGHT_DEFAULT,
};
use tier0_raid::layout::{RaidConfig, RaidLevel};
use tier0_units::{ByteCount, SECTOR_BYTES, SectorCount};

use super::write::Remarks;
use super::{
    Description, DriveDescription, FlashCacheDescription, GroupDescription, PoolDescription,
    VolumeDescription,
};
use crate::facts::{DriveFacts, DriveState, GroupFacts, PoolFacts};
use crate::shape::config_of;

/// A write log is described in whole MiB: parts of it may be a few sectors smaller than that.
const LOG_STEP: u64 = 1 << 20;
/// Log drives that a file can name.
const LOG_DRIVES_MAX: usize = 3;

impl Description {
    /// This description with everything that `facts` know put right. Drives that are in no pool are left out; so is
    /// what the drives do not remember, unless the file says it.
    ///
    /// # Errors
    /// A pool of which the facts make no sense: the fact and the remedy.
    pub fn actual(&self, facts: &[PoolFacts]) -> Result<(Description, Remarks), String> {
        let mut remarks = Remarks::default();
        if facts.is_empty() {
            return Ok((self.clone(), remarks));
        }
        let mut actual =
            Description { drives: Vec::new(), pools: Vec::new(), volumes: Vec::new(), ..self.clone() };
        actual.warnings.clear();
        actual.cores = facts.iter().map(|pool| pool.log_parts).max();
        remarks.add("array", "cores", "as running; a change takes effect at the next start");
        for pool in facts {
            let pool = &without_old_places(pool);
            let first = actual.drives.len();
            for drive in &pool.drives {
                let drive = self.actual_drive(drive, &mut remarks);
                actual.drives.push(drive);
            }
            let in_file = self.pools.iter().find(|known| known.name == pool.name);
            let space = pool.space.clone().or_else(|| in_file.map(|known| known.space.clone()));
            let described = actual_pool(pool, in_file, first, space.unwrap_or_default(), &mut remarks)?;
            actual.pools.push(described);
            let number = actual.pools.len() - 1;
            actual.volumes.extend(pool.volumes.iter().map(|volume| VolumeDescription {
                name: volume.name.clone(),
                pool: number,
                sectors: SectorCount::in_bytes(ByteCount(volume.size_bytes)),
                thin: volume.thin,
                write_cache: Some(volume.write_cache),
                read_cache: Some(volume.read_cache),
                place: (volume.place != VolumePlace::Home).then_some(volume.place),
                group: volume.group.clone(),
                ceilings: those_set(volume.ceilings),
                weight: (volume.weight != WEIGHT_DEFAULT).then_some(volume.weight),
            }));
        }
        Ok((actual, remarks))
    }

    fn actual_drive(&self, drive: &DriveFacts, remarks: &mut Remarks) -> DriveDescription {
        let known = self.drives.iter().find(|known| known.name == drive.name);
        let model = known.and_then(|known| known.model.clone());
        let path = drive.path.clone().or_else(|| known.and_then(|known| known.path.clone()));
        let section = || format!("drive {}", drive.name);
        if path.is_none() {
            remarks.add(section(), "path", "unknown: set its path here");
        }
        if drive.state == DriveState::Lost {
            remarks.add(section(), "name", "LOST: replace or remove it (tier0 drive)");
            if path.is_some() {
                remarks.add(section(), "path", "its last path; a start does not use it");
            }
        }
        let path = path.unwrap_or_else(|| format!("{}.img", drive.name).into());
        // A device has the size it has, and behind a model the file's size is the model's.
        let has_size = !path.starts_with("/dev") && model.is_none();
        let size = has_size.then_some(ByteCount(drive.size_bytes));
        let size = size.or_else(|| known.and_then(|known| known.size.filter(|_| model.is_some())));
        // Memory is not said.
        let class = drive.class.filter(|class| *class != DriveClass::Ram);
        DriveDescription { name: drive.name.clone(), path: Some(path), size, ram: None, model, class }
    }
}

/// The pool without the old places of drives that have joined again: one place per name, the one that serves or else the
/// newest.
fn without_old_places(pool: &PoolFacts) -> PoolFacts {
    let place_of = |name: &str| {
        let mut places = pool.drives.iter().enumerate().filter(|(_, drive)| drive.name == name);
        let serving = places.clone().find(|(_, drive)| drive.state != DriveState::Lost);
        serving.or_else(|| places.next_back()).map(|(place, _)| place)
    };
    let is_it = |(place, drive): &(usize, &DriveFacts)| place_of(&drive.name) == Some(*place);
    let drives = pool.drives.iter().enumerate().filter(is_it).map(|(_, drive)| drive.clone()).collect();
    PoolFacts { drives, ..pool.clone() }
}

fn actual_pool(
    pool: &PoolFacts,
    in_file: Option<&PoolDescription>,
    first: usize,
    space: SpaceRules,
    remarks: &mut Remarks,
) -> Result<PoolDescription, String> {
    let section = format!("pool {}", pool.name);
    let places = |wanted: fn(&DriveFacts) -> bool| -> Vec<usize> {
        (first..).zip(&pool.drives).filter(|(_, drive)| wanted(drive)).map(|(place, _)| place).collect()
    };
    let mut groups = Vec::new();
    for group in pool.groups() {
        let own = (first..).zip(&pool.drives).filter(|(_, drive)| pool.is_of_group(drive, &group));
        let drives: Vec<usize> = own.map(|(place, _)| place).collect();
        let known = in_file.and_then(|known| known.groups.iter().find(|known| known.name == group.name));
        let spare_drives =
            group.spare_drives(drives.len(), known.map(|known| (known.spare_drives, known.drives.len())));
        let section = match group.name.is_empty() {
            true => section.clone(),
            false => format!("group {} of {section}", group.name),
        };
        if group.spare_chunklets > 0 {
            let text = format!("derived: {} of each drive's chunklets stay free", group.spare_chunklets);
            remarks.add(section.as_str(), "spare_drives", text);
        }
        groups.push(GroupDescription {
            raid: raid_of(&pool.name, &group)?,
            name: group.name,
            drives,
            spare_drives,
        });
    }
    remarks.add(section.as_str(), "raid", "fixed at creation: raid to checksums cannot be changed");
    let mut log_drives = places(|drive| drive.for_log);
    if log_drives.len() > LOG_DRIVES_MAX {
        remarks.add(section.as_str(), "log", "on more drives than the file can name");
        log_drives.clear();
    }
    remarks.add(section.as_str(), "log", "per drive; fixed at creation");
    let flash_cache_bytes = pool.drives.iter().map(|drive| drive.flash_cache_bytes).sum::<u64>();
    let flash_cache = FlashCacheDescription {
        bytes: (flash_cache_bytes > 0).then_some(ByteCount(flash_cache_bytes)),
        drives: places(|drive| drive.flash_cache_bytes > 0),
        writes_per_day: in_file.and_then(|known| known.flash_cache.writes_per_day),
    };
    Ok(PoolDescription {
        name: pool.name.clone(),
        drives: groups.iter().flat_map(|group| group.drives.iter().copied()).collect(),
        groups,
        chunklet_sectors: Some(pool.chunklet_bytes / SECTOR_BYTES),
        extent_sectors: Some(pool.extent_bytes / SECTOR_BYTES),
        checksums: pool.checksums,
        log: pool.log_parts > 0,
        log_sectors: log_bytes(pool).map(|bytes| bytes / SECTOR_BYTES),
        log_drives,
        space,
        read_cache: Some(pool.cache.read),
        write_cache: Some(pool.cache.write),
        read_cache_policy: in_file.and_then(|known| known.read_cache_policy),
        flash_cache,
    })
}

/// The log's size as a file would give it.
pub(super) fn log_bytes(pool: &PoolFacts) -> Option<u64> {
    (pool.log_bytes > 0).then(|| pool.log_bytes.next_multiple_of(LOG_STEP))
}

fn raid_of(pool: &str, group: &GroupFacts) -> Result<RaidConfig, String> {
    let record = RaidRecord {
        level: group.raid.clone(),
        set_size: group.set_size as u32,
        groups: group.groups as u32,
        stripe_unit_sectors: (group.stripe_unit_bytes / SECTOR_BYTES) as u32,
    };
    let config = config_of(&record).map_err(|fact| {
        format!("cannot interpret pool {pool:?}: {fact}; use the tier0 version that created it")
    })?;
    Ok(match config.level {
        RaidLevel::Raid50 => config,
        _ => RaidConfig::new(config.level, config.set_size, config.stripe_unit),
    })
}

/// What a file says of the ceilings that there are.
fn those_set(Ceilings { iops_max, mbps_max, burst_seconds }: Ceilings) -> CeilingsChange {
    let [iops_max, mbps_max, burst_seconds] =
        [iops_max, mbps_max, burst_seconds].map(|value| (value > 0).then_some(value));
    CeilingsChange { iops_max, mbps_max, burst_seconds }
}

#[cfg(test)]
mod tests {
    use tier0_pool::CacheSwitches;

    use super::*;

    /// A drive that was lost, joined again and was lost again was described twice, in a file that nothing accepts.
    #[test]
    fn a_drive_has_one_place_whatever_became_of_it() {
        let (lost, active) = (DriveState::Lost, DriveState::Active);
        let drives = vec![
            drive("d0", 1, active),
            drive("d1", 2, lost),
            drive("d1", 3, lost),
            drive("d2", 4, lost),
            drive("d2", 5, active),
            drive("d2", 6, lost),
        ];
        let pool = facts(drives);
        let sizes: Vec<u64> = without_old_places(&pool).drives.iter().map(|drive| drive.size_bytes).collect();
        assert_eq!(sizes, [1, 3, 5]);
    }

    /// With a drive removed, four chunklets of three drives were no drive's worth: "spare_drives is 0, as created".
    #[test]
    fn spares_are_named_as_created_whatever_drives_left() {
        let spares = |drives: usize, kept, in_file| {
            let group = facts(Vec::new()).groups().remove(0);
            let group = GroupFacts { spare_chunklets: kept, chunklets_min: 16, ..group };
            group.spare_drives(drives, in_file)
        };
        // Created with one spare of four drives of 16 chunklets.
        for drives in [3, 4, 5, 6] {
            for in_file in [None, Some((1, 3)), Some((1, 4)), Some((1, 5))] {
                assert_eq!(spares(drives, 4, in_file), 1, "{drives} drives, {in_file:?} in the file");
            }
            assert_eq!(spares(drives, 4, Some((0, 4))), 1, "the file is wrong");
            assert_eq!(spares(drives, 0, Some((1, 4))), 0, "the file is wrong");
        }
        assert_eq!(spares(2, 4, Some((1, 4))), 0, "a file of two drives has no room for a spare");
        // Two of six.
        assert_eq!(spares(5, 6, Some((2, 6))), 2);
        assert_eq!(spares(5, 6, Some((2, 5))), 2);
    }

    fn drive(name: &str, size_bytes: u64, state: DriveState) -> DriveFacts {
        DriveFacts {
            name: name.to_owned(),
            id: None,
            path: None,
            moved_from: None,
            deleted: false,
            replaced: false,
            cut_short: false,
            class: None,
            size_bytes,
            state,
            leaving: false,
            for_data: true,
            for_log: true,
            flash_cache_bytes: 0,
            group: None,
        }
    }

    fn facts(drives: Vec<DriveFacts>) -> PoolFacts {
        PoolFacts {
            name: "p".to_owned(),
            raid: "raid1".to_owned(),
            set_size: 2,
            groups: 1,
            stripe_unit_bytes: 4096,
            chunklet_bytes: 1 << 20,
            extent_bytes: 1 << 20,
            spare_chunklets: 0,
            chunklets_min: 1,
            checksums: true,
            log_bytes: 1 << 20,
            log_parts: 1,
            set_groups: Vec::new(),
            gone_groups: Vec::new(),
            drives,
            volumes: Vec::new(),
            cache: CacheSwitches::default(),
            space: None,
        }
    }
}
