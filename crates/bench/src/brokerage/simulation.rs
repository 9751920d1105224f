//! The initial trades of a load unit, one after the other, with everything that each changes.
//!
//! Trades come evenly over the days. Each is of any account and one of its securities; half of them buy. It is the same that the
//! transactions do, so that the conditions hold from the first moment on. For each table all trades are made
//! again, which takes less time than sending the table's rows.

use std::collections::VecDeque;

use tier0_world::Random;

use super::holdings::{Effect, Lot, effect};
use super::layout::{
    BROKERS, EXCHANGES, Layout, PRICES, QUANTITIES, SECURITIES_OF_ACCOUNT, TRADE_TYPES, TRADES_OF_DAY,
    broker_of, charge, commission_rate, customer_number, exchange_of, security_of, tax_rate, tax_rates_of,
    tax_status,
};
use crate::load::lines::between;

/// Shares of market orders, of orders paid in cash, and of those that close the newest holding first.
pub(crate) const MARKET_SHARE: f64 = 0.6;
pub(crate) const CASH_SHARE: f64 = 0.92;
pub(crate) const LIFO_SHARE: f64 = 0.35;

/// An initial trade, which is complete.
pub(crate) struct Trade {
    pub(crate) id: i64,
    /// Its number in the load unit, from 0.
    pub(crate) number: u64,
    pub(crate) account: u64,
    pub(crate) customer: u64,
    pub(crate) security: u64,
    /// The place of its type.
    pub(crate) kind: usize,
    pub(crate) is_cash: bool,
    pub(crate) is_lifo: bool,
    pub(crate) quantity: i32,
    pub(crate) price: i32,
    pub(crate) charge: i64,
    pub(crate) commission: i64,
    pub(crate) tax: i64,
    /// What the account gets, below zero if it pays.
    pub(crate) amount: i64,
    pub(crate) effect: Effect,
}

/// A load unit while trades are made.
pub(crate) struct Simulation {
    random: Random,
    unit: u64,
    trades: u64,
    next: u64,
    securities: u64,
    layout: Layout,
    /// Holdings by account and security, oldest first.
    pub(crate) lots: Vec<VecDeque<Lot>>,
    /// What accounts were paid in cash, by account.
    pub(crate) paid: Vec<i64>,
    /// Trades and commissions by broker.
    pub(crate) brokers: Vec<(i64, i64)>,
}

/// Initial trades of a load unit.
pub(crate) fn trades_of_unit(days: u64) -> u64 {
    days * TRADES_OF_DAY
}

/// What a trade costs beside its price, in cents: charge and commission.
pub(crate) fn fees(tier: u64, kind: usize, security: u64, quantity: i32, price: i32) -> (i64, i64) {
    let rate = commission_rate(tier, kind, exchange_of(security).min(EXCHANGES), quantity);
    (charge(tier, kind) as i64, i64::from(quantity) * i64::from(price) * rate as i64 / 10_000)
}

/// The tax on what was gained, in cents, by a rate in ten-thousandths.
pub(crate) fn tax(status: u64, profit: i64, rate: i64) -> i64 {
    if status == 0 { 0 } else { profit.max(0) * rate / 10_000 }
}

/// What an account gets by a trade. Tax is taken at once where it is withheld.
pub(crate) fn amount(kind: usize, traded: i64, fees: i64, tax: i64, status: u64) -> i64 {
    let sign = if TRADE_TYPES[kind].2 { 1 } else { -1 };
    sign * traded - fees - if status == 1 { tax } else { 0 }
}

/// A type of trade: half buys; limit orders to sell are of two kinds.
pub(crate) fn draw_kind(random: &mut Random) -> usize {
    let (is_market, is_sale) = (random.chance(MARKET_SHARE), random.chance(0.5));
    match (is_market, is_sale) {
        (true, false) => 0,
        (true, true) => 1,
        (false, false) => 2,
        (false, true) => 3 + random.below(2) as usize,
    }
}

