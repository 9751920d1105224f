//! A pool: its space, problems, background work, drives and volumes.

use tier0_api::{
    CacheSwitches, DriveStatus, FlashCacheStatus, Flushing, GroupStatus, IntegrityStatus, LostRange,
    PoolStatus, ReadCacheStatus, RebuildPurpose, RebuildStatus, SpaceStatus, TablesStatus, TierMoves,
    TierStatus, VolumePlace, VolumeStatus,
};
use tier0_pool::WEIGHT_DEFAULT;
use tier0_units::{ByteCount, counted};

use super::{drives, duration, scrub};
use crate::output::{align_right, rendered, table, wrapped};

fn group(group: &GroupStatus) -> String {
    let GroupStatus { name, raid, sets, usable_bytes, used_bytes, reserved_bytes, leaving, log } = group;
    let reserved = match reserved_bytes {
        0 => String::new(),
        reserved => format!(", {} reserved", ByteCount(*reserved)),
    };
    let log = log.as_ref().map_or_else(String::new, |log| {
        format!(
            "; log: {} of {} ({}) used",
            ByteCount(log.used_bytes),
            ByteCount(log.size_bytes),
            percent(log.used_bytes, log.size_bytes)
        )
    });
    let leaving = if *leaving { "; leaving, what is used is still to move" } else { "" };
    format!(
        "  group {name}: {raid}, {}, {} of {} ({}) used{reserved}{leaving}{log}",
        counted(*sets, "set"),
        ByteCount(*used_bytes),
        ByteCount(*usable_bytes),
        percent(*used_bytes, *usable_bytes)
    )
}

/// All about a pool; what the array's `summary` says already is not said again.
pub(super) fn text(pool: &PoolStatus, summary: &str) -> String {
    let mut lines = vec![format!("pool {}: {}, {}", pool.name, pool.raid, counted(pool.sets.count, "set"))];
    lines.push(format!("  space: {}", space(&pool.space)));
    lines.extend(switched_off(&pool.cache));
    lines.extend(pool.groups.iter().map(group));
    let said = |problem: &&String| {
        problem.as_str() == summary || format!("pool {}: {problem}", pool.name) == summary
    };
    let news = pool.problems.iter().filter(|problem| !said(problem));
    lines.extend(news.map(|problem| format!("  ! {problem}")));
    let notes = pool.space.warnings.iter().filter(|warning| !pool.problems.contains(warning));
    lines.extend(notes.map(|note| format!("  note: {note}")));
    if let Some(rebuild) = &pool.rebuild {
        lines.push(format!("  {}", copying(rebuild)));
        if let Some(error) = &rebuild.waits {
            lines.push(format!(
                "  ! the rebuild cannot finish: {error}; it is retried every 10 s, and the server's log names the extents"
            ));
        }
    }
    if let Some(restripe) = &pool.restripe {
        let done = [restripe.slots_done, restripe.slots_total];
        lines.push(format!("  restripe: {}", progress(done, restripe.rate_bytes_per_s, restripe.left_s)));
    }
    lines.extend(scrub::text(pool.scrub.as_ref(), pool.scrubs_finished));
    if let Some(log) = &pool.log {
        lines.push(format!(
            "  log: {} of {} ({}) used, {} of {} on {}, {} not yet destaged",
            ByteCount(log.used_bytes),
            ByteCount(log.size_bytes),
            percent(log.used_bytes, log.size_bytes),
            log.copies,
            if log.copies_wanted == 1 {
                "1 copy".to_owned()
            } else {
                format!("{} copies", log.copies_wanted)
            },
            log.drives.join(", "),
            ByteCount(log.dirty_bytes),
        ));
        lines.extend(flushing(&log.flushing));
    }
    let integrity = &pool.integrity;
    lines.push(match integrity.checksums {
        true => format!(
            "  checksums: {} repaired, {} unrecoverable since the server started",
            counted(integrity.repaired, "page"),
            integrity.unrecoverable
        ),
        false => "  checksums: none; silent corruption is not detected".to_owned(),
    });
    lines.extend(lost(integrity));
    lines.extend(integrity.checksums.then(|| memory(&integrity.tables)));
    lines.extend(pool.read_cache.as_ref().map(read_cache));
    lines.extend(pool.flash_cache.as_ref().map(|cache| flash_cache(cache, &pool.drives)));
    lines.extend(pool.tier.iter().flat_map(tier));
    let lines: Vec<String> = lines.iter().map(|line| wrapped(line, "    ")).collect();
    let (drives, volumes) = (drives::text(&pool.drives, pool.paused.is_some()), volumes(&pool.volumes));
    format!("\n{}\n\n{drives}\n\n{volumes}\n", lines.join("\n"))
}

