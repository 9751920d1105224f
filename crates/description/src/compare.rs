//! What a file would do to an array that is: differences, with the value that counts.

use std::collections::BTreeSet;
use std::fmt::Display;
use std::path::{Path, PathBuf};

use tier0_pool::{CeilingsChange, Place as VolumePlace, RaidRecord, WEIGHT_DEFAULT};
use tier0_units::{ByteCount, SECTOR_BYTES, SectorCount};

use super::{Description, DriveDescription, GroupDescription, PoolDescription, VolumeDescription};
use crate::error::Mismatch;
use crate::facts::{DriveFacts, DriveState, PoolFacts};
use crate::shape::record_of;

/// Something that a file would do, or does not say.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Finding {
    /// The array starts; the administrator should know.
    Told(String),
    /// The array would not start with this file.
    Refused(String),
}

impl Description {
    /// What this file would do, given what the array is. Fields that the file leaves out differ from nothing.
    ///
    /// # Errors
    /// Facts that make no sense.
    pub fn compare(&self, facts: &[PoolFacts]) -> Result<Vec<Finding>, String> {
        let mut findings = Vec::new();
        let (actual, _) = self.actual(facts)?;
        for (number, pool) in self.pools.iter().enumerate() {
            let Some(place) = actual.pools.iter().position(|other| other.name == pool.name) else {
                let error = Mismatch::NoPool { pool: pool.name.clone() };
                findings.push(Finding::Refused(error.to_string()));
                continue;
            };
            let leaving = facts.iter().filter(|one| one.name == pool.name).flat_map(|one| &one.set_groups);
            findings.extend(leaving.filter(|group| group.leaving).map(|group| {
                Finding::Told(format!(
                    "group {:?} is leaving pool {:?}; when it has left, \"tier0 config\" prints the file without it",
                    group.name, pool.name
                ))
            }));
            let known = KnownGroups {
                there: actual.pools[place]
                    .groups
                    .iter()
                    .map(|group| (group.name.clone(), record_of(&group.raid)))
                    .collect(),
                gone: facts.iter().filter(|one| one.name == pool.name).flat_map(gone_groups).collect(),
            };
            if let Err(error) = known.check_same_shape(pool) {
                findings.push(Finding::Refused(error.to_string()));
            }
            findings.extend(known.differences(pool).into_iter().map(Finding::Told));
            findings.extend(self.vain_fields(number, &actual, place, facts).into_iter().map(Finding::Told));
            let volumes = |of: &'_ Description, pool: usize| -> Vec<VolumeDescription> {
                of.volumes.iter().filter(|volume| volume.pool == pool).cloned().collect()
            };
            let (wanted, there) = (volumes(self, number), volumes(&actual, place));
            let own = facts.iter().find(|one| one.name == pool.name);
            let left = |volume: &VolumeDescription| {
                let group = volume.group.as_deref();
                group.is_some_and(|group| own.is_some_and(|own| own.leaves(group).is_some()))
            };
            let compared = |volume| compare_volume(volume, &pool.name, &there, left(volume));
            findings.extend(wanted.iter().flat_map(compared));
            let section = format!("pool {:?}", pool.name);
            let known = &actual.pools[place];
            findings.extend(would_become(&section, "read_cache", known.read_cache, pool.read_cache));
            findings.extend(would_become(&section, "write_cache", known.write_cache, pool.write_cache));
            let is_new = |volume: &&VolumeDescription| there.iter().all(|known| known.name != volume.name);
            for volume in wanted.iter().filter(is_new) {
                let has_it = |other: &&PoolFacts| other.volumes.iter().any(|known| known.name == volume.name);
                if let Some(other) = facts.iter().find(has_it) {
                    let (volume, pool, other) = (volume.name.clone(), pool.name.clone(), other.name.clone());
                    let error = Mismatch::TwoVolumes { volume, pool, other };
                    findings.push(Finding::Refused(error.to_string()));
                }
            }
            let unmentioned =
                there.iter().filter(|there| wanted.iter().all(|wanted| wanted.name != there.name));
            findings
                .extend(unmentioned.map(|volume| Finding::Told(not_in_file(&volume.name, volume.sectors))));
        }
        findings.extend(self.class_differences(facts).into_iter().map(Finding::Told));
        self.compare_drives(facts, &mut findings);
        Ok(findings)
    }

    /// What this file says to no effect of pools that are, given what they are.
    pub fn without_effect(&self, facts: &[PoolFacts]) -> Vec<String> {
        // Facts that make no sense are told when the pool is opened.
        let Ok((actual, _)) = self.actual(facts) else { return Vec::new() };
        let same = |pool: &PoolDescription| actual.pools.iter().position(|other| other.name == pool.name);
        let pools = self.pools.iter().enumerate();
        pools
            .filter_map(|(number, pool)| Some(self.vain_fields(number, &actual, same(pool)?, facts)))
            .flatten()
            .chain(self.class_differences(facts))
            .collect()
    }

    /// Drives of another class than this file says.
    fn class_differences(&self, facts: &[PoolFacts]) -> Vec<String> {
        let differs = |wanted: &DriveDescription| {
            let known = facts.iter().flat_map(|pool| &pool.drives).find(|known| known.name == wanted.name)?;
            let (is, said) = (known.class?, wanted.class?);
            (is != said).then(|| {
                format!(
                    "drive {:?}: class is {is}, set when it was added, but the array file has {said}; \
                     correct the file",
                    wanted.name
                )
            })
        };
        self.drives.iter().filter_map(differs).collect()
    }

    /// Fields in which this file contradicts what was created, and what counts.
    /// Where it is right, and a drive that it names is `lost`, the drive is what is told.
    fn vain_fields(
        &self,
        number: usize,
        actual: &Description,
        place: usize,
        facts: &[PoolFacts],
    ) -> Vec<String> {
        let lost = lost_in(facts);
        let own = facts.iter().find(|pool| pool.name == self.pools[number].name);
        let (wanted, there) = (&self.pools[number], &actual.pools[place]);
        let mut texts = differences(wanted, there);
        let names = |of: &Description, places: &[usize]| -> Vec<String> {
            let mut names: Vec<String> = places.iter().map(|drive| of.drives[*drive].name.clone()).collect();
            names.sort();
            names
        };
        let log_drives = [names(self, &wanted.log_drives), names(actual, &there.log_drives)];
        if let [wanted_log, log] = &log_drives
            && !wanted_log.is_empty()
            && !log.is_empty()
            && wanted_log != log
        {
            let absent: Vec<&String> = wanted_log.iter().filter(|drive| !log.contains(drive)).collect();
            let remedy = match absent.iter().all(|drive| lost.contains(drive.as_str())) {
                true => WHERE_LOST,
                false => "it moves there once those are online and have space; otherwise correct the file",
            };
            texts.push(format!(
                "pool {:?}: the write log is on {}, but the array file has {}: {remedy}",
                wanted.name,
                log.join(", "),
                wanted_log.join(", ")
            ));
        }
        let cache_drives = names(self, &wanted.flash_cache.drives);
        let lacks = cache_drives.iter().any(|drive| lost.contains(drive.as_str()));
        texts.extend(flash_cache_differs(wanted, there, lacks));
        texts.extend(flash_cache_writes_in_vain(wanted, there));
        for group in wanted.groups.iter().filter(|group| !group.name.is_empty()) {
            for name in names(self, &group.drives) {
                let own = |other: &&GroupDescription| names(actual, &other.drives).contains(&name);
                let known = there.groups.iter().find(own).filter(|known| known.name != group.name);
                texts.extend(known.map(|known| {
                    format!(
                        "drive {name:?}: its group is {:?}, set when it was added, but the array file has \
                         {:?}; correct the file",
                        known.name, group.name
                    )
                }));
            }
        }
        for volume in self.volumes.iter().filter(|volume| volume.pool == number) {
            let is_it = |other: &&VolumeDescription| other.pool == place && other.name == volume.name;
            let known = actual.volumes.iter().find(is_it);
            let wanted_group = volume.group.as_ref().or(there.groups.first().map(|group| &group.name));
            if let Some(group) =
                known.and_then(|known| known.group.as_ref()).filter(|group| Some(*group) != wanted_group)
            {
                let wanted = wanted_group.map_or("", String::as_str);
                let (how, or) = match own.and_then(|own| own.leaves(wanted)) {
                    Some(how) => (format!(", which {how} the pool"), ""),
                    None => (String::new(), ", or migrate the volume (tier0 volume migrate)"),
                };
                texts.push(format!(
                    "volume {:?}: group is {group:?}, but the array file has {wanted:?}{how}; correct the file (\"tier0 config\" prints \
                     it as it is){or}",
                    volume.name,
                ));
            }
            if let Some(place) = volume.place.filter(|place| *place != VolumePlace::Home)
                && own.is_some_and(PoolFacts::has_lost_flash)
            {
                texts.push(format!(
                    "volume {:?}: place is {place} in the array file, but pool {:?} has no group of flash that stays, so the volume \
                     lies in its own group; remove the field from the file, or add a group of flash (tier0 pool add-group)",
                    volume.name, wanted.name
                ));
            }
            if let Some(known) = known.filter(|known| known.thin != volume.thin) {
                texts.push(format!(
                    "volume {:?}: thin is {}, fixed at creation, but the array file has {}; correct the file",
                    volume.name, known.thin, volume.thin
                ));
            }
        }
        texts
    }

    /// Whether a start finds what lies at `path`: the file names it, or the directory that it lies in.
    pub fn leads_to(&self, path: &Path) -> bool {
        self.drives
            .iter()
            .any(|wanted| wanted.path.as_deref().is_some_and(|named| plain(named) == plain(path)))
            || self
                .search
                .iter()
                .any(|directory| path.parent().is_some_and(|parent| plain(parent) == plain(directory)))
    }

    /// The pools of which a start would find no drive, or one alone, once those have left that are leaving; of each whether it
    /// is one.
    pub fn pools_left_unnamed<'a>(&self, facts: &'a [PoolFacts]) -> Vec<(&'a str, bool)> {
        let left = |pool: &'a PoolFacts| {
            let paths: Vec<&Path> = paths_of(pool, |drive| !drive.leaving).collect();
            let named = paths.iter().filter(|path| self.leads_to(path)).count();
            (paths.len() > named && named < 2).then_some((pool.name.as_str(), named == 1))
        };
        facts.iter().filter_map(left).collect()
    }

    /// Whether a start finds none of the drives of a pool that serve from somewhere and count.
    fn leads_to_none(&self, pool: &PoolFacts, counts: impl Fn(&DriveFacts) -> bool) -> bool {
        let mut paths = paths_of(pool, counts).peekable();
        paths.peek().is_some() && !paths.any(|path| self.leads_to(path))
    }

    /// Where the file has a drive, if that is not where it is.
    fn other_place(&self, drive: &DriveFacts) -> Option<&Path> {
        let named = self.drives.iter().find(|named| named.name == drive.name)?.path.as_deref()?;
        (plain(named) != plain(drive.path.as_deref()?)).then_some(named)
    }

    fn compare_drives(&self, facts: &[PoolFacts], findings: &mut Vec<Finding>) {
        for pool in facts.iter().filter(|pool| self.pools.iter().any(|own| own.name == pool.name)) {
            // What lies in the place of one that was replaced may be a copy.
            if !pool.drives.iter().any(|drive| drive.replaced) && self.leads_to_none(pool, |_| true) {
                findings.push(Finding::Refused(format!(
                    "no drive of pool {:?} is in the array file or in array.search, so a start would not \
                     find the pool; replace the file by the output of \"tier0 config\"",
                    pool.name
                )));
            }
        }
        for pool in facts {
            let is_cut = |drive: &&DriveFacts| drive.cut_short && drive.state == DriveState::Active;
            for drive in pool.drives.iter().filter(is_cut) {
                findings.push(Finding::Refused(format!(
                    "drive {:?} of pool {:?} has shrunk, and a start would not recognise it; restore its \
                     size, or replace it while the array is running (tier0 drive replace)",
                    drive.name, pool.name
                )));
            }
        }
        let mut told = |text: String| findings.push(Finding::Told(text));
        for pool in facts {
            for drive in &pool.drives {
                let mentioned = drive.path.as_deref().is_some_and(|path| self.leads_to(path));
                // What is not there is told by the check of the places.
                let is_there = !drive.deleted && drive.path.as_deref().is_none_or(Path::exists);
                // It has joined again, and its old place is kept until it is verified.
                let is_back =
                    |other: &DriveFacts| other.state == DriveState::Active && other.name == drive.name;
                if drive.state == DriveState::Lost && pool.drives.iter().any(is_back) {
                    continue;
                }
                if drive.state == DriveState::Lost && drive.group.is_none() && !pool.set_groups.is_empty() {
                    told(format!(
                        "drive {:?} of pool {:?} is lost, and its group has left the pool; remove it (tier0 drive remove)",
                        drive.name, pool.name
                    ));
                } else if drive.state == DriveState::Lost {
                    let lies_there =
                        |other: &DriveFacts| other.state == DriveState::Active && other.path == drive.path;
                    let return_it = match drive.path.is_some() && pool.drives.iter().any(lies_there) {
                        true => "",
                        false => "return it if it responds (tier0 drive rejoin), or ",
                    };
                    told(format!(
                        "drive {:?} of pool {:?} is lost; {return_it}replace or remove it",
                        drive.name, pool.name
                    ));
                } else if !is_there || (drive.moved_from.is_some() && !mentioned) {
                } else if let (Some(is), Some(named)) = (&drive.path, self.other_place(drive)) {
                    told(format!(
                        "drive {:?} is at {is:?}, but the array file has {named:?}; correct its path in the file",
                        drive.name
                    ));
                } else if !mentioned && drive.path.is_some() {
                    told(format!(
                        "drive {:?} of pool {:?} is not in the array file; \"tier0 config\" prints the file with it",
                        drive.name, pool.name
                    ));
                }
            }
        }
        for drive in &self.drives {
            let Some(path) = drive.path.as_deref() else { continue };
            let is =
                |known: &DriveFacts| known.path.as_deref().is_some_and(|known| plain(known) == plain(path));
            let is_known = facts.iter().flat_map(|pool| &pool.drives).any(|known| known.name == drive.name);
            if !path.exists() {
                if is_known {
                    continue;
                }
                told(format!(
                    "drive {:?}: {path:?} does not exist; correct the path, or remove the drive from the file",
                    drive.name
                ));
            } else if !is_known && !facts.iter().flat_map(|pool| &pool.drives).any(is) {
                told(format!(
                    "drive {:?} at {path:?} is in no pool; remove it from the file, or add it (tier0 drive \
                     add, with --force to overwrite its contents)",
                    drive.name
                ));
            }
        }
    }
}

