//! Positional queueing: what goes first, that nothing is lost, and that time only goes forward.

use crate::disk_common::{Bench, SECTORS, ms, plain};
use proptest::prelude::*;
use tier0_drive::disk::{DiskParameters, Operation, ReadAhead, Scheduling, WriteReporting};
use tier0_units::Nanos;

use Operation::{Flush, Read, Write, WriteThrough};

fn positional(change: impl FnOnce(&mut DiskParameters)) -> Bench {
    let mut parameters = plain();
    parameters.controller.scheduling = Scheduling::ShortestPositioning;
    change(&mut parameters);
    Bench::new(parameters)
}

#[test]
fn rotation_decides_on_one_track() {
    // The first one is taken at once and ends at 1 ms; then 20, 50 and 80 in the order in which they pass.
    let mut bench = positional(|_| {});
    for (id, lba) in [(1, 9), (2, 80), (3, 20), (4, 50)] {
        bench.submit(Nanos::ZERO, id, Read, lba, 1);
    }
    bench.finish();
    let order: Vec<u64> = bench.completed.iter().map(|completion| completion.0).collect();
    assert_eq!(order, [1, 3, 4, 2]);
    assert_eq!(bench.end_of(2), ms(8.1 + 0.01));
}

#[test]
fn seek_and_rotation_decide_together() {
    // From cylinder 0 at 0.1 ms. Block 95 is 9.4 ms away by rotation. Block 200 + 50 (cylinder 1) begins at 4 + 5 = 9
    // ms: 2.1 ms of seek fit, 8.9 ms in all. It goes first, though the arm must move.
    let mut bench = positional(|_| {});
    bench.submit(Nanos::ZERO, 1, Read, 0, 1);
    bench.submit(Nanos::ZERO, 2, Read, 95, 1);
    bench.submit(Nanos::ZERO, 3, Read, 250, 1);
    bench.finish();
    assert_eq!(bench.end_of(3), ms(9.1 + 0.01));
    assert!(bench.end_of(2) > bench.end_of(3));
}

#[test]
fn nobody_starves() {
    // A stream of reads on the first track, each nearer than the one far out, which waits for 200 ms at most.
    let run = |limit| {
        let mut bench = positional(|p| p.controller.starvation_limit = limit);
        bench.submit(Nanos::ZERO, 0, Read, 0, 1);
        bench.submit(Nanos::ZERO, 1, Read, SECTORS - 1, 1);
        for n in 0..500_u64 {
            // Always two waiting on the track under the head, ahead of it.
            bench.submit(ms(n as f64), 2 + n, Read, (10 * n + 13) % 100, 1);
        }
        bench.finish();
        bench.end_of(1)
    };
    assert!(run(Nanos::from_secs(3_600)) > ms(400.0));
    assert!(run(ms(200.0)) < ms(225.0));
}

#[test]
fn the_nearest_first_outruns_first_come_first_served() {
    let run = |scheduling| {
        let mut parameters = plain();
        parameters.controller.scheduling = scheduling;
        let mut bench = Bench::new(parameters);
        for n in 0..32_u64 {
            bench.submit(Nanos::ZERO, n, Read, n * 7_919 % SECTORS, 1);
        }
        bench.finish();
        bench.completed.iter().map(|completion| completion.1).max().expect("completions")
    };
    let (fifo, positional) = (run(Scheduling::Fifo), run(Scheduling::ShortestPositioning));
    assert!(positional.0 * 2 < fifo.0, "{positional} against {fifo}");
}

#[derive(Clone, Debug)]
struct Step {
    pause_us: u64,
    operation: Operation,
    lba: u64,
    sectors: u32,
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let operation = prop_oneof![5 => Just(Read), 4 => Just(Write), 1 => Just(WriteThrough), 1 => Just(Flush)];
    // Few distinct places, so that hits, overlaps and sequences occur.
    let place = (0..SECTORS / 8, 1_u32..64);
    let step = (0_u64..6_000, operation, place).prop_map(|(pause_us, operation, (place, sectors))| {
        let sectors = sectors.min((SECTORS - place * 8) as u32);
        Step { pause_us: if pause_us < 3_000 { 0 } else { pause_us }, operation, lba: place * 8, sectors }
    });
    prop::collection::vec(step, 1..60)
}

