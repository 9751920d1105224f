//! What is loaded, as the database itself records it: a row for the whole, a row for each complete piece.

use tokio_postgres::Client;

use super::schema::{LOADED, RECORD, VERSION, names};
use super::{Load, Scale};
use crate::BenchError;
use crate::address::Address;
use crate::watch::Watch;

/// The database as the sessions of a load see it: names are those of the schema that has the record, or else of the one in which
/// new tables are created. A table of the same name in another schema of the search path is another's, and never touched.
///
/// # Errors
/// No connection; no schema in which tables can be created.
pub(crate) async fn settled(address: &Address) -> Result<Address, BenchError> {
    let client = address.connect().await?;
    let sql = "select coalesce((select nspname::text from pg_class c join pg_namespace n on n.oid = relnamespace \
               where c.oid = to_regclass($1)), current_schema()::text)";
    let found =
        client.query_one(sql, &[&RECORD]).await.map_err(BenchError::query("looking for the schema"))?;
    let schema: Option<String> = found.get(0);
    schema.map(|schema| address.within(schema)).ok_or_else(|| BenchError::NoSchema(address.to_string()))
}

/// A load that has begun.
#[derive(Clone, Debug)]
pub(crate) struct State {
    /// What it is to be.
    pub(crate) scale: Scale,
    /// The seed of its rows.
    pub(crate) seed: u64,
    /// Numbers of complete pieces.
    pub(crate) loaded: Vec<i32>,
    /// Whether indexes and statistics are there too.
    pub(crate) is_ready: bool,
}

impl State {
    /// What the database has; none where it has no record and no table that `wanted` would create, or any load if that is none.
    ///
    /// # Errors
    /// It has tables of these names that are not ours, or another load than `wanted`.
    pub(crate) async fn of(
        client: &Client,
        address: &Address,
        wanted: Option<Load>,
    ) -> Result<Option<State>, BenchError> {
        let Some((load, version)) = recorded(client, address, wanted).await? else { return Ok(None) };
        if let Some(wanted) = wanted.filter(|wanted| *wanted != load) {
            return Err(BenchError::OtherLoad { database: address.to_string(), has: load, wanted });
        }
        if version != VERSION {
            return Err(BenchError::OldForm(address.to_string()));
        }
        let sql = format!("select scale, days, seed, is_ready from {RECORD}");
        let record = client.query_one(&sql, &[]).await;
        let record = record.map_err(BenchError::query("reading what is loaded"))?;
        let loaded = client.query(&format!("select piece from {LOADED}"), &[]).await;
        let loaded = loaded.map_err(BenchError::query("reading what is loaded"))?;
        let scale = Scale::recorded(load, record.get(0), record.get(1));
        Ok(Some(State {
            scale: scale.ok_or_else(|| BenchError::OldForm(address.to_string()))?,
            seed: record.get::<_, i64>(2) as u64,
            loaded: loaded.iter().map(|row| row.get(0)).collect(),
            is_ready: record.get(3),
        }))
    }

    /// Connects to a database that is to be used: its address with the schema, a session, and its state.
    ///
    /// # Errors
    /// As of [`State::ready`]; no answer in time; an early end.
    pub(crate) async fn open(
        address: &Address,
        wanted: Option<Load>,
        watch: Watch<'_>,
    ) -> Result<(Address, Client, State), BenchError> {
        let opened = async {
            let address = settled(address).await?;
            let client = address.connect().await?;
            let state = State::ready(&client, &address, wanted).await?;
            Ok((address, client, state))
        };
        watch.asked("reading what is loaded", opened).await
    }

    /// The state of a database that is to be used.
    ///
    /// # Errors
    /// There is none, it is of another load than `wanted`, or its load has not ended.
    async fn ready(client: &Client, address: &Address, wanted: Option<Load>) -> Result<State, BenchError> {
        let state = State::of(client, address, wanted).await?;
        let state = state.ok_or_else(|| BenchError::NotPrepared(address.to_string()))?;
        let (loaded, pieces) = (state.loaded.len() as u32, state.scale.pieces() as u32);
        if loaded < pieces {
            return Err(BenchError::Unfinished { loaded, pieces });
        }
        match state.is_ready {
            true => Ok(state),
            false => Err(BenchError::WithoutIndexes),
        }
    }
}

/// The load that a database records, and the form of the record.
///
/// # Errors
/// Tables of these names are another's.
pub(crate) async fn recorded(
    client: &Client,
    address: &Address,
    wanted: Option<Load>,
) -> Result<Option<(Load, i32)>, BenchError> {
    let foreign =
        |tables: &[String]| BenchError::Foreign { database: address.to_string(), tables: tables.join(", ") };
    // A table of this name with other columns is another's.
    let record = client.query(&format!("select workload, version from {RECORD}"), &[]).await;
    let row = record.ok().filter(|rows| rows.len() == 1);
    let load = row.as_ref().and_then(|rows| rows[0].try_get::<_, &str>(0).ok()?.parse::<Load>().ok());
    let version = row.as_ref().and_then(|rows| rows[0].try_get::<_, i32>(1).ok());
    let Some((load, version)) = load.zip(version) else {
        let loads = Load::ALL.into_iter().filter(|load| wanted.is_none_or(|wanted| wanted == *load));
        let found = existing(client, &loads.flat_map(names).collect::<Vec<_>>()).await?;
        return if found.is_empty() { Ok(None) } else { Err(foreign(&found)) };
    };
    let names = names(load);
    let found = existing(client, &names).await?;
    if found.len() < names.len() { Err(foreign(&found)) } else { Ok(Some((load, version))) }
}

/// Which of the names are tables.
async fn existing(client: &Client, names: &[&str]) -> Result<Vec<String>, BenchError> {
    let sql = "select distinct name from unnest($1::text[]) as name where to_regclass(quote_ident(name)) is not null \
               order by name";
    let found = client.query(sql, &[&names]).await.map_err(BenchError::query("looking for tables"))?;
    Ok(found.iter().map(|row| row.get(0)).collect())
}
