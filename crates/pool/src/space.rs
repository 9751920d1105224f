//! How much of a pool is taken, when the administrator should know, and what thin volumes may not take.
//!
//! Thick volumes have their space from the beginning. Only thin ones take more as they are written, so only they can
//! fill a pool, and all rules here are about them.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};
use tier0_units::{ByteCount, SECTOR_BYTES};

use crate::state::PoolState;

/// From how many percent on the administrator is told where nothing else is said: time to order drives, to add them, to
/// act.
const WARN_AT: [u8; 3] = [80, 90, 95];

/// How much of a pool is taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Space {
    /// The piece in which space is taken.
    pub extent: ByteCount,
    /// What volumes can use in all.
    pub usable: ByteCount,
    /// What extents have.
    pub used: ByteCount,
    /// What thick volumes have reserved and not used.
    pub reserved: ByteCount,
    /// The size of all volumes.
    pub promised: ByteCount,
    /// Whether a volume is thin: space is taken at writes.
    pub thin: bool,
}

/// When the administrator should know, and what is kept.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SpaceRules {
    /// From how many percent taken on the administrator is told, each once, ascending.
    pub warn_at: Vec<u8>,
    /// What stays free: thin volumes get no new space of it.
    pub reserve: Reserve,
}

/// What of a pool thin volumes do not get.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(into = "String", try_from = "String")]
pub enum Reserve {
    /// A share of what volumes can use, in percent, below 100.
    Percent(u8),
    /// A size.
    Bytes(ByteCount),
}

/// Something an administrator should know about a pool's space.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SpaceWarning {
    /// Nothing is free: writes that need space fail.
    Full,
    /// No more is free than is kept: writes that need space fail.
    AtReserve {
        /// What is free.
        free: ByteCount,
        /// What is kept.
        reserve: ByteCount,
    },
    /// It is time to add drives.
    Filling {
        /// How full it is, percent, rounded down.
        percent: u64,
        /// The bytes behind that.
        taken: ByteCount,
        /// What volumes can use in all.
        usable: ByteCount,
        /// The rule that is met, percent.
        at: u8,
    },
    /// All volumes together are larger than the pool. That alone is no harm.
    Overcommitted {
        /// Their size.
        promised: ByteCount,
        /// What they can use in all.
        usable: ByteCount,
    },
}

impl Default for SpaceRules {
    fn default() -> SpaceRules {
        SpaceRules { warn_at: WARN_AT.to_vec(), reserve: Reserve::default() }
    }
}

impl Default for Reserve {
    /// Nothing is kept.
    fn default() -> Reserve {
        Reserve::Bytes(ByteCount(0))
    }
}

impl Reserve {
    /// The bytes that are kept of so many.
    pub fn of(&self, usable: ByteCount) -> ByteCount {
        match self {
            Reserve::Percent(percent) => {
                ByteCount((u128::from(usable.0) * u128::from(*percent)).div_ceil(100) as u64)
            }
            Reserve::Bytes(bytes) => *bytes,
        }
    }
}

impl FromStr for Reserve {
    type Err = String;

    fn from_str(text: &str) -> Result<Reserve, String> {
        let fail = || {
            format!(
                "{text:?} is not a valid reserve; write a share below 100 % or a size, as in \"5%\" or \
                 \"20GiB\""
            )
        };
        match text.trim().strip_suffix('%') {
            Some(percent) => match percent.trim().parse() {
                Ok(percent) if percent < 100 => Ok(Reserve::Percent(percent)),
                _ => Err(fail()),
            },
            None => {
                let bytes: ByteCount = text.parse().map_err(|_| fail())?;
                let has_unit = text.contains(|c: char| c.is_ascii_alphabetic());
                match has_unit || bytes == ByteCount(0) {
                    true => Ok(Reserve::Bytes(bytes)),
                    false => Err(format!(
                        "{text:?} has no unit; write a share or a size, as in \"5%\" or \"20GiB\""
                    )),
                }
            }
        }
    }
}

