//! The ceilings of volumes: what hosts may ask of them in a second.
//!
//! A checkpoint has them behind everything else, so programs from before this ignore them, and forget them with their next
//! checkpoint. What they do not know is their record: it must be covered by a checkpoint before they can open the pool.

use serde::{Deserialize, Serialize};

use crate::state::{MetaError, PoolState};

/// What hosts may ask of a volume in a second. Zero is no ceiling.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Ceilings {
    /// Requests.
    pub iops_max: u32,
    /// Megabytes of 10^6 bytes.
    pub mbps_max: u32,
    /// The seconds of which a budget that is not used may be used later.
    pub burst_seconds: u32,
}

/// Ceilings as far as something is said of them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CeilingsChange {
    /// Requests a second.
    pub iops_max: Option<u32>,
    /// Megabytes of 10^6 bytes a second.
    pub mbps_max: Option<u32>,
    /// The seconds of which a budget that is not used may be used later.
    pub burst_seconds: Option<u32>,
}

impl Ceilings {
    /// The most that each can be. With more requests, the time of one would have less than two digits in nanoseconds.
    pub const MOST: Ceilings = Ceilings { iops_max: 10_000_000, mbps_max: 100_000, burst_seconds: 3600 };

    /// Whether hosts are not limited.
    pub fn are_none(&self) -> bool {
        self.iops_max == 0 && self.mbps_max == 0
    }
}

impl CeilingsChange {
    /// The ceilings after the change. Where both ceilings are lifted, the burst is removed too.
    pub fn of(self, known: Ceilings) -> Ceilings {
        let changed = Ceilings {
            iops_max: self.iops_max.unwrap_or(known.iops_max),
            mbps_max: self.mbps_max.unwrap_or(known.mbps_max),
            burst_seconds: self.burst_seconds.unwrap_or(known.burst_seconds),
        };
        if changed.are_none() { Ceilings::default() } else { changed }
    }
}

impl PoolState {
    /// The ceilings of a volume, by its number.
    pub fn ceilings(&self, volume: u32) -> Ceilings {
        self.inventory.ceilings.get(&volume).copied().unwrap_or_default()
    }

    pub(super) fn set_ceilings(&mut self, volume: u32, ceilings: Ceilings) {
        match ceilings.are_none() {
            true => self.inventory.ceilings.remove(&volume),
            false => self.inventory.ceilings.insert(volume, ceilings),
        };
    }

    /// Whether ceilings can be a volume's.
    pub(crate) fn check_ceilings(&self, volume: u32, ceilings: Ceilings) -> Result<(), MetaError> {
        self.check_volume(volume)?;
        let (most, is_none) = (Ceilings::MOST, ceilings.are_none());
        let is_sound = ceilings.iops_max <= most.iops_max
            && ceilings.mbps_max <= most.mbps_max
            && ceilings.burst_seconds <= most.burst_seconds
            && !(is_none && ceilings.burst_seconds > 0);
        match is_sound {
            true => Ok(()),
            false => {
                Err(MetaError::Contradiction { fact: format!("ceilings of volume {volume}: {ceilings:?}") })
            }
        }
    }
}
