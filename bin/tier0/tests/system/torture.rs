//! The server is killed at random moments, and everything acknowledged is there afterwards: the short form of
//! `cargo xtask torture`. Where fio, PostgreSQL or root are missing, it does without them and says so.

use tier0_torture::{Load, Plan, torture};

/// Kills the server `kills` times and looks what is left.
fn short(load: Load, seed: u64, kills: u32, faults: bool, only: Option<&str>) {
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
}

#[test]
fn acknowledged_writes_survive_kills() {
    short(Load::Blocks, 1, 12, false, Some("durable"));
    short(Load::Blocks, 2, 4, false, Some("volatile"));
    short(Load::Blocks, 3, 4, false, Some("off"));
}

#[test]
fn acknowledged_writes_survive_kills_and_sick_drives() {
    // One campaign without damage, then one with each kind.
    short(Load::Blocks, 4, 30, true, Some("raid6 x5 durable"));
}

#[test]
fn acknowledged_commits_survive_kills() {
    short(Load::Database, 5, 3, false, Some("raid5 x4 durable"));
}
