//! The rows of a warehouse at first (clause 4.3.3.1), from a seed.
//!
//! A table is made in parts, each from a random stream of its own, so that a load can begin with any of them and makes the same
//! rows again. Orders and their lines draw the number of lines from one stream.

use tier0_database::workload::Drawn;
use tier0_world::Random;

use super::draw::{loaded_name, names_of_load};
use super::names::last_name;
use super::schema::{CUSTOMERS, DELIVERED, DISTRICTS, ITEMS, ORDERS};
use crate::BenchError;
use crate::load::lines::{Lines, between};
use crate::load::{Filled, Rows};

/// Stock or item rows of a part.
const ROWS_OF_PART: i32 = 1000;
/// The time of the load, in the words of PostgreSQL.
const NOW: &str = "now";
/// Amounts at first, in cents: of a warehouse's payments, of a district's, of each customer's only payment.
const PAID_WAREHOUSE: i64 = 30_000_000;
const PAID_DISTRICT: i64 = 3_000_000;
const PAID_CUSTOMER: i64 = 1000;
const CREDIT_LIMIT: i64 = 5_000_000;

/// A table of a warehouse, in the order of loading.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Source {
    Item,
    Warehouse,
    District,
    Customer,
    History,
    Orders,
    NewOrder,
    OrderLine,
    Stock,
}

impl Source {
    /// Tables of a warehouse; items are loaded once.
    pub(crate) const OF_WAREHOUSE: [Source; 8] = [
        Source::Warehouse,
        Source::District,
        Source::Customer,
        Source::History,
        Source::Orders,
        Source::NewOrder,
        Source::OrderLine,
        Source::Stock,
    ];

    /// The table and the columns that rows have, in order.
    pub(crate) fn target(self) -> &'static str {
        match self {
            Source::Item => "item (i_id, i_im_id, i_name, i_price, i_data)",
            Source::Warehouse => {
                "warehouse (w_id, w_name, w_street_1, w_street_2, w_city, w_state, w_zip, w_tax, w_ytd)"
            }
            Source::District => {
                "district (d_id, d_w_id, d_name, d_street_1, d_street_2, d_city, d_state, d_zip, d_tax, d_ytd, \
                 d_next_o_id)"
            }
            Source::Customer => {
                "customer (c_id, c_d_id, c_w_id, c_last, c_middle, c_first, c_street_1, c_street_2, c_city, c_state, \
                 c_zip, c_phone, c_since, c_credit, c_credit_lim, c_discount, c_balance, c_ytd_payment, c_payment_cnt, \
                 c_delivery_cnt, c_data)"
            }
            Source::History => {
                "history (h_c_id, h_c_d_id, h_c_w_id, h_d_id, h_w_id, h_date, h_amount, h_data)"
            }
            Source::Orders => {
                "orders (o_id, o_c_id, o_d_id, o_w_id, o_entry_d, o_carrier_id, o_ol_cnt, o_all_local)"
            }
            Source::NewOrder => "new_order (no_o_id, no_d_id, no_w_id)",
            Source::OrderLine => {
                "order_line (ol_o_id, ol_d_id, ol_w_id, ol_number, ol_i_id, ol_supply_w_id, ol_delivery_d, ol_quantity, \
                 ol_amount, ol_dist_info)"
            }
            Source::Stock => {
                "stock (s_i_id, s_w_id, s_quantity, s_dist_01, s_dist_02, s_dist_03, s_dist_04, s_dist_05, s_dist_06, \
                 s_dist_07, s_dist_08, s_dist_09, s_dist_10, s_ytd, s_order_cnt, s_remote_cnt, s_data)"
            }
        }
    }

    /// Parts of the table.
    pub(crate) fn parts(self) -> i32 {
        match self {
            Source::Item | Source::Stock => ITEMS / ROWS_OF_PART,
            Source::Warehouse | Source::District | Source::NewOrder => 1,
            _ => i32::from(DISTRICTS),
        }
    }
}

/// Makes rows.
pub(crate) struct OrderEntryRows {
    seed: u64,
    names: Drawn,
    lines: Lines,
}

impl OrderEntryRows {
    /// Those of a seed.
    ///
    /// # Errors
    /// The modelled workload cannot be read.
    pub(crate) fn new(seed: u64) -> Result<OrderEntryRows, BenchError> {
        let lines = Lines::new(&mut Random::new(seed, u64::MAX));
        Ok(OrderEntryRows { seed, names: names_of_load(&super::workload()?), lines })
    }

