//! The rows at first, from a seed. A load unit has pieces by group of tables, so that several connections share it.

use tier0_world::Random;

use super::calendar::{MARKET_BEGINS, TRADES_BEGIN, day, moment, placed_ms};
use super::layout::*;
use super::simulation::{Simulation, Trade, trades_of_unit};
use crate::load::lines::{Lines, between};
use crate::load::{Filled, Rows};

/// Trades of a part.
const TRADES_OF_PART: u64 = 9600;
/// The text of a news item, bytes.
const NEWS_BYTES: usize = 100_000;
/// Initial balance of an account, in cents.
const OPENING: u64 = 100_000_000;

/// A table with the columns that rows have, in order, and how its parts are cut.
struct Source {
    table: &'static str,
    columns: &'static str,
    cut: Cut,
}

/// How a table of a piece is cut into parts.
enum Cut {
    /// It is one part.
    Whole,
    /// Into so many equal parts.
    Into(i32),
    /// By trades.
    Trades,
}

const fn source(table: &'static str, columns: &'static str, cut: Cut) -> Source {
    Source { table, columns, cut }
}

/// Tables that are alike at every scale.
const FIXED: [Source; 10] = [
    source("status_type", "id, name", Cut::Whole),
    source("trade_type", "id, name, is_sale, is_market", Cut::Whole),
    source("exchange", "id, address, opens, closes, name, description", Cut::Whole),
    source("sector", "id, name", Cut::Whole),
    source("industry", "id, sector, name", Cut::Whole),
    source("charge", "trade_type, tier, amount", Cut::Whole),
    source("commission_rate", "tier, trade_type, exchange, from_quantity, to_quantity, rate", Cut::Whole),
    source("tax_rate", "id, rate, name", Cut::Whole),
    source("zip_code", "code, town, division", Cut::Whole),
    source("address", "id, line_1, line_2, zip, country", Cut::Whole),
];

/// Tables of a load unit, by piece.
const OF_UNIT: [&[Source]; 6] = [
    &[
        source("address", "id, line_1, line_2, zip, country", Cut::Whole),
        source(
            "customer",
            "id, tax_id, status, last_name, first_name, middle, gender, tier, born, address, phone_1, phone_2, phone_3, \
             mail_1, mail_2",
            Cut::Whole,
        ),
        source("customer_tax_rate", "customer, tax_rate", Cut::Whole),
        source("account_permission", "account, tax_id, rights, last_name, first_name", Cut::Whole),
        source("watch_list", "id, customer", Cut::Whole),
        source("watch_item", "list, symbol", Cut::Into(5)),
        source(
            "company",
            "id, status, name, industry, rating, ceo, address, description, opened",
            Cut::Whole,
        ),
        source("company_competitor", "company, competitor, industry", Cut::Whole),
        source(
            "security",
            "symbol, issue, status, name, exchange, company, shares, started, traded, earnings_ratio, high, high_on, \
             low, low_on, dividend, yield",
            Cut::Whole,
        ),
        source("last_trade", "symbol, at, price, open_price, volume", Cut::Whole),
        source(
            "financial",
            "company, year, quarter, started, revenue, earnings, per_share, per_diluted_share, margin, inventory, assets, \
             liabilities, shares, diluted_shares",
            Cut::Whole,
        ),
    ],
    &[
        source("news_item", "id, company, at, headline, summary, source, author, body", Cut::Into(100)),
        source("daily_market", "symbol, day, close, high, low, volume", Cut::Into(137)),
    ],
    &[source(
        "trade",
        "id, at, account, status, type, is_cash, is_lifo, symbol, quantity, bid_price, price, charge, commission, tax, \
         executor",
        Cut::Trades,
    )],
    &[source("trade_history", "trade, at, status", Cut::Trades)],
    &[
        source("settlement", "trade, kind, due, amount", Cut::Trades),
        source("cash_transaction", "trade, at, amount, name", Cut::Trades),
    ],
    &[
        source("holding_history", "holding, trade, before, after", Cut::Trades),
        source("holding", "trade, account, symbol, at, price, quantity", Cut::Whole),
        source("holding_summary", "account, symbol, quantity", Cut::Whole),
        source("account", "id, customer, broker, name, tax_status, opening, balance", Cut::Whole),
        source("broker", "id, status, name, trades, commission", Cut::Whole),
    ],
];

