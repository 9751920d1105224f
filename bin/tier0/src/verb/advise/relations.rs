//! Tables and indexes of a running PostgreSQL: where they lie, and how they are moved.

use std::path::PathBuf;
use std::time::Duration;

use tier0_advisor::plan::{Move, postgresql_move};

use tokio_postgres::Row;
use tokio_postgres::error::SqlState;

use super::postgres::{LIMIT, Server, no_answer, words};

/// The tablespace of a relation, and its files below the data directory: its own, those of its TOAST table and of that one's
/// index. A file larger than 1 GiB goes on in files with .1, .2 … behind its name.
const RELATION: &str = "
  select pg_table_size(c.oid)::float8,
         coalesce((select spcname::text from pg_tablespace where oid = c.reltablespace), ''),
         array_remove(array[pg_relation_filepath(c.oid), pg_relation_filepath(nullif(c.reltoastrelid, 0))]
           || array(select pg_relation_filepath(i.indexrelid) from pg_index i
                     where i.indrelid = c.reltoastrelid and c.reltoastrelid <> 0), null)
    from pg_class c join pg_namespace n on n.oid = c.relnamespace
   where n.nspname = $1 and c.relname = $2";

/// Where a relation lies.
pub(super) struct Located {
    /// Its size, bytes.
    pub(super) bytes: f64,
    /// Its tablespace; empty for the database's own.
    pub(super) tablespace: String,
    /// Its files below the data directory.
    pub(super) files: Vec<String>,
}

impl Server {
    /// Where the data directory is on the server's host.
    pub(super) async fn data_directory(&self) -> Result<PathBuf, String> {
        let row = self.one("select current_setting('data_directory')").await?;
        Ok(row.get::<_, String>(0).into())
    }

    /// Where the object of a move lies; nothing if it is not in this database.
    pub(super) async fn located(&self, of: &Move) -> Result<Option<Located>, String> {
        let rows = tokio::time::timeout(LIMIT, self.client.query(RELATION, &[&of.database, &of.name])).await;
        let rows = rows.map_err(|_| no_answer())?.map_err(|error| refused(&of.object, &error))?;
        let located = |row: &Row| Located { bytes: row.get(0), tablespace: row.get(1), files: row.get(2) };
        Ok(rows.first().map(located))
    }

    /// Whether there is such a tablespace.
    pub(super) async fn has_tablespace(&self, name: &str) -> Result<bool, String> {
        let query = "select 1 from pg_tablespace where spcname = $1";
        let rows = tokio::time::timeout(LIMIT, self.client.query(query, &[&name])).await;
        let rows = rows.map_err(|_| no_answer())?.map_err(|error| refused(name, &error))?;
        Ok(!rows.is_empty())
    }

    /// Moves an object to a tablespace. The server copies it and locks it meanwhile; it waits for other sessions' locks at most
    /// `lock_timeout`.
    pub(super) async fn move_to(
        &self,
        of: &Move,
        tablespace: &str,
        lock_timeout: Duration,
    ) -> Result<(), String> {
        let statement = postgresql_move(of.kind, &of.database, &of.name, tablespace);
        let timeout = format!("set lock_timeout = '{}ms'", lock_timeout.as_millis().max(1));
        let done = async {
            self.client.batch_execute(&timeout).await?;
            self.client.batch_execute(&statement).await
        };
        done.await.map_err(|error| refused(&of.object, &error))
    }
}

fn refused(object: &str, error: &tokio_postgres::Error) -> String {
    let remedy = match error.code() {
        Some(&SqlState::DISK_FULL) => "make room in the tablespace, or make the plan with less --flash",
        Some(&SqlState::LOCK_NOT_AVAILABLE) => {
            "choose a time when its locks are free, or wait longer (--lock-timeout)"
        }
        Some(&SqlState::INSUFFICIENT_PRIVILEGE) => {
            "connect as the owner of the object, who may create in the tablespace"
        }
        _ => "check the server's log",
    };
    format!("{object}: the database refuses: {}; {remedy}", words(error))
}
