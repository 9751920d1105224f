//! The model against figures that were measured on real databases and that no study uses.

use tier0_database::engine::Engine;
use tier0_database::layout::{Layout, Scale};
use tier0_database::sweep::{SweepCounts, sweep};
use tier0_database::workload::{Changes, Law, Workload};
use tier0_units::ByteCount;
use tier0_world::Random;

const SEED: u64 = 1;

fn order_entry(choices: &[(&str, &str)]) -> Workload {
    let choices = choices.iter().map(|(name, law)| ((*name).to_owned(), (*law).to_owned()));
    let changes = Changes { choices: choices.collect(), ..Changes::default() };
    Workload::find("order-entry", &changes).expect("it is embedded")
}

fn engine(id: &str) -> Engine {
    Engine::find(id).expect("it is embedded")
}

/// The size of a model, as a share of what was measured.
const SHARE: f64 = 0.04;

/// A public sweep of buffer sizes: 1,000 warehouses, pages of 16 KiB, every user in all warehouses.
fn pool(gib: f64, item: &str) -> SweepCounts {
    let pages = (gib * SHARE * 65_536.0) as u64;
    let workload = order_entry(&[("item", item), ("warehouse", "uniform")]);
    let scale = Scale { units: 1000.0 * SHARE, grown: 1.0 };
    sweep(&workload, &engine("innodb"), &scale, pages, 80, 20_000, SEED)
}

pub(crate) fn assert_within(what: &str, found: f64, measured: f64, share: f64) {
    let error = found / measured - 1.0;
    assert!(error.abs() <= share, "{what}: {found:.2}, measured {measured} ({:+.0} %)", error * 100.0);
}

/// MySQL 8.4 and MariaDB 12.2 under the same load differ by 6 % in reads and 27 % in writes at 10 GiB: the model is judged by
/// both.
#[test]
fn reads_and_writes_of_a_commit_are_as_a_buffer_sweep_measured_them() {
    let (small, large) = (pool(10.0, "uniform"), pool(30.0, "uniform"));
    assert_within("reads at 10 GiB, MySQL", small.reads, 12.11, 0.2);
    assert_within("reads at 10 GiB, MariaDB", small.reads, 12.8, 0.2);
    assert_within("reads at 30 GiB, MySQL", large.reads, 4.40, 0.2);
    assert_within("writes at 10 GiB, MariaDB", small.writes, 5.30, 0.2);
    assert_within("writes at 30 GiB, MySQL", large.writes, 2.61, 0.2);
    // A skew that the load did not have.
    let skewed = pool(10.0, "nurand 8191");
    assert!(small.reads > 1.5 * skewed.reads, "{} {}", small.reads, skewed.reads);
}

/// Chen et al., SIGMOD Record 39(3) 2010: SQL Server, 14,000 warehouses, 64 GB of memory, of which 60 for pages.
#[test]
fn reads_to_writes_are_as_a_trace_measured_them() {
    let share = 0.0025;
    let workload = order_entry(&[("warehouse", "uniform")]);
    let scale = Scale { units: 14_000.0 * share, grown: 1.0 };
    let pages = (60e9 * share / 8192.0) as u64;
    let found = sweep(&workload, &engine("sql-server-2008"), &scale, pages, 300, 20_000, SEED);
    assert_within("reads to writes", found.reads / found.writes, 1.9, 0.2);
}

/// The share of accesses that goes to the hottest part of 100,000 items, by enumeration of the whole distribution.
#[test]
fn skew_is_that_of_the_specification() {
    let law = Law::NuRand { a: 8191 }.over(100_000);
    let mut random = Random::new(SEED, 0);
    let mut counts = vec![0u32; 100_000];
    let draws = 4_000_000;
    (0..draws).for_each(|_| counts[law.draw(&mut random, 0) as usize] += 1);
    counts.sort_unstable_by(|a, b| b.cmp(a));
    for (part, share) in [(0.02, 0.393), (0.05, 0.590), (0.10, 0.710), (0.20, 0.844), (0.50, 0.974)] {
        let hottest: u32 = counts[..(100_000.0 * part) as usize].iter().sum();
        let found = f64::from(hottest) / f64::from(draws);
        assert!((found - share).abs() < 0.01, "the hottest {part}: {found:.3}, exactly {share}");
    }
}

/// "About 100 MB for each warehouse" (documentation of several kits).
#[test]
fn a_warehouse_is_as_large_as_kits_say() {
    let one = Scale { units: 1.0, grown: 1.0 };
    for id in ["innodb", "oracle-11g", "postgresql-15", "sql-server-2008"] {
        let layout = Layout::new(&order_entry(&[]), &engine(id), &one);
        // Items are shared by all warehouses.
        let items = layout.objects[4].pages * layout.page.0;
        let bytes = layout.bytes().0 - items;
        assert!((70_000_000..110_000_000).contains(&bytes), "{id}: {}", ByteCount(bytes));
    }
}
