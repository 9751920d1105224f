//! The volumes of a pool.

use serde::{Deserialize, Serialize};
use tier0_units::WriteCache;
use uuid::Uuid;

use crate::state::group::is_first_group;

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
    /// When its writes are acknowledged.
    pub write_cache: WriteCache,
    /// The group whose slots its extents get.
    #[serde(default, skip_serializing_if = "is_first_group")]
    pub group: u32,
}

/// Whose slots something is lent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Claim {
    /// The group.
    pub group: u32,
    /// Whether it is for thin volumes: those get nothing that thick ones have reserved.
    pub thin: bool,
}

impl Volume {
    /// What its extents may claim.
    pub fn claim(&self) -> Claim {
        Claim { group: self.group, thin: self.thin }
    }
}

pub(crate) const WRITE_CACHES: [WriteCache; 3] = [WriteCache::Durable, WriteCache::Volatile, WriteCache::Off];

/// The mode's number on drives.
pub(crate) fn write_cache_code(mode: WriteCache) -> u8 {
    WRITE_CACHES.iter().position(|known| *known == mode).expect("every mode is listed") as u8
}
