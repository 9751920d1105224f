//! `tier0 volume list`: of a running array as its server reports it; of one that is not running as its drives hold it, or,
//! where these cannot be read, as the array file has it. Which of them it is, is always said.

use std::path::{Path, PathBuf};
use std::time::Duration;

use clap::Args;
use serde::Serialize;
use tier0_api::{
    AdminReply, AdminRequest, ApiVersion, Ceilings, PinStatus, PoolStatus, Status, VolumePlace, VolumeStatus,
};
use tier0_array::ArrayError;
use tier0_array::open::{StoredVolume, stored_volumes};
use tier0_control::admin::{ceilings, volume_place};
use tier0_description::{Description, VolumeDescription};
use tier0_pool::WEIGHT_DEFAULT;
use tier0_units::{ByteCount, WriteCache};

use crate::control::{Addressee, ask_if_served, misunderstood, served_instead};
use crate::failure::Failure;
use crate::output::{align_right, json, print, rendered, table};
use crate::patience::within;

pub(super) const EXAMPLES: &str = "\
Examples:
  tier0 volume list array.toml
  tier0 volume list array.toml --json | jq .volumes[].name

If no server runs, the volumes are listed as the drives hold them, without
caches of the pool and connections; if the drives cannot be read, as the array
file has them. A note on stderr says so, and \"source\" in the JSON.";

/// How long drives that no server has may take to be read: as long as a command of a drive.
const LOOK_LIMIT: Duration = Duration::from_secs(30);

