//! What always holds in an order-entry database, whatever ran and whenever it was killed: the consistency conditions of the
//! specification (clause 3.3.2) and some of stock and payments, which it does not have.
//!
//! Deliveries and stock are counted from the load on: 2,100 orders of a district are delivered at first, and orders up to 3,000 took no stock.

use super::schema::{CUSTOMERS, DELIVERED, DISTRICTS, ITEMS, ORDERS};
use crate::load::condition::Condition;
use crate::load::schema::RECORD;

/// A number for each district, from a table grouped by its own columns.
fn by_district(found: &str, expected: &str, sources: [&str; 2]) -> String {
    format!(
        "select array[d_w_id, d_id], {found}, {expected} from district left join ({}) as a on a.w = d_w_id and a.d = d_id \
         left join ({}) as b on b.w = d_w_id and b.d = d_id",
        sources[0], sources[1]
    )
}

/// The same for each warehouse.
fn by_warehouse(found: &str, expected: &str, source: &str) -> String {
    format!("select array[w_id], {found}, {expected} from warehouse left join ({source}) as a on a.w = w_id")
}

/// No second source.
const NO_OTHER: &str = "select 0 as w, 0 as d where false";

/// Columns of which nothing follows from others.
pub(crate) const NOT_COVERED: &str = "names, addresses, credit, discounts and taxes; names, prices and data of items; item numbers, \
    positions and district data of order lines; quantities, remote orders and data of stock; carriers, dates and times";

