//! The disk model against times worked out by hand, on the disk of `disk_common`.

use crate::disk_common::{Bench, OUTER, ms, plain};
use tier0_drive::disk::{
    AfterCommand, DiskParameters, Operation, Overheads, Preseek, ReadAhead, WriteReporting,
};
use tier0_units::Nanos;

use Operation::{Flush, Read, Write, WriteThrough};

fn with(change: impl FnOnce(&mut DiskParameters)) -> Bench {
    let mut parameters = plain();
    change(&mut parameters);
    Bench::new(parameters)
}

#[test]
fn a_read_waits_for_its_sector() {
    // Sector 30 begins 3 ms after the mark; four sectors take 0.4 ms; the last one then crosses the bus.
    let mut bench = Bench::new(plain());
    assert_eq!(bench.time(Nanos::ZERO, Read, 30, 4), ms(3.0 + 0.4 + 0.01));
    // At 5 ms sector 30 has gone: the rest of the revolution, and 3 ms.
    let mut bench = Bench::new(plain());
    assert_eq!(bench.time(ms(5.0), Read, 30, 4), ms(5.0 + 3.0 + 0.4 + 0.01));
}

#[test]
fn a_read_seeks_before_it_waits() {
    // Cylinder 5, surface 1: block 5 x 200 + 100. Its track starts at 5 x (3 + 1) + 1 = 21 ms = 1 ms in the
    // revolution. The seek ends at 2.5 ms, so it waits until 11 ms.
    let mut bench = Bench::new(plain());
    assert_eq!(bench.time(Nanos::ZERO, Read, 1_100, 10), ms(11.0 + 1.0 + 0.01));
    // The arm is there now: only rotation counts. At 20 ms the platter is at its mark again.
    assert_eq!(bench.time(ms(20.0), Read, 1_110, 10), ms(1.0 + 1.0 + 1.0 + 0.01));
}

#[test]
fn a_read_goes_over_tracks_and_zones() {
    // The last 10 sectors of the first track, the first 10 of the second. The head switch ends at 10.5 ms, the
    // second track starts at 11 ms.
    let mut bench = Bench::new(plain());
    assert_eq!(bench.time(Nanos::ZERO, Read, 90, 20), ms(11.0 + 1.0 + 0.01));
    // Over the end of the outer zone. Its last track (cylinder 9, surface 1) starts at 9 x 4 + 1 = 37 ms; sector 95
    // at 46.5, or 6.5 in the revolution. The seek there takes 2.9 ms, so the outer part ends at 7 ms. To cylinder
    // 10, surface 0: 2.1 ms, there at 9.1 ms; the inner zone's first track starts at the mark, 10 ms; five sectors
    // of 0.2 ms.
    let mut bench = Bench::new(plain());
    assert_eq!(bench.time(Nanos::ZERO, Read, OUTER - 5, 10), ms(10.0 + 1.0 + 0.01));
}

#[test]
fn a_slow_bus_sends_from_the_first_sector_on() {
    let mut bench = with(|p| p.controller.sector_transfer = ms(1.0));
    assert_eq!(bench.time(Nanos::ZERO, Read, 30, 4), ms(3.0 + 0.1 + 4.0));
}

#[test]
fn overheads_delay_the_arm_and_the_host() {
    let overheads = Overheads {
        read_miss: AfterCommand { read: ms(0.5), write: ms(1.5) },
        read_completion: ms(0.2),
        ..Overheads::default()
    };
    let mut bench = with(|p| p.controller.overheads = overheads);
    // The arm leaves at 9.5 ms, so the mark at 10 ms is caught.
    assert_eq!(bench.time(ms(9.0), Read, 0, 1), ms(1.0 + 0.1 + 0.01 + 0.2));
    // Sector 1 at 19.7 ms: the arm leaves at 20.2, behind it.
    assert_eq!(bench.time(ms(19.7), Read, 1, 1), ms(0.3 + 10.1 + 0.1 + 0.01 + 0.2));
    // After a write it leaves 1.5 ms later. The write seeks nowhere, and is reported at 50.2 ms.
    assert_eq!(bench.time(ms(50.0), Write, 1, 1), ms(0.2));
    assert_eq!(bench.time(ms(59.0), Read, 30, 1), ms(1.0 + 3.0 + 0.1 + 0.01 + 0.2));
    assert_eq!(bench.time(ms(99.0), Write, 1, 1), ms(1.2));
    assert_eq!(bench.time(ms(108.9), Read, 3, 1), ms(10.3 + 1.1 + 0.1 + 0.01 + 0.2));
}

