//! What PostgreSQL counts: `pg_stat_database`, `pg_statio_user_tables`, `pg_statio_user_indexes`, `pg_stat_wal`,
//! `pg_stat_bgwriter`.
//!
//! The server books a session's counts at most once a second, so the beginning of a measured time is blurred by up to a second.
//! All counts are blurred alike: divide them by the transactions of the same sample. WAL and writes of blocks are counted for the
//! whole cluster, reads for this database. Writes by table or index are not counted by any version before 16, and by no version
//! per object.

mod views;

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use tokio_postgres::Client;

use self::views::{Counts, DATABASE, OTHERS, counts, difference, objects, wal, writes};
use super::Gap;
use crate::error::BenchError;

/// The counters at a moment; a group that could not be read says why.
#[derive(Clone, Debug)]
pub(crate) struct DatabaseSample {
    block_bytes: u64,
    has_io_timing: bool,
    database: Result<Counts, String>,
    wal: Result<Counts, String>,
    writes: Result<Counts, String>,
    others: Result<Counts, String>,
    /// By table or index.
    objects: Result<BTreeMap<String, Counts>, String>,
}

/// What a table or an index did.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ObjectUse {
    /// Its name.
    pub name: String,
    /// The table of an index.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub index_of: Option<String>,
    /// Its size at the end, bytes.
    pub size_bytes: u64,
    /// How much it grew, bytes.
    pub grown_bytes: u64,
    /// Blocks that the server asked the operating system for.
    pub reads: Option<u64>,
    /// Blocks that it found in its own memory.
    pub hits: Option<u64>,
    /// Blocks that were written; the server does not count them by object.
    pub writes: Option<u64>,
    /// Rows read, by index or by scans, those that are updated included; of tables.
    pub rows_read: Option<u64>,
    /// Rows inserted, of tables.
    pub inserted: Option<u64>,
    /// Rows updated, of tables.
    pub updated: Option<u64>,
    /// Updates that changed no index (HOT), of tables.
    pub updated_in_place: Option<u64>,
    /// Rows deleted, of tables.
    pub deleted: Option<u64>,
}

/// Blocks written, by who wrote them, of the whole cluster.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct BlockWrites {
    /// By checkpoints.
    pub checkpoint: u64,
    /// By the background writer.
    pub background: u64,
    /// By sessions that needed a buffer or extended a file.
    pub sessions: u64,
}

impl BlockWrites {
    /// All of them.
    pub fn total(&self) -> u64 {
        self.checkpoint + self.background + self.sessions
    }
}

/// Write-ahead log, of the whole cluster.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct WalUse {
    /// Bytes.
    pub bytes: u64,
    /// Records.
    pub records: u64,
    /// Full images of pages, which the first change after a checkpoint makes.
    pub full_page_images: u64,
    /// Writes; none where the server does not count them.
    pub writes: Option<u64>,
    /// Syncs; none where the server does not count them.
    pub syncs: Option<u64>,
}

/// What a database did.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct DatabaseUse {
    /// Bytes of a block.
    pub block_bytes: u64,
    /// Transactions that the server counted, committed and rolled back: what the counts below belong to.
    pub transactions: Option<u64>,
    /// Commits among them.
    pub commits: Option<u64>,
    /// Blocks read.
    pub reads: Option<u64>,
    /// Blocks found in the server's memory.
    pub hits: Option<u64>,
    /// The mean time of a read, milliseconds.
    pub read_ms: Option<f64>,
    /// Blocks written.
    pub writes: Option<BlockWrites>,
    /// Write-ahead log.
    pub wal: Option<WalUse>,
    /// Rows that sessions of other databases of the cluster changed, whose WAL and writes are counted here too; none where that is
    /// not known, and in reports of older versions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub changed_by_others: Option<u64>,
    /// By table and index.
    pub objects: Vec<ObjectUse>,
    /// What was not measured.
    pub not_measured: Vec<Gap>,
}

