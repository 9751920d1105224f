//! What volumes and drives have done, as administrators see it.

use std::rc::Rc;

use super::Control;
use crate::admin::{IoReport, NamedIo, PoolIo};
use crate::message::command::ShardCommand;
use crate::stats::PoolStats;

impl Control {
    /// What a pool has done, in all shards and for its metadata.
    pub(super) async fn pool_stats(&self, number: usize) -> PoolStats {
        let mut stats = PoolStats::default();
        let shards = self.ask_all(|reply| ShardCommand::Stats { pool: number, reply }).await;
        shards.into_iter().flatten().for_each(|shard| stats.merge(shard));
        let metadata = &self.guarded(number).metadata;
        let places = 0..metadata.state().members().len() as u32;
        places.for_each(|place| stats.add_drive(place, metadata.drive(place).as_ref()));
        stats
    }

    /// What all pools have done.
    pub(super) async fn io_report(self: &Rc<Self>) -> IoReport {
        let mut pools = Vec::new();
        for (number, pool) in self.pools.iter().enumerate() {
            let stats = self.pool_stats(number).await;
            let state = pool.guarded.metadata.state();
            let volumes = state.volumes().map(|volume| NamedIo {
                name: volume.name.clone(),
                io: stats.volumes.get(&volume.number).cloned().unwrap_or_default(),
            });
            let serving = (0u32..).zip(state.members()).filter(|(_, member)| member.is_active());
            let drives = serving
                .map(|(place, member)| NamedIo { name: member.name.clone(), io: stats.of_drive(place) });
            pools.push(PoolIo {
                name: state.name().to_owned(),
                volumes: volumes.collect(),
                drives: drives.collect(),
            });
        }
        IoReport { at_ns: self.world.now().0, pools }
    }
}
