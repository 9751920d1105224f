//! What transactions choose, and how. The laws are those of the modelled workload.

use tier0_database::workload::{Drawn, Workload};
use tier0_world::Random;

use super::calendar::weekdays;
use super::layout::*;
use super::simulation::trades_of_unit;

/// Grain of the times that are chosen, seconds, and of the numbers of trades: shifted by 7 bits.
const GRAIN_S: f64 = 65.536;
const TRADES_OF_GRAIN: u64 = 128;

/// The laws of a run.
pub(crate) struct Laws {
    layout: Layout,
    units: u64,
    days: u64,
    customer: Drawn,
    trade: Drawn,
    time: Drawn,
    week: Drawn,
}

/// An account with what follows from its number.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Account {
    pub(crate) number: i64,
    pub(crate) customer: i64,
}

impl Laws {
    /// Those of a workload over so many load units with so many days of initial trades.
    pub(crate) fn new(workload: &Workload, units: u64, days: u64) -> Laws {
        let of = |choice: &str| *workload.choices.get(choice).expect("brokerage has this choice");
        let grains = (days * DAY_S) as f64 / GRAIN_S;
        Laws {
            layout: Layout::new(),
            units,
            days,
            customer: of("customer").over(CUSTOMERS),
            trade: of("trade").over(units * trades_of_unit(days) / TRADES_OF_GRAIN),
            time: of("time").over(grains as u64),
            week: of("week").over(MARKET_DAYS / 5),
        }
    }

    /// A customer, by tiers; any load unit.
    pub(crate) fn customer(&self, random: &mut Random) -> i64 {
        let unit = random.below(self.units);
        customer_number(unit, self.customer.draw(random, 0)) as i64
    }

    /// How many accounts a customer has.
    pub(crate) fn accounts_of(&self, customer: i64) -> u64 {
        self.layout.count((customer as u64 - 1) % CUSTOMERS)
    }

    /// An account. Customers who are called more often have as many more accounts, so that all accounts are called alike.
    pub(crate) fn account(&self, random: &mut Random) -> Account {
        let unit = random.below(self.units);
        let place = random.below(self.layout.accounts() as u64) as usize;
        let (number, own) = self.layout.account(unit, place);
        Account { number: number as i64, customer: customer_number(unit, own) as i64 }
    }

    /// One of the securities of an account.
    pub(crate) fn security_of(&self, random: &mut Random, account: Account) -> u64 {
        security_of(account.number as u64, random.below(SECURITIES_OF_ACCOUNT), self.securities())
    }

    /// Any security.
    pub(crate) fn security(&self, random: &mut Random) -> u64 {
        random.below(self.securities())
    }

    /// An initial trade.
    pub(crate) fn trade(&self, random: &mut Random) -> i64 {
        (self.trade.draw(random, 0) * TRADES_OF_GRAIN + random.below(TRADES_OF_GRAIN) + 1) as i64
    }

    /// A time of the initial trades, seconds after the beginning of their first day.
    pub(crate) fn time_s(&self, random: &mut Random) -> f64 {
        let traded = (self.time.draw(random, 0) as f64 * GRAIN_S) as u64;
        let (day, of_day) = ((traded / DAY_S).min(self.days - 1), traded % DAY_S);
        weekdays(day) as f64 * 86_400.0 + (OPENS_S + of_day) as f64
    }

    /// Days after the first of the daily market: a recent week more often than an old one.
    pub(crate) fn market_day(&self, random: &mut Random) -> i32 {
        let weeks = MARKET_DAYS / 5;
        let week = weeks - 1 - self.week.draw(random, 0);
        weekdays(week * 5 + random.below(5)) as i32
    }

    /// Different brokers.
    pub(crate) fn brokers(&self, random: &mut Random) -> Vec<String> {
        let all = self.units * BROKERS;
        let count = (20 + random.below(21)).min(all);
        let (start, step) = (random.below(all), all / count);
        (0..count).map(|number| broker_name((start + number * step) % all + 1)).collect()
    }

    /// Securities that there are.
    fn securities(&self) -> u64 {
        self.units * SECURITIES
    }

    /// A range of at most 5,000 companies.
    pub(crate) fn companies(&self, random: &mut Random) -> (i64, i64) {
        let all = self.units * COMPANIES;
        let count = all.min(5000);
        let first = 1 + random.below(all - count + 1);
        (first as i64, (first + count - 1) as i64)
    }
}
