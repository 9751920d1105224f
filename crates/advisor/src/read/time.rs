//! Times as reports write them, as seconds; only their differences are used.

use jiff::civil::DateTime;
use jiff::{Timestamp, tz};

/// Seconds of a time: `2024-05-01 14:03:05.123 +02:00`, `05/01/2024 14:03:05.123`, `05/01/2024 02:03:05 PM`.
pub(super) fn seconds_of(text: &str) -> Option<f64> {
    let text = text.trim().trim_matches('"');
    if text.len() > 64 || !text.is_ascii() {
        return None;
    }
    if let Ok(at) = text.parse::<Timestamp>() {
        return Some(at.as_nanosecond() as f64 / 1e9);
    }
    // SQL Server sets the offset apart: `2024-05-01 14:03:05.1234567 +02:00`.
    if let Some((moment, offset)) = text.rsplit_once(' ')
        && offset.starts_with(['+', '-'])
        && let Ok(at) = format!("{}{offset}", moment.trim()).parse::<Timestamp>()
    {
        return Some(at.as_nanosecond() as f64 / 1e9);
    }
    if let Ok(at) = text.parse::<DateTime>() {
        return civil(at);
    }
    american(text).and_then(civil)
}

/// A time without a zone, as if it were UTC: differences are those of the clock on the wall.
fn civil(at: DateTime) -> Option<f64> {
    let at = tz::TimeZone::UTC.to_timestamp(at).ok()?;
    Some(at.as_nanosecond() as f64 / 1e9)
}

/// `MM/DD/YYYY hh:mm:ss[.fff] [AM|PM]`; `DD/MM/YYYY` or with dots where the first number cannot be a month.
fn american(text: &str) -> Option<DateTime> {
    let mut words = text.split_whitespace();
    let (date, time) = (words.next()?, words.next()?);
    let half = words.next();
    let numbers: Vec<i16> =
        date.split(['/', '.', '-']).map(|part| part.parse().ok()).collect::<Option<_>>()?;
    let [first, second, year] = numbers[..] else { return None };
    let (month, day) = if first > 12 || date.contains('.') { (second, first) } else { (first, second) };
    let mut parts = time.split(':');
    let mut hour: i8 = parts.next()?.parse().ok()?;
    let minute: i8 = parts.next()?.parse().ok()?;
    let seconds: f64 = parts.next().unwrap_or("0").replace(',', ".").parse().ok()?;
    match half.map(str::to_ascii_uppercase).as_deref() {
        Some("PM") if hour < 12 => hour += 12,
        Some("AM") if hour == 12 => hour = 0,
        _ => {}
    }
    if !(0.0..60.0).contains(&seconds) {
        return None;
    }
    let nanos = (seconds.fract() * 1e9) as i32;
    let (month, day) = (i8::try_from(month).ok()?, i8::try_from(day).ok()?);
    DateTime::new(year, month, day, hour, minute, seconds as i8, nanos).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn differences_of_times_are_right_in_every_form() {
        for (first, second) in [
            ("2024-05-01 14:03:05.1234567 +02:00", "2024-05-01 14:04:05.1234567 +02:00"),
            ("2024-05-01T12:03:05Z", "2024-05-01T12:04:05Z"),
            ("2024-05-01 14:03:05", "2024-05-01 14:04:05"),
            ("05/31/2024 11:59:30.500 PM", "06/01/2024 12:00:30.500 AM"),
            ("05/31/2024 23:59:30.500", "06/01/2024 00:00:30.500"),
            ("31.05.2024 23:59:30", "01.06.2024 00:00:30"),
        ] {
            let apart = seconds_of(second).expect(second) - seconds_of(first).expect(first);
            assert!((apart - 60.0).abs() < 1e-3, "{first}: {apart}");
        }
        for text in ["", "yesterday", "13/13/2024 00:00:00", "05/01/2024", "1/2/3 4:5:99"] {
            assert_eq!(seconds_of(text), None, "{text}");
        }
    }
}
