//! Checked parameters with their tables: what all drives of one kind share.
//!
//! Times are nanoseconds in `u64`, positions of the platter are nanoseconds since the mark passed the heads (a
//! *phase*, below one revolution). Rotation is exact to a nanosecond per step.

use std::sync::Arc;

use tier0_units::{Nanos, SectorCount};

use super::error::check_range;
use super::layout::Layout;
use super::{DiskParameters, ParameterError, Place, Rotation};

/// A sector that begins this much before the head arrives is still caught, in nanoseconds: it covers the rounding
/// of angles and phases (a nanosecond each), and is far less than the gap between two sectors (some 300 ns).
const CATCH_NS: u32 = 8;

/// Checked parameters of one kind of disk with its tables. Shared: a thousand drives need one.
#[derive(Debug)]
pub struct Geometry {
    parameters: DiskParameters,
    layout: Layout,
    period: u32,
    /// 2^32 / period, rounded down: turns a division into a multiplication.
    per_period: u64,
}

/// Where the arm is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Arm {
    pub(crate) cylinder: u32,
    pub(crate) surface: u32,
}

impl Geometry {
    /// Checks `parameters` and builds the tables.
    pub fn new(parameters: DiskParameters) -> Result<Arc<Geometry>, ParameterError> {
        check_range("rpm", parameters.mechanism.rpm, 60.0..=1e5, "60 to 100,000")?;
        let buffer = &parameters.buffer;
        check_range("buffer segments", f64::from(buffer.segments), 1.0..=1_024.0, "1 to 1,024")?;
        check_range("sectors of a segment", buffer.segment_sectors as f64, 1.0..=1e9, "1 to 10^9")?;
        let write_segments = f64::from(buffer.write_segments);
        check_range("write segments", write_segments, 1.0..=f64::from(buffer.segments), "1 to the segments")?;
        check_range("the water mark", buffer.read_water_mark, 0.0..=1.0, "0 to 1")?;
        if buffer.dedicated_write_segment {
            check_range(
                "segments beside the write segment",
                f64::from(buffer.segments),
                2.0..=1_024.0,
                "1 or more",
            )?;
        }
        check_range(
            "queue depth",
            f64::from(parameters.controller.queue_depth),
            1.0..=65_536.0,
            "1 to 65,536",
        )?;
        let transfer = parameters.controller.sector_transfer.0 as f64;
        check_range("the time to transfer a sector, in ns", transfer, 0.0..=1e9, "at most a second")?;
        for overhead in parameters.controller.overheads.all() {
            check_range("an overhead in ns", overhead.0 as f64, 0.0..=1e9, "at most a second")?;
        }
        let layout = Layout::new(&parameters.layout)?;
        let period = (60e9 / parameters.mechanism.rpm).round() as u32;
        Ok(Arc::new(Geometry { layout, period, per_period: (1 << 32) / u64::from(period), parameters }))
    }

    /// What it was built from.
    pub fn parameters(&self) -> &DiskParameters {
        &self.parameters
    }

    /// The map from blocks to places.
    pub fn layout(&self) -> &Layout {
        &self.layout
    }

    /// Logical blocks of the disk.
    pub fn sectors(&self) -> SectorCount {
        SectorCount(self.layout.sectors())
    }

    /// One revolution.
    pub fn revolution(&self) -> Nanos {
        Nanos(u64::from(self.period))
    }

    pub(crate) fn period(&self) -> u32 {
        self.period
    }

    /// Time to bring a head over the track of `to`, in nanoseconds: zero where it is there.
    pub(crate) fn seek(&self, from: Arm, to: Arm, write: bool) -> u32 {
        let mechanism = &self.parameters.mechanism;
        let (curve, switch) = if write {
            (&mechanism.seek_write, mechanism.head_switch_write)
        } else {
            (&mechanism.seek_read, mechanism.head_switch_read)
        };
        let distance = from.cylinder.abs_diff(to.cylinder);
        let travel = if distance == 0 { 0 } else { curve.nanos(distance) };
        if from.surface == to.surface { travel } else { travel.max(switch.0 as u32) }
    }

    /// When, within a revolution, an angle of the platter is under the heads.
    pub(crate) fn phase_of(&self, place: &Place) -> u32 {
        let nearest = (u64::from(place.angle) * u64::from(self.period) + (1 << 31)) >> 32;
        if nearest == u64::from(self.period) { 0 } else { nearest as u32 }
    }

    /// How far the platter has turned at `time`.
    pub(crate) fn phase_at(&self, time: u64, spindle: u64) -> u32 {
        ((time + spindle) % u64::from(self.period)) as u32
    }

    /// `phase` plus `delay`, in one revolution.
    pub(crate) fn turn(&self, phase: u32, delay: u32) -> u32 {
        let sum = u64::from(phase) + u64::from(delay);
        let turns = (sum * self.per_period) >> 32;
        let mut rest = sum - turns * u64::from(self.period);
        // The quotient may be short by one or two, since `per_period` is rounded down.
        while rest >= u64::from(self.period) {
            rest -= u64::from(self.period);
        }
        rest as u32
    }

    /// Time from phase `at` until phase `target`.
    pub(crate) fn wait(&self, at: u32, target: u32) -> u32 {
        let ahead = if target >= at { target - at } else { target + self.period - at };
        let wait = if ahead > self.period - CATCH_NS { 0 } else { ahead };
        match self.parameters.mechanism.rotation {
            Rotation::Exact => wait,
            Rotation::Average if wait == 0 => 0,
            Rotation::Average => self.period / 2,
        }
    }

    /// Time that `sectors` of a track take to pass.
    pub(crate) fn span(&self, sectors: u64, sectors_per_track: u32) -> u64 {
        sectors * u64::from(self.period) / u64::from(sectors_per_track)
    }
}
