//! Runs of sectors passing under the head.
//!
//! A *pass* is one such run: consecutive blocks on one track without a gap. It begins with the way of the arm from
//! where it was and the wait for the first sector. Longer accesses are chains of passes.

use tier0_units::Lba;

use super::geometry::{Arm, Geometry};

/// One run of sectors passing under the head.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Pass {
    /// The track.
    pub(crate) arm: Arm,
    /// First block, and how many follow it in the run.
    pub(crate) first: u64,
    pub(crate) count: u64,
    pub(crate) sectors_per_track: u32,
    /// When the head is over the track, and when the first sector begins.
    pub(crate) on_track_at: u64,
    pub(crate) starts_at: u64,
}

impl Pass {
    /// The pass that begins at block `first`, when the arm leaves `from` at time `at`. `least` is a minimum for the
    /// time until the head is over the track.
    pub(crate) fn begin(
        geometry: &Geometry,
        spindle: u64,
        from: Arm,
        at: u64,
        first: u64,
        kind: Access,
    ) -> Pass {
        let place = geometry.layout().locate(Lba(first));
        let arm = Arm { cylinder: place.cylinder, surface: place.surface };
        let seek = u64::from(geometry.seek(from, arm, kind.write)).max(kind.least_seek);
        let on_track_at = at + seek;
        let phase = geometry.phase_at(on_track_at, spindle);
        let starts_at = on_track_at + u64::from(geometry.wait(phase, geometry.phase_of(&place)));
        let (count, sectors_per_track) = (u64::from(place.run), place.sectors_per_track);
        Pass { arm, first, count, sectors_per_track, on_track_at, starts_at }
    }

    /// The pass that follows without a pause.
    pub(crate) fn next(&self, geometry: &Geometry, spindle: u64, write: bool) -> Pass {
        let at = self.time_after(geometry, self.count);
        Pass::begin(geometry, spindle, self.arm, at, self.end(), Access { write, least_seek: 0 })
    }

    /// Past the last block.
    pub(crate) fn end(&self) -> u64 {
        self.first + self.count
    }

    /// When the first `sectors` of the run have passed.
    pub(crate) fn time_after(&self, geometry: &Geometry, sectors: u64) -> u64 {
        self.starts_at + geometry.span(sectors, self.sectors_per_track)
    }

    /// How many sectors of the run have passed wholly at `time`.
    pub(crate) fn passed(&self, geometry: &Geometry, time: u64) -> u64 {
        let Some(elapsed) = time.checked_sub(self.starts_at) else { return 0 };
        let spt = u64::from(self.sectors_per_track);
        // The rounding of `span` is downwards, so that one more sector may have passed than the quotient says.
        let whole = elapsed.saturating_mul(spt) / u64::from(geometry.period());
        let whole = if self.time_after(geometry, whole + 1) <= time { whole + 1 } else { whole };
        whole.min(self.count)
    }

    /// Sectors that pass between the arrival over the track and the first one of the run, wholly.
    pub(crate) fn passed_before(&self, geometry: &Geometry) -> u64 {
        (self.starts_at - self.on_track_at) * u64::from(self.sectors_per_track) / u64::from(geometry.period())
    }

    /// Where the head lands within the first `sectors` of the run: how many of them it has missed. `None` where it
    /// lands outside of them.
    pub(crate) fn missed(&self, geometry: &Geometry, sectors: u64) -> Option<u64> {
        let behind = u64::from(geometry.period()) - (self.starts_at - self.on_track_at);
        if self.starts_at == self.on_track_at || behind >= geometry.span(sectors, self.sectors_per_track) {
            return None;
        }
        // The sector under the head has begun: it counts as missed.
        Some((behind * u64::from(self.sectors_per_track)).div_ceil(u64::from(geometry.period())))
    }
}

/// What a pass is for.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Access {
    pub(crate) write: bool,
    /// Least time from the start to being over the track.
    pub(crate) least_seek: u64,
}

/// An access to the medium for reading.
pub(crate) const READ: Access = Access { write: false, least_seek: 0 };
