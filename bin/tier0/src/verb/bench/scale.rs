//! The options that say which load it is and how large, shared by `bench prepare` and `bench scene`.

use clap::Args;
use tier0_bench::load::{Load, Scale};

use crate::failure::Failure;

/// Which load, and how large.
#[derive(Args, Debug)]
pub(super) struct Size {
    /// The load: order-entry
    #[arg(long, value_name = "LOAD", default_value = "order-entry")]
    load: Load,
    /// Number of warehouses, of order-entry
    #[arg(short, long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    warehouses: Option<u32>,
}

impl Size {
    /// Whether it says how large.
    pub(super) fn is_given(&self) -> bool {
        self.warehouses.is_some()
    }

    /// The load and its size; a default of the load where `small` allows that.
    pub(super) fn scale(&self, small: bool) -> Result<Scale, Failure> {
        let needed = |option: &str| {
            Failure::Input(format!("how large the {} database is to be is missing; add {option}", self.load))
        };
        match self.load {
            Load::OrderEntry => {
                let warehouses = self.warehouses.or(small.then_some(2));
                warehouses.map(Scale::Warehouses).ok_or_else(|| needed("--warehouses N"))
            }
        }
    }
}
