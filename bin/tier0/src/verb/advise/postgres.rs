//! A running PostgreSQL: its settings and its statistics views. The only place that speaks with it.

use std::time::Duration;

use tier0_advisor::samples::DatabaseAddress;
use tier0_advisor::samples::postgres::{DatabaseCounters, MARK, PostgresSample, Relation, VERSION};
use tokio_postgres::config::Host;
use tokio_postgres::{Client, Config, NoTls, Row};

use super::processors::{processors, server_ms};
use crate::failure::Failure;

/// How the kernel names the server's processes.
const PROGRAM: &str = "postgres";
/// How long a connection and a sample may take.
pub(super) const LIMIT: Duration = Duration::from_secs(60);
/// The versions whose views are known: 14 brought active times and the view of the log, 17 moved the counters of checkpoints.
const VERSIONS: std::ops::Range<i32> = 140_000..170_000;

const INSTANCE: &str = "
  select extract(epoch from clock_timestamp())::float8,
         current_setting('server_version'),
         pg_postmaster_start_time()::text || ' ' || coalesce(d.stats_reset::text, '') || ' '
           || coalesce(b.stats_reset::text, '') || ' ' || coalesce(w.stats_reset::text, ''),
         current_setting('block_size')::float8,
         pg_size_bytes(current_setting('shared_buffers'))::float8,
         current_setting('track_io_timing') = 'on',
         current_setting('track_wal_io_timing') = 'on',
         (d.xact_commit + d.xact_rollback)::float8, d.blks_hit::float8, d.blks_read::float8,
         d.blk_read_time, d.blk_write_time, d.active_time,
         (b.buffers_checkpoint + b.buffers_clean + b.buffers_backend)::float8,
         w.wal_write::float8, w.wal_bytes::float8, w.wal_write_time + w.wal_sync_time,
         pg_backend_pid()
    from pg_stat_database d, pg_stat_bgwriter b, pg_stat_wal w
   where d.datname = current_database()";

/// The main parts of tables with their TOAST tables; an estimate of changed entries for indexes.
const RELATIONS: &str = "
  select s.schemaname::text, s.relname::text, null::text,
         (select p.relname::text from pg_inherits i join pg_class p on p.oid = i.inhparent
           where i.inhrelid = s.relid and p.relkind = 'p' limit 1),
         pg_table_size(s.relid)::float8,
         (s.heap_blks_read + coalesce(s.toast_blks_read, 0) + coalesce(s.tidx_blks_read, 0))::float8,
         (s.heap_blks_hit + coalesce(s.toast_blks_hit, 0) + coalesce(s.tidx_blks_hit, 0))::float8,
         t.seq_tup_read::float8, coalesce(t.idx_tup_fetch, 0)::float8,
         (t.n_tup_ins + t.n_tup_upd + t.n_tup_del)::float8
    from pg_statio_user_tables s join pg_stat_user_tables t using (relid)
  union all
  select s.schemaname::text, s.indexrelname::text, s.relname::text, null,
         pg_relation_size(s.indexrelid)::float8,
         s.idx_blks_read::float8, s.idx_blks_hit::float8,
         null, u.idx_tup_read::float8,
         (t.n_tup_ins + t.n_tup_upd - t.n_tup_hot_upd)::float8
    from pg_statio_user_indexes s
    join pg_stat_user_indexes u using (indexrelid)
    join pg_stat_user_tables t on t.relid = s.relid";

/// Where and as whom to connect. The password stays in here.
pub(super) struct Settings {
    config: Config,
    /// Whether the server is on this host.
    is_local: bool,
}

impl Settings {
    /// What a DSN and the environment say.
    pub(super) fn of(dsn: &str) -> Result<Settings, Failure> {
        if super::mysql::is_mysql(dsn) {
            return Err(Failure::Input(
                "--dsn names a MySQL or a MariaDB, and only on a PostgreSQL tier0 carries a plan out; carry its statements out by hand \
                 (tier0 advise plan --sql)"
                    .to_owned(),
            ));
        }
        // The text of the error may hold parts of the DSN, and these a password.
        let mut config: Config = dsn.parse().map_err(|_| {
            Failure::Input(
                "--dsn is not understood; write host=/run/postgresql dbname=shop user=monitor, or postgresql://user@host/database"
                    .to_owned(),
            )
        })?;
        if config.get_user().is_none()
            && let Ok(user) = std::env::var("PGUSER").or_else(|_| std::env::var("USER"))
        {
            config.user(user);
        }
        if config.get_password().is_none()
            && let Ok(password) = std::env::var("PGPASSWORD")
        {
            config.password(password);
        }
        if config.get_hosts().is_empty() {
            config.host("/run/postgresql");
        }
        config.application_name("tier0 advise").connect_timeout(LIMIT);
        let is_local = config.get_hosts().iter().all(|host| match host {
            Host::Unix(_) => true,
            Host::Tcp(name) => ["localhost", "127.0.0.1", "::1"].contains(&name.as_str()),
        });
        Ok(Settings { config, is_local })
    }
}

/// A connection.
pub(super) struct Server {
    pub(super) client: Client,
}

