//! Reading DiskSim's files: what they say arrives in the parameters, and nothing that they say breaks the reader.

use proptest::prelude::*;
use tier0_drive::disk::disksim::{self, parse};
use tier0_drive::disk::{
    AfterCommand, DiskModel, DiskRequest, Geometry, Operation, Preseek, ReadAhead, RequestedData, Rotation,
    Sparing, TrackOrder, WriteReporting,
};
use tier0_units::{Lba, Nanos, SectorCount};

/// A made-up drive with what the files of the suite have: an equation for the seeks, spares, slips and defects.
const MODEL: &str = "
# a comment
dm_disk OLD_DRIVE_model {
   Number of data surfaces = 3,
   Number of cylinders = 40,
   Block count = 2372,
   Layout Model = dm_layout_g1 {
      LBN-to-PBN mapping scheme = 2,
      Sparing scheme used = 4,
      Rangesize for sparing = 1,
      Skew units = revolutions,
      Zones = [
         dm_layout_g1_zone { # outer
            First cylinder number = 0,
            Last cylinder number = 19,
            Blocks per track = 24,
            Offset of first block = 0.5,
            Empty space at zone front = 10,
            Skew for track switch = 0.125,
            Skew for cylinder switch = 0.25,
            Number of spares = 2,
            slips = [ 5,
                      80 ],
            defects = [ 100, 70, 130, 71 ]
         },
         dm_layout_g1_zone {
            First cylinder number = 21,
            Last cylinder number = 39,
            Skew units = sectors,
            Blocks per track = 18,
            Skew for track switch = 4.5
            Skew for cylinder switch = 9,
            Number of spares = 2,
            slips = [], defects = [   ]
         }
      ] # Zones
   },
   Mechanical Model = dm_mech_g1
   {
      Access time type = trackSwitchPlusRotation,
      Seek type = hplplus10,
      First ten seek times = [ 1.1, 1.2, 1.3, 1.4, 1.5, 1.6, 1.7, 1.8, 1.9, 2.0 ],
      HPL seek equation values = [ 20, 1.0, 0.5, 3.0, 0.05, -1.0 ],
      Add. write settling delay = 0.75,
      Head switch time = 0.9,
      Rotation speed (in rpms) = 5400,
      Percent error in rpms = 0.0
   }
}
";

const SPECS: &str = "
disksim_disk OLD_DRIVE {
   Model = source old.model,
   Scheduler = disksim_ioqueue { Scheduling policy = 1, Timeout time/weight = 0 },
   Max queue length = 5,
   Time scale for overheads = 2.0,
   Bulk sector transfer time = 0.05,
   Hold bus entire read xfer = 1,
   Preseeking level = 1,
   Number of buffer segments = 2,
   Maximum number of write segments = 1,
   Segment size (in blks) = 128,
   Set watermark by reqsize = 0,
   High (read) water mark = 0.25,
   Enable caching in buffer = 1,
   Buffer continuous read = 2,
   Maximum read-ahead (blks) = 100,
   Read-ahead over requested = -1,
   Fast write level = 1,
   Read miss over. after read = 0.7,
   Read miss over. after write = 1.1,
   Extra write disconnect = 1,
   Extradisc command overhead = 0.4,
   Extradisc inter-disconnect delay = 0.3,
   Minimum seek delay = 1.6
}
";

