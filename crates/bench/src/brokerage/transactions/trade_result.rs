//! Trade-Result: an order is carried out. It changes holdings, and the account pays or is paid.
//!
//! Results of one account run one after the other, by a lock on its row; the broker, whom many accounts share, is changed in the
//! last round trip.

use futures_util::future::{try_join, try_join_all, try_join3, try_join5};
use tokio_postgres::{Error, Row};

use super::super::holdings::{Effect, effect};
use super::super::kind::TRADE_RESULT;
use super::super::layout::TRADE_TYPES;
use super::super::rows::{CASH, MARGIN, cash_name};
use super::super::session::Session;
use super::super::simulation::{amount, tax};
use super::trade_order::lot;
use crate::run::script::{Outcome, Values};

const TRADE: usize = 0;
const STEPS: usize = 1;
const ACCOUNT: usize = 2;
const HOLDINGS: usize = 3;
const SUMMARY: usize = 4;
const RATES: usize = 5;
const TAXES: usize = 6;
const CHANGE_HOLDING: usize = 7;
const END_HOLDING: usize = 8;
const OPEN_HOLDING: usize = 9;
const NOTE_HOLDINGS: usize = 10;
const CHANGE_SUMMARY: usize = 11;
const END_SUMMARY: usize = 12;
const COMPLETE: usize = 13;
const NOTE: usize = 14;
const SETTLE: usize = 15;
const PAY: usize = 16;
const NOTE_CASH: usize = 17;
const CREDIT_BROKER: usize = 18;

pub(super) const STATEMENTS: [&str; 19] = [
    "select t.account, t.type, t.quantity, t.symbol, t.charge, t.is_cash, t.is_lifo, sort.is_sale from trade t \
     join trade_type sort on sort.id = t.type where t.id = $1 and t.status = 'OPEN' for update of t",
    "select status from trade_history where trade = $1",
    "select customer, broker, tax_status from account where id = $1 for no key update",
    "select trade, quantity, price from holding where account = $1 and symbol = $2 order by at, trade",
    "select quantity from holding_summary where account = $1 and symbol = $2",
    "select r.rate, s.name from customer c, security s join commission_rate r on r.trade_type = $3 \
     and r.exchange = s.exchange and r.from_quantity <= $4 and r.to_quantity >= $4 \
     where c.id = $1 and s.symbol = $2 and r.tier = c.tier",
    "select sum(r.rate)::int8 from customer_tax_rate c join tax_rate r on r.id = c.tax_rate where c.customer = $1",
    "update holding set quantity = $2 where trade = $1",
    "delete from holding where trade = $1",
    "insert into holding (trade, account, symbol, at, price, quantity) values ($1, $2, $3, now(), $4, $5)",
    "insert into holding_history (holding, trade, before, after) select holding, $1, before, after \
     from unnest($2::int8[], $3::int[], $4::int[]) as told (holding, before, after)",
    "insert into holding_summary (account, symbol, quantity) values ($1, $2, $3) \
     on conflict (account, symbol) do update set quantity = holding_summary.quantity + excluded.quantity",
    "delete from holding_summary where account = $1 and symbol = $2",
    "update trade set status = 'DONE', price = $2, commission = $3, tax = $4 where id = $1",
    "insert into trade_history (trade, at, status) values ($1, now(), 'DONE')",
    "insert into settlement (trade, kind, due, amount) values ($1, $2, current_date + 2, $3)",
    "update account set balance = balance + $2 where id = $1",
    "insert into cash_transaction (trade, at, amount, name) values ($1, now(), $2, $3)",
    "update broker set trades = trades + 1, commission = commission + $2 where id = $1",
];

/// The input.
pub(crate) struct TradeResult {
    pub(crate) trade: i64,
    /// In cents.
    pub(crate) price: i32,
}

/// The order that is carried out.
struct Order {
    account: i64,
    kind: usize,
    quantity: i32,
    symbol: String,
    charge: i32,
    is_cash: bool,
    is_lifo: bool,
    is_sale: bool,
}

/// What it comes to, in cents.
struct Settled {
    commission: i32,
    tax: i32,
    amount: i64,
    broker: i64,
    effect: Effect,
    /// Shares of the account in the security afterwards.
    held: i32,
    shares: i32,
}

impl TradeResult {
    pub(super) async fn run(&self, session: &Session) -> Result<Outcome, Error> {
        let (client, statements) = (&session.client, session.of(TRADE_RESULT));
        let trade: Values = &[&self.trade];
        let (_, found, _) = try_join3(
            session.begin(),
            client.query_opt(&statements[TRADE], trade),
            client.query(&statements[STEPS], trade),
        )
        .await?;
        // It was completed by another run of this program on the same database.
        let Some(order) = found.map(|row| Order::of(&row)) else {
            session.commit().await?;
            return Ok(Outcome::COMMITTED);
        };
        let settled = self.settle(session, &order).await?;
        self.write(session, &order, &settled).await?;
        Ok(Outcome::COMMITTED)
    }

