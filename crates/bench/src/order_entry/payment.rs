//! Payment (clause 2.5): books an amount for a customer, in 15 % of all cases of another warehouse.

use futures_util::future::{Either, try_join3, try_join4};
use tier0_world::Random;
use tokio_postgres::Error;

use super::draw::{Customer, Laws, district};
use super::terminal::{Terminal, Values};
use crate::load::lines::between;
use crate::run::script::Outcome;

const PAY_WAREHOUSE: usize = 0;
const PAY_DISTRICT: usize = 1;
const PAY_CUSTOMER: usize = 2;
const ADD_HISTORY: usize = 3;
const FIND_BY_NAME: usize = 4;

pub(super) const STATEMENTS: [&str; 5] = [
    "update warehouse set w_ytd = w_ytd + $2::int8 * 0.01 where w_id = $1 \
     returning w_name, w_street_1, w_street_2, w_city, w_state, w_zip",
    "update district set d_ytd = d_ytd + $3::int8 * 0.01 where d_w_id = $1 and d_id = $2 \
     returning d_name, d_street_1, d_street_2, d_city, d_state, d_zip",
    // Of a customer with bad credit, the data remembers the payment (clause 2.5.2.2).
    "update customer set c_balance = c_balance - $4::int8 * 0.01, c_ytd_payment = c_ytd_payment + $4::int8 * 0.01, \
     c_payment_cnt = c_payment_cnt + 1, c_data = case when c_credit = 'BC' then left(format('%s %s %s %s %s %s|', \
     c_id, c_d_id, c_w_id, $6::int2, $5::int4, $4::int8) || c_data, 500) else c_data end \
     where c_w_id = $1 and c_d_id = $2 and c_id = $3 \
     returning c_first, c_middle, c_last, c_street_1, c_city, c_credit, c_discount::float8, c_balance::float8",
    "insert into history (h_c_id, h_c_d_id, h_c_w_id, h_d_id, h_w_id, h_date, h_amount, h_data) \
     values ($1, $2, $3, $4, $5, now(), $6::int8 * 0.01, $7)",
    FIND,
];

/// Customers of a last name, of whom the middle one is meant (clause 2.5.2.2).
pub(super) const FIND: &str = "select c_id, c_balance::float8, c_first, c_middle from customer \
     where c_w_id = $1 and c_d_id = $2 and c_last = $3 order by c_first";

/// The input.
pub(crate) struct Payment {
    warehouse: i32,
    district: i16,
    /// The customer's.
    of_warehouse: i32,
    of_district: i16,
    customer: Customer,
    cents: i64,
}

impl Payment {
    pub(super) fn draw(laws: &Laws, random: &mut Random, warehouse: i32) -> Payment {
        let own = district(random);
        let (of_warehouse, of_district) = match random.chance(0.15) {
            true => (laws.elsewhere(random, warehouse), district(random)),
            false => (warehouse, own),
        };
        let customer = laws.named_customer(random);
        let cents = between(random, 100, 500_000);
        Payment { warehouse, district: own, of_warehouse, of_district, customer, cents }
    }

    pub(super) async fn run(&self, terminal: &Terminal) -> Result<Outcome, Error> {
        let (client, statements) = (&terminal.client, &terminal.payment);
        let warehouse: Values = &[&self.warehouse, &self.cents];
        let district: Values = &[&self.warehouse, &self.district, &self.cents];
        let find = match &self.customer {
            Customer::Number(number) => Either::Left(std::future::ready(Ok(*number))),
            Customer::LastName(last) => Either::Right(self.find(terminal, last)),
        };
        let (_, warehouse, district, customer) = try_join4(
            terminal.begin(),
            client.query_one(&statements[PAY_WAREHOUSE], warehouse),
            client.query_one(&statements[PAY_DISTRICT], district),
            find,
        )
        .await?;
        let data = format!("{}    {}", warehouse.get::<_, &str>(0), district.get::<_, &str>(0));
        let paid: Values =
            &[&self.of_warehouse, &self.of_district, &customer, &self.cents, &self.warehouse, &self.district];
        let history: Values = &[
            &customer,
            &self.of_district,
            &self.of_warehouse,
            &self.district,
            &self.warehouse,
            &self.cents,
            &data,
        ];
        try_join3(
            client.query_one(&statements[PAY_CUSTOMER], paid),
            client.execute(&statements[ADD_HISTORY], history),
            terminal.commit(),
        )
        .await?;
        Ok(Outcome::COMMITTED)
    }

    async fn find(&self, terminal: &Terminal, last: &str) -> Result<i32, Error> {
        let values: Values = &[&self.of_warehouse, &self.of_district, &last];
        let found = terminal.client.query(&terminal.payment[FIND_BY_NAME], values).await?;
        Ok(middle(found.len()).map_or(0, |place| found[place].get(0)))
    }
}

/// The place of the middle one of so many: n/2 rounded up, counted from 1; none of none, which no loaded name has.
pub(super) fn middle(count: usize) -> Option<usize> {
    count.div_ceil(2).checked_sub(1)
}

#[cfg(test)]
mod tests {
    use tier0_database::workload::Workload;

    use super::super::draw::Home;
    use super::*;

    #[test]
    fn the_middle_is_rounded_up() {
        assert_eq!([0, 1, 2, 3, 4, 5].map(middle), [None, Some(0), Some(0), Some(1), Some(1), Some(2)]);
    }

    #[test]
    fn payments_are_as_the_specification_has_them() {
        let workload = Workload::find("order-entry", &Default::default()).expect("it is embedded");
        let laws = Laws::new(&workload, None, Home::Fixed, 5);
        let mut random = Random::new(1, 1);
        let payments: Vec<Payment> = (0..50_000).map(|_| Payment::draw(&laws, &mut random, 2)).collect();
        let share = |is: &dyn Fn(&Payment) -> bool| {
            payments.iter().filter(|payment| is(payment)).count() as f64 / payments.len() as f64
        };
        let remote = share(&|payment| payment.of_warehouse != payment.warehouse);
        assert!((0.145..0.155).contains(&remote), "{remote} are of a customer of another warehouse");
        let named = share(&|payment| matches!(payment.customer, Customer::LastName(_)));
        assert!((0.59..0.61).contains(&named), "{named} are by last name");
        assert!(payments.iter().all(|payment| (100..=500_000).contains(&payment.cents)));
    }
}
