//! A running MySQL or MariaDB: how it is connected to and asked. Nothing is changed in it.
//!
//! | file | concept |
//! |---|---|
//! | `files` | what a file of the server holds, by its path |
//! | `sample` | the server's counters as a sample |

mod files;
mod sample;

use std::path::{Path, PathBuf};
use std::time::Duration;

use mysql_async::prelude::Queryable;
use mysql_async::{Conn, Error, IoError, Opts, OptsBuilder, Row, SslOpts};
use tier0_advisor::samples::DatabaseAddress;

use crate::failure::Failure;

/// How long a connection and a query may take.
const LIMIT: Duration = Duration::from_secs(60);
/// The least versions whose tables are known, major and minor: MySQL 8.0 has its dictionary in tables, MariaDB 10.6 names the files
/// of tablespaces.
const MYSQL_LEAST: (u32, u32) = (8, 0);
const MARIADB_LEAST: (u32, u32) = (10, 6);

/// Whether a DSN names such a server.
pub(super) fn is_mysql(dsn: &str) -> bool {
    dsn.starts_with("mysql:") || dsn.starts_with("mariadb:")
}

/// Where and as which user to connect. The password stays in here.
pub(super) struct Settings {
    opts: Opts,
}

impl Settings {
    /// What a DSN and the environment say.
    pub(super) fn of(dsn: &str) -> Result<Settings, Failure> {
        // The driver's error may hold parts of the DSN, and these a password.
        let wrong = || {
            Failure::Input(
                "--dsn is not understood; write mysql://user@host:3306/ or mysql://user@localhost/?socket=/run/mysqld/mysqld.sock \
                 (docs/advise.md has its options)"
                    .to_owned(),
            )
        };
        let (url, ca) =
            without_ca(dsn.strip_prefix("mariadb:").map_or(dsn.to_owned(), |rest| format!("mysql:{rest}")));
        let opts = Opts::from_url(&url).map_err(|_| wrong())?;
        let user = opts.user().map(str::to_owned).filter(|user| !user.is_empty());
        let user = user.or_else(|| std::env::var("USER").ok());
        let password = opts.pass().map(str::to_owned).or_else(|| std::env::var("MYSQL_PWD").ok());
        let tls = match ca {
            None => opts.ssl_opts().cloned(),
            Some(ca) => {
                std::fs::File::open(&ca).map_err(|error| {
                    Failure::Input(format!("cannot read {}: {error}; correct ssl_ca in --dsn", ca.display()))
                })?;
                let tls = opts.ssl_opts().cloned().unwrap_or_default();
                Some(SslOpts::with_root_certs(tls, vec![ca.into()]).with_disable_built_in_roots(true))
            }
        };
        // A server behind a tunnel names a socket of its own host.
        let builder = OptsBuilder::from_opts(opts).prefer_socket(false);
        Ok(Settings { opts: builder.user(user).pass(password).ssl_opts(tls).into() })
    }

    /// The host, or the socket.
    fn place(&self) -> String {
        self.opts.socket().map_or_else(|| self.opts.ip_or_hostname().to_owned(), str::to_owned)
    }

    /// What to do where the connection fails.
    fn remedy(&self, error: &Error) -> &'static str {
        match error {
            Error::Server(_) => "check the user of --dsn and MYSQL_PWD",
            Error::Io(IoError::Tls(_)) => {
                "name the certificate of the server's authority in --dsn (ssl_ca=FILE), and the host as the certificate has it"
            }
            _ if self.opts.socket().is_none() && self.is_near() => {
                "check --dsn and the server; for one that only has a socket add ?socket=/run/mysqld/mysqld.sock"
            }
            _ => "check --dsn and the server",
        }
    }

    /// Whether the server may be on this host; a port may be the near end of a tunnel.
    fn is_near(&self) -> bool {
        self.opts.socket().is_some()
            || ["localhost", "127.0.0.1", "::1"].contains(&self.opts.ip_or_hostname())
    }
}