/// Pieces of so many load units: the fixed tables, then groups of tables of each unit.
pub(crate) fn pieces(units: u64) -> i32 {
    1 + (units as usize * OF_UNIT.len()) as i32
}

/// The load unit of a piece and its tables.
fn place(piece: i32) -> (u64, &'static [Source]) {
    match piece {
        0 => (0, &FIXED),
        _ => {
            let number = piece as usize - 1;
            ((number / OF_UNIT.len()) as u64, OF_UNIT[number % OF_UNIT.len()])
        }
    }
}

/// Makes rows.
pub(crate) struct BrokerageRows {
    seed: u64,
    units: u64,
    days: u64,
    layout: Layout,
    lines: Lines,
    simulation: Option<Simulation>,
}

impl BrokerageRows {
    /// Those of a seed, of so many load units with so many days of trades.
    pub(crate) fn new(seed: u64, units: u64, days: u64) -> BrokerageRows {
        let lines = Lines::new(&mut Random::new(seed, u64::MAX));
        BrokerageRows { seed, units, days, layout: Layout::new(), lines, simulation: None }
    }

    fn parts(&self, cut: &Cut) -> i32 {
        match cut {
            Cut::Whole => 1,
            Cut::Into(count) => *count,
            Cut::Trades => trades_of_unit(self.days).div_ceil(TRADES_OF_PART) as i32,
        }
    }

    fn securities(&self) -> u64 {
        self.units * SECURITIES
    }

    /// The numbers of a part of so many, from 0.
    fn share(all: u64, part: i32, parts: i32) -> std::ops::Range<u64> {
        let (part, parts) = (part as u64, parts as u64);
        all * part / parts..all * (part + 1) / parts
    }

    fn fixed(&mut self, table: &str, random: &mut Random) {
        let lines = &mut self.lines;
        match table {
            "status_type" => {
                for (id, name) in STATUSES {
                    lines.field(id).field(name).end();
                }
            }
            "trade_type" => {
                for (id, name, is_sale, is_market) in TRADE_TYPES {
                    lines.field(id).field(name).field(is_sale).field(is_market).end();
                }
            }
            "exchange" => {
                for id in 1..=EXCHANGES {
                    let lines = lines.field(id).field(-(id as i64)).field(570).field(960);
                    lines.letters(random, 20, 40).letters(random, 60, 150).end();
                }
            }
            "sector" => (1..=SECTORS).for_each(|id| lines.field(id).field(sector_name(id)).end()),
            "industry" => {
                (1..=INDUSTRIES)
                    .for_each(|id| lines.field(id).field(id % SECTORS + 1).field(industry_name(id)).end());
            }
            "charge" => {
                for (place, (id, ..)) in TRADE_TYPES.iter().enumerate() {
                    (1..=3).for_each(|tier| lines.field(id).field(tier).field(charge(tier, place)).end());
                }
            }
            "commission_rate" => {
                for tier in 1..=3 {
                    for (place, (id, ..)) in TRADE_TYPES.iter().enumerate() {
                        for exchange in 1..=EXCHANGES {
                            for (from, to) in QUANTITY_RANGES {
                                let rate = commission_rate(tier, place, exchange, to.min(800));
                                let lines = lines.field(tier).field(id).field(exchange);
                                lines.field(from).field(to).field(rate).end();
                            }
                        }
                    }
                }
            }
            "tax_rate" => {
                (1..=TAX_RATES)
                    .for_each(|id| lines.field(id).field(tax_rate(id)).letters(random, 15, 50).end());
            }
            "zip_code" => {
                (0..ZIP_CODES)
                    .for_each(|code| lines.field(code).letters(random, 8, 20).letters(random, 2, 12).end());
            }
            // Those of the exchanges; the others belong to load units.
            "address" => (1..=EXCHANGES as i64).for_each(|id| self.address(random, -id)),
            other => unreachable!("there is no table {other}"),
        }
    }

