//! The traces of Microsoft Research Cambridge (SNIA IOTTA 388): a line of comma-separated values for each request.
//!
//! `timestamp,hostname,disk,type,offset,size,response time`: time in units of 100 ns since 1601, type `Read` or
//! `Write`, offset and size in bytes. The response time is checked to be there and not used.

use crate::access::{Access, Op, Place};
use crate::error::Misread;
use crate::reader::{CHECK_LINE, Clock, volume_error};
use crate::text::{column, number};
use crate::volumes::Volumes;

/// Nanoseconds of a unit of time.
const TICK_NS: u64 = 100;
/// What some copies have as their first line, in any case.
const HEADER: &[u8] = b"timestamp,hostname,disknumber,type,offset,size,responsetime";

/// Whether a line names the columns instead of holding values.
pub(crate) fn is_header(line: &[u8]) -> bool {
    line.eq_ignore_ascii_case(HEADER)
}

/// Whether a line could be of this format.
pub(crate) fn resembles(line: &[u8]) -> bool {
    is_header(line) || parse(line, &mut Volumes::new(), &mut Clock::default()).is_ok()
}

/// The access of a line.
#[inline]
pub(crate) fn parse(line: &[u8], volumes: &mut Volumes, clock: &mut Clock) -> Result<Access, Misread> {
    let mut rest = line;
    let mut next = || column(&mut rest);
    let columns = [next(), next(), next(), next(), next(), next(), next(), next()];
    let [Some(time), Some(host), Some(disk), Some(kind), Some(offset), Some(size), Some(response), None] =
        columns
    else {
        return Err(Misread::new(
            "timestamp,hostname,disk,type,offset,size,response time (seven values)",
            line,
            CHECK_LINE,
        ));
    };
    let of = |field: &[u8], expected| number(field).ok_or_else(|| Misread::new(expected, field, CHECK_LINE));
    let time = of(time, "a timestamp, in units of 100 ns")?;
    of(disk, "the number of a disk")?;
    let op = match kind {
        b"Read" => Op::Read,
        b"Write" => Op::Write,
        _ if kind.eq_ignore_ascii_case(b"read") => Op::Read,
        _ if kind.eq_ignore_ascii_case(b"write") => Op::Write,
        _ => return Err(Misread::new("\"Read\" or \"Write\"", kind, CHECK_LINE)),
    };
    let (offset, length) = (of(offset, "an offset in bytes")?, of(size, "a size in bytes")?);
    of(response, "a response time, in units of 100 ns")?;
    if offset.checked_add(length).is_none() {
        return Err(Misread::new("a range that ends within 2^64 bytes", line, CHECK_LINE));
    }
    // Host and disk stand side by side.
    let key = &line[columns_start(line, host)..columns_start(line, disk) + disk.len()];
    let volume = volumes.number(key, name).map_err(|refusal| volume_error(&refusal, key))?;
    let at = clock.since_first(time, TICK_NS).ok_or_else(|| Misread::new(CLOCK, line, CHECK_LINE))?;
    Ok(Access { at: Some(at), volume, op, place: Place::Bytes { offset, length } })
}

pub(crate) const CLOCK: &str = "a time within 584 years of the first";

/// Where a column of a line begins.
fn columns_start(line: &[u8], column: &[u8]) -> usize {
    column.as_ptr() as usize - line.as_ptr() as usize
}

/// As the files of the collection are called: `usr_0`.
fn name(key: &[u8]) -> String {
    key.escape_ascii().to_string().replace(',', "_")
}

#[cfg(test)]
mod tests {
    use tier0_units::Nanos;

    use super::*;

    #[test]
    fn requests_of_two_disks() {
        let (mut volumes, mut clock) = (Volumes::new(), Clock::default());
        let mut read = |line: &str| parse(line.as_bytes(), &mut volumes, &mut clock).expect(line);
        let place = |offset, length| Place::Bytes { offset, length };
        let first = read("128166372003061629,usr,0,Read,7014609920,24576,41286");
        let at = Some(Nanos::ZERO);
        assert_eq!(first, Access { at, volume: 0, op: Op::Read, place: place(7014609920, 24576) });
        let second = read("128166372016382155,usr,1,Write,2517696512,4096,703");
        let at = Some(Nanos(1_332_052_600));
        assert_eq!(second, Access { at, volume: 1, op: Op::Write, place: place(2517696512, 4096) });
        let earlier = read("128166372000000000,usr,0,write,0,512,1");
        assert_eq!((earlier.at, earlier.volume, earlier.op), (Some(Nanos::ZERO), 0, Op::Write));
        assert_eq!(volumes.names(), ["usr_0", "usr_1"]);
    }

    #[test]
    fn what_is_wrong_is_named() {
        for (line, expected, found) in [
            ("1,usr,0,Read,0,512", "timestamp,hostname", "\"1,usr,0,Read,0,512\""),
            ("1,usr,0,Read,0,512,3,4", "timestamp,hostname", "\"1,usr,0,Read,0,512,3,4\""),
            ("1,usr,0,Read,0,512,", "timestamp,hostname", "\"1,usr,0,Read,0,512,\""),
            ("", "timestamp,hostname", "nothing"),
            ("x,usr,0,Read,0,512,1", "a timestamp", "\"x\""),
            ("1,usr,a,Read,0,512,1", "the number of a disk", "\"a\""),
            ("1,usr,0,Erase,0,512,1", "\"Read\" or \"Write\"", "\"Erase\""),
            ("1,usr,0,Read,-1,512,1", "an offset", "\"-1\""),
            ("1,usr,0,Read,18446744073709551616,512,1", "an offset", "\"18446744073709551616\""),
            ("1,usr,0,Read,0,4 KiB,1", "a size", "\"4 KiB\""),
            (
                "1,usr,0,Read,18446744073709551615,1,1",
                "a range that ends",
                "\"1,usr,0,Read,18446744073709551615,1,1\"",
            ),
            ("1,usr,0,Read,0,512,fast", "a response time", "\"fast\""),
        ] {
            let misread = parse(line.as_bytes(), &mut Volumes::new(), &mut Clock::default()).expect_err(line);
            assert!(misread.expected.starts_with(expected), "{line}: {misread:?}");
            assert_eq!(misread.found, found, "{line}");
        }
        let mut clock = Clock::default();
        let mut read = |line: &str| {
            parse(line.as_bytes(), &mut Volumes::new(), &mut clock).map_err(|misread| misread.expected)
        };
        assert!(read("0,a,0,Read,0,1,1").is_ok());
        assert_eq!(read("18446744073709551615,a,0,Read,0,1,1"), Err(CLOCK));
    }
}
