//! Binary records of one length.
//!
//! oracleGeneral of libCacheSim: 24 bytes, little-endian: time in seconds (u32), object (u64), its size in bytes (u32),
//! and the number of the next request for it (i64), which is not used. Besides: block numbers of 32 bits in either
//! order.

use crate::access::{Access, Op, Place};
use crate::error::Misread;
use crate::reader::{CHECK_FORMAT, Clock};

/// Length of an oracleGeneral record.
pub(crate) const ORACLE_BYTES: usize = 24;
/// Nanoseconds of a unit of time.
const TICK_NS: u64 = 1_000_000_000;
/// "Never again" is -1 or the greatest number; -2 is "not known".
const NEXT_MIN: i64 = -2;

/// The access of an oracleGeneral record.
#[inline]
pub(crate) fn oracle_general(record: &[u8; ORACLE_BYTES], clock: &mut Clock) -> Result<Access, Misread> {
    let [t0, t1, t2, t3, i0, i1, i2, i3, i4, i5, i6, i7, s0, s1, s2, s3, n0, n1, n2, n3, n4, n5, n6, n7] =
        *record;
    let time = u32::from_le_bytes([t0, t1, t2, t3]);
    let id = u64::from_le_bytes([i0, i1, i2, i3, i4, i5, i6, i7]);
    let bytes = u32::from_le_bytes([s0, s1, s2, s3]);
    let next = i64::from_le_bytes([n0, n1, n2, n3, n4, n5, n6, n7]);
    if next < NEXT_MIN {
        return Err(foreign(next));
    }
    let at = clock.since_first(u64::from(time), TICK_NS);
    Ok(Access { at, volume: 0, op: Op::Read, place: Place::Object { id, bytes: Some(bytes) } })
}

#[cold]
fn foreign(next: i64) -> Misread {
    Misread {
        expected: "an oracleGeneral record, whose next access is -2 or more",
        found: format!("a next access of {next}"),
        remedy: CHECK_FORMAT,
    }
}

/// The access of a block number.
#[inline]
pub(crate) fn block(id: u32) -> Access {
    Access { at: None, volume: 0, op: Op::Read, place: Place::Object { id: u64::from(id), bytes: None } }
}

#[cfg(test)]
mod tests {
    use tier0_units::Nanos;

    use super::*;

    fn record(time: u32, id: u64, bytes: u32, next: i64) -> [u8; ORACLE_BYTES] {
        let mut record = Vec::new();
        record.extend(time.to_le_bytes());
        record.extend(id.to_le_bytes());
        record.extend(bytes.to_le_bytes());
        record.extend(next.to_le_bytes());
        record.try_into().expect("24 bytes")
    }

    #[test]
    fn an_oracle_general_record() {
        let mut clock = Clock::default();
        let mut read = |record| oracle_general(&record, &mut clock).expect("a record");
        let first = read(record(1000, 0x1234_5678_9abc_def0, 512, i64::MAX));
        let place = Place::Object { id: 0x1234_5678_9abc_def0, bytes: Some(512) };
        assert_eq!(first, Access { at: Some(Nanos::ZERO), volume: 0, op: Op::Read, place });
        assert_eq!(read(record(1002, 7, 0, -1)).at, Some(Nanos::from_secs(2)));
        assert_eq!(read(record(u32::MAX, 7, 0, -2)).at, Some(Nanos::from_secs(u64::from(u32::MAX) - 1000)));
        let misread = oracle_general(&record(0, 7, 0, -3), &mut Clock::default()).expect_err("no record");
        assert_eq!(misread.found, "a next access of -3");
    }
}
