//! From the file's sections to a description: names resolved, shapes checked.

use std::collections::BTreeSet;
use std::ops::RangeInclusive;
use std::path::PathBuf;

use tier0_catalog::DriveSpec;
use tier0_policy::PolicyKind;
use tier0_pool::{
    Ceilings, CeilingsChange, DriveClass, GROUPS_MAX, Place as VolumePlace, SpaceRules, WEIGHT_MAX, is_weight,
};
use tier0_units::{ByteCount, Nanos, SECTOR_BYTES, SectorCount, SizeRule, WriteCache};
use toml::Spanned;

use super::access::check_access;
use super::error::Place;
use super::notes::notes;
use super::{
    ArraySection, Description, DescriptionError, DriveDescription, DriveSection, File, FlashCacheDescription,
    GroupDescription, ListenAddress, PAUSE_TIMEOUT, PoolDescription, PoolSection, VolumeDescription,
    VolumeSection, class,
};
use crate::names::quoted;
use crate::shape::{AskedShape, ShapeError};

/// Cores and thus shards an array may have.
const CORES_MAX: usize = 256;
/// Memory for slot tables and dirty pages that makes sense.
const MEMORY: SizeRule = SizeRule::within(ByteCount::mib(64), ByteCount(1 << 50));
/// Times that hosts may wait for a paused pool, seconds: at least what a drive's own patience takes, at most a day.
const PAUSE_SECONDS: RangeInclusive<u64> = 5..=86_400;
/// Fills of a pool of which the administrator is told.
const PERCENT: RangeInclusive<u8> = 1..=100;
/// Drives that one table may stand for.
const COUNT_MAX: u32 = 1024;
/// What a RAM drive may have; how much a pool needs of it depends on its chunklets.
const RAM: SizeRule = SizeRule::within(ByteCount::mib(1), ByteCount(u64::MAX));
/// Sizes of chunklets and extents that make sense.
const CHUNKLET: RangeInclusive<ByteCount> = ByteCount::mib(1)..=ByteCount::gib(16);
const EXTENT: RangeInclusive<ByteCount> = ByteCount::kib(64)..=ByteCount::mib(64);
/// Sizes of a write log that make sense.
const LOG: SizeRule =
    SizeRule { least: ByteCount::mib(1), most: ByteCount::gib(1024), unit: ByteCount::mib(1) };
/// How many times a day a flash cache may be written over.
const WRITES_PER_DAY: RangeInclusive<u32> = 1..=100_000;

/// Sizes that a volume can have: whole pages.
pub const VOLUME_SIZE: SizeRule = SizeRule::multiple_of(ByteCount::kib(4));

