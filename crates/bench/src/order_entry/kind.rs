//! The five kinds of transactions.

use std::fmt;

use tier0_world::Random;

/// A kind of transaction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
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

/// Their names in options, tables and the workload's file, by place.
pub(crate) const NAMES: [&str; 5] = ["new-order", "payment", "order-status", "delivery", "stock-level"];

/// Times of a terminal for a kind of transaction, seconds (clause 5.2.5.7).
struct Pace {
    keying: f64,
    think_mean: f64,
}

impl Kind {
    /// All of them.
    pub(crate) const ALL: [Kind; 5] =
        [Kind::NewOrder, Kind::Payment, Kind::OrderStatus, Kind::Delivery, Kind::StockLevel];

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
        f.pad(NAMES[*self as usize])
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::run::mix::Mix;

    #[test]
    fn terminals_of_the_specification_have_a_cycle_of_21_seconds() {
        let mix = Mix::modelled(&crate::order_entry::workload().expect("it is embedded"), &NAMES);
        let mut random = Random::new(5, 5);
        let cycles = 100_000;
        let sum: f64 = (0..cycles)
            .map(|_| {
                let kind = Kind::ALL[mix.draw(&mut random)];
                kind.keying() + kind.thinking(&mut random)
            })
            .sum();
        let mean = sum / f64::from(cycles);
        assert!((20.5..21.5).contains(&mean), "{mean}");
    }
}