/// Where the drives of a pool lie that serve from somewhere and count.
fn paths_of(pool: &PoolFacts, counts: impl Fn(&DriveFacts) -> bool) -> impl Iterator<Item = &Path> {
    let serving = pool.drives.iter().filter(move |drive| drive.state == DriveState::Active && counts(drive));
    serving.filter_map(|drive| drive.path.as_deref())
}

/// Fields of a pool in which the file contradicts what was created, and what counts.
/// The flash cache has another size than the file says.
/// What is told where the file's drives are lost that hold something else than it says.
const WHERE_LOST: &str =
    "the drive is lost; take it back (tier0 drive rejoin), or replace it (tier0 drive replace)";

/// The drives that are lost, and serve nowhere else under their name.
fn lost_in(facts: &[PoolFacts]) -> BTreeSet<&str> {
    let drives = || facts.iter().flat_map(|pool| &pool.drives);
    let (lost, others): (Vec<&DriveFacts>, Vec<&DriveFacts>) =
        drives().partition(|drive| drive.state == DriveState::Lost);
    let serves = |name: &str| others.iter().any(|other| other.name == name);
    lost.iter().map(|drive| drive.name.as_str()).filter(|name| !serves(name)).collect()
}

fn flash_cache_differs(
    wanted: &PoolDescription,
    actual: &PoolDescription,
    lacks_drives: bool,
) -> Option<String> {
    let (said, there) = (wanted.flash_cache.bytes?, actual.flash_cache.bytes.unwrap_or(ByteCount(0)));
    let step =
        actual.chunklet_sectors.unwrap_or(1) * SECTOR_BYTES * wanted.flash_cache.drives.len().max(1) as u64;
    (said.0.div_ceil(step) != there.0.div_ceil(step)).then(|| {
        let remedy = match lacks_drives {
            true => WHERE_LOST,
            false => {
                "it is resized at the next start, if its drives are online and have space; otherwise correct the file"
            }
        };
        format!(
            "pool {:?}: the flash cache has {there}, but the array file has {said}: {remedy}",
            wanted.name
        )
    })
}

