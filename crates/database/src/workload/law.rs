//! How a transaction chooses a value of a dimension: uniformly, by the skew of order-entry, by Zipf's law.

use std::fmt;
use std::str::FromStr;

use tier0_workload::draw::{Scramble, Zipf};
use tier0_world::Random;

/// A law, as a workload's file writes it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Law {
    /// Every value alike.
    Uniform,
    /// NURand of the order-entry specification (clause 2.1.6): two uniform draws, of `0..=a` and of all values, joined by a
    /// bitwise or. The constant C shifts the result and changes no share, so it is 0.
    NuRand {
        /// Bits that are set more often.
        a: u64,
    },
    /// Zipf's law with an exponent above 0; ranks are scattered over the values.
    Zipf {
        /// The exponent.
        theta: f64,
    },
    /// The user's own value.
    Home,
    /// Any value but the user's own.
    Elsewhere,
}

/// A law over a number of values, ready to draw from.
#[derive(Clone, Debug)]
pub struct Drawn {
    law: Law,
    values: u64,
    zipf: Option<(Zipf, Scramble)>,
}

/// A law that is none.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "{text:?} is no way to choose; use \"uniform\", \"nurand A\", \"zipf THETA\", \"home\", \"elsewhere\" or a choice of the workload"
)]
pub struct UnknownLaw {
    text: String,
}

impl Law {
    /// The law over `values` values, at least one.
    pub fn over(self, values: u64) -> Drawn {
        let values = values.max(1);
        let zipf = match self {
            Law::Zipf { theta } => Some((Zipf::new(values, theta), Scramble::new(values, values))),
            _ => None,
        };
        Drawn { law: self, values, zipf }
    }
}

impl Drawn {
    /// A value from 0. `home` is the user's own.
    pub fn draw(&self, random: &mut Random, home: u64) -> u64 {
        match self.law {
            Law::Uniform => random.below(self.values),
            Law::NuRand { a } => (random.below(a + 1) | (random.below(self.values) + 1)) % self.values,
            Law::Zipf { .. } => {
                let (zipf, scramble) = self.zipf.as_ref().expect("made with the law");
                scramble.apply(zipf.draw(random))
            }
            Law::Home => home % self.values,
            Law::Elsewhere if self.values == 1 => 0,
            Law::Elsewhere => (home + 1 + random.below(self.values - 1)) % self.values,
        }
    }
}

impl FromStr for Law {
    type Err = UnknownLaw;

    fn from_str(text: &str) -> Result<Law, UnknownLaw> {
        let words: Vec<&str> = text.split_whitespace().collect();
        let unknown = || UnknownLaw { text: text.to_owned() };
        match words[..] {
            ["uniform"] => Ok(Law::Uniform),
            ["home"] => Ok(Law::Home),
            ["elsewhere"] => Ok(Law::Elsewhere),
            ["nurand", a] => Ok(Law::NuRand { a: a.parse().map_err(|_| unknown())? }),
            ["zipf", theta] => match theta.parse() {
                Ok(theta) if theta > 0.0 && theta < 10.0 => Ok(Law::Zipf { theta }),
                _ => Err(unknown()),
            },
            _ => Err(unknown()),
        }
    }
}

impl fmt::Display for Law {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Law::Uniform => f.write_str("uniform"),
            Law::NuRand { a } => write!(f, "nurand {a}"),
            Law::Zipf { theta } => write!(f, "zipf {theta}"),
            Law::Home => f.write_str("home"),
            Law::Elsewhere => f.write_str("elsewhere"),
        }
    }
}
