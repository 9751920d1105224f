//! Trade-Update: changes 20 old trades: who carried them out (33 %), how they were settled (33 %), or what their cash transaction
//! is called (34 %). Each change is undone by the next one.

use futures_util::future::try_join3;
use tier0_world::Random;
use tokio_postgres::Error;

use super::super::draw::Laws;
use super::super::kind::TRADE_UPDATE;
use super::super::session::Session;
use super::trades::{CASH, Chosen, HISTORY, SETTLEMENTS, SHARED};
use crate::run::script::{Outcome, Values};

const CHANGE_EXECUTOR: usize = 6;
const CHANGE_SETTLEMENT: usize = 7;
const CHANGE_CASH: usize = 8;

pub(super) const STATEMENTS: [&str; 9] = [
    SHARED[0],
    SHARED[1],
    SHARED[2],
    SHARED[3],
    SHARED[4],
    SHARED[5],
    "update trade set executor = case when executor like '% X %' then replace(executor, ' X ', ' ') \
     else replace(executor, ' ', ' X ') end where id = any($1)",
    "update settlement set kind = case when kind like '% Account' then replace(kind, ' Account', '') \
     when kind like 'Cash%' then 'Cash Account' else 'Margin Account' end where trade = any($1)",
    "update cash_transaction set name = case when name like '% shares of %' then replace(name, ' shares of ', ' Shares of ') \
     else replace(name, ' Shares of ', ' shares of ') end where trade = any($1)",
];

/// The input.
pub(crate) struct TradeUpdate {
    chosen: Chosen,
    /// The statement that changes something.
    change: usize,
}

impl TradeUpdate {
    pub(super) fn draw(laws: &Laws, random: &mut Random) -> TradeUpdate {
        match random.below(100) {
            0..33 => TradeUpdate { chosen: Chosen::numbers(laws, random), change: CHANGE_EXECUTOR },
            33..66 => TradeUpdate { chosen: Chosen::of_account(laws, random), change: CHANGE_SETTLEMENT },
            _ => TradeUpdate { chosen: Chosen::of_security(laws, random), change: CHANGE_CASH },
        }
    }

    pub(super) async fn run(&self, session: &Session) -> Result<Outcome, Error> {
        let (client, statements) = (&session.client, session.of(TRADE_UPDATE));
        let trades = self.chosen.read(session, statements).await?;
        let trades: Values = &[&trades];
        // What is changed is not read once more.
        let read = |place: usize, change: usize| async move {
            match self.change == change {
                true => Ok(Vec::new()),
                false => client.query(&statements[place], trades).await,
            }
        };
        let changed = client.execute(&statements[self.change], trades);
        let others = try_join3(
            read(SETTLEMENTS, CHANGE_SETTLEMENT),
            read(CASH, CHANGE_CASH),
            client.query(&statements[HISTORY], trades),
        );
        try_join3(changed, others, session.commit()).await?;
        Ok(Outcome::COMMITTED)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn trades_are_changed_in_order() {
        let laws = Laws::new(&super::super::super::workload().expect("it is embedded"), 2, 1);
        let mut random = Random::new(1, 1);
        let is_sorted = |update: TradeUpdate| match update.chosen {
            Chosen::Numbers(trades) => trades.is_sorted() && trades.len() == 20,
            Chosen::OfAccount(..) | Chosen::OfSecurity(..) => true,
        };
        assert!((0..1000).all(|_| is_sorted(TradeUpdate::draw(&laws, &mut random))));
    }
}
