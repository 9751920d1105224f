//! A disk built from a datasheet does what the datasheet says.

use crate::disk_common::Bench;
use tier0_drive::disk::{Datasheet, Geometry, Operation, SeekPoints};
use tier0_units::{Nanos, SectorCount};

/// A 15k disk: seeks of the Cheetah 15K.7 (product manual p. 14), geometry of the Cheetah 15K.5.
fn sheet() -> Datasheet {
    Datasheet {
        name: "15k".into(),
        capacity: SectorCount(280_000_000),
        rpm: 15_000.0,
        surfaces: 4,
        outer_sectors_per_track: 1_200,
        inner_sectors_per_track: 720,
        zones: 14,
        cylinders: None,
        seek_read: SeekPoints { single_track_ms: 0.2, average_ms: 3.4, full_stroke_ms: 6.6 },
        seek_write: SeekPoints { single_track_ms: 0.44, average_ms: 3.9, full_stroke_ms: 7.4 },
        head_switch: Nanos::from_micros(600),
        write_settle: Nanos::from_micros(240),
        controller_overhead: Nanos::from_micros(100),
        interface_bytes_per_s: 400e6,
        buffer: SectorCount(16 << 11),
        buffer_segments: 32,
        read_ahead: SectorCount(1_024),
        write_cache: false,
        queue_depth: 32,
    }
}

fn bench(sheet: &Datasheet) -> Bench {
    Bench::new(sheet.parameters().expect("a possible disk"))
}

/// Mean time of random requests of 16 sectors, one at a time, in milliseconds.
fn random_ms(operation: Operation) -> f64 {
    let mut bench = bench(&sheet());
    let (mut state, mut now, mut sum) = (1_u64, Nanos::ZERO, Nanos::ZERO);
    for _ in 0..20_000 {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        let took = bench.time(now, operation, (state >> 20) % (280_000_000 / 16) * 16, 16);
        sum += took;
        now = now + took + Nanos(state >> 45);
    }
    sum.as_millis_f64() / 20_000.0
}

#[test]
fn random_access_takes_seek_rotation_and_overhead() {
    // 0.1 ms of overhead, the average seek, half a revolution, 16 sectors at some 1,000 per track of 4 ms.
    let rest = 0.1 + 2.0 + 16.0 / 1_000.0 * 4.0;
    let (read, write) = (random_ms(Operation::Read), random_ms(Operation::Write));
    assert!((read / (3.4 + rest) - 1.0).abs() < 0.02, "read {read} ms");
    assert!((write / (3.9 + rest) - 1.0).abs() < 0.02, "write {write} ms");
}

#[test]
fn sequential_access_runs_at_the_sustained_rate() {
    let sheet = sheet();
    let (outer, inner) = (0, sheet.capacity.0 - 200_000);
    for (start, sectors_per_track) in [(outer, 1_200.0), (inner, 720.0)] {
        for (operation, depth) in [(Operation::Read, 1), (Operation::Read, 4), (Operation::Write, 4)] {
            let mut bench = bench(&sheet);
            let (mut next, mut submitted) = (start, 0);
            let mut submit = |bench: &mut Bench, now, count: usize| {
                for _ in 0..count {
                    bench.submit(now, submitted, operation, next, 256);
                    (next, submitted) = (next + 256, submitted + 1);
                }
            };
            submit(&mut bench, Nanos::ZERO, depth);
            while bench.completed.len() < 500 {
                let (now, before) =
                    (bench.model.next_event().expect("requests are outstanding"), bench.completed.len());
                bench.advance(now);
                let ended = bench.completed.len() - before;
                submit(&mut bench, now, ended);
            }
            let (from, to) = (bench.completed[100].1, bench.completed[499].1);
            let rate = 399.0 * 256.0 * 512.0 / (to - from).as_secs_f64();
            // A track a revolution, and a change of head between.
            let expected = sectors_per_track * 512.0 / (0.004 + 0.0006);
            let ratio = rate / expected;
            assert!(
                (0.96..1.02).contains(&ratio),
                "{operation:?} at {start}, depth {depth}: {ratio} of the rate"
            );
        }
    }
}

#[test]
fn the_rate_gives_the_sectors_per_track() {
    let head_switch = Nanos::from_micros(600);
    let rate = 1_200.0 * 512.0 / 0.0046;
    assert_eq!(Datasheet::sectors_per_track(rate, 15_000.0, head_switch), 1_200);
}

#[test]
fn the_capacity_is_met() {
    let geometry = Geometry::new(sheet().parameters().unwrap()).unwrap();
    assert_eq!(geometry.sectors(), SectorCount(280_000_000));
    let few = Datasheet { cylinders: Some(1_000), ..sheet() };
    let error = Geometry::new(few.parameters().unwrap()).unwrap_err().to_string();
    assert!(error.contains("less than the capacity"), "{error}");
}

#[test]
fn impossible_datasheets_are_refused() {
    let seek = |single_track_ms, average_ms| SeekPoints { single_track_ms, average_ms, full_stroke_ms: 6.6 };
    for sheet in [
        Datasheet { rpm: 0.0, ..sheet() },
        Datasheet { surfaces: 0, ..sheet() },
        Datasheet { zones: 0, ..sheet() },
        Datasheet { capacity: SectorCount(0), ..sheet() },
        Datasheet { inner_sectors_per_track: 1_201, ..sheet() },
        Datasheet { seek_read: seek(0.2, 7.0), ..sheet() },
        Datasheet { seek_write: seek(3.4, 0.2), ..sheet() },
        Datasheet { seek_read: seek(f64::NAN, 3.4), ..sheet() },
    ] {
        assert!(sheet.parameters().is_err(), "{sheet:?}");
    }
}
