//! Order-Status (clause 2.6): a customer, the customer's last order and its lines. Reads only.

use futures_util::future::try_join;
use tier0_world::Random;
use tokio_postgres::Error;

use super::draw::{Customer, Laws, district};
use super::payment::{FIND, middle};
use super::terminal::{Terminal, Values};
use crate::run::script::Outcome;

const FIND_BY_NAME: usize = 0;
const FIND_BY_NUMBER: usize = 1;
const LAST_ORDER: usize = 2;
const LINES: usize = 3;

pub(super) const STATEMENTS: [&str; 4] = [
    FIND,
    "select c_id, c_balance::float8, c_first, c_middle from customer \
     where c_w_id = $1 and c_d_id = $2 and c_id = $3",
    "select o_id, o_entry_d::text, o_carrier_id from orders where o_w_id = $1 and o_d_id = $2 and o_c_id = $3 \
     order by o_id desc limit 1",
    "select ol_i_id, ol_supply_w_id, ol_quantity, ol_amount::float8, ol_delivery_d::text from order_line \
     where ol_w_id = $1 and ol_d_id = $2 and ol_o_id = $3",
];

/// The input.
pub(crate) struct OrderStatus {
    warehouse: i32,
    district: i16,
    customer: Customer,
}

impl OrderStatus {
    pub(super) fn draw(laws: &Laws, random: &mut Random, warehouse: i32) -> OrderStatus {
        OrderStatus { warehouse, district: district(random), customer: laws.named_customer(random) }
    }

    pub(super) async fn run(&self, terminal: &Terminal) -> Result<Outcome, Error> {
        let (client, statements) = (&terminal.client, &terminal.order_status);
        let customer = match &self.customer {
            Customer::LastName(last) => {
                let values: Values = &[&self.warehouse, &self.district, last];
                let find = client.query(&statements[FIND_BY_NAME], values);
                let (_, found) = try_join(terminal.begin(), find).await?;
                middle(found.len()).map_or(0, |place| found[place].get(0))
            }
            Customer::Number(number) => {
                let values: Values = &[&self.warehouse, &self.district, number];
                let find = client.query_one(&statements[FIND_BY_NUMBER], values);
                try_join(terminal.begin(), find).await?;
                *number
            }
        };
        let values: Values = &[&self.warehouse, &self.district, &customer];
        // Every customer of the load has an order.
        let last = client.query_one(&statements[LAST_ORDER], values).await?;
        let number: i32 = last.get(0);
        let values: Values = &[&self.warehouse, &self.district, &number];
        let lines = client.query(&statements[LINES], values);
        try_join(lines, terminal.commit()).await?;
        Ok(Outcome::COMMITTED)
    }
}
