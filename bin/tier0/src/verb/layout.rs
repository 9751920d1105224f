//! The layout of an array's pools and volumes as tables and sentences: what `create` has made, and what `check` says that it
//! would make.

use tier0_array::open::{GroupLayout, PartLayout, PoolLayout};
use tier0_units::{ByteCount, counted};

use crate::output::{align_right, rendered, table, wrapped};

/// All about it: the pools, how their sets lie, the volumes.
pub(super) fn text(pools: &[&PoolLayout]) -> String {
    let lines: String = pools.iter().map(|pool| format!("{}\n", wrapped(&sentence(pool), "  "))).collect();
    format!("{}\n{lines}\n{}\n", rendered_pools(pools), rendered_volumes(pools))
}

fn rendered_pools(pools: &[&PoolLayout]) -> String {
    let mut rows = table(&["pool", "raid", "drives", "usable", "free"]);
    for pool in pools {
        let size = |bytes| ByteCount(bytes).to_string();
        rows.add_row([
            pool.name.clone(),
            pool.raid.clone(),
            pool.drives.len().to_string(),
            size(pool.usable_bytes),
            size(pool.free_bytes),
        ]);
        for group in pool.groups.iter().filter(|group| group.name.is_some()) {
            rows.add_row([
                format!("  group {}", group.name.as_deref().unwrap_or_default()),
                group.raid.clone(),
                group.drives.len().to_string(),
                size(group.usable_bytes),
                size(group.free_bytes),
            ]);
        }
    }
    align_right(&mut rows, [2, 3, 4]);
    rendered(&rows)
}

fn rendered_volumes(pools: &[&PoolLayout]) -> String {
    let mut rows = table(&["volume", "size", "kind"]);
    for volume in pools.iter().flat_map(|pool| &pool.volumes) {
        let kind = if volume.thin { "thin" } else { "thick" };
        rows.add_row([volume.name.clone(), ByteCount(volume.size_bytes).to_string(), kind.to_owned()]);
    }
    align_right(&mut rows, [1]);
    rendered(&rows)
}

/// What the drives of a pool are for.
fn sentence(pool: &PoolLayout) -> String {
    let data: Vec<String> = pool.groups.iter().map(sets).collect();
    let log = pool.log.as_ref().map_or_else(String::new, |log| {
        let alone = without_data(pool, log);
        format!("; a write log of {} on {}{alone}", ByteCount(log.bytes), log.drives.join(", "))
    });
    let cache = pool.flash_cache.as_ref().map_or_else(String::new, |cache| {
        format!("; a flash cache of {} on {}", ByteCount(cache.bytes), cache.drives.join(", "))
    });
    format!("pool {}: data in {}{log}{cache}", pool.name, data.join(", "))
}

fn sets(group: &GroupLayout) -> String {
    let name = group.name.as_ref().map_or_else(String::new, |name| format!("group {name} in "));
    let spare = match group.spare_bytes_per_drive {
        0 => String::new(),
        bytes => format!(", each with {} of spare space", ByteCount(bytes)),
    };
    format!(
        "{name}{} of {} on {}{spare}",
        counted(group.sets, "set"),
        counted(group.set_size.into(), "drive"),
        group.drives.join(", ")
    )
}

/// Which drives of the write log hold no data.
fn without_data(pool: &PoolLayout, log: &PartLayout) -> String {
    let holds_data = |drive: &&String| pool.groups.iter().any(|group| group.drives.contains(drive));
    let alone: Vec<&str> = log.drives.iter().filter(|drive| !holds_data(drive)).map(String::as_str).collect();
    let nothing = if pool.flash_cache.is_some() { "no data" } else { "nothing else" };
    match alone.len() {
        0 => String::new(),
        count if count == log.drives.len() => format!(", which hold {nothing}"),
        _ => format!(", of which {} hold {nothing}", alone.join(", ")),
    }
}
