//! The options that say which load it is and how large, shared by `bench prepare` and `bench scene`.

use clap::Args;
use tier0_bench::load::{Load, Scale};

use crate::failure::Failure;

/// Days of trades that a brokerage has at first, with which 1,000 customers are about 1 GB.
const DAYS: u32 = 15;

/// Which load, and how large.
#[derive(Args, Debug)]
pub(super) struct Size {
    /// The load: order-entry (in the form of TPC-C), brokerage (TPC-E) or decision-support (TPC-H)
    #[arg(long, value_name = "LOAD", default_value = "order-entry")]
    load: Load,
    /// Number of warehouses, of order-entry
    #[arg(short, long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    warehouses: Option<u32>,
    /// Number of customers, of brokerage: a multiple of 1000, about 1 GB each thousand with 15 days of trades
    #[arg(long, value_name = "N")]
    customers: Option<u32>,
    /// Days of trades that are there at first, of brokerage; the specification has 300 [default: 15]
    #[arg(long, value_name = "N")]
    days: Option<u32>,
    /// Scale factor, of decision-support: 1 is about 1.7 GB with indexes, 0.01 the least
    #[arg(long, value_name = "FACTOR")]
    scale_factor: Option<f64>,
}

impl Size {
    /// Whether it says how large.
    pub(super) fn is_given(&self) -> bool {
        self.warehouses.is_some() || self.customers.is_some() || self.scale_factor.is_some()
    }

    /// The load and its size; a default of the load where `small` allows that.
    pub(super) fn scale(&self, small: bool) -> Result<Scale, Failure> {
        let needed = |option: &str| {
            Failure::Input(format!("how large the {} database is to be is missing; add {option}", self.load))
        };
        let given = [
            ("--warehouses", self.warehouses.is_some(), Load::OrderEntry),
            ("--customers", self.customers.is_some(), Load::Brokerage),
            ("--days", self.days.is_some(), Load::Brokerage),
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
            Load::Brokerage => {
                let customers = self.customers.or(small.then_some(1000));
                let customers = customers.ok_or_else(|| needed("--customers N"))?;
                Ok(Scale::Customers { customers, days: self.days.unwrap_or(DAYS) })
            }
            Load::DecisionSupport => {
                let factor = self.scale_factor.or(small.then_some(0.1));
                factor.map(Scale::Factor).ok_or_else(|| needed("--scale-factor FACTOR"))
            }
        }
    }
}
