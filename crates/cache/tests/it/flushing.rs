//! The destage rate follows utilisation by itself, and what it is that makes pages leave the cache is counted.

use std::cell::Cell;
use std::future::Future;
use std::rc::Rc;

use tier0_cache::{FlushCounts, Flushed, Stage, WriteBackOptions};
use tier0_raid::layout::RaidLevel;
use tier0_units::{ByteCount, ExtentId, Nanos, WriteCache};
use tier0_world::{VirtualRuntime, World};

use crate::rig::{EXTENT_SECTORS, Rack, Shape, Shard};

/// Pages of an extent.
const EXTENT_PAGES: u64 = EXTENT_SECTORS / 8;
/// Between two pages that are written one after the other: odd, so that all come before one comes again, and no page is
/// written over in memory.
const STRIDE: u64 = 1_000_003;

/// Slow drives behind a memory of 1024 pages and a log that has room for more.
fn slow_drives() -> Shape {
    let latency = (Nanos::from_millis(3), Nanos::from_millis(6));
    Shape { latency, log_blocks: 4000, chunklets: 32, ..Shape::new(RaidLevel::Raid10, 4) }
}

/// Runs a test on drives of which every page has been written before.
fn on_rack<T: 'static, F: Future<Output = T> + 'static>(test: impl FnOnce(Rig) -> F + 'static) -> T {
    let shape = slow_drives();
    let runtime = VirtualRuntime::new(23, shape.width);
    let rack = Rack::new(shape, 23);
    let world = runtime.world().clone();
    runtime.run(async move {
        let options = WriteBackOptions { memory_max: ByteCount::mib(4), ..WriteBackOptions::default() };
        let shard = rack.open(&world, options).await;
        let rig = Rig { pages: rack.slot_count() * EXTENT_PAGES, world, shard, next: Rc::default() };
        let fill: Vec<_> = (0..64).map(|_| rig.world.spawn(rig.clone().write_some(rig.pages / 64))).collect();
        for task in fill {
            task.await;
        }
        assert_eq!(rig.shard.cache.drain().await, Ok(()));
        test(rig).await
    })
}

/// A write cache and those who write to it, a page at a time.
#[derive(Clone)]
struct Rig {
    world: World,
    shard: Shard,
    pages: u64,
    next: Rc<Cell<u64>>,
}

impl Rig {
    async fn write(&self) {
        let page = self.next.get() * STRIDE % self.pages;
        self.next.set(self.next.get() + 1);
        let extent = ExtentId { volume: 1, index: (page / EXTENT_PAGES) as u32 };
        let mut buf = self.world.buffer(8);
        buf.as_mut_slice().fill(7);
        let first = page % EXTENT_PAGES * 8;
        let written = self.shard.cache.write(extent, first, buf.freeze(), false, WriteCache::Durable).await;
        assert_eq!(written, Ok(()));
    }

    async fn write_some(self, pages: u64) {
        for _ in 0..pages {
            self.write().await;
        }
    }

    /// From now on writes begin at a constant rate, however long they take.
    fn write_at(&self, pages_per_s: u64) {
        let rig = self.clone();
        let work = async move {
            loop {
                rig.world.spawn(rig.clone().write_some(1)).detach();
                rig.world.sleep(Nanos(1_000_000_000 / pages_per_s)).await;
            }
        };
        self.world.spawn(work).detach();
    }

    /// Pages written, and what was destaged, in so many seconds; and the levels of that time.
    async fn observe(&self, seconds: u64) -> (u64, FlushCounts, Vec<f64>) {
        let before = self.shard.cache.status();
        let mut levels = Vec::new();
        for _ in 0..seconds * 100 {
            self.world.sleep(Nanos::from_millis(10)).await;
            levels.push(self.shard.cache.status().level);
        }
        let now = self.shard.cache.status();
        let flushed = now.flushing.counts.since(&before.flushing.counts);
        (now.written_pages - before.written_pages, flushed, levels)
    }
}

fn mean(levels: &[f64]) -> f64 {
    levels.iter().sum::<f64>() / levels.len() as f64
}