/// Takes the parameter `ssl_ca`, which the driver does not know, out of a DSN.
fn without_ca(dsn: String) -> (String, Option<PathBuf>) {
    let Some((before, parameters)) = dsn.split_once('?') else { return (dsn, None) };
    let is_ca = |parameter: &&str| parameter.starts_with("ssl_ca=");
    let ca = parameters.split('&').find(is_ca).and_then(|one| one.strip_prefix("ssl_ca="));
    let others: Vec<&str> = parameters.split('&').filter(|one| !is_ca(one)).collect();
    let ca = ca.map(PathBuf::from);
    (format!("{before}?{}", others.join("&")).trim_end_matches('?').to_owned(), ca)
}

/// A connection, and what does not change while it lasts.
pub(super) struct Server {
    conn: Conn,
    facts: Facts,
    /// Names of objects that file names have encoded, as the server has decoded them.
    names: files::Names,
    /// Sizes of tables that are not InnoDB's, by schema and name.
    other_sizes: Vec<(String, String, f64)>,
}

/// What does not change while a server runs.
struct Facts {
    version: String,
    is_mariadb: bool,
    address: DatabaseAddress,
    data_directory: String,
    page_bytes: f64,
    flush_method: Option<String>,
    has_performance_schema: bool,
    /// The server's process, where it says which and this host lets it be read.
    process: Option<i32>,
    /// Whether the server runs on this host.
    is_local: bool,
}

const FACTS: &str = "select @@version, @@port, @@datadir, @@innodb_page_size, @@innodb_flush_method, @@performance_schema, @@hostname, @@pid_file";

impl Server {
    /// Connects.
    pub(super) async fn connect(settings: &Settings) -> Result<Server, String> {
        let connected = tokio::time::timeout(LIMIT, Conn::new(settings.opts.clone())).await;
        let mut conn = connected.map_err(|_| no_answer())?.map_err(|error| {
            format!("cannot connect to the database: {}; {}", words(&error), settings.remedy(&error))
        })?;
        let row = one(&mut conn, FACTS).await?;
        let version = text(&row, 0);
        let is_mariadb = version.contains("MariaDB");
        check_version(&version, is_mariadb)?;
        // An identifier of the server; older ones of MariaDB have none.
        let query = if is_mariadb { "select @@server_uid" } else { "select @@server_uuid" };
        let system = one(&mut conn, query).await.ok().map(|row| text(&row, 0));
        let address = DatabaseAddress {
            host: settings.place(),
            port: number(&row, 1).map_or(0, |port| port as u16),
            database: String::new(),
            system,
        };
        let host = rustix::system::uname().nodename().to_string_lossy().into_owned();
        let facts = Facts {
            is_mariadb,
            address,
            data_directory: text(&row, 2),
            page_bytes: number(&row, 3).unwrap_or(16_384.0),
            flush_method: Some(text(&row, 4)).filter(|method| !method.is_empty()),
            has_performance_schema: number(&row, 5) == Some(1.0),
            process: process(&text(&row, 2), &text(&row, 7)),
            is_local: settings.opts.socket().is_some() || settings.is_near() && text(&row, 6) == host,
            version,
        };
        Ok(Server { conn, facts, names: files::Names::default(), other_sizes: Vec::new() })
    }

    /// Ends the connection in good order.
    pub(super) async fn close(self) {
        // A server that is gone has no connection to end.
        _ = tokio::time::timeout(Duration::from_secs(1), self.conn.disconnect()).await;
    }
}

/// The number in a file that lies below the data directory or has a whole path.
fn process(data_directory: &str, file: &str) -> Option<i32> {
    std::fs::read_to_string(Path::new(data_directory).join(file)).ok()?.trim().parse().ok()
}

/// Refuses a server whose tables are not known.
fn check_version(version: &str, is_mariadb: bool) -> Result<(), String> {
    let mut parts = version.split(['.', '-']).map(|part| part.parse::<u32>().unwrap_or(0));
    let found = (parts.next().unwrap_or(0), parts.next().unwrap_or(0));
    let least = if is_mariadb { MARIADB_LEAST } else { MYSQL_LEAST };
    match found >= least {
        true => Ok(()),
        false => Err(format!(
            "the server is of version {version}, and the tables of MySQL 8.0, MariaDB 10.6 and later are known; collect from one of \
             these, or give the output of \"show global status\" to tier0 advise"
        )),
    }
}

