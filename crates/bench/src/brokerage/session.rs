//! A session of a user: a connection with its prepared statements.
//!
//! Plans look rows up by index and join by loops, whatever the size of tables, as the stored procedures of public kits do: small
//! databases would else scan tables that large ones do not, and the rows touched would not be those of the load.

use futures_util::future::try_join_all;
use tokio_postgres::{Client, Error, Statement};

use super::transactions::STATEMENTS;
use crate::BenchError;
use crate::address::Address;
use crate::run::options::Isolation;

const SETTINGS: &str = "set enable_hashjoin = off; set enable_mergejoin = off; set enable_seqscan = off; \
     set enable_bitmapscan = off; \
     set plan_cache_mode = force_generic_plan; set jit = off";

/// A session.
pub(crate) struct Session {
    pub(crate) client: Client,
    begin: String,
    /// By kind, then by place in the kind's statements.
    statements: Vec<Vec<Statement>>,
}

impl Session {
    /// Connects and prepares all statements.
    pub(crate) async fn open(address: &Address, isolation: Isolation) -> Result<Session, BenchError> {
        let client = address.connect().await?;
        client.batch_execute(SETTINGS).await.map_err(BenchError::query("setting how plans are made"))?;
        let mut statements = Vec::with_capacity(STATEMENTS.len());
        for of_kind in STATEMENTS {
            let prepared = try_join_all(of_kind.iter().map(|sql| client.prepare(sql))).await;
            statements.push(prepared.map_err(BenchError::query("preparing the statements"))?);
        }
        let begin = format!("begin isolation level {}", isolation.words());
        Ok(Session { client, begin, statements })
    }

    /// The statements of a kind.
    pub(super) fn of(&self, kind: usize) -> &[Statement] {
        &self.statements[kind]
    }

    pub(super) async fn begin(&self) -> Result<(), Error> {
        self.client.batch_execute(&self.begin).await
    }

    pub(super) async fn commit(&self) -> Result<(), Error> {
        self.client.batch_execute("commit").await
    }

    pub(super) async fn roll_back(&self) -> Result<(), Error> {
        self.client.batch_execute("rollback").await
    }
}
