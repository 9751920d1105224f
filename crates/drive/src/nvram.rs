//! The model of a protected write cache: memory behind one path, where what is written is stable once it is answered.
//!
//! Commands pass the path one after the other at its rate; each is answered a fixed time after it has passed. Neither the
//! address nor what else is held matters.

use tier0_catalog::NvramSpec;
use tier0_units::{ByteCount, Nanos, SECTOR_BYTES, SectorCount};

/// A protected write cache with the time at which its path is free again.
#[derive(Clone, Debug)]
pub struct NvramModel {
    capacity: SectorCount,
    latency: Nanos,
    bytes_per_s: f64,
    free_at: Nanos,
}

impl From<&NvramSpec> for NvramModel {
    fn from(spec: &NvramSpec) -> NvramModel {
        let p = &spec.parameters;
        NvramModel {
            capacity: SectorCount::in_bytes(ByteCount((p.capacity_mib.value * f64::from(1 << 20)) as u64)),
            latency: Nanos::from_secs_f64(p.latency_us.value / 1e6),
            bytes_per_s: p.rate_mb_s.value * 1e6,
            free_at: Nanos::ZERO,
        }
    }
}

impl NvramModel {
    /// What it holds.
    pub fn capacity(&self) -> SectorCount {
        self.capacity
    }

    /// When a read or write of so many sectors that comes at `now` is answered.
    pub(crate) fn submit(&mut self, now: Nanos, sectors: u64) -> Nanos {
        let passage = Nanos::from_secs_f64((sectors * SECTOR_BYTES) as f64 / self.bytes_per_s);
        self.free_at = self.free_at.max(now).saturating_add(passage);
        self.free_at.saturating_add(self.latency)
    }
}

#[cfg(test)]
mod tests {
    use tier0_catalog::{Catalog, DriveSpec};

    use super::*;

    /// 1,000 MB/s and 30 us: 8,192 bytes pass in 8.192 us.
    #[test]
    fn commands_pass_one_after_the_other_and_are_answered_later() {
        let catalog = Catalog::embedded();
        let Ok(DriveSpec::Nvram(spec)) = catalog.drive("ps6100xv-write-cache") else { panic!("it is there") };
        let mut model = NvramModel::from(&**spec);
        assert_eq!(model.capacity(), SectorCount::in_bytes(ByteCount::mib(1024)));
        assert_eq!(model.submit(Nanos(1_000), 16), Nanos(39_192));
        assert_eq!(model.submit(Nanos(1_000), 16), Nanos(47_384));
        assert_eq!(model.submit(Nanos(100_000), 16), Nanos(138_192));
    }
}
