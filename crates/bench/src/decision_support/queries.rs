//! The twenty-two queries, in PostgreSQL's SQL, with their parameters (clause 2.4).
//!
//! Written from what each asks for; results are read and not looked at. Where the specification limits rows, so does the query.

use tier0_world::Random;
use tpchgen::distribution::Distributions;

use super::parameters::Parameters;

/// Names of the queries, by place.
pub(crate) const NAMES: [&str; 22] = [
    "q1", "q2", "q3", "q4", "q5", "q6", "q7", "q8", "q9", "q10", "q11", "q12", "q13", "q14", "q15", "q16",
    "q17", "q18", "q19", "q20", "q21", "q22",
];

/// What a line costs its customer.
const REVENUE: &str = "l_extendedprice * (1 - l_discount)";

/// The query of a place, with drawn parameters, for a database of this scale factor.
pub(crate) fn query(place: usize, factor: f64, random: &mut Random) -> String {
    let p = &mut Parameters(random);
    match place {
        0 => pricing_summary(p),
        1 => cheapest_supplier(p),
        2 => shipping_priority(p),
        3 => order_priority(p),
        4 => local_supplier_volume(p),
        5 => revenue_change(p),
        6 => volume_shipping(p),
        7 => market_share(p),
        8 => product_profit(p),
        9 => returned_items(p),
        10 => important_stock(p, factor),
        11 => shipping_modes(p),
        12 => customer_distribution(p),
        13 => promotion_effect(p),
        14 => top_supplier(p),
        15 => parts_by_supplier(p),
        16 => small_orders(p),
        17 => large_orders(p),
        18 => discounted_revenue(p),
        19 => part_promotion(p),
        20 => waiting_suppliers(p),
        21 => sales_opportunity(p),
        _ => unreachable!("there are {} queries", NAMES.len()),
    }
}

/// Q1: nearly all lines, summed up.
fn pricing_summary(p: &mut Parameters<'_>) -> String {
    let days = p.number(60, 120);
    format!(
        "select l_returnflag, l_linestatus, sum(l_quantity), sum(l_extendedprice), sum({REVENUE}), \
         sum({REVENUE} * (1 + l_tax)), avg(l_quantity), avg(l_extendedprice), avg(l_discount), count(*) \
         from lineitem where l_shipdate <= date '1998-12-01' - {days} group by 1, 2 order by 1, 2"
    )
}

/// Q2: for parts of a size and kind, the suppliers of a region that sell them at the lowest price.
fn cheapest_supplier(p: &mut Parameters<'_>) -> String {
    let (size, region) = (p.number(1, 50), p.region());
    let kind = last_word(p.part_type());
    let seller = "join supplier on s_suppkey = ps_suppkey join nation on n_nationkey = s_nationkey \
                  join region on r_regionkey = n_regionkey";
    format!(
        "select s_acctbal, s_name, n_name, p_partkey, p_mfgr, s_address, s_phone, s_comment \
         from part join partsupp on ps_partkey = p_partkey {seller} where p_size = {size} and p_type like '%{kind}' \
         and r_name = '{region}' and ps_supplycost = (select min(ps_supplycost) from partsupp {seller} \
         where ps_partkey = p_partkey and r_name = '{region}') order by s_acctbal desc, n_name, s_name, p_partkey limit 100"
    )
}

/// Q3: unshipped orders of the highest value.
fn shipping_priority(p: &mut Parameters<'_>) -> String {
    let (segment, day) = (p.segment(), p.number(1, 31));
    format!(
        "select l_orderkey, sum({REVENUE}) as revenue, o_orderdate, o_shippriority from customer \
         join orders on o_custkey = c_custkey join lineitem on l_orderkey = o_orderkey where c_mktsegment = '{segment}' \
         and o_orderdate < date '1995-03-{day:02}' and l_shipdate > date '1995-03-{day:02}' group by 1, 3, 4 \
         order by revenue desc, o_orderdate limit 10"
    )
}

/// Q4: orders of a quarter with a line that came late, by priority.
fn order_priority(p: &mut Parameters<'_>) -> String {
    let from = p.month((1993, 1), (1997, 10));
    format!(
        "select o_orderpriority, count(*) from orders where o_orderdate >= {from} \
         and o_orderdate < {from} + interval '3 months' and exists (select from lineitem where l_orderkey = o_orderkey \
         and l_commitdate < l_receiptdate) group by 1 order by 1"
    )
}

