//! What is substituted in queries (clause 2.4): each drawn evenly from the values that the specification allows.

use tier0_world::Random;
use tpchgen::distribution::{Distribution, Distributions};

use crate::load::lines::between;

/// Draws values as they stand in SQL.
pub(super) struct Parameters<'a>(pub(super) &'a mut Random);

impl Parameters<'_> {
    /// A number from `low` to `high`.
    pub(super) fn number(&mut self, low: i64, high: i64) -> i64 {
        between(self.0, low, high)
    }

    /// So many different numbers from `low` to `high`.
    pub(super) fn numbers(&mut self, count: usize, low: i64, high: i64) -> Vec<i64> {
        let mut drawn = Vec::with_capacity(count);
        while drawn.len() < count {
            let number = self.number(low, high);
            if !drawn.contains(&number) {
                drawn.push(number);
            }
        }
        drawn
    }

    /// One of some words.
    pub(super) fn one_of<'w>(&mut self, words: &[&'w str]) -> &'w str {
        words[self.0.below(words.len() as u64) as usize]
    }

    /// Two different ones of a distribution of the generator.
    pub(super) fn two_of(&mut self, words: &'static Distribution) -> (&'static str, &'static str) {
        let places = self.numbers(2, 0, words.size() as i64 - 1);
        (words.get_values()[places[0] as usize], words.get_values()[places[1] as usize])
    }

    fn of(&mut self, words: &'static Distribution) -> &'static str {
        self.one_of(words.get_values())
    }

    /// The first day of a month, from one to another. Months count from January 1992.
    pub(super) fn month(&mut self, first: (i64, i64), last: (i64, i64)) -> String {
        let count = |(year, month): (i64, i64)| (year - 1992) * 12 + month - 1;
        let month = self.number(count(first), count(last));
        format!("date '{}-{:02}-01'", 1992 + month / 12, month % 12 + 1)
    }

    /// The first day of a year from 1993 to 1997.
    pub(super) fn year(&mut self) -> String {
        format!("date '{}-01-01'", self.number(1993, 1997))
    }

    pub(super) fn nation(&mut self) -> &'static str {
        self.of(Distributions::static_default().nations())
    }

    pub(super) fn region(&mut self) -> &'static str {
        self.of(Distributions::static_default().regions())
    }

    pub(super) fn segment(&mut self) -> &'static str {
        self.of(Distributions::static_default().market_segments())
    }

    pub(super) fn colour(&mut self) -> &'static str {
        self.of(Distributions::static_default().part_colors())
    }

    pub(super) fn container(&mut self) -> &'static str {
        self.of(Distributions::static_default().part_containers())
    }

    /// A type of three words.
    pub(super) fn part_type(&mut self) -> &'static str {
        self.of(Distributions::static_default().part_types())
    }

    pub(super) fn brand(&mut self) -> String {
        format!("Brand#{}{}", self.number(1, 5), self.number(1, 5))
    }
}