    fn address(&mut self, random: &mut Random, id: i64) {
        let zip = random.below(ZIP_CODES);
        let lines = self.lines.field(id).letters(random, 15, 30).letters(random, 10, 20);
        lines.field(zip).field("USA").end();
    }

    fn of_unit(&mut self, unit: u64, table: &str, part: i32, parts: i32, random: &mut Random) {
        let companies = (0..COMPANIES).map(|own| unit * COMPANIES + own + 1);
        match table {
            // Of customers, then of companies.
            "address" => {
                let all = CUSTOMERS + COMPANIES;
                (0..all).for_each(|own| self.address(random, (unit * all + own + 1) as i64));
            }
            "customer" => (0..CUSTOMERS).for_each(|own| self.customer(random, unit, own)),
            "customer_tax_rate" => {
                for customer in (0..CUSTOMERS).map(|own| customer_number(unit, own)) {
                    for rate in tax_rates_of(customer) {
                        self.lines.field(customer).field(rate).end();
                    }
                }
            }
            "account_permission" => self.permissions(unit),
            "watch_list" => {
                (0..CUSTOMERS).for_each(|own| {
                    let customer = customer_number(unit, own);
                    self.lines.field(customer).field(customer).end();
                });
            }
            "watch_item" => Self::share(CUSTOMERS, part, parts).for_each(|own| self.watch(random, unit, own)),
            "company" => companies.for_each(|company| self.company(random, unit, company)),
            "company_competitor" => companies.for_each(|company| {
                let all = self.units * COMPANIES;
                for step in 1..=3 {
                    let competitor = (company - 1 + step * (all / 4)) % all + 1;
                    let industry = industry_of(competitor);
                    self.lines.field(company).field(competitor).field(industry).end();
                }
            }),
            "security" => (0..SECURITIES).for_each(|own| self.security(random, unit * SECURITIES + own)),
            "last_trade" => (0..SECURITIES).for_each(|own| {
                let price = between(random, PRICES.0, PRICES.1);
                let lines = self.lines.field(symbol(unit * SECURITIES + own));
                lines.field(moment(placed_ms(0))).field(price).field(price).field(0).end();
            }),
            "financial" => companies.for_each(|company| self.financial(random, company)),
            "news_item" => {
                for own in Self::share(2 * COMPANIES, part, parts) {
                    self.news(random, unit * 2 * COMPANIES + own + 1);
                }
            }
            "daily_market" => {
                for own in Self::share(SECURITIES, part, parts) {
                    self.days_of(random, unit * SECURITIES + own);
                }
            }
            "holding" | "holding_summary" | "account" | "broker" => self.results(unit, table),
            other => self.trades(unit, other, part),
        }
    }

    fn customer(&mut self, random: &mut Random, unit: u64, own: u64) {
        let customer = customer_number(unit, own);
        let (first, last) = person(24, customer);
        let address = unit * (CUSTOMERS + COMPANIES) + own + 1;
        let born = day(TRADES_BEGIN, 0).year() as i64 - between(random, 18, 90);
        let lines =
            self.lines.field(customer).field(tax_id(customer)).field("ACTV").field(&last).field(first);
        let lines = lines.letters(random, 1, 1).field(if customer.is_multiple_of(2) { "F" } else { "M" });
        let lines = lines.field(self.layout.tier(own)).field(format_args!("{born}-06-15")).field(address);
        for _ in 0..3 {
            let number = random.below(10_000_000_000);
            lines.field(format_args!("+1 {number:010}"));
        }
        for mail in ["mail.example", "post.example"] {
            lines.field(format_args!("{first}.{last}.{customer}@{mail}"));
        }
        lines.end();
    }

