//! Clones of volumes: a new volume of the same family, whose extents have the slots of the other one's until either is written
//! ([`tier0_cache`] copies them then).
//!
//! 1. What the log has of the volume goes into its place, while hosts go on.
//! 2. Every shard lets wait what writes to the volume, and brings the rest into place. What was acknowledged before is in the
//!    clone, and nothing of what waits: the clone is what a power cut at that moment would have left.
//! 3. The clone is made under a name that no user can give, a few extents in a turn, and the shards learn whose the slots are.
//! 4. It gets its name, and what waited goes on: it becomes durable behind the clone. A crash before that leaves nothing: what
//!    has no name yet is taken away when the pool is opened.

use std::rc::Rc;
use std::sync::Arc;

use tier0_pool::metadata::Commit;
use tier0_pool::{
    Branch, ExtentMap, FAMILY_VOLUMES_MAX, MetaRecord, PoolError, PoolState, SharedRun,
    Volume as VolumeRecord,
};
use tier0_units::{ExtentId, SectorCount, SlotRef};

use super::Volumes;
use super::settle::{Purpose, all};
use crate::admin::AdminError;
use crate::context::Done;
use crate::message::volumes::{SharedExtents, VolumesCommand};
use crate::volumes::lifecycle::Meant;

/// Extents that are shared in a turn.
const EXTENTS_AT_ONCE: u32 = 4096;
const CLONE: Purpose = Purpose { verb: "clone", done: "cloned" };

impl Volumes {
    pub(crate) async fn clone_volume(self: &Rc<Self>, name: &str, clone: &str) -> Done {
        let meant = || {
            let Meant { pool, record, number } = self.volume_meant(name)?;
            self.check_is_new(clone)?;
            self.record_of_clone(pool, &record, clone)?;
            Ok((pool, vec![(name.to_owned(), number)]))
        };
        self.settle(name, CLONE, meant).await?;
        let _turn = self.turn.acquire(1).await;
        let Meant { pool, record, number } = self.volume_meant(name)?;
        self.check_is_new(clone)?;
        let (of, record) = (record.number, self.record_of_clone(pool, &record, clone)?);
        let held = self.command(|reply| VolumesCommand::Hold { number, reply }).await?;
        let shared = match all(held) {
            Ok(()) => self.share_all(pool, of, &record).await,
            Err(error) => Err(CLONE.not_in_place(name, error)),
        };
        self.command(|reply| VolumesCommand::Open { number, reply }).await?;
        for commit in shared? {
            commit.await.map_err(AdminError::from)?;
        }
        self.add_volume(pool, &record).await?;
        Ok(format!("created volume {clone} as a clone of {name}{}", self.what_is_short(pool, &record)))
    }

    /// What an administrator should know of a pool that has less space than both may need.
    fn what_is_short(&self, pool: usize, record: &VolumeRecord) -> String {
        let state = self.core(pool).metadata.state();
        let bytes = |extents: u64| SectorCount(extents * state.geometry().extent_sectors).bytes();
        let shared = state.map(record.number).map_or(0, ExtentMap::count);
        let free = state.room_in(record.group);
        match shared > free {
            true => format!(
                "; they share {}, and {} are free for new writes to either: when that is used up, such \
                 writes fail with ENOSPC",
                bytes(shared),
                bytes(free)
            ),
            false => String::new(),
        }
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
                "volume {:?} is thick, and only thin volumes can be cloned; create a thin volume (tier0 \
                 volume create --thin) and copy the data",
                of.name
            )));
        }
        let state = self.core(pool).metadata.state();
        let Some(branch) = state.free_branch(of.family()) else {
            return Err(AdminError::new(format!(
                "volume {:?} and its clones have reached the limit of {} clones; delete one of them (tier0 \
                 volume delete)",
                of.name,
                FAMILY_VOLUMES_MAX - 1
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

    /// Makes the clone and its extents known to the metadata, a few extents in a turn, and to the shards. What hosts write from
    /// then on becomes durable behind it, so they need not wait for the commits, which are returned.
    async fn share_all(
        &self,
        pool: usize,
        of: u32,
        record: &VolumeRecord,
    ) -> Result<Vec<Commit>, AdminError> {
        let metadata = &self.core(pool).metadata;
        let count = metadata.state().extents_of(record.sectors) as u32;
        let unfinished = MetaRecord::create(record.clone().unfinished());
        // Whatever comes after it cannot be refused.
        metadata.state().check(&unfinished[0]).map_err(PoolError::Refused)?;
        let mut commits = vec![metadata.commit(unfinished)];
        for index in (0..count).step_by(EXTENTS_AT_ONCE as usize) {
            let first = ExtentId { volume: record.number, index };
            let run = SharedRun { of, first, count: EXTENTS_AT_ONCE.min(count - index) };
            commits.push(metadata.commit(vec![MetaRecord::ShareExtents(vec![run])]));
            // The volume is held, so these are what the record finds, whenever it is carried out.
            let extents: Vec<(u32, SlotRef)> = {
                let state = metadata.state();
                let own = state.map(of).into_iter().flat_map(|map| map.iter_from(index));
                own.take_while(|(at, _)| *at - index < EXTENTS_AT_ONCE).collect()
            };
            let shared = SharedExtents { volume: record.number, family: record.family(), extents };
            let extents = Arc::new(shared);
            self.command(|reply| VolumesCommand::Share { pool, extents: extents.clone(), reply }).await?;
        }
        let named = MetaRecord::VolumeRenamed { volume: record.number, name: record.name.clone() };
        commits.push(metadata.commit(vec![named]));
        Ok(commits)
    }
}

/// The records that take away what a crash has left of clones that were being made.
pub fn without_unfinished(state: &PoolState) -> Vec<MetaRecord> {
    let unfinished = state.volumes().filter(|volume| volume.is_unfinished());
    unfinished.map(|volume| MetaRecord::VolumeDeleted { volume: volume.number }).collect()
}