/// How the tier does.
fn tier(tier: &TierStatus) -> Vec<String> {
    let share = |share: Option<f64>| {
        share.map_or_else(String::new, |share| {
            format!(", with {} of the drive I/O", percent((share * 1000.0).round() as u64, 1000))
        })
    };
    let TierMoves { promoted, demoted, placed, failed: _, bytes } = tier.moves;
    let cutoff = tier.cutoff.map_or_else(String::new, |cutoff| format!("; cutoff {cutoff:.0} drive I/Os"));
    let mut lines = vec![
        format!(
            "  tier {}: group {} holds {} of other groups{} ({} of {} used){cutoff}",
            if tier.is_on { "on" } else { "off" },
            tier.fast_group,
            ByteCount(tier.fast_promoted_bytes),
            share(tier.share_on_fast),
            ByteCount(tier.fast_used_bytes),
            ByteCount(tier.fast_bytes)
        ),
        format!(
            "  moved since the server started: {} to flash as hot, {} back to make room, {} placed by hand ({}); {} to move now, at \
             most {:.0} per second while hosts are busy{}; {} more may be written to flash today",
            promoted,
            demoted,
            placed,
            ByteCount(bytes),
            tier.moves_wanted,
            tier.pace_per_s,
            tier.rate_bytes_per_s
                .map_or_else(String::new, |rate| format!(" and {} per second", ByteCount(rate))),
            ByteCount(tier.writes_left_bytes)
        ),
    ];
    lines.extend(tier.hold.map(|hold| format!("  the tier waits: {}", hold.text())));
    lines
}

/// The caches that no volume of a pool uses, because they are switched off for all of them.
fn switched_off(CacheSwitches { read, write }: &CacheSwitches) -> Option<String> {
    let off = [("read", read), ("write", write)].into_iter().filter(|(_, on)| !**on);
    let off: Vec<&str> = off.map(|(cache, _)| cache).collect();
    let caches = if off.len() == 1 { "cache" } else { "caches" };
    (!off.is_empty())
        .then(|| format!("  {caches} off for all volumes: {} (tier0 pool set)", off.join(" and ")))
}

/// How full the write cache is, and what has been destaged why.
fn flushing(flushing: &Flushing) -> [String; 2] {
    let share = |share: f64| percent((share * 1000.0).round() as u64, 1000);
    let counts = &flushing.counts;
    let delay = counts.delay_ms_mean().map_or_else(String::new, |ms| format!(", by {ms:.1} ms on average"));
    [
        format!(
            "  write cache: memory {} full, log {} including the reserve for destaging; watermarks at {} and {}",
            share(flushing.memory_utilisation),
            share(flushing.log_utilisation),
            share(flushing.watermark_low),
            share(flushing.watermark_high),
        ),
        format!(
            "  destaged since the server started: {} idle, {} by watermark, {} forced, {} demanded; {} delayed{delay}",
            counted(counts.idle.pages, "page"),
            counts.high_watermark.pages,
            counts.forced.pages,
            counts.demanded.pages,
            counted(counts.delayed_writes, "write"),
        ),
    ]
}

/// How often checksums are in memory when they are needed.
fn memory(tables: &TablesStatus) -> String {
    let found = tables.asked - tables.read.min(tables.asked);
    let share = match tables.asked {
        0 => String::new(),
        asked => format!("; hit rate {}", percent(found, asked)),
    };
    let (bytes, all) = (ByteCount(tables.bytes), ByteCount(tables.memory_bytes));
    format!("  checksums in memory: {bytes}, of {all} shared with dirty pages and the read cache{share}")
}

/// What the read cache holds, and what it has brought.
fn read_cache(cache: &ReadCacheStatus) -> String {
    let share = match cache.lookups() {
        0 => String::new(),
        _ => format!("; {} since the server started", crate::read_cache::found(cache)),
    };
    let (bytes, room) = (ByteCount(cache.bytes), ByteCount(cache.room_bytes));
    format!("  read cache: {bytes} of up to {room}{share}")
}

