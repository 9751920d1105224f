//! What fio logs and replays (`write_iolog`, `read_iolog`): versions 2 and 3.
//!
//! After the line `fio version 2 iolog`, one line for each action: `file action`, or `file action offset length`, in
//! bytes. Version 3 has a time in microseconds before the file. Version 2 has none: its `wait` lines mean one thing in
//! fio's documentation and another in its code, so they are passed over, and accesses have no time.

use crate::access::{Access, Op, Place};
use crate::error::Misread;
use crate::reader::{CHECK_LINE, CLOCK, Clock, volume_error};
use crate::text::{number, word};
use crate::volumes::Volumes;

/// Nanoseconds of a unit of time.
const TICK_NS: u64 = 1000;
/// What every version begins with.
const HEADER: &[u8] = b"fio version ";

/// The two versions.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Version {
    Two,
    Three,
}

/// Whether the first line of a file is of this format.
pub(crate) fn resembles(line: &[u8]) -> bool {
    line.starts_with(HEADER)
}

/// The version that the first line names.
pub(crate) fn version(line: &[u8]) -> Result<Version, Misread> {
    match line.trim_ascii_end() {
        b"fio version 2 iolog" => Ok(Version::Two),
        b"fio version 3 iolog" => Ok(Version::Three),
        _ => Err(Misread::new(
            "\"fio version 2 iolog\" or \"fio version 3 iolog\"",
            line,
            "write the log again with a fio of version 2 or later, or name the format of the file",
        )),
    }
}

/// The access of a line; none where it opens or closes a file, waits, is blank, or is the first line of another log that was put
/// behind the one before, whose version counts from there on.
#[inline]
pub(crate) fn parse(
    line: &[u8],
    version: &mut Version,
    volumes: &mut Volumes,
    clock: &mut Clock,
) -> Result<Option<Access>, Misread> {
    let mut rest = line;
    let first = word(&mut rest);
    if first.is_empty() {
        return Ok(None);
    }
    if first == b"fio" && resembles(line) {
        *version = self::version(line)?;
        return Ok(None);
    }
    let version = *version;
    let of = |field: &[u8], expected| number(field).ok_or_else(|| Misread::new(expected, field, CHECK_LINE));
    let (time, file) = match version {
        Version::Two => (None, first),
        Version::Three => (Some(of(first, "a time in microseconds")?), word(&mut rest)),
    };
    let (action, offset, length, more) = (word(&mut rest), word(&mut rest), word(&mut rest), word(&mut rest));
    if action.is_empty() || !more.is_empty() || offset.is_empty() != length.is_empty() {
        let expected = match version {
            Version::Two => "\"file action\" or \"file action offset length\"",
            Version::Three => "\"time file action\" or \"time file action offset length\"",
        };
        return Err(Misread::new(expected, line, CHECK_LINE));
    }
    let range = if offset.is_empty() {
        None
    } else {
        let (offset, length) = (of(offset, "an offset in bytes")?, of(length, "a length in bytes")?);
        if offset.checked_add(length).is_none() {
            return Err(Misread::new("a range that ends within 2^64 bytes", line, CHECK_LINE));
        }
        Some(Place::Bytes { offset, length })
    };
    let op = match action {
        b"read" => Op::Read,
        b"write" => Op::Write,
        b"trim" => Op::Discard,
        b"sync" | b"datasync" | b"sync_file_range" | b"syncfs" => Op::Flush,
        b"wait" | b"add" | b"open" | b"close" | b"unlink" => return Ok(None),
        _ => {
            let expected = "read, write, trim, sync, datasync, wait, add, open or close";
            return Err(Misread::new(expected, action, CHECK_LINE));
        }
    };
    let place = match (op, range) {
        // Offset and length of a flush are those of the request before.
        (Op::Flush, _) => Place::Volume,
        (_, Some(range)) => range,
        (_, None) => return Err(Misread::new("an offset and a length after the action", line, CHECK_LINE)),
    };
    let name = |key: &[u8]| key.escape_ascii().to_string();
    let volume = volumes.number(file, name).map_err(|refusal| volume_error(&refusal, file))?;
    let at = match time {
        None => None,
        Some(time) => {
            Some(clock.since_first(time, TICK_NS).ok_or_else(|| Misread::new(CLOCK, line, CHECK_LINE))?)
        }
    };
    Ok(Some(Access { at, volume, op, place }))
}

