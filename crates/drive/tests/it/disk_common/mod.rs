//! A disk whose times can be worked out in the head, and the means to drive it.
//!
//! 6,000 rpm: a revolution takes 10 ms. The outer zone has 100 sectors per track (0.1 ms each) on cylinders 0 to 9,
//! the inner one 50 (0.2 ms each) on 10 to 19; two surfaces. Tracks start 1 ms later than the one before, cylinders
//! 3 ms. A seek over d cylinders takes 2 + 0.1 d ms, a change of head 0.5 ms, settling for a write 0.25 ms more.
//! A sector crosses the bus in 10 us.

use tier0_drive::disk::{
    BufferParameters, ControllerParameters, DiskModel, DiskParameters, DiskRequest, Geometry,
    LayoutParameters, MechanismParameters, Operation, Overheads, Preseek, ReadAhead, RequestedData, Rotation,
    Scheduling, SeekCurve, Sparing, TrackOrder, WaterMarkOf, WriteReporting, ZoneParameters,
};
use tier0_units::{Lba, Nanos};

/// Sectors of the outer zone.
pub(crate) const OUTER: u64 = 10 * 2 * 100;
/// Sectors of the disk.
pub(crate) const SECTORS: u64 = OUTER + 10 * 2 * 50;

/// Milliseconds, exact to the microsecond.
pub(crate) fn ms(ms: f64) -> Nanos {
    Nanos::from_micros((ms * 1e3).round() as u64)
}

fn zone(first_cylinder: u32, last_cylinder: u32, sectors_per_track: u32) -> ZoneParameters {
    ZoneParameters {
        first_cylinder,
        last_cylinder,
        sectors_per_track,
        first_sector_rev: 0.0,
        track_skew_rev: 0.1,
        cylinder_skew_rev: 0.3,
        unused_sectors: 0,
        spares: 0,
        slips: Vec::new(),
        remaps: Vec::new(),
    }
}

/// The disk described above, with nothing switched on.
pub(crate) fn plain() -> DiskParameters {
    let seek = |settle: f64| SeekCurve::from_equation(20, &|distance| 2.0 + 0.1 * distance + settle);
    DiskParameters {
        name: "hand".into(),
        mechanism: MechanismParameters {
            rpm: 6_000.0,
            seek_read: seek(0.0),
            seek_write: seek(0.25),
            head_switch_read: ms(0.5),
            head_switch_write: ms(0.75),
            rotation: Rotation::Exact,
        },
        layout: LayoutParameters {
            surfaces: 2,
            cylinders: 20,
            track_order: TrackOrder::Ascending,
            sparing: Sparing::Zone,
            zones: vec![zone(0, 9, 100), zone(10, 19, 50)],
            capacity: None,
        },
        controller: ControllerParameters {
            queue_depth: 64,
            scheduling: Scheduling::Fifo,
            starvation_limit: Nanos::from_secs(3_600),
            overheads: Overheads::default(),
            sector_transfer: Nanos::from_micros(10),
            never_disconnect: false,
            hold_bus_for_read: false,
            preseek: Preseek::AfterMedia,
            extra_write_disconnect: None,
            minimum_write_seek: Nanos::ZERO,
        },
        buffer: BufferParameters {
            segments: 4,
            segment_sectors: 200,
            write_segments: 4,
            dedicated_write_segment: false,
            caching: true,
            read_ahead: ReadAhead::Off,
            read_ahead_min: 0,
            read_ahead_max: 0,
            requested_data: RequestedData::Replaceable,
            read_ahead_on_hit: false,
            read_free_sectors: false,
            zero_latency_read: false,
            zero_latency_write: false,
            hit_on_next_sector: false,
            hit_on_written: true,
            hit_while_busy: false,
            send_partial_hit_at_once: true,
            write_reporting: WriteReporting::Medium,
            write_while_busy: false,
            combine_writes: true,
            interrupt_in_sector: false,
            read_water_mark: 0.0,
            water_mark_of: WaterMarkOf::Request,
        },
    }
}

/// A drive and its completions.
pub(crate) struct Bench {
    /// The drive.
    pub(crate) model: DiskModel,
    /// What has completed, in order.
    pub(crate) completed: Vec<(u64, Nanos)>,
}

impl Bench {
    /// A drive of the given kind, the platter's mark under the heads at time zero.
    pub(crate) fn new(parameters: DiskParameters) -> Bench {
        let geometry = Geometry::new(parameters).expect("possible parameters");
        Bench { model: DiskModel::new(geometry, Nanos::ZERO), completed: Vec::new() }
    }

    /// Submits at `now`, after all that happens before.
    pub(crate) fn submit(&mut self, now: Nanos, id: u64, operation: Operation, lba: u64, sectors: u32) {
        self.advance(now);
        let request = DiskRequest { id, operation, lba: Lba(lba), sectors };
        self.model.submit(now, request).expect("within the disk");
    }

    /// Lets time pass until `now`.
    pub(crate) fn advance(&mut self, now: Nanos) {
        let completed = &mut self.completed;
        self.model.advance(now, &mut |id, at| completed.push((id, at)));
    }

    /// Lets time pass until nothing is left to do.
    pub(crate) fn finish(&mut self) {
        while let Some(next) = self.model.next_event() {
            self.advance(next);
        }
    }

    /// One request, from issue to completion.
    pub(crate) fn time(&mut self, now: Nanos, operation: Operation, lba: u64, sectors: u32) -> Nanos {
        let id = u64::MAX - self.completed.len() as u64;
        self.submit(now, id, operation, lba, sectors);
        self.finish();
        let &(last, at) = self.completed.last().expect("a completion");
        assert_eq!(last, id, "the request completes last");
        at - now
    }

    /// When a request completed.
    pub(crate) fn end_of(&self, id: u64) -> Nanos {
        self.completed.iter().find(|completion| completion.0 == id).expect("completed").1
    }
}