/// Which volumes are listed.
#[derive(Args, Debug)]
pub(crate) struct VolumeList {
    /// The array file
    #[arg(value_name = "ARRAY.TOML")]
    array: PathBuf,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// Where a list comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
enum Source {
    /// The server of the array.
    Server,
    /// The drives of an array that is not running.
    Drives,
    /// The array file.
    File,
}

/// The volumes of an array.
#[derive(Serialize)]
struct Listed {
    api: ApiVersion,
    array: String,
    source: Source,
    volumes: Vec<ListedVolume>,
}

/// A volume; what its source does not tell is none.
#[derive(Serialize)]
struct ListedVolume {
    name: String,
    pool: String,
    group: Option<String>,
    size_bytes: u64,
    /// Space that it uses, alone or shared with clones.
    used_bytes: Option<u64>,
    thin: bool,
    write_cache: Option<WriteCache>,
    read_cache: Option<bool>,
    /// Where its extents are to lie, and what of it lies in other groups than its own.
    place: Option<VolumePlace>,
    away_bytes: Option<u64>,
    pins: Vec<PinStatus>,
    connections: Option<usize>,
    /// What hosts may ask of it in a second; none where it has no ceilings.
    ceilings: Option<Ceilings>,
    /// What it gets in comparison with others where writers are delayed.
    weight: u32,
    /// Volumes with which it may share space.
    family: Vec<String>,
}

/// Lists them.
pub(super) fn run(verb: &VolumeList) -> Result<(), Failure> {
    let server = Addressee::of(&verb.array)?;
    let listed = match server.description() {
        Err(_) => of_server(server.status()?),
        Ok(description) => match ask_if_served(description, &AdminRequest::Status)? {
            Some(AdminReply::Status(status)) => of_server(*status),
            Some(_) => return Err(misunderstood()),
            None => offline(description, &verb.array)?,
        },
    };
    print(&if verb.json { json(&listed) } else { format!("{}\n", text(&listed)) })
}

fn of_server(status: Status) -> Listed {
    let of_pool = |pool: PoolStatus| {
        let name = pool.name;
        pool.volumes.into_iter().map(move |volume| ListedVolume::served(volume, name.clone()))
    };
    Listed {
        api: ApiVersion::CURRENT,
        array: status.array,
        source: Source::Server,
        volumes: status.pools.into_iter().flat_map(of_pool).collect(),
    }
}

/// Of an array that is not running.
fn offline(description: &Description, file: &Path) -> Result<Listed, Failure> {
    let array = description.name.clone();
    let (source, volumes) = match read_drives(description, file)? {
        Ok(volumes) => {
            tracing::warn!("array {array:?} is not running; its volumes are listed as its drives hold them");
            (Source::Drives, volumes.into_iter().map(ListedVolume::stored).collect())
        }
        Err(why) => {
            tracing::warn!(
                "array {array:?} is not running, and {why}: its volumes are listed as {file:?} has them"
            );
            let volumes =
                description.volumes.iter().map(|volume| ListedVolume::described(volume, description));
            (Source::File, volumes.collect())
        }
    };
    Ok(Listed { api: ApiVersion::CURRENT, array, source, volumes })
}

/// The volumes that the drives hold, or why they do not tell, as half a sentence.
///
/// # Errors
/// A server has the drives, and does not answer.
fn read_drives(description: &Description, file: &Path) -> Result<Result<Vec<StoredVolume>, String>, Failure> {
    if description.drives.iter().all(|drive| drive.path.is_none()) {
        return Ok(Err("drives in memory hold nothing then".to_owned()));
    }
    let wanted = description.clone();
    let Some(read) = within(LOOK_LIMIT, move || stored_volumes(&wanted)) else {
        return Ok(Err("a drive does not answer".to_owned()));
    };
    match read {
        Ok(volumes) => Ok(Ok(volumes)),
        Err(error) => match served_instead(description, file, &error) {
            Some(served) => Err(served),
            None => Ok(Err(unread(error))),
        },
    }
}

fn unread(error: ArrayError) -> String {
    let is_not_created = error.is_without_pool();
    match is_not_created {
        true => "not created yet (tier0 create)".to_owned(),
        false => format!("its drives cannot be read ({})", Failure::from(error).text().unwrap_or_default()),
    }
}

impl ListedVolume {
    fn served(volume: VolumeStatus, pool: String) -> ListedVolume {
        ListedVolume {
            name: volume.name,
            pool,
            group: volume.group,
            size_bytes: volume.size_bytes,
            used_bytes: Some(volume.mapped_bytes),
            thin: volume.thin,
            write_cache: volume.write_cache,
            read_cache: Some(volume.read_cache),
            place: Some(volume.place),
            away_bytes: Some(volume.away_bytes),
            pins: volume.pins,
            connections: Some(volume.connections),
            ceilings: volume.ceilings,
            weight: volume.weight,
            family: volume.family,
        }
    }

    fn stored(volume: StoredVolume) -> ListedVolume {
        ListedVolume {
            name: volume.name,
            pool: volume.pool,
            group: volume.group,
            size_bytes: volume.size.0,
            used_bytes: Some(volume.used.0),
            thin: volume.thin,
            write_cache: Some(volume.write_cache),
            read_cache: Some(volume.read_cache),
            place: None,
            away_bytes: None,
            pins: Vec::new(),
            connections: None,
            ceilings: ceilings(volume.ceilings),
            weight: volume.weight,
            family: volume.family,
        }
    }