fn drives() -> impl Strategy<Value = DiskParameters> {
    let reporting = prop_oneof![
        Just(WriteReporting::Medium),
        Just(WriteReporting::SequentialInBuffer),
        Just(WriteReporting::InBuffer)
    ];
    let read_ahead = prop_oneof![
        Just(ReadAhead::Off),
        Just(ReadAhead::TrackEnd),
        Just(ReadAhead::CylinderEnd),
        Just(ReadAhead::SegmentFull),
        Just(ReadAhead::NextTrack)
    ];
    let flags = prop::collection::vec(any::<bool>(), 14);
    (reporting, read_ahead, flags, 1_u32..6, 1_u32..20, 10_u64..300, 1_u64..400).prop_map(
        |(write_reporting, read_ahead, flags, segments, queue_depth, segment_sectors, bus_us)| {
            let mut p = plain();
            p.controller.scheduling =
                if flags[0] { Scheduling::Fifo } else { Scheduling::ShortestPositioning };
            p.controller.queue_depth = queue_depth;
            p.controller.sector_transfer = Nanos::from_micros(bus_us);
            p.controller.overheads.first_reselect = ms(if flags[1] { 0.1 } else { 0.0 });
            p.controller.hold_bus_for_read = flags[2];
            p.controller.never_disconnect = flags[3];
            p.controller.extra_write_disconnect = flags[4].then(Default::default);
            let b = &mut p.buffer;
            (b.write_reporting, b.read_ahead, b.segments) = (write_reporting, read_ahead, segments);
            (b.segment_sectors, b.write_segments) = (segment_sectors, 1 + segments / 2);
            b.dedicated_write_segment = flags[5] && segments > 1;
            (b.read_free_sectors, b.zero_latency_read, b.zero_latency_write) = (flags[6], flags[7], flags[8]);
            (b.hit_on_next_sector, b.hit_on_written, b.hit_while_busy) = (flags[9], flags[10], flags[11]);
            (b.write_while_busy, b.combine_writes) = (flags[12], flags[13]);
            p
        },
    )
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 600, failure_persistence: None, ..ProptestConfig::default() })]

    /// Every request completes exactly once, after it was submitted, in the order of time; reads and writes to the
    /// medium take no longer than the mechanism can explain.
    #[test]
    fn every_request_completes_once_and_in_order(parameters in drives(), steps in steps()) {
        let mut bench = Bench::new(parameters);
        let (mut now, mut submitted) = (Nanos::ZERO, Vec::new());
        for (id, step) in steps.iter().enumerate() {
            now += Nanos::from_micros(step.pause_us);
            bench.submit(now, id as u64, step.operation, step.lba, step.sectors);
            submitted.push(now);
            prop_assert!(bench.model.next_event().is_none_or(|next| next >= now) || bench.model.outstanding() > 0);
        }
        bench.finish();
        prop_assert_eq!(bench.completed.len(), steps.len());
        prop_assert_eq!(bench.model.outstanding(), 0);
        prop_assert!(bench.completed.windows(2).all(|pair| pair[0].1 <= pair[1].1), "completions out of order");
        let mut seen = vec![false; steps.len()];
        for &(id, at) in &bench.completed {
            let index = id as usize;
            prop_assert!(!seen[index], "request {} completed twice", index);
            seen[index] = true;
            prop_assert!(at >= submitted[index], "request {} completed before it came in", index);
        }
        // Each step costs at most a seek, three tracks with their turns, the turns lost to a slow bus (one per 25
        // sectors and more) and 64 sectors on the bus, twice where it is written and read again: under a second.
        let last = bench.completed.last().map_or(Nanos::ZERO, |completion| completion.1);
        prop_assert!(last <= now + Nanos::from_secs(steps.len() as u64), "{} after {}", last, now);
    }

    /// The same calls give the same answers.
    #[test]
    fn a_run_can_be_repeated(parameters in drives(), steps in steps()) {
        let run = || {
            let mut bench = Bench::new(parameters.clone());
            let mut now = Nanos::ZERO;
            for (id, step) in steps.iter().enumerate() {
                now += Nanos::from_micros(step.pause_us);
                bench.submit(now, id as u64, step.operation, step.lba, step.sectors);
            }
            bench.finish();
            bench.completed
        };
        prop_assert_eq!(run(), run());
    }
}
