//! The shape of a group's RAID sets, as files describe it and as pools record it.

use tier0_pool::RaidRecord;
use tier0_raid::layout::{RaidConfig, RaidLevel, UnknownLevel};
use tier0_units::SectorCount;

/// The record of a shape.
pub fn record_of(raid: &RaidConfig) -> RaidRecord {
    RaidRecord {
        level: raid.level.name().to_owned(),
        set_size: raid.set_size as u32,
        groups: if raid.level == RaidLevel::Raid50 { raid.raid50_groups as u32 } else { 1 },
        stripe_unit_sectors: raid.stripe_unit.0 as u32,
    }
}

/// What a record says of a shape.
///
/// # Errors
/// The record names a level that this program does not know.
pub fn config_of(record: &RaidRecord) -> Result<RaidConfig, String> {
    Ok(RaidConfig {
        level: record.level.parse().map_err(|unknown: UnknownLevel| unknown.to_string())?,
        set_size: record.set_size as usize,
        stripe_unit: SectorCount(u64::from(record.stripe_unit_sectors)),
        raid50_groups: record.groups as usize,
    })
}
