//! A catalogue entry as parameters of the model.
//!
//! The entry's calibration in effect is taken; choose another with `Spec::calibrated` first. Nothing is fitted
//! here: every figure is the catalogue's, in the model's units.

use tier0_catalog::FlashSpec;
use tier0_units::{ByteCount, Nanos};

use super::parameters::{FlashParameters, FlashParametersError, ReadScheduling};

/// The modelled span of a catalogue drive: 65,536 pages of 4 KiB, of which the mapping takes 1 MB, so that a study
/// of 48 drives stays within a processor's cache. `docs/flash-model.md` says what a small span costs.
const MODELLED_SPAN: ByteCount = ByteCount::mib(256);

fn micros(us: f64) -> Nanos {
    Nanos::from_secs_f64(us / 1e6)
}

fn per_second(mb_s: f64) -> u64 {
    (mb_s * 1e6) as u64
}

impl TryFrom<&FlashSpec> for FlashParameters {
    type Error = FlashParametersError;

    /// # Errors
    /// [`FlashParametersError`] where the catalogue allows more than the model, for one in `read_scheduling`.
    fn try_from(spec: &FlashSpec) -> Result<FlashParameters, FlashParametersError> {
        let p = &spec.parameters;
        let suspend = micros(p.read_suspend_us.as_ref().map_or(0.0, |time| time.value));
        let read_scheduling = match p.read_scheduling.value.as_str() {
            "in-order" => ReadScheduling::InOrder,
            "between-operations" => ReadScheduling::BetweenOperations,
            "suspending" => ReadScheduling::Suspending(suspend),
            other => return Err(FlashParametersError::ReadScheduling(other.to_owned())),
        };
        let parameters = FlashParameters {
            capacity: ByteCount((p.capacity_gb.value * 1e9) as u64),
            over_provisioning: p.over_provisioning_percent.value / 100.0,
            channels: p.channels.value,
            dies_per_channel: p.dies_per_channel.value,
            planes_per_die: p.planes_per_die.value,
            page_bytes: (p.page_kib.value * 1024.0) as u32,
            mapping_bytes: (p.mapping_kib.value * 1024.0) as u32,
            pages_per_block: p.pages_per_block.value,
            read_time: micros(p.read_us.value),
            read_time_spread: p.read_spread_percent.value / 100.0,
            program_time: micros(p.program_us.value),
            erase_time: Nanos::from_millis_f64(p.erase_ms.value),
            channel_bytes_per_second: per_second(p.channel_mb_s.value),
            read_scheduling,
            controller_cores: p.controller_cores.value,
            controller_read_time: micros(p.controller_read_us.value),
            controller_write_time: micros(p.controller_write_us.value),
            interface_bytes_per_second: per_second(p.interface_mb_s.value),
            interface_full_duplex: p.interface_full_duplex.value,
            controller_read_bytes_per_second: per_second(p.controller_read_mb_s.value),
            controller_write_bytes_per_second: per_second(p.controller_write_mb_s.value),
            write_buffer: ByteCount((p.write_buffer_mib.value * (1 << 20) as f64) as u64),
            power_loss_protected: p.power_loss_protection.value,
            queue_depth: p.queue_depth.value,
            endurance_cycles: p.endurance_cycles.value,
            modelled_span: MODELLED_SPAN,
        };
        parameters.check()?;
        Ok(parameters)
    }
}
