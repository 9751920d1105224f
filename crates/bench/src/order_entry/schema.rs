//! Tables, indexes, numbers of rows (clauses 1.2.1, 1.3 and 4.3.3 of the specification).

use crate::load::schema::Table;

/// Districts of a warehouse.
pub(crate) const DISTRICTS: i16 = 10;
/// Customers of a district.
pub(crate) const CUSTOMERS: i32 = 3000;
/// Items, which all warehouses share; a warehouse has a stock row of each.
pub(crate) const ITEMS: i32 = 100_000;
/// Orders of a district at first, one of each customer.
pub(crate) const ORDERS: i32 = 3000;
/// Those of them that are delivered at first: the oldest.
pub(crate) const DELIVERED: i32 = 2100;

/// Columns are ordered by alignment, so that rows have no gaps.
pub(crate) const TABLES: [Table; 9] = [
    Table {
        name: "item",
        columns: "i_id int not null, i_im_id int not null, i_price numeric(5,2) not null, \
                  i_name varchar(24) not null, i_data varchar(50) not null",
        indexes: &[("item_pkey", "i_id")],
    },
    Table {
        name: "warehouse",
        columns: "w_id int not null, w_ytd numeric(12,2) not null, w_tax numeric(4,4) not null, \
                  w_name varchar(10) not null, w_street_1 varchar(20) not null, w_street_2 varchar(20) not null, \
                  w_city varchar(20) not null, w_state char(2) not null, w_zip char(9) not null",
        indexes: &[("warehouse_pkey", "w_id")],
    },
    Table {
        name: "district",
        columns: "d_w_id int not null, d_next_o_id int not null, d_id smallint not null, \
                  d_ytd numeric(12,2) not null, d_tax numeric(4,4) not null, d_name varchar(10) not null, \
                  d_street_1 varchar(20) not null, d_street_2 varchar(20) not null, d_city varchar(20) not null, \
                  d_state char(2) not null, d_zip char(9) not null",
        indexes: &[("district_pkey", "d_w_id, d_id")],
    },
    Table {
        name: "customer",
        columns: "c_since timestamptz not null, c_id int not null, c_w_id int not null, \
                  c_payment_cnt int not null, c_delivery_cnt int not null, c_d_id smallint not null, \
                  c_credit char(2) not null, c_credit_lim numeric(12,2) not null, c_discount numeric(4,4) not null, \
                  c_balance numeric(12,2) not null, c_ytd_payment numeric(12,2) not null, \
                  c_first varchar(16) not null, c_middle char(2) not null, c_last varchar(16) not null, \
                  c_street_1 varchar(20) not null, c_street_2 varchar(20) not null, c_city varchar(20) not null, \
                  c_state char(2) not null, c_zip char(9) not null, c_phone char(16) not null, \
                  c_data varchar(500) not null",
        indexes: &[
            ("customer_pkey", "c_w_id, c_d_id, c_id"),
            ("customer_by_name", "c_w_id, c_d_id, c_last, c_first"),
        ],
    },
    Table {
        name: "history",
        columns: "h_date timestamptz not null, h_c_id int not null, h_c_w_id int not null, h_w_id int not null, \
                  h_c_d_id smallint not null, h_d_id smallint not null, h_amount numeric(6,2) not null, \
                  h_data varchar(24) not null",
        indexes: &[],
    },
    Table {
        name: "orders",
        columns: "o_entry_d timestamptz not null, o_id int not null, o_w_id int not null, o_c_id int not null, \
                  o_d_id smallint not null, o_ol_cnt smallint not null, o_all_local smallint not null, \
                  o_carrier_id smallint",
        indexes: &[
            ("orders_pkey", "o_w_id, o_d_id, o_id"),
            ("orders_by_customer", "o_w_id, o_d_id, o_c_id, o_id"),
        ],
    },
    Table {
        name: "new_order",
        columns: "no_o_id int not null, no_w_id int not null, no_d_id smallint not null",
        indexes: &[("new_order_pkey", "no_w_id, no_d_id, no_o_id")],
    },
    Table {
        name: "order_line",
        columns: "ol_delivery_d timestamptz, ol_o_id int not null, ol_w_id int not null, ol_i_id int not null, \
                  ol_supply_w_id int not null, ol_d_id smallint not null, ol_number smallint not null, \
                  ol_quantity smallint not null, ol_amount numeric(6,2) not null, ol_dist_info char(24) not null",
        indexes: &[("order_line_pkey", "ol_w_id, ol_d_id, ol_o_id, ol_number")],
    },
    Table {
        name: "stock",
        columns: "s_i_id int not null, s_w_id int not null, s_ytd int not null, s_order_cnt int not null, \
                  s_remote_cnt int not null, s_quantity smallint not null, s_dist_01 char(24) not null, \
                  s_dist_02 char(24) not null, s_dist_03 char(24) not null, s_dist_04 char(24) not null, \
                  s_dist_05 char(24) not null, s_dist_06 char(24) not null, s_dist_07 char(24) not null, \
                  s_dist_08 char(24) not null, s_dist_09 char(24) not null, s_dist_10 char(24) not null, \
                  s_data varchar(50) not null",
        indexes: &[("stock_pkey", "s_w_id, s_i_id")],
    },
];
