//! Delivery (clause 2.7): the oldest new order of each district of a warehouse, in one transaction.
//!
//! Deliveries of one warehouse run one after the other, by an advisory lock: two of them would want the same orders. The
//! specification runs them from a queue.

use futures_util::future::{try_join, try_join_all};
use tier0_world::Random;
use tokio_postgres::Error;

use super::schema::DISTRICTS;
use super::terminal::{Terminal, Values};
use crate::load::lines::between;
use crate::run::script::Outcome;

const TAKE_TURN: usize = 0;
const TAKE_OLDEST: usize = 1;
const SET_CARRIER: usize = 2;
const SET_DELIVERED: usize = 3;
const CHARGE: usize = 4;

pub(super) const STATEMENTS: [&str; 5] = [
    // The first number keeps other programs' locks apart.
    "select pg_advisory_xact_lock(7130, $1)",
    "delete from new_order where no_w_id = $1 and no_d_id = $2 and no_o_id = \
     (select no_o_id from new_order where no_w_id = $1 and no_d_id = $2 order by no_o_id limit 1) returning no_o_id",
    "update orders set o_carrier_id = $4 where o_w_id = $1 and o_d_id = $2 and o_id = $3 returning o_c_id",
    "with line as (update order_line set ol_delivery_d = now() where ol_w_id = $1 and ol_d_id = $2 and ol_o_id = $3 \
     returning ol_amount) select (coalesce(sum(ol_amount), 0) * 100)::int8 from line",
    "update customer set c_balance = c_balance + $4::int8 * 0.01, c_delivery_cnt = c_delivery_cnt + 1 \
     where c_w_id = $1 and c_d_id = $2 and c_id = $3",
];

/// The input.
pub(crate) struct Delivery {
    warehouse: i32,
    carrier: i16,
}

impl Delivery {
    pub(super) fn draw(random: &mut Random, warehouse: i32) -> Delivery {
        Delivery { warehouse, carrier: between(random, 1, 10) as i16 }
    }

    pub(super) async fn run(&self, terminal: &Terminal) -> Result<Outcome, Error> {
        let (client, statements) = (&terminal.client, &terminal.delivery);
        let turn: Values = &[&self.warehouse];
        try_join(terminal.begin(), client.query_one(&statements[TAKE_TURN], turn)).await?;
        let oldest =
            try_join_all((1..=DISTRICTS).map(|district| self.take_oldest(terminal, district))).await?;
        let orders: Vec<(i16, i32)> = oldest.into_iter().flatten().collect();
        let charges = try_join_all(orders.iter().map(|order| self.deliver(terminal, *order))).await?;
        let charges = charges.into_iter().zip(&orders);
        let charges = charges.map(|((customer, cents), (district, _))| async move {
            let values: Values = &[&self.warehouse, district, &customer, &cents];
            client.execute(&statements[CHARGE], values).await
        });
        try_join(try_join_all(charges), terminal.commit()).await?;
        Ok(Outcome::Committed { missed: DISTRICTS as u32 - orders.len() as u32 })
    }

    /// The district and the number of its oldest new order, which is none afterwards.
    async fn take_oldest(&self, terminal: &Terminal, district: i16) -> Result<Option<(i16, i32)>, Error> {
        let values: Values = &[&self.warehouse, &district];
        let row = terminal.client.query_opt(&terminal.delivery[TAKE_OLDEST], values).await?;
        Ok(row.map(|row| (district, row.get(0))))
    }

    /// Marks an order as delivered; its customer and its amount in cents.
    async fn deliver(&self, terminal: &Terminal, (district, order): (i16, i32)) -> Result<(i32, i64), Error> {
        let carried: Values = &[&self.warehouse, &district, &order, &self.carrier];
        let delivered: Values = &[&self.warehouse, &district, &order];
        let (customer, cents) = try_join(
            terminal.client.query_one(&terminal.delivery[SET_CARRIER], carried),
            terminal.client.query_one(&terminal.delivery[SET_DELIVERED], delivered),
        )
        .await?;
        Ok((customer.get(0), cents.get(0)))
    }
}
