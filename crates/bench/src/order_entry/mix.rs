//! The five kinds of transactions and their shares.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};
use tier0_database::workload::Workload;
use tier0_world::Random;

use crate::BenchError;

/// A kind of transaction.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Kind {
    /// Takes an order of 5 to 15 lines.
    NewOrder,
    /// Books a payment of a customer.
    Payment,
    /// Reads the last order of a customer.
    OrderStatus,
    /// Delivers the oldest order of each district of a warehouse.
    Delivery,
    /// Counts items of recent orders that run low.
    StockLevel,
}

/// Times of a terminal for a kind of transaction, seconds (clause 5.2.5.7).
struct Pace {
    keying: f64,
    think_mean: f64,
}

impl Kind {
    /// All of them.
    pub const ALL: [Kind; 5] =
        [Kind::NewOrder, Kind::Payment, Kind::OrderStatus, Kind::Delivery, Kind::StockLevel];

    /// Its name in options, tables and the workload's file.
    pub fn name(self) -> &'static str {
        match self {
            Kind::NewOrder => "new-order",
            Kind::Payment => "payment",
            Kind::OrderStatus => "order-status",
            Kind::Delivery => "delivery",
            Kind::StockLevel => "stock-level",
        }
    }

    fn pace(self) -> Pace {
        let (keying, think_mean) = match self {
            Kind::NewOrder => (18.0, 12.0),
            Kind::Payment => (3.0, 12.0),
            Kind::OrderStatus => (2.0, 10.0),
            Kind::Delivery => (2.0, 5.0),
            Kind::StockLevel => (2.0, 5.0),
        };
        Pace { keying, think_mean }
    }

    /// How long a terminal of the specification keys in such a transaction, seconds.
    pub(crate) fn keying(self) -> f64 {
        self.pace().keying
    }

    /// How long its user then thinks, seconds: exponential, cut at ten times the mean (clause 5.2.5.4).
    pub(crate) fn thinking(self, random: &mut Random) -> f64 {
        let mean = self.pace().think_mean;
        random.exponential(mean).min(10.0 * mean)
    }
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// Shares of the kinds; they add up to 1.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Mix([f64; 5]);

impl Mix {
    /// The mix of the modelled workload: the specification's deck of 23 cards.
    pub fn of(workload: &Workload) -> Mix {
        let share = |kind: Kind| {
            let found = workload.transactions.iter().find(|transaction| transaction.name == kind.name());
            found.map_or(0.0, |transaction| transaction.share)
        };
        Mix(Kind::ALL.map(share))
    }

    /// A kind's share.
    pub fn share(&self, kind: Kind) -> f64 {
        self.0[kind as usize]
    }

    /// Draws a kind.
    pub(crate) fn draw(&self, random: &mut Random) -> Kind {
        let mut left = random.unit();
        for kind in Kind::ALL {
            left -= self.share(kind);
            if left < 0.0 {
                return kind;
            }
        }
        // Rounding is left: the last kind that is drawn at all.
        Kind::ALL.into_iter().rev().find(|kind| self.share(*kind) > 0.0).unwrap_or(Kind::NewOrder)
    }
}

impl FromStr for Mix {
    type Err = BenchError;

    /// `KIND=WEIGHT,…`; kinds that are not named are not run.
    fn from_str(text: &str) -> Result<Mix, BenchError> {
        let wrong = |fact: String| {
            let names = Kind::ALL.map(Kind::name).join(", ");
            BenchError::Option(format!("{fact}; use KIND=WEIGHT,... with the kinds {names}"))
        };
        let mut weights = [0.0; 5];
        for part in text.split(',') {
            let (name, weight) =
                part.split_once('=').ok_or_else(|| wrong(format!("{part:?} of the mix has no weight")))?;
            let kind = Kind::ALL.into_iter().find(|kind| kind.name() == name.trim());
            let kind = kind.ok_or_else(|| wrong(format!("there is no transaction {:?}", name.trim())))?;
            let weight =
                weight.trim().parse().ok().filter(|weight: &f64| weight.is_finite() && *weight >= 0.0);
            weights[kind as usize] =
                weight.ok_or_else(|| wrong(format!("the weight of {name} is no number from 0")))?;
        }
        let sum: f64 = weights.iter().sum();
        if sum <= 0.0 {
            return Err(wrong("all weights of the mix are 0".to_owned()));
        }
        Ok(Mix(weights.map(|weight| weight / sum)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_mix_is_that_of_the_modelled_load() {
        let workload = Workload::find("order-entry", &Default::default()).expect("it is embedded");
        let names: Vec<&str> = workload.transactions.iter().map(|one| one.name.as_str()).collect();
        assert_eq!(names, Kind::ALL.map(Kind::name), "the model has the same transactions");
        let mix = Mix::of(&workload);
        let mut random = Random::new(3, 3);
        let mut counts = [0; 5];
        for _ in 0..230_000 {
            counts[mix.draw(&mut random) as usize] += 1;
        }
        for (count, cards) in counts.iter().zip([10.0, 10.0, 1.0, 1.0, 1.0]) {
            let drawn = f64::from(*count) / 10_000.0;
            assert!((drawn - cards).abs() < 0.05 * cards.max(1.0), "{counts:?}");
        }
    }

    #[test]
    fn a_mix_is_weights_by_kind() {
        let mix: Mix =
            "new-order=45, payment=43,order-status=4,delivery=4,stock-level=4".parse().expect("a mix");
        assert_eq!(mix.share(Kind::NewOrder), 0.45);
        let only: Mix = "stock-level=1".parse().expect("a mix");
        let mut random = Random::new(1, 1);
        assert!((0..1000).all(|_| only.draw(&mut random) == Kind::StockLevel));
        for (wrong, words) in [
            ("new-order", "has no weight"),
            ("sell=1", "no transaction \"sell\""),
            ("payment=-1", "no number"),
            ("payment=0", "all weights"),
        ] {
            let error = wrong.parse::<Mix>().expect_err("no mix").to_string();
            assert!(error.contains(words), "{error}");
        }
    }

    #[test]
    fn terminals_of_the_specification_have_a_cycle_of_21_seconds() {
        let workload = Workload::find("order-entry", &Default::default()).expect("it is embedded");
        let mix = Mix::of(&workload);
        let mut random = Random::new(5, 5);
        let cycles = 100_000;
        let sum: f64 = (0..cycles)
            .map(|_| {
                let kind = mix.draw(&mut random);
                kind.keying() + kind.thinking(&mut random)
            })
            .sum();
        let mean = sum / f64::from(cycles);
        assert!((20.5..21.5).contains(&mean), "{mean}");
    }
}
