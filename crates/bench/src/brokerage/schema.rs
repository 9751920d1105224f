//! Tables and indexes. Names and columns are this program's own; numbers of rows and widths follow the public facts about the
//! brokerage specification. Amounts of money are in cents.

use crate::load::schema::Table;

/// Beside the tables: where trade numbers come from, and texts of news as they are, not compressed.
pub(crate) const BESIDE: &str = "create sequence trade_number owned by trade.id;\n\
     alter table news_item alter column body set storage external;\n";

/// By size, the smallest first. Columns are ordered by alignment, so that rows have few gaps.
pub(crate) const TABLES: [Table; 32] = [
    Table {
        name: "status_type",
        columns: "id char(4) not null, name varchar(10) not null",
        indexes: &[("status_type_pkey", "id")],
    },
    Table {
        name: "trade_type",
        columns: "is_sale boolean not null, is_market boolean not null, id char(2) not null, name varchar(12) not null",
        indexes: &[("trade_type_pkey", "id")],
    },
    Table {
        name: "exchange",
        columns: "address bigint not null, id smallint not null, opens smallint not null, closes smallint not null, \
                  name varchar(100) not null, description varchar(150) not null",
        indexes: &[("exchange_pkey", "id")],
    },
    Table {
        name: "sector",
        columns: "id smallint not null, name varchar(30) not null",
        indexes: &[("sector_pkey", "id"), ("sector_by_name", "name")],
    },
    Table {
        name: "industry",
        columns: "id smallint not null, sector smallint not null, name varchar(50) not null",
        indexes: &[("industry_pkey", "id"), ("industry_by_name", "name"), ("industry_by_sector", "sector")],
    },
    Table {
        name: "charge",
        columns: "amount int not null, tier smallint not null, trade_type char(2) not null",
        indexes: &[("charge_pkey", "trade_type, tier")],
    },
    Table {
        name: "commission_rate",
        columns: "from_quantity int not null, to_quantity int not null, rate int not null, tier smallint not null, \
                  exchange smallint not null, trade_type char(2) not null",
        indexes: &[("commission_rate_pkey", "tier, trade_type, exchange, from_quantity")],
    },
    Table {
        name: "tax_rate",
        columns: "id smallint not null, rate int not null, name varchar(50) not null",
        indexes: &[("tax_rate_pkey", "id")],
    },
    Table {
        name: "zip_code",
        columns: "code int not null, town varchar(80) not null, division varchar(80) not null",
        indexes: &[("zip_code_pkey", "code")],
    },
    Table {
        name: "broker",
        columns: "id bigint not null, commission bigint not null, trades int not null, status char(4) not null, \
                  name varchar(49) not null",
        indexes: &[("broker_pkey", "id"), ("broker_by_name", "name")],
    },
    Table {
        name: "company",
        columns: "id bigint not null, address bigint not null, industry smallint not null, status char(4) not null, \
                  rating char(4) not null, opened date not null, name varchar(60) not null, ceo varchar(46) not null, \
                  description varchar(150) not null",
        indexes: &[
            ("company_pkey", "id"),
            ("company_by_name", "name"),
            ("company_by_industry", "industry, id"),
        ],
    },
    Table {
        name: "company_competitor",
        columns: "company bigint not null, competitor bigint not null, industry smallint not null",
        indexes: &[("company_competitor_pkey", "company, competitor, industry")],
    },
    Table {
        name: "security",
        columns: "company bigint not null, shares bigint not null, started date not null, traded date not null, \
                  high_on date not null, low_on date not null, high int not null, low int not null, dividend int not null, \
                  earnings_ratio int not null, yield int not null, exchange smallint not null, status char(4) not null, \
                  issue varchar(10) not null, symbol varchar(15) not null, name varchar(70) not null",
        indexes: &[("security_pkey", "symbol"), ("security_by_company", "company, issue")],
    },
    Table {
        name: "last_trade",
        columns: "at timestamptz not null, volume bigint not null, price int not null, open_price int not null, \
                  symbol varchar(15) not null",
        indexes: &[("last_trade_pkey", "symbol")],
    },
    Table {
        name: "address",
        columns: "id bigint not null, zip int not null, line_1 varchar(80) not null, line_2 varchar(80) not null, \
                  country varchar(80) not null",
        indexes: &[("address_pkey", "id")],
    },
    Table {
        name: "customer",
        columns: "id bigint not null, address bigint not null, born date not null, tier smallint not null, \
                  status char(4) not null, gender char(1) not null, middle char(1) not null, tax_id varchar(20) not null, \
                  last_name varchar(30) not null, first_name varchar(30) not null, phone_1 varchar(24) not null, \
                  phone_2 varchar(24) not null, phone_3 varchar(24) not null, mail_1 varchar(50) not null, \
                  mail_2 varchar(50) not null",
        indexes: &[("customer_pkey", "id"), ("customer_by_tax_id", "tax_id, id")],
    },
    Table {
        name: "customer_tax_rate",
        columns: "customer bigint not null, tax_rate smallint not null",
        indexes: &[("customer_tax_rate_pkey", "customer, tax_rate")],
    },
    Table {
        name: "account",
        columns: "id bigint not null, customer bigint not null, broker bigint not null, opening bigint not null, \
                  balance bigint not null, tax_status smallint not null, name varchar(50) not null",
        indexes: &[("account_pkey", "id"), ("account_by_customer", "customer")],
    },
    Table {
        name: "account_permission",
        columns: "account bigint not null, rights char(4) not null, tax_id varchar(20) not null, \
                  last_name varchar(30) not null, first_name varchar(30) not null",
        indexes: &[("account_permission_pkey", "account, tax_id")],
    },
    Table {
        name: "watch_list",
        columns: "id bigint not null, customer bigint not null",
        indexes: &[("watch_list_pkey", "id"), ("watch_list_by_customer", "customer")],
    },
    Table {
        name: "watch_item",
        columns: "list bigint not null, symbol varchar(15) not null",
        indexes: &[("watch_item_pkey", "list, symbol")],
    },
    Table {
        name: "financial",
        columns: "company bigint not null, revenue bigint not null, earnings bigint not null, inventory bigint not null, \
                  assets bigint not null, liabilities bigint not null, shares bigint not null, \
                  diluted_shares bigint not null, started date not null, per_share int not null, \
                  per_diluted_share int not null, margin int not null, year smallint not null, quarter smallint not null",
        indexes: &[("financial_pkey", "company, year, quarter")],
    },
    Table {
        name: "news_item",
        columns: "id bigint not null, company bigint not null, at timestamptz not null, headline varchar(80) not null, \
                  summary varchar(255) not null, source varchar(30) not null, author varchar(30) not null, \
                  body varchar(100000) not null",
        indexes: &[("news_item_pkey", "id"), ("news_item_by_company", "company")],
    },
    Table {
        name: "daily_market",
        columns: "volume bigint not null, day date not null, close int not null, high int not null, low int not null, \
                  symbol varchar(15) not null",
        indexes: &[("daily_market_pkey", "symbol, day")],
    },
    Table {
        name: "trade_request",
        columns: "trade bigint not null, broker bigint not null, quantity int not null, bid_price int not null, \
                  type char(2) not null, symbol varchar(15) not null",
        indexes: &[
            ("trade_request_pkey", "trade"),
            ("trade_request_by_broker", "broker, symbol"),
            ("trade_request_by_symbol", "symbol, type"),
        ],
    },
    Table {
        name: "holding_summary",
        columns: "account bigint not null, quantity int not null, symbol varchar(15) not null",
        indexes: &[("holding_summary_pkey", "account, symbol")],
    },
    Table {
        name: "holding",
        columns: "trade bigint not null, account bigint not null, at timestamptz not null, price int not null, \
                  quantity int not null, symbol varchar(15) not null",
        indexes: &[("holding_pkey", "trade"), ("holding_by_account", "account, symbol, at")],
    },
    Table {
        name: "holding_history",
        columns: "holding bigint not null, trade bigint not null, before int not null, after int not null",
        indexes: &[("holding_history_pkey", "holding, trade"), ("holding_history_by_trade", "trade")],
    },
    Table {
        name: "settlement",
        columns: "trade bigint not null, amount bigint not null, due date not null, kind varchar(40) not null",
        indexes: &[("settlement_pkey", "trade")],
    },
    Table {
        name: "cash_transaction",
        columns: "trade bigint not null, at timestamptz not null, amount bigint not null, name varchar(100) not null",
        indexes: &[("cash_transaction_pkey", "trade")],
    },
    Table {
        name: "trade_history",
        columns: "trade bigint not null, at timestamptz not null, status char(4) not null",
        indexes: &[("trade_history_pkey", "trade, status")],
    },
    Table {
        name: "trade",
        columns: "id bigint not null, at timestamptz not null, account bigint not null, quantity int not null, \
                  bid_price int not null, charge int not null, commission int not null, tax int not null, price int, \
                  is_cash boolean not null, is_lifo boolean not null, type char(2) not null, status char(4) not null, \
                  symbol varchar(15) not null, executor varchar(49) not null",
        indexes: &[
            ("trade_pkey", "id"),
            ("trade_by_account", "account, at"),
            ("trade_by_symbol", "symbol, at"),
        ],
    },
];
