//! What the layout costs per host I/O: nanoseconds to map an address, to plan a read and to plan a write.
//!
//! `cargo bench -p tier0-raid --bench layout_rate`
//!
//! The simulator means to carry a million host I/Os per second and core, 1000 ns each; a plan must be a small
//! part of that. Addresses are spread over a large set so that neither rows nor branches repeat.

use std::hint::black_box;
use std::time::Instant;

use tier0_raid::layout::{Column, ColumnMask, Layout, Piece, RaidConfig, RaidLevel};
use tier0_units::{Lba, SectorCount};

const CALLS: u64 = 2_000_000;
/// 8 KiB in stripe units of 64 KiB.
const IO: SectorCount = SectorCount(16);
const STRIPE_UNIT: SectorCount = SectorCount(128);

fn main() {
    println!("8 KiB at random, stripe unit 64 KiB; nanoseconds per call");
    println!(
        "{:<8}{:>8}{:>8}{:>12}{:>10}{:>16}{:>17}",
        "level", "columns", "map", "plan_read", "degraded", "plan_write", "degraded"
    );
    for (level, columns) in
        [(RaidLevel::Raid10, 8), (RaidLevel::Raid5, 6), (RaidLevel::Raid50, 12), (RaidLevel::Raid6, 10)]
    {
        let layout = Layout::new(&RaidConfig::new(level, columns, STRIPE_UNIT)).expect("a shape that exists");
        let (none, one) = (ColumnMask::EMPTY, ColumnMask::only(Column(1)));
        let map = nanoseconds(|lba| u64::from(layout.map(lba).unit.0));
        let [healthy_read, degraded_read] =
            [none, one].map(|lost| nanoseconds(|lba| read(&layout, lba, lost)));
        let [healthy_write, degraded_write] =
            [none, one].map(|lost| nanoseconds(|lba| write(&layout, lba, lost)));
        println!(
            "{:<8}{columns:>8}{map:>8.1}{healthy_read:>12.1}{degraded_read:>10.1}{healthy_write:>16.1}{degraded_write:>17.1}",
            level.name()
        );
    }
}

fn piece(layout: &Layout, lba: Lba) -> Piece {
    layout.pieces(lba, IO).next().expect("a piece")
}

/// Plans a read and walks its drive reads.
fn read(layout: &Layout, lba: Lba, lost: ColumnMask) -> u64 {
    let piece = piece(layout, lba);
    let plan = layout.plan_read(&piece, lost, |copies| copies.first().expect("a copy")).expect("survivable");
    plan.reads().map(|extent| extent.sectors.0).sum()
}

/// Plans a write and walks its drive reads and writes.
fn write(layout: &Layout, lba: Lba, lost: ColumnMask) -> u64 {
    let plan = layout.plan_write(&piece(layout, lba), lost).expect("survivable");
    plan.reads().chain(plan.writes()).map(|extent| extent.sectors.0).sum()
}

#[expect(clippy::disallowed_methods, reason = "a benchmark measures the wall clock")]
fn nanoseconds(mut call: impl FnMut(Lba) -> u64) -> f64 {
    let mut state = 1_u64;
    let start = Instant::now();
    for _ in 0..CALLS {
        // Knuth's MMIX generator; its high bits pick one of 2^28 addresses aligned to the I/O.
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        black_box(call(black_box(Lba(state >> 36 << 4))));
    }
    start.elapsed().as_secs_f64() * 1e9 / CALLS as f64
}