/// Q5: revenue of a year in which customer and supplier are of the same nation.
fn local_supplier_volume(p: &mut Parameters<'_>) -> String {
    let (region, from) = (p.region(), p.year());
    format!(
        "select n_name, sum({REVENUE}) as revenue from customer join orders on o_custkey = c_custkey \
         join lineitem on l_orderkey = o_orderkey join supplier on s_suppkey = l_suppkey and s_nationkey = c_nationkey \
         join nation on n_nationkey = s_nationkey join region on r_regionkey = n_regionkey where r_name = '{region}' \
         and o_orderdate >= {from} and o_orderdate < {from} + interval '1 year' group by 1 order by revenue desc"
    )
}

/// Q6: what discounts of a year cost.
fn revenue_change(p: &mut Parameters<'_>) -> String {
    let (from, discount, quantity) = (p.year(), p.number(2, 9), p.number(24, 25));
    let (low, high) = (discount - 1, discount + 1);
    format!(
        "select sum(l_extendedprice * l_discount) from lineitem where l_shipdate >= {from} \
         and l_shipdate < {from} + interval '1 year' and l_discount between 0.{low:02} and 0.{high:02} \
         and l_quantity < {quantity}"
    )
}

/// Q7: revenue between two nations in two years.
fn volume_shipping(p: &mut Parameters<'_>) -> String {
    let (one, other) = p.two_of(Distributions::static_default().nations());
    format!(
        "select supplying.n_name, buying.n_name, extract(year from l_shipdate) as year, sum({REVENUE}) from supplier \
         join lineitem on l_suppkey = s_suppkey join orders on o_orderkey = l_orderkey \
         join customer on c_custkey = o_custkey join nation as supplying on supplying.n_nationkey = s_nationkey \
         join nation as buying on buying.n_nationkey = c_nationkey \
         where (supplying.n_name, buying.n_name) in (('{one}', '{other}'), ('{other}', '{one}')) \
         and l_shipdate between date '1995-01-01' and date '1996-12-31' group by 1, 2, 3 order by 1, 2, 3"
    )
}

/// Q8: the share of a nation in what its region buys of a kind of parts.
fn market_share(p: &mut Parameters<'_>) -> String {
    let (nation, kind) = (p.nation(), p.part_type());
    format!(
        "select extract(year from o_orderdate) as year, \
         sum(case when supplying.n_name = '{nation}' then {REVENUE} else 0 end) / sum({REVENUE}) from part \
         join lineitem on l_partkey = p_partkey join supplier on s_suppkey = l_suppkey \
         join orders on o_orderkey = l_orderkey join customer on c_custkey = o_custkey \
         join nation as buying on buying.n_nationkey = c_nationkey join region on r_regionkey = buying.n_regionkey \
         join nation as supplying on supplying.n_nationkey = s_nationkey \
         where r_regionkey = (select n_regionkey from nation where n_name = '{nation}') \
         and o_orderdate between date '1995-01-01' and date '1996-12-31' and p_type = '{kind}' group by 1 order by 1"
    )
}

/// Q9: profit by nation and year on parts with a word in their name.
fn product_profit(p: &mut Parameters<'_>) -> String {
    let colour = p.colour();
    format!(
        "select n_name, extract(year from o_orderdate) as year, sum({REVENUE} - ps_supplycost * l_quantity) from part \
         join lineitem on l_partkey = p_partkey join supplier on s_suppkey = l_suppkey \
         join partsupp on ps_partkey = l_partkey and ps_suppkey = l_suppkey join orders on o_orderkey = l_orderkey \
         join nation on n_nationkey = s_nationkey where p_name like '%{colour}%' group by 1, 2 order by 1, 2 desc"
    )
}

/// Q10: customers who returned the most in a quarter.
fn returned_items(p: &mut Parameters<'_>) -> String {
    let from = p.month((1993, 2), (1995, 1));
    format!(
        "select c_custkey, c_name, sum({REVENUE}) as revenue, c_acctbal, n_name, c_address, c_phone, c_comment \
         from customer join orders on o_custkey = c_custkey join lineitem on l_orderkey = o_orderkey \
         join nation on n_nationkey = c_nationkey where o_orderdate >= {from} \
         and o_orderdate < {from} + interval '3 months' and l_returnflag = 'R' \
         group by c_custkey, c_name, c_acctbal, c_phone, n_name, c_address, c_comment order by revenue desc limit 20"
    )
}

