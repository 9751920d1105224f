//! What always holds in a decision-support database: the numbers of rows, references between tables, and what the generator
//! computes from other columns. No query changes a row, so that all of it also tells whether storage lost or changed any.

use super::rows::counts;
use crate::load::condition::Condition;

/// Columns of which nothing follows from others.
pub(crate) const NOT_COVERED: &str = "names, addresses, phones and comments; brands, types, sizes and containers of parts; account \
    balances, market segments, available quantities and supply costs; priorities and clerks of orders; return flags and shipping \
    modes of lines";

/// All conditions for a scale factor, the quickest first.
pub(crate) fn all(factor: f64) -> Vec<Condition> {
    let condition = |name, text, place, sql: String| Condition { name, text, place, sql };
    let rows = counts(factor).map(|(table, count)| {
        format!("select array['{table}'], (select count(*) from {table}), {count}::bigint")
    });
    vec![
        condition("rows", "as many rows as the scale factor says", "table", rows.join(" union all ")),
        condition(
            "references",
            "nations have a region; suppliers and customers have a nation",
            "table, key",
            "select array['nation', n_nationkey::text], n_regionkey, r_regionkey from nation \
             left join region on r_regionkey = n_regionkey union all \
             select array['supplier', s_suppkey::text], s_nationkey, n_nationkey from supplier \
             left join nation on n_nationkey = s_nationkey union all \
             select array['customer', c_custkey::text], c_nationkey, n_nationkey from customer \
             left join nation on n_nationkey = c_nationkey"
                .to_owned(),
        ),
        condition(
            "retail-price",
            "P_RETAILPRICE follows from P_PARTKEY (clause 4.2.3)",
            "part",
            "select array[p_partkey], p_retailprice, \
             (90000 + p_partkey / 10 % 20001 + 100 * (p_partkey % 1000)) / 100.00 from part"
                .to_owned(),
        ),
        condition(
            "part-suppliers",
            "a part has four different suppliers, all of which exist",
            "part",
            "select array[p_partkey], count(distinct s_suppkey), 4::bigint from part \
             left join partsupp on ps_partkey = p_partkey left join supplier on s_suppkey = ps_suppkey group by p_partkey"
                .to_owned(),
        ),
        condition(
            "order-customer",
            "an order has a customer, and none whose key is a multiple of three (clause 4.2.3)",
            "order",
            "select array[o_orderkey], coalesce(c_custkey % 3 <> 0, false), true from orders \
             left join customer on c_custkey = o_custkey"
                .to_owned(),
        ),
        condition(
            "lines-of-orders",
            "an order has one to seven lines, numbered from 1; a line has an order",
            "order",
            "select array[coalesce(o_orderkey, l_orderkey)], case when o_orderkey is null then -1 else coalesce(n, 0) end, \
             least(greatest(coalesce(last, 1), 1), 7)::bigint from orders full join (select l_orderkey, count(*) as n, \
             max(l_linenumber) as last from lineitem group by 1) as line on l_orderkey = o_orderkey"
                .to_owned(),
        ),
        condition(
            "line-offer",
            "a line's part is sold by its supplier, at its retail price: L_EXTENDEDPRICE = L_QUANTITY * P_RETAILPRICE",
            "order/line",
            "select array[l_orderkey, l_linenumber], l_extendedprice, case when ps_partkey is not null \
             then l_quantity * p_retailprice end from lineitem left join part on p_partkey = l_partkey \
             left join partsupp on ps_partkey = l_partkey and ps_suppkey = l_suppkey"
                .to_owned(),
        ),
        condition(
            "total-price",
            "O_TOTALPRICE = sum of L_EXTENDEDPRICE * (1 - L_DISCOUNT) * (1 + L_TAX), each step cut to whole cents",
            "order",
            "select array[o_orderkey], o_totalprice, total from orders left join (select l_orderkey, \
             sum(trunc(trunc(l_extendedprice * (1 - l_discount), 2) * (1 + l_tax), 2)) as total from lineitem group by 1) \
             as line on l_orderkey = o_orderkey"
                .to_owned(),
        ),
        condition(
            "order-status",
            "O_ORDERSTATUS is F or O if all lines have it, else P",
            "order",
            "select array[o_orderkey], o_orderstatus, status from orders left join (select l_orderkey, \
             case when min(l_linestatus) = max(l_linestatus) then min(l_linestatus) else 'P' end as status from lineitem \
             group by 1) as line on l_orderkey = o_orderkey"
                .to_owned(),
        ),
        condition(
            "dates",
            "a line is shipped 1 to 121 days after its order, due after 30 to 90, and received 1 to 30 after shipping",
            "order/line",
            "select array[l_orderkey, l_linenumber], l_shipdate - o_orderdate between 1 and 121 \
             and l_commitdate - o_orderdate between 30 and 90 and l_receiptdate - l_shipdate between 1 and 30, true \
             from lineitem left join orders on o_orderkey = l_orderkey"
                .to_owned(),
        ),
    ]
}
