//! What a pool has done in a shard.

use tier0_control::{LaneStats, PoolStats};

use crate::shard::Shard;

impl Shard {
    /// What a pool has done in this shard.
    pub(crate) fn pool_stats(&self, number: usize) -> PoolStats {
        let pool = self.pool(number);
        let mut stats = PoolStats::default();
        for volume in self.volumes.borrow().iter().flatten() {
            if std::rc::Rc::ptr_eq(&volume.pool, pool) {
                stats.volumes.insert(volume.number, volume.stats.snapshot());
            }
        }
        for (number, lane) in pool.lanes().iter().enumerate().filter(|(_, lane)| lane.write_back.has_log()) {
            let (log, destage) = (lane.write_back.log_stats(), lane.write_back.destage_stats());
            stats.lanes.insert(number, LaneStats { log, destage });
        }
        stats.tables = pool.slot_io.table_loads();
        let members = pool.slot_io.raid().members();
        (0..members.count()).for_each(|place| stats.add_drive(place as u32, members.drive(place)));
        stats
    }
}
