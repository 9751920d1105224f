//! Latencies and ceilings of the flash model against sums and quotients done by hand.

use crate::flash_common::{Load, parameters};
use tier0_drive::flash::{FlashCommand, FlashModel, FlashParameters, Precondition, ReadScheduling};
use tier0_units::{ByteCount, Lba, Nanos, SectorCount};

fn fresh(parameters: FlashParameters) -> FlashModel {
    FlashModel::new(parameters, 1).expect("the parameters are in range")
}

fn preconditioned(parameters: FlashParameters) -> FlashModel {
    let mut drive = fresh(parameters);
    drive.precondition(Precondition::default());
    drive
}

/// Asserts that `got` is within `percent` of `expected`.
fn assert_near(what: &str, got: f64, expected: f64, percent: f64) {
    println!("{what}: {got:.0}, by hand {expected:.0}");
    assert!((got / expected - 1.0).abs() * 100.0 <= percent, "{what}: {got:.0} instead of {expected:.0}");
}

#[test]
fn a_single_read_takes_the_sum_of_its_parts() {
    let mut drive = preconditioned(parameters());
    // Controller 20 us, tR 50 us, 4 KiB at 400 MB/s 10.24 us, 4 KiB at 800 MB/s 5.12 us.
    let done = drive.submit(Nanos(1_000), FlashCommand::Read, Lba(8_000), SectorCount(8));
    assert_eq!(done, Nanos(1_000 + 20_000 + 50_000 + 10_240 + 5_120));
}

#[test]
fn a_single_write_takes_controller_and_link() {
    let mut drive = preconditioned(parameters());
    // Controller 15 us, 8 KiB at 800 MB/s 10.24 us; the program comes later.
    let done = drive.submit(Nanos(0), FlashCommand::Write, Lba(8_000), SectorCount(16));
    assert_eq!(done, Nanos(15_000 + 10_240));
}

#[test]
fn unwritten_discarded_and_buffered_pages_are_read_without_the_flash() {
    let mut drive = fresh(parameters());
    // Controller 20 us and link 5.12 us.
    let quick = Nanos(25_120);
    assert_eq!(drive.submit(Nanos(0), FlashCommand::Read, Lba(0), SectorCount(8)), quick);
    let at = Nanos::from_millis(1);
    drive.submit(at, FlashCommand::Write, Lba(0), SectorCount(8));
    let at = Nanos::from_millis(2);
    assert_eq!(drive.submit(at, FlashCommand::Read, Lba(0), SectorCount(8)), at + quick, "buffered");
    // Four pages fill a stripe of 16 KiB, which takes 800 us to program.
    let at = Nanos::from_millis(3);
    drive.submit(at, FlashCommand::Write, Lba(8), SectorCount(24));
    let soon = at + Nanos::from_micros(200);
    assert_eq!(
        drive.submit(soon, FlashCommand::Read, Lba(0), SectorCount(8)),
        soon + quick,
        "being programmed"
    );
    let at = Nanos::from_millis(10);
    let slow = drive.submit(at, FlashCommand::Read, Lba(0), SectorCount(8));
    assert_eq!(slow, at + Nanos(85_360), "programmed, hence read from the die");
    let at = Nanos::from_millis(20);
    drive.submit(at, FlashCommand::Discard, Lba(0), SectorCount(8));
    let at = Nanos::from_millis(30);
    assert_eq!(drive.submit(at, FlashCommand::Read, Lba(0), SectorCount(8)), at + quick, "discarded");
    drive.assert_consistent();
}

#[test]
fn random_reads_saturate_the_slowest_resource() {
    let p = parameters();
    let slow_controller = FlashParameters { controller_cores: 1, ..p.clone() };
    let slow_channels = FlashParameters { channel_bytes_per_second: 50_000_000, ..p.clone() };
    let slow_link = FlashParameters { interface_bytes_per_second: 200_000_000, ..p.clone() };
    // Commands meet on dies while others idle: of n alike servers with exponential times and m commands about
    // m / (m + n - 1) work. Constant times, as here, come between that and all.
    let working = |servers: f64| 64.0 / (64.0 + servers - 1.0);
    for (what, parameters, ceiling, share) in [
        // 8 dies / 50 us.
        ("dies", p, 8.0 / 50e-6, working(8.0)),
        // 1 core / 20 us.
        ("controller", slow_controller, 1.0 / 20e-6, 1.0),
        // 4 channels at 50 MB/s.
        ("channels", slow_channels, 4.0 * 50e6 / 4096.0, working(4.0)),
        // 200 MB/s.
        ("link", slow_link, 200e6 / 4096.0, 1.0),
    ] {
        let iops = Load::random(64, 100, 200_000).run(&mut preconditioned(parameters)).iops;
        println!("{what}: {iops:.0} of {ceiling:.0}, at least {:.0} of them", ceiling * share);
        assert!(iops <= ceiling * 1.001, "{what}: {iops:.0} is more than {ceiling:.0}");
        assert!(iops >= ceiling * share * 0.995, "{what}: {iops:.0} of {ceiling:.0}");
    }
}

