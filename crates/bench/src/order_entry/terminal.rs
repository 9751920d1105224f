//! A session of a user: a connection with its prepared statements.
//!
//! Statements that do not need each other's results are sent together (pipelined) and answered in order, so a New-Order takes
//! three round trips.

use futures_util::future::try_join_all;
use tokio_postgres::{Client, Error, Statement};

use super::kind::Kind;
use super::{delivery, new_order, order_status, payment, stock_level};
use crate::BenchError;
use crate::address::Address;
use crate::run::options::Isolation;
use crate::run::script::Outcome;
pub(super) use crate::run::script::Values;

/// A session.
pub(crate) struct Terminal {
    pub(crate) client: Client,
    begin: String,
    pub(crate) new_order: Vec<Statement>,
    pub(crate) payment: Vec<Statement>,
    pub(crate) order_status: Vec<Statement>,
    pub(crate) delivery: Vec<Statement>,
    pub(crate) stock_level: Vec<Statement>,
}

/// A transaction with all that it needs, so that it can be repeated.
pub(crate) enum Input {
    NewOrder(new_order::NewOrder),
    Payment(payment::Payment),
    OrderStatus(order_status::OrderStatus),
    Delivery(delivery::Delivery),
    StockLevel(stock_level::StockLevel),
}

impl Input {
    /// Draws one of a kind for a user with this home, 0 for the first warehouse.
    pub(crate) fn draw(
        kind: Kind,
        laws: &super::draw::Laws,
        random: &mut tier0_world::Random,
        home: u64,
    ) -> Input {
        let warehouse = laws.warehouse(random, home);
        match kind {
            Kind::NewOrder => Input::NewOrder(new_order::NewOrder::draw(laws, random, warehouse)),
            Kind::Payment => Input::Payment(payment::Payment::draw(laws, random, warehouse)),
            Kind::OrderStatus => Input::OrderStatus(order_status::OrderStatus::draw(laws, random, warehouse)),
            Kind::Delivery => Input::Delivery(delivery::Delivery::draw(random, warehouse)),
            Kind::StockLevel => Input::StockLevel(stock_level::StockLevel::draw(random, warehouse)),
        }
    }
}

impl Terminal {
    /// Connects and prepares all statements.
    pub(crate) async fn open(address: &Address, isolation: Isolation) -> Result<Terminal, BenchError> {
        let client = address.connect().await?;
        let prepared = async |statements: &[&str]| {
            let all = try_join_all(statements.iter().map(|sql| client.prepare(sql))).await;
            all.map_err(BenchError::query("preparing the statements"))
        };
        let new_order = prepared(&new_order::STATEMENTS).await?;
        let payment = prepared(&payment::STATEMENTS).await?;
        let order_status = prepared(&order_status::STATEMENTS).await?;
        let delivery = prepared(&delivery::STATEMENTS).await?;
        let stock_level = prepared(&stock_level::STATEMENTS).await?;
        let begin = format!("begin isolation level {}", isolation.words());
        Ok(Terminal { begin, new_order, payment, order_status, delivery, stock_level, client })
    }

    /// Runs a transaction once.
    pub(crate) async fn run(&self, input: &Input) -> Result<Outcome, Error> {
        match input {
            Input::NewOrder(input) => input.run(self).await,
            Input::Payment(input) => input.run(self).await,
            Input::OrderStatus(input) => input.run(self).await,
            Input::Delivery(input) => input.run(self).await,
            Input::StockLevel(input) => input.run(self).await,
        }
    }

    pub(crate) async fn begin(&self) -> Result<(), Error> {
        self.client.batch_execute(&self.begin).await
    }

    pub(crate) async fn commit(&self) -> Result<(), Error> {
        self.client.batch_execute("commit").await
    }

    pub(crate) async fn roll_back(&self) -> Result<(), Error> {
        self.client.batch_execute("rollback").await
    }
}
