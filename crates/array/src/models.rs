//! Modelled drives from the catalogue's entries.

use std::sync::Arc;

use tier0_catalog::{Catalog, DiskSpec, DriveSpec, FlashSpec, Parameter};
use tier0_drive::disk::{Datasheet, DiskModel, DiskParameters, Geometry, SeekPoints};
use tier0_drive::flash::{FlashModel, FlashParameters, Precondition, ReadScheduling};
use tier0_drive::{Content, DiskDrive, DriveHandle, FlashDrive};
use tier0_units::{ByteCount, Nanos, SectorCount};
use tier0_world::World;

use crate::ArrayError;

/// A kind of modelled drive, ready to make any number of them; preconditioning is done once.
#[derive(Clone)]
pub(crate) enum Model {
    Disk(Arc<Geometry>, SectorCount),
    Flash(Box<FlashModel>),
}

impl Model {
    /// The model of a catalogue entry, `id` or `id@calibration`.
    pub(crate) fn of(catalog: &Catalog, reference: &str) -> Result<Model, ArrayError> {
        let unusable = |fact: String| ArrayError::Unusable { drive: reference.to_owned(), fact };
        let spec = catalog.drive_by_reference(reference).map_err(|unknown| unusable(unknown.to_string()))?;
        match &spec {
            DriveSpec::Disk(disk) => {
                let parameters = disk_parameters(disk).map_err(|error| unusable(error.to_string()))?;
                let geometry = Geometry::new(parameters).map_err(|error| unusable(error.to_string()))?;
                let capacity = SectorCount(disk.parameters.capacity_sectors()).min(geometry.sectors());
                Ok(Model::Disk(geometry, capacity))
            }
            DriveSpec::Flash(flash) => {
                let mut model =
                    FlashModel::new(flash_parameters(flash), 0).map_err(|e| unusable(e.to_string()))?;
                model.precondition(Precondition::default());
                Ok(Model::Flash(Box::new(model)))
            }
        }
    }

    /// Its capacity.
    pub(crate) fn sectors(&self) -> SectorCount {
        match self {
            Model::Disk(_, capacity) => *capacity,
            Model::Flash(model) => SectorCount::in_bytes(model.parameters().capacity),
        }
    }

    /// A drive of this kind; `number` sets its spindle's phase.
    pub(crate) fn drive(&self, world: &World, name: &str, number: u64, content: Content) -> DriveHandle {
        match self {
            Model::Disk(geometry, capacity) => {
                let phase = world.random(0x0d15_c000 ^ number).below(geometry.revolution().0.max(1));
                let model = DiskModel::new(geometry.clone(), Nanos(phase));
                DriveHandle::new(DiskDrive::new(world, name, model, *capacity, content))
            }
            Model::Flash(model) => DriveHandle::new(FlashDrive::new(world, name, (**model).clone(), content)),
        }
    }
}

/// The disk model's parameters of a catalogue entry.
pub fn disk_parameters(spec: &DiskSpec) -> Result<DiskParameters, tier0_drive::disk::ParameterError> {
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
        seek_read: seek(&p.seek_single_track_read_ms, &p.seek_average_read_ms, &p.seek_full_stroke_read_ms),
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

/// How much of a flash drive's span is mapped page by page: see docs/flash-model.md.
const MODELLED_SPAN: ByteCount = ByteCount::gib(2);

/// The flash model's parameters of a catalogue entry.
pub fn flash_parameters(spec: &FlashSpec) -> FlashParameters {
    let p = &spec.parameters;
    let us = |value: f64| Nanos((value * 1e3).round() as u64);
    let rate = |mb_s: f64| (mb_s * 1e6) as u64;
    let kib = |value: f64| (value * 1024.0) as u32;
    FlashParameters {
        capacity: ByteCount((p.capacity_gb.value * 1e9) as u64),
        over_provisioning: p.over_provisioning_percent.value / 100.0,
        channels: p.channels.value,
        dies_per_channel: p.dies_per_channel.value,
        planes_per_die: p.planes_per_die.value,
        page_bytes: kib(p.page_kib.value),
        mapping_bytes: kib(p.mapping_kib.value),
        pages_per_block: p.pages_per_block.value,
        read_time: us(p.read_us.value),
        read_time_spread: p.read_spread_percent.value / 100.0,
        program_time: us(p.program_us.value),
        erase_time: Nanos::from_millis_f64(p.erase_ms.value),
        channel_bytes_per_second: rate(p.channel_mb_s.value),
        read_scheduling: match (p.read_scheduling.value.as_str(), &p.read_suspend_us) {
            ("suspending", Some(suspend)) => ReadScheduling::Suspending(us(suspend.value)),
            ("in-order", _) => ReadScheduling::InOrder,
            _ => ReadScheduling::BetweenOperations,
        },
        controller_cores: p.controller_cores.value,
        controller_read_time: us(p.controller_read_us.value),
        controller_write_time: us(p.controller_write_us.value),
        interface_bytes_per_second: rate(p.interface_mb_s.value),
        interface_full_duplex: p.interface_full_duplex.value,
        controller_read_bytes_per_second: rate(p.controller_read_mb_s.value),
        controller_write_bytes_per_second: rate(p.controller_write_mb_s.value),
        write_buffer: ByteCount((p.write_buffer_mib.value * f64::from(1 << 20)) as u64),
        power_loss_protected: p.power_loss_protection.value,
        queue_depth: p.queue_depth.value,
        endurance_cycles: p.endurance_cycles.value,
        modelled_span: MODELLED_SPAN,
    }
}
