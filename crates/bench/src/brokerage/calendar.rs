//! Days and times of the initial rows, as COPY takes them. Trading is on weekdays, eight hours a day.

use jiff::ToSpan;
use jiff::civil::{Date, DateTime, date};

use super::layout::{DAY_S, OPENS_S, TRADES_OF_DAY};

/// The first day of the daily market, a Monday; and of the initial trades, the Monday after its last one.
pub(crate) const MARKET_BEGINS: Date = date(2015, 1, 5);
pub(crate) const TRADES_BEGIN: Date = date(2020, 1, 6);
/// The first of them as SQL has it.
pub(crate) const MARKET_BEGINS_SQL: &str = "date '2015-01-05'";

/// Days after a Monday, of a number of weekdays.
pub(crate) fn weekdays(number: u64) -> i64 {
    (number / 5 * 7 + number % 5) as i64
}

/// A weekday after a Monday.
pub(crate) fn day(begins: Date, number: u64) -> Date {
    begins.saturating_add(weekdays(number).days())
}

/// When an initial trade of a load unit is placed, milliseconds after the first day's beginning.
pub(crate) fn placed_ms(trade: u64) -> u64 {
    let (day, of_day) = (trade / TRADES_OF_DAY, trade % TRADES_OF_DAY);
    weekdays(day) as u64 * 86_400_000 + OPENS_S * 1000 + of_day * (DAY_S * 1000) / TRADES_OF_DAY
}

/// A moment so many milliseconds after the beginning of the initial trades, in UTC.
pub(crate) fn moment(ms: u64) -> impl std::fmt::Display {
    let at: DateTime = TRADES_BEGIN.at(0, 0, 0, 0).saturating_add((ms as i64).milliseconds());
    format!("{at}+00")
}