pub(super) fn check(file: File, place: &Place<'_>) -> Result<Description, DescriptionError> {
    check_name("array.name", &file.array.name, place)?;
    let cores = file.array.cores.as_ref().map(|cores| check_cores(cores, place)).transpose()?;
    let memory = file.array.memory.as_ref().map(|memory| check_memory(memory, place)).transpose()?;
    let mut drives = Vec::new();
    for section in &file.drives {
        expand_drive(section, &mut drives, place)?;
    }
    if drives.is_empty() {
        return Err(place.wrong(0..0, "there is no drive; add a [[drive]] table for each".into()));
    }
    if file.pools.is_empty() {
        return Err(
            place.wrong(0..0, "there is no pool; add a [[pool]] table with a name and a raid level".into())
        );
    }
    let pools =
        file.pools.iter().map(|pool| check_pool(pool, &drives, place)).collect::<Result<Vec<_>, _>>()?;
    check_distinct(file.pools.iter().map(|pool| &pool.name), "pool", place)?;
    check_shared_drives(&pools, &drives, &file.pools, place)?;
    let volumes = file
        .volumes
        .iter()
        .map(|volume| check_volume(volume, &pools, place))
        .collect::<Result<Vec<_>, _>>()?;
    check_distinct(file.volumes.iter().map(|volume| &volume.name), "volume", place)?;
    let listen = file.nbd.listen.iter().map(|address| {
        let parsed = ListenAddress::parse(address.get_ref(), file.nbd.allow_remote)
            .and_then(|address| address.resolved(|path| place.resolve(path)));
        parsed.map_err(|fact| place.wrong(address.span(), format!("nbd.listen: {fact}")))
    });
    let listen = listen.collect::<Result<_, _>>()?;
    let control = file.array.control.as_ref().map(|path| check_control(path, place)).transpose()?;
    let events = file.array.events.as_ref().map(|path| place.resolve(path));
    let witness = file.array.witness.as_ref().map(|path| place.resolve(path.get_ref()));
    let timeout = file.array.pause_timeout.as_ref();
    let pause_timeout =
        timeout.map(|seconds| check_pause_timeout(seconds, place)).transpose()?.unwrap_or(PAUSE_TIMEOUT);
    let warnings = notes(&file, &drives, &pools, &volumes);
    let nbd = &file.nbd;
    let [mode, owner, group] = [&nbd.socket_mode, &nbd.socket_owner, &nbd.socket_group].map(Option::as_ref);
    let socket_access = check_access("nbd.socket", mode, owner, group, place)?;
    let ArraySection { name, keep_awake, search, control_mode, control_owner, control_group, .. } =
        file.array;
    let [mode, owner, group] = [&control_mode, &control_owner, &control_group].map(Option::as_ref);
    let control_access = check_access("array.control", mode, owner, group, place)?;
    let (name, keep_awake) = (name.into_inner(), keep_awake.unwrap_or(false));
    let search = search.iter().map(|directory| place.resolve(directory)).collect();
    Ok(Description {
        name,
        cores,
        memory,
        keep_awake,
        pause_timeout,
        witness,
        search,
        drives,
        pools,
        volumes,
        listen,
        socket_access,
        control,
        control_access,
        events,
        warnings,
    })
}

/// Whether a text can be a name. Names go into messages, paths of sockets and NBD exports: plain characters only.
pub fn is_name(text: &str) -> bool {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_.".contains(c);
    (1..=64).contains(&text.len()) && text.chars().all(plain) && text != "." && text != ".."
}

fn check_name(field: &str, name: &Spanned<String>, place: &Place<'_>) -> Result<(), DescriptionError> {
    if is_name(name.get_ref()) {
        return Ok(());
    }
    let text = name.get_ref();
    Err(place.wrong(
        name.span(),
        format!("{field}: {text:?} is no name; use 1 to 64 letters, digits, '-', '_' or '.'"),
    ))
}

fn check_cores(cores: &Spanned<usize>, place: &Place<'_>) -> Result<usize, DescriptionError> {
    if (1..=CORES_MAX).contains(cores.get_ref()) {
        return Ok(*cores.get_ref());
    }
    Err(place.wrong(
        cores.span(),
        format!("array.cores: {} is out of range; use 1 to {CORES_MAX}", cores.get_ref()),
    ))
}

fn check_memory(memory: &Spanned<ByteCount>, place: &Place<'_>) -> Result<ByteCount, DescriptionError> {
    check_bytes("array.memory", memory, MEMORY, place)
}

/// A size that has to follow a rule.
fn check_bytes(
    field: &str,
    size: &Spanned<ByteCount>,
    rule: SizeRule,
    place: &Place<'_>,
) -> Result<ByteCount, DescriptionError> {
    let checked = rule.check(*size.get_ref());
    checked.map_err(|fact| place.wrong(size.span(), format!("{field}: {fact}")))?;
    Ok(*size.get_ref())
}

fn check_pause_timeout(seconds: &Spanned<u64>, place: &Place<'_>) -> Result<Nanos, DescriptionError> {
    if PAUSE_SECONDS.contains(seconds.get_ref()) {
        return Ok(Nanos::from_secs(*seconds.get_ref()));
    }
    let (least, most) = (PAUSE_SECONDS.start(), PAUSE_SECONDS.end());
    Err(place.wrong(
        seconds.span(),
        format!("array.pause_timeout: {} s is out of range; use {least} to {most}", seconds.get_ref()),
    ))
}

