//! A description as the text of an array file, which reads back as the same description.

use std::collections::BTreeMap;
use std::fmt::{Display, Write};
use std::path::Path;

use tier0_raid::layout::RaidLevel;
use tier0_units::{ByteCount, Nanos, SECTOR_BYTES};
use tier0_world::net::PeerAddress;

use super::{
    Description, DriveDescription, GroupDescription, PoolDescription, SocketAccess, VolumeDescription,
};

/// What stands behind fields as a comment: by section (`array`, `drive d0`, `pool p`, `volume v`) and field.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Remarks(BTreeMap<(String, &'static str), String>);

impl Remarks {
    /// Puts a remark behind a field, instead of one that is there.
    pub fn add(&mut self, section: impl Into<String>, field: &'static str, text: impl Into<String>) {
        self.0.insert((section.into(), field), text.into());
    }
}

impl Description {
    /// The array file that says this, with remarks behind fields.
    pub fn to_text(&self, remarks: &Remarks) -> String {
        let Description {
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
            warnings: _,
        } = self;
        let mut page = Page { text: String::new(), section: String::new(), remarks };
        page.open("[array]", "array".to_owned());
        page.field("name", quoted(name));
        page.field_if("cores", *cores);
        page.field_if("memory", memory.map(|memory| quoted(&memory.to_string())));
        page.field("keep_awake", keep_awake);
        page.field("pause_timeout", pause_timeout.0 / Nanos::from_secs(1).0);
        page.field_if("witness", witness.as_deref().map(quoted_path));
        if !search.is_empty() {
            page.field("search", list(search.iter().map(|path| quoted_path(path))));
        }
        page.field_if("control", control.as_deref().map(quoted_path));
        page.access(["control_mode", "control_owner", "control_group"], control_access);
        page.field_if("events", events.as_deref().map(quoted_path));
        drives.iter().for_each(|drive| page.drive(drive));
        pools.iter().for_each(|pool| page.pool(pool, drives));
        volumes.iter().for_each(|volume| page.volume(volume, pools));
        if !listen.is_empty() || *socket_access != SocketAccess::default() {
            page.open("[nbd]", "nbd".to_owned());
            let address = |address: &PeerAddress| match address {
                PeerAddress::Unix(path) => quoted(&format!("unix:{}", path.display())),
                PeerAddress::Tcp(address) => quoted(&address.to_string()),
            };
            page.field_unless_empty("listen", list(listen.iter().map(|listen| address(&listen.0))));
            let is_remote = |listen: &super::ListenAddress| match &listen.0 {
                PeerAddress::Tcp(address) => !address.ip().is_loopback(),
                PeerAddress::Unix(_) => false,
            };
            if listen.iter().any(is_remote) {
                page.field("allow_remote", true);
            }
            page.access(["socket_mode", "socket_owner", "socket_group"], socket_access);
        }
        page.text
    }
}

/// The text so far.
struct Page<'a> {
    text: String,
    section: String,
    remarks: &'a Remarks,
}

