//! What the stories of all loads have in common.

use tier0_bench::address::Address;
use tier0_bench::check::{Checked, check};
use tier0_bench::load::Load;
use tier0_bench::run::options::Isolation;
use tier0_bench::run::{RunOptions, Think};
use tier0_bench::watch::Watch;
use tier0_units::Nanos;

/// So many users for so many seconds, everything else as usual.
pub(crate) fn options(users: u32, seconds: u64) -> RunOptions {
    RunOptions {
        load: None,
        users,
        duration: Nanos::from_secs(seconds),
        ramp: Some(Nanos::from_millis(500)),
        rate: None,
        think: Think::None,
        items: None,
        home: None,
        mix: None,
        queries: None,
        one_pass: false,
        isolation: Isolation::ReadCommitted,
        seed: 1,
    }
}

/// All conditions hold.
pub(crate) fn consistent(address: &Address, load: Option<Load>) {
    let checked = check(address, load, Watch::none()).expect("it can be checked");
    let wrong: Vec<_> = checked.conditions.iter().filter(|one| one.wrong > 0).collect();
    assert!(checked.is_consistent && wrong.is_empty(), "{wrong:#?}");
}

/// Each condition is among the names of the damages, which has one or several, and finds its damage.
pub(crate) fn every_damage_is_found(address: &Address, damages: &[(&str, &str)]) -> Checked {
    let checked = check(address, None, Watch::none()).expect("it can be checked");
    assert!(!checked.is_consistent);
    let planted: Vec<&str> = damages.iter().flat_map(|(names, _)| names.split(' ')).collect();
    for one in &checked.conditions {
        assert!(planted.contains(&one.name.as_str()), "no damage breaks {}", one.name);
        assert!(one.wrong > 0 && one.first.is_some(), "{} does not find its damage: {one:?}", one.name);
    }
    checked
}