fn check_control(path: &Spanned<String>, place: &Place<'_>) -> Result<PathBuf, DescriptionError> {
    let parsed = ListenAddress::parse(&format!("unix:{}", path.get_ref()), false);
    match parsed.and_then(|address| address.resolved(|path| place.resolve(path))) {
        Ok(_) => Ok(place.resolve(path.get_ref())),
        Err(fact) => Err(place.wrong(path.span(), format!("array.control: {fact}"))),
    }
}

fn check_distinct<'a>(
    names: impl Iterator<Item = &'a Spanned<String>>,
    what: &str,
    place: &Place<'_>,
) -> Result<(), DescriptionError> {
    let mut seen = BTreeSet::new();
    for name in names {
        if !seen.insert(name.get_ref()) {
            let text = format!("{what}.name: there are two of the name {:?}; rename one", name.get_ref());
            return Err(place.wrong(name.span(), text));
        }
    }
    Ok(())
}

fn expand_drive(
    section: &DriveSection,
    drives: &mut Vec<DriveDescription>,
    place: &Place<'_>,
) -> Result<(), DescriptionError> {
    let wrong = |span, text: String| Err(place.wrong(span, text));
    let count = section.count.as_ref().map_or(1, |count| *count.get_ref());
    if !(1..=COUNT_MAX).contains(&count) {
        return wrong(
            section.name.span(),
            format!("drive.count: {count} is out of range; use 1 to {COUNT_MAX}"),
        );
    }
    let numbered = |text: &Spanned<String>| text.get_ref().contains("{n}");
    if count > 1 && !(numbered(&section.name) && section.path.as_ref().is_none_or(numbered)) {
        let text = "drive.count: several drives need \"{n}\" in name and path, which stands for 0, 1, 2 …";
        return wrong(section.name.span(), text.into());
    }
    if section.path.is_none() && section.ram.is_none() && section.model.is_none() {
        let text = format!("drive {:?} has none of path, ram and model; give it one", section.name.get_ref());
        return wrong(section.name.span(), text);
    }
    if section.path.is_some() && section.ram.is_some() {
        let text = format!("drive {:?} has both path and ram; keep one", section.name.get_ref());
        return wrong(section.name.span(), text);
    }
    if let Some(ram) = &section.ram {
        check_bytes("drive.ram", ram, RAM, place)?;
    }
    if let (Some(size), None) = (&section.size, &section.path) {
        return wrong(
            size.span(),
            "drive.size: only a drive with a path has a size to create; use ram or path".into(),
        );
    }
    let known = section.model.as_ref().map(|model| {
        let known = place.catalog.drive_by_reference(model.get_ref());
        known.map_err(|unknown| place.wrong(model.span(), format!("drive.model: {unknown}")))
    });
    let class_of_model = known.transpose()?.map(|known| class::of_spec(&known));
    for n in 0..count {
        let fill = |text: &Spanned<String>| text.get_ref().replace("{n}", &n.to_string());
        let name = fill(&section.name);
        check_name("drive.name", &Spanned::new(section.name.span(), name.clone()), place)?;
        if drives.iter().any(|drive| drive.name == name) {
            return wrong(
                section.name.span(),
                format!("drive.name: there are two of the name {name:?}; rename one"),
            );
        }
        let class = section.class.as_ref().map(|class| {
            class.get_ref().parse().map_err(|text| place.wrong(class.span(), format!("drive.class: {text}")))
        });
        let said = class.transpose()?;
        let model = section.model.as_ref().map(|model| model.get_ref().clone());
        // Those who have the description later know the built-in catalogue alone.
        let class = said.or(class_of_model.filter(|class| {
            model.as_deref().and_then(class::of_model).is_none_or(|built_in| built_in != *class)
        }));
        let path = section.path.as_ref().map(|path| place.resolve(fill(path)));
        if let Some(other) = drives.iter().find(|drive| drive.path.is_some() && drive.path == path) {
            let (span, other) = (section.name.span(), &other.name);
            let text = format!("drive.path: {name:?} and {other:?} have the same path; give each its own");
            return wrong(span, text);
        }
        drives.push(DriveDescription {
            name,
            path,
            size: section.size.as_ref().map(|size| *size.get_ref()),
            ram: section.ram.as_ref().map(|ram| *ram.get_ref()),
            model,
            class,
        });
    }
    Ok(())
}

