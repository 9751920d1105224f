//! What a size has to be: within a range, and a multiple of a unit.

use crate::ByteCount;

/// Below this a size is likely a number without a unit.
const UNITLESS_MAX: ByteCount = ByteCount::mib(1);

/// The sizes that something can have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SizeRule {
    /// The smallest, a multiple of `unit`.
    pub least: ByteCount,
    /// The largest, a multiple of `unit`.
    pub most: ByteCount,
    /// Of what it is a multiple; at least one byte.
    pub unit: ByteCount,
}

impl SizeRule {
    /// From `least` on, in multiples of it.
    pub const fn multiple_of(least: ByteCount) -> SizeRule {
        SizeRule { least, most: ByteCount(u64::MAX / least.0 * least.0), unit: least }
    }

    /// Any number of bytes from `least` to `most`.
    pub const fn within(least: ByteCount, most: ByteCount) -> SizeRule {
        SizeRule { least, most, unit: ByteCount(1) }
    }

    /// Checks a size.
    ///
    /// # Errors
    /// What is wrong with it, and which sizes near it can be used instead: a sentence.
    pub fn check(&self, size: ByteCount) -> Result<(), String> {
        let SizeRule { least, most, unit } = *self;
        if size > most {
            return Err(format!("{size:#} is too large; use at most {most:#}"));
        }
        if size.0 == 0 || size < least && unit.0 == 1 {
            return Err(format!("{size:#} is too small; use at least {least:#}"));
        }
        if size.0.is_multiple_of(unit.0) {
            let is_small = size < least;
            return if is_small {
                Err(format!("{size:#} is too small; use at least {least:#}"))
            } else {
                Ok(())
            };
        }
        let hint = if size < UNITLESS_MAX { " (a number without a unit is bytes)" } else { "" };
        Err(format!("{size:#} is not a multiple of {unit:#}{hint}; use {}", self.nearest(size)))
    }

    /// The multiples around a size, and the size in binary units that a decimal one may stand for.
    fn nearest(&self, size: ByteCount) -> String {
        let below = size.0 / self.unit.0 * self.unit.0;
        let above = below.saturating_add(self.unit.0);
        let can_be = |bytes: &u64| (self.least.0..=self.most.0).contains(bytes);
        let around = [below, above].map(|bytes| bytes.clamp(self.least.0, self.most.0));
        let meant =
            size.in_binary_units().filter(|meant| can_be(&meant.0) && meant.0.is_multiple_of(self.unit.0));
        let mut all: Vec<ByteCount> = meant.into_iter().chain(around.map(ByteCount)).collect();
        all.dedup();
        all.iter().map(|size| format!("{size:#}")).collect::<Vec<_>>().join(" or ")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PAGES: SizeRule = SizeRule::multiple_of(ByteCount::kib(4));

    /// A size of 4095 was refused as "4.00KiB does not do; use a multiple of 4KiB", and 1 GB without a word on why.
    #[test]
    fn a_refused_size_is_told_exactly_with_those_near_it() {
        let refused = |size: u64| PAGES.check(ByteCount(size)).expect_err("no multiple");
        assert_eq!(
            refused(4095),
            "4095B is not a multiple of 4KiB (a number without a unit is bytes); use 4KiB"
        );
        assert_eq!(
            refused(1_000_000_000),
            "1GB is not a multiple of 4KiB; use 1GiB or 976560KiB or 976564KiB"
        );
        assert_eq!(refused((1 << 30) + 1), "1073741825B is not a multiple of 4KiB; use 1GiB or 1048580KiB");
        assert_eq!(refused(0), "0B is too small; use at least 4KiB");
        assert_eq!(PAGES.check(ByteCount(8192)), Ok(()));
    }

    #[test]
    fn what_is_advised_is_allowed() {
        let rule = SizeRule { least: ByteCount::mib(1), most: ByteCount::gib(1), unit: ByteCount::kib(64) };
        for size in [1, 65_535, 1 << 20, (1 << 20) + 1, (1 << 30) - 1, (1 << 30) + 1, 500_000_000, 1_000_000]
        {
            let Err(told) = rule.check(ByteCount(size)) else { continue };
            let (_, advised) = told.split_once("; use ").expect("a remedy");
            let advised = advised.trim_start_matches("at least ").trim_start_matches("at most ");
            for one in advised.split(" or ") {
                assert_eq!(rule.check(one.parse().expect("a size")), Ok(()), "{told}");
            }
        }
        let bytes = SizeRule::within(ByteCount::mib(1), ByteCount::mib(2));
        assert_eq!(
            bytes.check(ByteCount((1 << 20) - 1)),
            Err("1048575B is too small; use at least 1MiB".into())
        );
        assert_eq!(
            bytes.check(ByteCount((2 << 20) + 1)),
            Err("2097153B is too large; use at most 2MiB".into())
        );
    }
}
