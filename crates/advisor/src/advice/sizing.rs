//! How much flash, how many drives, and which caches.

use serde::Serialize;

use super::rank::{Ranked, Verdict};
use super::{Chosen, Question};
use crate::evidence::{Kind, Object};
use crate::report::gb;
use crate::rules::Case;
use crate::site::Site;

/// Size for this share of a full pool.
const FILL: f64 = 0.65;
/// Back-end I/Os of a write: RAID 10 two, RAID 5 and 50 four, RAID 6 six.
const WRITE_FACTORS: [(&str, f64); 6] =
    [("raid0", 1.0), ("raid1", 2.0), ("raid10", 2.0), ("raid5", 4.0), ("raid50", 4.0), ("raid6", 6.0)];
/// Usable share of the drives, by level; RAID 5 and 6 as 5+1 and 8+2.
const USABLE: [(&str, f64); 6] = [
    ("raid0", 1.0),
    ("raid1", 0.5),
    ("raid10", 0.5),
    ("raid5", 5.0 / 6.0),
    ("raid50", 5.0 / 6.0),
    ("raid6", 0.8),
];

/// How much flash holds which share of the waits of data that may move.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Step {
    /// The share: of all waits but those of the log, of temporary data and of scanned objects; of their I/Os where a wait is not known.
    pub share: f64,
    /// Whether it is of waits.
    pub of_waits: bool,
    /// Bytes.
    pub bytes: f64,
}

/// Drives.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Sizing {
    /// Flash drives for the chosen objects, mirrored where they take writes.
    pub flash_drives: Option<f64>,
    /// Disks for what stays, at 20 ms.
    pub disks: Option<f64>,
    /// Watts of all of them.
    pub watts: Option<f64>,
    /// How these were found, and what is missing.
    pub words: Vec<String>,
}

/// How much flash holds half, 80, 90 and 95 % of the waits: the heat curve by object.
pub(super) fn steps(case: &Case<'_>) -> Vec<Step> {
    let movable = || {
        let of_data =
            case.data().filter(|object| object.kind != Kind::Temp && object.is_sequential() != Some(true));
        of_data.filter(|object| object.counts.ios().is_some())
    };
    // Waits and I/Os are no sum.
    let of_waits = movable().all(|object| object.counts.wait_ms().is_some());
    let weight = |object: &Object| if of_waits { object.counts.wait_ms() } else { object.counts.ios() };
    let mut sized: Vec<(f64, f64)> =
        movable().filter_map(|object| Some((weight(object)?, object.bytes?))).collect();
    let all: f64 = sized.iter().map(|(weight, _)| weight).sum();
    if all <= 0.0 {
        return Vec::new();
    }
    sized.sort_by(|a, b| (b.0 / b.1.max(1.0)).total_cmp(&(a.0 / a.1.max(1.0))));
    let step = |share: f64| {
        let (mut covered, mut bytes) = (0.0, 0.0);
        for (weight, size) in &sized {
            if covered >= share * all * (1.0 - 1e-9) {
                break;
            }
            covered += weight;
            bytes += size;
        }
        Step { share, of_waits, bytes }
    };
    [0.5, 0.8, 0.9, 0.95].map(step).to_vec()
}

/// Settings of caches.
pub(super) fn caches(site: &Site) -> Vec<String> {
    let all_flash = site.all_flash == Some(true) && site.applications.is_some_and(|count| count <= 3.0);
    let flash = match all_flash {
        true => {
            "volumes on flash: read cache off; write cache on may help, since the array is all flash with few applications: measure both"
        }
        false => {
            "volumes on flash: read cache off, write cache off; on only for windows of bulk load, restore or sequential work"
        }
    };
    vec![
        flash.to_owned(),
        "volumes on disks: read cache on, write cache on".to_owned(),
        "log: on disks, write cache on (battery or mirror behind it)".to_owned(),
        "measure neighbours of the write cache before and after each change".to_owned(),
    ]
}