fn flash_cache_writes_in_vain(wanted: &PoolDescription, actual: &PoolDescription) -> Option<String> {
    let has_one = |pool: &PoolDescription| pool.flash_cache.bytes.is_some_and(|bytes| bytes.0 > 0);
    // With several groups it limits what a tier writes.
    let has_use = has_one(wanted) || has_one(actual) || wanted.groups.len() > 1;
    wanted.flash_cache.writes_per_day.filter(|_| !has_use).map(|_| {
        format!(
            "pool {:?}: flash_cache_writes has no effect without a flash cache; add flash_cache = \"SIZE\", \
             or remove it",
            wanted.name
        )
    })
}

fn differences(wanted: &PoolDescription, actual: &PoolDescription) -> Vec<String> {
    let name = &wanted.name;
    let tell = |field: &str, wanted: &dyn Display, actual: &dyn Display| {
        format!(
            "pool {name:?}: {field} is {actual}, fixed at creation, but the array file has {wanted}; correct the file"
        )
    };
    let bytes = |sectors: u64| ByteCount(sectors * SECTOR_BYTES);
    // Whole chunklets are taken for the log, at least as many as were asked for.
    let chunklet = actual.chunklet_sectors.unwrap_or(1);
    let pieces = [
        ("chunklet", wanted.chunklet_sectors, actual.chunklet_sectors, 1),
        ("extent", wanted.extent_sectors, actual.extent_sectors, 1),
        ("log", wanted.log_sectors, actual.log_sectors, chunklet),
    ];
    let mut texts = Vec::new();
    for (field, wanted, actual, step) in pieces {
        if let (Some(wanted), Some(actual)) = (wanted, actual)
            && wanted != actual
            && wanted.next_multiple_of(step) != actual
        {
            texts.push(tell(field, &bytes(wanted), &bytes(actual)));
        }
    }
    // As many chunklets of more drives are another number of drives' worth, and of as few drives as a set has none can be
    // said.
    for wanted in &wanted.groups {
        let Some(actual) = actual.groups.iter().find(|actual| actual.name == wanted.name) else { continue };
        let can_be_said = actual.drives.len() > actual.raid.set_size;
        let comparable = wanted.drives.len() == actual.drives.len()
            || (can_be_said && wanted.spare_drives.min(actual.spare_drives) == 0);
        if comparable && wanted.spare_drives != actual.spare_drives {
            let field = match wanted.name.is_empty() {
                true => "spare_drives".to_owned(),
                false => format!("spare_drives of group {:?}", wanted.name),
            };
            texts.push(tell(&field, &wanted.spare_drives, &actual.spare_drives));
        }
    }
    if wanted.checksums != actual.checksums {
        texts.push(tell("checksums", &wanted.checksums, &actual.checksums));
    }
    if wanted.space.reserve != actual.space.reserve {
        texts.push(format!(
            "pool {name:?}: reserve is {} until the next start, then {} as in the array file",
            actual.space.reserve, wanted.space.reserve
        ));
    }
    texts
}

