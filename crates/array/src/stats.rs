//! What a pool has done in a shard.

use std::collections::BTreeMap;
use std::rc::Rc;

use tier0_api::ConnectionIo;
use tier0_control::{LaneStats, PoolStats};
use tier0_stats::IoStats;

use crate::export_registry::HostConnection;
use crate::shard::Shard;

impl Shard {
    /// What a pool has done in this shard.
    pub(crate) fn pool_stats(&self, number: usize) -> PoolStats {
        let pool = self.pool(number);
        let mut stats = PoolStats::default();
        for volume in self.volumes.borrow().iter().flatten() {
            if Rc::ptr_eq(&volume.pool, pool) {
                stats.volumes.insert(volume.number, volume.stats.snapshot());
                stats.held_back.insert(volume.number, volume.throttle.held_back());
            }
        }
        stats.connections = self.connections_to(number);
        stats.ended_connections = self.ended_connections_to(number);
        for (number, lane) in pool.lanes().iter().enumerate().filter(|(_, lane)| lane.write_back.has_log()) {
            let (log, destage) = (lane.write_back.log_stats(), lane.write_back.destage_stats());
            let flushing = lane.write_back.status().flushing;
            stats.lanes.insert(number, LaneStats { log, destage, flushing });
        }
        stats.tables = pool.slot_io.table_loads();
        stats.flash_cache = pool.flash_cache.as_ref().map(|flash| flash.cache.status());
        stats.read_cache = pool.read_cache.as_ref().map(|cache| cache.status());
        let members = pool.slot_io.raid().members();
        (0..members.count()).for_each(|place| stats.add_drive(place as u32, members.drive(place)));
        stats
    }

    /// Connections of hosts to a pool's volumes that this shard serves.
    fn connections_to(&self, number: usize) -> Vec<ConnectionIo> {
        let hosts = self.exports().map_or_else(Vec::new, |exports| exports.connections());
        let connection = |host: HostConnection| ConnectionIo {
            id: format!("{}.{}", self.index, host.number),
            volume: host.volume,
            peer: host.peer,
            io: host.io,
        };
        hosts.into_iter().filter(|host| self.has_volume(number, &host.volume)).map(connection).collect()
    }

    fn ended_connections_to(&self, number: usize) -> BTreeMap<String, IoStats> {
        let ended = self.exports().map_or_else(Vec::new, |exports| exports.ended_connections());
        ended.into_iter().filter(|(volume, _)| self.has_volume(number, volume)).collect()
    }

    /// Whether a volume of this name is of a pool.
    fn has_volume(&self, number: usize, name: &str) -> bool {
        let (volumes, pool) = (self.volumes.borrow(), self.pool(number));
        volumes.iter().flatten().any(|volume| *volume.name() == *name && Rc::ptr_eq(&volume.pool, pool))
    }
}