/// What the flash cache holds, where, and what it has brought.
fn flash_cache(cache: &FlashCacheStatus, drives: &[DriveStatus]) -> String {
    let holders = drives.iter().filter(|drive| drive.flash_cache_bytes > 0);
    let holders: Vec<&str> = holders.map(|drive| drive.name.as_str()).collect();
    let (bytes, room) = (ByteCount(cache.bytes), ByteCount(cache.room_bytes));
    let share = match cache.lookups() {
        0 => String::new(),
        asked => format!(
            "; hit rate {} of reads that missed memory, {} written to it since the server started",
            percent(cache.hits, asked),
            ByteCount(cache.written_bytes)
        ),
    };
    let refused = match cache.refused_budget {
        0 => String::new(),
        lines => format!("; {} not cached because of flash_cache_writes", counted(lines, "line")),
    };
    let off = match (cache.devices, cache.devices_off) {
        (0, 0) => ", offline after a drive error: it is created again after a pause",
        (_, 0) => "",
        _ => ", partly offline after errors",
    };
    let paused = match cache.devices_paused {
        0 => "",
        _ => ", bypassed for some seconds because its reads were slower than the disks",
    };
    let unused = match cache.unused_bytes {
        0 => String::new(),
        bytes => format!(
            "; {} more are unused since it was made much smaller: remove it (tier0 pool flash-cache ARRAY 0) and create it again",
            ByteCount(bytes)
        ),
    };
    let slow = match cache.slow_reads {
        0 => String::new(),
        reads => format!("; {} timed out", counted(reads, "read")),
    };
    let held = holders.join(", ");
    format!("  flash cache: {bytes} of {room} on {held}{off}{paused}{share}{refused}{slow}{unused}")
}

/// Lost ranges that are told; `--json` has the others too.
const LOST_TOLD_MAX: usize = 16;

/// What no copy has.
fn lost(integrity: &IntegrityStatus) -> Vec<String> {
    let range = |one: &LostRange| {
        let (from, to, pages) = (one.from, one.to, counted(one.pages, "page"));
        format!("  lost: volume {}, bytes {from} to {} ({pages})", one.volume, to - 1)
    };
    let mut lines: Vec<String> = integrity.lost.iter().take(LOST_TOLD_MAX).map(range).collect();
    let more = integrity.lost.len().saturating_sub(LOST_TOLD_MAX);
    if more > 0 {
        lines.push(format!("  lost: {} more, which --json lists", counted(more as u64, "range")));
    }
    if integrity.lost_left_off > 0 {
        lines.push(format!("  lost: {} more, not listed", counted(integrity.lost_left_off, "page")));
    }
    lines
}

fn space(space: &SpaceStatus) -> String {
    let taken = space.used_bytes + space.reserved_bytes;
    let mut text = format!(
        "{} of {} allocated ({})",
        ByteCount(taken),
        ByteCount(space.usable_bytes),
        percent(taken, space.usable_bytes),
    );
    if space.reserved_bytes > 0 {
        let (used, reserved) = (ByteCount(space.used_bytes), ByteCount(space.reserved_bytes));
        text.push_str(&format!(": {used} used, {reserved} reserved for thick volumes"));
    }
    if space.kept_bytes > 0 {
        text.push_str(&format!("; {} kept free of thin volumes", ByteCount(space.kept_bytes)));
    }
    format!("{text}; {} provisioned to volumes", ByteCount(space.provisioned_bytes))
}

fn progress([done, total]: [u64; 2], rate: u64, left_s: Option<u64>) -> String {
    let left = left_s
        .map_or_else(|| "time left unknown".to_owned(), |left| format!("about {} left", duration(left)));
    format!("{done} of {} ({}), {}/s, {left}", counted(total, "slot"), percent(done, total), ByteCount(rate))
}

/// What is rebuilt or copied, why, and its progress.
fn copying(rebuild: &RebuildStatus) -> String {
    let what = match rebuild.purpose {
        RebuildPurpose::Rebuild => "rebuild",
        RebuildPurpose::Emptying => "removing drives: copying their contents",
        RebuildPurpose::Growth => "growing: moving columns",
        RebuildPurpose::Spares => "balancing free space: moving columns",
        RebuildPurpose::CopyBack => "copying columns back to the drives they belong on",
    };
    match rebuild.slots_total {
        // It is not counted yet, or nothing of the columns is in use.
        0 => format!("{what}: running"),
        total => {
            let done = [rebuild.slots_done, total];
            format!("{what}: {}", progress(done, rebuild.rate_bytes_per_s, rebuild.left_s))
        }
    }
}

/// A share in percent, rounded down, so that 100 % is all of it; `0 %` is nothing at all.
fn percent(part: u64, whole: u64) -> String {
    match (u128::from(part) * 100).checked_div(u128::from(whole)) {
        None => "0 %".to_owned(),
        Some(0) if part > 0 => "<1 %".to_owned(),
        Some(percent) => format!("{percent} %"),
    }
}

