//! What Trade-Lookup and Trade-Update have in common: which 20 trades, and what belongs to them.

use futures_util::future::try_join;
use tier0_world::Random;
use tokio_postgres::{Error, Statement};

use super::super::draw::Laws;
use super::super::layout::symbol;
use super::super::session::Session;
use crate::run::script::Values;

/// Places of the statements in both.
pub(super) const BY_NUMBER: usize = 0;
pub(super) const OF_ACCOUNT: usize = 1;
pub(super) const OF_SECURITY: usize = 2;
pub(super) const SETTLEMENTS: usize = 3;
pub(super) const CASH: usize = 4;
pub(super) const HISTORY: usize = 5;

/// Those statements.
pub(super) const SHARED: [&str; 6] = [
    "select t.id, t.bid_price, t.executor, t.is_cash, sort.is_market, t.price from trade t \
     join trade_type sort on sort.id = t.type where t.id = any($1)",
    "select id, bid_price, executor, is_cash, price from trade where account = $1 \
     and at >= timestamptz '2020-01-06 00:00:00+00' + make_interval(secs => $2) order by trade.at limit 20",
    "select id, account, executor, is_cash, price, quantity, at::text, type from trade where symbol = $1 \
     and at >= timestamptz '2020-01-06 00:00:00+00' + make_interval(secs => $2) order by trade.at limit 20",
    "select trade, amount, due::text, kind from settlement where trade = any($1)",
    "select trade, amount, at::text, name from cash_transaction where trade = any($1)",
    "select trade, at::text, status from trade_history where trade = any($1)",
];

/// How trades are chosen.
pub(super) enum Chosen {
    /// By number, ascending.
    Numbers(Vec<i64>),
    /// Of an account, from a time on.
    OfAccount(i64, f64),
    /// Of a security, from a time on.
    OfSecurity(String, f64),
}

impl Chosen {
    pub(super) fn numbers(laws: &Laws, random: &mut Random) -> Chosen {
        let mut trades: Vec<i64> = (0..20).map(|_| laws.trade(random)).collect();
        trades.sort_unstable();
        Chosen::Numbers(trades)
    }

    pub(super) fn of_account(laws: &Laws, random: &mut Random) -> Chosen {
        Chosen::OfAccount(laws.account(random).number, laws.time_s(random))
    }

    pub(super) fn of_security(laws: &Laws, random: &mut Random) -> Chosen {
        Chosen::OfSecurity(symbol(laws.security(random)), laws.time_s(random))
    }

    /// Begins the transaction and reads the trades; their numbers, ascending.
    pub(super) async fn read(&self, session: &Session, statements: &[Statement]) -> Result<Vec<i64>, Error> {
        let ask = async |place: usize, values: Values<'_>| {
            let rows = session.client.query(&statements[place], values);
            let (_, rows) = try_join(session.begin(), rows).await?;
            let mut trades: Vec<i64> = rows.iter().map(|row| row.get(0)).collect();
            trades.sort_unstable();
            Ok(trades)
        };
        match self {
            Chosen::Numbers(trades) => ask(BY_NUMBER, &[trades]).await,
            Chosen::OfAccount(account, time_s) => ask(OF_ACCOUNT, &[account, time_s]).await,
            Chosen::OfSecurity(symbol, time_s) => ask(OF_SECURITY, &[symbol, time_s]).await,
        }
    }
}