#[test]
fn sequential_transfers_reach_the_channels_and_the_programs() {
    let p = FlashParameters { interface_bytes_per_second: 4_000_000_000, ..parameters() };
    let p = FlashParameters { controller_read_bytes_per_second: 4_000_000_000, ..p };
    let p = FlashParameters { controller_write_bytes_per_second: 4_000_000_000, ..p };
    let mut drive = fresh(p);
    drive.precondition(Precondition::Sequential);
    let read = Load::sequential(16, 100, 20_000).run(&mut drive);
    // 8 dies x 16 KiB / 50 us is 2,621 MB/s, more than the 4 x 400 MB/s of the channels.
    assert_near("read MB/s", read.iops * 131_072.0 / 1e6, 1_600.0, 5.0);
    let write = Load { start: read.ended, ..Load::sequential(16, 0, 20_000) }.run(&mut drive);
    // 8 dies x 16 KiB / 800 us, less 3 ms of erase for 64 programs.
    let by_hand = 8.0 * 16_384.0 / (800e-6 + 3e-3 / 64.0) / 1e6;
    assert_near("write MB/s", write.iops * 131_072.0 / 1e6, by_hand, 3.0);
}

#[test]
fn random_writes_sustain_what_the_programs_leave_after_collection() {
    let mut drive = preconditioned(parameters());
    let measured = Load::random(32, 0, 400_000).run(&mut drive);
    let amplification = drive.statistics().write_amplification();
    // Per program of 4 pages 800 us; for each moved one a NAND read, often for it alone; an erase in 64.
    let moved = 4.0 * (amplification - 1.0);
    let busy = 800e-6 * amplification + 50e-6 * moved + 3e-3 / 64.0 * amplification;
    println!("write amplification {amplification:.2}");
    assert_near("random write IOPS", measured.iops, 8.0 * 4.0 / busy, 7.0);
}

#[test]
fn writes_are_quick_until_the_buffer_is_full() {
    let mut drive = preconditioned(parameters());
    let mut now = Nanos::ZERO;
    let first_slow = (0..20_000_u64).find(|page| {
        let lba = Lba(page * 7919 % 262_144 * 8);
        let done = drive.submit(now, FlashCommand::Write, lba, SectorCount(8));
        let took = done - now;
        now = done;
        took > Nanos(15_000 + 5_120)
    });
    // The buffer holds 2,048 pages. One write in 20.12 us is 49,700 a second, of which the drive programs about
    // 14,000 meanwhile (`random_writes_sustain...`): 2,048 / (1 - 14,000 / 49,700) = 2,850.
    let first_slow = first_slow.expect("the buffer fills");
    assert_near("writes before one waits", first_slow as f64, 2_850.0, 15.0);
}

#[test]
fn reads_amid_writes_wait_as_their_scheduling_says() {
    let mean = |read_scheduling| {
        let p = FlashParameters { read_scheduling, ..parameters() };
        Load::random(8, 50, 100_000).run(&mut preconditioned(p)).read_latency_ns_mean
    };
    let in_order = mean(ReadScheduling::InOrder);
    let between = mean(ReadScheduling::BetweenOperations);
    let suspending = mean(ReadScheduling::Suspending(Nanos::from_micros(20)));
    println!(
        "read latency in order {in_order:.0} ns, between {between:.0} ns, suspending {suspending:.0} ns"
    );
    // A read in order waits for whole programs and whatever else is queued.
    assert!(in_order > 1.5 * between, "in order {in_order:.0} ns");
    // On top of an idle drive's 85 us half a program, or half an erase for the 3 ms in 64 x 0.8 + 3 ms that a busy
    // die erases.
    let erasing = 3.0 / (64.0 * 0.8 + 3.0);
    let by_hand = 85_360.0 + (1.0 - erasing) * 800e3 / 2.0 + erasing * 3e6 / 2.0;
    assert_near("between operations", between, by_hand, 10.0);
    assert_near("suspending", suspending, 85_360.0 + 20_000.0, 20.0);
}

#[test]
fn commands_beyond_the_queue_depth_wait() {
    let p = FlashParameters { queue_depth: 1, ..parameters() };
    let mut drive = preconditioned(p);
    let first = drive.submit(Nanos(0), FlashCommand::Read, Lba(0), SectorCount(8));
    let second = drive.submit(Nanos(0), FlashCommand::Read, Lba(80_000), SectorCount(8));
    assert_eq!((first, second), (Nanos(85_360), Nanos(2 * 85_360)));
}