fn volumes(volumes: &[VolumeStatus]) -> String {
    let has_groups = volumes.iter().any(|volume| volume.group.is_some());
    let has_clones = volumes.iter().any(|volume| !volume.family.is_empty());
    let mut columns = vec!["volume", "size", "used", "kind", "write cache", "read cache"];
    let has_ceilings = volumes.iter().any(|volume| volume.ceilings.is_some());
    let has_places = volumes.iter().any(is_placed);
    let has_weights = volumes.iter().any(|volume| volume.weight != WEIGHT_DEFAULT);
    columns.extend(has_groups.then_some("group"));
    let are_migrating = volumes.iter().any(|volume| volume.migrating_bytes > 0);
    columns.extend(are_migrating.then_some("still elsewhere"));
    columns.extend(has_places.then_some("place"));
    columns.extend(has_ceilings.then_some("ceilings"));
    columns.extend(has_weights.then_some("weight"));
    columns.extend(has_clones.then_some("shares space with"));
    let mut rows = table(&columns);
    for volume in volumes {
        let mut row = vec![
            volume.name.clone(),
            ByteCount(volume.size_bytes).to_string(),
            ByteCount(volume.mapped_bytes).to_string(),
            if volume.thin { "thin" } else { "thick" }.to_owned(),
            volume.write_cache.map_or("none".to_owned(), |mode| mode.to_string()),
            if volume.read_cache { "on" } else { "off" }.to_owned(),
        ];
        row.extend(volume.group.clone().filter(|_| has_groups));
        row.extend(are_migrating.then(|| ByteCount(volume.migrating_bytes).to_string()));
        row.extend(has_places.then(|| place_words(volume)));
        row.extend(
            has_ceilings.then(|| volume.ceilings.map_or_else(|| "-".to_owned(), |all| all.to_string())),
        );
        row.extend(has_weights.then(|| volume.weight.to_string()));
        row.extend(has_clones.then(|| some_of(&volume.family)));
        rows.add_row(row);
    }
    align_right(&mut rows, [1, 2]);
    rendered(&rows)
}

fn is_placed(volume: &VolumeStatus) -> bool {
    volume.place != VolumePlace::Slow || !volume.pins.is_empty()
}

/// Where a volume is to lie, with its pins.
fn place_words(volume: &VolumeStatus) -> String {
    let pins = volume.pins.len() as u64;
    let pinned = if pins > 0 { format!(", {}", counted(pins, "pin")) } else { String::new() };
    format!("{}{pinned}", volume.place.text())
}

/// Names, or the first of many.
fn some_of(names: &[String]) -> String {
    const SHOWN: usize = 3;
    match names.len() {
        count if count > SHOWN + 1 => format!("{} and {} more", names[..SHOWN].join(", "), count - SHOWN),
        _ => names.join(", "),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentages_agree_with_bytes() {
        for (part, whole, text) in
            [(0, 0, "0 %"), (0, 9, "0 %"), (1, 1000, "<1 %"), (999, 1000, "99 %"), (1000, 1000, "100 %")]
        {
            assert_eq!(percent(part, whole), text);
        }
    }

    #[test]
    fn switches_are_told_where_one_is_off() {
        let told = |read, write| switched_off(&CacheSwitches { read, write });
        assert_eq!(told(true, true), None);
        assert_eq!(told(false, true).as_deref(), Some("  cache off for all volumes: read (tier0 pool set)"));
        assert_eq!(
            told(false, false).as_deref(),
            Some("  caches off for all volumes: read and write (tier0 pool set)")
        );
    }

    #[test]
    fn what_is_taken_is_the_sum_of_its_parts() {
        let mut of = SpaceStatus {
            usable_bytes: 100 << 20,
            used_bytes: 10 << 20,
            reserved_bytes: 0,
            kept_bytes: 0,
            provisioned_bytes: 200 << 20,
            warnings: Vec::new(),
        };
        assert_eq!(space(&of), "10MiB of 100MiB allocated (10 %); 200MiB provisioned to volumes");
        (of.reserved_bytes, of.kept_bytes) = (30 << 20, 5 << 20);
        let told = "40MiB of 100MiB allocated (40 %): 10MiB used, 30MiB reserved for thick volumes; 5MiB kept free of \
                    thin volumes; 200MiB provisioned to volumes";
        assert_eq!(space(&of), told);
    }

    /// A pool that grew was told as "rebuild: 0 of 0 slots".
    #[test]
    fn what_is_copied_is_told_with_what_it_is_for() {
        let mut rebuild = RebuildStatus {
            purpose: RebuildPurpose::Growth,
            slots_done: 1,
            slots_total: 4,
            rate_bytes_per_s: 1 << 20,
            left_s: Some(3),
            waits: None,
        };
        assert_eq!(copying(&rebuild), "growing: moving columns: 1 of 4 slots (25 %), 1MiB/s, about 3 s left");
        (rebuild.purpose, rebuild.slots_done, rebuild.slots_total) = (RebuildPurpose::Rebuild, 0, 0);
        assert_eq!(copying(&rebuild), "rebuild: running");
    }

    #[test]
    fn progress_is_in_slots_percent_and_time() {
        assert_eq!(progress([1, 4], 1 << 20, Some(75)), "1 of 4 slots (25 %), 1MiB/s, about 1 min 15 s left");
        assert_eq!(progress([0, 1], 0, None), "0 of 1 slot (0 %), 0B/s, time left unknown");
    }
}
