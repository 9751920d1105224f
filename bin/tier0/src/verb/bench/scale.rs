//! The options that say which load it is and how large, shared by `bench prepare` and `bench scene`.

use clap::Args;
use tier0_bench::load::{Load, Scale};

use crate::failure::Failure;

/// Which load, and how large.
#[derive(Args, Debug)]
pub(super) struct Size {
    /// The load: order-entry (in the form of TPC-C) or decision-support (TPC-H)
    #[arg(long, value_name = "LOAD", default_value = "order-entry")]
    load: Load,
    /// Number of warehouses, of order-entry
    #[arg(short, long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    warehouses: Option<u32>,
    /// Scale factor, of decision-support: 1 is about 1.7 GB with indexes, 0.01 the least
    #[arg(long, value_name = "FACTOR")]
    scale_factor: Option<f64>,
}

impl Size {
    /// Whether it says how large.
    pub(super) fn is_given(&self) -> bool {
        self.warehouses.is_some() || self.scale_factor.is_some()
    }

    /// The load and its size; a default of the load where `small` allows that.
    pub(super) fn scale(&self, small: bool) -> Result<Scale, Failure> {
        let needed = |option: &str| {
            Failure::Input(format!("how large the {} database is to be is missing; add {option}", self.load))
        };
        let given = [
            ("--warehouses", self.warehouses.is_some(), Load::OrderEntry),
            ("--scale-factor", self.scale_factor.is_some(), Load::DecisionSupport),
        ];
        if let Some((option, _, load)) =
            given.into_iter().find(|(_, is_given, load)| *is_given && *load != self.load)
        {
            return Err(Failure::Input(format!(
                "{option} is a size of {load}, and the load is {}; add --load {load}, or leave out {option}",
                self.load
            )));
        }
        match self.load {
            Load::OrderEntry => {
                let warehouses = self.warehouses.or(small.then_some(2));
                warehouses.map(Scale::Warehouses).ok_or_else(|| needed("--warehouses N"))
            }
            Load::DecisionSupport => {
                let factor = self.scale_factor.or(small.then_some(0.1));
                factor.map(Scale::Factor).ok_or_else(|| needed("--scale-factor FACTOR"))
            }
        }
    }
}
