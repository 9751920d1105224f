//! What an administrator chooses about a RAID set, and what of it is refused.

use thiserror::Error;
use tier0_units::{ByteCount, SectorCount};

use super::level::RaidLevel;

/// The most columns a set can have: one bit each in a 64-bit mask.
pub const COLUMNS_MAX: usize = 64;
/// The smallest stripe unit: one physical sector of current drives.
pub const STRIPE_UNIT_MIN: ByteCount = ByteCount::kib(4);
/// The largest stripe unit.
pub const STRIPE_UNIT_MAX: ByteCount = ByteCount::mib(1);
/// The fewest columns of a RAID 5 group: two of data, one of parity.
const RAID5_COLUMNS_MIN: usize = 3;

/// The shape of a RAID set.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RaidConfig {
    /// The level.
    pub level: RaidLevel,
    /// Columns of the set, each on a drive of its own.
    pub set_size: usize,
    /// What one column holds of one row: a power of two from [`STRIPE_UNIT_MIN`] to [`STRIPE_UNIT_MAX`].
    pub stripe_unit: SectorCount,
    /// Into how many RAID 5 groups a RAID 50 set is divided; other levels ignore it.
    pub raid50_groups: usize,
}

impl RaidConfig {
    /// A set of `set_size` columns; RAID 50 in two groups.
    pub const fn new(level: RaidLevel, set_size: usize, stripe_unit: SectorCount) -> RaidConfig {
        RaidConfig { level, set_size, stripe_unit, raid50_groups: 2 }
    }

    /// Checks that a set of this shape can exist.
    ///
    /// # Errors
    /// The first [`ConfigError`] that holds.
    pub fn validate(&self) -> Result<(), ConfigError> {
        self.check_set_size()?;
        self.check_stripe_unit()
    }

    fn check_set_size(&self) -> Result<(), ConfigError> {
        let (level, given) = (self.level, self.set_size);
        let needed = match level {
            RaidLevel::Raid0 => 1,
            RaidLevel::Raid1 | RaidLevel::Raid10 => 2,
            RaidLevel::Raid5 => RAID5_COLUMNS_MIN,
            RaidLevel::Raid50 => 2 * RAID5_COLUMNS_MIN,
            RaidLevel::Raid6 => 4,
        };
        if given < needed {
            return Err(ConfigError::TooFewDrives { level, needed, given });
        }
        if given > COLUMNS_MAX {
            return Err(ConfigError::TooManyDrives { given });
        }
        match level {
            RaidLevel::Raid10 if given % 2 != 0 => Err(ConfigError::OddMirrors { given }),
            RaidLevel::Raid50 => self.check_groups(),
            _ => Ok(()),
        }
    }

    fn check_groups(&self) -> Result<(), ConfigError> {
        let (drives, groups) = (self.set_size, self.raid50_groups);
        if groups < 2 {
            return Err(ConfigError::TooFewGroups { groups });
        }
        if !drives.is_multiple_of(groups) {
            return Err(ConfigError::UnevenGroups { drives, groups });
        }
        if drives / groups < RAID5_COLUMNS_MIN {
            return Err(ConfigError::SmallGroups { drives, groups, each: drives / groups });
        }
        Ok(())
    }

    fn check_stripe_unit(&self) -> Result<(), ConfigError> {
        let range = SectorCount::in_bytes(STRIPE_UNIT_MIN)..=SectorCount::in_bytes(STRIPE_UNIT_MAX);
        if self.stripe_unit.0.is_power_of_two() && range.contains(&self.stripe_unit) {
            return Ok(());
        }
        Err(ConfigError::StripeUnit { sectors: self.stripe_unit })
    }
}

