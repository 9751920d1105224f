//! When a write is acknowledged.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};
use thiserror::Error;

/// What a volume's write cache promises to its host.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum WriteCache {
    /// Acknowledged when stable in every copy of the log: nothing acknowledged is lost.
    #[default]
    Durable,
    /// Acknowledged from memory: what was not flushed may be lost, as the host is told.
    Volatile,
    /// Acknowledged when it is on the drives of its RAID set.
    Off,
}

/// A text that is no [`WriteCache`].
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("{0:?} is not a write cache mode; use durable, volatile or off")]
pub struct UnknownWriteCache(String);

impl WriteCache {
    /// Its name, as in the array file.
    pub const fn name(self) -> &'static str {
        match self {
            WriteCache::Durable => "durable",
            WriteCache::Volatile => "volatile",
            WriteCache::Off => "off",
        }
    }
}

impl fmt::Display for WriteCache {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

impl FromStr for WriteCache {
    type Err = UnknownWriteCache;

    fn from_str(text: &str) -> Result<WriteCache, UnknownWriteCache> {
        let all = [WriteCache::Durable, WriteCache::Volatile, WriteCache::Off];
        all.into_iter().find(|mode| mode.name() == text).ok_or_else(|| UnknownWriteCache(text.to_owned()))
    }
}
