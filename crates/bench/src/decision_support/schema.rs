//! Tables and indexes (clause 1.4 of the specification): keys, and an index for each foreign key that no key begins with.

use crate::load::schema::Table;

/// By size, the smallest first. Columns are in the order of the generator's rows.
pub(crate) const TABLES: [Table; 8] = [
    Table {
        name: "region",
        columns: "r_regionkey int not null, r_name char(25) not null, r_comment varchar(152) not null",
        indexes: &[("region_pkey", "r_regionkey")],
    },
    Table {
        name: "nation",
        columns: "n_nationkey int not null, n_name char(25) not null, n_regionkey int not null, \
                  n_comment varchar(152) not null",
        indexes: &[("nation_pkey", "n_nationkey"), ("nation_by_region", "n_regionkey")],
    },
    Table {
        name: "supplier",
        columns: "s_suppkey int not null, s_name char(25) not null, s_address varchar(40) not null, \
                  s_nationkey int not null, s_phone char(15) not null, s_acctbal numeric(12,2) not null, \
                  s_comment varchar(101) not null",
        indexes: &[("supplier_pkey", "s_suppkey"), ("supplier_by_nation", "s_nationkey")],
    },
    Table {
        name: "part",
        columns: "p_partkey int not null, p_name varchar(55) not null, p_mfgr char(25) not null, \
                  p_brand char(10) not null, p_type varchar(25) not null, p_size int not null, \
                  p_container char(10) not null, p_retailprice numeric(12,2) not null, p_comment varchar(23) not null",
        indexes: &[("part_pkey", "p_partkey")],
    },
    Table {
        name: "customer",
        columns: "c_custkey int not null, c_name varchar(25) not null, c_address varchar(40) not null, \
                  c_nationkey int not null, c_phone char(15) not null, c_acctbal numeric(12,2) not null, \
                  c_mktsegment char(10) not null, c_comment varchar(117) not null",
        indexes: &[("customer_pkey", "c_custkey"), ("customer_by_nation", "c_nationkey")],
    },
    Table {
        name: "partsupp",
        columns: "ps_partkey int not null, ps_suppkey int not null, ps_availqty int not null, \
                  ps_supplycost numeric(12,2) not null, ps_comment varchar(199) not null",
        indexes: &[("partsupp_pkey", "ps_partkey, ps_suppkey"), ("partsupp_by_supplier", "ps_suppkey")],
    },
    Table {
        name: "orders",
        columns: "o_orderkey bigint not null, o_custkey int not null, o_orderstatus char(1) not null, \
                  o_totalprice numeric(12,2) not null, o_orderdate date not null, o_orderpriority char(15) not null, \
                  o_clerk char(15) not null, o_shippriority int not null, o_comment varchar(79) not null",
        indexes: &[("orders_pkey", "o_orderkey"), ("orders_by_customer", "o_custkey")],
    },
    Table {
        name: "lineitem",
        columns: "l_orderkey bigint not null, l_partkey int not null, l_suppkey int not null, \
                  l_linenumber int not null, l_quantity numeric(12,2) not null, l_extendedprice numeric(12,2) not null, \
                  l_discount numeric(12,2) not null, l_tax numeric(12,2) not null, l_returnflag char(1) not null, \
                  l_linestatus char(1) not null, l_shipdate date not null, l_commitdate date not null, \
                  l_receiptdate date not null, l_shipinstruct char(25) not null, l_shipmode char(10) not null, \
                  l_comment varchar(44) not null",
        indexes: &[
            ("lineitem_pkey", "l_orderkey, l_linenumber"),
            ("lineitem_by_part", "l_partkey, l_suppkey"),
            ("lineitem_by_supplier", "l_suppkey"),
        ],
    },
];
