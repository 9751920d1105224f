//! A volume of an array in virtual time, settled under a load: its write cache, its read caches, and the run-in.

use std::cell::RefCell;
use std::rc::Rc;
use std::sync::Arc;

use serde::Serialize;
use tier0_array::Volume;
use tier0_block::BlockTarget;
use tier0_units::{Nanos, SectorCount};
use tier0_workload::draw::{RequestGenerator, StreamPlan};
use tier0_workload::run::{LoadRun, RunError};
use tier0_workload::spec::{LoadSpec, StreamSpec};
use tier0_world::{PayloadWidth, World};

use super::filling::{Filling, Spot};
use super::modelled::CacheLookups;
use super::run_in::{RUN_IN_MAX, RanIn, RunIn, SEED as RUN_IN_SEED};
use super::write_caches::{SEED, SETTLING_MAX, WriteCaches};
use super::{Look, bring_in, other_requests};

/// How an array was settled before a measurement.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Settled {
    /// Its write cache; nothing where the load writes into none.
    pub write_cache: Option<SettledWriteCache>,
    /// Its read caches; nothing where the load reads through none.
    pub read_caches: Option<SettledReadCaches>,
    /// Whether latencies and hit rates stayed where they were at the end of the run-in.
    pub is_steady: bool,
    /// Requests per second at the end of the run-in.
    pub iops: f64,
    /// Seconds of virtual time that it took.
    pub seconds: f64,
}

/// A write cache that was settled.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct SettledWriteCache {
    /// How full it is: 1 is full.
    pub level: f64,
    /// Whether it neither filled nor emptied at the end.
    pub is_settled: bool,
}

/// What read caches held before the run-in.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum SettledReadCaches {
    /// What the load reads most.
    PreWarmed,
    /// What an earlier settling and load left there.
    Kept,
    /// Nothing.
    Cold,
}

/// Brings `volume` into the steady state of `load`. On an array that is not fresh the read caches are kept as they are, and the
/// write cache is emptied first. On one that is, they are pre-warmed, except in a world that keeps content. With `ios_max` each
/// of the two steps under load ends after so many requests, settled or not.
///
/// # Errors
/// The load does not fit.
pub async fn settle(
    world: &World,
    volume: &Volume,
    load: &LoadSpec,
    is_fresh: bool,
    ios_max: Option<u64>,
    look: Look,
) -> Result<Settled, RunError> {
    let began = world.now();
    let look = Rc::new(RefCell::new(look));
    let shared = || -> Look {
        let look = look.clone();
        Box::new(move |what| (look.borrow_mut())(what))
    };
    // What an earlier load left is not this one's. A modelled array without injected faults takes every write.
    let _ = volume.drain_write_cache().await;
    let reads = load.streams.iter().any(|stream| stream.read_percent > 0.0);
    let has_read_caches = reads && (volume.read_cache().is_some() || volume.flash_cache().is_some());
    let read_caches = match () {
        () if !has_read_caches => None,
        () if !is_fresh => Some(SettledReadCaches::Kept),
        () if world.width() != PayloadWidth::NONE => Some(SettledReadCaches::Cold),
        () => {
            bring_in(volume, load, &mut shared())?;
            Some(SettledReadCaches::PreWarmed)
        }
    };
    let write_cache = settle_write_cache(world, volume, load, ios_max, shared()).await?;
    let RanIn { is_steady, iops } = run_in(world, volume, load, ios_max, shared()).await?;
    Ok(Settled {
        write_cache: write_cache
            .map(|is_settled| SettledWriteCache { level: volume.write_cache().level, is_settled }),
        read_caches,
        is_steady,
        iops,
        seconds: world.now().saturating_sub(began).as_secs_f64(),
    })
}

/// Whether the write cache has settled; nothing where the load writes into none.
async fn settle_write_cache(
    world: &World,
    volume: &Volume,
    load: &LoadSpec,
    ios_max: Option<u64>,
    look: Look,
) -> Result<Option<bool>, RunError> {
    let Some(filling) = filling(volume, load)? else { return Ok(None) };
    let Some(caches) = WriteCaches::new(world, vec![vec![filling]]) else { return Ok(None) };
    let run =
        LoadRun::new(world, Rc::new(volume.clone()), other_requests(load, SETTLING_MAX, ios_max, SEED))?;
    let (run, settled) = caches.judge(run, look);
    run.run().await;
    Ok(Some(settled.get()))
}

async fn run_in(
    world: &World,
    volume: &Volume,
    load: &LoadSpec,
    ios_max: Option<u64>,
    look: Look,
) -> Result<RanIn, RunError> {
    let run =
        LoadRun::new(world, Rc::new(volume.clone()), other_requests(load, RUN_IN_MAX, ios_max, RUN_IN_SEED))?;
    let writes = writes_are_cached(volume, load);
    let (run, seen) = RunIn::new(vec![volume.clone()], writes).judge(run, look);
    run.run().await;
    Ok(seen.get())
}

/// Whether a load writes into the write cache of a volume.
pub(crate) fn writes_are_cached(volume: &Volume, load: &LoadSpec) -> bool {
    volume.writes_cached() && load.streams.iter().any(|stream| stream.read_percent < 100.0)
}

/// The write cache of a volume, filled with requests to where the load's go; nothing where it writes into none.
fn filling(volume: &Volume, load: &LoadSpec) -> Result<Option<Filling>, RunError> {
    let writes = |stream: &&StreamSpec| stream.read_percent < 100.0;
    let Some(stream) = load.streams.iter().find(writes).filter(|_| volume.writes_cached()) else {
        return Ok(None);
    };
    let capacity = volume.info().sectors.bytes();
    let plan = StreamPlan::new(stream, capacity, load.placement_seed.unwrap_or(load.seed))?;
    let SectorCount(sectors_max) = plan.block_sectors_max();
    let generator = RefCell::new(RequestGenerator::new(Arc::new(plan), load.seed ^ SEED, 0, 0, 1));
    let draw = move |_: &mut _| {
        let request = generator.borrow_mut().draw();
        Spot { volume: 0, lba: request.lba.0, sectors: request.sectors.0 }
    };
    Ok(Some(Filling { volumes: Rc::new([volume.clone()]), sectors_max, draw: Rc::new(draw) }))
}

/// What the read caches of a volume have done so far.
pub(super) fn lookups(volume: &Volume) -> CacheLookups {
    CacheLookups::of(std::slice::from_ref(volume))
}

impl Settled {
    /// The longest that settling waits for anything, of virtual time.
    pub const LONGEST: Nanos = Nanos(SETTLING_MAX.0 + RUN_IN_MAX.0);

    /// How it was done, in words.
    pub fn words(&self) -> String {
        let mut words = Vec::new();
        if let Some(cache) = self.write_cache {
            let level = cache.level * 100.0;
            words.push(match cache.is_settled {
                true => format!("the write cache is settled at {level:.0} %"),
                false => format!("the write cache has not settled, at {level:.0} %"),
            });
        }
        words.extend(self.read_caches.map(|caches| match caches {
            SettledReadCaches::PreWarmed => {
                "the read caches were pre-warmed with what the load reads most".to_owned()
            }
            SettledReadCaches::Kept => "the read caches were warm from the load before".to_owned(),
            SettledReadCaches::Cold => "the read caches began cold".to_owned(),
        }));
        words.push(match self.is_steady {
            true => format!("ran in for {:.1} s", self.seconds),
            false => format!("latencies or hit rates still moved after {:.1} s", self.seconds),
        });
        words.join("; ")
    }
}
