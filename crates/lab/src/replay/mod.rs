//! Block traces against cache policies: which share of the requests a cache of a size would have served.
//!
//! | file | concept |
//! |---|---|
//! | `load` | from a trace's file to requests |
//! | `requests` | a trace in memory: which blocks each request touches |
//! | `cache` | a policy at a size under these requests, and what it counts |
//! | `optimum` | the same for one that knows the future |
//! | `flash` | the same for the flash cache of arrays, with what it admits and writes |
//! | `sample` | the same of a part of the blocks, with an error: curves over many sizes |
//!
//! The policies are those that arrays use. What a replay cannot tell: times. A trace's requests come as they came where it
//! was recorded, however fast the cache is.

mod cache;
mod flash;
mod load;
mod optimum;
mod requests;
mod sample;

use std::num::NonZeroUsize;

use serde::Serialize;
use tier0_policy::PolicyKind;

pub use self::cache::Served;
pub use self::load::{LoadError, LoadOptions, Loaded, load};
pub use self::requests::{Requests, RequestsError, Touch, Writes};
pub use self::sample::{EXACT_BLOCKS, Sampled};
use crate::clock::Clock;
use crate::grid::each;

/// What keeps pages in a cache.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Keeper {
    /// A policy.
    Policy(PolicyKind),
    /// Belady's: what is asked for again last gives way. No policy misses fewer blocks, and none knows the future. Of requests for
    /// several blocks, or objects of several sizes, another choice may miss fewer requests or bytes.
    Optimum,
}

impl Keeper {
    /// Its name.
    pub const fn name(self) -> &'static str {
        match self {
            Keeper::Policy(kind) => kind.name(),
            Keeper::Optimum => "optimum",
        }
    }
}

/// What came of a touch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Answer {
    /// It was there.
    is_hit: bool,
    /// It was written into the cache: because it came in, or because it was written while it was there.
    is_written: bool,
}

/// The name of the flash cache among policies.
pub const FLASH: &str = "flash";

/// What is to be found out.
#[derive(Clone, Debug)]
pub struct Plan {
    /// Policies; the optimum is always there too.
    pub policies: Vec<PolicyKind>,
    /// Sizes of caches, in blocks.
    pub sizes: Vec<usize>,
    /// How often a day the size of a flash cache may be written to it, as arrays have it; none to try no flash cache. Traces of
    /// objects with sizes of their own have none.
    pub flash_writes_per_day: Option<f64>,
    /// How many points a curve over sizes has; none without.
    pub curve_points: Option<NonZeroUsize>,
    /// Threads.
    pub threads: NonZeroUsize,
}

/// A cache that was tried.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Tried {
    /// The policy's name, "flash" or "optimum".
    pub policy: &'static str,
    /// Its size in blocks.
    pub blocks: usize,
    /// What it served.
    #[serde(flatten)]
    pub served: Served,
    /// Requests per second that the replay did on one core.
    pub requests_per_s: f64,
}

/// A point of a policy's curve.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct CurvePoint {
    /// The policy's name, or "optimum".
    pub policy: &'static str,
    /// The size in blocks.
    pub blocks: usize,
    /// The part of the touched blocks that was missing.
    #[serde(flatten)]
    pub sampled: Sampled,
}

/// What came of a replay.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Replayed {
    /// What was tried, by size: the policies in their order, the flash cache, and the optimum.
    pub tried: Vec<Tried>,
    /// Curves, by policy.
    pub curve: Vec<CurvePoint>,
}

/// One thing to find out.
#[derive(Clone, Copy)]
enum Job {
    Try(Keeper, usize),
    Flash(usize, f64),
    Point(Keeper, usize),
}

enum Done {
    Tried(Tried),
    Point(CurvePoint),
}