fn compare_volume(
    wanted: &VolumeDescription,
    pool: &str,
    there: &[VolumeDescription],
    has_left: bool,
) -> Vec<Finding> {
    let (name, size) = (&wanted.name, wanted.sectors.bytes());
    let Some(known) = there.iter().find(|known| known.name == *name) else {
        return vec![Finding::Told(match wanted.group.as_deref().filter(|_| has_left) {
            Some(group) => not_created(name, pool, group),
            None => format!("volume {name:?} ({size}) would be created in pool {pool:?}"),
        })];
    };
    let differs = (known.sectors != wanted.sectors)
        .then(|| Finding::Told(size_differs(name, known.sectors, wanted.sectors)));
    let section = format!("volume {name:?}");
    let write = would_become(&section, "write_cache", known.write_cache, wanted.write_cache);
    differs
        .into_iter()
        .chain(write)
        .chain(would_become(&section, "read_cache", known.read_cache, wanted.read_cache))
        .chain(would_become(&section, "place", known.place.or(Some(VolumePlace::Home)), wanted.place))
        .chain(compare_ceilings(&section, known.ceilings, wanted.ceilings))
        .chain(would_become(&section, "weight", known.weight.or(Some(WEIGHT_DEFAULT)), wanted.weight))
        .collect()
}