impl Page<'_> {
    fn open(&mut self, header: &str, section: String) {
        let gap = if self.text.is_empty() { "" } else { "\n" };
        writeln!(self.text, "{gap}{header}").expect("a text takes text");
        self.section = section;
    }

    fn field(&mut self, field: &'static str, value: impl Display) {
        let line = format!("{field} = {value}");
        match self.remarks.0.get(&(self.section.clone(), field)) {
            Some(remark) => writeln!(self.text, "{line:<28} # {remark}"),
            None => writeln!(self.text, "{line}"),
        }
        .expect("a text takes text");
    }

    fn field_if(&mut self, field: &'static str, value: Option<impl Display>) {
        if let Some(value) = value {
            self.field(field, value);
        }
    }

    fn field_unless_empty(&mut self, field: &'static str, value: String) {
        if value != "[]" {
            self.field(field, value);
        }
    }

    fn access(&mut self, [mode, owner, group]: [&'static str; 3], access: &SocketAccess) {
        if *access != SocketAccess::default() {
            self.field(mode, format_args!("\"{:04o}\"", access.mode));
            self.field_if(owner, access.owner.as_deref().map(quoted));
            self.field_if(group, access.group.as_deref().map(quoted));
        }
    }

    fn drive(&mut self, drive: &DriveDescription) {
        let DriveDescription { name, path, size, ram, model, class } = drive;
        self.open("[[drive]]", format!("drive {name}"));
        self.field("name", quoted(name));
        self.field_if("path", path.as_deref().map(quoted_path));
        self.field_if("size", size.map(exact));
        self.field_if("ram", ram.map(exact));
        self.field_if("model", model.as_deref().map(quoted));
        self.field_if("class", class.map(|class| quoted(&class.to_string())));
    }

    fn pool(&mut self, pool: &PoolDescription, drives: &[DriveDescription]) {
        let PoolDescription {
            name,
            drives: members,
            groups,
            chunklet_sectors,
            extent_sectors,
            checksums,
            log,
            log_sectors,
            log_drives,
            space,
            read_cache,
            write_cache,
            read_cache_policy,
            flash_cache,
        } = pool;
        let names = |places: &[usize]| list(places.iter().map(|place| quoted(&drives[*place].name)));
        let sectors = |sectors: &Option<u64>| sectors.map(|sectors| exact(ByteCount(sectors * SECTOR_BYTES)));
        self.open("[[pool]]", format!("pool {name}"));
        self.field("name", quoted(name));
        let single = &groups[..1];
        let is_single = single.iter().any(|group| group.name.is_empty());
        single.iter().filter(|_| is_single).for_each(|group| self.shape(group, drives));
        self.field_if("chunklet", sectors(chunklet_sectors));
        self.field_if("extent", sectors(extent_sectors));
        self.field("checksums", checksums);
        match *log || members.iter().all(|member| drives[*member].ram.is_some()) {
            true => self.field_if("log", sectors(log_sectors)),
            false => self.field("log", exact(ByteCount(0))),
        }
        if !log_drives.is_empty() {
            self.field("log_drives", names(log_drives));
        }
        self.field("warn_at", list(space.warn_at.iter().map(u8::to_string)));
        self.field("reserve", quoted(&space.reserve.to_string()));
        self.field_if("read_cache", *read_cache);
        self.field_if("write_cache", *write_cache);
        self.field_if("read_cache_policy", read_cache_policy.map(|policy| quoted(&policy.to_string())));
        self.field_if("flash_cache", flash_cache.bytes.map(exact));
        self.field_unless_empty("flash_cache_drives", names(&flash_cache.drives));
        self.field_if("flash_cache_writes", flash_cache.writes_per_day);
        for group in groups.iter().filter(|_| !is_single) {
            self.open("[[pool.group]]", format!("group {} of pool {name}", group.name));
            self.field("name", quoted(&group.name));
            self.shape(group, drives);
        }
    }

    /// The drives and the shape of a group's sets.
    fn shape(&mut self, group: &GroupDescription, drives: &[DriveDescription]) {
        let GroupDescription { name: _, drives: members, raid, spare_drives } = group;
        self.field("drives", list(members.iter().map(|place| quoted(&drives[*place].name))));
        self.field("raid", quoted(raid.level.name()));
        self.field("set_size", raid.set_size);
        if raid.level == RaidLevel::Raid50 {
            self.field("groups", raid.raid50_groups);
        }
        self.field("stripe_unit", exact(raid.stripe_unit.bytes()));
        self.field("spare_drives", spare_drives);
    }

    fn volume(&mut self, volume: &VolumeDescription, pools: &[PoolDescription]) {
        let VolumeDescription {
            name,
            pool,
            sectors,
            thin,
            write_cache,
            read_cache,
            place,
            group,
            ceilings,
            weight,
        } = volume;
        self.open("[[volume]]", format!("volume {name}"));
        self.field("name", quoted(name));
        self.field("pool", quoted(&pools[*pool].name));
        self.field("size", exact(sectors.bytes()));
        self.field_if("group", group.as_deref().map(quoted));
        self.field("thin", thin);
        self.field_if("write_cache", write_cache.map(|mode| quoted(mode.name())));
        self.field_if("read_cache", *read_cache);
        self.field_if("place", place.map(|place| quoted(place.name())));
        self.field_if("iops_max", ceilings.iops_max);
        self.field_if("mbps_max", ceilings.mbps_max);
        self.field_if("burst", ceilings.burst_seconds);
        self.field_if("weight", *weight);
    }
}

