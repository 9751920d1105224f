//! Rates on the command line: bytes per second, always with a unit.
//!
//! A bare number is refused: `--rate 10` is most likely meant as 10 MiB per second, and would be 10 bytes.

use clap::Args;
use tier0_units::ByteCount;

/// The lowest rate that is accepted, per second: a page. One that is lower is a slip.
const RATE_MIN: ByteCount = ByteCount::kib(4);

/// How fast something is to run that takes long, or that it is to stop.
#[derive(Args, Clone, Copy, Debug)]
pub(super) struct Pace {
    /// Read or move at most this much per second, as in 100MiB
    #[arg(long, value_name = "SIZE", value_parser = rate, conflicts_with = "stop")]
    pub(super) rate: Option<ByteCount>,
    /// Stop what is running
    #[arg(long)]
    pub(super) stop: bool,
}

/// Reads a rate per second, or 0 for none.
///
/// # Errors
/// As [`rate`].
pub(super) fn rate_or_none(text: &str) -> Result<ByteCount, String> {
    if text == "0" { Ok(ByteCount(0)) } else { rate(text) }
}

/// Reads a rate per second, as `10MiB` or `10MiB/s`.
///
/// # Errors
/// It has no unit, is below [`RATE_MIN`], or is not a size.
fn rate(text: &str) -> Result<ByteCount, String> {
    let text = text.strip_suffix("/s").unwrap_or(text);
    let rate: ByteCount = text.parse().map_err(|error| format!("{error}"))?;
    let has_unit = text.contains(|c: char| c.is_ascii_alphabetic());
    if rate.0 > 0 && !has_unit {
        return Err(format!("{text:?} has no unit; use {text}MiB"));
    }
    if rate < RATE_MIN {
        return Err(format!("{text:?} is below {RATE_MIN} per second; use 10MiB, or leave the option out"));
    }
    Ok(rate)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `--rate 10` meant ten bytes a second.
    #[test]
    fn rates_have_a_unit_and_are_not_too_low() {
        for (text, rate_wanted) in [
            ("4KiB", ByteCount::kib(4)),
            ("10m", ByteCount::mib(10)),
            ("10MiB/s", ByteCount::mib(10)),
            ("1.5GiB", ByteCount::mib(1536)),
        ] {
            assert_eq!(rate(text), Ok(rate_wanted), "{text}");
        }
        for (text, told) in [
            ("10", "\"10\" has no unit; use 10MiB"),
            ("104857600", "has no unit"),
            ("0", "below 4KiB per second; use 10MiB"),
            ("10B", "below 4KiB per second"),
            ("fast", "fast"),
        ] {
            let refused = rate(text).expect_err("it is no rate");
            assert!(refused.contains(told), "{text}: {refused}");
        }
    }
}
