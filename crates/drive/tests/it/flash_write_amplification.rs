//! Write amplification of uniform random writes against the closed form for greedy collection.

use crate::flash_common::{Load, parameters};
use tier0_drive::flash::{FlashModel, Precondition};
use tier0_units::{ByteCount, Nanos};

/// The principal branch of Lambert's W for `-1/e <= x < 0`, by Newton's method.
fn lambert_w(x: f64) -> f64 {
    let mut w = -0.5_f64;
    for _ in 0..100 {
        w -= (w * w.exp() - x) / (w.exp() * (1.0 + w));
    }
    w
}

/// Greedy collection of uniform random writes in the limit of large blocks, for `physical / logical` = `a`:
/// Desnoyers, "Analytic Modeling of SSD Write Performance" (SYSTOR 2012); Xiang and Kurkoski, "An Improved
/// Analytic Expression for Write Amplification in NAND Flash" (ICNC 2012), which gives 2.36 for a = 1.3.
fn greedy_write_amplification(a: f64) -> f64 {
    a / (a + lambert_w(-a * (-a).exp()))
}

#[test]
fn the_closed_form_is_the_published_one() {
    assert!((greedy_write_amplification(1.3) - 2.36).abs() < 0.01);
}

#[test]
fn uniform_random_writes_amplify_as_greedy_theory_says() {
    println!("{:>6} {:>10} {:>8} {:>8} {:>8}", "OP", "span", "theory", "model", "ratio");
    for over_provisioning in [0.07, 0.15, 0.28] {
        for (capacity, span) in
            [(ByteCount::gib(2), ByteCount::gib(2)), (ByteCount::gb(400), ByteCount::gib(1))]
        {
            let p = tier0_drive::flash::FlashParameters {
                capacity,
                modelled_span: span,
                over_provisioning,
                ..parameters()
            };
            let mut drive = FlashModel::new(p, 1).expect("the parameters are in range");
            drive.precondition(Precondition::default());
            Load::random(32, 0, 1_500_000).run(&mut drive);
            let model = drive.statistics().write_amplification();
            let theory = greedy_write_amplification(1.0 + over_provisioning);
            println!(
                "{over_provisioning:>6} {capacity:>10} {theory:>8.3} {model:>8.3} {:>8.3}",
                model / theory
            );
            assert!(
                (model / theory - 1.0).abs() < 0.15,
                "{model:.3} instead of {theory:.3} at {over_provisioning}"
            );
        }
    }
}

#[test]
fn preconditioning_ends_in_the_steady_state() {
    let p = tier0_drive::flash::FlashParameters { over_provisioning: 0.07, ..parameters() };
    let mut drive = FlashModel::new(p, 3).expect("the parameters are in range");
    let reached = drive.precondition(Precondition::default());
    Load::random(32, 0, 500_000).run(&mut drive);
    let after = drive.statistics().write_amplification();
    assert!((after / reached - 1.0).abs() < 0.05, "preconditioned to {reached:.2}, then {after:.2}");
}

#[test]
fn a_fresh_drive_writes_faster_than_a_preconditioned_one() {
    let load = Load::random(32, 0, 200_000);
    let p = tier0_drive::flash::FlashParameters { over_provisioning: 0.07, ..parameters() };
    let mut fresh = FlashModel::new(p.clone(), 1).expect("the parameters are in range");
    let mut used = FlashModel::new(p, 1).expect("the parameters are in range");
    used.precondition(Precondition::default());
    let (fresh, used) = (load.run(&mut fresh).iops, load.run(&mut used).iops);
    assert!(fresh > 3.0 * used, "fresh {fresh:.0} IOPS, preconditioned {used:.0} IOPS");
}

#[test]
fn sequential_writes_do_not_amplify() {
    let mut drive = FlashModel::new(parameters(), 1).expect("the parameters are in range");
    drive.precondition(Precondition::Sequential);
    Load::sequential(8, 0, 3 * 8192).run(&mut drive);
    let amplification = drive.statistics().write_amplification();
    assert!(amplification < 1.02, "sequential writes amplify by {amplification:.3}");
}

#[test]
fn discarded_space_works_as_over_provisioning() {
    let p = tier0_drive::flash::FlashParameters { over_provisioning: 0.07, ..parameters() };
    let mut drive = FlashModel::new(p, 1).expect("the parameters are in range");
    let full = drive.precondition(Precondition::default());
    // A third of the drive is discarded, and only the rest written from then on.
    let kept = drive.capacity().0 / 8 * 2 / 3;
    use tier0_drive::flash::FlashCommand::{Discard, Write};
    use tier0_units::{Lba, SectorCount};
    let rest = SectorCount(drive.capacity().0 - kept * 8);
    let mut now = drive.submit(Nanos::ZERO, Discard, Lba(kept * 8), rest);
    let mut page = 1_u64;
    let mut write = |drive: &mut FlashModel, count: u64| {
        for _ in 0..count {
            page = page.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
            now = drive.submit(now, Write, Lba((page >> 33) % kept * 8), SectorCount(8));
        }
    };
    write(&mut drive, 400_000);
    let before = drive.statistics();
    write(&mut drive, 400_000);
    let after = drive.statistics();
    let amplification = (after.nand_pages_written - before.nand_pages_written) as f64
        / (after.host_pages_written - before.host_pages_written) as f64;
    // What is mapped now is 2/3 of the capacity: physical / logical is 1.07 x 3/2.
    let theory = greedy_write_amplification(1.07 * 1.5);
    println!("full {full:.2}, a third discarded {amplification:.2}, theory {theory:.2}");
    assert!((amplification / theory - 1.0).abs() < 0.15, "{amplification:.2} instead of {theory:.2}");
    assert!(amplification < full / 2.0, "no better than the {full:.2} before");
}