fn check_pool(
    section: &PoolSection,
    drives: &[DriveDescription],
    place: &Place<'_>,
) -> Result<PoolDescription, DescriptionError> {
    check_name("pool.name", &section.name, place)?;
    let groups = match section.set_groups.is_empty() {
        true => vec![single_group(section, drives, place)?],
        false => named_groups(section, drives, place)?,
    };
    let members: Vec<usize> = groups.iter().flat_map(|group| group.drives.iter().copied()).collect();
    let none = section.log.as_ref().filter(|size| size.get_ref().0 == 0);
    let is_real = |drive: &usize| drives[*drive].path.is_some() || drives[*drive].ram.is_some();
    if let Some(none) = none.filter(|_| members.iter().any(is_real)) {
        let text =
            "pool.log: only drives in virtual time do without a write log; take it out, or give a size"
                .into();
        return Err(place.wrong(none.span(), text));
    }
    let log = none.is_none() && !members.iter().all(|drive| drives[*drive].ram.is_some());
    let log_drives = log_drives(section, drives, place)?;
    let cache = check_write_caches(section, drives, &members, &log_drives, place)?;
    Ok(PoolDescription {
        name: section.name.get_ref().clone(),
        drives: members,
        chunklet_sectors: check_piece("pool.chunklet", section.chunklet.as_ref(), CHUNKLET, &groups, place)?,
        extent_sectors: check_piece("pool.extent", section.extent.as_ref(), EXTENT, &groups, place)?,
        groups,
        // What a crash tears without a log would be taken for rot.
        checksums: log && section.checksums.unwrap_or(true),
        log,
        log_sectors: match &section.log {
            _ if none.is_some() => None,
            Some(size) => Some(check_log(size, cache, place)?),
            None => cache,
        },
        log_drives,
        space: check_space(section, place)?,
        read_cache: section.read_cache,
        write_cache: section.write_cache,
        read_cache_policy: read_cache_policy(section, place)?,
        flash_cache: flash_cache(section, drives, log, place)?,
    })
}

/// What a pool or a group says of the shape of its sets.
struct ShapeSection<'a> {
    /// How the fields are called in messages: "pool", "pool.group".
    field: &'a str,
    /// Whose they are: "pool \"p\"", "group \"fast\"".
    whose: String,
    raid: &'a Spanned<String>,
    set_size: Option<&'a Spanned<usize>>,
    groups: Option<&'a Spanned<usize>>,
    stripe_unit: Option<&'a Spanned<ByteCount>>,
    spare_drives: Option<&'a Spanned<u32>>,
}

/// The group of a pool that says of itself what its sets are.
fn single_group(
    section: &PoolSection,
    drives: &[DriveDescription],
    place: &Place<'_>,
) -> Result<GroupDescription, DescriptionError> {
    let Some(raid) = &section.raid else {
        let text = format!(
            "pool {:?} does not say its level; add raid = \"raid10\", or groups of sets ([[pool.group]])",
            section.name.get_ref()
        );
        return Err(place.wrong(section.name.span(), text));
    };
    let shape = ShapeSection {
        field: "pool",
        whose: format!("pool {:?}", section.name.get_ref()),
        raid,
        set_size: section.set_size.as_ref(),
        groups: section.groups.as_ref(),
        stripe_unit: section.stripe_unit.as_ref(),
        spare_drives: section.spare_drives.as_ref(),
    };
    check_shape(&shape, String::new(), pool_drives(section, drives, place)?, place)
}

