//! Trade-Order: a customer, or in a tenth of all cases somebody with a permission, orders to buy or sell a security. Limit orders
//! (40 %) wait for their price. One order in a hundred is rolled back at its end.

use futures_util::future::{Either, ready, try_join, try_join3, try_join5};
use tier0_world::Random;
use tokio_postgres::{Error, Row};

use super::super::draw::{Account, Laws};
use super::super::holdings::{Lot, effect};
use super::super::kind::TRADE_ORDER;
use super::super::layout::{PRICES, QUANTITIES, TRADE_TYPES, company_name, company_of, symbol};
use super::super::market::Market;
use super::super::rows::executor;
use super::super::session::Session;
use super::super::simulation::{CASH_SHARE, LIFO_SHARE, draw_kind};
use crate::load::lines::between;
use crate::run::script::{Outcome, Values};

const OWNER: usize = 0;
const PERMISSION: usize = 1;
const BY_COMPANY: usize = 2;
const BY_SYMBOL: usize = 3;
const LAST: usize = 4;
const SUMMARY: usize = 5;
const FEES: usize = 6;
const HOLDINGS: usize = 7;
const TAXES: usize = 8;
const WORTH: usize = 9;
const PLACE: usize = 10;
const PLACE_LIMIT: usize = 11;

pub(super) const STATEMENTS: [&str; 12] = [
    "select a.name, a.tax_status, a.balance, c.tier, c.tax_id, c.first_name, c.last_name, b.id, b.name from account a \
     join customer c on c.id = a.customer join broker b on b.id = a.broker where a.id = $1",
    "select rights, tax_id, first_name, last_name from account_permission where account = $1",
    "select s.exchange, s.name, c.name from company c join security s on s.company = c.id and s.issue = $2 where c.name = $1",
    "select s.exchange, s.name, c.name from security s join company c on c.id = s.company where s.symbol = $1",
    "select price from last_trade where symbol = $1",
    "select quantity from holding_summary where account = $1 and symbol = $2",
    "select sort.is_sale, sort.is_market, c.amount, r.rate from trade_type sort \
     join charge c on c.trade_type = sort.id and c.tier = $2 join commission_rate r on r.tier = $2 \
     and r.trade_type = sort.id and r.exchange = $3 and r.from_quantity <= $4 and r.to_quantity >= $4 where sort.id = $1",
    "select trade, quantity, price from holding where account = $1 and symbol = $2 order by at",
    "select sum(r.rate)::int8 from customer_tax_rate c join tax_rate r on r.id = c.tax_rate where c.customer = $1",
    "select coalesce(sum(h.quantity::int8 * l.price), 0)::int8 from holding_summary h \
     join last_trade l on l.symbol = h.symbol where h.account = $1",
    "with placed as (insert into trade (id, at, account, status, type, is_cash, is_lifo, symbol, quantity, bid_price, \
     charge, commission, tax, executor) values (nextval('trade_number'), now(), $1, 'OPEN', $2, $3, $4, $5, $6, $7, $8, $9, \
     0, $10) returning id), noted as (insert into trade_history (trade, at, status) select id, now(), 'OPEN' from placed) \
     select id from placed",
    "with placed as (insert into trade (id, at, account, status, type, is_cash, is_lifo, symbol, quantity, bid_price, \
     charge, commission, tax, executor) values (nextval('trade_number'), now(), $1, 'WAIT', $2, $3, $4, $5, $6, $7, $8, $9, \
     0, $10) returning id), noted as (insert into trade_history (trade, at, status) select id, now(), 'WAIT' from placed), \
     requested as (insert into trade_request (trade, type, symbol, quantity, bid_price, broker) \
     select id, $2, $5, $6, $7, $11 from placed) select id from placed",
];

/// The input.
pub(crate) struct TradeOrder {
    account: Account,
    security: u64,
    kind: usize,
    quantity: i32,
    /// The price of a limit order, in cents.
    limit: i32,
    by_company: bool,
    by_owner: bool,
    is_cash: bool,
    is_lifo: bool,
    is_rolled_back: bool,
}

impl TradeOrder {
    pub(super) fn draw(laws: &Laws, random: &mut Random) -> TradeOrder {
        let account = laws.account(random);
        TradeOrder {
            account,
            security: laws.security_of(random, account),
            kind: draw_kind(random),
            quantity: QUANTITIES[random.below(4) as usize],
            limit: between(random, PRICES.0, PRICES.1) as i32,
            by_company: random.chance(0.4),
            by_owner: random.chance(0.9),
            is_cash: random.chance(CASH_SHARE),
            is_lifo: random.chance(LIFO_SHARE),
            is_rolled_back: random.below(100) == 0,
        }
    }