    /// The owner of an account, and of each twentieth to third account others: 1.42 rows on average.
    fn permissions(&mut self, unit: u64) {
        for place in 0..self.layout.accounts() {
            let (account, own) = self.layout.account(unit, place);
            let owner = customer_number(unit, own);
            let others = match mixed(25, account) % 100 {
                0..65 => 0,
                65..93 => 1,
                _ => 2,
            };
            for number in 0..=others {
                // Another customer of the load unit, of whom none is the owner.
                let step = number * (1 + mixed(26, account) % 400);
                let who = customer_number(unit, (own + step) % CUSTOMERS);
                let (first, last) = person(24, who);
                let rights = if who == owner { "0000" } else { "0011" };
                self.lines.field(account).field(tax_id(who)).field(rights).field(last).field(first).end();
            }
        }
    }

    /// 50 to 150 different securities, evenly over all of them.
    fn watch(&mut self, random: &mut Random, unit: u64, own: u64) {
        let (count, all) = (between(random, 50, 150) as u64, self.securities());
        let start = random.below(all);
        for number in 0..count {
            let within = random.below(all / count);
            let security = (start + number * all / count + within) % all;
            self.lines.field(customer_number(unit, own)).field(symbol(security)).end();
        }
    }

    fn company(&mut self, random: &mut Random, unit: u64, company: u64) {
        let address = unit * (CUSTOMERS + COMPANIES) + CUSTOMERS + (company - 1) % COMPANIES + 1;
        let (first, last) = person(27, company);
        let lines = self.lines.field(company).field("ACTV").field(company_name(company));
        let lines =
            lines.field(industry_of(company)).letters(random, 2, 4).field(format_args!("{first} {last}"));
        let lines = lines.field(address).letters(random, 80, 150);
        lines.field(day(MARKET_BEGINS, random.below(1000))).end();
    }

    fn security(&mut self, random: &mut Random, security: u64) {
        let (company, issue) = company_of(security);
        let [shares, ratio, dividend, yields] = [
            between(random, 1_000_000, 1_000_000_000),
            between(random, 100, 12_000),
            between(random, 0, 1000),
            between(random, 0, 1200),
        ];
        let lines = self.lines.field(symbol(security)).field(issue).field("ACTV");
        let lines = lines.field(format_args!("{issue} of {}", company_name(company)));
        let lines = lines.field(exchange_of(security)).field(company).field(shares);
        let lines = lines.field(MARKET_BEGINS).field(MARKET_BEGINS).field(ratio).field(PRICES.1);
        let lines = lines.field(day(MARKET_BEGINS, 1100)).field(PRICES.0).field(day(MARKET_BEGINS, 1200));
        lines.field(dividend).field(yields).end();
    }

    fn financial(&mut self, random: &mut Random, company: u64) {
        for quarter in 0..20 {
            let (year, quarter) = (2015 + quarter / 4, quarter % 4 + 1);
            let lines = self.lines.field(company).field(year).field(quarter);
            lines.field(format_args!("{year}-{:02}-01", quarter * 3 - 2));
            let large = |random: &mut Random| between(random, 1_000_000_000, 900_000_000_000);
            let small = |random: &mut Random| between(random, 1, 3000);
            let [revenue, earnings] = [large(random), large(random)];
            let lines = self.lines.field(revenue).field(earnings);
            let [per_share, per_diluted, margin] = [small(random), small(random), small(random)];
            let lines = lines.field(per_share).field(per_diluted).field(margin);
            let more = [large(random), large(random), large(random), large(random), large(random)];
            more.iter().fold(lines, |lines, value| lines.field(value)).end();
        }
    }

    fn news(&mut self, random: &mut Random, item: u64) {
        let at = placed_ms(random.below(TRADES_OF_DAY));
        let lines = self.lines.field(item).field((item - 1) / 2 + 1).field(moment(at));
        let lines = lines.letters(random, 60, 80).letters(random, 200, 255).letters(random, 10, 30);
        lines.letters(random, 10, 30).text(random, NEWS_BYTES).end();
    }

