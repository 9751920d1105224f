//! The server is killed at random moments, and everything acknowledged is there afterwards: the short form of
//! `cargo xtask torture`. Where fio, PostgreSQL or root are missing, it does without them and says so.

use tier0_torture::{Load, Plan, Report, torture};

/// Kills the server `kills` times and looks what is left.
fn short(load: Load, seed: u64, kills: u32, faults: bool, only: Option<&str>) -> Report {
    let plan = Plan {
        program: env!("CARGO_BIN_EXE_tier0").into(),
        directory: env!("CARGO_TARGET_TMPDIR").into(),
        seed,
        kills,
        seconds_max: None,
        load,
        faults,
        only: only.map(str::to_owned),
    };
    let report = torture(&plan, &mut |news| eprintln!("{news}")).expect("the arrays can be set up");
    report.skipped.iter().for_each(|skipped| eprintln!("skipped {skipped}"));
    let failures: Vec<&String> = report.campaigns.iter().filter_map(|done| done.failure.as_ref()).collect();
    assert!(failures.is_empty(), "seed {seed}: {failures:#?}");
    assert!(report.kills() >= kills || !report.skipped.is_empty(), "it was killed {} times", report.kills());
    report
}

#[test]
fn acknowledged_writes_survive_kills() {
    short(Load::Blocks, 1, 6, false, Some("durable"));
    short(Load::Blocks, 2, 4, false, Some("volatile"));
    short(Load::Blocks, 3, 4, false, Some("off"));
}

#[test]
fn acknowledged_writes_survive_kills_and_sick_drives() {
    // One campaign without damage, then one with each kind.
    short(Load::Blocks, 4, 30, true, Some("raid6 x5 durable"));
}

#[test]
fn a_flash_cache_is_warm_after_kills_and_never_stale() {
    // One campaign without damage, then one in which a drive of the cache is damaged.
    let report = short(Load::Blocks, 6, 15, true, Some("raid10 x4 durable flash-cached"));
    let whole = report.campaigns.first().expect("there are two");
    assert!(whole.reads_from_flash > 0, "{whole:?}");
}

#[test]
fn acknowledged_commits_survive_kills() {
    short(Load::Database, 5, 3, false, Some("raid5 x4 durable"));
}