impl DatabaseSample {
    /// Reads them now, with those of these tables and their indexes.
    ///
    /// # Errors
    /// The connection is gone.
    pub(crate) async fn read(client: &Client, tables: &[&str]) -> Result<DatabaseSample, BenchError> {
        let sql = "select current_setting('server_version_num')::int4, current_setting('block_size')::int8, \
                   current_setting('track_io_timing')::bool";
        let row = client.query_one(sql, &[]).await.map_err(BenchError::query("asking for settings"))?;
        let version: i32 = row.get(0);
        Ok(DatabaseSample {
            block_bytes: row.get::<_, i64>(1) as u64,
            has_io_timing: row.get(2),
            database: counts(client, DATABASE).await,
            wal: counts(client, wal(version)).await,
            writes: counts(client, writes(version)).await,
            others: counts(client, OTHERS).await,
            objects: objects(client, tables).await,
        })
    }

    /// The same server when it could not be asked, and why.
    pub(crate) fn unknown(&self, why: &str) -> DatabaseSample {
        DatabaseSample {
            database: Err(why.to_owned()),
            wal: Err(why.to_owned()),
            writes: Err(why.to_owned()),
            others: Err(why.to_owned()),
            objects: Err(why.to_owned()),
            ..self.clone()
        }
    }

    /// What was done until `later`.
    pub(crate) fn since(&self, later: &DatabaseSample) -> DatabaseUse {
        let mut gaps = vec![Gap::new(
            "blocks written by table and index",
            "the server counts written blocks only for the whole cluster",
        )];
        let mut of =
            |what: &str, before: &Result<Counts, String>, after: &Result<Counts, String>| match difference(
                before, after,
            ) {
                Ok(used) => Some(used),
                Err(why) => {
                    gaps.push(Gap::new(what, why));
                    None
                }
            };
        let database = of("transactions and reads", &self.database, &later.database);
        let wal = of("WAL", &self.wal, &later.wal);
        let writes = of("blocks written", &self.writes, &later.writes);
        let get = |name: &str| database.as_ref().and_then(|values| values.get(name).copied());
        let reads = get("reads");
        let has_timing = self.has_io_timing && later.has_io_timing;
        if !has_timing {
            gaps.push(Gap::new("time of reads", "track_io_timing is off"));
        }
        let read_us = get("read_us").zip(reads).filter(|(_, reads)| has_timing && *reads > 0);
        DatabaseUse {
            block_bytes: later.block_bytes,
            transactions: get("commits")
                .zip(get("rollbacks"))
                .map(|(commits, rollbacks)| commits + rollbacks),
            commits: get("commits"),
            reads,
            hits: get("hits"),
            read_ms: read_us.map(|(us, reads)| us as f64 / 1000.0 / reads as f64),
            writes: writes.map(|values| BlockWrites {
                checkpoint: values["checkpoint"],
                background: values["background"],
                sessions: values["sessions"],
            }),
            wal: wal.map(|values| WalUse {
                bytes: values["bytes"],
                records: values["records"],
                full_page_images: values["full_page_images"],
                writes: values.get("writes").copied(),
                syncs: values.get("syncs").copied(),
            }),
            changed_by_others: difference(&self.others, &later.others)
                .ok()
                .and_then(|values| values.get("changed").copied()),
            objects: self.objects_since(later, &mut gaps),
            not_measured: gaps,
        }
    }

