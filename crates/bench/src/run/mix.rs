//! Shares of the kinds of transactions of a load.

use std::str::FromStr;

use tier0_database::workload::Workload;
use tier0_world::Random;

use crate::BenchError;

/// Weights by name, as an option gives them; not yet those of a load.
#[derive(Clone, Debug, PartialEq)]
pub struct Weights(Vec<(String, f64)>);

impl FromStr for Weights {
    type Err = BenchError;

    /// `KIND=WEIGHT,…`.
    fn from_str(text: &str) -> Result<Weights, BenchError> {
        let wrong = |fact: String| BenchError::Option(format!("{fact}; use KIND=WEIGHT,..."));
        let part = |part: &str| {
            let (name, weight) =
                part.split_once('=').ok_or_else(|| wrong(format!("{part:?} of the mix has no weight")))?;
            let weight =
                weight.trim().parse().ok().filter(|weight: &f64| weight.is_finite() && *weight >= 0.0);
            let weight = weight.ok_or_else(|| wrong(format!("the weight of {name} is no number from 0")))?;
            Ok((name.trim().to_owned(), weight))
        };
        let weights: Vec<(String, f64)> = text.split(',').map(part).collect::<Result<_, BenchError>>()?;
        match weights.iter().map(|(_, weight)| weight).sum::<f64>() > 0.0 {
            true => Ok(Weights(weights)),
            false => Err(wrong("all weights of the mix are 0".to_owned())),
        }
    }
}

/// Shares of the kinds of a load, by their places; they add up to 1.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Mix {
    names: &'static [&'static str],
    shares: Vec<f64>,
}

impl Mix {
    /// Weights of kinds by name; kinds that are not named are not run.
    ///
    /// # Errors
    /// There is no such kind.
    pub(crate) fn of(weights: &Weights, names: &'static [&'static str]) -> Result<Mix, BenchError> {
        let sum: f64 = weights.0.iter().map(|(_, weight)| weight).sum();
        let mut shares = vec![0.0; names.len()];
        for (name, weight) in &weights.0 {
            let place = names.iter().position(|known| known == name).ok_or_else(|| {
                BenchError::Option(format!(
                    "there is no transaction {name:?} to choose in --mix; use KIND=WEIGHT,... with the kinds {}",
                    names.join(", ")
                ))
            })?;
            shares[place] = weight / sum;
        }
        Ok(Mix { names, shares })
    }

    /// The shares of a modelled workload, among these kinds alone.
    pub(crate) fn modelled(workload: &Workload, names: &'static [&'static str]) -> Mix {
        let share = |name: &&'static str| {
            let found = workload.transactions.iter().find(|transaction| transaction.name == *name);
            found.map_or(0.0, |transaction| transaction.share)
        };
        let shares: Vec<f64> = names.iter().map(share).collect();
        let sum: f64 = shares.iter().sum();
        Mix { names, shares: shares.into_iter().map(|share| share / sum).collect() }
    }

    /// Draws the place of a kind.
    pub(crate) fn draw(&self, random: &mut Random) -> usize {
        let mut left = random.unit();
        for (place, share) in self.shares.iter().enumerate() {
            left -= share;
            if left < 0.0 {
                return place;
            }
        }
        // Rounding is left: the last kind that is drawn at all.
        self.shares.iter().rposition(|share| *share > 0.0).unwrap_or(0)
    }

    /// Shares in percent, as the option takes them.
    pub(crate) fn words(&self) -> String {
        let of = |(name, share): (&&str, &f64)| format!("{name}={:.2}", share * 100.0);
        self.names.iter().zip(&self.shares).map(of).collect::<Vec<_>>().join(",")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::order_entry::kind::NAMES;

    #[test]
    fn the_mix_is_that_of_the_modelled_load() {
        let workload = crate::order_entry::workload().expect("it is embedded");
        let names: Vec<&str> = workload.transactions.iter().map(|one| one.name.as_str()).collect();
        assert_eq!(names, NAMES, "the model has the same transactions");
        let mix = Mix::modelled(&workload, &NAMES);
        let mut random = Random::new(3, 3);
        let mut counts = [0; 5];
        for _ in 0..230_000 {
            counts[mix.draw(&mut random)] += 1;
        }
        for (count, cards) in counts.iter().zip([10.0, 10.0, 1.0, 1.0, 1.0]) {
            let drawn = f64::from(*count) / 10_000.0;
            assert!((drawn - cards).abs() < 0.05 * cards.max(1.0), "{counts:?}");
        }
    }

    #[test]
    fn a_mix_is_weights_by_kind() {
        let parse = |text: &str| text.parse::<Weights>().and_then(|weights| Mix::of(&weights, &NAMES));
        let mix = parse("new-order=45, payment=43,order-status=4,delivery=4,stock-level=4").expect("a mix");
        assert_eq!(
            mix.words(),
            "new-order=45.00,payment=43.00,order-status=4.00,delivery=4.00,stock-level=4.00"
        );
        let only = parse("stock-level=1").expect("a mix");
        let mut random = Random::new(1, 1);
        assert!((0..1000).all(|_| only.draw(&mut random) == 4));
        for (wrong, words) in [
            ("new-order", "has no weight"),
            ("sell=1", "no transaction \"sell\""),
            ("payment=-1", "no number"),
            ("payment=0", "all weights"),
        ] {
            let error = parse(wrong).expect_err("no mix").to_string();
            assert!(error.contains(words), "{error}");
        }
    }
}
