//! The volumes of a pool.

use serde::{Deserialize, Serialize};
use tier0_units::WriteCache;
use uuid::Uuid;

use crate::state::group::is_first_group;

/// The most volumes that a family has at a time.
pub const FAMILY_VOLUMES_MAX: u8 = 128;

/// The place of a volume in the family of another one. Extents of a family's volumes with the same number can have one
/// slot together, and one shard owns all of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Branch {
    /// The number of the family's first volume, which may be gone.
    pub family: u32,
    /// The branch's number in the family, from 1 to [`FAMILY_VOLUMES_MAX`] - 1: a later volume may have that of one that is
    /// gone. The first volume has 0.
    pub number: u8,
}

/// What the name of a volume begins with that is being made of another one.
const UNFINISHED: char = '~';

/// A volume of a pool.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Volume {
    /// Its number in the pool; never used again for another volume.
    pub number: u32,
    /// Its identity.
    pub id: Uuid,
    /// Its name.
    pub name: String,
    /// Its size.
    pub sectors: u64,
    /// Whether space is taken when it is written to; a thick volume has its space reserved from the beginning.
    pub thin: bool,
    /// When its writes are acknowledged, unless its pool's write cache is off.
    pub write_cache: WriteCache,
    /// Whether its reads use the read cache, unless its pool's is off. A record of its own says where not
    /// ([`crate::MetaRecord::create`]), which programs from before this refuse.
    #[serde(skip, default = "on")]
    pub read_cache: bool,
    /// The group whose slots its extents get.
    #[serde(default, skip_serializing_if = "is_first_group")]
    pub group: u32,
    /// Its place in the family of another volume; none of one that is the first of a family of its own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub branch: Option<Branch>,
}

/// From whose slots something may be allocated.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Claim {
    /// The group.
    pub group: u32,
    /// Whether it is for thin volumes: those get nothing that thick ones have reserved.
    pub thin: bool,
}

impl Volume {
    /// Its family: the number of the first volume of it.
    pub fn family(&self) -> u32 {
        self.branch.map_or(self.number, |branch| branch.family)
    }

    /// The number of its branch in its family.
    pub fn branch_number(&self) -> u8 {
        self.branch.map_or(0, |branch| branch.number)
    }

    /// The same under the name that it has while it is being made of another one; users can give no volume such a name.
    pub fn unfinished(self) -> Volume {
        Volume { name: format!("{UNFINISHED}{}", self.name), ..self }
    }

    /// Whether it is being made, or a crash has left it so: it is to be deleted then.
    pub fn is_unfinished(&self) -> bool {
        self.name.starts_with(UNFINISHED)
    }

    /// What its extents may claim.
    pub fn claim(&self) -> Claim {
        Claim { group: self.group, thin: self.thin }
    }
}

fn on() -> bool {
    true
}

pub(crate) const WRITE_CACHES: [WriteCache; 3] = [WriteCache::Durable, WriteCache::Volatile, WriteCache::Off];

/// The mode's number on drives.
pub(crate) fn write_cache_code(mode: WriteCache) -> u8 {
    WRITE_CACHES.iter().position(|known| *known == mode).expect("every mode is listed") as u8
}