    pub(super) async fn run(&self, session: &Session, market: &Market) -> Result<Outcome, Error> {
        let (client, statements) = (&session.client, session.of(TRADE_ORDER));
        let symbol = symbol(self.security);
        let (company, issue) = company_of(self.security);
        let name = company_name(company);
        let (account, of_symbol): (Values, Values) =
            (&[&self.account.number], &[&self.account.number, &symbol]);
        let (by, named): (usize, Values) = match self.by_company {
            true => (BY_COMPANY, &[&name, &issue]),
            false => (BY_SYMBOL, &[&symbol]),
        };
        let permissions = match self.by_owner {
            true => Either::Left(ready(Ok(Vec::new()))),
            false => Either::Right(client.query(&statements[PERMISSION], account)),
        };
        let last: Values = &[&symbol];
        let first = try_join5(
            session.begin(),
            client.query_one(&statements[OWNER], account),
            permissions,
            client.query_one(&statements[by], named),
            client.query_one(&statements[LAST], last),
        );
        let summary = client.query_opt(&statements[SUMMARY], of_symbol);
        let ((_, owner, permissions, security, last), summary) = try_join(first, summary).await?;

        let (code, _, is_sale, is_market) = TRADE_TYPES[self.kind];
        let price = if is_market { last.get(0) } else { self.limit };
        let (tier, exchange): (i16, i16) = (owner.get(3), security.get(0));
        let held: i32 = summary.map_or(0, |row| row.get(0));
        let shares = if is_sale { -self.quantity } else { self.quantity };
        let fees: Values = &[&code, &tier, &exchange, &self.quantity];
        // What the order will gain is estimated where it closes holdings; what margin there is, where it is not paid in cash.
        let holdings = match held.signum() == -shares.signum() {
            true => Either::Left(client.query(&statements[HOLDINGS], of_symbol)),
            false => Either::Right(ready(Ok(Vec::new()))),
        };
        let worth = match self.is_cash {
            true => Either::Left(ready(Ok(Vec::new()))),
            false => Either::Right(client.query(&statements[WORTH], account)),
        };
        let (fees, holdings, _) =
            try_join3(client.query_one(&statements[FEES], fees), holdings, worth).await?;
        if estimate(&holdings, shares, price, self.is_lifo) > 0 && owner.get::<_, i16>(1) > 0 {
            client.query_one(&statements[TAXES], &[&self.account.customer]).await?;
        }
        let charge: i32 = fees.get(2);
        let rate = i64::from(fees.get::<_, i32>(3));
        let commission = (i64::from(self.quantity) * i64::from(price) * rate / 10_000) as i32;
        let executor = match permissions.last() {
            Some(row) => format!("{} {}", row.get::<_, &str>(2), row.get::<_, &str>(3)),
            None => executor(self.account.customer as u64),
        };
        let broker: i64 = owner.get(7);
        let placed: Values = &[
            &self.account.number,
            &code,
            &self.is_cash,
            &self.is_lifo,
            &symbol,
            &self.quantity,
            &price,
            &charge,
            &commission,
            &executor,
            &broker,
        ];
        let placed = match is_market {
            true => client.query_one(&statements[PLACE], &placed[..10]),
            false => client.query_one(&statements[PLACE_LIMIT], placed),
        };
        if self.is_rolled_back {
            try_join(placed, session.roll_back()).await?;
            return Ok(Outcome::RolledBack);
        }
        let (placed, ()) = try_join(placed, session.commit()).await?;
        market.placed(placed.get(0), self.security, price, is_market);
        Ok(Outcome::COMMITTED)
    }
}

/// What a trade would gain by closing holdings, which are in the order of time.
fn estimate(holdings: &[Row], shares: i32, price: i32, is_lifo: bool) -> i64 {
    let mut lots: Vec<Lot> = holdings.iter().map(lot).collect();
    if is_lifo {
        lots.reverse();
    }
    effect(lots, shares, price).profit
}

/// A holding: its trade, quantity and price.
pub(super) fn lot(row: &Row) -> Lot {
    Lot { trade: row.get(0), quantity: row.get(1), price: row.get(2) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn orders_are_as_the_facts_have_them() {
        let laws = Laws::new(&super::super::super::workload().expect("it is embedded"), 2, 1);
        let mut random = Random::new(1, 1);
        let orders: Vec<TradeOrder> = (0..50_000).map(|_| TradeOrder::draw(&laws, &mut random)).collect();
        let share = |is: &dyn Fn(&TradeOrder) -> bool| {
            orders.iter().filter(|order| is(order)).count() as f64 / orders.len() as f64
        };
        for (what, share, expected) in [
            ("are limit orders", share(&|order| !TRADE_TYPES[order.kind].3), 0.4),
            ("sell", share(&|order| TRADE_TYPES[order.kind].2), 0.5),
            ("name the company", share(&|order| order.by_company), 0.4),
            ("are not in cash", share(&|order| !order.is_cash), 0.08),
            ("close the newest first", share(&|order| order.is_lifo), 0.35),
            ("are not by the owner", share(&|order| !order.by_owner), 0.1),
            ("are rolled back", share(&|order| order.is_rolled_back), 0.01),
        ] {
            assert!((share - expected).abs() < 0.01, "{share} {what}");
        }
    }
}
