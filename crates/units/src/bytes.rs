//! Sizes in bytes, as admins write them: `8KiB`, `300GB`, `1.5 TiB`.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// A number of bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ByteCount(pub u64);

/// The suffixes and their factors; binary ones first, since printing prefers them.
const UNITS: [(&str, u64); 13] = [
    ("EiB", 1 << 60),
    ("PiB", 1 << 50),
    ("TiB", 1 << 40),
    ("GiB", 1 << 30),
    ("MiB", 1 << 20),
    ("KiB", 1 << 10),
    ("EB", 1_000_000_000_000_000_000),
    ("PB", 1_000_000_000_000_000),
    ("TB", 1_000_000_000_000),
    ("GB", 1_000_000_000),
    ("MB", 1_000_000),
    ("kB", 1_000),
    ("B", 1),
];

/// In units below this one, a size of more than four digits is rounded to the next one: nobody reads `1048560KiB`. Larger units
/// are those of whole drives, as `14400GB`.
const EXACT_BELOW: u64 = 1_000_000_000;
/// How many of them are binary.
const BINARY: usize = 6;

impl ByteCount {
    /// A whole number of KiB.
    pub const fn kib(n: u64) -> ByteCount {
        ByteCount(n << 10)
    }

    /// A whole number of MiB.
    pub const fn mib(n: u64) -> ByteCount {
        ByteCount(n << 20)
    }

    /// A whole number of GiB.
    pub const fn gib(n: u64) -> ByteCount {
        ByteCount(n << 30)
    }

    /// A whole number of GB (10^9 bytes), the unit of drive makers.
    pub const fn gb(n: u64) -> ByteCount {
        ByteCount(n * 1_000_000_000)
    }
}

impl ByteCount {
    /// As many of the binary unit as it has of a decimal one: 1GiB of 1GB.
    pub(crate) fn in_binary_units(self) -> Option<ByteCount> {
        let (binary, decimal) = UNITS[..UNITS.len() - 1].split_at(BINARY);
        let of = |(binary, decimal): (&(&str, u64), &(&str, u64))| {
            let count = self.0 / decimal.1;
            (count > 0 && self.0.is_multiple_of(decimal.1))
                .then(|| count.checked_mul(binary.1).map(ByteCount))?
        };
        binary.iter().zip(decimal).find_map(of)
    }

    /// In the largest unit that divides it; what is no whole KiB or MB, in bytes.
    fn exact(self) -> String {
        let divides = |factor: u64| factor != 1_000 && self.0 >= factor && self.0.is_multiple_of(factor);
        let units = UNITS.iter().filter(|(_, factor)| divides(*factor));
        let (unit, factor) = units.max_by_key(|(_, factor)| *factor).unwrap_or(&("B", 1));
        format!("{}{unit}", self.0 / factor)
    }
}

/// Why a text is no size.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ParseByteCountError {
    text: String,
    /// Whether it would be one if there were as many bytes.
    is_too_large: bool,
}

impl fmt::Display for ParseByteCountError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let text = &self.text;
        match self.is_too_large {
            true => write!(f, "size {text:?} is too large; the limit is 16EiB (2^64 bytes)"),
            false => {
                write!(f, "{text:?} is not a size; write a number and a unit, as in 8KiB, 300GB or 1.5TiB")
            }
        }
    }
}

impl std::error::Error for ParseByteCountError {}

impl FromStr for ByteCount {
    type Err = ParseByteCountError;

    /// A number, whole or with a fraction, then a unit of [`UNITS`] in any case, or `k`, `m`, `g`, `t`, `p`, `e` alone
    /// for the binary ones. A number alone is bytes.
    fn from_str(text: &str) -> Result<ByteCount, ParseByteCountError> {
        let fail = || ParseByteCountError { text: text.to_owned(), is_too_large: false };
        let too_large = || ParseByteCountError { text: text.to_owned(), is_too_large: true };
        let trimmed = text.trim();
        let split = trimmed.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(trimmed.len());
        let (number, unit) = (&trimmed[..split], trimmed[split..].trim());
        let factor = match unit.to_ascii_lowercase().as_str() {
            "" => 1,
            "k" => 1 << 10,
            "m" => 1 << 20,
            "g" => 1 << 30,
            "t" => 1 << 40,
            "p" => 1 << 50,
            "e" => 1 << 60,
            unit => UNITS.iter().find(|(name, _)| name.eq_ignore_ascii_case(unit)).ok_or_else(fail)?.1,
        };
        if let Ok(whole) = number.parse::<u64>() {
            return whole.checked_mul(factor).map(ByteCount).ok_or_else(too_large);
        }
        let real = number.parse::<f64>().map_err(|_| fail())? * factor as f64;
        if real < u64::MAX as f64 { Ok(ByteCount(real.round() as u64)) } else { Err(too_large()) }
    }
}