    /// The rows of a part, in COPY's text form.
    fn rows(&mut self, source: Source, warehouse: i32, part: i32) -> Vec<u8> {
        let mut random = self.stream(source, warehouse, part);
        let random = &mut random;
        // Tables with a part for each district.
        let district = part as i16 + 1;
        match source {
            Source::Item => {
                (0..ROWS_OF_PART).for_each(|row| self.item(random, part * ROWS_OF_PART + row + 1))
            }
            Source::Warehouse => self.warehouse(random, warehouse),
            Source::District => (1..=DISTRICTS).for_each(|number| self.district(random, warehouse, number)),
            Source::Customer => self.customers(random, warehouse, district),
            Source::History => self.history(random, warehouse, district),
            Source::Orders => self.orders(random, warehouse, district),
            Source::NewOrder => self.new_orders(warehouse),
            Source::OrderLine => self.order_lines(random, warehouse, district),
            Source::Stock => {
                (0..ROWS_OF_PART)
                    .for_each(|row| self.stock(random, warehouse, part * ROWS_OF_PART + row + 1));
            }
        }
        self.lines.take()
    }

    fn stream(&self, source: Source, warehouse: i32, part: i32) -> Random {
        Random::new(self.seed, (warehouse as u64) << 32 | (source as u64) << 16 | part as u64)
    }

    fn item(&mut self, random: &mut Random, item: i32) {
        let (image, price) = (between(random, 1, 10_000), between(random, 100, 10_000));
        self.lines.field(item).field(image).letters(random, 14, 24).cents(price).data(random, 26, 50).end();
    }

    fn warehouse(&mut self, random: &mut Random, warehouse: i32) {
        let tax = between(random, 0, 2000);
        let lines = self.lines.field(warehouse).letters(random, 6, 10).address(random);
        lines.rate(tax).cents(PAID_WAREHOUSE).end();
    }

    fn district(&mut self, random: &mut Random, warehouse: i32, district: i16) {
        let tax = between(random, 0, 2000);
        let lines = self.lines.field(district).field(warehouse).letters(random, 6, 10).address(random);
        lines.rate(tax).cents(PAID_DISTRICT).field(ORDERS + 1).end();
    }

    fn customers(&mut self, random: &mut Random, warehouse: i32, district: i16) {
        for customer in 1..=CUSTOMERS {
            let last = last_name(loaded_name(random, &self.names, customer));
            let credit = if random.below(10) == 0 { "BC" } else { "GC" };
            let (discount, phone) = (between(random, 0, 5000), random.below(10_000_000_000_000_000));
            let lines = self.lines.field(customer).field(district).field(warehouse).field(last).field("OE");
            let lines = lines.letters(random, 8, 16).address(random).field(format_args!("{phone:016}"));
            let lines = lines.field(NOW).field(credit).cents(CREDIT_LIMIT).rate(discount);
            let lines = lines.cents(-PAID_CUSTOMER).cents(PAID_CUSTOMER).field(1).field(0);
            lines.letters(random, 300, 500).end();
        }
    }

    fn history(&mut self, random: &mut Random, warehouse: i32, district: i16) {
        for customer in 1..=CUSTOMERS {
            let lines = self.lines.field(customer).field(district).field(warehouse);
            let lines = lines.field(district).field(warehouse).field(NOW).cents(PAID_CUSTOMER);
            lines.letters(random, 12, 24).end();
        }
    }

    fn orders(&mut self, random: &mut Random, warehouse: i32, district: i16) {
        let counts = self.line_counts(warehouse, district);
        for ((order, count), customer) in (1..).zip(counts).zip(permutation(random, ORDERS)) {
            let lines = self.lines.field(order).field(customer).field(district).field(warehouse).field(NOW);
            let lines = match order <= DELIVERED {
                true => lines.field(between(random, 1, 10)),
                false => lines.null(),
            };
            lines.field(count).field(1).end();
        }
    }

    fn new_orders(&mut self, warehouse: i32) {
        for district in 1..=DISTRICTS {
            for order in DELIVERED + 1..=ORDERS {
                self.lines.field(order).field(district).field(warehouse).end();
            }
        }
    }

