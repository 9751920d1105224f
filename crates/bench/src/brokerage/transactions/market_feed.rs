//! Market-Feed: 20 prices from the market, and the limit orders whose price is reached.

use futures_util::future::{try_join, try_join_all, try_join3};
use tokio_postgres::Error;

use super::super::kind::MARKET_FEED;
use super::super::market::Market;
use super::super::session::Session;
use crate::run::script::{Outcome, Values};

const PRICE: usize = 0;
const REACHED: usize = 1;
const SUBMIT: usize = 2;
const NOTE: usize = 3;

pub(super) const STATEMENTS: [&str; 4] = [
    "update last_trade set price = $2, volume = volume + 100, at = now() where symbol = $1",
    "delete from trade_request r using unnest($1::text[], $2::int[]) as told (symbol, price) where r.symbol = told.symbol \
     and case r.type when 'LS' then told.price >= r.bid_price else told.price <= r.bid_price end \
     returning r.trade, told.price",
    "update trade set status = 'OPEN' where id = any($1)",
    "insert into trade_history (trade, at, status) select trade, now(), 'OPEN' from unnest($1::int8[]) as told (trade)",
];

/// The input.
pub(crate) struct MarketFeed {
    /// By symbol, in order, as they are changed: so that two feeds do not wait for each other in a circle.
    pub(crate) prices: Vec<(String, i32)>,
}

impl MarketFeed {
    pub(super) async fn run(&self, session: &Session, market: &Market) -> Result<Outcome, Error> {
        let (client, statements) = (&session.client, session.of(MARKET_FEED));
        let told = self.prices.iter().map(|(symbol, price)| async move {
            let values: Values = &[symbol, price];
            client.execute(&statements[PRICE], values).await
        });
        let symbols: Vec<&str> = self.prices.iter().map(|(symbol, _)| symbol.as_str()).collect();
        let prices: Vec<i32> = self.prices.iter().map(|(_, price)| *price).collect();
        let reached: Values = &[&symbols, &prices];
        let reached = client.query(&statements[REACHED], reached);
        let (_, _, reached) = try_join3(session.begin(), try_join_all(told), reached).await?;
        let mut reached: Vec<(i64, i32)> = reached.iter().map(|row| (row.get(0), row.get(1))).collect();
        if reached.is_empty() {
            session.commit().await?;
            return Ok(Outcome::COMMITTED);
        }
        reached.sort_unstable();
        let trades: Vec<i64> = reached.iter().map(|(trade, _)| *trade).collect();
        let trades: Values = &[&trades];
        let (submitted, noted) =
            (client.execute(&statements[SUBMIT], trades), client.execute(&statements[NOTE], trades));
        try_join(try_join(submitted, noted), session.commit()).await?;
        market.reached(reached);
        Ok(Outcome::COMMITTED)
    }
}
