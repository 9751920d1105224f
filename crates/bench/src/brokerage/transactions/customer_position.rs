//! Customer-Position: a customer, by tax number in half of all cases, and what each account is worth; in half of all cases with the
//! history of the 10 newest trades of an account. Reads only.

use futures_util::future::try_join;
use tier0_world::Random;
use tokio_postgres::Error;

use super::super::draw::Laws;
use super::super::kind::CUSTOMER_POSITION;
use super::super::layout::tax_id;
use super::super::session::Session;
use crate::run::script::{Outcome, Values};

const BY_TAX_ID: usize = 0;
const BY_NUMBER: usize = 1;
const WORTH: usize = 2;
const HISTORY: usize = 3;

pub(super) const STATEMENTS: [&str; 4] = [
    "select id, status, last_name, first_name, middle, gender, tier, born::text, phone_1, phone_2, phone_3, mail_1, mail_2 \
     from customer where tax_id = $1",
    "select id, status, last_name, first_name, middle, gender, tier, born::text, phone_1, phone_2, phone_3, mail_1, mail_2 \
     from customer where id = $1",
    "select a.id, a.balance, coalesce(sum(h.quantity::int8 * l.price), 0)::int8 as worth from account a \
     left join holding_summary h on h.account = a.id left join last_trade l on l.symbol = h.symbol \
     where a.customer = $1 group by a.id, a.balance order by worth limit 10",
    "select t.id, t.symbol, t.quantity, state.name, h.at::text from (select id, symbol, quantity from trade \
     where account = $1 order by at desc limit 10) as t join trade_history h on h.trade = t.id \
     join status_type state on state.id = h.status order by h.at desc limit 30",
];

/// The input.
pub(crate) struct CustomerPosition {
    customer: i64,
    by_tax_id: bool,
    /// Which of the accounts' histories.
    history_of: Option<u64>,
}

impl CustomerPosition {
    pub(super) fn draw(laws: &Laws, random: &mut Random) -> CustomerPosition {
        let customer = laws.customer(random);
        let accounts = laws.accounts_of(customer);
        CustomerPosition {
            customer,
            by_tax_id: random.chance(0.5),
            history_of: random.chance(0.5).then(|| random.below(accounts)),
        }
    }

    pub(super) async fn run(&self, session: &Session) -> Result<Outcome, Error> {
        let (client, statements) = (&session.client, session.of(CUSTOMER_POSITION));
        let tax_id = tax_id(self.customer as u64);
        let (by, value): (usize, Values) = match self.by_tax_id {
            true => (BY_TAX_ID, &[&tax_id]),
            false => (BY_NUMBER, &[&self.customer]),
        };
        let (_, found) = try_join(session.begin(), client.query_one(&statements[by], value)).await?;
        let customer: i64 = found.get(0);
        let worth = client.query(&statements[WORTH], &[&customer]).await?;
        match self.history_of.and_then(|place| worth.get(place as usize)) {
            None => session.commit().await?,
            Some(account) => {
                let account: i64 = account.get(0);
                let account: Values = &[&account];
                try_join(client.query(&statements[HISTORY], account), session.commit()).await?;
            }
        }
        Ok(Outcome::COMMITTED)
    }
}
