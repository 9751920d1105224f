//! What an array did for a load, as its own counters tell: `tier0 iostat` shows the same of one that serves.

use serde::{Deserialize, Serialize};
use tier0_api::{FlushCounts, Flushed, IoReport, NamedFlushing, NamedIo, PoolIo, ReadCacheStatus};
use tier0_stats::{IoStats, OpStats};
use tier0_units::Nanos;

/// What the drives, the write log and the destager did during a measurement, its warm-up included.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Work {
    /// Reads of drives for one I/O of a host.
    pub drive_reads: f64,
    /// Writes of drives for one I/O of a host.
    pub drive_writes: f64,
    /// How long a drive took to read.
    pub drive_read: Option<Took>,
    /// How long a drive took to write.
    pub drive_write: Option<Took>,
    /// How long a record took into the write log; nothing where there is none, or nothing was written.
    pub log: Option<Took>,
    /// KiB in a batch that the destager wrote, on average.
    pub destaged_kib: Option<f64>,
    /// Why pages were destaged; nothing where none were.
    #[serde(default)]
    pub flushed: Option<FlushShares>,
    /// Writes that were delayed because memory or log was short of room, for one write of a host.
    #[serde(default)]
    pub delayed_writes: f64,
    /// How long these waited, in milliseconds, on average.
    #[serde(default)]
    pub delay_ms: Option<f64>,
    /// Reads that found all of their pages in the read cache, as a share of those that looked for them; nothing where none did.
    #[serde(default)]
    pub read_hits: Option<f64>,
    /// Reads that found all of their pages in the flash cache, as a share of those that looked for them there; nothing where none did.
    #[serde(default)]
    pub flash_hits: Option<f64>,
    /// Reads of drives, of at most 64 KiB, that a tier's fast group answered, as a share of those of pools with a tier; nothing where
    /// there is no tier.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tier_hits: Option<f64>,
    /// By write cache: a single one, or one for each group of sets, what is measured first.
    #[serde(default)]
    pub write_caches: Vec<WriteCacheWork>,
    /// Whether the measured volumes' writes go into the first of them.
    #[serde(default)]
    pub measured_is_cached: bool,
}

/// What a write cache did.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct WriteCacheWork {
    /// Its name.
    pub name: String,
    /// Why pages were destaged; nothing where none were.
    pub flushed: Option<FlushShares>,
    /// Pages that were destaged.
    pub flushed_pages: u64,
    /// Writes that were delayed for want of room.
    pub delayed: u64,
    /// The same, for one write of a host to its volumes.
    pub delayed_writes: f64,
    /// How long these waited, in milliseconds, on average.
    pub delay_ms: Option<f64>,
}

/// Shares of the pages that were destaged, from 0 to 1, by what held when their batch was begun: [`FlushCounts`] defines it.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct FlushShares {
    /// The level was below the low watermark.
    pub idle: f64,
    /// It was between the watermarks.
    pub high_watermark: f64,
    /// Writers were being delayed.
    pub forced: f64,
    /// Somebody waited for it.
    pub demanded: f64,
}

impl FlushShares {
    fn of(counts: &FlushCounts) -> Option<FlushShares> {
        let all = counts.all().pages;
        let share = |cause: Flushed| cause.pages as f64 / all as f64;
        (all > 0).then(|| FlushShares {
            idle: share(counts.idle),
            high_watermark: share(counts.high_watermark),
            forced: share(counts.forced),
            demanded: share(counts.demanded),
        })
    }
}

/// Latencies, in milliseconds.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Took {
    /// Their mean.
    pub mean_ms: f64,
    /// What 99 % did not exceed.
    pub p99_ms: f64,
}

impl Took {
    fn of(op: &OpStats) -> Option<Took> {
        let ms = |time: Nanos| time.as_secs_f64() * 1e3;
        Some(Took { mean_ms: ms(op.mean()?), p99_ms: ms(op.latencies.quantile(0.99)?) })
    }
}