/// The groups of a pool that has them; what they say the pool does not say too.
fn named_groups(
    section: &PoolSection,
    drives: &[DriveDescription],
    place: &Place<'_>,
) -> Result<Vec<GroupDescription>, DescriptionError> {
    let of_pool = [
        ("drives", section.drives.as_ref().and_then(|drives| drives.first()).map(Spanned::span)),
        ("raid", section.raid.as_ref().map(Spanned::span)),
        ("set_size", section.set_size.as_ref().map(Spanned::span)),
        ("groups", section.groups.as_ref().map(Spanned::span)),
        ("stripe_unit", section.stripe_unit.as_ref().map(Spanned::span)),
        ("spare_drives", section.spare_drives.as_ref().map(Spanned::span)),
    ];
    if let Some((field, span)) = of_pool.into_iter().find_map(|(field, span)| Some((field, span?))) {
        let text = format!("pool.{field}: each [[pool.group]] of this pool says its own; take it out here");
        return Err(place.wrong(span, text));
    }
    check_distinct(section.set_groups.iter().map(|group| &group.name), "pool.group", place)?;
    if section.set_groups.len() > GROUPS_MAX {
        let text = format!("pool.group: a pool has at most {GROUPS_MAX} groups; use another pool");
        return Err(place.wrong(section.name.span(), text));
    }
    let mut groups: Vec<GroupDescription> = Vec::new();
    for group in &section.set_groups {
        check_name("pool.group.name", &group.name, place)?;
        let members = matching_drives("pool.group.drives", &group.drives, drives, place)?;
        let taken = groups.iter().find_map(|other| {
            let both = members.iter().find(|drive| other.drives.contains(drive))?;
            Some((&other.name, &drives[*both].name))
        });
        if let Some((other, drive)) = taken {
            let text = format!(
                "pool.group.drives: drive {drive:?} is in the groups {other:?} and {:?}; a drive belongs to one",
                group.name.get_ref()
            );
            return Err(place.wrong(group.name.span(), text));
        }
        let shape = ShapeSection {
            field: "pool.group",
            whose: format!("group {:?} of pool {:?}", group.name.get_ref(), section.name.get_ref()),
            raid: &group.raid,
            set_size: group.set_size.as_ref(),
            groups: group.groups.as_ref(),
            stripe_unit: group.stripe_unit.as_ref(),
            spare_drives: group.spare_drives.as_ref(),
        };
        groups.push(check_shape(&shape, group.name.get_ref().clone(), members, place)?);
    }
    Ok(groups)
}

fn check_shape(
    shape: &ShapeSection<'_>,
    name: String,
    members: Vec<usize>,
    place: &Place<'_>,
) -> Result<GroupDescription, DescriptionError> {
    let ShapeSection { field, whose, raid: named, .. } = shape;
    let asked = AskedShape {
        raid: named.get_ref(),
        set_size: shape.set_size.map(|size| *size.get_ref()),
        raid50_groups: shape.groups.map(|groups| *groups.get_ref()),
        stripe_unit: shape.stripe_unit.map(|unit| *unit.get_ref()),
        spare_drives: shape.spare_drives.map(|spare| *spare.get_ref()),
    };
    let (raid, spare_drives) = asked.of_drives(members.len()).map_err(|error| {
        let text = match &error {
            ShapeError::Level(_) | ShapeError::Layout(_) => format!("{field}.raid: {error}"),
            ShapeError::FewDrives { .. } => format!("{whose}: {error}"),
            ShapeError::FewSpares { .. } => format!("{field}.spare_drives: {error}"),
        };
        place.wrong(named.span(), text)
    })?;
    Ok(GroupDescription { name, drives: members, raid, spare_drives })
}

fn check_space(section: &PoolSection, place: &Place<'_>) -> Result<SpaceRules, DescriptionError> {
    let mut rules = SpaceRules::default();
    if let Some(warn_at) = &section.warn_at {
        rules.warn_at = warn_at.iter().map(|percent| *percent.get_ref()).collect();
        let rising = rules.warn_at.windows(2).all(|pair| pair[0] < pair[1]);
        if !rising || rules.warn_at.iter().any(|percent| !PERCENT.contains(percent)) {
            let span = warn_at.first().map_or_else(|| section.name.span(), Spanned::span);
            let text = "pool.warn_at: use rising percents from 1 to 100, as in [80, 90, 95]".to_owned();
            return Err(place.wrong(span, text));
        }
    }
    if let Some(reserve) = &section.reserve {
        let read = reserve.get_ref().parse();
        rules.reserve = read.map_err(|fact| place.wrong(reserve.span(), format!("pool.reserve: {fact}")))?;
    }
    Ok(rules)
}