impl fmt::Display for Reserve {
    /// A text that reads back as the same reserve.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Reserve::Percent(percent) => write!(f, "{percent}%"),
            Reserve::Bytes(bytes) => match bytes.to_string() {
                text if text.parse() == Ok(*bytes) => f.write_str(&text),
                _ => write!(f, "{}B", bytes.0),
            },
        }
    }
}

impl From<Reserve> for String {
    fn from(reserve: Reserve) -> String {
        reserve.to_string()
    }
}

impl TryFrom<String> for Reserve {
    type Error = String;

    fn try_from(text: String) -> Result<Reserve, String> {
        text.parse()
    }
}

impl Space {
    /// The space of a pool as its metadata have it.
    pub fn of(state: &PoolState) -> Space {
        let groups = 1..state.groups().len() as u32;
        groups.fold(Space::of_group(state, 0), |all, group| all.and(&Space::of_group(state, group)))
    }

    /// The space of a group of a pool's sets, for its volumes.
    pub fn of_group(state: &PoolState, group: u32) -> Space {
        let bytes =
            |slots: u64| ByteCount(slots.saturating_mul(state.geometry().extent_sectors * SECTOR_BYTES));
        let volumes = || state.volumes().filter(move |volume| volume.group == group);
        Space {
            extent: bytes(1),
            usable: bytes(state.slot_count_of(group)),
            used: bytes(state.used_slot_count_of(group)),
            reserved: bytes(state.reserved_slot_count_of(group)),
            promised: ByteCount(volumes().map(|volume| volume.sectors * SECTOR_BYTES).sum()),
            thin: volumes().any(|volume| volume.thin),
        }
    }

    /// Both together.
    pub fn and(&self, other: &Space) -> Space {
        let sum = |one: ByteCount, other: ByteCount| ByteCount(one.0 + other.0);
        Space {
            extent: self.extent,
            usable: sum(self.usable, other.usable),
            used: sum(self.used, other.used),
            reserved: sum(self.reserved, other.reserved),
            promised: sum(self.promised, other.promised),
            thin: self.thin || other.thin,
        }
    }

    /// The same with so many bytes more in use, of which the metadata do not know yet.
    pub fn with_more(self, bytes: u64) -> Space {
        Space { used: ByteCount(self.used.0 + bytes), ..self }
    }

    /// What is used or reserved.
    pub fn taken(&self) -> ByteCount {
        ByteCount(self.used.0 + self.reserved.0)
    }

    /// What is free.
    pub fn free(&self) -> ByteCount {
        ByteCount(self.usable.0.saturating_sub(self.taken().0))
    }

    /// How full it is, percent, rounded down.
    pub fn fill_percent(&self) -> u64 {
        (u128::from(self.taken().0) * 100 / u128::from(self.usable.0.max(1))) as u64
    }

    /// Whether volumes are promised more than there is. Only thin ones can be.
    pub fn is_overcommitted(&self) -> bool {
        self.thin && self.promised > self.usable
    }

    /// What an administrator should know of a pool whose volumes are promised more than it has, before they are written to: the
    /// fact and the remedy.
    pub fn overcommitment(pool: &str, usable: ByteCount, promised: ByteCount) -> String {
        format!(
            "pool {pool:?} is overcommitted: volumes can use {usable:#}, and {promised:#} are promised to them; add drives before \
             it is full (tier0 status), for then writes to thin volumes fail"
        )
    }

