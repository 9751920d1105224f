//! New-Order (clause 2.4): an order of 5 to 15 lines, one line in a hundred supplied by another warehouse.

use futures_util::future::{try_join_all, try_join4};
use tier0_world::Random;
use tokio_postgres::Error;

use super::draw::{Laws, district};
use super::schema::ITEMS;
use super::terminal::{Terminal, Values};
use crate::load::lines::between;
use crate::run::script::Outcome;

const TAKE_NUMBER: usize = 0;
const READ_CUSTOMER: usize = 1;
const READ_ITEMS: usize = 2;
const TAKE_STOCK: usize = 3;
const ADD_ORDER: usize = 4;
const ADD_NEW_ORDER: usize = 5;
const ADD_LINES: usize = 6;

pub(super) const STATEMENTS: [&str; 7] = [
    "update district set d_next_o_id = d_next_o_id + 1 where d_w_id = $1 and d_id = $2 \
     returning d_next_o_id - 1, d_tax::float8",
    "select c_discount::float8, c_last, c_credit, w_tax::float8 from customer, warehouse \
     where c_w_id = $1 and c_d_id = $2 and c_id = $3 and w_id = $1",
    "select i_id, (i_price * 100)::int8, i_name, i_data from item where i_id = any($1)",
    // Below ten, the stock is filled up by 91 (clause 2.4.2.2).
    "update stock set s_quantity = s_quantity - $3 + case when s_quantity - $3 >= 10 then 0 else 91 end, \
     s_ytd = s_ytd + $3, s_order_cnt = s_order_cnt + 1, s_remote_cnt = s_remote_cnt + $4 \
     where s_w_id = $1 and s_i_id = $2 returning s_quantity, s_data, (array[s_dist_01, s_dist_02, s_dist_03, s_dist_04, \
     s_dist_05, s_dist_06, s_dist_07, s_dist_08, s_dist_09, s_dist_10])[$5]",
    "insert into orders (o_id, o_d_id, o_w_id, o_c_id, o_entry_d, o_ol_cnt, o_all_local) \
     values ($1, $2, $3, $4, now(), $5, $6)",
    "insert into new_order (no_o_id, no_d_id, no_w_id) values ($1, $2, $3)",
    "insert into order_line (ol_o_id, ol_d_id, ol_w_id, ol_number, ol_i_id, ol_supply_w_id, ol_quantity, ol_amount, \
     ol_dist_info) select $1::int4, $2::int2, $3::int4, number, item, supply, quantity, cents * 0.01, info \
     from unnest($4::int2[], $5::int4[], $6::int4[], $7::int2[], $8::int8[], $9::text[]) \
     as line (number, item, supply, quantity, cents, info)",
];

/// An item that does not exist (clause 2.4.1.5).
const NO_ITEM: i32 = ITEMS + 1;

/// A line of an order.
struct Line {
    item: i32,
    supply: i32,
    quantity: i16,
}

/// The input.
pub(crate) struct NewOrder {
    warehouse: i32,
    district: i16,
    customer: i32,
    /// By supplying warehouse and item, as they are changed: so that two orders do not wait for each other in a circle.
    lines: Vec<Line>,
}

impl NewOrder {
    pub(super) fn draw(laws: &Laws, random: &mut Random, warehouse: i32) -> NewOrder {
        let (district, customer) = (district(random), laws.customer(random));
        let count = between(random, 5, 15);
        let is_wrong = random.below(100) == 0;
        let mut lines: Vec<Line> = (1..=count)
            .map(|number| {
                let item = if is_wrong && number == count { NO_ITEM } else { laws.item(random) };
                let is_remote = random.below(100) == 0;
                let supply = if is_remote { laws.elsewhere(random, warehouse) } else { warehouse };
                Line { item, supply, quantity: between(random, 1, 10) as i16 }
            })
            .collect();
        lines.sort_by_key(|line| (line.supply, line.item));
        NewOrder { warehouse, district, customer, lines }
    }

