//! The ten kinds of transactions.

/// Names by place, as in the modelled workload's file.
pub(crate) const NAMES: [&str; 10] = [
    "trade-order",
    "trade-result",
    "trade-lookup",
    "trade-update",
    "trade-status",
    "market-watch",
    "security-detail",
    "customer-position",
    "broker-volume",
    "market-feed",
];

/// Those that customers and brokers begin, which a mix chooses from. The others follow from trade-order.
pub(crate) const BEGUN: [&str; 8] = [
    "trade-order",
    "trade-lookup",
    "trade-update",
    "trade-status",
    "market-watch",
    "security-detail",
    "customer-position",
    "broker-volume",
];

pub(crate) const TRADE_ORDER: usize = 0;
pub(crate) const TRADE_RESULT: usize = 1;
pub(crate) const TRADE_LOOKUP: usize = 2;
pub(crate) const TRADE_UPDATE: usize = 3;
pub(crate) const TRADE_STATUS: usize = 4;
pub(crate) const MARKET_WATCH: usize = 5;
pub(crate) const SECURITY_DETAIL: usize = 6;
pub(crate) const CUSTOMER_POSITION: usize = 7;
pub(crate) const BROKER_VOLUME: usize = 8;
pub(crate) const MARKET_FEED: usize = 9;

/// The place of a kind that a mix has chosen.
pub(crate) fn begun(place: usize) -> usize {
    NAMES.iter().position(|name| *name == BEGUN[place]).expect("all of them are kinds")
}
