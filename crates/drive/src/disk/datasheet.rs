//! Parameters of a disk that is known from its datasheet only.
//!
//! A datasheet gives capacity, speed, rates and three seek times; the rest follows or is assumed, and said below.
//! Sectors per track fall evenly from the outermost to the innermost zone. Skews are what a sequential read needs:
//! the time to change head or cylinder for a write, so that the next track's first sector comes just in time.

use tier0_units::{Nanos, SectorCount};

use super::error::check_range;
use super::{
    AfterCommand, BufferParameters, ControllerParameters, DiskParameters, LayoutParameters,
    MechanismParameters, Overheads, ParameterError, Preseek, ReadAhead, RequestedData, Rotation, Scheduling,
    SeekCurve, SeekPoints, Sparing, TrackOrder, WaterMarkOf, Weights, WriteReporting, ZoneParameters,
};

/// A command that waited this long goes first (assumed): long against the mean wait behind a full queue of 32 at
/// some 300 IOPS (100 ms), short against a host's patience (many seconds).
const STARVATION_LIMIT: Nanos = Nanos::from_millis(500);
/// Time to serve a read from the buffer, as a share of the overhead before the mechanism starts (assumed).
const HIT_SHARE: f64 = 0.5;

/// What a datasheet says of a disk.
#[derive(Clone, Debug, PartialEq)]
pub struct Datasheet {
    /// A name for messages.
    pub name: String,
    /// Formatted capacity in sectors of 512 bytes.
    pub capacity: SectorCount,
    /// Revolutions per minute.
    pub rpm: f64,
    /// Recording surfaces.
    pub surfaces: u32,
    /// Sectors of 512 bytes per track in the outermost zone; see [`Datasheet::sectors_per_track`] for rates.
    pub outer_sectors_per_track: u32,
    /// The same in the innermost zone.
    pub inner_sectors_per_track: u32,
    /// Zones of equally many cylinders.
    pub zones: u32,
    /// Cylinders; `None` for as many as the capacity needs.
    pub cylinders: Option<u32>,
    /// Seek times before a read.
    pub seek_read: SeekPoints,
    /// Seek times before a write, settling included.
    pub seek_write: SeekPoints,
    /// Change to another head of the same cylinder, until a write can begin: the skew from track to track.
    pub head_switch: Nanos,
    /// By how much sooner a read can begin after a change of head.
    pub write_settle: Nanos,
    /// From the receipt of a command to the start of the mechanism.
    pub controller_overhead: Nanos,
    /// Rate between buffer and host, in bytes per second.
    pub interface_bytes_per_s: f64,
    /// Size of the buffer, in sectors.
    pub buffer: SectorCount,
    /// Segments of the buffer.
    pub buffer_segments: u32,
    /// Most that is read ahead; none switches read-ahead off.
    pub read_ahead: SectorCount,
    /// Whether writes are reported done in the buffer.
    pub write_cache: bool,
    /// Commands accepted and reordered.
    pub queue_depth: u32,
}

impl Datasheet {
    /// Sectors per track that give a sustained rate of `bytes_per_s`, at which each track costs a revolution and a
    /// change of head.
    pub fn sectors_per_track(bytes_per_s: f64, rpm: f64, head_switch: Nanos) -> u32 {
        (bytes_per_s * (60.0 / rpm + head_switch.as_secs_f64()) / 512.0).round() as u32
    }

    /// The model's parameters.
    pub fn parameters(&self) -> Result<DiskParameters, ParameterError> {
        check_range("zones", f64::from(self.zones), 1.0..=1_024.0, "1 to 1,024")?;
        check_range("rpm", self.rpm, 60.0..=1e5, "60 to 100,000")?;
        check_range("surfaces", f64::from(self.surfaces), 1.0..=255.0, "1 to 255")?;
        check_range("the capacity in sectors", self.capacity.0 as f64, 1.0..=1e13, "1 to 10^13")?;
        let inner = f64::from(self.inner_sectors_per_track);
        let outer = f64::from(self.outer_sectors_per_track);
        check_range("the outer sectors per track", outer, 1.0..=1e6, "1 to 1,000,000")?;
        check_range("the inner sectors per track", inner, 1.0..=outer, "1 to the outer ones")?;
        let cylinders = self.cylinders.unwrap_or_else(|| self.cylinders_needed());
        let density: Vec<f64> =
            (0..self.zones).map(|zone| f64::from(self.zone_sectors_per_track(zone))).collect();
        let weights = Weights::by_density(&density);
        let seek_read = SeekCurve::from_datasheet(self.seek_read, cylinders, &weights)?;
        let seek_write = SeekCurve::from_datasheet(self.seek_write, cylinders, &weights)?;
        let layout = self.layout(cylinders, &seek_write);
        Ok(DiskParameters {
            name: self.name.clone(),
            mechanism: MechanismParameters {
                rpm: self.rpm,
                seek_read,
                seek_write,
                head_switch_read: self.head_switch.saturating_sub(self.write_settle),
                head_switch_write: self.head_switch,
                rotation: Rotation::Exact,
            },
            layout,
            controller: self.controller(),
            buffer: self.buffer_parameters(),
        })
    }

