//! Where the write log lies: mirrored rings, one for each *lane* of each shard.
//!
//! Sets of a group have a lane of their own, so that what waits for slow drives does not keep the log of fast ones from
//! being released (decision 0011).

use serde::{Deserialize, Serialize};
use uuid::Uuid;

/// The place of the write log. Without rings there is none.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LogPlacement {
    /// By shard, and in each by lane.
    pub rings: Vec<LogRing>,
    /// Lanes of a shard: one for each group of sets, but groups that were added since share the first.
    #[serde(default = "one_lane", skip_serializing_if = "is_one_lane")]
    pub lanes: u32,
}

impl Default for LogPlacement {
    fn default() -> LogPlacement {
        LogPlacement { rings: Vec::new(), lanes: 1 }
    }
}

fn one_lane() -> u32 {
    1
}

fn is_one_lane(lanes: &u32) -> bool {
    *lanes == 1
}

/// The ring of a lane of a shard.
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
    /// How many shards have a part of it.
    pub fn shards(&self) -> usize {
        self.rings.len() / self.lanes.max(1) as usize
    }

    /// The rings of a shard, by lane; none where there is no log.
    pub fn of_shard(&self, shard: usize) -> &[LogRing] {
        self.rings.chunks(self.lanes.max(1) as usize).nth(shard).unwrap_or(&[])
    }

    /// The lane of a group of sets.
    pub fn lane_of(&self, group: u32) -> usize {
        if group < self.lanes { group as usize } else { 0 }
    }

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