    /// What an administrator should know, the worst first.
    pub fn warnings(&self, rules: &SpaceRules) -> Vec<SpaceWarning> {
        let mut warnings = Vec::new();
        if !self.thin {
            return warnings;
        }
        let (free, reserve) = (self.free(), rules.reserve.of(self.usable));
        if free.0 == 0 {
            warnings.push(SpaceWarning::Full);
        } else if free.0 < reserve.0.next_multiple_of(self.extent.0.max(1)) + self.extent.0 {
            warnings.push(SpaceWarning::AtReserve { free, reserve });
        }
        let percent = self.fill_percent();
        let met = rules.warn_at.iter().filter(|at| percent >= u64::from(**at)).max();
        if let Some(at) = met {
            let (taken, usable) = (self.taken(), self.usable);
            warnings.push(SpaceWarning::Filling { percent, taken, usable, at: *at });
        }
        if self.is_overcommitted() {
            let (promised, usable) = (self.promised, self.usable);
            warnings.push(SpaceWarning::Overcommitted { promised, usable });
        }
        warnings
    }
}

impl SpaceWarning {
    /// How urgent it is, to compare: 0 is none at all, 101 and more means that writes fail.
    pub fn urgency(&self) -> u8 {
        match self {
            SpaceWarning::Overcommitted { .. } => 0,
            SpaceWarning::Filling { at, .. } => *at,
            SpaceWarning::AtReserve { .. } => 101,
            SpaceWarning::Full => 102,
        }
    }

    /// Whether writes that need space fail.
    pub fn refuses_writes(&self) -> bool {
        self.urgency() > 100
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn space(used: u64) -> Space {
        Space {
            extent: ByteCount(1),
            usable: ByteCount(1000),
            used: ByteCount(used),
            reserved: ByteCount(100),
            promised: ByteCount(900),
            thin: true,
        }
    }

    fn urgencies(space: Space, rules: &SpaceRules) -> Vec<u8> {
        space.warnings(rules).iter().map(SpaceWarning::urgency).collect()
    }

    /// A thin pool that filled told nothing before writes failed.
    #[test]
    fn warnings_come_one_after_the_other() {
        let rules = SpaceRules::default();
        for (used, urgent) in [
            (699, &[][..]),
            (700, &[80]),
            (799, &[80]),
            (800, &[90]),
            (850, &[95]),
            (899, &[95]),
            (900, &[102, 95]),
        ] {
            assert_eq!(urgencies(space(used), &rules), urgent, "{used}");
        }
    }

    #[test]
    fn the_reserve_is_full_before_the_pool_is() {
        let rules = SpaceRules { warn_at: vec![50], reserve: Reserve::Percent(10) };
        assert_eq!(urgencies(space(799), &rules), [50]);
        assert_eq!(urgencies(space(800), &rules), [101, 50]);
        assert_eq!(urgencies(space(900), &rules), [102, 50]);
        // What is free beside the reserve is no whole extent.
        let pieces = |used| Space { extent: ByteCount(30), ..space(used) };
        assert_eq!(urgencies(pieces(751), &rules), [101, 50]);
        assert_eq!(urgencies(pieces(750), &rules), [50]);
    }

    #[test]
    fn only_thin_volumes_fill_a_pool() {
        let thick = Space { thin: false, promised: ByteCount(1000), ..space(900) };
        assert_eq!(thick.warnings(&SpaceRules::default()), []);
        let promised = Space { promised: ByteCount(1001), ..space(0) };
        let [warning] = promised.warnings(&SpaceRules::default())[..] else { panic!("one warning") };
        assert_eq!((warning.urgency(), warning.refuses_writes()), (0, false));
    }

    #[test]
    fn reserves_are_shares_or_sizes_and_read_back() {
        for (text, bytes) in [("5%", 51), ("0%", 0), ("1KiB", 1024), ("1234567B", 1_234_567), ("0", 0)] {
            let reserve: Reserve = text.parse().expect("a reserve");
            assert_eq!(reserve.of(ByteCount(1001)).0, bytes, "{text}");
            assert_eq!(reserve.to_string().parse(), Ok(reserve), "{text}");
        }
        for text in ["100%", "5.5%", "-1%", "%", "x"] {
            assert!(text.parse::<Reserve>().is_err(), "{text}");
        }
    }
}
