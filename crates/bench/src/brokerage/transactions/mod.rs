//! The transactions: for each its input, its statements, and what it does with them.
//!
//! Statements that do not need each other's results are sent together and answered in order.

mod broker_volume;
mod customer_position;
mod market_feed;
mod market_watch;
mod security_detail;
mod trade_lookup;
mod trade_order;
mod trade_result;
mod trade_status;
mod trade_update;
mod trades;

use tier0_world::Random;
use tokio_postgres::Error;

use self::broker_volume::BrokerVolume;
use self::customer_position::CustomerPosition;
pub(super) use self::market_feed::MarketFeed;
use self::market_watch::MarketWatch;
use self::security_detail::SecurityDetail;
use self::trade_lookup::TradeLookup;
use self::trade_order::TradeOrder;
pub(super) use self::trade_result::TradeResult;
use self::trade_status::TradeStatus;
use self::trade_update::TradeUpdate;
use super::draw::Laws;
use super::kind;
use super::market::Market;
use super::session::Session;
use crate::run::script::Outcome;

/// Statements by kind.
pub(super) const STATEMENTS: [&[&str]; 10] = [
    &trade_order::STATEMENTS,
    &trade_result::STATEMENTS,
    &trade_lookup::STATEMENTS,
    &trade_update::STATEMENTS,
    &trade_status::STATEMENTS,
    &market_watch::STATEMENTS,
    &security_detail::STATEMENTS,
    &customer_position::STATEMENTS,
    &broker_volume::STATEMENTS,
    &market_feed::STATEMENTS,
];

/// A transaction with all that it needs, so that it can be repeated.
pub(crate) enum Input {
    TradeOrder(TradeOrder),
    TradeResult(TradeResult),
    TradeLookup(TradeLookup),
    TradeUpdate(TradeUpdate),
    TradeStatus(TradeStatus),
    MarketWatch(MarketWatch),
    SecurityDetail(SecurityDetail),
    CustomerPosition(CustomerPosition),
    BrokerVolume(BrokerVolume),
    MarketFeed(MarketFeed),
}

impl Input {
    /// Draws one of a kind that customers or brokers begin.
    pub(super) fn draw(kind: usize, laws: &Laws, random: &mut Random) -> Input {
        match kind {
            kind::TRADE_ORDER => Input::TradeOrder(TradeOrder::draw(laws, random)),
            kind::TRADE_LOOKUP => Input::TradeLookup(TradeLookup::draw(laws, random)),
            kind::TRADE_UPDATE => Input::TradeUpdate(TradeUpdate::draw(laws, random)),
            kind::TRADE_STATUS => Input::TradeStatus(TradeStatus::draw(laws, random)),
            kind::MARKET_WATCH => Input::MarketWatch(MarketWatch::draw(laws, random)),
            kind::SECURITY_DETAIL => Input::SecurityDetail(SecurityDetail::draw(laws, random)),
            kind::CUSTOMER_POSITION => Input::CustomerPosition(CustomerPosition::draw(laws, random)),
            kind::BROKER_VOLUME => Input::BrokerVolume(BrokerVolume::draw(laws, random)),
            other => unreachable!("the market begins kind {other}"),
        }
    }

    /// Runs it once. What the market has to know, it is told after the commit.
    pub(super) async fn run(&self, session: &Session, market: &Market) -> Result<Outcome, Error> {
        match self {
            Input::TradeOrder(input) => input.run(session, market).await,
            Input::TradeResult(input) => input.run(session).await,
            Input::TradeLookup(input) => input.run(session).await,
            Input::TradeUpdate(input) => input.run(session).await,
            Input::TradeStatus(input) => input.run(session).await,
            Input::MarketWatch(input) => input.run(session).await,
            Input::SecurityDetail(input) => input.run(session).await,
            Input::CustomerPosition(input) => input.run(session).await,
            Input::BrokerVolume(input) => input.run(session).await,
            Input::MarketFeed(input) => input.run(session, market).await,
        }
    }
}