/// A size that reads back as the same number of bytes.
fn exact(size: ByteCount) -> String {
    let text = size.to_string();
    match text.parse() {
        Ok(read) if size == read => quoted(&text),
        _ => size.0.to_string(),
    }
}

fn list(items: impl Iterator<Item = String>) -> String {
    format!("[{}]", items.collect::<Vec<_>>().join(", "))
}

fn quoted_path(path: &Path) -> String {
    quoted(&path.to_string_lossy())
}

/// A basic string of TOML.
fn quoted(text: &str) -> String {
    let mut quoted = String::from("\"");
    for c in text.chars() {
        match c {
            '"' | '\\' => quoted.extend(['\\', c]),
            c if c.is_control() => quoted.push_str(&format!("\\u{:04X}", c as u32)),
            c => quoted.push(c),
        }
    }
    quoted.push('"');
    quoted
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use tier0_policy::PolicyKind;
    use tier0_pool::{CeilingsChange, DriveClass, Place as VolumePlace, Reserve, SpaceRules};
    use tier0_raid::layout::RaidConfig;
    use tier0_units::{SectorCount, WriteCache};

    use super::super::{FlashCacheDescription, ListenAddress};
    use super::*;

    fn drives() -> impl Strategy<Value = Vec<DriveDescription>> {
        let path = "[ -~ä\t]{1,20}";
        let size = proptest::option::of((1u64..1 << 50).prop_map(ByteCount));
        proptest::collection::vec((path, size), 8..=20).prop_map(|places| {
            let drive = |(n, (path, size)): (usize, (String, Option<ByteCount>))| DriveDescription {
                name: format!("d{n}"),
                path: Some(format!("/{n}/{path}").replace("{n}", "n").into()),
                size,
                ram: None,
                model: None,
                class: [None, Some(DriveClass::Flash), Some(DriveClass::Disk)][n % 3],
            };
            places.into_iter().enumerate().map(drive).collect()
        })
    }

    fn pool(count: usize) -> impl Strategy<Value = PoolDescription> {
        let level = prop_oneof![
            Just((RaidLevel::Raid0, 3)),
            Just((RaidLevel::Raid1, 2)),
            Just((RaidLevel::Raid10, 4)),
            Just((RaidLevel::Raid5, 4)),
            Just((RaidLevel::Raid50, 6)),
            Just((RaidLevel::Raid6, 5)),
        ];
        let pieces = (proptest::option::of(16u64..256), proptest::option::of(1u64..64));
        let log = (proptest::option::of(1u64..4096), 0usize..3);
        (level, 3u32..8, pieces, log, any::<bool>(), 0u32..2).prop_map(
            move |((level, set_size), unit, (chunklet, extent), (log, log_drives), checksums, spares)| {
                let unit = SectorCount(1 << unit);
                let raid = RaidConfig { level, set_size, stripe_unit: unit, raid50_groups: 2 };
                let spare_drives = spares.min((count - log_drives - set_size) as u32);
                let all: Vec<usize> = (log_drives..count).collect();
                let group = |name: &str, drives: &[usize], spare_drives| GroupDescription {
                    name: name.to_owned(),
                    drives: drives.to_vec(),
                    raid,
                    spare_drives,
                };
                let groups = match all.len() >= 2 * set_size {
                    true => vec![group("f", &all[..set_size], 0), group("s.1", &all[set_size..], 0)],
                    false => vec![group("", &all, spare_drives)],
                };
                PoolDescription {
                    name: "p.0".to_owned(),
                    drives: all,
                    groups,
                    chunklet_sectors: chunklet.map(|pieces| pieces << 11),
                    extent_sectors: extent.map(|pieces| pieces << 8),
                    checksums,
                    log: true,
                    log_sectors: log.map(|mebibytes| mebibytes << 11),
                    log_drives: (0..log_drives).collect(),
                    space: SpaceRules {
                        warn_at: (1..=spares as u8).map(|n| n * 40).collect(),
                        reserve: if checksums { Reserve::Percent(5) } else { Reserve::default() },
                    },
                    read_cache: [None, Some(true), Some(false)][unit.0 as usize % 3],
                    write_cache: [None, Some(false), Some(true)][set_size % 3],
                    read_cache_policy: spares.checked_sub(1).map(|n| PolicyKind::ALL[n as usize]),
                    flash_cache: match unit.0.is_multiple_of(2) {
                        true => FlashCacheDescription::default(),
                        false => FlashCacheDescription {
                            bytes: Some(ByteCount::gib(u64::from(spares))),
                            drives: (0..log_drives).collect(),
                            writes_per_day: (set_size > 3).then_some(set_size as u32),
                        },
                    },
                }
            },
        )
    }

    fn volumes() -> impl Strategy<Value = Vec<VolumeDescription>> {
        let mode = [None, Some(WriteCache::Durable), Some(WriteCache::Volatile), Some(WriteCache::Off)];
        let volume = (1u64..1 << 40, any::<bool>(), proptest::sample::select(mode.to_vec()));
        proptest::collection::vec(volume, 0..4).prop_map(|volumes| {
            let volume = |(n, (pages, thin, write_cache))| VolumeDescription {
                name: format!("v-{n}"),
                pool: 0,
                sectors: SectorCount(pages * 8),
                thin,
                write_cache,
                read_cache: [None, Some(false), Some(true)][n % 3],
                place: [None, Some(VolumePlace::Auto), Some(VolumePlace::Home)][n % 3],
                group: None,
                ceilings: CeilingsChange {
                    iops_max: [None, Some(0), Some(5000)][n % 3],
                    mbps_max: [Some(200), None][n % 2],
                    burst_seconds: (n % 3 == 2).then_some(10),
                },
                weight: [None, Some(1), Some(100)][n % 3],
            };
            volumes.into_iter().enumerate().map(volume).collect()
        })
    }

    fn description() -> impl Strategy<Value = Description> {
        let pooled = drives().prop_flat_map(|drives| (pool(drives.len()), Just(drives)));
        let array = (proptest::option::of(1usize..64), any::<bool>(), any::<bool>());
        (pooled, volumes(), array).prop_map(|((pool, drives), volumes, (cores, keep_awake, told))| {
            let addresses = ["unix:/run/a b.sock", "127.0.0.1:10809", "10.0.0.1:1"];
            let listen = addresses.map(|text| ListenAddress::parse(text, true).expect("an address"));
            Description {
                name: "a".to_owned(),
                cores,
                memory: told.then(|| ByteCount::gib(3)),
                keep_awake,
                pause_timeout: Nanos::from_secs(5),
                witness: Some("/elsewhere/witness".into()),
                search: if told { vec!["/srv/\"x\"".into()] } else { Vec::new() },
                drives,
                pools: vec![pool],
                volumes,
                listen: if told { listen.to_vec() } else { Vec::new() },
                socket_access: SocketAccess {
                    mode: if told { 0o660 } else { 0o600 },
                    owner: None,
                    group: told.then(|| "disk".to_owned()),
                },
                control_access: SocketAccess::default(),
                control: told.then(|| "/run/a.control".into()),
                events: told.then(|| "/var/log/a.events".into()),
                warnings: Vec::new(),
            }
        })
    }

    proptest! {
        #[test]
        fn what_is_written_reads_back(description in description()) {
            let mut remarks = Remarks::default();
            remarks.add("drive d0", "path", "\"quoted\" # twice");
            let text = description.to_text(&remarks);
            let mut read = Description::parse(&text, "a.toml").map_err(|error| TestCaseError::fail(format!("{error}\n{text}")))?;
            read.warnings.clear();
            prop_assert!(text.contains("# \"quoted\""), "{}", text);
            prop_assert_eq!(read, description, "{}", text);
        }
    }
}