impl fmt::Display for ByteCount {
    /// Exact in the largest unit that divides it (`8KiB`, `300GB`) if that is readable, else with two decimals of a binary unit:
    /// `16380KiB` is 16.00MiB to a reader. Always exact with `{:#}`, which is for messages that compare sizes: rounded, a wrong
    /// one may look like a right one.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if f.alternate() {
            return f.pad(&self.exact());
        }
        // What is no whole KiB, and less than a MB, is told in bytes: 1kB reads like 1KiB.
        let exact = |factor: u64| {
            factor > 1
                && factor != 1_000
                && self.0.is_multiple_of(factor)
                && (1..if factor < EXACT_BELOW { 10_000 } else { 100_000 }).contains(&(self.0 / factor))
        };
        let text = if let Some((unit, factor)) = UNITS.iter().find(|(_, factor)| exact(*factor)) {
            format!("{}{unit}", self.0 / factor)
        } else if let Some((unit, factor)) = UNITS[..BINARY].iter().find(|(_, factor)| self.0 >= *factor) {
            format!("{:.2}{unit}", self.0 as f64 / *factor as f64)
        } else {
            format!("{}B", self.0)
        };
        f.pad(&text)
    }
}

impl Serialize for ByteCount {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_u64(self.0)
    }
}

impl<'de> Deserialize<'de> for ByteCount {
    /// A number of bytes, or a text such as `"8KiB"`.
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<ByteCount, D::Error> {
        struct Visitor;
        impl serde::de::Visitor<'_> for Visitor {
            type Value = ByteCount;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a size such as \"8KiB\" or \"300GB\"")
            }
            fn visit_u64<E: serde::de::Error>(self, v: u64) -> Result<ByteCount, E> {
                Ok(ByteCount(v))
            }
            fn visit_i64<E: serde::de::Error>(self, v: i64) -> Result<ByteCount, E> {
                u64::try_from(v).map(ByteCount).map_err(|_| E::custom("a size cannot be negative"))
            }
            fn visit_str<E: serde::de::Error>(self, v: &str) -> Result<ByteCount, E> {
                v.parse().map_err(E::custom)
            }
        }
        deserializer.deserialize_any(Visitor)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_what_admins_write() {
        for (text, bytes) in [
            ("8KiB", 8 << 10),
            ("300GB", 300_000_000_000),
            ("1.5 TiB", 3 << 39),
            ("64k", 64 << 10),
            ("4096", 4096),
            ("10 mib", 10 << 20),
            ("4PiB", 4 << 50),
            ("1.5 EiB", 3 << 59),
            ("2PB", 2_000_000_000_000_000),
        ] {
            assert_eq!(text.parse(), Ok(ByteCount(bytes)), "{text}");
        }
    }

    #[test]
    fn refuses_what_is_no_size() {
        for text in ["", "GB", "-1", "12 parsecs", "1e9", "99999999999TiB", "1..2"] {
            assert!(text.parse::<ByteCount>().is_err(), "{text}");
        }
        for text in ["99999999TiB", "16EiB", "99999999999999999999", "16.5EiB"] {
            let told = text.parse::<ByteCount>().expect_err("too large").to_string();
            assert!(told.contains("too large") && told.contains("; "), "{told}");
        }
    }

    #[test]
    fn messages_that_compare_sizes_have_them_exact() {
        for (bytes, text) in [
            (0, "0B"),
            (4095, "4095B"),
            (4096, "4KiB"),
            (1_000_000_000, "1GB"),
            (1 << 30, "1GiB"),
            (999_997_440, "976560KiB"),
            (1_234_567, "1234567B"),
            (3776 << 20, "3776MiB"),
            (5000, "5000B"),
        ] {
            assert_eq!(format!("{:#}", ByteCount(bytes)), text);
        }
    }

    #[test]
    fn prints_exactly_or_rounded() {
        assert_eq!(ByteCount::kib(8).to_string(), "8KiB");
        assert_eq!(ByteCount::gb(300).to_string(), "300GB");
        assert_eq!(ByteCount(0).to_string(), "0B");
        assert_eq!(ByteCount(1_234_567).to_string(), "1.18MiB");
        // Four digits at most in KiB and MiB.
        assert_eq!(ByteCount::kib(9_999).to_string(), "9999KiB");
        assert_eq!(ByteCount::kib(16_368).to_string(), "15.98MiB");
        assert_eq!(ByteCount::kib((1 << 20) - 16).to_string(), "1023.98MiB");
        assert_eq!(ByteCount::mib(15_999).to_string(), "15.62GiB");
        assert_eq!(ByteCount::gb(14_400).to_string(), "14400GB");
    }
}
