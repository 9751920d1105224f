//! Ranges and ends of pins on the command line.

use std::ops::Range;

use tier0_units::ByteCount;

use crate::moment::moment;

/// Reads a range of offsets, as `0..4GiB`.
///
/// # Errors
/// It is none, or is empty.
pub(super) fn range(text: &str) -> Result<Range<u64>, String> {
    let example = || format!("{text:?} is not a range of offsets; use one as in 0..4GiB");
    let (from, to) = text.split_once("..").ok_or_else(example)?;
    let has_unit = |text: &str| text.trim() == "0" || text.contains(|c: char| c.is_ascii_alphabetic());
    if let Some(bare) = [from, to].into_iter().find(|text| !has_unit(text)) {
        return Err(format!("{bare:?} has no unit; use {}MiB", bare.trim()));
    }
    let offset = |text: &str| text.trim().parse::<ByteCount>().map(|bytes| bytes.0).map_err(|_| example());
    let range = offset(from)?..offset(to)?;
    if range.is_empty() {
        return Err(format!("the range {text:?} is empty; use one as in 0..4GiB"));
    }
    Ok(range)
}

/// Reads a time to come, in seconds since 1970: a time of the calendar, or how long from now.
///
/// # Errors
/// It is neither.
pub(super) fn until(text: &str) -> Result<u64, String> {
    let time = moment(text, |now, span| now.checked_add(span).ok());
    let unix_s = time.and_then(|time| u64::try_from(time.as_second()).ok());
    unix_s
        .ok_or_else(|| "use a time from now, as in \"8h\", or a UTC time, as in 2026-11-24T18:00".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_and_times_are_read() {
        assert_eq!(range("0..4GiB"), Ok(0..4 << 30));
        assert_eq!(range("1MiB .. 2MiB"), Ok(1 << 20..2 << 20));
        for wrong in ["4GiB", "aMiB..bMiB", "2MiB..1MiB"] {
            assert!(range(wrong).expect_err("it is none").contains("0..4GiB"), "{wrong}");
        }
        assert!(range("10..20MiB").expect_err("bytes are a slip").contains("use 10MiB"));
        assert_eq!(until("2030-01-01T00:00:00Z"), Ok(1_893_456_000));
        assert_eq!(until("2030-01-01T00:00"), Ok(1_893_456_000));
        let (hour, day) = (until("1h").expect("a time"), until("1d").expect("a time"));
        assert!((82_799..=82_801).contains(&(day - hour)), "{}", day - hour);
        assert!(until("soon").expect_err("it is none").contains("8h"));
    }
}