/// All conditions, the quickest first.
pub(crate) fn all() -> Vec<Condition> {
    let condition = |name, text, place, sql| Condition { name, text, place, sql };
    let orders = "select o_w_id as w, o_d_id as d, count(*) as n, max(o_id) as last, sum(o_ol_cnt) as lines \
                  from orders group by 1, 2";
    let new_orders = "select no_w_id as w, no_d_id as d, count(*) as n, max(no_o_id) as last, min(no_o_id) as first \
                      from new_order group by 1, 2";
    let lines = "select ol_w_id as w, ol_d_id as d, count(*) as n from order_line group by 1, 2";
    let customers = "select c_w_id as w, c_d_id as d, count(*) as n, sum(c_payment_cnt) as payments, \
                     sum(c_delivery_cnt) as deliveries from customer group by 1, 2";
    let stock = "select s_w_id as w, count(*) as n, sum(s_ytd) as quantity, sum(s_order_cnt) as lines from stock group by 1";
    let taken = format!(
        "select ol_supply_w_id as w, count(*) as n, sum(ol_quantity) as quantity from order_line where ol_o_id > {ORDERS} \
         group by 1"
    );
    let amounts = "select ol_w_id as w, ol_d_id as d, ol_o_id as o, count(*) as n, count(ol_delivery_d) as delivered, \
                   sum(ol_amount) filter (where ol_delivery_d is not null) as amount from order_line group by 1, 2, 3";
    let delivered = format!(
        "select o_w_id as w, o_d_id as d, o_c_id as c, sum(amount) as amount from orders join ({amounts}) as line \
         on line.w = o_w_id and line.d = o_d_id and line.o = o_id group by 1, 2, 3"
    );
    let by_customer = |found: &str, expected: &str| {
        format!(
            "select array[c_w_id, c_d_id, c_id], {found}, {expected} from customer left join ({delivered}) as a \
             on a.w = c_w_id and a.d = c_d_id and a.c = c_id left join (select h_c_w_id as w, h_c_d_id as d, h_c_id as c, \
             sum(h_amount) as paid from history group by 1, 2, 3) as b on b.w = c_w_id and b.d = c_d_id and b.c = c_id"
        )
    };
    vec![
        condition(
            "rows",
            "as many items, warehouses, districts, customers and stock rows as were loaded",
            "warehouse (0: items, number of warehouses)",
            format!(
                "select array[0], count(*), {ITEMS}::bigint from item union all \
                 select array[0], (select count(*) from warehouse), scale::bigint from {RECORD} union all \
                 select array[w_id], a.n + b.n + c.n, {}::bigint from warehouse \
                 left join (select d_w_id as w, count(*) as n from district group by 1) as a on a.w = w_id \
                 left join (select c_w_id as w, count(*) as n from customer group by 1) as b on b.w = w_id \
                 left join (select s_w_id as w, count(*) as n from stock group by 1) as c on c.w = w_id",
                i32::from(DISTRICTS) * (CUSTOMERS + 1) + ITEMS
            ),
        ),
        condition(
            "warehouse-ytd",
            "W_YTD = sum of D_YTD (condition 1)",
            "warehouse",
            by_warehouse("w_ytd", "a.ytd", "select d_w_id as w, sum(d_ytd) as ytd from district group by 1"),
        ),
        condition(
            "next-order",
            "D_NEXT_O_ID - 1 = the highest O_ID (condition 2)",
            "warehouse/district",
            by_district("d_next_o_id - 1", "a.last", [orders, NO_OTHER]),
        ),
        condition(
            "newest-order",
            "the highest NO_O_ID, where there is one, is the highest O_ID (condition 2)",
            "warehouse/district",
            by_district("coalesce(b.last, a.last)", "a.last", [orders, new_orders]),
        ),
        condition(
            "new-orders",
            "NO_O_ID has no gaps (condition 3)",
            "warehouse/district",
            by_district("a.last - a.first + 1", "a.n", [new_orders, NO_OTHER]),
        ),
        condition(
            "orders",
            "O_ID has no gaps: as many orders as the highest O_ID",
            "warehouse/district",
            by_district("a.n", "a.last", [orders, NO_OTHER]),
        ),
        condition(
            "order-lines",
            "sum of O_OL_CNT = number of order lines (condition 4)",
            "warehouse/district",
            by_district("a.lines", "b.n", [orders, lines]),
        ),
        condition(
            "undelivered",
            "an order has no carrier exactly if it is a new order (condition 5)",
            "warehouse/district/order",
            "select array[coalesce(o_w_id, no_w_id), coalesce(o_d_id, no_d_id), coalesce(o_id, no_o_id)], \
             (o_id is not null)::int, (no_o_id is not null)::int from (select * from orders where o_carrier_id is null) as o \
             full join new_order on no_w_id = o_w_id and no_d_id = o_d_id and no_o_id = o_id"
                .to_owned(),
        ),
        condition(
            "lines-of-orders",
            "O_OL_CNT = number of lines of this order (condition 6)",
            "warehouse/district/order",
            format!(
                "select array[coalesce(o_w_id, line.w), coalesce(o_d_id, line.d), coalesce(o_id, line.o)], o_ol_cnt::bigint, \
                 line.n from orders full join ({amounts}) as line on line.w = o_w_id and line.d = o_d_id and line.o = o_id"
            ),
        ),
        condition(
            "delivered-lines",
            "lines have a delivery date exactly if their order has a carrier (condition 7)",
            "warehouse/district/order",
            format!(
                "select array[o_w_id, o_d_id, o_id], line.delivered, case when o_carrier_id is null then 0 else line.n end \
                 from orders join ({amounts}) as line on line.w = o_w_id and line.d = o_d_id and line.o = o_id"
            ),
        ),
        condition(
            "warehouse-history",
            "W_YTD = sum of H_AMOUNT (condition 8)",
            "warehouse",
            by_warehouse("w_ytd", "a.paid", "select h_w_id as w, sum(h_amount) as paid from history group by 1"),
        ),
        condition(
            "district-history",
            "D_YTD = sum of H_AMOUNT (condition 9)",
            "warehouse/district",
            by_district(
                "d_ytd",
                "a.paid",
                ["select h_w_id as w, h_d_id as d, sum(h_amount) as paid from history group by 1, 2", NO_OTHER],
            ),
        ),
        condition(
            "balance",
            "C_BALANCE = sum of delivered OL_AMOUNT - sum of H_AMOUNT (condition 10)",
            "warehouse/district/customer",
            by_customer("c_balance", "coalesce(a.amount, 0) - coalesce(b.paid, 0)"),
        ),
        condition(
            "paid",
            "C_BALANCE + C_YTD_PAYMENT = sum of delivered OL_AMOUNT (condition 12)",
            "warehouse/district/customer",
            by_customer("c_balance + c_ytd_payment", "coalesce(a.amount, 0)"),
        ),
        condition(
            "payments",
            "sum of C_PAYMENT_CNT = number of payments in the history",
            "warehouse/district",
            by_district(
                "a.payments",
                "b.n",
                [
                    customers,
                    "select h_c_w_id as w, h_c_d_id as d, count(*) as n from history group by 1, 2",
                ],
            ),
        ),
        condition(
            "deliveries",
            "sum of C_DELIVERY_CNT = orders delivered since the load (after condition 11)",
            "warehouse/district",
            format!(
                "select array[d_w_id, d_id], c.deliveries, a.n - coalesce(b.n, 0) - {DELIVERED} from district \
                 left join ({orders}) as a on a.w = d_w_id and a.d = d_id \
                 left join ({new_orders}) as b on b.w = d_w_id and b.d = d_id \
                 left join ({customers}) as c on c.w = d_w_id and c.d = d_id"
            ),
        ),
        condition(
            "stock-orders",
            "sum of S_ORDER_CNT = order lines since the load that this warehouse supplies",
            "warehouse",
            format!(
                "select array[w_id], b.lines, coalesce(a.n, 0) from warehouse left join ({taken}) as a on a.w = w_id \
                 left join ({stock}) as b on b.w = w_id"
            ),
        ),
        condition(
            "stock-quantity",
            "sum of S_YTD = quantity of these lines",
            "warehouse",
            format!(
                "select array[w_id], b.quantity, coalesce(a.quantity, 0) from warehouse left join ({taken}) as a on a.w = w_id \
                 left join ({stock}) as b on b.w = w_id"
            ),
        ),
    ]
}
