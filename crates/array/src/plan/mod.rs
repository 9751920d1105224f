//! From descriptions and states to sets, slots and maps: pure arithmetic, the same in both worlds and in every shard.

mod growth;
mod pool;
mod survival;

use tier0_pool::RaidRecord;
use tier0_raid::layout::{Layout, RaidConfig, RaidLevel};
use tier0_units::SectorCount;

pub(crate) use growth::{Growth, plan_growth};
pub(crate) use pool::{NewPool, PoolShape, check_fits, drives_of, fill, members_max, new_volume};
pub(crate) use survival::{could_go_on, sets_survive};

/// Chunklets a drive has at least where their size is not given: enough to spread a rebuild, few enough to list.
const CHUNKLETS_PER_DRIVE_MIN: u64 = 64;
/// The largest chunklet that is chosen, sectors: 1 GiB, the reference array's.
const CHUNKLET_SECTORS_MAX: u64 = 2 << 20;
/// The smallest extent that is chosen, sectors: 1 MiB.
const EXTENT_SECTORS_MIN: u64 = 2048;

/// What a description's shape is in a record.
pub(crate) fn record_of(raid: &RaidConfig) -> RaidRecord {
    RaidRecord {
        level: raid.level.name().to_owned(),
        set_size: raid.set_size as u32,
        groups: if raid.level == RaidLevel::Raid50 { raid.raid50_groups as u32 } else { 1 },
        stripe_unit_sectors: raid.stripe_unit.0 as u32,
    }
}

pub(crate) fn config_of(record: &RaidRecord) -> Result<RaidConfig, String> {
    Ok(RaidConfig {
        level: record
            .level
            .parse()
            .map_err(|unknown: tier0_raid::layout::UnknownLevel| unknown.to_string())?,
        set_size: record.set_size as usize,
        stripe_unit: SectorCount(u64::from(record.stripe_unit_sectors)),
        raid50_groups: record.groups as usize,
    })
}

/// The smallest whole number of rows that is at least 1 MiB: no slot has idle sectors then.
fn default_extent(layout: &Layout) -> u64 {
    let row = layout.row_sectors().0;
    EXTENT_SECTORS_MIN.div_ceil(row) * row
}