#[cfg(test)]
mod tests {
    use tier0_units::Nanos;

    use super::*;

    fn read(text: &str, mut version: Version) -> (Vec<Access>, Vec<String>) {
        let (mut volumes, mut clock) = (Volumes::new(), Clock::default());
        let parsed = text
            .lines()
            .map(|line| parse(line.as_bytes(), &mut version, &mut volumes, &mut clock).expect(line));
        let accesses = parsed.flatten().collect();
        (accesses, volumes.names().to_vec())
    }

    #[test]
    fn version_2_has_no_times() {
        let (accesses, names) = read(
            "/dev/sdb add\n/dev/sdb open\n/dev/sdb read 0 4096\n/dev/sdc write 8192 512\n/dev/sdb wait 100 0\n\
             /dev/sdb trim 4096 4096\n/dev/sdb sync 0 0\n/dev/sdb datasync\n\n/dev/sdb close\n",
            Version::Two,
        );
        let access = |volume, op, place| Access { at: None, volume, op, place };
        let place = |offset, length| Place::Bytes { offset, length };
        assert_eq!(
            accesses,
            [
                access(0, Op::Read, place(0, 4096)),
                access(1, Op::Write, place(8192, 512)),
                access(0, Op::Discard, place(4096, 4096)),
                access(0, Op::Flush, Place::Volume),
                access(0, Op::Flush, Place::Volume),
            ]
        );
        assert_eq!(names, ["/dev/sdb", "/dev/sdc"]);
    }

    #[test]
    fn version_3_has_microseconds() {
        let (accesses, _) =
            read("20 f add\n100 f open\n104 f read 0 4096\n135 f datasync 16384 0\n", Version::Three);
        let told: Vec<_> = accesses.iter().map(|access| (access.at, access.op)).collect();
        assert_eq!(told, [(Some(Nanos::ZERO), Op::Read), (Some(Nanos::from_micros(31)), Op::Flush)]);
    }

    #[test]
    fn logs_may_follow_each_other() {
        let (accesses, _) = read(
            "f read 0 1\nfio version 3 iolog\n7 f read 1 1\nfio version 2 iolog\nf read 2 1\n",
            Version::Two,
        );
        let times: Vec<_> = accesses.iter().map(|access| access.at).collect();
        assert_eq!(times, [None, Some(Nanos::ZERO), None]);
    }

    #[test]
    fn what_is_wrong_is_named() {
        for (line, mut version, expected) in [
            ("fio version 4 iolog", Version::Two, "\"fio version 2 iolog\""),
            ("f", Version::Two, "\"file action\""),
            ("f read 0", Version::Two, "\"file action\""),
            ("f read 0 1 2", Version::Two, "\"file action\""),
            ("f read", Version::Two, "an offset and a length"),
            ("f erase 0 1", Version::Two, "read, write"),
            ("f read x 1", Version::Two, "an offset"),
            ("f read 1 -1", Version::Two, "a length"),
            ("f read 18446744073709551615 2", Version::Two, "a range"),
            ("f read 0 4096", Version::Three, "a time"),
            ("1 f", Version::Three, "\"time file action\""),
        ] {
            let (mut volumes, mut clock) = (Volumes::new(), Clock::default());
            let misread = parse(line.as_bytes(), &mut version, &mut volumes, &mut clock).expect_err(line);
            assert!(misread.expected.starts_with(expected), "{line}: {misread:?}");
        }
        assert_eq!(version(b"fio version 3 iolog"), Ok(Version::Three));
        assert!(version(b"fio version 4 iolog").is_err() && version(b"1, 0, 4096").is_err());
    }
}
