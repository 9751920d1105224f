//! Security-Detail: a security, its company and competitors, 20 quarters, 5 to 20 days of its market, and the news, in 1 % of all
//! cases with their texts. Reads only.

use futures_util::future::{try_join, try_join5};
use tier0_world::Random;
use tokio_postgres::Error;

use super::super::calendar::weekdays;
use super::super::draw::Laws;
use super::super::kind::SECURITY_DETAIL;
use super::super::layout::{MARKET_DAYS, symbol};
use super::super::session::Session;
use crate::load::lines::between;
use crate::run::script::{Outcome, Values};

const SECURITY: usize = 0;
const COMPETITORS: usize = 1;
const FINANCIALS: usize = 2;
const DAYS: usize = 3;
const LAST: usize = 4;
const HEADLINES: usize = 5;
const TEXTS: usize = 6;

pub(super) const STATEMENTS: [&str; 7] = [
    "select s.company, s.name, s.shares, s.high, s.high_on::text, s.low, s.dividend, s.yield, s.earnings_ratio, c.name, \
     c.rating, c.ceo, c.description, c.opened::text, a.line_1, a.line_2, z.town, z.division, e.name, e.opens, e.closes, \
     ea.line_1, ez.town from security s join company c on c.id = s.company join address a on a.id = c.address \
     join zip_code z on z.code = a.zip join exchange e on e.id = s.exchange join address ea on ea.id = e.address \
     join zip_code ez on ez.code = ea.zip where s.symbol = $1",
    "select c.name, i.name from company_competitor k join company c on c.id = k.competitor \
     join industry i on i.id = k.industry where k.company = $1",
    "select * from financial where company = $1 order by year, quarter limit 20",
    "select day::text, close, high, low, volume from daily_market where symbol = $1 \
     and day >= date '2015-01-05' + $2::int order by daily_market.day limit $3",
    "select price, open_price, volume, at::text from last_trade where symbol = $1",
    "select headline, summary, at::text, source, author from news_item where company = $1 limit 2",
    "select headline, body, at::text, source, author from news_item where company = $1 limit 2",
];

/// The input.
pub(crate) struct SecurityDetail {
    symbol: String,
    days: i64,
    first_day: i32,
    has_texts: bool,
}

impl SecurityDetail {
    pub(super) fn draw(laws: &Laws, random: &mut Random) -> SecurityDetail {
        let days = between(random, 5, 20);
        SecurityDetail {
            symbol: symbol(laws.security(random)),
            days,
            first_day: weekdays(random.below(MARKET_DAYS - days as u64)) as i32,
            has_texts: random.below(100) == 0,
        }
    }

    pub(super) async fn run(&self, session: &Session) -> Result<Outcome, Error> {
        let (client, statements) = (&session.client, session.of(SECURITY_DETAIL));
        let security: Values = &[&self.symbol];
        let (_, row) = try_join(session.begin(), client.query_one(&statements[SECURITY], security)).await?;
        let company: i64 = row.get(0);
        let company: Values = &[&company];
        let days: Values = &[&self.symbol, &self.first_day, &self.days];
        let news = if self.has_texts { TEXTS } else { HEADLINES };
        let details = try_join5(
            client.query(&statements[COMPETITORS], company),
            client.query(&statements[FINANCIALS], company),
            client.query(&statements[DAYS], days),
            client.query_one(&statements[LAST], security),
            client.query(&statements[news], company),
        );
        try_join(details, session.commit()).await?;
        Ok(Outcome::COMMITTED)
    }
}
