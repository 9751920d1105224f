//! Trade-Lookup: 20 trades with settlement, cash transaction and history, by number, of an account or of a security (30 % each);
//! or which trades changed the holdings that a trade changed (10 %). Reads only.

use futures_util::future::{try_join, try_join4};
use tier0_world::Random;
use tokio_postgres::Error;

use super::super::draw::Laws;
use super::super::kind::TRADE_LOOKUP;
use super::super::session::Session;
use super::trades::{CASH, Chosen, HISTORY, SETTLEMENTS, SHARED};
use crate::run::script::{Outcome, Values};

const FIRST_OF_ACCOUNT: usize = 6;
const HOLDINGS: usize = 7;

pub(super) const STATEMENTS: [&str; 8] = [
    SHARED[0],
    SHARED[1],
    SHARED[2],
    SHARED[3],
    SHARED[4],
    SHARED[5],
    "select id from trade where account = $1 \
     and at >= timestamptz '2020-01-06 00:00:00+00' + make_interval(secs => $2) order by trade.at limit 1",
    "select holding, trade, before, after from holding_history where holding in \
     (select holding from holding_history where trade = $1) limit 20",
];

/// The input.
pub(crate) enum TradeLookup {
    Trades(TradesOf),
    /// Holdings that a trade of an account changed, from a time on.
    Holdings(i64, f64),
}

/// Trades that are looked up.
pub(crate) struct TradesOf(Chosen);

impl TradeLookup {
    pub(super) fn draw(laws: &Laws, random: &mut Random) -> TradeLookup {
        match random.below(10) {
            0..3 => TradeLookup::Trades(TradesOf(Chosen::numbers(laws, random))),
            3..6 => TradeLookup::Trades(TradesOf(Chosen::of_account(laws, random))),
            6..9 => TradeLookup::Trades(TradesOf(Chosen::of_security(laws, random))),
            _ => TradeLookup::Holdings(laws.account(random).number, laws.time_s(random)),
        }
    }

    pub(super) async fn run(&self, session: &Session) -> Result<Outcome, Error> {
        let (client, statements) = (&session.client, session.of(TRADE_LOOKUP));
        match self {
            TradeLookup::Trades(TradesOf(chosen)) => {
                let trades = chosen.read(session, statements).await?;
                let trades: Values = &[&trades];
                try_join4(
                    client.query(&statements[SETTLEMENTS], trades),
                    client.query(&statements[CASH], trades),
                    client.query(&statements[HISTORY], trades),
                    session.commit(),
                )
                .await?;
            }
            TradeLookup::Holdings(account, time_s) => {
                let of_account: Values = &[account, time_s];
                let first = client.query_opt(&statements[FIRST_OF_ACCOUNT], of_account);
                let (_, first) = try_join(session.begin(), first).await?;
                // Accounts with few trades have none that is so new.
                if let Some(trade) = first.map(|row| row.get::<_, i64>(0)) {
                    client.query(&statements[HOLDINGS], &[&trade]).await?;
                }
                session.commit().await?;
            }
        }
        Ok(Outcome::COMMITTED)
    }
}
