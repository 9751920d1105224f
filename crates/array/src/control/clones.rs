//! Clones of volumes: a new volume of the same family, whose extents have the slots of the other one's until either is written
//! ([`tier0_cache`] copies them then).
//!
//! 1. What the log has of the volume goes into its place, while hosts go on.
//! 2. Every shard lets wait what writes to the volume, and brings the rest into place. What was acknowledged before is in the
//!    clone, and nothing of what waits: the clone is what a power cut at that moment would have left.
//! 3. One record makes the clone and its map. A crash leaves all of it or nothing.
//! 4. The shards learn whose the slots are, and what waited goes on.

use std::rc::Rc;
use std::sync::Arc;

use tier0_pool::{Branch, ExtentMap, MetaRecord, SharedRun, Volume as VolumeRecord};
use tier0_units::ExtentId;
use tier0_world::IoError;

use super::Control;
use super::admin::Done;
use super::volumes::{Meant, refused};
use crate::admin::AdminError;
use crate::message::volumes::VolumesCommand;

impl Control {
    pub(super) async fn clone_volume(self: &Rc<Self>, name: &str, clone: &str) -> Done {
        let _turn = self.turn.acquire(1).await;
        let Meant { pool, record, number } = self.volume_meant(name)?;
        self.check_is_new(clone)?;
        let record = self.record_of_clone(pool, &record, clone)?;
        let settled = self.command(|reply| VolumesCommand::Settle { number, reply }).await?;
        all(settled).map_err(|error| not_in_place(name, error))?;
        let held = self.command(|reply| VolumesCommand::Hold { number, reply }).await?;
        let shared = match all(held) {
            Ok(()) => self.commit_clone(pool, name, &record).await,
            Err(error) => Err(not_in_place(name, error)),
        };
        let added = match shared {
            Ok(shared) => self.add_clone(pool, &record, shared).await,
            Err(error) => Err(error),
        };
        self.command(|reply| VolumesCommand::Open { number, reply }).await?;
        self.offer_volume(added?).await?;
        Ok(format!("volume {clone} is a clone of {name}, and served"))
    }

    /// The record of a clone with this name, unless the volume can have none.
    fn record_of_clone(
        &self,
        pool: usize,
        of: &VolumeRecord,
        clone: &str,
    ) -> Result<VolumeRecord, AdminError> {
        if !of.thin {
            return Err(AdminError::new(format!(
                "volume {:?} is thick, and only thin volumes can be cloned: create a thin one (tier0 volume create --thin) and \
                 copy what it holds",
                of.name
            )));
        }
        let state = self.core(pool).metadata.state();
        let Some(branch) = state.free_branch(of.family()) else {
            return Err(AdminError::new(format!(
                "volume {:?} has as many clones as there can be; delete one of them (tier0 volume delete)",
                of.name
            )));
        };
        Ok(VolumeRecord {
            number: state.next_volume(),
            id: self.new_id(),
            name: clone.to_owned(),
            branch: Some(Branch { family: of.family(), number: branch }),
            ..of.clone()
        })
    }

    /// Makes the clone stable; its map.
    async fn commit_clone(
        &self,
        pool: usize,
        name: &str,
        record: &VolumeRecord,
    ) -> Result<ExtentMap, AdminError> {
        let core = self.core(pool);
        let (count, of) = {
            let state = core.metadata.state();
            (state.extents_of(record.sectors) as u32, state.volume_named(name).map(|volume| volume.number))
        };
        let of = of.ok_or_else(|| AdminError::failed("the volume is gone"))?;
        let first = ExtentId { volume: record.number, index: 0 };
        let records = vec![
            MetaRecord::VolumeCreated(record.clone()),
            MetaRecord::ShareExtents(vec![SharedRun { of, first, count }]),
        ];
        core.metadata.commit(records).await.map_err(refused)?;
        Ok(core.metadata.state().map(record.number).cloned().unwrap_or_default())
    }

    /// Makes the clone known to the shards; its number in the array.
    async fn add_clone(
        &self,
        pool: usize,
        record: &VolumeRecord,
        shared: ExtentMap,
    ) -> Result<u32, AdminError> {
        let (number, shared) = (self.number_volume(pool, record.number), Arc::new(shared));
        self.command(|reply| VolumesCommand::Add {
            number,
            pool,
            record: record.clone(),
            shared: Some(shared.clone()),
            reply,
        })
        .await?;
        Ok(number)
    }
}

fn all(results: Vec<Result<(), IoError>>) -> Result<(), IoError> {
    results.into_iter().collect()
}

/// What hosts have written to a volume is not in its place.
fn not_in_place(name: &str, error: IoError) -> AdminError {
    let why = match error {
        IoError::Timeout => "it took longer than its hosts can wait".to_owned(),
        error => error.to_string(),
    };
    AdminError::failed(format!(
        "volume {name:?} is not cloned, and its hosts go on: what they have written could not be brought from the log into \
         its place: {why}; look at \"tier0 status\", and try again when less is written"
    ))
}
