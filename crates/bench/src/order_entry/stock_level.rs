//! Stock-Level (clause 2.8): how many items of the last 20 orders of a district run low. Reads only.

use futures_util::future::try_join;
use tier0_world::Random;
use tokio_postgres::Error;

use super::draw::district;
use super::terminal::{Terminal, Values};
use crate::load::lines::between;
use crate::run::script::Outcome;

const NEXT_ORDER: usize = 0;
const COUNT_LOW: usize = 1;

pub(super) const STATEMENTS: [&str; 2] = [
    "select d_next_o_id from district where d_w_id = $1 and d_id = $2",
    "select count(*) from (select distinct ol_i_id from order_line where ol_w_id = $1 and ol_d_id = $2 \
     and ol_o_id >= $3 - 20 and ol_o_id < $3) as line join stock on s_w_id = $1 and s_i_id = ol_i_id \
     where s_quantity < $4",
];

/// The input.
pub(crate) struct StockLevel {
    warehouse: i32,
    district: i16,
    threshold: i16,
}

impl StockLevel {
    pub(super) fn draw(random: &mut Random, warehouse: i32) -> StockLevel {
        StockLevel { warehouse, district: district(random), threshold: between(random, 10, 20) as i16 }
    }

    pub(super) async fn run(&self, terminal: &Terminal) -> Result<Outcome, Error> {
        let (client, statements) = (&terminal.client, &terminal.stock_level);
        let place: Values = &[&self.warehouse, &self.district];
        let (_, next) = try_join(terminal.begin(), client.query_one(&statements[NEXT_ORDER], place)).await?;
        let next: i32 = next.get(0);
        let values: Values = &[&self.warehouse, &self.district, &next, &self.threshold];
        try_join(client.query_one(&statements[COUNT_LOW], values), terminal.commit()).await?;
        Ok(Outcome::COMMITTED)
    }
}
