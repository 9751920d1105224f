//! The disk model's parameters from a catalogue entry.

use tier0_catalog::{DiskSpec, Parameter};
use tier0_units::{ByteCount, Nanos, SectorCount};

use super::{Datasheet, DiskParameters, ParameterError, SeekPoints};

impl TryFrom<&DiskSpec> for DiskParameters {
    type Error = ParameterError;

    fn try_from(spec: &DiskSpec) -> Result<DiskParameters, ParameterError> {
        let p = &spec.parameters;
        // The catalogue counts a disk's own sectors, the model those of 512 bytes.
        let per_sector = p.sector_bytes.value / 512;
        let ms = |parameter: &Parameter<f64>| Nanos::from_millis_f64(parameter.value);
        let sectors = |bytes: f64| SectorCount::in_bytes(ByteCount(bytes as u64));
        let seek = |single: &Parameter<f64>, average: &Parameter<f64>, full: &Parameter<f64>| SeekPoints {
            single_track_ms: single.value,
            average_ms: average.value,
            full_stroke_ms: full.value,
        };
        Datasheet {
            name: spec.id.clone(),
            capacity: SectorCount(p.capacity_sectors()),
            rpm: p.rpm.value,
            surfaces: p.surfaces.value,
            outer_sectors_per_track: p.outer_sectors_per_track.value * per_sector,
            inner_sectors_per_track: p.inner_sectors_per_track.value * per_sector,
            zones: p.zones.value,
            cylinders: Some(p.cylinders.value),
            seek_read: seek(
                &p.seek_single_track_read_ms,
                &p.seek_average_read_ms,
                &p.seek_full_stroke_read_ms,
            ),
            seek_write: seek(
                &p.seek_single_track_write_ms,
                &p.seek_average_write_ms,
                &p.seek_full_stroke_write_ms,
            ),
            head_switch: ms(&p.head_switch_ms),
            write_settle: ms(&p.write_settle_ms),
            controller_overhead: ms(&p.controller_overhead_ms),
            interface_bytes_per_s: p.interface_mb_s.value * 1e6,
            buffer: sectors(p.buffer_mib.value * f64::from(1 << 20)),
            buffer_segments: p.buffer_segments.value,
            read_ahead: sectors(p.read_ahead_kib.value * 1024.0),
            write_cache: p.write_cache.value,
            queue_depth: p.queue_depth.value,
        }
        .parameters()
    }
}