#[test]
fn read_ahead_serves_what_follows() {
    let mut bench = with(|p| {
        p.buffer.read_ahead = ReadAhead::SegmentFull;
        p.buffer.read_ahead_max = 50;
        p.controller.overheads.read_hit = AfterCommand::both(ms(0.05));
    });
    bench.time(Nanos::ZERO, Read, 30, 4);
    // Read-ahead goes on to sector 84, at 8.4 ms: at 20 ms all of 80 to 83 is there, sector 84 is not.
    assert_eq!(bench.time(ms(20.0), Read, 80, 4), ms(0.05 + 0.04));
    assert_eq!(bench.model.statistics().read_hits, 1);
    // The next one finds 54 sectors more read ahead, up to 134, which is past the track's end.
    let mut bench = with(|p| {
        p.buffer.read_ahead = ReadAhead::TrackEnd;
        p.buffer.read_ahead_max = 500;
    });
    bench.time(Nanos::ZERO, Read, 30, 4);
    assert_eq!(bench.time(ms(20.0), Read, 96, 4), ms(0.04));
    assert!(bench.time(ms(40.0), Read, 100, 4) > ms(0.4), "the next track was not read ahead");
}

#[test]
fn a_read_of_what_is_being_read_ahead_goes_on_with_it() {
    let mut bench = with(|p| {
        p.buffer.read_ahead = ReadAhead::SegmentFull;
        p.buffer.read_ahead_max = 60;
    });
    bench.time(Nanos::ZERO, Read, 30, 4);
    // At 5 ms sectors 30 to 49 are in the buffer. The read of 45 to 54 has five of them, gets the others as they
    // come, and ends with the last, at 5.5 ms.
    assert_eq!(bench.time(ms(5.0), Read, 45, 10), ms(0.5 + 0.01));
    assert_eq!(bench.model.statistics().read_partial_hits, 1);
}

#[test]
fn read_ahead_gives_way() {
    let mut bench = with(|p| {
        p.buffer.read_ahead = ReadAhead::SegmentFull;
        p.buffer.read_ahead_max = 150;
    });
    bench.time(Nanos::ZERO, Read, 30, 4);
    // At 5.05 ms sector 50 is half read: the arm leaves at 5.1. To cylinder 1 (block 200): 2.1 ms, there at 7.2;
    // its track starts at 4 ms, so at 14.
    assert_eq!(bench.time(ms(5.05), Read, 200, 1), ms(14.0 + 0.1 + 0.01 - 5.05));
    assert_eq!(bench.model.statistics().read_misses, 2);
    // What had been read by then serves on.
    assert_eq!(bench.time(ms(20.0), Read, 49, 2), ms(0.02));
}

#[test]
fn sectors_that_pass_before_the_wanted_ones_are_free() {
    for (free, time) in [(true, ms(0.05)), (false, ms(10.0 + 0.01))] {
        let mut bench = with(|p| p.buffer.read_free_sectors = free);
        // The head waits from 0 to 3 ms over sectors 0 to 29.
        bench.time(Nanos::ZERO, Read, 30, 4);
        // Sectors 20 to 24, at 12.5 ms in the revolution's 2.5: they have just passed.
        assert_eq!(bench.time(ms(12.5), Read, 20, 5), time);
    }
}

