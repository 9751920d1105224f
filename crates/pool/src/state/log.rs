//! Where the write log lies: one mirrored ring per shard.

use serde::{Deserialize, Serialize};
use uuid::Uuid;

/// The place of the write log. Without rings there is none.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct LogPlacement {
    /// By shard.
    pub rings: Vec<LogRing>,
}

/// The ring of a shard.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LogRing {
    /// Its identity; a ring that is placed anew gets a new one.
    pub id: Uuid,
    /// Its copies, on different members, 1 to 3. A copy on a lost member is not to be believed.
    pub copies: Vec<LogCopy>,
    /// Nothing has been written to it yet: it is void, and whatever lies in its place is older. The next opening makes it.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_void: bool,
}

/// A copy of a ring.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LogCopy {
    /// The member it lies on.
    pub member: u32,
    /// Its first sector on that drive.
    pub first_sector: u64,
    /// Its length in sectors.
    pub sectors: u64,
}

impl LogPlacement {
    /// All copies of all rings.
    pub fn copies(&self) -> impl Iterator<Item = &LogCopy> {
        self.rings.iter().flat_map(|ring| &ring.copies)
    }

    /// The same log when all its rings are made.
    pub fn made(&self) -> LogPlacement {
        let mut made = self.clone();
        made.rings.iter_mut().for_each(|ring| ring.is_void = false);
        made
    }

    /// Rings that are to be made.
    pub fn void_rings(&self) -> impl Iterator<Item = &LogRing> {
        self.rings.iter().filter(|ring| ring.is_void)
    }
}