/// What users who write as fast as they are let get of the drives, in pages per second.
fn forced(users: u64) -> f64 {
    on_rack(move |rig| async move {
        for _ in 0..users {
            rig.world.spawn(rig.clone().write_some(u64::MAX)).detach();
        }
        rig.world.sleep(Nanos::from_secs(5)).await;
        let (written, flushed, levels) = rig.observe(20).await;
        println!("{users} users: {written} pages written, level {:.2}, {flushed:?}", mean(&levels));
        let destaged = flushed.all().pages;
        assert!(written.abs_diff(destaged) <= destaged / 50, "{written} written, {destaged} destaged");
        assert!(flushed.forced.pages >= destaged * 99 / 100, "whatever is destaged is forced: {flushed:?}");
        assert_eq!((flushed.idle.pages, flushed.demanded.pages), (0, 0), "{flushed:?}");
        assert_eq!(rig.shard.cache.status().stage, Stage::Throttling);
        // Each user waits for nearly all of its time.
        assert!(flushed.delayed_writes >= written * 99 / 100, "{written} written: {flushed:?}");
        let waiting = flushed.delayed_ns as f64 / 20e9 / users as f64;
        assert!((0.9..=1.0).contains(&waiting), "{waiting} of the users wait");
        written as f64 / 20.0
    })
}

#[test]
fn beyond_what_the_drives_bear_writers_get_their_rate_by_forced_flushing() {
    let (few, many) = (forced(8), forced(64));
    assert!((few / many - 1.0).abs() < 0.05, "the drives' rate depends on who asks: {few}, {many}");
}

#[test]
fn at_a_rate_that_the_drives_bear_the_level_settles_between_the_watermarks() {
    let drives = forced(8);
    let levels = [0.3, 0.5, 0.7].map(|share| {
        let rate = (drives * share) as u64;
        on_rack(move |rig| async move {
            rig.write_at(rate);
            rig.world.sleep(Nanos::from_secs(5)).await;
            let (written, flushed, levels) = rig.observe(30).await;
            let (mean, most) = (mean(&levels), levels.iter().copied().fold(0.0, f64::max));
            println!("{share} of {drives} pages per second: level {mean:.3}, at most {most:.3}, {flushed:?}");
            let destaged = flushed.all().pages;
            assert!(written.abs_diff(destaged) <= destaged / 50, "{written} written, {destaged} destaged");
            assert_eq!((flushed.forced.pages, flushed.delayed_writes), (0, 0), "at {share}: {flushed:?}");
            assert!(flushed.high_watermark.pages >= destaged * 9 / 10, "at {share}: {flushed:?}");
            // At a low rate it is at the low watermark, about which it swings by what a batch takes.
            assert!(mean > 0.28 && most < 0.7, "at {share}: level {mean}, at most {most}");
            mean
        })
    });
    assert!(levels.is_sorted(), "the destage rate follows the level, which is {levels:?}");
}

#[test]
fn bursts_with_gaps_are_destaged_without_force() {
    on_rack(|rig| async move {
        let before = rig.shard.cache.status();
        assert!(before.flushing.counts.demanded.pages > 0, "it was drained: {before:?}");
        for (pages, by_need) in [(200, false), (650, true)] {
            let before = rig.shard.cache.status().flushing.counts;
            rig.clone().write_some(pages).await;
            let full = rig.shard.cache.status().flushing;
            // Ten seconds, and an eighth of that for each look at what has aged meanwhile.
            rig.world.sleep(Nanos::from_secs(30)).await;
            let flushed = rig.shard.cache.status().flushing.counts.since(&before);
            println!("{pages} pages: level {:.2}, {flushed:?}", full.memory_utilisation);
            assert_eq!(flushed.all().pages, pages, "{flushed:?}");
            assert_eq!(flushed.idle.pages + flushed.high_watermark.pages, pages, "{flushed:?}");
            assert_eq!(
                (flushed.high_watermark.pages > 0, flushed.delayed_writes),
                (by_need, 0),
                "{flushed:?}"
            );
        }
        let status = rig.shard.cache.status();
        assert_eq!((status.stage, status.dirty_pages), (Stage::Idle, 0), "{status:?}");
        assert_eq!(status.flushing.memory_utilisation, 0.0, "{status:?}");
    });
}

#[test]
fn what_a_caller_waits_for_is_demanded() {
    on_rack(|rig| async move {
        let before = rig.shard.cache.status().flushing.counts;
        rig.write().await;
        let off = ExtentId { volume: 1, index: 3 };
        let mut buf = rig.world.buffer(16);
        buf.as_mut_slice().fill(9);
        let written = rig.shard.cache.write(off, 0, buf.freeze(), false, WriteCache::Off).await;
        assert_eq!(written, Ok(()));
        let flushed = rig.shard.cache.status().flushing.counts.since(&before);
        assert_eq!(
            flushed,
            FlushCounts { demanded: Flushed { pages: 2, batches: 1 }, ..FlushCounts::default() }
        );
    });
}