#[test]
fn zero_latency_takes_the_tail_first() {
    let mut bench = with(|p| p.buffer.zero_latency_read = true);
    // Sector 35 begins at 3.5 ms exactly and is caught; 30 to 34 come in the next turn, until 13.5 ms. The bus then
    // sends 30 to 34 as they come, and then the 15 others.
    assert_eq!(bench.time(ms(3.5), Read, 30, 20), ms(10.0 + 15.0 * 0.01 + 0.01));
    let mut bench = Bench::new(plain());
    assert_eq!(bench.time(ms(3.5), Read, 30, 20), ms(9.5 + 2.0 + 0.01));
}

#[test]
fn a_write_settles_and_is_reported_on_the_medium() {
    // A change of head and 0.25 ms of settling: over the track at 0.75 ms; it starts at 1 ms.
    let mut bench = Bench::new(plain());
    assert_eq!(bench.time(Nanos::ZERO, Write, 100, 10), ms(1.0 + 1.0));
    // At 0.3 ms it is too late for the start.
    let mut bench = Bench::new(plain());
    assert_eq!(bench.time(ms(0.3), Write, 100, 10), ms(11.0 + 1.0 - 0.3));
}

#[test]
fn a_write_whose_data_come_late_loses_a_turn() {
    // Data from 0 on, one sector per ms: sector 0 is there at 1 ms, so it is written at 10 ms; by then ten are.
    let mut bench = with(|p| p.controller.sector_transfer = ms(1.0));
    assert_eq!(bench.time(Nanos::ZERO, Write, 0, 10), ms(10.0 + 1.0));
    // Twenty sectors: at 10 ms ten are there and an eleventh at 11 ms, just in time; the twelfth is not.
    let mut bench = with(|p| p.controller.sector_transfer = ms(1.0));
    assert_eq!(bench.time(Nanos::ZERO, Write, 0, 20), ms(20.0 + 2.0));
}

fn reporting(change: impl FnOnce(&mut DiskParameters)) -> Bench {
    with(|p| {
        p.buffer.write_reporting = WriteReporting::InBuffer;
        p.controller.overheads.write_hit = AfterCommand::both(ms(0.2));
        change(p);
    })
}

#[test]
fn an_early_reported_write_delays_what_follows() {
    let mut bench = reporting(|_| {});
    assert_eq!(bench.time(Nanos::ZERO, Write, 50, 4), ms(0.2 + 0.04));
    // The mechanism writes sectors 50 to 53 from 5.0 to 5.4 ms. A read of sector 20 at 1 ms comes after.
    let mut bench = reporting(|_| {});
    bench.submit(Nanos::ZERO, 1, Write, 50, 4);
    bench.submit(ms(1.0), 2, Read, 60, 4);
    bench.submit(ms(1.0), 3, Read, 20, 4);
    bench.finish();
    assert_eq!(bench.end_of(1), ms(0.24));
    assert_eq!(bench.end_of(2), ms(6.0 + 0.4 + 0.01));
    assert_eq!(bench.end_of(3), ms(12.0 + 0.4 + 0.01));
}

#[test]
fn written_data_serve_reads_where_the_drive_lets_them() {
    let mut bench = reporting(|_| {});
    bench.time(Nanos::ZERO, Write, 50, 4);
    assert_eq!(bench.time(ms(30.0), Read, 51, 2), ms(0.02));
    let mut bench = reporting(|p| p.buffer.hit_on_written = false);
    bench.time(Nanos::ZERO, Write, 50, 4);
    assert_eq!(bench.time(ms(30.0), Read, 51, 2), ms(5.1 + 0.2 + 0.01));
    // Unwritten, they must first reach the medium: written until 5.4 ms, read in the next turn.
    let mut bench = reporting(|p| p.buffer.hit_on_written = false);
    bench.submit(Nanos::ZERO, 1, Write, 50, 4);
    assert_eq!(bench.time(ms(1.0), Read, 51, 2), ms(15.1 + 0.2 + 0.01 - 1.0));
}

