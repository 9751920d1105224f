//! What users and the market do. A user first sends what the market has to send, if anything: so results and prices follow orders
//! at the rate of the orders.

use tier0_world::Random;
use tokio_postgres::{Client, Error};

use super::draw::Laws;
use super::kind::{BEGUN, MARKET_FEED, NAMES, TRADE_RESULT, begun};
use super::market::{Market, Sent};
use super::session::Session;
use super::transactions::{Input, MarketFeed, TradeResult};
use crate::BenchError;
use crate::address::Address;
use crate::run::mix::Mix;
use crate::run::options::{Isolation, RunOptions};
use crate::run::script::{Outcome, Script};

/// The script.
pub(crate) struct Brokerage {
    laws: Laws,
    mix: Mix,
    market: Market,
}

impl Brokerage {
    /// That of a run on so many load units with so many days of initial trades.
    ///
    /// # Errors
    /// The mix has other kinds.
    pub(crate) fn new(options: &RunOptions, units: u64, days: u64) -> Result<Brokerage, BenchError> {
        let workload = super::workload()?;
        Ok(Brokerage {
            laws: Laws::new(&workload, units, days),
            mix: match &options.mix {
                Some(weights) => Mix::of(weights, &BEGUN)?,
                None => Mix::modelled(&workload, &BEGUN),
            },
            market: Market::new(),
        })
    }
}

impl Script for Brokerage {
    type Session = Session;
    type User = ();
    type Input = Input;

    fn names(&self) -> Vec<&'static str> {
        NAMES.to_vec()
    }

    fn headline(&self) -> Option<usize> {
        Some(TRADE_RESULT)
    }

    fn mix(&self) -> Option<String> {
        Some(self.mix.words())
    }

    fn user(&self, _number: u64) {}

    fn next(&self, _user: &mut (), random: &mut Random) -> Option<(usize, Input)> {
        Some(match self.market.next(&self.laws, random) {
            Some(Sent::Result(trade, price)) => {
                (TRADE_RESULT, Input::TradeResult(TradeResult { trade, price }))
            }
            Some(Sent::Prices(prices)) => (MARKET_FEED, Input::MarketFeed(MarketFeed { prices })),
            None => {
                let kind = begun(self.mix.draw(random));
                (kind, Input::draw(kind, &self.laws, random))
            }
        })
    }

    async fn open(&self, address: &Address, isolation: Isolation) -> Result<Session, BenchError> {
        Session::open(address, isolation).await
    }

    fn client<'a>(&self, session: &'a Session) -> &'a Client {
        &session.client
    }

    async fn run(&self, session: &Session, input: &Input) -> Result<Outcome, Error> {
        input.run(session, &self.market).await
    }
}