/// Modelled write caches hold a pool's log and nothing else: the sectors of the smallest, if the log lies on any.
fn check_write_caches(
    section: &PoolSection,
    drives: &[DriveDescription],
    members: &[usize],
    log_drives: &[usize],
    place: &Place<'_>,
) -> Result<Option<u64>, DescriptionError> {
    let cache = |drive: &usize| match place.catalog.drive_by_reference(drives[*drive].model.as_deref()?) {
        Ok(spec @ DriveSpec::Nvram(_)) => Some(spec.capacity().0),
        _ => None,
    };
    if let Some(drive) = members.iter().find(|drive| cache(drive).is_some()) {
        let text = format!(
            "pool.drives: drive {:?} is a write cache, which holds a write log and nothing else; name it in log_drives",
            drives[*drive].name
        );
        return Err(place.wrong(section.name.span(), text));
    }
    Ok(log_drives.iter().filter_map(cache).min())
}

/// The sectors of the log; `cache` are those of the write cache that it lies on.
fn check_log(
    size: &Spanned<ByteCount>,
    cache: Option<u64>,
    place: &Place<'_>,
) -> Result<u64, DescriptionError> {
    let bytes = *size.get_ref();
    if let Some(cache) = cache.filter(|cache| bytes.0 / SECTOR_BYTES > *cache) {
        let cache = SectorCount(cache).bytes();
        let text = format!(
            "pool.log: {bytes:#} exceeds the write cache that the log lies on; use at most {cache:#}"
        );
        return Err(place.wrong(size.span(), text));
    }
    check_bytes("pool.log", size, LOG, place).map(|bytes| bytes.0 / SECTOR_BYTES)
}

/// The drives that the log is kept on: two, or up to three copies.
fn log_drives(
    section: &PoolSection,
    drives: &[DriveDescription],
    place: &Place<'_>,
) -> Result<Vec<usize>, DescriptionError> {
    let Some(patterns) = &section.log_drives else { return Ok(Vec::new()) };
    let found = matching_drives("pool.log_drives", patterns, drives, place)?;
    if (1..=3).contains(&found.len()) {
        return Ok(found);
    }
    let text = format!("pool.log_drives: {} drives are too many; name two, or three", found.len());
    Err(place.wrong(section.name.span(), text))
}

fn read_cache_policy(
    section: &PoolSection,
    place: &Place<'_>,
) -> Result<Option<PolicyKind>, DescriptionError> {
    let Some(policy) = &section.read_cache_policy else { return Ok(None) };
    let known = policy.get_ref().parse();
    known.map(Some).map_err(|fact| place.wrong(policy.span(), format!("pool.read_cache_policy: {fact}")))
}

/// The flash read cache, which needs drives that last.
fn flash_cache(
    section: &PoolSection,
    drives: &[DriveDescription],
    log: bool,
    place: &Place<'_>,
) -> Result<FlashCacheDescription, DescriptionError> {
    let found = flash_cache_drives(section, drives, place)?;
    if let Some(size) = section.flash_cache.as_ref().filter(|size| size.get_ref().0 > 0 && !log) {
        let text = "pool.flash_cache: a pool without a write log has none; take it out".to_owned();
        return Err(place.wrong(size.span(), text));
    }
    if section.flash_cache.is_none() && !found.is_empty() {
        let text = "pool.flash_cache_drives: without flash_cache = \"SIZE\" they hold nothing; add it, or take them out";
        return Err(place.wrong(section.name.span(), text.to_owned()));
    }
    if let Some(drive) = found.iter().find(|drive| drives[**drive].class == Some(DriveClass::Disk)) {
        let text = format!(
            "pool.flash_cache_drives: drive {:?} is a disk, from which reads are not faster; name flash drives",
            drives[*drive].name
        );
        return Err(place.wrong(section.name.span(), text));
    }
    if let Some(writes) =
        section.flash_cache_writes.as_ref().filter(|writes| !WRITES_PER_DAY.contains(writes.get_ref()))
    {
        let text = format!(
            "pool.flash_cache_writes: it can be written over {} to {} times a day, and not {}",
            WRITES_PER_DAY.start(),
            WRITES_PER_DAY.end(),
            writes.get_ref()
        );
        return Err(place.wrong(writes.span(), text));
    }
    Ok(FlashCacheDescription {
        bytes: section.flash_cache.as_ref().map(|size| *size.get_ref()),
        drives: found,
        writes_per_day: section.flash_cache_writes.as_ref().map(|writes| *writes.get_ref()),
    })
}

