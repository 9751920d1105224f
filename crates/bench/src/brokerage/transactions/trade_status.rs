//! Trade-Status: the 50 newest trades of an account. Reads only.

use futures_util::future::try_join4;
use tier0_world::Random;
use tokio_postgres::Error;

use super::super::draw::Laws;
use super::super::kind::TRADE_STATUS;
use super::super::session::Session;
use crate::run::script::{Outcome, Values};

const NEWEST: usize = 0;
const OWNER: usize = 1;

pub(super) const STATEMENTS: [&str; 2] = [
    "select t.id, t.at::text, state.name, sort.name, t.symbol, t.quantity, t.executor, t.charge, s.name, e.name \
     from trade t join status_type state on state.id = t.status join trade_type sort on sort.id = t.type \
     join security s on s.symbol = t.symbol join exchange e on e.id = s.exchange \
     where t.account = $1 order by t.at desc limit 50",
    "select c.first_name, c.last_name, b.name from account a join customer c on c.id = a.customer \
     join broker b on b.id = a.broker where a.id = $1",
];

/// The input.
pub(crate) struct TradeStatus {
    account: i64,
}

impl TradeStatus {
    pub(super) fn draw(laws: &Laws, random: &mut Random) -> TradeStatus {
        TradeStatus { account: laws.account(random).number }
    }

    pub(super) async fn run(&self, session: &Session) -> Result<Outcome, Error> {
        let (client, statements) = (&session.client, session.of(TRADE_STATUS));
        let account: Values = &[&self.account];
        try_join4(
            session.begin(),
            client.query(&statements[NEWEST], account),
            client.query_one(&statements[OWNER], account),
            session.commit(),
        )
        .await?;
        Ok(Outcome::COMMITTED)
    }
}