fn compare_ceilings(section: &str, known: CeilingsChange, wanted: CeilingsChange) -> Vec<Finding> {
    let fields = [
        ("iops_max", known.iops_max, wanted.iops_max),
        ("mbps_max", known.mbps_max, wanted.mbps_max),
        ("burst", known.burst_seconds, wanted.burst_seconds),
    ];
    let found = fields
        .map(|(field, known, wanted)| would_become(section, field, Some(known.unwrap_or_default()), wanted));
    found.into_iter().flatten().collect()
}

/// What a start would change of a field that the file may change.
fn would_become<T: Display + PartialEq>(
    section: &str,
    field: &str,
    known: Option<T>,
    wanted: Option<T>,
) -> Option<Finding> {
    let (before, wanted) = (known?, wanted?);
    (before != wanted).then(|| {
        Finding::Told(format!("{section}: {field} {before} would change to {wanted} at the next start"))
    })
}

/// A volume's size is not what the file says; it stays as it is.
pub fn size_differs(volume: &str, is: SectorCount, wanted: SectorCount) -> String {
    let remedy = match is < wanted {
        true => "grow the volume (tier0 volume resize), or correct the file",
        false => "correct the file",
    };
    format!("volume {volume:?} has {:#}, but the array file has {:#}; {remedy}", is.bytes(), wanted.bytes())
}