#[test]
fn a_flush_programs_an_unprotected_buffer_only() {
    let flush = |power_loss_protected| {
        let mut drive = fresh(FlashParameters { power_loss_protected, ..parameters() });
        drive.submit(Nanos(0), FlashCommand::Write, Lba(0), SectorCount(8));
        let done = drive.submit(Nanos::from_millis(1), FlashCommand::Flush, Lba(0), SectorCount(0));
        drive.assert_consistent();
        done - Nanos::from_millis(1)
    };
    assert_eq!(flush(true), Nanos(15_000));
    // Controller 15 us, a stripe of 16 KiB over its channel 40.96 us, program 800 us.
    assert_eq!(flush(false), Nanos(15_000 + 40_960 + 800_000));
}

#[test]
fn without_a_buffer_a_write_waits_for_its_program() {
    let mut drive = fresh(FlashParameters { write_buffer: ByteCount(0), ..parameters() });
    let done = drive.submit(Nanos(0), FlashCommand::Write, Lba(0), SectorCount(8));
    assert_eq!(done, Nanos(15_000 + 5_120 + 40_960 + 800_000));
}

#[test]
fn a_half_duplex_link_is_shared_by_reads_and_writes() {
    let iops = |interface_full_duplex| {
        let p = FlashParameters { interface_full_duplex, ..parameters() };
        let p = FlashParameters { interface_bytes_per_second: 100_000_000, over_provisioning: 3.0, ..p };
        Load::random(64, 50, 100_000).run(&mut preconditioned(p)).iops
    };
    assert_near("half duplex", iops(false), 100e6 / 4096.0, 3.0);
    assert_near("full duplex", iops(true), 2.0 * 100e6 / 4096.0, 8.0);
}

#[test]
fn the_spread_of_read_times_keeps_their_mean() {
    let p = FlashParameters { read_time_spread: 0.5, ..parameters() };
    let mut drive = preconditioned(p);
    let (mut sum, mut least, mut most) = (0, u64::MAX, 0);
    for number in 0..20_000_u64 {
        let now = Nanos::from_millis(number);
        let page = number * 7919 % 262_144;
        let took = (drive.submit(now, FlashCommand::Read, Lba(page * 8), SectorCount(8)) - now).0;
        (sum, least, most) = (sum + took, least.min(took), most.max(took));
    }
    assert_near("mean", sum as f64 / 20_000.0, 85_360.0, 0.5);
    assert_near("least", least as f64, 60_360.0, 0.5);
    assert_near("most", most as f64, 110_360.0, 0.5);
}

#[test]
fn a_folded_drive_keeps_the_timing_of_the_whole_one() {
    // The same drive with its whole span modelled and with a thirty-second of it.
    let measure = |modelled_span, read_percent| {
        let p = FlashParameters { capacity: ByteCount::gib(4), modelled_span, ..parameters() };
        let mut drive = preconditioned(p);
        Load::random(32, read_percent, 600_000).run(&mut drive)
    };
    for read_percent in [100, 70, 0] {
        let whole = measure(ByteCount::gib(4), read_percent);
        let folded = measure(ByteCount::mib(128), read_percent);
        assert_near(&format!("IOPS at {read_percent} % reads"), folded.iops, whole.iops, 5.0);
        if read_percent > 0 {
            assert_near("read latency", folded.read_latency_ns_mean, whole.read_latency_ns_mean, 8.0);
        }
    }
}

#[test]
fn a_folded_drive_finds_no_more_in_its_buffer_than_the_whole_one() {
    // The buffer is a 128th of the drive, and a quarter of the modelled span. Controller and link take no time,
    // so that what takes less than a read from a die came from the buffer.
    let rate = 1_000_000_000_000;
    let p = FlashParameters { capacity: ByteCount::gib(4), write_buffer: ByteCount::mib(32), ..parameters() };
    let p = FlashParameters { controller_read_time: Nanos(0), interface_bytes_per_second: rate, ..p };
    let p = FlashParameters { controller_read_bytes_per_second: rate, queue_depth: 65_536, ..p };
    let found = |modelled_span| {
        let mut drive = preconditioned(FlashParameters { modelled_span, ..p.clone() });
        let now = Load::random(32, 0, 200_000).run(&mut drive).ended;
        let reads = (0..50_000).filter(|number| {
            let lba = Lba(number * 7919 % 1_048_576 * 8);
            let at = now + Nanos(number * 10);
            drive.submit(at, FlashCommand::Read, lba, SectorCount(8)) - at < Nanos::from_micros(50)
        });
        reads.count() as f64
    };
    let (whole, folded) = (found(ByteCount::gib(4)), found(ByteCount::mib(128)));
    // On the whole drive each die collects for itself, and the one with the most to collect holds up the writers,
    // so that the others' shares of the buffer are not always full. On the folded one a buffered page is forgotten
    // when one that shares its modelled page is written, which befalls about 1 - 4 (1 - e^-1/4) = 12 % of them.
    for (what, found) in [("whole", whole), ("folded", folded)] {
        assert_near(what, found, 50_000.0 / 128.0, 25.0);
    }
}
