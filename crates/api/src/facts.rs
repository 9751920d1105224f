//! What the pools of an array consist of: all that an array file says of them, with the values that are in use.

use std::fmt;
use std::path::PathBuf;
use std::str::FromStr;

use serde::{Deserialize, Serialize};
use tier0_units::{ByteCount, WriteCache};
use uuid::Uuid;

use crate::{CacheSwitches, Ceilings, DriveClass, DriveState, VolumePlace};

/// A pool.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct PoolFacts {
    /// Its name.
    pub name: String,
    /// The RAID level of its sets.
    pub raid: String,
    /// Drives of a set.
    pub set_size: usize,
    /// RAID 5 groups of a RAID 50 set; 1 at other levels.
    pub groups: usize,
    /// Bytes of a stripe unit.
    pub stripe_unit_bytes: u64,
    /// Bytes of a chunklet.
    pub chunklet_bytes: u64,
    /// Bytes of an extent.
    pub extent_bytes: u64,
    /// Chunklets that stay free on each drive for rebuilding.
    pub spare_chunklets: u64,
    /// Chunklets of the smallest drive.
    pub chunklets_min: u64,
    /// Whether pages carry checksums.
    pub checksums: bool,
    /// Bytes of the write log on each of its drives.
    pub log_bytes: u64,
    /// Parts of the log: one for each shard that the array was created for.
    pub log_parts: usize,
    /// The groups of its sets where they have names; none where all sets are as above.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub set_groups: Vec<GroupFacts>,
    /// The groups that have left it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub gone_groups: Vec<GroupFacts>,
    /// Its drives, those that are lost included.
    pub drives: Vec<DriveFacts>,
    /// Its volumes.
    pub volumes: Vec<VolumeFacts>,
    /// Its switches over the caches of its volumes.
    #[serde(default)]
    pub cache: CacheSwitches,
    /// When the administrator is told that it fills, and what thin volumes do not get; none of drives that no server
    /// serves.
    #[serde(default)]
    pub space: Option<SpaceFacts>,
}

/// A group of a pool's sets.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct GroupFacts {
    /// Its name; empty for a pool that is a single group.
    pub name: String,
    /// The level of its sets.
    pub raid: String,
    /// Drives of a set.
    pub set_size: usize,
    /// RAID 5 groups of a RAID 50 set; 1 at other levels.
    pub groups: usize,
    /// Bytes of a stripe unit.
    pub stripe_unit_bytes: u64,
    /// Chunklets that stay free on each of its drives for rebuilding.
    pub spare_chunklets: u64,
    /// Chunklets of its smallest drive.
    pub chunklets_min: u64,
    /// Whether it is leaving the pool.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub leaving: bool,
}

/// A drive.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct DriveFacts {
    /// Its name.
    pub name: String,
    /// Its identity in the pool; none from a server that does not tell it.
    #[serde(default)]
    #[cfg_attr(test, schemars(with = "Option<String>"))]
    pub id: Option<Uuid>,
    /// Where it is, or was last.
    pub path: Option<PathBuf>,
    /// Where it was when the server opened it, if its file was moved since.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub moved_from: Option<PathBuf>,
    /// Whether its file was deleted, so that it is gone when the server ends.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub deleted: bool,
    /// Whether something else lies where the server opened it: its file was moved or deleted, or the path leads elsewhere.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub replaced: bool,
    /// Whether what it lies on ends before the size that it had, so that a start does not recognise it.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub cut_short: bool,
    /// What kind of drive it is; none from a server that does not tell it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub class: Option<DriveClass>,
    /// Its size.
    pub size_bytes: u64,
    /// Where it stands.
    pub state: DriveState,
    /// Whether all that it holds is being copied to others, after which it is forgotten.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub leaving: bool,
    /// Whether it may hold data of volumes.
    pub for_data: bool,
    /// Whether it holds a copy of the write log.
    pub for_log: bool,
    /// What it holds of the flash read cache.
    #[serde(default, skip_serializing_if = "is_none")]
    pub flash_cache_bytes: u64,
    /// The group whose sets it has columns of, where its pool has named ones.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub group: Option<String>,
}

/// A volume.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct VolumeFacts {
    /// Its name.
    pub name: String,
    /// Its size.
    pub size_bytes: u64,
    /// Whether extents are allocated at the first write.
    pub thin: bool,
    /// When its writes are acknowledged.
    #[cfg_attr(test, schemars(with = "crate::schema::WriteCache"))]
    pub write_cache: WriteCache,
    /// Whether its reads use the read cache.
    #[serde(default = "on")]
    pub read_cache: bool,
    /// Where its extents are to lie.
    #[serde(default)]
    pub place: VolumePlace,
    /// The group of sets that it lies on, where its pool has named ones.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub group: Option<String>,
    /// What hosts may ask of it in a second; none where it has no ceilings.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ceilings: Option<Ceilings>,
    /// What it gets in comparison with other volumes where writers are delayed, 1 to 100.
    #[serde(default = "weight_default")]
    pub weight: u32,
}

/// The weight of a volume of which nothing is said.
pub(crate) fn weight_default() -> u32 {
    10
}

/// When the administrator is warned that a pool fills, and what stays free.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct SpaceFacts {
    /// At how many percent of use the administrator is warned, each once, ascending.
    pub warn_at: Vec<u8>,
    /// What stays free. Thin volumes get no new space of it.
    pub reserve: Reserve,
}

/// What of a pool thin volumes do not get, as a text: `"5%"`, `"20GiB"`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(into = "String", try_from = "String")]
pub enum Reserve {
    /// A share of what volumes can use, in percent, below 100.
    Percent(u8),
    /// A size.
    Bytes(ByteCount),
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

impl FromStr for Reserve {
    type Err = String;

    fn from_str(text: &str) -> Result<Reserve, String> {
        let fail = || {
            format!(
                "{text:?} is not a reserve; write a share below 100 % or a size, as in \"5%\" or \"20GiB\""
            )
        };
        match text.strip_suffix('%') {
            Some(percent) => {
                let percent = percent.trim().parse().ok().filter(|percent| *percent < 100);
                percent.map(Reserve::Percent).ok_or_else(fail)
            }
            None => text.parse().map(Reserve::Bytes).map_err(|_| fail()),
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

fn is_none(bytes: &u64) -> bool {
    *bytes == 0
}

fn on() -> bool {
    true
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reserve_reads_back() {
        for text in ["5%", "0B", "20GiB", "1234567B"] {
            assert_eq!(text.parse::<Reserve>().map(String::from), Ok(text.to_owned()));
        }
        for wrong in ["", "100%", "%", "much"] {
            assert!(wrong.parse::<Reserve>().is_err(), "{wrong}");
        }
    }
}