/// Q11: parts that make up much of a nation's stock.
fn important_stock(p: &mut Parameters<'_>, factor: f64) -> String {
    let nation = p.nation();
    let stock = format!(
        "partsupp join supplier on s_suppkey = ps_suppkey join nation on n_nationkey = s_nationkey where n_name = '{nation}'"
    );
    format!(
        "select ps_partkey, sum(ps_supplycost * ps_availqty) as value from {stock} group by 1 \
         having sum(ps_supplycost * ps_availqty) > (select sum(ps_supplycost * ps_availqty) * {:.10} from {stock}) \
         order by value desc",
        0.0001 / factor
    )
}

/// Q12: late lines of two ways of shipping, by priority of their orders.
fn shipping_modes(p: &mut Parameters<'_>) -> String {
    let (one, other) = p.two_of(Distributions::static_default().ship_modes());
    let from = p.year();
    format!(
        "select l_shipmode, count(*) filter (where o_orderpriority in ('1-URGENT', '2-HIGH')), \
         count(*) filter (where o_orderpriority not in ('1-URGENT', '2-HIGH')) from orders \
         join lineitem on l_orderkey = o_orderkey where l_shipmode in ('{one}', '{other}') \
         and l_commitdate < l_receiptdate and l_shipdate < l_commitdate and l_receiptdate >= {from} \
         and l_receiptdate < {from} + interval '1 year' group by 1 order by 1"
    )
}

/// Q13: how many customers have how many orders.
fn customer_distribution(p: &mut Parameters<'_>) -> String {
    let one = p.one_of(&["special", "pending", "unusual", "express"]);
    let other = p.one_of(&["packages", "requests", "accounts", "deposits"]);
    format!(
        "select orders, count(*) as customers from (select c_custkey, count(o_orderkey) as orders from customer \
         left join orders on o_custkey = c_custkey and o_comment not like '%{one}%{other}%' group by 1) as each \
         group by 1 order by 2 desc, 1 desc"
    )
}

/// Q14: the share of promoted parts in the revenue of a month.
fn promotion_effect(p: &mut Parameters<'_>) -> String {
    let from = p.month((1993, 1), (1997, 12));
    format!(
        "select 100.00 * sum(case when p_type like 'PROMO%' then {REVENUE} else 0 end) / sum({REVENUE}) from lineitem \
         join part on p_partkey = l_partkey where l_shipdate >= {from} and l_shipdate < {from} + interval '1 month'"
    )
}

/// Q15: the supplier of the highest revenue in a quarter.
fn top_supplier(p: &mut Parameters<'_>) -> String {
    let from = p.month((1993, 1), (1997, 10));
    format!(
        "with revenue as materialized (select l_suppkey as supplier, sum({REVENUE}) as total from lineitem \
         where l_shipdate >= {from} and l_shipdate < {from} + interval '3 months' group by 1) \
         select s_suppkey, s_name, s_address, s_phone, total from supplier join revenue on supplier = s_suppkey \
         where total = (select max(total) from revenue) order by 1"
    )
}

/// Q16: suppliers of parts without complaints, by kind of part.
fn parts_by_supplier(p: &mut Parameters<'_>) -> String {
    let brand = p.brand();
    let kind = p.part_type();
    let kind = &kind[..kind.rfind(' ').unwrap_or(kind.len())];
    let sizes: Vec<String> = p.numbers(8, 1, 50).iter().map(i64::to_string).collect();
    format!(
        "select p_brand, p_type, p_size, count(distinct ps_suppkey) as suppliers from partsupp \
         join part on p_partkey = ps_partkey where p_brand <> '{brand}' and p_type not like '{kind}%' \
         and p_size in ({}) and ps_suppkey not in (select s_suppkey from supplier \
         where s_comment like '%Customer%Complaints%') group by 1, 2, 3 order by suppliers desc, 1, 2, 3",
        sizes.join(", ")
    )
}

/// Q17: revenue that is lost without small orders of a part.
fn small_orders(p: &mut Parameters<'_>) -> String {
    let (brand, container) = (p.brand(), p.container());
    format!(
        "select sum(l_extendedprice) / 7.0 from lineitem join part on p_partkey = l_partkey where p_brand = '{brand}' \
         and p_container = '{container}' and l_quantity < (select 0.2 * avg(inner_line.l_quantity) \
         from lineitem as inner_line where inner_line.l_partkey = p_partkey)"
    )
}