#[test]
fn what_the_files_say_arrives() {
    let drive = parse(SPECS, MODEL, "").unwrap();
    let (mechanism, layout) = (&drive.mechanism, &drive.layout);
    assert_eq!((mechanism.rpm, mechanism.rotation), (5_400.0, Rotation::Exact));
    assert_eq!((mechanism.seek_read.nanos(3), mechanism.seek_write.nanos(3)), (1_300_000, 2_050_000));
    assert_eq!(mechanism.seek_read.nanos(16), 3_000_000);
    assert_eq!(mechanism.seek_read.nanos(30), 4_500_000);
    assert_eq!((mechanism.head_switch_read, mechanism.head_switch_write), (Nanos(900_000), Nanos(1_650_000)));
    assert_eq!(
        (layout.surfaces, layout.cylinders, layout.track_order),
        (3, 40, TrackOrder::SerpentineByDisk)
    );
    let sparing = Sparing::CylinderGroup { cylinders: 1, at_front: false, slip_to_end: true };
    assert_eq!(layout.sparing, sparing);
    let (outer, inner) = (&layout.zones[0], &layout.zones[1]);
    assert_eq!((outer.first_sector_rev, outer.track_skew_rev, outer.unused_sectors), (0.5, 0.125, 10));
    assert_eq!(
        (outer.slips.as_slice(), outer.remaps.as_slice()),
        (&[5, 80][..], &[(100, 70), (130, 71)][..])
    );
    assert_eq!((inner.track_skew_rev, inner.cylinder_skew_rev), (0.25, 0.5));
    // The zones hold 20 x (72 - 2) - 10 - 2 and 19 x (54 - 2); the block count does not matter.
    assert_eq!(Geometry::new(drive.clone()).unwrap().sectors(), SectorCount(2_376));
    let (controller, buffer) = (&drive.controller, &drive.buffer);
    assert_eq!((controller.queue_depth, controller.preseek), (5, Preseek::AfterTransfer));
    let miss = AfterCommand { read: Nanos(1_400_000), write: Nanos(2_200_000) };
    assert_eq!((controller.overheads.read_miss, controller.sector_transfer), (miss, Nanos(50_000)));
    assert!(controller.hold_bus_for_read && !controller.never_disconnect);
    let extra = controller.extra_write_disconnect.unwrap();
    assert_eq!((extra.command, extra.until_reconnect), (Nanos(800_000), Nanos(300_000)));
    assert_eq!(controller.minimum_write_seek, Nanos(1_600_000));
    assert_eq!((buffer.segments, buffer.write_segments, buffer.segment_sectors), (2, 1, 128));
    assert_eq!((buffer.read_ahead, buffer.requested_data), (ReadAhead::CylinderEnd, RequestedData::Dropped));
    assert_eq!((buffer.write_reporting, buffer.read_water_mark), (WriteReporting::SequentialInBuffer, 0.25));
}

#[test]
fn the_drive_runs() {
    let geometry = Geometry::new(parse(SPECS, MODEL, "").unwrap()).unwrap();
    let last = geometry.sectors().0;
    let mut model = DiskModel::new(geometry, Nanos::ZERO);
    let mut ended = 0;
    for id in 0..500_u64 {
        let operation = if id % 3 == 0 { Operation::Write } else { Operation::Read };
        let sectors = 1 + id as u32 % 40;
        let lba = Lba(id * 997 % (last - 64));
        model.submit(Nanos::from_millis(id * 5), DiskRequest { id, operation, lba, sectors }).unwrap();
        model.advance(Nanos::from_millis(id * 5), &mut |_, _| ended += 1);
    }
    while let Some(next) = model.next_event() {
        model.advance(next, &mut |_, _| ended += 1);
    }
    assert_eq!(ended, 500);
}

