//! What users of order entry do.

use tier0_database::sweep::home_of;
use tier0_database::workload::Law;
use tier0_world::Random;
use tokio_postgres::{Client, Error};

use super::draw::{Home, Items, Laws};
use super::kind::{Kind, NAMES};
use super::terminal::{Input, Terminal};
use crate::BenchError;
use crate::address::Address;
use crate::run::mix::Mix;
use crate::run::options::{Isolation, RunOptions};
use crate::run::script::{Outcome, Script};

/// The script.
pub(crate) struct OrderEntry {
    laws: Laws,
    mix: Mix,
    users: u32,
    warehouses: u32,
}

impl OrderEntry {
    /// That of a run on so many warehouses.
    ///
    /// # Errors
    /// The mix has other kinds.
    pub(crate) fn new(options: &RunOptions, warehouses: u32) -> Result<OrderEntry, BenchError> {
        let workload = super::workload()?;
        let items = match options.items.unwrap_or_default() {
            Items::NuRand => None,
            Items::Uniform => Some(Law::Uniform),
        };
        let home = options.home.unwrap_or(Home::Fixed);
        Ok(OrderEntry {
            laws: Laws::new(&workload, items, home, warehouses),
            mix: match &options.mix {
                Some(weights) => Mix::of(weights, &NAMES)?,
                None => Mix::modelled(&workload, &NAMES),
            },
            users: options.users,
            warehouses,
        })
    }
}

impl Script for OrderEntry {
    type Session = Terminal;
    /// The home warehouse, 0 for the first.
    type User = u64;
    type Input = Input;

    fn names(&self) -> Vec<&'static str> {
        NAMES.to_vec()
    }

    fn headline(&self) -> Option<usize> {
        Some(Kind::NewOrder as usize)
    }

    fn mix(&self) -> Option<String> {
        Some(self.mix.words())
    }

    fn user(&self, number: u64) -> u64 {
        home_of(number, u64::from(self.users), u64::from(self.warehouses))
    }

    fn next(&self, home: &mut u64, random: &mut Random) -> Option<(usize, Input)> {
        let kind = self.mix.draw(random);
        Some((kind, Input::draw(Kind::ALL[kind], &self.laws, random, *home)))
    }

    fn keying(&self, kind: usize) -> f64 {
        Kind::ALL[kind].keying()
    }

    fn thinking(&self, kind: usize, random: &mut Random) -> f64 {
        Kind::ALL[kind].thinking(random)
    }

    async fn open(&self, address: &Address, isolation: Isolation) -> Result<Terminal, BenchError> {
        Terminal::open(address, isolation).await
    }

    fn client<'a>(&self, session: &'a Terminal) -> &'a Client {
        &session.client
    }

    async fn run(&self, session: &Terminal, input: &Input) -> Result<Outcome, Error> {
        session.run(input).await
    }
}