/// Why no RAID set of a shape can exist.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
pub enum ConfigError {
    /// Fewer columns than the level needs.
    #[error(
        "{level} needs at least {needed} drives in a set, not {given}; add drives or choose another level"
    )]
    TooFewDrives {
        /// The level.
        level: RaidLevel,
        /// The fewest columns it works with.
        needed: usize,
        /// The columns asked for.
        given: usize,
    },
    /// More columns than [`COLUMNS_MAX`].
    #[error("a set of {given} drives is too wide; use at most {COLUMNS_MAX} per set, and several sets")]
    TooManyDrives {
        /// The columns asked for.
        given: usize,
    },
    /// RAID 10 with a column that has no partner.
    #[error("raid10 needs an even number of drives in a set, not {given}; use {} or {}", given - 1, given + 1)]
    OddMirrors {
        /// The columns asked for.
        given: usize,
    },
    /// RAID 50 with one group or none.
    #[error("raid50 needs at least 2 groups, not {groups}; for one group choose raid5")]
    TooFewGroups {
        /// The groups asked for.
        groups: usize,
    },
    /// RAID 50 whose groups would differ in size.
    #[error(
        "raid50 cannot divide {drives} drives into {groups} equal groups; use a multiple of {groups} drives"
    )]
    UnevenGroups {
        /// The columns asked for.
        drives: usize,
        /// The groups asked for.
        groups: usize,
    },
    /// RAID 50 whose groups are too small for RAID 5.
    #[error(
        "raid50 with {drives} drives in {groups} groups has {each} drives per group, fewer than \
         {RAID5_COLUMNS_MIN}; use fewer groups or more drives"
    )]
    SmallGroups {
        /// The columns asked for.
        drives: usize,
        /// The groups asked for.
        groups: usize,
        /// The columns each would have.
        each: usize,
    },
    /// A stripe unit that is no power of two, too small or too large.
    #[error(
        "stripe unit {} is not a power of two from {STRIPE_UNIT_MIN} to {STRIPE_UNIT_MAX}; use 64KiB, for instance",
        sectors.bytes()
    )]
    StripeUnit {
        /// The stripe unit asked for.
        sectors: SectorCount,
    },
}

#[cfg(test)]
mod tests {
    use super::*;

    fn verdict(level: RaidLevel, set_size: usize) -> Result<(), ConfigError> {
        RaidConfig::new(level, set_size, SectorCount(128)).validate()
    }

    #[test]
    fn each_level_has_a_smallest_set() {
        for (level, smallest) in [
            (RaidLevel::Raid0, 1),
            (RaidLevel::Raid1, 2),
            (RaidLevel::Raid10, 2),
            (RaidLevel::Raid5, 3),
            (RaidLevel::Raid50, 6),
            (RaidLevel::Raid6, 4),
        ] {
            assert_eq!(verdict(level, smallest), Ok(()));
            let needed = ConfigError::TooFewDrives { level, needed: smallest, given: smallest - 1 };
            assert_eq!(verdict(level, smallest - 1), Err(needed));
            assert_eq!(verdict(level, 64), Ok(()));
            assert_eq!(verdict(level, 66), Err(ConfigError::TooManyDrives { given: 66 }));
        }
    }

    #[test]
    fn mirrors_and_groups_must_come_out_even() {
        assert_eq!(verdict(RaidLevel::Raid10, 5), Err(ConfigError::OddMirrors { given: 5 }));
        assert_eq!(verdict(RaidLevel::Raid50, 7), Err(ConfigError::UnevenGroups { drives: 7, groups: 2 }));
        let groups = |raid50_groups| {
            RaidConfig { raid50_groups, ..RaidConfig::new(RaidLevel::Raid50, 12, SectorCount(8)) }.validate()
        };
        assert_eq!(groups(4), Ok(()));
        assert_eq!(groups(1), Err(ConfigError::TooFewGroups { groups: 1 }));
        assert_eq!(groups(6), Err(ConfigError::SmallGroups { drives: 12, groups: 6, each: 2 }));
    }

    #[test]
    fn stripe_units_are_powers_of_two_in_range() {
        for sectors in [8, 16, 128, 2048] {
            assert_eq!(RaidConfig::new(RaidLevel::Raid5, 3, SectorCount(sectors)).validate(), Ok(()));
        }
        for sectors in [0, 1, 4, 9, 96, 4096] {
            let refused = RaidConfig::new(RaidLevel::Raid5, 3, SectorCount(sectors)).validate();
            assert_eq!(refused, Err(ConfigError::StripeUnit { sectors: SectorCount(sectors) }));
        }
    }

    #[test]
    fn errors_say_what_to_do() {
        let text = verdict(RaidLevel::Raid6, 3).unwrap_err().to_string();
        assert_eq!(text, "raid6 needs at least 4 drives in a set, not 3; add drives or choose another level");
        let text = RaidConfig::new(RaidLevel::Raid5, 3, SectorCount(10)).validate().unwrap_err().to_string();
        assert_eq!(text, "stripe unit 5KiB is not a power of two from 4KiB to 1MiB; use 64KiB, for instance");
    }
}
