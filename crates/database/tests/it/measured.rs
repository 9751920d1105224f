//! The model against figures that were measured on real databases and that no study uses.

use tier0_database::engine::Engine;
use tier0_database::layout::{Layout, Scale};
use tier0_database::sweep::{SweepCounts, Users, sweep};
use tier0_database::workload::{Changes, Workload};

const SEED: u64 = 1;

fn order_entry(choices: &[(&str, &str)]) -> Workload {
    let choices = choices.iter().map(|(name, law)| ((*name).to_owned(), (*law).to_owned()));
    let changes = Changes { choices: choices.collect(), ..Changes::default() };
    Workload::find("order-entry", &changes).expect("it is embedded")
}

fn innodb() -> Engine {
    Engine::find("innodb").expect("it is embedded")
}

/// A public sweep of buffer sizes (MySQL 8.4, 1,000 warehouses, pages of 16 KiB, items drawn uniformly, all warehouses by every
/// user), here at a tenth of its size.
fn pool(gib: f64, item: &str) -> SweepCounts {
    let pages = (gib * 0.1 * 65_536.0) as u64;
    let workload = order_entry(&[("item", item), ("warehouse", "uniform")]);
    let scale = Scale { units: 100.0, grown: 1.0 };
    sweep(&workload, &innodb(), &scale, pages, Users { count: 80 }, 50_000, SEED)
}

#[test]
fn show() {
    for (gib, reads, writes) in [(10.0, 12.11, 4.17), (30.0, 4.40, 2.61), (50.0, 1.355, 1.468), (70.0, 0.093, 0.751)] {
        let found = pool(gib, "uniform");
        println!("{gib} measured {reads} {writes}: {found:?}");
        let found = pool(gib, "nurand 8191");
        println!("   nurand: {:.2} {:.2}", found.reads, found.writes);
    }
    let w = order_entry(&[]);
    let l = Layout::new(&w, &innodb(), &Scale { units: 1.0, grown: 1.0 });
    println!("{} per warehouse", l.bytes());
}
