//! The market, which answers orders. It is part of the load generator: market orders get their result, limit orders wait until the
//! market reaches their price, and after each ten orders it sends 20 prices.
//!
//! A limit order's price is reached when [`WAITING`] younger ones wait, so that results follow orders after some seconds of any
//! run. Orders that have no result at the end of a run keep their state; later runs do not know them.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Mutex;

use tier0_world::Random;

use super::draw::Laws;
use super::layout::{PRICES, symbol};
use crate::load::lines::between;

/// Orders between two feeds of prices, and prices of a feed.
const ORDERS_OF_FEED: u32 = 10;
const PRICES_OF_FEED: usize = 20;
/// Limit orders that wait.
const WAITING: usize = 40;

/// The market.
pub(crate) struct Market(Mutex<State>);

#[derive(Default)]
struct State {
    /// Orders that are to get their result: trade and price.
    results: VecDeque<(i64, i32)>,
    /// Limit orders that wait: security and price.
    limits: VecDeque<(u64, i32)>,
    /// Market orders since the last feed: security and price.
    traded: Vec<(u64, i32)>,
    orders: u32,
}

/// What the market sends next.
pub(crate) enum Sent {
    /// The result of an order: trade and price.
    Result(i64, i32),
    /// Prices by symbol, each once and in order.
    Prices(Vec<(String, i32)>),
}

impl Market {
    pub(crate) fn new() -> Market {
        Market(Mutex::new(State::default()))
    }

    /// An order was placed, of a security at a price.
    pub(crate) fn placed(&self, trade: i64, security: u64, price: i32, is_market: bool) {
        let mut state = self.state();
        state.orders += 1;
        match is_market {
            true => {
                state.results.push_back((trade, price));
                state.traded.push((security, price));
            }
            false => state.limits.push_back((security, price)),
        }
    }

    /// Limit orders were submitted, because their price was reached.
    pub(crate) fn reached(&self, trades: impl IntoIterator<Item = (i64, i32)>) {
        self.state().results.extend(trades);
    }

    /// What the market sends, if there is anything to send.
    pub(crate) fn next(&self, laws: &Laws, random: &mut Random) -> Option<Sent> {
        let mut state = self.state();
        if state.orders < ORDERS_OF_FEED {
            return state.results.pop_front().map(|(trade, price)| Sent::Result(trade, price));
        }
        state.orders -= ORDERS_OF_FEED;
        let mut prices: BTreeMap<String, i32> = BTreeMap::new();
        for (security, price) in std::mem::take(&mut state.traded) {
            prices.insert(symbol(security), price);
        }
        let reached = state.limits.len().saturating_sub(WAITING);
        for (security, price) in state.limits.drain(..reached) {
            prices.insert(symbol(security), price);
        }
        while prices.len() < PRICES_OF_FEED {
            let price = between(random, PRICES.0, PRICES.1) as i32;
            prices.entry(symbol(laws.security(random))).or_insert(price);
        }
        Some(Sent::Prices(prices.into_iter().collect()))
    }

    fn state(&self) -> std::sync::MutexGuard<'_, State> {
        self.0.lock().expect("no user panics here")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_market_order_has_a_result_and_ten_orders_a_feed() {
        let laws = Laws::new(&super::super::workload().expect("it is embedded"), 1, 1);
        let (market, mut random) = (Market::new(), Random::new(1, 1));
        (0..100).for_each(|trade| market.placed(trade, trade as u64, 2500, trade % 10 < 6));
        let sent: Vec<Sent> = std::iter::from_fn(|| market.next(&laws, &mut random)).collect();
        let results = sent.iter().filter(|sent| matches!(sent, Sent::Result(..))).count();
        assert_eq!((results, sent.len()), (60, 70));
        let prices = sent.iter().find_map(|sent| match sent {
            Sent::Prices(prices) => Some(prices),
            Sent::Result(..) => None,
        });
        assert!(prices.is_some_and(|prices| prices.len() >= PRICES_OF_FEED && prices.is_sorted()));
    }
}
