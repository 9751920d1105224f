//! The file that `tier0 advise collect` writes: JSON lines, one sample of a database server each. The first line of a run has all
//! objects, the others those whose counters changed. A line that a kill cut off is left out when it is read.
//!
//! | file | concept |
//! |---|---|
//! | `postgres` | a sample of a PostgreSQL |
//! | `mysql` | a sample of a MySQL or a MariaDB |
//!
//! Here is what they share. Nothing connects to a server here.

pub mod mysql;
pub mod postgres;

use std::fmt;
use std::marker::PhantomData;

use serde::de::{DeserializeOwned, Error, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize};

/// The most objects of a sample.
pub const OBJECTS_MAX: usize = 200_000;

/// A sample of some database server.
pub trait Collected: Serialize + DeserializeOwned {
    /// What is listed with counters of its own.
    type Object: Clone + PartialEq;
    /// The marks that such a line can have.
    const MARKS: &'static [&'static str];
    /// The version of the form.
    const VERSION: u32;

    /// Which database it is of, where that is known.
    fn address(&self) -> Option<&DatabaseAddress>;
    /// How the line begins.
    fn head(&self) -> Head<'_>;
    /// The objects, ordered by their keys.
    fn objects(&mut self) -> &mut Vec<Self::Object>;
    /// Says whether all objects are listed.
    fn set_full(&mut self, full: bool);
    /// Adds the volumes of an array.
    fn set_volumes(&mut self, volumes: Vec<VolumeCounters>);
    /// What tells an object from the others.
    fn key(of: &Self::Object) -> [&str; 3];
    /// What the server does not measure, and the remedy.
    fn lacks(&self) -> Vec<String>;
}

/// Reads a list of at most [`OBJECTS_MAX`]: an object may take three bytes of a line, and hundreds of memory.
pub(crate) fn bounded<'de, D: Deserializer<'de>, T: Deserialize<'de>>(from: D) -> Result<Vec<T>, D::Error> {
    from.deserialize_seq(Bounded(PhantomData))
}

struct Bounded<T>(PhantomData<T>);

impl<'de, T: Deserialize<'de>> Visitor<'de> for Bounded<T> {
    type Value = Vec<T>;

    fn expecting(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(to, "a list of at most {OBJECTS_MAX}")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Vec<T>, A::Error> {
        let mut read = Vec::new();
        while let Some(one) = list.next_element()? {
            if read.len() >= OBJECTS_MAX {
                return Err(A::Error::custom(format!("it lists more than {OBJECTS_MAX} objects")));
            }
            read.push(one);
        }
        Ok(read)
    }
}

/// How a line begins.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Head<'a> {
    /// What the line is.
    pub mark: &'a str,
    /// The form's version.
    pub version: u32,
    /// Unix time, seconds, by the server's clock.
    pub at: f64,
    /// Whether all objects are listed, and what was known before does not count.
    pub is_full: bool,
}

/// Which database of which server.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct DatabaseAddress {
    /// The server's host, or the directory of its socket, as it was connected to.
    pub host: String,
    /// Its port.
    pub port: u16,
    /// The database.
    pub database: String,
    /// The identifier that the server's data directory has since it was made, where it may be read.
    pub system: Option<String>,
}

impl DatabaseAddress {
    /// Whether both are the same database. Servers with identifiers are told apart by them, whatever way leads there.
    pub fn is_same(&self, other: &DatabaseAddress) -> bool {
        let is_same_server = match (&self.system, &other.system) {
            (Some(one), Some(other)) => one == other,
            _ => self.host == other.host && self.port == other.port,
        };
        is_same_server && self.database == other.database
    }

    /// As words: `database "shop" of host db1, port 5432`.
    pub fn words(&self) -> String {
        format!("database {:?} of host {:?}, port {}", self.database, self.host, self.port)
    }
}

/// Jiffies of the host's processors since boot.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct HostCounters {
    /// Processors.
    pub cores: f64,
    /// Time at work.
    pub busy: f64,
    /// Idle with I/Os under way.
    pub io_wait: f64,
    /// All time.
    pub all: f64,
}

/// A volume of the array.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct VolumeCounters {
    /// Its name.
    pub name: String,
    /// Reads since the array's start.
    pub reads: f64,
    /// Writes.
    pub writes: f64,
    /// Bytes of both.
    pub bytes: f64,
    /// Milliseconds of reads.
    pub read_ms: f64,
    /// Milliseconds of writes.
    pub write_ms: f64,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_same_server_is_known_by_its_identifier() {
        let address = |host: &str, system: Option<&str>| DatabaseAddress {
            host: host.into(),
            port: 5432,
            database: "shop".into(),
            system: system.map(str::to_owned),
        };
        assert!(address("/run", Some("7")).is_same(&address("localhost", Some("7"))), "another way to it");
        assert!(
            !address("db1", Some("7")).is_same(&address("db1", Some("8"))),
            "a server that took its place"
        );
        assert!(address("db1", None).is_same(&address("db1", Some("8"))));
        assert!(!address("db1", None).is_same(&address("db2", None)));
        let other = DatabaseAddress { database: "test".into(), ..address("db1", Some("7")) };
        assert!(!address("db1", Some("7")).is_same(&other));
    }
}