    pub(super) async fn run(&self, terminal: &Terminal) -> Result<Outcome, Error> {
        let (client, statements) = (&terminal.client, &terminal.new_order);
        let mut items: Vec<i32> = self.lines.iter().map(|line| line.item).collect();
        items.sort_unstable();
        items.dedup();
        let place: Values = &[&self.warehouse, &self.district];
        let customer: Values = &[&self.warehouse, &self.district, &self.customer];
        let wanted: Values = &[&items];
        let (_, number, _, found) = try_join4(
            terminal.begin(),
            client.query_one(&statements[TAKE_NUMBER], place),
            client.query_one(&statements[READ_CUSTOMER], customer),
            client.query(&statements[READ_ITEMS], wanted),
        )
        .await?;
        if found.len() < items.len() {
            terminal.roll_back().await?;
            return Ok(Outcome::RolledBack);
        }
        let prices: Vec<(i32, i64)> = found.iter().map(|row| (row.get(0), row.get(1))).collect();
        let price =
            |item: i32| prices.iter().find(|(found, _)| *found == item).map_or(0, |(_, cents)| *cents);
        let taken = try_join_all(self.lines.iter().map(|line| self.take(terminal, line))).await?;

        let number: i32 = number.get(0);
        let (count, is_local) = (self.lines.len() as i16, i16::from(self.is_local()));
        let numbers: Vec<i16> = (1..=count).collect();
        let items: Vec<i32> = self.lines.iter().map(|line| line.item).collect();
        let supplies: Vec<i32> = self.lines.iter().map(|line| line.supply).collect();
        let quantities: Vec<i16> = self.lines.iter().map(|line| line.quantity).collect();
        let amounts: Vec<i64> =
            self.lines.iter().map(|line| i64::from(line.quantity) * price(line.item)).collect();
        let (order, lines): (Values, Values) = (
            &[&number, &self.district, &self.warehouse, &self.customer, &count, &is_local],
            &[
                &number,
                &self.district,
                &self.warehouse,
                &numbers,
                &items,
                &supplies,
                &quantities,
                &amounts,
                &taken,
            ],
        );
        let new_order: Values = &[&number, &self.district, &self.warehouse];
        try_join4(
            client.execute(&statements[ADD_ORDER], order),
            client.execute(&statements[ADD_NEW_ORDER], new_order),
            client.execute(&statements[ADD_LINES], lines),
            terminal.commit(),
        )
        .await?;
        Ok(Outcome::COMMITTED)
    }

    /// Takes the goods of a line from the stock; gives the district's text of it.
    async fn take(&self, terminal: &Terminal, line: &Line) -> Result<String, Error> {
        let is_remote = i32::from(line.supply != self.warehouse);
        let district = i32::from(self.district);
        let values: Values = &[&line.supply, &line.item, &line.quantity, &is_remote, &district];
        let row = terminal.client.query_one(&terminal.new_order[TAKE_STOCK], values).await?;
        Ok(row.get(2))
    }

    fn is_local(&self) -> bool {
        self.lines.iter().all(|line| line.supply == self.warehouse)
    }
}

#[cfg(test)]
mod tests {
    use tier0_database::workload::Workload;

    use super::super::draw::Home;
    use super::*;

    #[test]
    fn orders_are_as_the_specification_has_them() {
        let workload = Workload::find("order-entry", &Default::default()).expect("it is embedded");
        let laws = Laws::new(&workload, None, Home::Fixed, 5);
        let mut random = Random::new(1, 1);
        let orders: Vec<NewOrder> = (0..50_000).map(|_| NewOrder::draw(&laws, &mut random, 2)).collect();
        let share = |is: &dyn Fn(&NewOrder) -> bool| {
            orders.iter().filter(|order| is(order)).count() as f64 / orders.len() as f64
        };
        let wrong = share(&|order| order.lines.iter().any(|line| line.item == NO_ITEM));
        assert!((0.008..0.012).contains(&wrong), "{wrong} are rolled back");
        // The modelled workload's file has 9.6 %.
        let remote = share(&|order| !order.is_local());
        assert!((0.09..0.102).contains(&remote), "{remote} have a line from elsewhere");
        let lines: usize = orders.iter().map(|order| order.lines.len()).sum();
        let mean = lines as f64 / orders.len() as f64;
        assert!((9.95..10.05).contains(&mean), "{mean} lines");
        assert!(orders.iter().all(|order| (5..=15).contains(&order.lines.len())));
        let is_sorted = |order: &NewOrder| order.lines.is_sorted_by_key(|line| (line.supply, line.item));
        assert!(orders.iter().all(is_sorted));
    }
}