async fn all(conn: &mut Conn, query: &str) -> Result<Vec<Row>, String> {
    let rows = tokio::time::timeout(LIMIT, conn.query::<Row, _>(query)).await;
    rows.map_err(|_| no_answer())?.map_err(|error| {
        format!(
            "the database refuses its statistics: {}; grant process on *.* and select on performance_schema.*",
            words(&error)
        )
    })
}

async fn one(conn: &mut Conn, query: &str) -> Result<Row, String> {
    let row = all(conn, query).await?.into_iter().next();
    row.ok_or_else(|| "the database has no statistics of itself; check its performance_schema".to_owned())
}

fn text(row: &Row, at: usize) -> String {
    match row.as_ref(at) {
        Some(mysql_async::Value::Bytes(bytes)) => String::from_utf8_lossy(bytes).into_owned(),
        _ => String::new(),
    }
}

fn number(row: &Row, at: usize) -> Option<f64> {
    text(row, at).parse().ok()
}

fn no_answer() -> String {
    format!("the database has not answered for {} s; check its load and its network", LIMIT.as_secs())
}

/// An error on one line. The driver's errors of addresses hold parts of the DSN.
fn words(error: &Error) -> String {
    match error {
        Error::Url(_) => "the address is not understood".to_owned(),
        Error::Server(error) => format!("{} (error {})", error.message, error.code),
        Error::Io(IoError::Io(error)) => error.to_string(),
        Error::Io(IoError::Tls(error)) => error.to_string(),
        other => other.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_password_is_not_in_what_is_said() {
        for dsn in [
            "mysql://u:s3cret@db:port/x",
            "mysql://u:s3cret@",
            "mysql:s3cret",
            "mysql://u@db/?pool_min=s3cret",
            "mysql://u@db/?s3cret=1",
        ] {
            let Err(failure) = Settings::of(dsn) else { panic!("{dsn:?} is understood") };
            let text = failure.text().expect("it says why");
            assert!(!text.contains("s3cret") && text.contains("; "), "{text}");
        }
    }

    #[test]
    fn a_dsn_has_host_socket_and_certificate() {
        let of = |dsn: &str| Settings::of(dsn).expect("a DSN");
        let socket = of("mariadb://m@localhost/shop?socket=/run/mysqld/mysqld.sock");
        assert!(socket.is_near() && socket.place() == "/run/mysqld/mysqld.sock");
        let host = of("mysql://m@db1.example:3307/?require_ssl=true&ssl_ca=/dev/null");
        assert!(!host.is_near() && host.place() == "db1.example" && host.opts.tcp_port() == 3307);
        assert_eq!(host.opts.ssl_opts().map(|tls| tls.root_certs().len()), Some(1));
        assert!(of("mysql://m@db1.example/").opts.ssl_opts().is_none());
        let missing = Settings::of("mysql://m@db1.example/?ssl_ca=/nowhere/ca.pem").err();
        assert!(
            missing.and_then(|failure| failure.text()).is_some_and(|text| text.contains("correct ssl_ca"))
        );
        assert!(is_mysql("mysql://x") && is_mysql("mariadb://x") && !is_mysql("postgresql://x"));
    }

    #[test]
    fn old_servers_are_refused() {
        for (version, is_mariadb, is_known) in [
            ("10.11.19-MariaDB-0+deb12u1", true, true),
            ("11.4.2-MariaDB", true, true),
            ("10.5.29-MariaDB", true, false),
            ("8.0.36", false, true),
            ("9.1.0-commercial", false, true),
            ("5.7.44-log", false, false),
        ] {
            assert_eq!(check_version(version, is_mariadb).is_ok(), is_known, "{version}");
        }
    }
}
