//! How large a database of a load is.

use std::fmt;

use tier0_units::counted;

use crate::BenchError;

/// How large a database is, in the unit of its load.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Scale {
    /// Order entry: warehouses, at least one; about 110 MB each.
    Warehouses(u32),
    /// Decision support: the scale factor, from 0.01; 1 is about 1.7 GB with indexes.
    Factor(f64),
}

impl Scale {
    /// The number that the database records.
    pub(crate) fn units(&self) -> f64 {
        match self {
            Scale::Warehouses(count) => f64::from(*count),
            Scale::Factor(factor) => *factor,
        }
    }

    /// What a database recorded; none if no load has that.
    pub(crate) fn recorded(load: super::Load, units: f64, _days: Option<i32>) -> Option<Scale> {
        let whole =
            (units.fract() == 0.0 && units >= 1.0 && units <= f64::from(u32::MAX)).then_some(units as u32);
        match load {
            super::Load::OrderEntry => whole.map(Scale::Warehouses),
            super::Load::DecisionSupport => Some(Scale::Factor(units)),
        }
    }

    /// Days of initial trades, of loads that have trades.
    pub(crate) fn days(&self) -> Option<i32> {
        match self {
            Scale::Warehouses(_) | Scale::Factor(_) => None,
        }
    }

    /// # Errors
    /// It is none.
    pub(crate) fn check(&self) -> Result<(), BenchError> {
        match self {
            Scale::Warehouses(0) => Err(BenchError::Option("at least one warehouse is needed".to_owned())),
            // The generator has 32-bit keys of parts.
            Scale::Factor(factor) if !(0.01..=1000.0).contains(factor) => Err(BenchError::Option(format!(
                "a scale factor is a number from 0.01 to 1000, not {factor}; correct --scale-factor"
            ))),
            Scale::Warehouses(_) | Scale::Factor(_) => Ok(()),
        }
    }

    /// Whether a database of this scale can be made one of another: pieces are only added.
    pub(crate) fn grows_to(&self, wanted: &Scale) -> bool {
        match (self, wanted) {
            (Scale::Warehouses(has), Scale::Warehouses(wanted)) => has <= wanted,
            (has, wanted) => has == wanted,
        }
    }

    /// The option of `tier0 bench prepare` that asks for it.
    pub(crate) fn option(&self) -> String {
        match self {
            Scale::Warehouses(count) => format!("--warehouses {count}"),
            Scale::Factor(factor) => format!("--scale-factor {factor}"),
        }
    }
}

impl fmt::Display for Scale {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Scale::Warehouses(count) => f.write_str(&counted(u64::from(*count), "warehouse")),
            Scale::Factor(factor) => write!(f, "scale factor {factor}"),
        }
    }
}