fn of_raid(table: &[(&str, f64)], raid: &str, otherwise: f64) -> f64 {
    table.iter().find(|(name, _)| *name == raid).map_or(otherwise, |(_, value)| *value)
}

/// Drives for the chosen objects and for the rest.
pub(super) fn sizing(question: &Question, objects: &[Ranked], chosen: &Chosen) -> Sizing {
    let mut sizing = Sizing::default();
    let words = &mut sizing.words;
    let (drive, disk, site) = (&question.drive, &question.disk, &question.site);
    let grown = 1.0 + chosen.gain.map_or(0.0, |gain| gain.high.max(0.0));
    let rates = |of: Verdict, counts: fn(&Ranked) -> Option<f64>| -> Option<f64> {
        let values: Vec<f64> = objects
            .iter()
            .filter(|row| (row.verdict == Verdict::Flash) == (of == Verdict::Flash))
            // The log is written one after the other, into the write cache.
            .filter(|row| row.kind != Kind::Log)
            .filter_map(counts)
            .collect();
        (!values.is_empty()).then(|| values.iter().sum::<f64>() * grown)
    };
    if chosen.objects > 0 && chosen.bytes > 0.0 {
        let is_cache = site.flash_use.as_deref() == Some("cache");
        let capacity = chosen.bytes / FILL / drive.bytes;
        let reads = rates(Verdict::Flash, |row| row.reads_s).unwrap_or(0.0);
        let writes = rates(Verdict::Flash, |row| row.writes_s).unwrap_or(0.0);
        // Both drives of a mirror serve reads and take all writes.
        let by_rate = reads / drive.read_iops + writes * if is_cache { 1.0 } else { 2.0 } / drive.write_iops;
        let drives = match is_cache {
            true => capacity.max(by_rate).ceil().max(1.0),
            false => (2.0 * capacity).max(by_rate / FILL).ceil().max(2.0),
        };
        let drives = if is_cache { drives } else { (drives / 2.0).ceil() * 2.0 };
        sizing.flash_drives = Some(drives);
        words.push(format!(
            "{drives:.0} × {} ({}, {:.0} W each under load), {}: {} at {:.0} % full, {:.0} reads/s and {:.0} writes/s after the gain",
            drive.id,
            drive.name,
            drive.active_w,
            if is_cache { "without redundancy, since a read cache needs none" } else { "mirrored, since writes land there" },
            gb(chosen.bytes),
            FILL * 100.0,
            reads,
            writes,
        ));
    } else {
        words.push("flash: nothing to size without chosen objects of known size".to_owned());
    }
    let reads = rates(Verdict::Stays, |row| row.reads_s);
    let writes = rates(Verdict::Stays, |row| row.writes_s);
    let sizes: Vec<f64> =
        objects.iter().filter(|row| row.verdict != Verdict::Flash).filter_map(|row| row.bytes).collect();
    // The sum of no figures is a negative zero.
    let bytes = sizes.iter().sum::<f64>() + 0.0;
    if let (Some(reads), Some(writes)) = (reads, writes) {
        let raid = site.raid.as_deref().unwrap_or("raid10");
        let back_end = reads + writes * of_raid(&WRITE_FACTORS, raid, 2.0);
        let by_capacity = bytes / of_raid(&USABLE, raid, 0.5) / FILL / disk.bytes;
        let disks = (back_end / disk.iops).max(by_capacity).ceil().max(2.0);
        sizing.disks = Some(disks);
        words.push(format!(
            "{disks:.0} × {} ({}, {:.0} W each) as {raid} for what stays (without the log): {back_end:.0} back-end I/Os per second of {:.0} each at 20 ms, \
             {} at {:.0} % full",
            disk.id, disk.name, disk.active_w, disk.iops, gb(bytes), FILL * 100.0
        ));
    } else {
        words.push("disks for what stays: not known without I/Os over a known time".to_owned());
    }
    sizing.watts = sizing
        .flash_drives
        .map(|drives| drives * drive.active_w)
        .into_iter()
        .chain(sizing.disks.map(|disks| disks * disk.active_w))
        .reduce(|one, other| one + other);
    sizing
}