    fn days_of(&mut self, random: &mut Random, security: u64) {
        let symbol = symbol(security);
        for number in 0..MARKET_DAYS {
            let close = between(random, PRICES.0, PRICES.1);
            let volume = between(random, 1000, 10_000);
            let lines = self.lines.field(&symbol).field(day(MARKET_BEGINS, number)).field(close);
            lines.field(close * 103 / 100).field(close * 97 / 100).field(volume).end();
        }
    }

    /// The rows that a part of the trades writes into a table.
    fn trades(&mut self, unit: u64, table: &str, part: i32) {
        let (seed, securities, days) = (self.seed, self.securities(), self.days);
        if part == 0 {
            self.simulation = Some(Simulation::new(seed, unit, securities, days));
        }
        let mut simulation = self.simulation.take().expect("part 0 came first");
        for _ in 0..TRADES_OF_PART {
            let Some(trade) = simulation.trade() else { break };
            match table {
                "trade" => self.trade(&trade),
                "trade_history" => self.history(&trade),
                "settlement" => self.settlement(&trade),
                "cash_transaction" if trade.is_cash => self.cash(&trade),
                "cash_transaction" => {}
                "holding_history" => {
                    for (holding, before, after) in &trade.effect.changed {
                        self.lines.field(holding).field(trade.id).field(before).field(after).end();
                    }
                    if trade.effect.opened != 0 {
                        self.lines.field(trade.id).field(trade.id).field(0).field(trade.effect.opened).end();
                    }
                }
                other => unreachable!("there is no table {other}"),
            }
        }
        self.simulation = Some(simulation);
    }

    fn trade(&mut self, trade: &Trade) {
        let at = moment(placed_ms(trade.number));
        let lines = self.lines.field(trade.id).field(at).field(trade.account).field("DONE");
        let lines = lines.field(TRADE_TYPES[trade.kind].0).field(trade.is_cash).field(trade.is_lifo);
        let lines =
            lines.field(symbol(trade.security)).field(trade.quantity).field(trade.price).field(trade.price);
        let lines = lines.field(trade.charge).field(trade.commission).field(trade.tax);
        lines.field(executor(trade.customer)).end();
    }

    fn history(&mut self, trade: &Trade) {
        let placed = placed_ms(trade.number);
        let statuses: &[&str] =
            if TRADE_TYPES[trade.kind].3 { &["OPEN", "DONE"] } else { &["WAIT", "OPEN", "DONE"] };
        for (step, status) in (0..).zip(statuses) {
            self.lines.field(trade.id).field(moment(placed + step * 1000)).field(status).end();
        }
    }

    fn settlement(&mut self, trade: &Trade) {
        let due = day(TRADES_BEGIN, trade.number / TRADES_OF_DAY + 2);
        let kind = if trade.is_cash { CASH } else { MARGIN };
        self.lines.field(trade.id).field(kind).field(due).field(trade.amount).end();
    }

    fn cash(&mut self, trade: &Trade) {
        let name = cash_name(TRADE_TYPES[trade.kind].1, trade.quantity, &symbol(trade.security));
        let at = moment(placed_ms(trade.number) + 2000);
        self.lines.field(trade.id).field(at).field(trade.amount).field(name).end();
    }