#[test]
fn sequential_writes_go_to_the_medium_in_one_go() {
    let mut bench = reporting(|p| p.buffer.write_while_busy = true);
    bench.submit(Nanos::ZERO, 1, Write, 50, 4);
    bench.submit(ms(0.5), 2, Write, 54, 4);
    bench.submit(ms(0.8), 3, Flush, 0, 0);
    bench.finish();
    assert_eq!((bench.end_of(1), bench.end_of(2)), (ms(0.24), ms(0.74)));
    // 50 to 53 until 5.4 ms, 54 to 57 right behind, until 5.8 ms; then the flush is answered.
    assert_eq!(bench.end_of(3), ms(5.8));
    assert_eq!(bench.model.statistics().destages, 2);
}

#[test]
fn a_flush_waits_for_earlier_writes_only() {
    let mut bench = reporting(|p| p.buffer.write_while_busy = true);
    assert_eq!(bench.time(Nanos::ZERO, Flush, 0, 0), Nanos::ZERO);
    bench.submit(ms(10.0), 1, Write, 50, 4);
    bench.submit(ms(11.0), 2, Flush, 0, 0);
    bench.submit(ms(12.0), 3, Write, 20, 4);
    bench.finish();
    assert_eq!(bench.end_of(2), ms(15.4));
    let mut bench = reporting(|_| {});
    assert_eq!(bench.time(Nanos::ZERO, WriteThrough, 50, 4), ms(5.4));
}

#[test]
fn the_arm_leaves_when_the_drive_lets_it() {
    // Two reads on cylinders 0 and 1; the bus takes 1 ms per sector. The first one's sectors come from 3.0 to 3.4 ms
    // and are sent from 3.1 to 7.1 ms. To cylinder 1: 2.1 ms; its track starts at 4 ms in the revolution.
    let second_starts = |preseek| {
        let mut bench = with(|p| {
            p.controller.preseek = preseek;
            p.controller.sector_transfer = ms(1.0);
            p.controller.overheads.read_completion = ms(5.5);
        });
        bench.submit(Nanos::ZERO, 1, Read, 30, 4);
        bench.submit(Nanos::ZERO, 2, Read, 200 + 30, 1);
        bench.finish();
        assert_eq!(bench.end_of(1), ms(7.1 + 5.5));
        bench.end_of(2) - ms(5.5) - ms(1.0) - ms(0.1)
    };
    // Sector 30 of that track begins at 7 ms in the revolution.
    assert_eq!(second_starts(Preseek::AfterMedia), ms(7.0));
    assert_eq!(second_starts(Preseek::AfterTransfer), ms(17.0));
    assert_eq!(second_starts(Preseek::AfterCompletion), ms(17.0));
}

#[test]
fn requests_beyond_the_queue_depth_wait_with_the_host() {
    let mut bench = with(|p| p.controller.queue_depth = 1);
    bench.submit(Nanos::ZERO, 1, Read, 30, 4);
    bench.submit(Nanos::ZERO, 2, Read, 34, 4);
    assert_eq!(bench.model.outstanding(), 2);
    bench.finish();
    // The second one comes in at 3.41 ms, when its first sector has begun: a revolution is lost.
    assert_eq!(bench.end_of(2), ms(13.4 + 0.4 + 0.01));
    let mut bench = Bench::new(plain());
    bench.submit(Nanos::ZERO, 1, Read, 30, 4);
    bench.submit(Nanos::ZERO, 2, Read, 34, 4);
    bench.finish();
    assert_eq!(bench.end_of(2), ms(3.8 + 0.01));
}

#[test]
fn what_leaves_the_disk_is_refused() {
    let mut bench = Bench::new(plain());
    for (lba, sectors) in
        [(crate::disk_common::SECTORS, 1), (0, 0), (u64::MAX, 2), (crate::disk_common::SECTORS - 1, 2)]
    {
        let request =
            tier0_drive::disk::DiskRequest { id: 0, operation: Read, lba: tier0_units::Lba(lba), sectors };
        assert!(bench.model.submit(Nanos::ZERO, request).is_err(), "{lba} {sectors}");
    }
    assert_eq!(bench.model.next_event(), None);
}