/// A volume of the file is not there and is not created: its group is leaving its pool, or has left it.
pub fn not_created(volume: &str, pool: &str, group: &str) -> String {
    format!(
        "volume {volume:?} is in the array file but not in pool {pool:?}, and its group {group:?} leaves the pool or has left it: it \
         is not created; take it out of the file, or give it another group"
    )
}

/// A volume is served that the file does not mention.
pub fn not_in_file(volume: &str, size: SectorCount) -> String {
    format!(
        "volume {volume:?} ({}) is not in the array file; \"tier0 config\" prints the file with it",
        size.bytes()
    )
}

/// The groups of a pool's sets: names and shapes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct KnownGroups {
    /// Those that it has, one without a name if it has only that.
    pub there: Vec<(String, RaidRecord)>,
    /// Those that have left it.
    pub gone: Vec<(String, RaidRecord)>,
}

impl KnownGroups {
    /// What the description says of the shape of a pool's sets must be what they are: by group, its name and shape. A pool may have
    /// more groups, which were added since, or lack some that have left it; one that the description does not name is the first.
    ///
    /// # Errors
    /// [`Mismatch::Changed`].
    pub fn check_same_shape(&self, pool: &PoolDescription) -> Result<(), Mismatch> {
        if pool.groups.iter().all(|group| self.is_there(group) || self.is_gone(group)) {
            return Ok(());
        }
        let words = |groups: &[(String, RaidRecord)]| {
            let of_group = |(name, raid): &(String, RaidRecord)| {
                let unit = SectorCount(u64::from(raid.stripe_unit_sectors)).bytes();
                let sets =
                    format!("{} sets of {} drives with stripe units of {unit}", raid.level, raid.set_size);
                if name.is_empty() { sets } else { format!("group {name:?}: {sets}") }
            };
            groups.iter().map(of_group).collect::<Vec<_>>().join(", ")
        };
        let wanted: Vec<(String, RaidRecord)> =
            pool.groups.iter().map(|group| (group.name.clone(), record_of(&group.raid))).collect();
        Err(Mismatch::Changed { pool: pool.name.clone(), fact: words(&self.there), wanted: words(&wanted) })
    }

