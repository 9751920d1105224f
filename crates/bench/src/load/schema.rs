//! Tables and indexes of a load, and the record of what is loaded.

use tokio_postgres::Client;

use super::condition::Condition;
use super::{Load, Scale};
use crate::error::BenchError;

/// What records what is loaded: one row, and one row for each complete piece.
pub(crate) const RECORD: &str = "tier0_bench";
pub(crate) const LOADED: &str = "tier0_bench_loaded";
/// The form of the record.
pub(crate) const VERSION: i32 = 2;

/// A table.
pub(crate) struct Table {
    pub(crate) name: &'static str,
    pub(crate) columns: &'static str,
    /// Name and columns of its indexes; the first is unique.
    pub(crate) indexes: &'static [(&'static str, &'static str)],
}

/// Creates the tables and the empty record of a load, in one transaction.
pub(crate) async fn create(client: &mut Client, scale: &Scale, seed: u64) -> Result<(), BenchError> {
    let load = scale.load();
    let days = scale.days().map_or("null".to_owned(), |days| days.to_string());
    let mut sql = format!(
        "create table {RECORD} (workload text not null, version int not null, scale double precision not null, \
         days int, seed bigint not null, is_ready boolean not null);\n\
         create table {LOADED} (piece int primary key, loaded_at timestamptz not null default now());\n\
         insert into {RECORD} values ('{load}', {VERSION}, {}, {days}, {}, false);\n",
        scale.units(),
        seed as i64
    );
    for table in load.tables() {
        sql += &format!("create table {} ({});\n", table.name, table.columns);
    }
    sql += load.beside_tables();
    let transaction = client.transaction().await.map_err(BenchError::query("creating the tables"))?;
    transaction.batch_execute(&sql).await.map_err(BenchError::query("creating the tables"))?;
    transaction.commit().await.map_err(BenchError::query("creating the tables"))
}

/// How long the removal may wait for sessions that use the tables.
const REMOVE_LOCK_LIMIT: &str = "10s";

/// Removes the tables and the record. The end of the transaction is sent only once the rest is done: if the program ends before that,
/// the server removes nothing later.
pub(crate) async fn remove(client: &Client, load: Load) -> Result<(), BenchError> {
    let names = names(load).join(", ");
    let sql = format!("begin; set local lock_timeout = '{REMOVE_LOCK_LIMIT}'; drop table if exists {names}");
    client.batch_execute(&sql).await.map_err(BenchError::query("removing the tables"))?;
    client.batch_execute("commit").await.map_err(BenchError::query("removing the tables"))
}

/// The names of a load's tables, and of the record's.
pub(crate) fn names(load: Load) -> Vec<&'static str> {
    load.tables().iter().map(|table| table.name).chain([RECORD, LOADED]).collect()
}

/// That all indexes are there: `create index if not exists` is content with one of this name on another table, and an index
/// whose creation was interrupted is there and not valid.
pub(crate) fn indexes_exist(load: Load) -> Condition {
    let of = |table: &str, place: usize, (name, columns): &(&str, &str)| {
        let unique = if place == 0 { "unique " } else { "" };
        format!("('{name}', '{unique}on {table} ({columns})')")
    };
    let record = of(LOADED, 0, &("tier0_bench_loaded_pkey", "piece"));
    let tables = load.tables().iter().flat_map(|table| {
        table.indexes.iter().enumerate().map(move |(place, index)| of(table.name, place, index))
    });
    let wanted: Vec<String> = tables.chain([record]).collect();
    Condition {
        name: "indexes",
        text: "all indexes and keys are there: on their tables, with their columns, and valid",
        place: "index",
        sql: format!(
            "select array[wanted.name], found.text, wanted.text from (values {}) as wanted (name, text) left join \
             (select c.relname::text as name, case when indisunique then 'unique ' else '' end || 'on ' || t.relname || ' (' || \
             (select string_agg(attname, ', ' order by place) from unnest(indkey::int2[]) with ordinality as k (number, place) \
             join pg_attribute on attrelid = indrelid and attnum = number) || ')' || \
             case when indpred is null then '' else ', partial' end || \
             case when indisvalid and indisready and indislive then '' else ', not valid' end as text \
             from pg_index join pg_class c on c.oid = indexrelid join pg_class t on t.oid = indrelid \
             where c.relnamespace = current_schema()::regnamespace) as found on found.name = wanted.name",
            wanted.join(", ")
        ),
    }
}

/// The statement that creates an index of a table, if it is not there.
pub(crate) fn index(table: &Table, place: usize) -> String {
    let (name, columns) = table.indexes[place];
    let unique = if place == 0 { "unique " } else { "" };
    format!("create {unique}index if not exists {name} on {} ({columns})", table.name)
}
