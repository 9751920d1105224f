//! How much of a pool should stay free.
//!
//! The rules of sizing practice for shared storage: keep min(5 % of the pool, 100 GB per member) free, add drives when
//! more than 85 % is in use, and size a pool for 60 to 70 %.

use std::fmt;

use tier0_units::ByteCount;

use crate::state::PoolState;

/// The share of the pool that is kept free at most, percent.
const RESERVE_PERCENT: u64 = 5;
/// What each member adds to the reserve at most.
const RESERVE_BYTES_PER_MEMBER: u64 = 100_000_000_000;
/// The fill from which on drives should be added, percent.
const FILL_PERCENT_MAX: u64 = 85;
/// What a pool is sized for, percent.
const FILL_PERCENT_SIZED: u64 = 70;

/// How full a pool is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Space {
    /// What volumes can use in all.
    pub usable: ByteCount,
    /// What extents have, or thick volumes have reserved.
    pub used: ByteCount,
    /// Drives that serve.
    pub members: u64,
}

/// Something an administrator should know about a pool's space.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SpaceWarning {
    /// Nothing is free: writes that need space fail.
    Full,
    /// Less is free than should be kept.
    BelowReserve {
        /// What is free.
        free: ByteCount,
        /// What should be.
        reserve: ByteCount,
    },
    /// It is time to add drives.
    Filling {
        /// How full it is, percent, rounded down.
        percent: u64,
    },
}

impl Space {
    /// The space of a pool.
    pub fn of(state: &PoolState) -> Space {
        let bytes = |slots: u64| {
            ByteCount(slots.saturating_mul(state.geometry().extent_sectors * tier0_units::SECTOR_BYTES))
        };
        Space {
            usable: bytes(state.slot_count()),
            used: bytes(state.used_slots().count() + state.reserved_slot_count()),
            members: state.members().iter().filter(|member| member.is_active()).count() as u64,
        }
    }

    /// What is free.
    pub fn free(&self) -> ByteCount {
        ByteCount(self.usable.0.saturating_sub(self.used.0))
    }

    /// What should be kept free: min(5 % of the pool, 100 GB per member).
    pub fn reserve(&self) -> ByteCount {
        let share = (u128::from(self.usable.0) * u128::from(RESERVE_PERCENT) / 100) as u64;
        ByteCount(share.min(self.members.saturating_mul(RESERVE_BYTES_PER_MEMBER)))
    }

    /// How full it is, percent, rounded down.
    pub fn fill_percent(&self) -> u64 {
        (u128::from(self.used.0) * 100 / u128::from(self.usable.0.max(1))) as u64
    }

    /// What an administrator should know, the worst first.
    pub fn warnings(&self) -> Vec<SpaceWarning> {
        let mut warnings = Vec::new();
        let (free, reserve) = (self.free(), self.reserve());
        if free.0 == 0 {
            warnings.push(SpaceWarning::Full);
        } else if free.0 < reserve.0 {
            warnings.push(SpaceWarning::BelowReserve { free, reserve });
        }
        // Compared without rounding: 85.4 % is more than 85 %.
        if u128::from(self.used.0) * 100 > u128::from(self.usable.0) * u128::from(FILL_PERCENT_MAX) {
            warnings.push(SpaceWarning::Filling { percent: self.fill_percent() });
        }
        warnings
    }
}

impl fmt::Display for SpaceWarning {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            SpaceWarning::Full => {
                write!(
                    f,
                    "the pool is full: writes to new space fail; discard what is not needed or add drives"
                )
            }
            SpaceWarning::BelowReserve { free, reserve } => {
                write!(f, "{free} are free and {reserve} should be; discard what is not needed or add drives")
            }
            SpaceWarning::Filling { percent } => write!(
                f,
                "the pool is {percent} % full; add drives (a pool is sized for at most {FILL_PERCENT_SIZED} %)"
            ),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn space(usable: u64, used: u64, members: u64) -> Space {
        Space { usable: ByteCount(usable), used: ByteCount(used), members }
    }

    #[test]
    fn the_reserve_is_the_smaller_of_share_and_drives() {
        const TB: u64 = 1_000_000_000_000;
        // 24 drives of 900 GB in mirrors: 5 % of 10.8 TB is 540 GB, less than 24 x 100 GB.
        assert_eq!(space(10_800 * TB / 1000, 0, 24).reserve().0, 540 * TB / 1000);
        // 4 drives of 20 TB in mirrors: 5 % of 40 TB is 2 TB, more than 4 x 100 GB.
        assert_eq!(space(40 * TB, 0, 4).reserve().0, 400 * TB / 1000);
    }

    #[test]
    fn warnings_come_one_after_the_other() {
        assert_eq!(space(1000, 850, 4).warnings(), []);
        assert_eq!(space(1000, 854, 4).warnings(), [SpaceWarning::Filling { percent: 85 }]);
        let below = SpaceWarning::BelowReserve { free: ByteCount(49), reserve: ByteCount(50) };
        assert_eq!(space(1000, 951, 4).warnings(), [below, SpaceWarning::Filling { percent: 95 }]);
        assert_eq!(
            space(1000, 1000, 4).warnings(),
            [SpaceWarning::Full, SpaceWarning::Filling { percent: 100 }]
        );
    }
}
