//! A part of a target: bytes, or a share of its capacity.

use std::fmt;
use std::str::FromStr;

use tier0_units::ByteCount;

use super::SpecError;
use super::text::{exact_bytes, serde_as_text};

/// A size in bytes or in percent of a target's capacity. As text: `100GiB`, `40%`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Portion {
    /// That many bytes.
    Bytes(ByteCount),
    /// That share of the capacity, 0 to 100 %.
    Percent(f64),
}

impl Portion {
    /// Nothing: the start of a target.
    pub const NONE: Portion = Portion::Bytes(ByteCount(0));

    /// The bytes this is of a target of `capacity`.
    pub fn of(self, capacity: ByteCount) -> ByteCount {
        match self {
            Portion::Bytes(bytes) => bytes,
            Portion::Percent(percent) => ByteCount((capacity.0 as f64 * percent / 100.0) as u64),
        }
    }
}

impl FromStr for Portion {
    type Err = SpecError;

    fn from_str(text: &str) -> Result<Portion, SpecError> {
        let fail = || SpecError::Portion(text.to_owned());
        match text.trim().strip_suffix('%') {
            None => text.parse().map(Portion::Bytes).map_err(|_| fail()),
            Some(number) => {
                let percent = number.trim().parse::<f64>().map_err(|_| fail())?;
                if (0.0..=100.0).contains(&percent) { Ok(Portion::Percent(percent)) } else { Err(fail()) }
            }
        }
    }
}

impl fmt::Display for Portion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Portion::Bytes(bytes) => f.write_str(&exact_bytes(*bytes)),
            Portion::Percent(percent) => write!(f, "{percent}%"),
        }
    }
}

serde_as_text!(Portion);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn takes_bytes_or_a_share() {
        let capacity = ByteCount::gib(10);
        assert_eq!("40%".parse::<Portion>().expect("share").of(capacity), ByteCount::gib(4));
        assert_eq!("1GiB".parse::<Portion>().expect("size").of(capacity), ByteCount::gib(1));
        assert_eq!("100%".parse::<Portion>().expect("whole").of(capacity), capacity);
    }

    #[test]
    fn refuses_what_is_no_part() {
        for text in ["", "%", "101%", "-1%", "nan%", "some"] {
            assert_eq!(text.parse::<Portion>(), Err(SpecError::Portion(text.to_owned())), "{text}");
        }
    }

    #[test]
    fn reads_back_what_it_prints() {
        for portion in [Portion::Percent(12.5), Portion::Bytes(ByteCount(1_234_567)), Portion::NONE] {
            assert_eq!(portion.to_string().parse(), Ok(portion));
        }
    }
}
