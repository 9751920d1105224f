//! Market-Watch: what the securities of a watch list (60 %), of an account (35 %) or of an industry (5 %) are worth, against their
//! price on a day. Reads only.

use futures_util::future::try_join3;
use tier0_world::Random;
use tokio_postgres::Error;

use super::super::draw::Laws;
use super::super::kind::MARKET_WATCH;
use super::super::layout::{INDUSTRIES, industry_name};
use super::super::session::Session;
use crate::run::script::{Outcome, Values};

const LIST: usize = 0;
const ACCOUNT: usize = 1;
const INDUSTRY: usize = 2;

pub(super) const STATEMENTS: [&str; 3] = [
    "select sum(s.shares::float8 * l.price) / nullif(sum(s.shares::float8 * d.close), 0) from watch_list w \
     join watch_item i on i.list = w.id join last_trade l on l.symbol = i.symbol join security s on s.symbol = i.symbol \
     join daily_market d on d.symbol = i.symbol and d.day = date '2015-01-05' + $2::int where w.customer = $1",
    "select sum(s.shares::float8 * l.price) / nullif(sum(s.shares::float8 * d.close), 0) from holding_summary h \
     join last_trade l on l.symbol = h.symbol join security s on s.symbol = h.symbol \
     join daily_market d on d.symbol = h.symbol and d.day = date '2015-01-05' + $2::int where h.account = $1",
    "select sum(s.shares::float8 * l.price) / nullif(sum(s.shares::float8 * d.close), 0) from industry i \
     join company c on c.industry = i.id and c.id between $3 and $4 join security s on s.company = c.id \
     join last_trade l on l.symbol = s.symbol \
     join daily_market d on d.symbol = s.symbol and d.day = date '2015-01-05' + $2::int where i.name = $1",
];

/// Whose securities.
enum Watched {
    List(i64),
    Account(i64),
    Industry(String, (i64, i64)),
}

/// The input.
pub(crate) struct MarketWatch {
    watched: Watched,
    day: i32,
}

impl MarketWatch {
    pub(super) fn draw(laws: &Laws, random: &mut Random) -> MarketWatch {
        let watched = match random.below(100) {
            0..60 => Watched::List(laws.customer(random)),
            60..95 => Watched::Account(laws.account(random).number),
            _ => {
                let industry = random.below(INDUSTRIES) + 1;
                Watched::Industry(industry_name(industry), laws.companies(random))
            }
        };
        MarketWatch { watched, day: laws.market_day(random) }
    }

    pub(super) async fn run(&self, session: &Session) -> Result<Outcome, Error> {
        let (client, statements) = (&session.client, session.of(MARKET_WATCH));
        let ask = async |place: usize, values: Values<'_>| {
            let asked = client.query_one(&statements[place], values);
            try_join3(session.begin(), asked, session.commit()).await.map(|_| ())
        };
        match &self.watched {
            Watched::List(customer) => ask(LIST, &[customer, &self.day]).await?,
            Watched::Account(account) => ask(ACCOUNT, &[account, &self.day]).await?,
            Watched::Industry(name, (first, last)) => ask(INDUSTRY, &[name, &self.day, first, last]).await?,
        }
        Ok(Outcome::COMMITTED)
    }
}
