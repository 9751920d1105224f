//! Groups of sets that come while a pool is open.

use super::core::Metadata;
use super::superblock;
use crate::features::GROUPS;
use crate::{MetaRecord, PoolError};

impl Metadata {
    /// Makes records true by which a pool has another group. The superblocks say first that the pool has groups: a build that
    /// does not know of them must not touch it.
    ///
    /// # Errors
    /// The records contradict the state, the superblocks have no room for the groups of drives, or nothing can be committed any
    /// more.
    pub async fn add_group(&self, records: Vec<MetaRecord>) -> Result<(), PoolError> {
        self.state().clone().apply_all(&records)?;
        let core = self.0.clone();
        let task = async move {
            {
                let mut label = core.labels.borrow().label.clone();
                label.features.incompatible |= GROUPS;
                if !superblock::fits_with_starts(&label) {
                    return Err(PoolError::LabelTooLarge);
                }
            }
            core.publish_and_settle(1, |label| label.features.incompatible |= GROUPS).await?;
            core.enqueue(records).await
        };
        // A task of its own, so that it goes on if the caller does not wait.
        self.0.world.spawn(task).await
    }
}