#[test]
fn what_is_wrong_is_named_with_its_line() {
    let with = |from: &str, to: &str| {
        let (specs, model) = (SPECS.replacen(from, to, 1), MODEL.replacen(from, to, 1));
        assert!(specs != SPECS || model != MODEL, "{from} does not occur");
        parse(&specs, &model, "").map(|_| String::new()).unwrap_or_else(|error| error.to_string())
    };
    for (from, to, expected) in [
        ("Number of cylinders = 40,", "", "model, line 3: this block lacks \"Number of cylinders\""),
        ("= 5400", "= fast", "model, line 46: \"Rotation speed (in rpms)\" must be a number"),
        ("Seek type = hplplus10", "Seek type = none", "model, line 41: seek type \"none\""),
        ("dm_layout_g1 {", "dm_layout_g9 {", "model, line 7: layout \"dm_layout_g9\""),
        ("defects = [ 100, 70, 130, 71 ]", "defects = [ 1 ]", "line 24: \"defects\" must list pairs"),
        ("Fast write level = 1", "Fast write level = 7", "diskspecs, line 19: \"Fast write level\" is 7"),
        ("Minimum seek delay = 1.6", "Minimum seek delay = -1", "diskspecs, line 25"),
        ("Skew units = revolutions", "Skew units = inches", "model, line 11: \"Skew units\" is \"inches\""),
        ("      ] # Zones", "", "model, line 12: this bracket is never closed"),
    ] {
        let text = with(from, to);
        assert!(text.contains(expected), "{text:?} instead of {expected:?}");
    }
}

#[test]
fn missing_files_are_named() {
    let scratch = tempfile::tempdir().unwrap();
    let dir = scratch.path();
    let say = || disksim::load(dir, "old").map(|_| String::new()).unwrap_or_else(|error| error.to_string());
    assert!(say().contains("old.diskspecs"), "{}", say());
    std::fs::write(dir.join("old.diskspecs"), SPECS).unwrap();
    assert!(say().contains("old.model"), "{}", say());
    std::fs::write(dir.join("old.model"), MODEL).unwrap();
    assert_eq!(say(), "");
    std::fs::write(dir.join("old.trace"), "R Hit 7 4 100.0 200.0\n").unwrap();
    assert_eq!(disksim::load_trace(dir, "old").unwrap().len(), 1);
}

/// Texts near the valid ones: some bytes replaced, removed or doubled.
fn damaged(text: &'static str) -> impl Strategy<Value = String> {
    let piece = prop_oneof![
        Just(""),
        Just("-1"),
        Just("0"),
        Just("999999999999"),
        Just("{"),
        Just("}"),
        Just("["),
        Just("]"),
        Just("="),
        Just("NaN"),
        Just("1e300"),
        Just("\n"),
        Just("#"),
        Just("ä")
    ];
    prop::collection::vec((0..text.len(), 0_usize..12, piece), 0..6).prop_map(move |cuts| {
        let mut bytes = text.as_bytes().to_vec();
        for (at, length, piece) in cuts {
            let at = at.min(bytes.len());
            let end = (at + length).min(bytes.len());
            bytes.splice(at..end, piece.bytes());
        }
        String::from_utf8_lossy(&bytes).into_owned()
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 1_500, failure_persistence: None, ..ProptestConfig::default() })]

    /// No damage panics; what is still accepted describes a disk that works or is refused.
    #[test]
    fn damaged_files_never_panic(specs in damaged(SPECS), model in damaged(MODEL)) {
        let Ok(parameters) = parse(&specs, &model, "1, 1.0\n2, 1.5") else { return Ok(()) };
        let Ok(geometry) = Geometry::new(parameters) else { return Ok(()) };
        let sectors = geometry.sectors().0;
        let mut model = DiskModel::new(geometry, Nanos::ZERO);
        for id in 0..4 {
            let operation = if id == 1 { Operation::Write } else { Operation::Read };
            let request = DiskRequest { id, operation, lba: Lba(id * sectors / 4), sectors: 1 };
            model.submit(Nanos::ZERO, request).unwrap();
        }
        let mut ended = 0;
        while let Some(next) = model.next_event() {
            model.advance(next, &mut |_, _| ended += 1);
        }
        prop_assert_eq!(ended, 4);
    }

    #[test]
    fn arbitrary_bytes_never_panic(bytes in prop::collection::vec(any::<u8>(), 0..300)) {
        let text = String::from_utf8_lossy(&bytes);
        let _ = parse(&text, &text, &text);
        let _ = disksim::parse_trace(&text);
        let _ = parse(SPECS, MODEL, &text);
    }
}