impl Server {
    /// Connects.
    pub(super) async fn connect(settings: &Settings) -> Result<Server, String> {
        let connected = tokio::time::timeout(LIMIT, settings.config.connect(NoTls)).await;
        let connected = connected.map_err(|_| no_answer())?;
        let (client, connection) = connected.map_err(|error| {
            format!(
                "cannot connect to the database: {}; check --dsn, the server and its pg_hba.conf",
                words(&error)
            )
        })?;
        // It ends when the client is dropped; what is wrong with it, queries say.
        tokio::spawn(async move { drop(connection.await) });
        Ok(Server { client })
    }

    /// Refuses a server whose statistics views are not known. What moves or maps tables needs none of them.
    pub(super) async fn check_views(&self) -> Result<(), String> {
        let version: i32 = self.one("select current_setting('server_version_num')::int4").await?.get(0);
        match VERSIONS.contains(&version) {
            true => Ok(()),
            false => Err(format!(
                "the server is PostgreSQL {}, and the statistics views of 14 to 16 are known; collect from one of these",
                version / 10_000
            )),
        }
    }

    /// Which database this is.
    pub(super) async fn address(&self, settings: &Settings) -> Result<DatabaseAddress, String> {
        let row = self.one("select current_setting('port')::int4, current_database()::text").await?;
        // A server may keep its identifier from its users.
        let query = "select system_identifier::text from pg_control_system()";
        let system = self.one(query).await.ok().map(|row| row.get(0));
        let host = settings.config.get_hosts().first().map_or(String::new(), |host| match host {
            Host::Unix(directory) => directory.display().to_string(),
            Host::Tcp(name) => name.clone(),
        });
        Ok(DatabaseAddress {
            host,
            port: row.get::<_, i32>(0).try_into().unwrap_or(0),
            database: row.get(1),
            system,
        })
    }

    pub(super) async fn one(&self, query: &str) -> Result<Row, String> {
        let row = tokio::time::timeout(LIMIT, self.client.query_one(query, &[])).await;
        row.map_err(|_| no_answer())?.map_err(|error| failed(&error))
    }

    /// A sample.
    pub(super) async fn sample(&self, settings: &Settings) -> Result<PostgresSample, String> {
        let address = self.address(settings).await?;
        let row = self.one(INSTANCE).await?;
        let relations = tokio::time::timeout(LIMIT, self.client.query(RELATIONS, &[])).await;
        let relations = relations.map_err(|_| no_answer())?.map_err(|error| failed(&error))?;
        let mut relations: Vec<Relation> = relations.iter().map(relation).collect();
        relations.sort_by(|a, b| (&a.schema, &a.name).cmp(&(&b.schema, &b.name)));
        let figure = |at: usize| row.get::<_, Option<f64>>(at);
        let (has_io_times, has_log_times): (bool, bool) = (row.get(5), row.get(6));
        Ok(PostgresSample {
            tier0: MARK.to_owned(),
            version: VERSION,
            at: row.get(0),
            full: false,
            address: Some(address),
            server: row.get(1),
            epoch: row.get(2),
            page_bytes: row.get(3),
            buffer_bytes: figure(4),
            has_io_times,
            has_log_times,
            database: DatabaseCounters {
                transactions: figure(7),
                hits: figure(8),
                reads: figure(9),
                // Where it is switched off the server counts 0, which is not what it measures.
                read_ms: figure(10).filter(|_| has_io_times),
                write_ms: figure(11).filter(|_| has_io_times),
                active_ms: figure(12),
                written: figure(13),
                log_writes: figure(14),
                log_bytes: figure(15),
                log_ms: figure(16).filter(|_| has_log_times),
            },
            relations,
            processor_ms: settings.is_local.then(|| server_ms(row.get(17), PROGRAM)).flatten(),
            host: settings.is_local.then(processors).flatten(),
            volumes: Vec::new(),
        })
    }
}

fn relation(row: &Row) -> Relation {
    Relation {
        schema: row.get(0),
        name: row.get(1),
        table: row.get(2),
        partition_of: row.get(3),
        bytes: row.get(4),
        reads: row.get(5),
        hits: row.get(6),
        scanned_rows: row.get(7),
        fetched_rows: row.get(8),
        changed_rows: row.get(9),
    }
}

pub(super) fn no_answer() -> String {
    format!("the database has not answered for {} s; check its load and its network", LIMIT.as_secs())
}

fn failed(error: &tokio_postgres::Error) -> String {
    format!(
        "the database refuses its statistics: {}; grant the role pg_monitor, and check the server's log",
        words(error)
    )
}

/// An error and its cause, on one line.
pub(super) fn words(error: &tokio_postgres::Error) -> String {
    let cause = std::error::Error::source(error).map(ToString::to_string);
    cause.map_or_else(|| error.to_string(), |cause| format!("{error}: {cause}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_password_is_not_in_what_is_said() {
        for dsn in ["host=db password='s3cret", "postgresql://u:s3cret@db:port/x", "s3cret"] {
            let Err(failure) = Settings::of(dsn) else { panic!("{dsn:?} is understood") };
            let text = failure.text().expect("it says why");
            assert!(!text.contains("s3cret") && text.contains("; "), "{text}");
        }
    }

    #[test]
    fn the_host_is_known_where_it_is_this_one() {
        let is_local = |dsn: &str| Settings::of(dsn).expect("a DSN").is_local;
        assert!(is_local("host=/run/postgresql dbname=x") && is_local("postgresql://u@localhost/x"));
        assert!(!is_local("postgresql://u@db1.example/x"));
    }
}