fn flash_cache_drives(
    section: &PoolSection,
    drives: &[DriveDescription],
    place: &Place<'_>,
) -> Result<Vec<usize>, DescriptionError> {
    let Some(patterns) = &section.flash_cache_drives else { return Ok(Vec::new()) };
    matching_drives("pool.flash_cache_drives", patterns, drives, place)
}

/// The drives of a pool's sets: those it names, or all that hold neither its log alone nor its flash cache.
fn pool_drives(
    section: &PoolSection,
    drives: &[DriveDescription],
    place: &Place<'_>,
) -> Result<Vec<usize>, DescriptionError> {
    match &section.drives {
        Some(patterns) => matching_drives("pool.drives", patterns, drives, place),
        None => {
            let logs = log_drives(section, drives, place)?;
            let caches = flash_cache_drives(section, drives, place)?;
            Ok((0..drives.len()).filter(|drive| !logs.contains(drive) && !caches.contains(drive)).collect())
        }
    }
}

fn matching_drives(
    field: &str,
    patterns: &[Spanned<String>],
    drives: &[DriveDescription],
    place: &Place<'_>,
) -> Result<Vec<usize>, DescriptionError> {
    let mut members = Vec::new();
    for pattern in patterns {
        let matches = |drive: &DriveDescription| match pattern.get_ref().split_once('*') {
            None => drive.name == *pattern.get_ref(),
            Some((head, tail)) => {
                drive.name.len() >= head.len() + tail.len()
                    && drive.name.starts_with(head)
                    && drive.name.ends_with(tail)
            }
        };
        let found: Vec<usize> = (0..drives.len()).filter(|i| matches(&drives[*i])).collect();
        if found.is_empty() {
            let text = format!("{field}: no drive is called {:?}; name a [[drive]]", pattern.get_ref());
            return Err(place.wrong(pattern.span(), text));
        }
        members.extend(found.into_iter().filter(|i| !members.contains(i)).collect::<Vec<_>>());
    }
    Ok(members)
}

/// A chunklet or an extent holds whole stripe units.
fn check_piece(
    field: &str,
    size: Option<&Spanned<ByteCount>>,
    range: RangeInclusive<ByteCount>,
    groups: &[GroupDescription],
    place: &Place<'_>,
) -> Result<Option<u64>, DescriptionError> {
    let Some(size) = size else { return Ok(None) };
    // Stripe units are powers of two.
    let unit = groups.iter().map(|group| group.raid.stripe_unit.bytes()).max().unwrap_or(ByteCount(1));
    // A stripe unit may be larger than the smallest piece.
    let least = (*range.start()).max(unit);
    let checked = check_bytes(field, size, SizeRule { least, most: *range.end(), unit }, place);
    Ok(Some(checked?.0 / SECTOR_BYTES))
}

fn check_shared_drives(
    pools: &[PoolDescription],
    drives: &[DriveDescription],
    sections: &[PoolSection],
    place: &Place<'_>,
) -> Result<(), DescriptionError> {
    for (i, drive) in drives.iter().enumerate() {
        let mut owners = pools.iter().zip(sections).filter(|(pool, _)| pool.uses(i));
        if let (Some((first, _)), Some((second, section))) = (owners.next(), owners.next()) {
            let text = format!(
                "pool.drives: drive {:?} is in the pools {:?} and {:?}; a drive belongs to one",
                drive.name, first.name, second.name
            );
            return Err(place.wrong(section.name.span(), text));
        }
    }
    Ok(())
}

