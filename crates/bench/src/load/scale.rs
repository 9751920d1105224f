//! How large a database of a load is.

use std::fmt;

use tier0_units::counted;

use crate::BenchError;
use crate::brokerage::layout::CUSTOMERS;

/// How large a database is, in the unit of its load.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Scale {
    /// Order entry: warehouses, at least one; about 110 MB each.
    Warehouses(u32),
    /// Brokerage: customers, in thousands, and days of trades that are there at first. 1,000 customers are about 0.2 GB and 45 MB
    /// for each day.
    Customers {
        /// Customers, a multiple of 1,000.
        customers: u32,
        /// Days, of 57.6 trades of each customer.
        days: u32,
    },
    /// Decision support: the scale factor, from 0.01; 1 is about 1.7 GB with indexes.
    Factor(f64),
}

impl Scale {
    /// The number that the database records.
    pub(crate) fn units(&self) -> f64 {
        match self {
            Scale::Warehouses(count) => f64::from(*count),
            Scale::Customers { customers, .. } => f64::from(*customers),
            Scale::Factor(factor) => *factor,
        }
    }

    /// What a database recorded; none if no load has that.
    pub(crate) fn recorded(load: super::Load, units: f64, days: Option<i32>) -> Option<Scale> {
        let whole =
            (units.fract() == 0.0 && units >= 1.0 && units <= f64::from(u32::MAX)).then_some(units as u32);
        match load {
            super::Load::OrderEntry => whole.map(Scale::Warehouses),
            super::Load::Brokerage => {
                whole.zip(days).map(|(customers, days)| Scale::Customers { customers, days: days as u32 })
            }
            super::Load::DecisionSupport => Some(Scale::Factor(units)),
        }
    }

    /// Days of initial trades, of loads that have trades.
    pub(crate) fn days(&self) -> Option<i32> {
        match self {
            Scale::Customers { days, .. } => Some(*days as i32),
            Scale::Warehouses(_) | Scale::Factor(_) => None,
        }
    }

    /// # Errors
    /// It is none.
    pub(crate) fn check(&self) -> Result<(), BenchError> {
        match self {
            Scale::Warehouses(0) => Err(BenchError::Option("at least one warehouse is needed".to_owned())),
            Scale::Customers { customers, .. } if *customers == 0 || customers % 1000 != 0 => {
                Err(BenchError::Option(format!(
                    "a brokerage has thousands of customers, not {customers}; use a multiple of 1000 in --customers"
                )))
            }
            Scale::Customers { days, .. } if !(1..=300).contains(days) => Err(BenchError::Option(format!(
                "a brokerage has 1 to 300 days of trades at first, not {days}; correct --days"
            ))),
            // The generator has 32-bit keys of parts.
            Scale::Factor(factor) if !(0.01..=1000.0).contains(factor) => Err(BenchError::Option(format!(
                "a scale factor is a number from 0.01 to 1000, not {factor}; correct --scale-factor"
            ))),
            Scale::Warehouses(_) | Scale::Customers { .. } | Scale::Factor(_) => Ok(()),
        }
    }

    /// Whether a database of this scale can be made one of another: pieces are only added.
    pub(crate) fn grows_to(&self, wanted: &Scale) -> bool {
        match (self, wanted) {
            (Scale::Warehouses(has), Scale::Warehouses(wanted)) => has <= wanted,
            (has, wanted) => has == wanted,
        }
    }

    /// Load units of a brokerage.
    pub(crate) fn load_units(&self) -> u64 {
        match self {
            Scale::Customers { customers, .. } => u64::from(*customers) / CUSTOMERS,
            Scale::Warehouses(_) | Scale::Factor(_) => 0,
        }
    }

    /// The option of `tier0 bench prepare` that asks for it.
    pub(crate) fn option(&self) -> String {
        match self {
            Scale::Warehouses(count) => format!("--warehouses {count}"),
            Scale::Customers { customers, days } => format!("--customers {customers} --days {days}"),
            Scale::Factor(factor) => format!("--scale-factor {factor}"),
        }
    }
}

impl fmt::Display for Scale {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Scale::Warehouses(count) => f.write_str(&counted(u64::from(*count), "warehouse")),
            Scale::Customers { customers, days } => {
                let days = counted(u64::from(*days), "day");
                write!(f, "{customers} customers, {days} of trades at first")
            }
            Scale::Factor(factor) => write!(f, "scale factor {factor}"),
        }
    }
}
