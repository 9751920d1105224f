//! The parameters of a disk: mechanism, buffer and interface.
//!
//! Two conventions that a disk model must share:
//! - **Zones.** `zones` bands of equally many cylinders; the sectors per track fall linearly from
//!   `outer_sectors_per_track` in the first band to `inner_sectors_per_track` in the last. Loading checks
//!   that this geometry holds the capacity with at most 10 % to spare ([`DiskParameters::geometry_sectors`]).
//! - **Rates.** The media rate of a zone is sectors per track × sector size × revolutions per second. Read
//!   sequentially, each track costs one revolution and one head switch, so the sustained rate is
//!   media × revolution ÷ (revolution + head switch). Loading checks the datasheet's sustained rates
//!   against that to 8 %.

use crate::parameter::Parameter;
use crate::parameter_set::{Inconsistency, expect, parameter_set};

parameter_set! {
    /// The parameters of a disk drive. Seek times exclude rotation and controller overhead.
    DiskParameters / DiskOverrides {
        /// Formatted capacity.
        capacity_gb: Parameter<f64>, Gb, 1.0..=100_000.0;
        /// Width of the drive.
        form_factor: Parameter<String>, Text;
        /// Interface and its generation.
        interface: Parameter<String>, Text;
        /// Rate at which buffered data cross the interface, one port.
        interface_mb_s: Parameter<f64>, MbPerSecond, 20.0..=5_000.0;
        /// Spindle speed.
        rpm: Parameter<f64>, Rpm, 3_600.0..=20_000.0;
        /// Recording surfaces, one head each.
        surfaces: Parameter<u32>, Count, 1.0..=32.0;
        /// Tracks per surface.
        cylinders: Parameter<u32>, Count, 1_000.0..=2_000_000.0;
        /// Bands of equally many cylinders with one number of sectors per track each.
        zones: Parameter<u32>, Count, 1.0..=64.0;
        /// Logical sector size.
        sector_bytes: Parameter<u32>, Bytes, 512.0..=4_096.0;
        /// Sectors per track in the outermost zone.
        outer_sectors_per_track: Parameter<u32>, Count, 50.0..=20_000.0;
        /// Sectors per track in the innermost zone.
        inner_sectors_per_track: Parameter<u32>, Count, 50.0..=20_000.0;
        /// Sustained sequential rate in the outermost zone.
        sustained_outer_mb_s: Parameter<f64>, MbPerSecond, 5.0..=1_000.0;
        /// Sustained sequential rate in the innermost zone.
        sustained_inner_mb_s: Parameter<f64>, MbPerSecond, 5.0..=1_000.0;
        /// Seek to the next track before a read.
        seek_single_track_read_ms: Parameter<f64>, Ms, 0.05..=3.0;
        /// Seek to the next track before a write, settling included.
        seek_single_track_write_ms: Parameter<f64>, Ms, 0.05..=4.0;
        /// Mean of all seeks, weighted as random accesses over the whole disk weight them, before a read.
        seek_average_read_ms: Parameter<f64>, Ms, 1.0..=20.0;
        /// The same before a write, settling included.
        seek_average_write_ms: Parameter<f64>, Ms, 1.0..=20.0;
        /// Seek from the first to the last cylinder before a read.
        seek_full_stroke_read_ms: Parameter<f64>, Ms, 2.0..=40.0;
        /// The same before a write, settling included.
        seek_full_stroke_write_ms: Parameter<f64>, Ms, 2.0..=40.0;
        /// Change to another head of the same cylinder, which is also the skew from track to track.
        head_switch_ms: Parameter<f64>, Ms, 0.05..=3.0;
        /// Extra settling of a write over a read where no seek happens; the write seeks include it already.
        write_settle_ms: Parameter<f64>, Ms, 0.0..=2.0;
        /// Time from the receipt of a command to the start of the mechanism.
        controller_overhead_ms: Parameter<f64>, Ms, 0.0..=2.0;
        /// Buffer.
        buffer_mib: Parameter<f64>, Mib, 0.1..=4_096.0;
        /// Parts the buffer is divided into, one sequential stream each.
        buffer_segments: Parameter<u32>, Count, 1.0..=1_024.0;
        /// Most that is read ahead of one stream after a read; 0 switches read-ahead off.
        read_ahead_kib: Parameter<f64>, Kib, 0.0..=65_536.0;
        /// Whether a write is reported done before it is on the medium. Arrays switch this off.
        write_cache: Parameter<bool>, Flag;
        /// Commands that the drive accepts and reorders by position.
        queue_depth: Parameter<u32>, Count, 1.0..=1_024.0;
        /// Power with the spindle turning and no command.
        idle_w: Parameter<f64>, Watts, 0.5..=50.0;
        /// Power under random reads.
        active_w: Parameter<f64>, Watts, 0.5..=50.0;
    }
}

