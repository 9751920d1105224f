//! What always holds in a brokerage database, whatever ran and whenever it was killed: each trade has what its state says, and
//! sums are those of what they sum up.

use super::calendar::{MARKET_BEGINS_SQL, weekdays};
use super::layout::*;
use crate::load::condition::Condition;

/// Shares that a completed trade added, below zero if it sold.
const SHARES: &str = "case when type in ('MS', 'LS', 'SL') then -quantity else quantity end";

/// Columns of which nothing follows from others.
pub(crate) const NOT_COVERED: &str = "names, addresses and texts; tables of types, rates, charges, sectors and industries; \
    permissions, watch items and competitors; figures of companies and securities; prices and volumes of the market; dates and times";

/// All conditions for so many load units, the quickest first.
pub(crate) fn all(units: u64) -> Vec<Condition> {
    let condition = |name, text, place, sql: String| Condition { name, text, place, sql };
    let counts = [
        ("customer", CUSTOMERS),
        ("watch_list", CUSTOMERS),
        ("account", Layout::new().accounts() as u64),
        ("broker", BROKERS),
        ("company", COMPANIES),
        ("financial", 20 * COMPANIES),
        ("news_item", 2 * COMPANIES),
        ("security", SECURITIES),
        ("last_trade", SECURITIES),
        ("daily_market", SECURITIES * MARKET_DAYS),
    ];
    let counts = counts.map(|(table, count)| {
        format!("select array['{table}'], (select count(*) from {table}), {}::bigint", count * units)
    });
    vec![
        condition("rows", "as many rows as the number of customers says", "table", counts.join(" union all ")),
        condition(
            "references",
            "accounts have a customer and a broker; securities have a company and a price",
            "table, key",
            "select array['account', a.id::text], (c.id is not null and b.id is not null), true from account a \
             left join customer c on c.id = a.customer left join broker b on b.id = a.broker union all \
             select array['security', s.symbol], (c.id is not null and l.price is not null), true from security s \
             left join company c on c.id = s.company left join last_trade l on l.symbol = s.symbol"
                .to_owned(),
        ),
        condition(
            "market-days",
            "a security has every day of the market",
            "symbol",
            format!(
                "select array[symbol], count(*) filter (where day between {MARKET_BEGINS_SQL} \
                 and {MARKET_BEGINS_SQL} + {}), {MARKET_DAYS}::bigint from daily_market group by symbol",
                weekdays(MARKET_DAYS - 1)
            ),
        ),
        condition(
            "requests",
            "a limit order is requested exactly while it waits",
            "trade",
            "select array[coalesce(t.id, r.trade)], (t.id is not null)::int, (r.trade is not null)::int \
             from (select id from trade where status = 'WAIT') as t full join trade_request r on r.trade = t.id"
                .to_owned(),
        ),
        condition(
            "summaries",
            "the summary of an account and a security is the sum of its holdings, and there is none of 0",
            "account/symbol",
            "select array[coalesce(s.account, h.account)::text, coalesce(s.symbol, h.symbol)], s.quantity::bigint, \
             h.quantity from holding_summary s full join (select account, symbol, nullif(sum(quantity), 0) as quantity \
             from holding group by 1, 2) as h on h.account = s.account and h.symbol = s.symbol"
                .to_owned(),
        ),
        condition(
            "traded-shares",
            "the holdings of an account in a security are what its completed trades bought less what they sold",
            "account/symbol",
            format!(
                "select array[coalesce(t.account, h.account)::text, coalesce(t.symbol, h.symbol)], coalesce(h.quantity, 0), \
                 coalesce(t.quantity, 0) from (select account, symbol, sum({SHARES}) as quantity from trade \
                 where status = 'DONE' group by 1, 2) as t full join (select account, symbol, sum(quantity) as quantity \
                 from holding group by 1, 2) as h on h.account = t.account and h.symbol = t.symbol"
            ),
        ),
        condition(
            "holding-history",
            "the changes of a holding add up to its quantity, or to 0 if it is closed",
            "holding",
            "select array[coalesce(x.holding, h.trade)], x.quantity, coalesce(h.quantity, 0) from (select holding, \
             sum(after - before) as quantity from holding_history group by 1) as x full join holding h \
             on h.trade = x.holding"
                .to_owned(),
        ),
        condition(
            "trade-holdings",
            "a completed trade changed holdings by its shares, and no other trade changed any",
            "trade",
            format!(
                "select array[coalesce(t.id, x.trade)], x.quantity, t.shares from (select id, {SHARES} as shares from trade \
                 where status = 'DONE') as t full join (select trade, sum(after - before) as quantity from holding_history \
                 group by 1) as x on x.trade = t.id"
            ),
        ),
        condition(
            "brokers",
            "a broker's number of trades and commission are those of the completed trades of its accounts",
            "broker",
            "select array[b.id], array[b.trades::bigint, b.commission], array[coalesce(t.n, 0), coalesce(t.sum, 0)] \
             from broker b left join (select a.broker, count(*) as n, sum(t.commission)::bigint as sum from trade t \
             join account a on a.id = t.account where t.status = 'DONE' group by 1) as t on t.broker = b.id"
                .to_owned(),
        ),
        condition(
            "balances",
            "an account's balance is what it began with and its cash transactions",
            "account",
            "select array[a.id], a.balance, a.opening + coalesce(c.sum, 0) from account a left join (select t.account, \
             sum(c.amount)::bigint as sum from cash_transaction c join trade t on t.id = c.trade group by 1) as c \
             on c.account = a.id"
                .to_owned(),
        ),
        condition(
            "settlements",
            "a trade has a settlement exactly if it is completed, of its price less charge, commission and withheld tax",
            "trade",
            "select array[coalesce(t.id, s.trade)], s.amount, t.amount from (select t.id, case when t.type in ('MS', 'LS', 'SL') \
             then 1 else -1 end * t.quantity::bigint * t.price - t.charge - t.commission \
             - case when a.tax_status = 1 then t.tax else 0 end as amount from trade t join account a on a.id = t.account \
             where t.status = 'DONE') as t full join settlement s on s.trade = t.id"
                .to_owned(),
        ),
        condition(
            "cash",
            "a completed trade that is paid in cash has a cash transaction of its settlement's amount, and no other trade has one",
            "trade",
            "select array[coalesce(t.id, c.trade)], c.amount, t.amount from (select t.id, s.amount from trade t \
             left join settlement s on s.trade = t.id where t.status = 'DONE' and t.is_cash) as t \
             full join cash_transaction c on c.trade = t.id"
                .to_owned(),
        ),
        condition(
            "histories",
            "the history of a trade has the states through which it came to its own",
            "trade",
            "select array[coalesce(t.id, h.trade)], h.states, case when t.type in ('MB', 'MS') then '' else '+WAIT' end || \
             case t.status when 'WAIT' then '' when 'OPEN' then '+OPEN' when 'DONE' then '+DONE+OPEN' end \
             from trade t full join (select trade, string_agg('+' || status, '' order by case status when 'WAIT' then 0 \
             when 'DONE' then 1 else 2 end) as states from trade_history group by 1) as h on h.trade = t.id"
                .to_owned(),
        ),
    ]
}