    fn zone_sectors_per_track(&self, zone: u32) -> u32 {
        let (outer, inner) =
            (f64::from(self.outer_sectors_per_track), f64::from(self.inner_sectors_per_track));
        let steps = f64::from(self.zones.saturating_sub(1).max(1));
        (outer - (outer - inner) * f64::from(zone) / steps).round().max(1.0) as u32
    }

    /// Cylinders such that zones of equal width hold the capacity.
    fn cylinders_needed(&self) -> u32 {
        let per_cylinders = |zone| u64::from(self.zone_sectors_per_track(zone)) * u64::from(self.surfaces);
        let per_width: u64 = (0..self.zones).map(per_cylinders).sum();
        let width = self.capacity.0.div_ceil(per_width.max(1));
        u32::try_from(width * u64::from(self.zones)).unwrap_or(u32::MAX)
    }

    fn layout(&self, cylinders: u32, seek: &SeekCurve) -> LayoutParameters {
        let revolution = 60e9 / self.rpm;
        let width = (cylinders / self.zones).max(1);
        let zone = |zone: u32| {
            let sectors_per_track = self.zone_sectors_per_track(zone);
            // Skews are whole sectors, enough for the change.
            let skew = |nanos: f64| {
                (nanos / revolution * f64::from(sectors_per_track)).ceil() / f64::from(sectors_per_track)
            };
            ZoneParameters {
                first_cylinder: zone * width,
                last_cylinder: if zone + 1 == self.zones { cylinders - 1 } else { (zone + 1) * width - 1 },
                sectors_per_track,
                first_sector_rev: 0.0,
                track_skew_rev: skew(self.head_switch.0 as f64),
                cylinder_skew_rev: skew(f64::from(seek.nanos(1)).max(self.head_switch.0 as f64)),
                unused_sectors: 0,
                spares: 0,
                slips: Vec::new(),
                remaps: Vec::new(),
            }
        };
        LayoutParameters {
            surfaces: self.surfaces,
            cylinders,
            track_order: TrackOrder::Ascending,
            sparing: Sparing::Zone,
            zones: (0..self.zones).map(zone).collect(),
            capacity: Some(self.capacity),
        }
    }

    fn controller(&self) -> ControllerParameters {
        let overhead = self.controller_overhead;
        let hit = Nanos((overhead.0 as f64 * HIT_SHARE) as u64);
        ControllerParameters {
            queue_depth: self.queue_depth,
            scheduling: Scheduling::ShortestPositioning,
            starvation_limit: STARVATION_LIMIT,
            overheads: Overheads {
                read_hit: AfterCommand::both(hit),
                read_miss: AfterCommand::both(overhead),
                write_hit: AfterCommand::both(hit),
                write_miss: AfterCommand::both(overhead),
                ..Overheads::default()
            },
            sector_transfer: Nanos((512e9 / self.interface_bytes_per_s.max(1e3)).round() as u64),
            never_disconnect: false,
            hold_bus_for_read: false,
            preseek: Preseek::AfterMedia,
            extra_write_disconnect: None,
            minimum_write_seek: Nanos::ZERO,
        }
    }

    fn buffer_parameters(&self) -> BufferParameters {
        let segments = self.buffer_segments.max(1);
        BufferParameters {
            segments,
            segment_sectors: (self.buffer.0 / u64::from(segments)).max(1),
            write_segments: segments,
            dedicated_write_segment: false,
            caching: true,
            read_ahead: if self.read_ahead.0 == 0 { ReadAhead::Off } else { ReadAhead::SegmentFull },
            read_ahead_min: 0,
            read_ahead_max: self.read_ahead.0,
            requested_data: RequestedData::Replaceable,
            read_ahead_on_hit: true,
            read_free_sectors: true,
            zero_latency_read: true,
            zero_latency_write: true,
            hit_on_next_sector: true,
            hit_on_written: true,
            hit_while_busy: true,
            send_partial_hit_at_once: true,
            write_reporting: if self.write_cache { WriteReporting::InBuffer } else { WriteReporting::Medium },
            write_while_busy: true,
            combine_writes: true,
            interrupt_in_sector: true,
            read_water_mark: 0.0,
            water_mark_of: WaterMarkOf::Request,
        }
    }
}