/// Counters of all arrays that share a load.
#[derive(Clone, Debug, Default)]
pub struct Counters {
    /// What hosts asked of the volumes.
    pub hosts: IoStats,
    /// What was asked of the drives, from the back-end bus on.
    pub drives: IoStats,
    /// Records that went into the write log, as writes.
    pub log: IoStats,
    /// Batches that were destaged, as writes.
    pub destage: IoStats,
    /// Why, and the writes that were delayed.
    pub flushed: FlushCounts,
    /// By write cache.
    pub write_caches: Vec<WriteCacheCounters>,
    /// What the read caches have done.
    pub read_cache: ReadCacheStatus,
    /// Reads that the flash caches have answered, and those that they have not.
    pub flash_hits: u64,
    /// See there.
    pub flash_misses: u64,
    /// Reads, of at most 64 KiB, that drives of fast groups have answered for pools with a tier, and those that other drives have.
    pub tier_reads_fast: u64,
    /// See there.
    pub tier_reads_slow: u64,
}

/// Counters of a write cache.
#[derive(Clone, Debug, Default)]
pub struct WriteCacheCounters {
    /// Its name.
    pub name: String,
    /// Why pages were destaged, and the writes that were delayed.
    pub flushed: FlushCounts,
    /// Writes of hosts to its volumes.
    pub writes: u64,
}

impl Counters {
    /// Adds an array's own counters and those of its drives.
    pub fn add(&mut self, report: &IoReport, drives: &IoStats) {
        let add = |all: &mut IoStats, some: &[NamedIo]| some.iter().for_each(|one| all.merge(&one.io));
        let caches = report.pools.iter().flat_map(write_caches).collect::<Vec<_>>();
        self.write_caches.resize_with(caches.len(), WriteCacheCounters::default);
        for (all, one) in self.write_caches.iter_mut().zip(caches) {
            all.name = one.name;
            all.flushed.merge(&one.flushed);
            all.writes += one.writes;
        }
        for pool in &report.pools {
            pool.read_cache.iter().for_each(|cache| self.read_cache.merge(cache));
            if let Some(cache) = &pool.flash_cache {
                self.flash_hits += cache.hits;
                self.flash_misses += cache.misses;
            }
            if let Some(tier) = &pool.tier {
                self.tier_reads_fast += tier.reads_fast;
                self.tier_reads_slow += tier.reads_slow;
            }
            add(&mut self.hosts, &pool.volumes);
            add(&mut self.log, &pool.log);
            add(&mut self.destage, &pool.destage);
            pool.flushing.iter().for_each(|one| self.flushed.merge(&one.flushing.counts));
        }
        self.drives.merge(drives);
    }
}

/// The write caches of a pool: one for each group of sets, or a single one.
fn write_caches(pool: &PoolIo) -> Vec<WriteCacheCounters> {
    let writes = |named: &[NamedIo]| named.iter().map(|one| one.io.write.count).sum();
    let of_groups = pool.groups.len() == pool.flushing.len();
    let cache = |(place, one): (usize, &NamedFlushing)| WriteCacheCounters {
        name: one.name.clone(),
        flushed: one.flushing.counts,
        writes: if of_groups { writes(&pool.groups[place..=place]) } else { writes(&pool.volumes) },
    };
    pool.flushing.iter().enumerate().map(cache).collect()
}

impl WriteCacheWork {
    fn between(before: Option<&WriteCacheCounters>, now: &WriteCacheCounters) -> WriteCacheWork {
        let earlier = before.cloned().unwrap_or_default();
        let flushed = now.flushed.since(&earlier.flushed);
        let writes = now.writes.saturating_sub(earlier.writes);
        WriteCacheWork {
            name: now.name.clone(),
            flushed: FlushShares::of(&flushed),
            flushed_pages: flushed.all().pages,
            delayed: flushed.delayed_writes,
            delayed_writes: flushed.delayed_writes as f64 / (writes as f64).max(1.0),
            delay_ms: flushed.delay_ms_mean(),
        }
    }
}

impl Work {
    /// The write cache that the measured volumes' writes go into.
    pub fn measured_cache(&self) -> Option<&WriteCacheWork> {
        self.write_caches.first().filter(|_| self.measured_is_cached)
    }