    fn described(volume: &VolumeDescription, of: &Description) -> ListedVolume {
        ListedVolume {
            name: volume.name.clone(),
            pool: of.pools[volume.pool].name.clone(),
            group: volume.group.clone(),
            size_bytes: volume.sectors.bytes().0,
            used_bytes: None,
            thin: volume.thin,
            write_cache: volume.write_cache,
            read_cache: volume.read_cache,
            place: volume.place.map(volume_place),
            away_bytes: None,
            pins: Vec::new(),
            connections: None,
            ceilings: ceilings(volume.ceilings.of(tier0_pool::Ceilings::default())),
            weight: volume.weight.unwrap_or(WEIGHT_DEFAULT),
            family: Vec::new(),
        }
    }
}

/// A row for each volume; columns of which no volume has anything are left out.
fn text(listed: &Listed) -> String {
    let volumes = &listed.volumes;
    if volumes.is_empty() {
        return format!("array {} has no volumes", listed.array);
    }
    let pools = volumes.windows(2).any(|two| two[0].pool != two[1].pool);
    let groups = volumes.iter().any(|volume| volume.group.is_some());
    let families = volumes.iter().any(|volume| !volume.family.is_empty());
    let weighed = volumes.iter().any(|volume| volume.weight != WEIGHT_DEFAULT);
    let limited = volumes.iter().any(|volume| volume.ceilings.is_some());
    let mut header = vec!["volume", "size", "used", "kind"];
    header.extend(pools.then_some("pool"));
    header.extend(groups.then_some("group"));
    header.extend(["write cache", "read cache", "connections"]);
    header.extend(limited.then_some("ceilings"));
    header.extend(weighed.then_some("weight"));
    header.extend(families.then_some("shares space with"));
    let mut rows = table(&header);
    for volume in volumes {
        let mut row = vec![
            volume.name.clone(),
            ByteCount(volume.size_bytes).to_string(),
            told(volume.used_bytes.map(ByteCount)),
            if volume.thin { "thin" } else { "thick" }.to_owned(),
        ];
        row.extend(pools.then(|| volume.pool.clone()));
        row.extend(groups.then(|| volume.group.clone().unwrap_or_default()));
        row.push(told(volume.write_cache));
        row.push(told(volume.read_cache.map(|on| if on { "on" } else { "off" })));
        row.push(told(volume.connections));
        row.extend(limited.then(|| told(volume.ceilings)));
        row.extend(weighed.then(|| volume.weight.to_string()));
        row.extend(families.then(|| volume.family.join(", ")));
        rows.add_row(row);
    }
    let connections = header.iter().position(|column| *column == "connections");
    align_right(&mut rows, [1, 2].into_iter().chain(connections));
    rendered(&rows)
}

fn told(value: Option<impl ToString>) -> String {
    value.map_or_else(|| "-".to_owned(), |value| value.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn volume(name: &str, pool: &str) -> ListedVolume {
        ListedVolume {
            name: name.to_owned(),
            pool: pool.to_owned(),
            group: None,
            size_bytes: 24 << 20,
            used_bytes: Some(1 << 20),
            thin: true,
            write_cache: Some(WriteCache::Durable),
            read_cache: Some(false),
            place: None,
            away_bytes: None,
            pins: Vec::new(),
            connections: None,
            ceilings: None,
            weight: WEIGHT_DEFAULT,
            family: Vec::new(),
        }
    }

    #[test]
    fn columns_are_shown_where_they_tell_something() {
        let list = |volumes| Listed {
            api: ApiVersion::CURRENT,
            array: "a".to_owned(),
            source: Source::Drives,
            volumes,
        };
        let told = text(&list(vec![volume("lun0", "p"), volume("lun1", "p")]));
        assert!(told.contains("lun1") && told.contains("24MiB") && told.contains("1MiB"), "{told}");
        assert!(!told.contains("pool") && !told.contains("shares"), "{told}");
        let clone = ListedVolume { family: vec!["lun0".to_owned()], ..volume("copy", "q") };
        let told = text(&list(vec![volume("lun0", "p"), clone]));
        assert!(!told.contains("ceilings"), "{told}");
        let ceilings = Some(Ceilings { iops_max: Some(5000), mbps_max: None, burst_seconds: 10 });
        let limited =
            text(&list(vec![volume("lun0", "p"), ListedVolume { ceilings, ..volume("lun1", "p") }]));
        assert!(limited.contains("ceilings") && limited.contains("5000 IOPS, burst 10 s"), "{limited}");
        assert!(told.contains("pool") && told.contains("shares space with"), "{told}");
        assert_eq!(text(&list(Vec::new())), "array a has no volumes");
    }
}