    /// What all trades of a unit have led to.
    fn results(&mut self, unit: u64, table: &str) {
        let simulation = self.simulation.take().expect("the history of holdings came first");
        let (securities, per_unit) = (self.securities(), trades_of_unit(self.days) as i64);
        for place in 0..self.layout.accounts() {
            let (account, own) = self.layout.account(unit, place);
            if table == "account" {
                let opening = OPENING + mixed(28, account) % OPENING;
                let balance = opening as i64 + simulation.paid[place];
                let lines =
                    self.lines.field(account).field(customer_number(unit, own)).field(broker_of(account));
                let lines = lines
                    .field(format_args!("Account {account} of {}", executor(customer_number(unit, own))));
                lines.field(tax_status(account)).field(opening).field(balance).end();
                continue;
            }
            for number in 0..SECURITIES_OF_ACCOUNT {
                let lots = &simulation.lots[place * SECURITIES_OF_ACCOUNT as usize + number as usize];
                let symbol = symbol(security_of(account, number, securities));
                if table == "holding_summary" && !lots.is_empty() {
                    let quantity: i32 = lots.iter().map(|lot| lot.quantity).sum();
                    self.lines.field(account).field(&symbol).field(quantity).end();
                }
                for lot in lots.iter().filter(|_| table == "holding") {
                    let at = moment(placed_ms(((lot.trade - 1) % per_unit) as u64) + 2000);
                    let lines = self.lines.field(lot.trade).field(account).field(&symbol).field(at);
                    lines.field(lot.price).field(lot.quantity).end();
                }
            }
        }
        if table == "broker" {
            for (own, (trades, commission)) in (0..).zip(&simulation.brokers) {
                let broker = unit * BROKERS + own + 1;
                let lines = self.lines.field(broker).field("ACTV").field(broker_name(broker));
                lines.field(trades).field(commission).end();
            }
        }
        self.simulation = Some(simulation);
    }
}

/// States of trades and others.
const STATUSES: [(&str, &str); 5] = [
    ("ACTV", "Active"),
    ("WAIT", "Waiting"),
    ("OPEN", "Submitted"),
    ("DONE", "Completed"),
    ("CANC", "Canceled"),
];
/// How a trade is paid.
pub(crate) const CASH: &str = "Cash Account";
pub(crate) const MARGIN: &str = "Margin";

/// Who carries out trades of a customer.
pub(crate) fn executor(customer: u64) -> String {
    let (first, last) = person(24, customer);
    format!("{first} {last}")
}

/// What a cash transaction is called.
pub(crate) fn cash_name(kind: &str, quantity: i32, symbol: &str) -> String {
    format!("{kind} of {quantity} shares of {symbol}")
}

fn industry_of(company: u64) -> u64 {
    mixed(29, company) % INDUSTRIES + 1
}

impl Rows for BrokerageRows {
    fn tables(&self, piece: i32) -> Vec<Filled> {
        let filled = |source: &Source| Filled {
            copy: format!("copy {} ({}) from stdin", source.table, source.columns),
            parts: self.parts(&source.cut),
        };
        place(piece).1.iter().map(filled).collect()
    }

    fn part(&mut self, piece: i32, table: usize, part: i32) -> Vec<u8> {
        let (unit, sources) = place(piece);
        let source = &sources[table];
        let name = (piece as u64) << 32 | (table as u64) << 16 | part as u64;
        let random = &mut Random::new(self.seed, name);
        match piece {
            0 => self.fixed(source.table, random),
            _ => self.of_unit(unit, source.table, part, self.parts(&source.cut), random),
        }
        self.lines.take()
    }
}

#[cfg(test)]
mod tests {
    use super::super::schema::TABLES;
    use super::*;

    #[test]
    fn every_table_is_filled_and_has_as_many_fields_as_columns() {
        let mut rows = BrokerageRows::new(7, 1, 1);
        let mut filled: Vec<&str> = Vec::new();
        for piece in 0..pieces(1) {
            for (place, source) in place(piece).1.iter().enumerate() {
                let text = String::from_utf8(rows.part(piece, place, 0)).expect("text");
                let columns = source.columns.split(", ").count();
                let table = TABLES.iter().find(|table| table.name == source.table).expect("a table");
                assert_eq!(table.columns.split(", ").count(), columns, "{}", source.table);
                let is_right = |row: &str| row.split('\t').count() == columns;
                assert!(!text.is_empty() && text.lines().all(is_right), "{}", source.table);
                filled.push(source.table);
                // The results need all trades.
                (1..rows.parts(&source.cut)).for_each(|part| drop(rows.part(piece, place, part)));
            }
        }
        let missing: Vec<&str> =
            TABLES.iter().map(|table| table.name).filter(|name| !filled.contains(name)).collect();
        assert_eq!(missing, ["trade_request"], "limit orders all are complete at first");
    }
}