    fn order_lines(&mut self, random: &mut Random, warehouse: i32, district: i16) {
        let counts = self.line_counts(warehouse, district);
        for (order, count) in (1..).zip(counts) {
            let is_delivered = order <= DELIVERED;
            for number in 1..=count {
                let item = between(random, 1, i64::from(ITEMS));
                let lines = self.lines.field(order).field(district).field(warehouse).field(number);
                let lines = lines.field(item).field(warehouse);
                let lines = if is_delivered { lines.field(NOW) } else { lines.null() };
                let amount = if is_delivered { 0 } else { between(random, 1, 999_999) };
                lines.field(5).cents(amount).letters(random, 24, 24).end();
            }
        }
    }

    fn stock(&mut self, random: &mut Random, warehouse: i32, item: i32) {
        let quantity = between(random, 10, 100);
        let mut lines = self.lines.field(item).field(warehouse).field(quantity);
        for _ in 0..DISTRICTS {
            lines = lines.letters(random, 24, 24);
        }
        lines.field(0).field(0).field(0).data(random, 26, 50).end();
    }

    /// Lines of each order of a district at first.
    fn line_counts(&self, warehouse: i32, district: i16) -> Vec<i64> {
        // A part that neither table has.
        let mut random = self.stream(Source::Orders, warehouse, 0x100 + i32::from(district));
        (0..ORDERS).map(|_| between(&mut random, 5, 15)).collect()
    }
}

impl Rows for OrderEntryRows {
    fn tables(&self, piece: i32) -> Vec<Filled> {
        let filled = |source: &Source| Filled {
            copy: format!("copy {} from stdin", source.target()),
            parts: source.parts(),
        };
        sources_of(piece).iter().map(filled).collect()
    }

    fn part(&mut self, piece: i32, table: usize, part: i32) -> Vec<u8> {
        self.rows(sources_of(piece)[table], piece, part)
    }
}

/// Pieces of so many warehouses: one each, and before them the items.
pub(crate) fn pieces(warehouses: u32) -> i32 {
    warehouses as i32 + 1
}

/// The tables of a piece: items, or those of the warehouse of this number.
fn sources_of(piece: i32) -> &'static [Source] {
    match piece {
        0 => &[Source::Item],
        _ => &Source::OF_WAREHOUSE,
    }
}

/// The numbers from 1 in a random order (Fisher and Yates).
fn permutation(random: &mut Random, count: i32) -> Vec<i32> {
    let mut numbers: Vec<i32> = (1..=count).collect();
    for place in (1..numbers.len()).rev() {
        numbers.swap(place, random.below(place as u64 + 1) as usize);
    }
    numbers
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rows() -> OrderEntryRows {
        OrderEntryRows::new(7).expect("the workload is embedded")
    }

    fn fields(text: &[u8]) -> Vec<Vec<String>> {
        let text = std::str::from_utf8(text).expect("text");
        text.lines().map(|line| line.split('\t').map(str::to_owned).collect()).collect()
    }

    #[test]
    fn every_table_has_as_many_fields_as_columns() {
        let mut rows = rows();
        for source in Source::OF_WAREHOUSE.into_iter().chain([Source::Item]) {
            let columns = source.target().split(',').count();
            let made = fields(&rows.rows(source, 3, 0));
            assert!(made.iter().all(|row| row.len() == columns), "{}", source.target());
        }
    }

    #[test]
    fn a_part_is_the_same_again_and_not_that_of_another_warehouse() {
        let part = |warehouse| rows().rows(Source::Stock, warehouse, 5);
        assert_eq!(part(1), part(1));
        assert_ne!(part(1), part(2));
    }

    /// Conditions 6 and 7 of the specification, and one order of each customer.
    #[test]
    fn orders_and_their_lines_agree() {
        let mut rows = rows();
        let orders = fields(&rows.rows(Source::Orders, 2, 4));
        let lines = fields(&rows.rows(Source::OrderLine, 2, 4));
        assert_eq!(orders.len() as i32, ORDERS);
        for order in &orders {
            let own: Vec<_> = lines.iter().filter(|line| line[0] == order[0]).collect();
            assert_eq!(own.len().to_string(), order[6]);
            assert!(own.iter().all(|line| (line[6] == "\\N") == (order[5] == "\\N")));
        }
        let mut customers: Vec<i32> =
            orders.iter().map(|order| order[1].parse().expect("a number")).collect();
        customers.sort_unstable();
        assert_eq!(customers, (1..=CUSTOMERS).collect::<Vec<_>>());
    }
}
