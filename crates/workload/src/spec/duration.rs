//! Durations as people write them: `500us`, `10ms`, `1.5s`, `5min`, `24h`.
//!
//! Use with `#[serde(with = "duration")]` or `"duration::option"` on a field of [`Nanos`].

use serde::{Deserialize, Deserializer, Serializer};
use tier0_units::Nanos;

use super::SpecError;

/// The units and their nanoseconds, largest first, since printing takes the largest that divides.
const UNITS: [(&str, u64); 6] = [
    ("h", 3_600_000_000_000),
    ("min", 60_000_000_000),
    ("s", 1_000_000_000),
    ("ms", 1_000_000),
    ("us", 1_000),
    ("ns", 1),
];

/// Reads a number, whole or with a fraction, and one unit of `ns`, `us`, `ms`, `s`, `min`, `h`.
///
/// # Errors
/// [`SpecError::Duration`] where the text is none, or is longer than the 584 years that nanoseconds can count.
pub fn parse_duration(text: &str) -> Result<Nanos, SpecError> {
    let fail = || SpecError::Duration(text.to_owned());
    let trimmed = text.trim();
    let split = trimmed.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(trimmed.len());
    let (number, unit) = (&trimmed[..split], trimmed[split..].trim());
    let factor = UNITS.iter().find(|(name, _)| *name == unit).ok_or_else(fail)?.1;
    if let Ok(whole) = number.parse::<u64>() {
        return whole.checked_mul(factor).map(Nanos).ok_or_else(fail);
    }
    let nanos = number.parse::<f64>().map_err(|_| fail())? * factor as f64;
    if nanos < u64::MAX as f64 { Ok(Nanos(nanos.round() as u64)) } else { Err(fail()) }
}

/// Writes a duration exactly, in the largest unit that divides it; [`parse_duration`] reads it back.
pub fn format_duration(duration: Nanos) -> String {
    let divides = |factor: u64| duration.0 >= factor && duration.0.is_multiple_of(factor);
    let (unit, factor) = UNITS.iter().find(|(_, factor)| divides(*factor)).unwrap_or(&("s", 1));
    format!("{}{unit}", duration.0 / factor)
}

pub(crate) fn serialize<S: Serializer>(duration: &Nanos, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(&format_duration(*duration))
}

pub(crate) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Nanos, D::Error> {
    let text = String::deserialize(deserializer)?;
    parse_duration(&text).map_err(serde::de::Error::custom)
}

/// The same for an optional field; leave the field out for `None`.
pub(crate) mod option {
    use super::{Deserializer, Nanos, Serializer};

    pub(crate) fn serialize<S: Serializer>(value: &Option<Nanos>, serializer: S) -> Result<S::Ok, S::Error> {
        match value {
            Some(duration) => super::serialize(duration, serializer),
            None => serializer.serialize_none(),
        }
    }

    pub(crate) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Nanos>, D::Error> {
        super::deserialize(deserializer).map(Some)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_what_people_write() {
        for (text, nanos) in [
            ("250ns", 250),
            ("500us", 500_000),
            ("1.5 ms", 1_500_000),
            ("30s", 30_000_000_000),
            ("5min", 300_000_000_000),
            ("24h", 86_400_000_000_000),
        ] {
            assert_eq!(parse_duration(text), Ok(Nanos(nanos)), "{text}");
        }
    }

    #[test]
    fn refuses_what_is_no_duration() {
        for text in ["", "10", "s", "-1s", "1 fortnight", "1..2s", "9999999999h", "10S"] {
            assert_eq!(parse_duration(text), Err(SpecError::Duration(text.to_owned())));
        }
    }

    #[test]
    fn prints_exactly_what_it_reads() {
        for nanos in [0, 1, 999, 1_500, 90_000_000_000, 3_600_000_000_000, u64::MAX] {
            assert_eq!(parse_duration(&format_duration(Nanos(nanos))), Ok(Nanos(nanos)));
        }
        assert_eq!(format_duration(Nanos::from_secs(90)), "90s");
    }
}
