//! How a transaction chooses a value of a dimension: uniformly, by the skews of order entry and of brokerage, by
//! Zipf's law.

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
    /// Customers of the brokerage specification: of each load unit a fifth is drawn in 10 % of all cases, three fifths in 60 %
    /// and the last fifth in 30 %. The density rises linearly inside each ([`TIERS`]). Ranks are scattered over the values.
    Tiers,
    /// The user's own value.
    Home,
    /// Any value but the user's own.
    Elsewhere,
}

/// Tiers of customers: their share of the values, and the density at their two ends, relative to the mean. A tier's share of the
/// draws is its part times its mean density: 0.2 x 0.5, 0.6 x 1 and 0.2 x 1.5.
const TIERS: [(f64, f64, f64); 3] = [(0.2, 0.3, 0.7), (0.6, 0.7, 1.3), (0.2, 1.3, 1.7)];

/// A law over a number of values, ready to draw from.
#[derive(Clone, Debug)]
pub struct Drawn {
    law: Law,
    values: u64,
    zipf: Option<Zipf>,
    /// Where the ranks lie, of laws that have ranks.
    scramble: Option<Scramble>,
}

/// A law that is none.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "{text:?} is no way to choose; use \"uniform\", \"nurand A\", \"zipf THETA\", \"tiers\", \"home\", \"elsewhere\" or a choice of the workload"
)]
pub struct UnknownLaw {
    text: String,
}

impl Law {
    /// The law over `values` values, at least one.
    pub fn over(self, values: u64) -> Drawn {
        let values = values.max(1);
        let zipf = match self {
            Law::Zipf { theta } => Some(Zipf::new(values, theta)),
            _ => None,
        };
        let has_ranks = matches!(self, Law::Zipf { .. } | Law::Tiers);
        Drawn { law: self, values, zipf, scramble: has_ranks.then(|| Scramble::new(values, values)) }
    }
}

impl Drawn {
    /// A value from 0. `home` is the user's own.
    pub fn draw(&self, random: &mut Random, home: u64) -> u64 {
        match self.law {
            Law::Uniform => random.below(self.values),
            Law::NuRand { a } => (random.below(a + 1) | (random.below(self.values) + 1)) % self.values,
            Law::Zipf { .. } => {
                let zipf = self.zipf.as_ref().expect("made with the law");
                self.scattered(zipf.draw(random))
            }
            Law::Tiers => {
                let rank = (tiered(random.unit()) * self.values as f64) as u64;
                self.scattered(rank.min(self.values - 1))
            }
            Law::Home => home % self.values,
            Law::Elsewhere if self.values == 1 => 0,
            Law::Elsewhere => (home + 1 + random.below(self.values - 1)) % self.values,
        }
    }

    fn scattered(&self, rank: u64) -> u64 {
        self.scramble.as_ref().expect("made with the law").apply(rank)
    }
}

/// The place, 0 to 1, up to which a share of the draws falls.
fn tiered(mut share: f64) -> f64 {
    let mut before = 0.0;
    for (part, low, high) in TIERS {
        let draws = part * (low + high) / 2.0;
        if share < draws {
            // The integral of a density that rises linearly, solved for its end.
            let squares = low * low + share / draws * (high * high - low * low);
            return before + part * (squares.sqrt() - low) / (high - low);
        }
        (share, before) = (share - draws, before + part);
    }
    1.0
}

impl FromStr for Law {
    type Err = UnknownLaw;

    fn from_str(text: &str) -> Result<Law, UnknownLaw> {
        let words: Vec<&str> = text.split_whitespace().collect();
        let unknown = || UnknownLaw { text: text.to_owned() };
        match words[..] {
            ["uniform"] => Ok(Law::Uniform),
            ["tiers"] => Ok(Law::Tiers),
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
            Law::Tiers => f.write_str("tiers"),
            Law::Home => f.write_str("home"),
            Law::Elsewhere => f.write_str("elsewhere"),
        }
    }
}
