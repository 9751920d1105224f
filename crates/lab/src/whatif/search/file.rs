//! The form of `[search]` in a file of alternatives.

use serde::Deserialize;
use tier0_catalog::{Catalog, DriveSpec};
use tier0_raid::layout::{Layout, RaidConfig, RaidLevel};
use tier0_units::{ByteCount, SectorCount};
use tier0_workload::spec::parse_duration;
use toml::{Table, Value};

use super::candidate::{DrivePlace, named};
use super::{Candidate, DriveSearch};
use crate::case::Case;

/// How full the space may be where nothing is said: the upper end of the rule of thumb of 60 to 70 %.
const FILL_PERCENT: f64 = 70.0;
/// The most drives that are tried where nothing is said, and that may be said.
const MOST: u32 = 96;
const MOST_MAX: u32 = 960;
/// The most candidates.
const CANDIDATES_MAX: usize = 32;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Section {
    tps: f64,
    response: String,
    drives: Option<String>,
    fill: Option<f64>,
    candidate: Vec<CandidateSection>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct CandidateSection {
    model: String,
    raid: String,
    set_size: Option<u32>,
    price: Option<f64>,
    most: Option<u32>,
}

/// The search of a file whose base is this; the error is the fact and the remedy.
pub(in crate::whatif) fn search_of(search: Value, base: &Table, case: &Case) -> Result<DriveSearch, String> {
    let section: Section = search.try_into().map_err(|error: toml::de::Error| {
        format!("search: {}; correct it (docs/whatif.md)", error.to_string().trim().replace('\n', ", "))
    })?;
    if !(section.tps > 0.0 && section.tps.is_finite()) {
        return Err("search.tps is out of range; give the transactions per second that are needed".into());
    }
    let arrives = case.database.rate.map(|rate| (rate, "database.rate"));
    let think = case.database.think.as_secs_f64();
    let thinks =
        (think > 0.0).then(|| (f64::from(case.database.users) / think, "database.users ÷ database.think"));
    if let Some((most, field)) = arrives.or(thinks).filter(|(most, _)| section.tps > *most) {
        return Err(format!(
            "search.tps: {} transactions per second are more than {field} = {most:.1} allows on any drives; lower it, or raise that",
            section.tps
        ));
    }
    let response = parse_duration(&section.response).map_err(|error| format!("search.response: {error}"))?;
    let fill_percent = section.fill.unwrap_or(FILL_PERCENT);
    if !(1.0..=90.0).contains(&fill_percent) {
        return Err("search.fill is out of range; use 1 to 90 percent (60 to 70 is usual)".into());
    }
    if section.candidate.is_empty() || section.candidate.len() > CANDIDATES_MAX {
        return Err(format!("search: give 1 to {CANDIDATES_MAX} entries [[search.candidate]]"));
    }
    let priced = section.candidate.iter().filter(|candidate| candidate.price.is_some()).count();
    if priced != 0 && priced != section.candidate.len() {
        return Err("search: only some candidates have a price; give all of them one, or none".into());
    }
    let place = place_of(section.drives.as_deref(), base, case)?;
    let candidates = section.candidate.iter().map(|given| candidate(given, &place, case, fill_percent));
    let candidates = candidates.collect::<Result<Vec<Candidate>, String>>()?;
    Ok(DriveSearch { tps: section.tps, response, fill_percent, candidates })
}

/// Where the base has the drives of this name, or its only ones.
fn place_of(drives: Option<&str>, base: &Table, case: &Case) -> Result<DrivePlace, String> {
    let entries = base.get("system").and_then(|system| system.get("drive")).and_then(Value::as_array);
    let names: Vec<&str> =
        entries.into_iter().flatten().filter_map(|entry| named(entry.as_table()?)).collect();
    let name = match (drives, &names[..]) {
        (Some(name), _) if names.contains(&name) => name,
        (None, [only]) => only,
        (Some(name), _) => {
            return Err(format!(
                "search.drives: there are no drives {name:?}; use one of {}",
                names.join(", ")
            ));
        }
        (None, _) => {
            return Err(format!(
                "search.drives is missing; name the drives to replace, one of {}",
                names.join(", ")
            ));
        }
    };
    let Some((stem, end)) = name.split_once("{n}") else {
        return Err(format!(
            "search.drives: {name:?} is a single drive; name it \"{name}{{n}}\" with count = 1"
        ));
    };
    let is_one = |drive: &usize| {
        let name = &case.system.drives[*drive].name;
        let number = name.strip_prefix(stem).and_then(|rest| rest.strip_suffix(end));
        number.is_some_and(|number| !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit()))
    };
    let groups = (0..).zip(&case.system.pools);
    let mut groups = groups
        .flat_map(|(pool, pools)| (0..).zip(&pools.groups).map(move |(group, sets)| (pool, group, sets)));
    match groups.find(|(_, _, sets)| sets.drives.iter().any(is_one)) {
        Some((pool, group, _)) => Ok(DrivePlace { base: base.clone(), drives: name.to_owned(), pool, group }),
        None => {
            Err(format!("search.drives: no pool has data on {name:?}; name drives of a pool or of a group"))
        }
    }
}

