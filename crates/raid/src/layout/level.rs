//! The RAID levels by name.

use std::fmt;
use std::str::FromStr;

use thiserror::Error;

/// How a set keeps its data through the loss of drives.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum RaidLevel {
    /// Striping without redundancy.
    Raid0,
    /// Every column a copy of the same data.
    Raid1,
    /// Striping over pairs of columns that mirror each other.
    Raid10,
    /// Rotating parity P: survives one lost column.
    Raid5,
    /// Striping over groups that are RAID 5 each: survives one lost column per group.
    Raid50,
    /// Rotating parities P and Q: survives two lost columns.
    Raid6,
}

impl RaidLevel {
    /// All levels, in the order of their names as numbers.
    pub const ALL: [RaidLevel; 6] = [
        RaidLevel::Raid0,
        RaidLevel::Raid1,
        RaidLevel::Raid5,
        RaidLevel::Raid6,
        RaidLevel::Raid10,
        RaidLevel::Raid50,
    ];

    /// The name in configurations and reports, such as `raid10`.
    pub const fn name(self) -> &'static str {
        match self {
            RaidLevel::Raid0 => "raid0",
            RaidLevel::Raid1 => "raid1",
            RaidLevel::Raid10 => "raid10",
            RaidLevel::Raid5 => "raid5",
            RaidLevel::Raid50 => "raid50",
            RaidLevel::Raid6 => "raid6",
        }
    }
}

impl fmt::Display for RaidLevel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// A text that names no RAID level.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
#[error("{0:?} is not a RAID level; use raid0, raid1, raid5, raid6, raid10 or raid50")]
pub struct UnknownLevel(String);

impl FromStr for RaidLevel {
    type Err = UnknownLevel;

    /// Reads [`RaidLevel::name`], in any case.
    fn from_str(text: &str) -> Result<RaidLevel, UnknownLevel> {
        let named = |level: &RaidLevel| level.name().eq_ignore_ascii_case(text);
        RaidLevel::ALL.into_iter().find(named).ok_or_else(|| UnknownLevel(text.to_owned()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_read_back() {
        for level in RaidLevel::ALL {
            assert_eq!(level.name().parse(), Ok(level));
        }
        assert_eq!("RAID6".parse(), Ok(RaidLevel::Raid6));
        let error = "raid7".parse::<RaidLevel>().unwrap_err().to_string();
        assert!(error.contains("\"raid7\"") && error.contains("use raid0"), "{error}");
    }
}