    fn objects_since(&self, later: &DatabaseSample, gaps: &mut Vec<Gap>) -> Vec<ObjectUse> {
        let (before, after) = match (&self.objects, &later.objects) {
            (Ok(before), Ok(after)) => (before, after),
            (Err(why), _) | (_, Err(why)) => {
                gaps.push(Gap::new("reads by table and index", why.clone()));
                return Vec::new();
            }
        };
        let mut used = Vec::new();
        for (name, counts) in after {
            let (name, index_of) = match name.split_once('.') {
                Some((table, index)) => (index, Some(table.to_owned())),
                None => (name.as_str(), None),
            };
            let key = index_of.as_ref().map_or_else(|| name.to_owned(), |table| format!("{table}.{name}"));
            let earlier = before.get(&key).cloned().unwrap_or_default();
            let mut counters = counts.clone();
            let size = counters.values.remove("size").unwrap_or(0);
            let size_before = earlier.values.get("size").copied().unwrap_or(0);
            let since = earlier.since(&counters);
            if let Err(why) = &since {
                gaps.push(Gap::new(format!("reads of {name}"), why.clone()));
            }
            let get = |what: &str| since.as_ref().ok().and_then(|values| values.get(what).copied());
            used.push(ObjectUse {
                index_of,
                size_bytes: size as u64,
                grown_bytes: (size - size_before).max(0) as u64,
                reads: get("reads"),
                hits: get("hits"),
                writes: None,
                rows_read: get("rows_read"),
                inserted: get("inserted"),
                updated: get("updated"),
                updated_in_place: get("updated_in_place"),
                deleted: get("deleted"),
                name: name.to_owned(),
            });
        }
        used
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn counts(epoch: &str, values: &[(&str, i64)]) -> Counts {
        let values = values.iter().map(|(name, value)| ((*name).to_owned(), *value)).collect();
        Counts { epoch: epoch.to_owned(), values }
    }

    fn sample(database: Result<Counts, String>, reads: i64) -> DatabaseSample {
        let object = counts("1", &[("size", 8192 * reads), ("reads", reads), ("hits", 2 * reads)]);
        DatabaseSample {
            block_bytes: 8192,
            has_io_timing: false,
            database,
            wal: Ok(counts("1", &[("bytes", 100 * reads), ("records", reads), ("full_page_images", 0)])),
            writes: Err("not here".to_owned()),
            others: Ok(counts("1", &[("changed", reads / 10)])),
            objects: Ok(
                [("stock".to_owned(), object.clone()), ("stock.stock_pkey".to_owned(), object)].into()
            ),
        }
    }

    fn database(epoch: &str, commits: i64) -> Result<Counts, String> {
        Ok(counts(
            epoch,
            &[("commits", commits), ("rollbacks", 0), ("reads", commits), ("hits", 5), ("read_us", 0)],
        ))
    }

    #[test]
    fn two_samples_give_a_difference() {
        let used = sample(database("1", 10), 100).since(&sample(database("1", 30), 150));
        assert_eq!((used.transactions, used.reads, used.hits), (Some(20), Some(20), Some(0)));
        assert_eq!(used.wal.map(|wal| (wal.bytes, wal.writes)), Some((5000, None)));
        assert_eq!(used.changed_by_others, Some(5));
        let stock = &used.objects[0];
        assert_eq!((stock.name.as_str(), stock.reads, stock.hits), ("stock", Some(50), Some(100)));
        assert_eq!((stock.size_bytes, stock.grown_bytes), (8192 * 150, 8192 * 50));
        let index = &used.objects[1];
        assert_eq!((index.name.as_str(), index.index_of.as_deref()), ("stock_pkey", Some("stock")));
        assert_eq!((stock.writes, stock.inserted), (None, None));
    }

    /// What a statistics view does not have, a restart has lost or a setting has switched off must not read 0.
    #[test]
    fn what_was_not_measured_is_absent_and_says_why() {
        let used = sample(database("1", 10), 100).since(&sample(database("2", 30), 150));
        assert_eq!((used.transactions, used.reads, used.read_ms), (None, None, None));
        assert_eq!(used.writes, None);
        let why =
            |what: &str| used.not_measured.iter().find(|gap| gap.what == what).map(|gap| gap.why.as_str());
        assert!(why("transactions and reads").is_some_and(|why| why.contains("restarted")), "{used:?}");
        assert_eq!(why("blocks written"), Some("not here"));
        assert_eq!(why("time of reads"), Some("track_io_timing is off"));
        let backwards = sample(database("1", 30), 100).since(&sample(database("1", 10), 50));
        assert_eq!((backwards.transactions, backwards.objects[0].reads), (None, None));
    }
}
