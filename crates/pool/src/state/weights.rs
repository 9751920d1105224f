//! The weights of volumes: how much each gets in comparison with the others where writers are delayed.
//!
//! A checkpoint has them behind everything else, so programs from before this ignore them, and forget them with their next
//! checkpoint. What they do not know is their record: it must be covered by a checkpoint before they can open the pool.

use crate::record::MetaRecord;
use crate::state::{MetaError, PoolState};

/// The weight of a volume of which nothing is said.
pub const WEIGHT_DEFAULT: u32 = 10;
/// The greatest weight; the least is 1.
pub const WEIGHT_MAX: u32 = 100;

/// Whether a number can be a weight.
pub fn is_weight(weight: u32) -> bool {
    (1..=WEIGHT_MAX).contains(&weight)
}

impl PoolState {
    /// The weight of a volume, by its number.
    pub fn weight(&self, volume: u32) -> u32 {
        self.inventory.weights.get(&volume).copied().unwrap_or(WEIGHT_DEFAULT)
    }

    pub(super) fn set_weight(&mut self, volume: u32, weight: u32) {
        match weight {
            WEIGHT_DEFAULT => self.inventory.weights.remove(&volume),
            weight => self.inventory.weights.insert(volume, weight),
        };
    }

    /// Whether a weight can be a volume's.
    pub(crate) fn check_weight(&self, volume: u32, weight: u32) -> Result<(), MetaError> {
        self.check_volume(volume)?;
        match is_weight(weight) {
            true => Ok(()),
            false => Err(MetaError::Contradiction { fact: format!("weight {weight} of volume {volume}") }),
        }
    }
}

impl MetaRecord {
    /// The record that changes a volume's weight; none where nothing is said or it is so already.
    pub fn weigh(volume: u32, known: u32, wanted: Option<u32>) -> Option<MetaRecord> {
        let weight = wanted.filter(|weight| *weight != known)?;
        Some(MetaRecord::WeightChanged { volume, weight })
    }
}