/// How far the sustained rate may lie from what geometry and head switch give.
const SUSTAINED_TOLERANCE: f64 = 0.08;
/// The spare room a geometry may have over the capacity.
const GEOMETRY_SPARE: f64 = 0.10;

impl DiskParameters {
    /// One revolution, in milliseconds.
    pub fn revolution_ms(&self) -> f64 {
        60_000.0 / self.rpm.value
    }

    /// Sectors per track of zone `zone` (0 is the outermost).
    pub fn zone_sectors_per_track(&self, zone: u32) -> u32 {
        let outer = f64::from(self.outer_sectors_per_track.value);
        let inner = f64::from(self.inner_sectors_per_track.value);
        let steps = f64::from(self.zones.value.saturating_sub(1).max(1));
        (outer - (outer - inner) * f64::from(zone) / steps).round() as u32
    }

    /// Cylinders of zone `zone`; the last zone takes what the division leaves over.
    pub fn zone_cylinders(&self, zone: u32) -> u32 {
        let zones = self.zones.value;
        let each = self.cylinders.value / zones;
        if zone + 1 == zones { self.cylinders.value - each * (zones - 1) } else { each }
    }

    /// All sectors of the geometry.
    pub fn geometry_sectors(&self) -> u64 {
        (0..self.zones.value)
            .map(|zone| {
                u64::from(self.zone_cylinders(zone))
                    * u64::from(self.surfaces.value)
                    * u64::from(self.zone_sectors_per_track(zone))
            })
            .sum()
    }

    /// Sectors of the formatted capacity.
    pub fn capacity_sectors(&self) -> u64 {
        (self.capacity_gb.value * 1e9) as u64 / u64::from(self.sector_bytes.value)
    }

    /// Rate at which a track passes under the head, in MB/s.
    pub fn media_mb_s(&self, sectors_per_track: u32) -> f64 {
        f64::from(sectors_per_track) * f64::from(self.sector_bytes.value) / self.revolution_ms() / 1e3
    }

    fn find_contradictions(&self) -> Vec<Inconsistency> {
        let mut found = Vec::new();
        self.check_geometry(&mut found);
        self.check_sustained(&mut found);
        self.check_seeks(&mut found);
        found
    }

    fn check_geometry(&self, found: &mut Vec<Inconsistency>) {
        expect(
            found,
            self.inner_sectors_per_track.value <= self.outer_sectors_per_track.value,
            "inner_sectors_per_track",
            || "exceeds outer_sectors_per_track".into(),
            "swap the two",
        );
        let ratio = self.geometry_sectors() as f64 / self.capacity_sectors() as f64;
        expect(
            found,
            (1.0..=1.0 + GEOMETRY_SPARE).contains(&ratio),
            "cylinders",
            || format!("gives a geometry that holds {:.1} % of the capacity", ratio * 100.0),
            "surfaces x cylinders x mean sectors per track must hold 100 to 110 % of capacity_gb",
        );
    }

    fn check_sustained(&self, found: &mut Vec<Inconsistency>) {
        let track = self.revolution_ms() / (self.revolution_ms() + self.head_switch_ms.value);
        let ends = [
            ("sustained_outer_mb_s", self.sustained_outer_mb_s.value, self.outer_sectors_per_track.value),
            ("sustained_inner_mb_s", self.sustained_inner_mb_s.value, self.inner_sectors_per_track.value),
        ];
        for (field, sustained, sectors) in ends {
            let expected = self.media_mb_s(sectors) * track;
            expect(
                found,
                (sustained / expected - 1.0).abs() <= SUSTAINED_TOLERANCE,
                field,
                || format!("is {sustained} MB/s, but sectors per track and head switch give {expected:.1}"),
                "correct the sectors per track or head_switch_ms; they must agree within 8 %",
            );
        }
    }

    fn check_seeks(&self, found: &mut Vec<Inconsistency>) {
        let curves = [
            (
                "seek_average_read_ms",
                self.seek_single_track_read_ms.value,
                self.seek_average_read_ms.value,
                self.seek_full_stroke_read_ms.value,
            ),
            (
                "seek_average_write_ms",
                self.seek_single_track_write_ms.value,
                self.seek_average_write_ms.value,
                self.seek_full_stroke_write_ms.value,
            ),
        ];
        for (field, single, average, full) in curves {
            expect(
                found,
                single < average && average < full,
                field,
                || format!("violates single track {single} < average {average} < full stroke {full}"),
                "check the three seek times against the source",
            );
        }
    }
}