    /// The groups that a description of a pool does not have, and those that have left the pool, each in a sentence.
    pub fn differences(&self, pool: &PoolDescription) -> Vec<String> {
        // The first is the one that is described without a name.
        let is_described = |(place, name): &(usize, &String)| {
            let names_it = |group: &GroupDescription| match group.name.is_empty() {
                true => *place == 0 && self.is_there(group),
                false => group.name == **name,
            };
            pool.groups.iter().any(names_it)
        };
        let all = self.there.iter().map(|(name, _)| name).enumerate();
        let missing = all.filter(|group| !is_described(group)).map(|(_, name)| {
            format!(
                "group {name:?} of pool {:?} is not in the array file; \"tier0 config\" prints the file with it",
                pool.name
            )
        });
        let gone = pool.groups.iter().filter(|group| !self.is_there(group) && self.is_gone(group));
        let left = gone.map(|group| match group.name.is_empty() {
            true => format!(
                "the sets that the array file describes for pool {:?} have left it; \"tier0 config\" prints the file without them",
                pool.name
            ),
            false => format!(
                "group {:?} of the array file has left pool {:?}; \"tier0 config\" prints the file without it",
                group.name, pool.name
            ),
        });
        missing.chain(left).collect()
    }

    fn is_there(&self, group: &GroupDescription) -> bool {
        let raid = record_of(&group.raid);
        match group.name.is_empty() {
            true => self.there.first().is_some_and(|(_, first)| *first == raid),
            false => self.there.iter().any(|(name, shape)| *name == group.name && *shape == raid),
        }
    }

    fn is_gone(&self, group: &GroupDescription) -> bool {
        let raid = record_of(&group.raid);
        let is_taken = self.there.iter().any(|(name, _)| *name == group.name);
        let is_it = |(name, shape): &(String, RaidRecord)| {
            *shape == raid && (group.name.is_empty() || *name == group.name)
        };
        !is_taken && self.gone.iter().any(is_it)
    }
}

/// The groups that have left a pool, with their shapes.
fn gone_groups(pool: &PoolFacts) -> impl Iterator<Item = (String, RaidRecord)> {
    pool.gone_groups.iter().map(|group| {
        let raid = RaidRecord {
            level: group.raid.clone(),
            set_size: group.set_size as u32,
            groups: group.groups as u32,
            stripe_unit_sectors: (group.stripe_unit_bytes / SECTOR_BYTES) as u32,
        };
        (group.name.clone(), raid)
    })
}

/// A path as the file system knows it.
pub fn plain(path: &Path) -> PathBuf {
    std::fs::canonicalize(path).unwrap_or_else(|_| path.to_owned())
}
