//! Where the database is: an address as PostgreSQL's own clients take it, from an option or the environment.
//!
//! Invariant: no text and no error has the password. Connections are not encrypted (no TLS): use a unix socket, loopback, or a
//! network that is trusted.

use std::fmt;
use std::path::Path;
use std::time::Duration;

use tokio_postgres::config::Host;
use tokio_postgres::{Client, Config, NoTls};

use crate::error::{BenchError, words};

/// How long a connection may take to come about.
const CONNECT_LIMIT: Duration = Duration::from_secs(10);
/// How long a server that accepted it may take to begin the session: one that recovers refuses at once.
const SESSION_LIMIT: Duration = Duration::from_secs(30);
/// Where servers listen by default: Debian and its relatives, and PostgreSQL as its makers build it.
const SOCKETS: [&str; 2] = ["/var/run/postgresql", "/tmp"];
/// PostgreSQL's port, by which its socket is named too.
const PORT: u16 = 5432;

/// An address of a database.
#[derive(Clone)]
pub struct Address {
    config: Config,
    /// The only schema of its sessions' search path; none: what the server sets.
    schema: Option<String>,
}

impl Address {
    /// The address that is `given`, or the one in `TIER0_DSN`. What it leaves open comes from `PGHOST`, `PGPORT`, `PGUSER`,
    /// `PGPASSWORD` and `PGDATABASE`, as `variable` has them, and else from PostgreSQL's defaults.
    ///
    /// # Errors
    /// It is none.
    pub fn resolve(
        given: Option<&str>,
        variable: impl Fn(&str) -> Option<String>,
    ) -> Result<Address, BenchError> {
        let set = |name: &str| variable(name).filter(|value| !value.is_empty());
        let mut config = match given.map(str::to_owned).or_else(|| set("TIER0_DSN")) {
            Some(text) => text.parse::<Config>().map_err(|_| BenchError::Address)?,
            None => Config::new(),
        };
        if config.get_ports().is_empty() {
            let port =
                set("PGPORT").map_or(Ok(PORT), |port| port.parse()).map_err(|_| BenchError::Address)?;
            config.port(port);
        }
        if config.get_hosts().is_empty() {
            match set("PGHOST") {
                Some(host) => config.host(host),
                None => config.host(default_host(config.get_ports()[0])),
            };
        }
        if let Some(user) = set("PGUSER").filter(|_| config.get_user().is_none()) {
            config.user(user);
        }
        if let Some(password) = set("PGPASSWORD").filter(|_| config.get_password().is_none()) {
            config.password(password);
        }
        if let Some(database) = set("PGDATABASE").filter(|_| config.get_dbname().is_none()) {
            config.dbname(database);
        }
        if config.get_connect_timeout().is_none() {
            config.connect_timeout(CONNECT_LIMIT);
        }
        // By which the end of this process's sessions can be seen.
        config.application_name(format!("tier0 bench {}", std::process::id()));
        Ok(Address { config, schema: None })
    }

    /// Whether the server is on this machine, so that this machine's processors are the database's.
    pub fn is_local(&self) -> bool {
        self.config.get_hosts().iter().all(|host| match host {
            Host::Unix(_) => true,
            Host::Tcp(name) => name == "localhost" || name == "::1" || name.starts_with("127."),
        })
    }

    /// The name of this process's sessions at the server.
    pub(crate) fn session_name(&self) -> &str {
        self.config.get_application_name().unwrap_or_default()
    }

    /// The same database, whose sessions find names in this schema and in no other (`pg_catalog` aside).
    pub(crate) fn within(&self, schema: String) -> Address {
        Address { schema: Some(schema), ..self.clone() }
    }

    /// A connection. It ends with the client.
    pub(crate) async fn connect(&self) -> Result<Client, BenchError> {
        let failed = |fact| BenchError::Connect { to: self.to_string(), fact };
        let connected = tokio::time::timeout(SESSION_LIMIT, self.config.connect(NoTls)).await;
        let silent = |_| failed(format!("the server did not answer within {} s", SESSION_LIMIT.as_secs()));
        let (client, connection) = connected.map_err(silent)?.map_err(|error| failed(words(&error)))?;
        // What it fails for, the client's next request says.
        tokio::spawn(connection);
        if let Some(schema) = &self.schema {
            let sql = "select set_config('search_path', quote_ident($1), false)";
            client.query_one(sql, &[schema]).await.map_err(BenchError::query("setting the search path"))?;
        }
        Ok(client)
    }
}

/// A directory with the socket of a running server, or this machine over TCP.
fn default_host(port: u16) -> &'static str {
    let listens = |place: &&&str| Path::new(place).join(format!(".s.PGSQL.{port}")).exists();
    SOCKETS.iter().find(listens).copied().unwrap_or("localhost")
}

impl fmt::Display for Address {
    /// `database NAME at HOST:PORT (user NAME)`; never the password.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.config.get_dbname() {
            Some(name) => write!(f, "database {name:?}")?,
            None => f.write_str("default database")?,
        }
        let ports = self.config.get_ports();
        for (index, host) in self.config.get_hosts().iter().enumerate() {
            f.write_str(if index == 0 { " at " } else { ", " })?;
            match host {
                Host::Tcp(name) => f.write_str(name)?,
                Host::Unix(path) => write!(f, "{}", path.display())?,
            }
            if let Some(port) = ports.get(index).or(ports.first()) {
                write!(f, ":{port}")?;
            }
        }
        match self.config.get_user() {
            Some(user) => write!(f, " (user {user})"),
            None => Ok(()),
        }
    }
}

impl fmt::Debug for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Address({self})")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn none(_: &str) -> Option<String> {
        None
    }

    #[test]
    fn no_text_has_a_password() {
        for given in [
            "postgres://me:secret@127.0.0.1:5433/bench",
            "host=127.0.0.1 port=5433 user=me password=secret dbname=bench",
        ] {
            let address = Address::resolve(Some(given), none).expect("an address");
            assert_eq!(address.to_string(), "database \"bench\" at 127.0.0.1:5433 (user me)");
            assert!(!format!("{address:?}").contains("secret"));
        }
        for wrong in ["postgres://me:secret@h:port/x", "secret", "password=secret x", "host=a secret=b"] {
            let error = Address::resolve(Some(wrong), none).expect_err("no address");
            assert!(!format!("{error} {error:?}").contains("secret"), "{wrong}: {error:?}");
        }
    }

    #[test]
    fn what_an_address_leaves_open_comes_from_the_environment() {
        let environment = |name: &str| {
            let value = match name {
                "PGHOST" => "/run/pg",
                "PGPORT" => "6000",
                "PGUSER" => "dba",
                "PGPASSWORD" => "secret",
                "PGDATABASE" => "",
                _ => return None,
            };
            Some(value.to_owned())
        };
        let address = Address::resolve(None, environment).expect("an address");
        assert_eq!(address.to_string(), "default database at /run/pg:6000 (user dba)");
        assert!(address.is_local());
        // A URL without a port means PostgreSQL's own.
        let address = Address::resolve(Some("postgres://a@10.0.0.1/b"), environment).expect("an address");
        assert_eq!(address.to_string(), "database \"b\" at 10.0.0.1:5432 (user a)");
        assert!(!address.is_local());
        let of_variable = |name: &str| (name == "TIER0_DSN").then(|| "postgres://x@localhost/y".to_owned());
        let address = Address::resolve(None, of_variable).expect("an address");
        assert_eq!(address.to_string(), "database \"y\" at localhost:5432 (user x)");
    }
}
