//! What is loaded, as the database itself records it: a row for the whole, a row for each complete warehouse.

use tokio_postgres::Client;

use super::schema::{LOADED, RECORD, TABLES};
use crate::BenchError;
use crate::address::Address;

/// The warehouse number under which the items are recorded.
pub(crate) const ITEMS_LOADED: i32 = 0;

/// A load that has begun.
#[derive(Clone, Debug)]
pub(crate) struct State {
    /// Warehouses that it is to have.
    pub(crate) warehouses: u32,
    /// The seed of its rows.
    pub(crate) seed: u64,
    /// Numbers of complete warehouses, and [`ITEMS_LOADED`].
    pub(crate) loaded: Vec<i32>,
    /// Whether indexes and statistics are there too.
    pub(crate) is_ready: bool,
}

impl State {
    /// What the database has; none where it has no tables of these names.
    ///
    /// # Errors
    /// It has tables of these names that are not ours.
    pub(crate) async fn of(client: &Client, address: &Address) -> Result<Option<State>, BenchError> {
        let names: Vec<&str> = TABLES.iter().map(|table| table.name).chain([RECORD, LOADED]).collect();
        let sql =
            "select name from unnest($1::text[]) as name where to_regclass(quote_ident(name)) is not null";
        let found = client.query(sql, &[&names]).await.map_err(BenchError::query("looking for tables"))?;
        let found: Vec<String> = found.iter().map(|row| row.get(0)).collect();
        if found.is_empty() {
            return Ok(None);
        }
        let foreign = || BenchError::Foreign { database: address.to_string(), tables: found.join(", ") };
        if found.len() < names.len() {
            return Err(foreign());
        }
        let sql = format!(
            "select warehouses, seed, is_ready from {RECORD} where workload = 'order-entry' and version = 1"
        );
        // A table of this name with other columns is another's.
        let record = client.query_opt(&sql, &[]).await.ok().flatten().ok_or_else(foreign)?;
        let loaded = client.query(&format!("select warehouse from {LOADED}"), &[]).await;
        let loaded = loaded.map_err(BenchError::query("reading what is loaded"))?;
        Ok(Some(State {
            warehouses: record.get::<_, i32>(0) as u32,
            seed: record.get::<_, i64>(1) as u64,
            loaded: loaded.iter().map(|row| row.get(0)).collect(),
            is_ready: record.get(2),
        }))
    }

    /// The state of a database that is to be used.
    ///
    /// # Errors
    /// There is none, or its load has not ended.
    pub(crate) async fn ready(client: &Client, address: &Address) -> Result<State, BenchError> {
        let state = State::of(client, address).await?;
        let state = state.ok_or_else(|| BenchError::NotPrepared(address.to_string()))?;
        let loaded = state.loaded.iter().filter(|number| **number != ITEMS_LOADED).count() as u32;
        if loaded < state.warehouses {
            return Err(BenchError::Unfinished { loaded, warehouses: state.warehouses });
        }
        match state.is_ready {
            true => Ok(state),
            false => Err(BenchError::WithoutIndexes),
        }
    }
}
