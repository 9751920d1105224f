//! Time in integer nanoseconds, as instant (since the world began) and as duration.

use std::fmt;
use std::ops::{Add, AddAssign, Sub};

/// Nanoseconds: an instant counted from the start of the world, or a duration.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Nanos(pub u64);

impl Nanos {
    /// No time at all; the start of the world.
    pub const ZERO: Nanos = Nanos(0);
    /// Later than anything that happens.
    pub const MAX: Nanos = Nanos(u64::MAX);

    /// A whole number of microseconds.
    pub const fn from_micros(us: u64) -> Nanos {
        Nanos(us * 1_000)
    }

    /// A whole number of milliseconds.
    pub const fn from_millis(ms: u64) -> Nanos {
        Nanos(ms * 1_000_000)
    }

    /// A whole number of seconds.
    pub const fn from_secs(s: u64) -> Nanos {
        Nanos(s * 1_000_000_000)
    }

    /// Seconds as a real number; negative and not-a-number become zero, rounding to the nearest nanosecond.
    pub fn from_secs_f64(s: f64) -> Nanos {
        Nanos((s * 1e9).round() as u64)
    }

    /// Milliseconds as a real number; see [`Nanos::from_secs_f64`].
    pub fn from_millis_f64(ms: f64) -> Nanos {
        Nanos::from_secs_f64(ms / 1e3)
    }

    /// This time in seconds.
    pub fn as_secs_f64(self) -> f64 {
        self.0 as f64 / 1e9
    }

    /// This time in milliseconds.
    pub fn as_millis_f64(self) -> f64 {
        self.0 as f64 / 1e6
    }

    /// `self - earlier`, or zero where `earlier` is later.
    pub const fn saturating_sub(self, earlier: Nanos) -> Nanos {
        Nanos(self.0.saturating_sub(earlier.0))
    }

    /// `self + other`, at most [`Nanos::MAX`].
    pub const fn saturating_add(self, other: Nanos) -> Nanos {
        Nanos(self.0.saturating_add(other.0))
    }
}

impl Add for Nanos {
    type Output = Nanos;
    fn add(self, rhs: Nanos) -> Nanos {
        Nanos(self.0 + rhs.0)
    }
}

impl AddAssign for Nanos {
    fn add_assign(&mut self, rhs: Nanos) {
        self.0 += rhs.0;
    }
}

impl Sub for Nanos {
    type Output = Nanos;
    fn sub(self, rhs: Nanos) -> Nanos {
        Nanos(self.0 - rhs.0)
    }
}

impl From<std::time::Duration> for Nanos {
    fn from(d: std::time::Duration) -> Nanos {
        Nanos(u64::try_from(d.as_nanos()).unwrap_or(u64::MAX))
    }
}

impl From<Nanos> for std::time::Duration {
    fn from(t: Nanos) -> std::time::Duration {
        std::time::Duration::from_nanos(t.0)
    }
}

impl fmt::Display for Nanos {
    /// Three significant digits in the unit that fits: `7.62 us`, `18.4 ms`, `2.00 s`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (value, unit) = match self.0 {
            0..1_000 => return write!(f, "{} ns", self.0),
            1_000..1_000_000 => (self.0 as f64 / 1e3, "us"),
            1_000_000..1_000_000_000 => (self.0 as f64 / 1e6, "ms"),
            _ => (self.0 as f64 / 1e9, "s"),
        };
        let digits = if value < 10.0 { 2 } else { usize::from(value < 100.0) };
        write!(f, "{value:.digits$} {unit}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn prints_three_digits() {
        assert_eq!(Nanos(950).to_string(), "950 ns");
        assert_eq!(Nanos(7_620).to_string(), "7.62 us");
        assert_eq!(Nanos(18_400_000).to_string(), "18.4 ms");
        assert_eq!(Nanos::from_secs(200).to_string(), "200 s");
    }

    #[test]
    fn real_numbers_round_to_the_nanosecond() {
        assert_eq!(Nanos::from_millis_f64(1.5), Nanos(1_500_000));
        assert_eq!(Nanos::from_secs_f64(-1.0), Nanos::ZERO);
        assert_eq!(Nanos::from_secs_f64(f64::NAN), Nanos::ZERO);
    }
}
