//! The default policy on public traces, which are not part of the project: skipped, and said so, where they are absent.

use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};

use tier0_lab::replay::{LoadOptions, Plan, Writes, load, replay};
use tier0_policy::PolicyKind;
use tier0_trace::Format;

/// A trace, its format, the size of the cache in blocks, and what the policy may miss.
const MAY_MISS: [(&str, Format, usize, f64); 5] = [
    ("w106.trace.xz", Format::U32Le, 20_000, 0.0880),
    ("w106.trace.xz", Format::U32Le, 100_000, 0.0572),
    ("loop.trace.gz", Format::Ids, 500, 0.511 * 1.1),
    ("scan.trace.gz", Format::Ids, 1000, 0.525 * 1.1),
    ("sprite.trace.gz", Format::Ids, 500, 0.226),
];

fn traces() -> PathBuf {
    let beside = || Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/data/traces");
    std::env::var_os("TIER0_TRACES").map_or_else(beside, PathBuf::from)
}

#[test]
fn the_default_policy_misses_no_more_than_it_may() {
    for (name, format, blocks, may_miss) in MAY_MISS {
        let path = traces().join(name);
        if !path.exists() {
            println!("skipped: there is no {}", path.display());
            continue;
        }
        let options =
            LoadOptions { reading: format.into(), block_bytes: 4096, writes: Writes::Allocate, limit: None };
        let loaded = load(&path, &options, |_| ()).expect("the trace");
        let plan = Plan {
            policies: vec![PolicyKind::default()],
            sizes: vec![blocks],
            flash_writes_per_day: None,
            curve_points: None,
            threads: NonZeroUsize::MIN,
        };
        let replayed = replay(&loaded.requests, &plan, |_, _| ());
        let missed: Vec<f64> = replayed.tried.iter().map(|tried| tried.served.miss_ratio).collect();
        assert!(missed[0] <= may_miss, "{name} in {blocks}: {missed:?}");
        assert!(missed[1] < missed[0], "the optimum misses less: {missed:?}");
    }
}
