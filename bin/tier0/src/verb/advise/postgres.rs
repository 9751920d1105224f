//! A running PostgreSQL: connection and samples.

use std::time::Duration;

use tier0_advisor::samples::DatabaseAddress;
use tier0_advisor::samples::postgres::{DatabaseCounters, MARK, PostgresSample, Relation, VERSION};
use tokio_postgres::config::Host;
use tokio_postgres::{Client, Config, NoTls, Row};

use super::postgres_views::{RELATIONS, instance};
use super::processors::{processors, server_ms};
use crate::failure::Failure;

/// How long the answer to a cancellation may take.
const CANCEL_LIMIT: Duration = Duration::from_secs(10);
/// How the kernel names the server's processes.
const PROGRAM: &str = "postgres";
/// How long a connection and a sample may take.
pub(super) const LIMIT: Duration = Duration::from_secs(60);
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

    /// Whether the server is on this host, as far as its address tells.
    pub(super) fn is_local(&self) -> bool {
        self.is_local
    }
}

/// A connection.
pub(super) struct Server {
    pub(super) client: Client,
    /// The statement for the server's statistics; none where its views are not known.
    instance: Option<String>,
    version: i32,
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
        let mut server = Server { client, instance: None, version: 0 };
        let version = server.one("select current_setting('server_version_num')::int4").await?.get(0);
        (server.version, server.instance) = (version, instance(version));
        Ok(server)
    }

    /// The statement for the server's statistics. What moves or maps tables needs none.
    fn instance(&self) -> Result<&str, String> {
        self.instance.as_deref().ok_or_else(|| {
            format!(
                "the server is PostgreSQL {}, and the statistics views of 14 to 18 are known; collect from one of these",
                self.version / 10_000
            )
        })
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

    /// Has the server cancel the statement that it carries out, and waits for its answer, for a while.
    pub(super) async fn cancel(&self) {
        let cancelled = self.client.cancel_token();
        drop(tokio::time::timeout(CANCEL_LIMIT, cancelled.cancel_query(NoTls)).await);
        // A statement that follows is answered after the cancelled one.
        drop(tokio::time::timeout(CANCEL_LIMIT, self.client.batch_execute("")).await);
    }

    pub(super) async fn one(&self, query: &str) -> Result<Row, String> {
        let row = tokio::time::timeout(LIMIT, self.client.query_one(query, &[])).await;
        row.map_err(|_| no_answer())?.map_err(|error| failed(&error))
    }

    /// A sample.
    pub(super) async fn sample(&self, settings: &Settings) -> Result<PostgresSample, String> {
        let instance = self.instance()?;
        let address = self.address(settings).await?;
        let row = self.one(instance).await?;
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