    /// Locks the account, reads what the result depends on, and computes it.
    async fn settle(&self, session: &Session, order: &Order) -> Result<Settled, Error> {
        let (client, statements) = (&session.client, session.of(TRADE_RESULT));
        let (account, of_symbol): (Values, Values) = (&[&order.account], &[&order.account, &order.symbol]);
        // Answered in order: holdings are read once the account is locked.
        let (account, holdings, summary) = try_join3(
            client.query_one(&statements[ACCOUNT], account),
            client.query(&statements[HOLDINGS], of_symbol),
            client.query_opt(&statements[SUMMARY], of_symbol),
        )
        .await?;
        let (customer, broker, status): (i64, i64, i16) = (account.get(0), account.get(1), account.get(2));
        let shares = if order.is_sale { -order.quantity } else { order.quantity };
        let mut lots: Vec<_> = holdings.iter().map(lot).collect();
        if order.is_lifo {
            lots.reverse();
        }
        let effect = effect(lots, shares, self.price);
        let code = TRADE_TYPES[order.kind].0;
        let rates: Values = &[&customer, &order.symbol, &code, &order.quantity];
        let (rates, taxes) = try_join(client.query_one(&statements[RATES], rates), async {
            match status > 0 && effect.profit > 0 {
                true => {
                    client.query_one(&statements[TAXES], &[&customer]).await.map(|row| row.get::<_, i64>(0))
                }
                false => Ok(0),
            }
        })
        .await?;
        let traded = i64::from(order.quantity) * i64::from(self.price);
        let commission = traded * i64::from(rates.get::<_, i32>(0)) / 10_000;
        let tax = tax(status as u64, effect.profit, taxes);
        let fees = i64::from(order.charge) + commission;
        Ok(Settled {
            commission: commission as i32,
            tax: tax as i32,
            amount: amount(order.kind, traded, fees, tax, status as u64),
            broker,
            effect,
            held: summary.map_or(0, |row| row.get::<_, i32>(0)) + shares,
            shares,
        })
    }

    async fn write(&self, session: &Session, order: &Order, settled: &Settled) -> Result<(), Error> {
        let (client, statements) = (&session.client, session.of(TRADE_RESULT));
        let changed = settled.effect.changed.iter().map(|(holding, _, after)| async move {
            match after {
                0 => client.execute(&statements[END_HOLDING], &[holding]).await,
                after => client.execute(&statements[CHANGE_HOLDING], &[holding, after]).await,
            }
        });
        let opened = settled.effect.opened;
        let lot: Values = &[&self.trade, &order.account, &order.symbol, &self.price, &opened];
        let opened_lot = async {
            match opened {
                0 => Ok(0),
                _ => client.execute(&statements[OPEN_HOLDING], lot).await,
            }
        };
        let mut noted = settled.effect.changed.clone();
        if opened != 0 {
            noted.push((self.trade, 0, opened));
        }
        let holdings: Vec<i64> = noted.iter().map(|(holding, ..)| *holding).collect();
        let before: Vec<i32> = noted.iter().map(|(_, before, _)| *before).collect();
        let after: Vec<i32> = noted.iter().map(|(.., after)| *after).collect();
        let noted: Values = &[&self.trade, &holdings, &before, &after];
        let no_more: Values = &[&order.account, &order.symbol];
        let more: Values = &[&order.account, &order.symbol, &settled.shares];
        let summary = match settled.held {
            0 => client.execute(&statements[END_SUMMARY], no_more),
            _ => client.execute(&statements[CHANGE_SUMMARY], more),
        };
        let complete: Values = &[&self.trade, &self.price, &settled.commission, &settled.tax];
        let kind = if order.is_cash { CASH } else { MARGIN };
        let (note, settle): (Values, Values) = (&[&self.trade], &[&self.trade, &kind, &settled.amount]);
        let name = cash_name(TRADE_TYPES[order.kind].1, order.quantity, &order.symbol);
        let (pay, cash): (Values, Values) =
            (&[&order.account, &settled.amount], &[&self.trade, &settled.amount, &name]);
        let paid = async {
            match order.is_cash {
                true => {
                    let pay = client.execute(&statements[PAY], pay);
                    try_join(pay, client.execute(&statements[NOTE_CASH], cash)).await.map(|_| ())
                }
                false => Ok(()),
            }
        };
        let commission = i64::from(settled.commission);
        let credit: Values = &[&settled.broker, &commission];
        let of_holdings = try_join(try_join_all(changed), opened_lot);
        let of_trade = try_join5(
            client.execute(&statements[NOTE_HOLDINGS], noted),
            summary,
            client.execute(&statements[COMPLETE], complete),
            client.execute(&statements[NOTE], note),
            client.execute(&statements[SETTLE], settle),
        );
        let end = try_join3(paid, client.execute(&statements[CREDIT_BROKER], credit), session.commit());
        try_join3(of_holdings, of_trade, end).await?;
        Ok(())
    }
}

impl Order {
    fn of(row: &Row) -> Order {
        let code: &str = row.get(1);
        let kind = TRADE_TYPES.iter().position(|kind| kind.0 == code);
        Order {
            account: row.get(0),
            kind: kind.expect("the table has these types"),
            quantity: row.get(2),
            symbol: row.get(3),
            charge: row.get(4),
            is_cash: row.get(5),
            is_lifo: row.get(6),
            is_sale: row.get(7),
        }
    }
}