/// Drives of a set where nothing is said: the fewest that are usual.
fn set_size_of(level: RaidLevel) -> u32 {
    match level {
        RaidLevel::Raid0 => 1,
        RaidLevel::Raid1 | RaidLevel::Raid10 => 2,
        RaidLevel::Raid5 => 5,
        RaidLevel::Raid50 => 10,
        RaidLevel::Raid6 => 8,
    }
}

fn candidate(
    given: &CandidateSection,
    place: &DrivePlace,
    case: &Case,
    fill_percent: f64,
) -> Result<Candidate, String> {
    let wrong = |fact: String| format!("search.candidate {:?}: {fact}", given.model);
    let drive =
        Catalog::built_in().drive_by_reference(&given.model).map_err(|error| wrong(error.to_string()))?;
    if matches!(drive, DriveSpec::Nvram(_)) {
        return Err(wrong("holds a write log and no data; choose a disk or an SSD".into()));
    }
    if given.price.is_some_and(|price| !(price >= 0.0 && price.is_finite())) {
        return Err(wrong("price is out of range; give the price of one drive".into()));
    }
    let raid: RaidLevel = given.raid.parse().map_err(|error| wrong(format!("raid: {error}")))?;
    let set_size = given.set_size.unwrap_or(set_size_of(raid));
    let pool = &case.system.pools[place.pool];
    let sets = &pool.groups[place.group];
    let config =
        RaidConfig { raid50_groups: 2, ..RaidConfig::new(raid, set_size as usize, sets.raid.stripe_unit) };
    let layout = Layout::new(&config).map_err(|error| wrong(format!("set_size: {error}")))?;
    let data_share = layout.data_units_per_row() as f64 / layout.columns() as f64;
    let first = &pool.groups[0].name;
    let on_these =
        case.system.volumes.iter().filter(|volume| {
            volume.pool == place.pool && *volume.group.as_ref().unwrap_or(first) == sets.name
        });
    let needed = on_these.map(|volume| volume.sectors).fold(0, |sum, SectorCount(sectors)| sum + sectors);
    let needed = SectorCount(needed).bytes().0;
    let drive_bytes = drive.capacity().bytes().0 as f64 * data_share;
    let for_room = needed as f64 / (fill_percent / 100.0) / drive_bytes + f64::from(sets.spare_drives);
    let least = (for_room.ceil().max(1.0) as u32).next_multiple_of(set_size);
    let most = given.most.unwrap_or(MOST);
    if !(1..=MOST_MAX).contains(&most) {
        return Err(wrong(format!("most is out of range; use 1 to {MOST_MAX} drives")));
    }
    if least > most {
        return Err(wrong(format!(
            "{least} drives are needed to hold {} at {fill_percent} % of their space, and at most {most} are tried; raise most or \
             fill, or leave it out",
            ByteCount(needed)
        )));
    }
    Ok(Candidate {
        model: given.model.clone(),
        raid,
        set_size,
        price: given.price,
        least,
        most,
        needed,
        drive_bytes,
        spares: sets.spare_drives,
        place: place.clone(),
    })
}
