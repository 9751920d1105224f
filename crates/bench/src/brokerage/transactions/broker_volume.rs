//! Broker-Volume: what waiting limit orders of 20 to 40 brokers are worth, in a sector. Reads only.

use futures_util::future::try_join3;
use tier0_world::Random;
use tokio_postgres::Error;

use super::super::draw::Laws;
use super::super::kind::BROKER_VOLUME;
use super::super::layout::{SECTORS, sector_name};
use super::super::session::Session;
use crate::run::script::{Outcome, Values};

pub(super) const STATEMENTS: [&str; 1] = [
    "select b.name, sum(r.quantity::int8 * r.bid_price)::int8 as volume \
     from broker b join trade_request r on r.broker = b.id join security s on s.symbol = r.symbol \
     join company c on c.id = s.company join industry i on i.id = c.industry join sector x on x.id = i.sector \
     where b.name = any($1) and x.name = $2 group by b.name order by volume desc",
];

/// The input.
pub(crate) struct BrokerVolume {
    brokers: Vec<String>,
    sector: String,
}

impl BrokerVolume {
    pub(super) fn draw(laws: &Laws, random: &mut Random) -> BrokerVolume {
        let brokers = laws.brokers(random);
        BrokerVolume { brokers, sector: sector_name(random.below(SECTORS) + 1) }
    }

    pub(super) async fn run(&self, session: &Session) -> Result<Outcome, Error> {
        let values: Values = &[&self.brokers, &self.sector];
        let asked = session.client.query(&session.of(BROKER_VOLUME)[0], values);
        try_join3(session.begin(), asked, session.commit()).await?;
        Ok(Outcome::COMMITTED)
    }
}
