//! Where a stream's requests go: the access patterns.

use std::fmt;
use std::str::FromStr;

use super::SpecError;
use super::text::serde_as_text;

/// The largest exponent of a zipf pattern; above it practically every access hits one block.
pub const ZIPF_THETA_MAX: f64 = 10.0;

/// An access pattern over a stream's range. As text: `random`, `sequential`, `zipf:0.99`, `hot-cold:80/20`.
#[derive(Clone, Copy, Debug, PartialEq, Default)]
pub enum Pattern {
    /// Every address equally likely.
    #[default]
    Random,
    /// One block after the other, from the range's end back to its start. Users start evenly spaced.
    Sequential,
    /// The k-th most wanted block is wanted in proportion to 1 / k^theta; the blocks' ranks are scattered.
    Zipf {
        /// The exponent, more than 0 and at most [`ZIPF_THETA_MAX`].
        theta: f64,
    },
    /// A share of the accesses goes to a share of the space, the rest to the rest, both uniformly.
    HotCold {
        /// The accesses that go to the hot space, 0 to 100 %.
        access_percent: f64,
        /// The hot part of the space, more than 0 and less than 100 %.
        space_percent: f64,
    },
}

impl FromStr for Pattern {
    type Err = SpecError;

    fn from_str(text: &str) -> Result<Pattern, SpecError> {
        let fail = || SpecError::Pattern(text.to_owned());
        let number = |digits: &str| digits.trim().parse::<f64>().ok().filter(|x| x.is_finite());
        let (name, argument) = text.trim().split_once(':').unwrap_or((text.trim(), ""));
        match (name, argument) {
            ("random", "") => Ok(Pattern::Random),
            ("sequential", "") => Ok(Pattern::Sequential),
            ("zipf", theta) => Ok(Pattern::Zipf { theta: number(theta).ok_or_else(fail)? }),
            ("hot-cold", shares) => {
                let (accesses, space) = shares.split_once('/').ok_or_else(fail)?;
                let access_percent = number(accesses).ok_or_else(fail)?;
                Ok(Pattern::HotCold { access_percent, space_percent: number(space).ok_or_else(fail)? })
            }
            _ => Err(fail()),
        }
    }
}

impl fmt::Display for Pattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Pattern::Random => f.write_str("random"),
            Pattern::Sequential => f.write_str("sequential"),
            Pattern::Zipf { theta } => write!(f, "zipf:{theta}"),
            Pattern::HotCold { access_percent, space_percent } => {
                write!(f, "hot-cold:{access_percent}/{space_percent}")
            }
        }
    }
}

serde_as_text!(Pattern);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_back_what_it_prints() {
        for text in ["random", "sequential", "zipf:0.99", "hot-cold:80/20", "hot-cold:99.5/0.5"] {
            assert_eq!(text.parse::<Pattern>().expect(text).to_string(), text);
        }
    }

    #[test]
    fn refuses_what_is_no_pattern() {
        for text in ["", "rnd", "zipf", "zipf:", "zipf:nan", "hot-cold:80", "random:1", "hot-cold:a/b"] {
            assert_eq!(text.parse::<Pattern>(), Err(SpecError::Pattern(text.to_owned())), "{text}");
        }
    }
}