/// The group of a volume is one of its pool's.
fn volume_group(
    group: &Spanned<String>,
    pool: &PoolDescription,
    place: &Place<'_>,
) -> Result<String, DescriptionError> {
    let (name, known) = (group.get_ref(), pool.groups.iter().map(|known| known.name.as_str()));
    if known.clone().any(|known| !known.is_empty() && known == name) {
        return Ok(name.clone());
    }
    let text = match pool.groups[0].name.is_empty() {
        true => format!("volume.group: pool {:?} has no groups with names; take it out", pool.name),
        false => {
            format!("volume.group: pool {:?} has no group {name:?}; it has {}", pool.name, quoted(known))
        }
    };
    Err(place.wrong(group.span(), text))
}

fn check_volume(
    section: &VolumeSection,
    pools: &[PoolDescription],
    place: &Place<'_>,
) -> Result<VolumeDescription, DescriptionError> {
    check_name("volume.name", &section.name, place)?;
    let pool = match &section.pool {
        Some(name) => pools.iter().position(|pool| pool.name == *name.get_ref()).ok_or_else(|| {
            place.wrong(
                name.span(),
                format!("volume.pool: there is no pool {:?}; name a [[pool]]", name.get_ref()),
            )
        })?,
        None if pools.len() == 1 => 0,
        None => {
            let text = format!("volume {:?} does not say its pool; add pool = \"…\"", section.name.get_ref());
            return Err(place.wrong(section.name.span(), text));
        }
    };
    let size = check_bytes("volume.size", &section.size, VOLUME_SIZE, place)?;
    let write_cache = section.write_cache.as_ref().map(|mode| {
        mode.get_ref()
            .parse::<WriteCache>()
            .map_err(|unknown| place.wrong(mode.span(), format!("volume.write_cache: {unknown}")))
    });
    let volume_place = section.place.as_ref().map(|named| {
        named
            .get_ref()
            .parse::<VolumePlace>()
            .map_err(|unknown| place.wrong(named.span(), format!("volume.place: {unknown}")))
    });
    Ok(VolumeDescription {
        name: section.name.get_ref().clone(),
        pool,
        sectors: SectorCount::in_bytes(size),
        thin: section.thin,
        write_cache: write_cache.transpose()?,
        read_cache: section.read_cache,
        place: volume_place.transpose()?,
        group: section.group.as_ref().map(|group| volume_group(group, &pools[pool], place)).transpose()?,
        ceilings: volume_ceilings(section, place)?,
        weight: volume_weight(section, place)?,
    })
}

/// What a volume gets in comparison with others.
fn volume_weight(section: &VolumeSection, place: &Place<'_>) -> Result<Option<u32>, DescriptionError> {
    match &section.weight {
        Some(weight) if !is_weight(*weight.get_ref()) => {
            let text = format!("volume.weight: {} is no weight; use 1 to {WEIGHT_MAX}", weight.get_ref());
            Err(place.wrong(weight.span(), text))
        }
        weight => Ok(weight.as_ref().map(|weight| *weight.get_ref())),
    }
}

/// What hosts may ask of a volume in a second.
fn volume_ceilings(section: &VolumeSection, place: &Place<'_>) -> Result<CeilingsChange, DescriptionError> {
    let check = |field: &str, value: &Option<Spanned<u32>>, most: u32| match value {
        Some(value) if *value.get_ref() > most => {
            let text =
                format!("volume.{field}: {} is too much; use 1 to {most}, or 0 for none", value.get_ref());
            Err(place.wrong(value.span(), text))
        }
        value => Ok(value.as_ref().map(|value| *value.get_ref())),
    };
    let most = Ceilings::MOST;
    Ok(CeilingsChange {
        iops_max: check("iops_max", &section.iops_max, most.iops_max)?,
        mbps_max: check("mbps_max", &section.mbps_max, most.mbps_max)?,
        burst_seconds: check("burst", &section.burst, most.burst_seconds)?,
    })
}