impl Simulation {
    /// Before the first trade of a unit, of so many units with so many days of trades.
    pub(crate) fn new(seed: u64, unit: u64, securities: u64, days: u64) -> Simulation {
        let layout = Layout::new();
        let accounts = layout.accounts();
        Simulation {
            random: Random::new(seed, 1 << 40 | unit),
            unit,
            trades: trades_of_unit(days),
            next: 0,
            securities,
            lots: vec![VecDeque::new(); accounts * SECURITIES_OF_ACCOUNT as usize],
            paid: vec![0; accounts],
            brokers: vec![(0, 0); BROKERS as usize],
            layout,
        }
    }

    /// Makes the next trade; none after the last.
    pub(crate) fn trade(&mut self) -> Option<Trade> {
        if self.next == self.trades {
            return None;
        }
        let number = self.next;
        self.next += 1;
        let random = &mut self.random;
        let account_place = random.below(self.layout.accounts() as u64) as usize;
        let (account, of_unit) = self.layout.account(self.unit, account_place);
        let place = random.below(SECURITIES_OF_ACCOUNT);
        let security = security_of(account, place, self.securities);
        let kind = draw_kind(random);
        let (is_cash, is_lifo) = (random.chance(CASH_SHARE), random.chance(LIFO_SHARE));
        let quantity = QUANTITIES[random.below(4) as usize];
        let price = between(random, PRICES.0, PRICES.1) as i32;

        let id = (self.unit * self.trades + number + 1) as i64;
        let (customer, tier) = (customer_number(self.unit, of_unit), u64::from(self.layout.tier(of_unit)));
        let shares = if TRADE_TYPES[kind].2 { -quantity } else { quantity };
        let lots = &mut self.lots[account_place * SECURITIES_OF_ACCOUNT as usize + place as usize];
        let done = match is_lifo {
            true => effect(lots.iter().rev().copied(), shares, price),
            false => effect(lots.iter().copied(), shares, price),
        };
        for (trade, _, after) in &done.changed {
            let lot = lots.iter_mut().find(|lot| lot.trade == *trade).expect("it was just there");
            lot.quantity = *after;
        }
        lots.retain(|lot| lot.quantity != 0);
        if done.opened != 0 {
            lots.push_back(Lot { trade: id, quantity: done.opened, price });
        }
        let (charge, commission) = fees(tier, kind, security, quantity, price);
        let status = tax_status(account);
        let rate: u64 = tax_rates_of(customer).map(tax_rate).iter().sum();
        let tax = tax(status, done.profit, rate as i64);
        let traded = i64::from(quantity) * i64::from(price);
        let amount = amount(kind, traded, charge + commission, tax, status);
        if is_cash {
            self.paid[account_place] += amount;
        }
        let broker = &mut self.brokers[((broker_of(account) - 1) % BROKERS) as usize];
        *broker = (broker.0 + 1, broker.1 + commission);
        Some(Trade {
            id,
            number,
            account,
            customer,
            security,
            kind,
            is_cash,
            is_lifo,
            quantity,
            price,
            charge,
            commission,
            tax,
            amount,
            effect: done,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Facts of the modelled load: holdings are closed by 1 or 2 of a trade, and 1.34 rows of their history are written for a trade.
    #[test]
    fn trades_change_holdings_as_the_facts_have_it() {
        let mut simulation = Simulation::new(1, 0, 685, 20);
        let (mut trades, mut rows) = (0, 0);
        while let Some(trade) = simulation.trade() {
            trades += 1;
            rows += trade.effect.changed.len() + usize::from(trade.effect.opened != 0);
        }
        assert_eq!(trades, 20 * TRADES_OF_DAY);
        let mean = rows as f64 / trades as f64;
        assert!((1.2..1.6).contains(&mean), "{mean} rows of history for a trade");
        assert_eq!(simulation.brokers.iter().map(|(count, _)| count).sum::<i64>() as u64, trades);
    }
}
