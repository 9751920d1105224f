//! What volumes, groups of sets, log, tables and drives have done, as administrators see it.

use std::rc::Rc;

use tier0_api::{
    CONNECTIONS_MAX, CONNECTIONS_WITH_LATENCIES, ConnectionIo, IoReport, NamedFlushing, NamedIo, PoolIo,
    Throttling,
};
use tier0_pool::{PoolState, Volume};
use tier0_stats::IoStats;

use crate::Control;
use crate::admin::{ceilings, flash_cache, flushing, read_cache_status};
use crate::context::Context;
use crate::message::command::ShardCommand;
use crate::stats::{HeldBack, PoolStats};

impl Context {
    /// What a pool has done, in all shards and for its metadata.
    pub(crate) async fn pool_stats(&self, number: usize) -> PoolStats {
        let mut stats = PoolStats::default();
        let shards = self.ask_all(|reply| ShardCommand::Stats { pool: number, reply }).await;
        shards.into_iter().flatten().for_each(|shard| stats.merge(shard));
        let metadata = &self.pool(number).metadata;
        let places = 0..metadata.state().members().len() as u32;
        places.for_each(|place| stats.add_drive(place, metadata.drive(place).as_ref()));
        stats
    }
}

impl Control {
    /// What all pools have done.
    pub async fn io_report(self: &Rc<Self>) -> IoReport {
        let mut pools = Vec::new();
        for (number, pool) in self.context.pools.iter().enumerate() {
            let mut stats = self.context.pool_stats(number).await;
            let ended = std::mem::take(&mut stats.ended_connections);
            let (connections, connections_left_out) = busiest(std::mem::take(&mut stats.connections));
            let tier = self.tiering.io(number).await;
            let state = pool.metadata.state();
            let volumes = state.volumes().filter(|volume| !volume.is_unfinished()).map(|volume| NamedIo {
                name: volume.name.clone(),
                io: stats.volumes.get(&volume.number).cloned().unwrap_or_default(),
            });
            let serving = (0u32..).zip(state.members()).filter(|(_, member)| member.is_active());
            let drives = serving
                .map(|(place, member)| NamedIo { name: member.name.clone(), io: stats.of_drive(place) });
            let (log, destage, flushing) = lanes(&state, &stats);
            pools.push(PoolIo {
                name: state.name().to_owned(),
                volumes: volumes.collect(),
                connections,
                connections_left_out,
                ended_connections: ended.into_iter().map(|(name, io)| NamedIo { name, io }).collect(),
                groups: groups(&state, &stats),
                log,
                destage,
                read_cache: stats.read_cache.map(read_cache_status),
                flash_cache: flash_cache(&state, &stats),
                tier,
                flushing,
                throttling: throttling(&state, &stats),
                tables: vec![NamedIo { name: "tables".to_owned(), io: stats.tables.clone() }],
                drives: drives.collect(),
            });
        }
        IoReport { at_ns: self.context.world.now().0, pools }
    }
}

/// The connections that have asked for most, and how many others there are.
fn busiest(mut connections: Vec<ConnectionIo>) -> (Vec<ConnectionIo>, usize) {
    connections
        .sort_by(|one, other| other.io.count().cmp(&one.io.count()).then_with(|| one.id.cmp(&other.id)));
    let left_out = connections.len().saturating_sub(CONNECTIONS_MAX);
    connections.truncate(CONNECTIONS_MAX);
    connections.iter_mut().skip(CONNECTIONS_WITH_LATENCIES).for_each(|one| one.io.drop_latencies());
    (connections, left_out)
}

/// What hosts have asked of each group that has a name: of its volumes.
fn groups(state: &PoolState, stats: &PoolStats) -> Vec<NamedIo> {
    let of_group = |number: u32| {
        let mut io = IoStats::default();
        let own = state.volumes().filter(|volume| volume.group == number);
        own.filter_map(|volume| stats.volumes.get(&volume.number)).for_each(|volume| io.merge(volume));
        Some(NamedIo { name: format!("group {}", state.name_of_group(number)?), io })
    };
    (0..state.groups().len() as u32).filter_map(of_group).collect()
}

/// What the ceilings of volumes held back, of those that have some or had.
fn throttling(state: &PoolState, stats: &PoolStats) -> Vec<Throttling> {
    let of_volume = |volume: &Volume| {
        let HeldBack { requests, wait_ns } = stats.held_back.get(&volume.number).copied().unwrap_or_default();
        let ceilings = ceilings(state.ceilings(volume.number));
        let is_told = ceilings.is_some() || requests > 0;
        is_told.then(|| Throttling { volume: volume.name.clone(), ceilings, requests, wait_ns })
    };
    state.volumes().filter(|volume| !volume.is_unfinished()).filter_map(of_volume).collect()
}

/// What went into the log, what was destaged, and why, by lane.
fn lanes(state: &PoolState, stats: &PoolStats) -> (Vec<NamedIo>, Vec<NamedIo>, Vec<NamedFlushing>) {
    let name = |what: &str, lane: usize| match state.name_of_group(lane as u32) {
        Some(group) if state.log().lanes > 1 => format!("{what} {group}"),
        _ => what.to_owned(),
    };
    let log = stats.lanes.iter().map(|(lane, one)| NamedIo { name: name("log", *lane), io: one.log.clone() });
    let destage = stats
        .lanes
        .iter()
        .map(|(lane, one)| NamedIo { name: name("destage", *lane), io: one.destage.clone() });
    let flushing = stats.lanes.iter().map(|(lane, one)| NamedFlushing {
        name: name("write cache", *lane),
        flushing: flushing(one.flushing),
    });
    (log.collect(), destage.collect(), flushing.collect())
}
