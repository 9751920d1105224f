//! What can be wrong with a disk's parameters.

/// Parameters that describe no possible disk.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum ParameterError {
    /// A number outside of what a disk can have.
    #[error("{field} is {value}; it must be {range}")]
    OutOfRange {
        /// The parameter.
        field: &'static str,
        /// Its value.
        value: f64,
        /// What it may be.
        range: &'static str,
    },
    /// Zones that overlap, run backwards or leave the disk.
    #[error(
        "zone {zone} has cylinders {first} to {last}; zones must ascend without overlap and end below cylinder \
         {cylinders}"
    )]
    ZoneCylinders {
        /// Index of the zone.
        zone: usize,
        /// Its first cylinder.
        first: u32,
        /// Its last cylinder.
        last: u32,
        /// Cylinders of the disk.
        cylinders: u32,
    },
    /// A zone whose spare and unused sectors leave no room for data.
    #[error("zone {zone} has no sectors left for data; lower its spares or its unused sectors")]
    EmptyZone {
        /// Index of the zone.
        zone: usize,
    },
    /// A slip or remapping that points outside of its zone.
    #[error(
        "zone {zone} lists defect {sector}, but has only {sectors} sectors; defects count from the zone's start"
    )]
    DefectOutside {
        /// Index of the zone.
        zone: usize,
        /// The listed sector.
        sector: u64,
        /// Sectors of the zone.
        sectors: u64,
    },
    /// The zones hold less than the capacity that was asked for.
    #[error(
        "the zones hold {held} sectors, less than the capacity of {capacity}; add cylinders or sectors per track"
    )]
    TooSmall {
        /// Sectors that the zones hold.
        held: u64,
        /// Sectors wanted.
        capacity: u64,
    },
    /// A seek curve without a point, or whose points do not ascend.
    #[error("the seek curve needs at least one point, with distances that ascend from 1")]
    SeekCurve,
    /// Three seek times through which no rising curve goes.
    #[error(
        "seek times of {single_ms} ms (one track), {average_ms} ms (average) and {full_ms} ms (full stroke) are not \
         a rising curve; check them against the datasheet"
    )]
    SeekPoints {
        /// Seek to the next cylinder.
        single_ms: f64,
        /// Mean of random seeks.
        average_ms: f64,
        /// Seek over all cylinders.
        full_ms: f64,
    },
}

/// Fails unless `value` lies in `range`.
pub(crate) fn check_range(
    field: &'static str,
    value: f64,
    range: std::ops::RangeInclusive<f64>,
    words: &'static str,
) -> Result<(), ParameterError> {
    if range.contains(&value) {
        Ok(())
    } else {
        Err(ParameterError::OutOfRange { field, value, range: words })
    }
}