/// Q18: the largest orders.
fn large_orders(p: &mut Parameters<'_>) -> String {
    let quantity = p.number(312, 315);
    format!(
        "select c_name, c_custkey, o_orderkey, o_orderdate, o_totalprice, sum(l_quantity) from customer \
         join orders on o_custkey = c_custkey join lineitem on l_orderkey = o_orderkey \
         where o_orderkey in (select l_orderkey from lineitem group by 1 having sum(l_quantity) > {quantity}) \
         group by 1, 2, 3, 4, 5 order by o_totalprice desc, o_orderdate limit 100"
    )
}

/// Q19: revenue of three kinds of parts in three ranges of quantity, sent by air.
fn discounted_revenue(p: &mut Parameters<'_>) -> String {
    let kinds = [
        ("'SM CASE', 'SM BOX', 'SM PACK', 'SM PKG'", (1, 10), 5),
        ("'MED BAG', 'MED BOX', 'MED PKG', 'MED PACK'", (10, 20), 10),
        ("'LG CASE', 'LG BOX', 'LG PACK', 'LG PKG'", (20, 30), 15),
    ];
    let kinds = kinds.map(|(containers, (low, high), size)| {
        let (brand, quantity) = (p.brand(), p.number(low, high));
        format!(
            "(p_brand = '{brand}' and p_container in ({containers}) and l_quantity between {quantity} and {} \
             and p_size between 1 and {size})",
            quantity + 10
        )
    });
    format!(
        "select sum({REVENUE}) from lineitem join part on p_partkey = l_partkey where l_shipmode in ('AIR', 'REG AIR') \
         and l_shipinstruct = 'DELIVER IN PERSON' and ({})",
        kinds.join(" or ")
    )
}

/// Q20: suppliers of a nation with too much of a kind of parts.
fn part_promotion(p: &mut Parameters<'_>) -> String {
    let (colour, from, nation) = (p.colour(), p.year(), p.nation());
    format!(
        "select s_name, s_address from supplier join nation on n_nationkey = s_nationkey where n_name = '{nation}' \
         and s_suppkey in (select ps_suppkey from partsupp where ps_partkey in (select p_partkey from part \
         where p_name like '{colour}%') and ps_availqty > (select 0.5 * sum(l_quantity) from lineitem \
         where l_partkey = ps_partkey and l_suppkey = ps_suppkey and l_shipdate >= {from} \
         and l_shipdate < {from} + interval '1 year')) order by 1"
    )
}

/// Q21: suppliers of a nation who alone kept orders waiting.
fn waiting_suppliers(p: &mut Parameters<'_>) -> String {
    let nation = p.nation();
    format!(
        "select s_name, count(*) as waiting from supplier join lineitem as line on line.l_suppkey = s_suppkey \
         join orders on o_orderkey = line.l_orderkey join nation on n_nationkey = s_nationkey \
         where o_orderstatus = 'F' and line.l_receiptdate > line.l_commitdate and n_name = '{nation}' \
         and exists (select from lineitem as other where other.l_orderkey = line.l_orderkey \
         and other.l_suppkey <> line.l_suppkey) and not exists (select from lineitem as other \
         where other.l_orderkey = line.l_orderkey and other.l_suppkey <> line.l_suppkey \
         and other.l_receiptdate > other.l_commitdate) group by 1 order by waiting desc, 1 limit 100"
    )
}

/// Q22: customers of some countries with money and no orders.
fn sales_opportunity(p: &mut Parameters<'_>) -> String {
    let codes: Vec<String> = p.numbers(7, 10, 34).iter().map(|code| format!("'{code}'")).collect();
    let codes = codes.join(", ");
    format!(
        "select left(c_phone, 2) as code, count(*), sum(c_acctbal) from customer where left(c_phone, 2) in ({codes}) \
         and c_acctbal > (select avg(c_acctbal) from customer where c_acctbal > 0.00 and left(c_phone, 2) in ({codes})) \
         and not exists (select from orders where o_custkey = c_custkey) group by 1 order by 1"
    )
}

fn last_word(text: &str) -> &str {
    text.rsplit(' ').next().unwrap_or(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parameters_differ_from_stream_to_stream_and_repeat_by_seed() {
        for (place, name) in NAMES.iter().enumerate() {
            let of = |seed| {
                (0..5).map(|stream| query(place, 1.0, &mut Random::new(seed, stream))).collect::<Vec<_>>()
            };
            assert_eq!(of(1), of(1));
            let mut drawn = of(1);
            drawn.sort();
            drawn.dedup();
            assert!(drawn.len() > 1, "{name}");
            assert!(
                drawn.iter().all(|sql| sql.matches('(').count() == sql.matches(')').count()),
                "{drawn:?}"
            );
        }
    }
}
