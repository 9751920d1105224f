//! The shape of a group's RAID sets, as files describe it and as pools record it.

use thiserror::Error;
use tier0_pool::RaidRecord;
use tier0_raid::layout::{ConfigError, RaidConfig, RaidLevel, UnknownLevel};
use tier0_units::{ByteCount, SectorCount};

use crate::{STRIPE_UNIT_DEFAULT, default_set_size};

/// What is said of the shape of a group's sets; the rest is chosen.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AskedShape<'a> {
    /// The level, by its name.
    pub raid: &'a str,
    /// Drives of a set.
    pub set_size: Option<usize>,
    /// RAID 5 groups of a RAID 50 set.
    pub raid50_groups: Option<usize>,
    /// The stripe unit.
    pub stripe_unit: Option<ByteCount>,
    /// How many drives' worth of chunklets stay free for rebuilding.
    pub spare_drives: Option<u32>,
}

/// Why no sets can be made as they are asked for.
#[derive(Debug, Error)]
pub enum ShapeError {
    /// There is no such level.
    #[error(transparent)]
    Level(#[from] UnknownLevel),
    /// The level has no such sets.
    #[error(transparent)]
    Layout(#[from] ConfigError),
    /// There are fewer drives than a set has.
    #[error(
        "a {level} set of {set_size} needs as many drives, and there are {drives}; add drives, or use another level or set_size"
    )]
    FewDrives {
        /// The level.
        level: RaidLevel,
        /// Drives of a set.
        set_size: usize,
        /// Drives that there are.
        drives: usize,
    },
    /// There are not so many drives beside those of a set.
    #[error(
        "{spare_drives} spare beside sets of {set_size} need {} drives, and there are {drives}; lower one of them",
        set_size + *spare_drives as usize
    )]
    FewSpares {
        /// Drives' worth of chunklets that are to stay free.
        spare_drives: u32,
        /// Drives of a set.
        set_size: usize,
        /// Drives that there are.
        drives: usize,
    },
}

impl AskedShape<'_> {
    /// The sets of a group of so many drives, and how many drives' worth of its chunklets stay free.
    ///
    /// # Errors
    /// There can be no such sets.
    pub fn of_drives(&self, drives: usize) -> Result<(RaidConfig, u32), ShapeError> {
        let level: RaidLevel = self.raid.parse()?;
        let set_size = self.set_size.unwrap_or_else(|| default_set_size(level, drives));
        let raid = RaidConfig {
            level,
            set_size,
            stripe_unit: SectorCount::in_bytes(self.stripe_unit.unwrap_or(STRIPE_UNIT_DEFAULT)),
            raid50_groups: self.raid50_groups.unwrap_or(2),
        };
        raid.validate()?;
        let spare_drives = self.spare_drives.unwrap_or(0);
        if set_size > drives {
            return Err(ShapeError::FewDrives { level, set_size, drives });
        }
        if set_size + spare_drives as usize > drives {
            return Err(ShapeError::FewSpares { spare_drives, set_size, drives });
        }
        Ok((raid, spare_drives))
    }
}

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