/// Replays `requests`; `done` is called with the number of caches of all that have been tried.
pub fn replay(requests: &Requests, plan: &Plan, done: impl Fn(usize, usize) + Sync) -> Replayed {
    let keepers = || plan.policies.iter().map(|kind| Keeper::Policy(*kind)).chain([Keeper::Optimum]);
    let flash = plan.flash_writes_per_day.filter(|_| !requests.has_objects());
    let tries_of = |size: usize| {
        let policies = plan.policies.iter().map(move |kind| Job::Try(Keeper::Policy(*kind), size));
        let flash = flash.filter(|_| size >= flash::BLOCKS_MIN).map(|writes| Job::Flash(size, writes));
        policies.chain(flash).chain([Job::Try(Keeper::Optimum, size)])
    };
    let tries = plan.sizes.iter().flat_map(|size| tries_of(*size));
    let points = plan.curve_points.map_or_else(Vec::new, |points| curve_sizes(requests, points));
    let points = keepers().flat_map(|keeper| points.iter().map(move |size| Job::Point(keeper, *size)));
    let jobs: Vec<Job> = tries.chain(points).collect();
    let told = std::sync::atomic::AtomicUsize::new(0);
    let results = each(
        &jobs,
        plan.threads.get(),
        |job| Ok::<Done, std::convert::Infallible>(work(requests, *job)),
        |_| done(told.fetch_add(1, std::sync::atomic::Ordering::Relaxed) + 1, jobs.len()),
    );
    let mut replayed = Replayed { tried: Vec::new(), curve: Vec::new() };
    let Ok(results) = results;
    for result in results {
        match result {
            Done::Tried(tried) => replayed.tried.push(tried),
            Done::Point(point) => replayed.curve.push(point),
        }
    }
    replayed
}

fn work(requests: &Requests, job: Job) -> Done {
    match job {
        Job::Try(keeper, blocks) => {
            timed(requests, keeper.name(), blocks, || cache::serve(requests, keeper, blocks))
        }
        Job::Flash(blocks, writes_per_day) => {
            timed(requests, FLASH, blocks, || flash::serve(requests, blocks, writes_per_day))
        }
        Job::Point(keeper, blocks) => {
            let sampled = sample::miss_ratio(requests, keeper, blocks);
            Done::Point(CurvePoint { policy: keeper.name(), blocks, sampled })
        }
    }
}

fn timed(
    requests: &Requests,
    policy: &'static str,
    blocks: usize,
    serve: impl FnOnce() -> cache::Served,
) -> Done {
    let clock = Clock::start();
    let served = serve();
    let seconds = clock.elapsed().as_secs_f64().max(1e-9);
    let requests_per_s = requests.count() as f64 / seconds;
    Done::Tried(Tried { policy, blocks, served, requests_per_s })
}

/// Sizes from a few blocks to all that are touched, each larger by the same factor.
fn curve_sizes(requests: &Requests, points: NonZeroUsize) -> Vec<usize> {
    let most = (requests.distinct() as f64).max(1.0);
    let least = (most / 1000.0).max(1.0);
    let steps = (points.get() - 1).max(1) as f64;
    let size = |point: usize| (least * (most / least).powf(point as f64 / steps)).round() as usize;
    let mut sizes: Vec<usize> = (0..points.get()).map(size).collect();
    sizes.dedup();
    sizes
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Requests for single blocks.
    pub(super) fn of_blocks(blocks: impl IntoIterator<Item = u64>) -> Requests {
        let mut requests = Requests::new(4096, Writes::Allocate);
        blocks.into_iter().for_each(|block| requests.read(0, block, 1).expect("there is room"));
        requests
    }

    fn plan(sizes: &[usize]) -> Plan {
        Plan {
            policies: PolicyKind::ALL.to_vec(),
            sizes: sizes.to_vec(),
            flash_writes_per_day: Some(3.0),
            curve_points: NonZeroUsize::new(4),
            threads: NonZeroUsize::new(2).expect("two"),
        }
    }

    #[test]
    fn no_policy_misses_less_than_the_optimum() {
        let mut state = 1_u64;
        let skewed = std::iter::repeat_with(|| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            let one = (state >> 40) as f64 / f64::from(1 << 24);
            (one.powi(3) * 5000.0) as u64
        });
        let requests = of_blocks(skewed.take(100_000));
        let replayed = replay(&requests, &plan(&[50, 500]), |_, _| ());
        for size in [50, 500] {
            let of = |name: &str| {
                let tried = replayed.tried.iter().find(|tried| tried.policy == name && tried.blocks == size);
                tried.expect("it was tried").served.miss_ratio
            };
            assert!(of("optimum") < of("lru") && of("optimum") < of("adaptive"), "{size}");
            assert!(of("adaptive") < of("lru"), "{size}");
        }
        let tried: Vec<&str> = replayed.tried.iter().map(|tried| tried.policy).collect();
        assert_eq!(tried[..4], ["lru", "adaptive", "flash", "optimum"]);
        assert_eq!((tried.len(), replayed.curve.len()), (8, 3 * 4));
        for point in replayed.curve.iter().filter(|point| point.blocks == requests.distinct() as usize) {
            assert!((point.sampled.miss_ratio - 0.05).abs() < 0.01, "all but the first of each: {point:?}");
        }
    }
}