    /// What arrays did between two looks.
    pub fn between(before: &Counters, now: &Counters) -> Work {
        let (hosts, drives) = (now.hosts.since(&before.hosts), now.drives.since(&before.drives));
        let (log, destage) = (now.log.since(&before.log).write, now.destage.since(&before.destage).write);
        let flushed = now.flushed.since(&before.flushed);
        let reads = now.read_cache.since(&before.read_cache);
        let flash = [now.flash_hits - before.flash_hits, now.flash_misses - before.flash_misses];
        let flash_lookups = flash[0] + flash[1];
        let tier_fast = now.tier_reads_fast - before.tier_reads_fast;
        let tier_all = tier_fast + now.tier_reads_slow - before.tier_reads_slow;
        let caches = now.write_caches.iter().enumerate();
        let host_ios = ((hosts.read.count + hosts.write.count) as f64).max(1.0);
        Work {
            drive_reads: drives.read.count as f64 / host_ios,
            drive_writes: drives.write.count as f64 / host_ios,
            drive_read: Took::of(&drives.read),
            drive_write: Took::of(&drives.write),
            log: Took::of(&log),
            destaged_kib: (destage.count > 0).then(|| destage.bytes as f64 / destage.count as f64 / 1024.0),
            flushed: FlushShares::of(&flushed),
            delayed_writes: flushed.delayed_writes as f64 / (hosts.write.count as f64).max(1.0),
            delay_ms: flushed.delay_ms_mean(),
            read_hits: (reads.lookups() > 0).then(|| reads.hits() as f64 / reads.lookups() as f64),
            flash_hits: (flash_lookups > 0).then(|| flash[0] as f64 / flash_lookups as f64),
            tier_hits: (tier_all > 0).then(|| tier_fast as f64 / tier_all as f64),
            write_caches: caches
                .map(|(at, now)| WriteCacheWork::between(before.write_caches.get(at), now))
                .collect(),
            measured_is_cached: false,
        }
    }
}

#[cfg(test)]
mod tests {
    use tier0_api::Flushing;

    use super::*;

    fn op(count: u64, bytes: u64, time: Nanos) -> OpStats {
        let latencies = vec![(time.0 / count.max(1), count)].into();
        OpStats { count, bytes, time_ns: time.0, latencies, errors: 0 }
    }

    fn counters(scale: u64) -> Counters {
        let ms = |time: u64| Nanos::from_millis(time * scale);
        let io = |read: OpStats, write: OpStats| IoStats { read, write, ..IoStats::default() };
        let named = |io: IoStats| vec![NamedIo { name: "one".into(), io }];
        let flushed = |pages: u64| Flushed { pages: pages * scale, batches: scale };
        let counts = FlushCounts {
            high_watermark: flushed(48),
            forced: flushed(16),
            delayed_writes: 10 * scale,
            delayed_ns: ms(20).0,
            ..FlushCounts::default()
        };
        let flushing = Flushing { counts, ..Flushing::default() };
        let pool = PoolIo {
            volumes: named(io(op(60 * scale, 0, ms(60)), op(40 * scale, 0, ms(40)))),
            log: named(io(OpStats::default(), op(40 * scale, 0, ms(20)))),
            destage: named(io(OpStats::default(), op(4 * scale, 4 * scale * 65_536, ms(1)))),
            flushing: vec![NamedFlushing { name: "one".into(), flushing }],
            ..PoolIo::default()
        };
        let report = IoReport { at_ns: 0, pools: vec![pool] };
        let drives = io(op(60 * scale, 0, ms(300)), op(80 * scale, 0, ms(160)));
        let mut counters = Counters::default();
        (0..2).for_each(|_| counters.add(&report, &drives));
        counters
    }

    #[test]
    fn it_is_what_two_arrays_did_between_two_looks() {
        let work = Work::between(&counters(1), &counters(3));
        assert_eq!((work.drive_reads, work.drive_writes), (0.6, 0.8));
        assert_eq!(work.drive_read.map(|took| took.mean_ms), Some(5.0));
        assert_eq!(work.log.map(|took| took.mean_ms), Some(0.5));
        assert_eq!(work.destaged_kib, Some(64.0));
        let shares = FlushShares { idle: 0.0, high_watermark: 0.75, forced: 0.25, demanded: 0.0 };
        assert_eq!(work.flushed, Some(shares));
        assert_eq!((work.delayed_writes, work.delay_ms), (0.25, Some(2.0)));
        let idle = Work::between(&counters(3), &counters(3));
        assert_eq!(idle.drive_read, None, "nothing was read");
        assert_eq!((idle.flushed, idle.delay_ms), (None, None), "nothing was destaged");
    }
}
