//! The statistics views: statements by version, and rows of counters.

use std::collections::BTreeMap;

use tokio_postgres::Client;

use crate::error::words;

/// Counters by name, and what tells whether they still count from the same beginning.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Counts {
    pub(super) epoch: String,
    pub(super) values: BTreeMap<String, i64>,
}

/// Tables and indexes of this load, with what belongs to both statements on them.
const OBJECTS: &str = "\
    select c.relname::text, null, pg_postmaster_start_time()::text, pg_relation_size(c.oid) as size, heap_blks_read as reads, \
    heap_blks_hit as hits, coalesce(idx_tup_fetch, 0) + seq_tup_read as rows_read, n_tup_ins as inserted, n_tup_upd as updated, n_tup_hot_upd as updated_in_place, \
    n_tup_del as deleted from pg_class c join pg_statio_user_tables io on io.relid = c.oid \
    join pg_stat_user_tables st on st.relid = c.oid where c.oid = any(array(select to_regclass(n) from unnest($1::text[]) as n))
    union all select c.relname::text, io.relname::text, pg_postmaster_start_time()::text, pg_relation_size(c.oid), idx_blks_read, \
    idx_blks_hit, null, null, null, null, null from pg_class c join pg_statio_user_indexes io on io.indexrelid = c.oid \
    where io.relid = any(array(select to_regclass(n) from unnest($1::text[]) as n))";

/// This database's transactions and reads. Times are in microseconds, so that they are whole numbers.
pub(super) const DATABASE: &str = "\
    select coalesce(stats_reset::text, '') || pg_postmaster_start_time()::text, xact_commit as commits, \
    xact_rollback as rollbacks, blks_read as reads, blks_hit as hits, (blk_read_time * 1000)::int8 as read_us \
    from pg_stat_database where datname = current_database() and current_setting('track_counts')::bool";

/// Rows that sessions of other databases changed. WAL and written blocks have those too.
pub(super) const OTHERS: &str = "\
    select string_agg(coalesce(stats_reset::text, ''), ',' order by datid) || pg_postmaster_start_time()::text, \
    sum(tup_inserted + tup_updated + tup_deleted)::int8 as changed from pg_stat_database \
    where datid <> 0 and datname <> current_database() having count(*) > 0";

/// Versions are numbers such as 150004. Views and columns are those of the documentation of each version.
pub(super) fn wal(version: i32) -> &'static str {
    match version {
        ..140_000 => "select '', null where false",
        140_000..180_000 => {
            "select stats_reset::text, wal_bytes::int8 as bytes, wal_records as records, wal_fpi as full_page_images, \
             wal_write as writes, wal_sync as syncs from pg_stat_wal"
        }
        // Writes of the log are among those of all files now. Context "init" fills new files, which was not counted before.
        _ => {
            "select w.stats_reset::text || coalesce(io.stats_reset::text, ''), w.wal_bytes::int8 as bytes, \
             w.wal_records as records, w.wal_fpi as full_page_images, io.writes, io.syncs from pg_stat_wal w, \
             (select max(stats_reset) as stats_reset, sum(writes)::int8 as writes, sum(fsyncs)::int8 as syncs \
             from pg_stat_io where object = 'wal' and context = 'normal') io"
        }
    }
}

pub(super) fn writes(version: i32) -> &'static str {
    match version {
        ..170_000 => {
            "select stats_reset::text, buffers_checkpoint as checkpoint, buffers_clean as background, \
             buffers_backend as sessions from pg_stat_bgwriter"
        }
        170_000..180_000 => {
            "select c.stats_reset::text, c.buffers_written as checkpoint, b.buffers_clean as background, \
             (select sum(coalesce(writes, 0) + coalesce(extends, 0))::int8 from pg_stat_io \
             where object = 'relation' and backend_type not in ('checkpointer', 'background writer')) as sessions \
             from pg_stat_checkpointer c, pg_stat_bgwriter b"
        }
        // An operation may be of several blocks, so bytes are divided.
        _ => {
            "select c.stats_reset::text, c.buffers_written as checkpoint, b.buffers_clean as background, \
             (select (sum(coalesce(write_bytes, 0) + coalesce(extend_bytes, 0)) \
             / current_setting('block_size')::numeric)::int8 from pg_stat_io \
             where object = 'relation' and backend_type not in ('checkpointer', 'background writer')) as sessions \
             from pg_stat_checkpointer c, pg_stat_bgwriter b"
        }
    }
}

/// A row of counters: what they count from, then numbers with names. Why they cannot be had otherwise.
pub(super) async fn counts(client: &Client, sql: &str) -> Result<Counts, String> {
    let row = client.query_opt(sql, &[]).await.map_err(|error| words(&error))?;
    let row = row
        .ok_or_else(|| "this server does not count it (an old version, or track_counts is off)".to_owned())?;
    Ok(Counts::of(&row, 0))
}

pub(super) async fn objects(client: &Client, names: &[&str]) -> Result<BTreeMap<String, Counts>, String> {
    let rows = client.query(OBJECTS, &[&names]).await.map_err(|error| words(&error))?;
    let of = |row: &tokio_postgres::Row| {
        let (name, table): (String, Option<String>) = (row.get(0), row.get(1));
        (table.map_or(name.clone(), |table| format!("{table}.{name}")), Counts::of(row, 2))
    };
    Ok(rows.iter().map(of).collect())
}

pub(super) fn difference(
    before: &Result<Counts, String>,
    after: &Result<Counts, String>,
) -> Result<BTreeMap<String, u64>, String> {
    match (before, after) {
        (Ok(before), Ok(after)) => before.since(after),
        (Err(why), _) | (_, Err(why)) => Err(why.clone()),
    }
}

impl Counts {
    /// Those of a row: the epoch in a column, numbers behind it.
    fn of(row: &tokio_postgres::Row, epoch: usize) -> Counts {
        let numbers = row.columns().iter().enumerate().skip(epoch + 1);
        let values = numbers.filter_map(|(place, column)| {
            let value: Option<i64> = row.get(place);
            Some((column.name().to_owned(), value?))
        });
        let values = values.collect();
        Counts { epoch: row.get::<_, Option<String>>(epoch).unwrap_or_default(), values }
    }

    /// What was counted until `later`; why that is not known.
    pub(super) fn since(&self, later: &Counts) -> Result<BTreeMap<String, u64>, String> {
        if self.epoch != later.epoch {
            return Err("the counters were reset, or the server was restarted, in the meantime".to_owned());
        }
        let since = |(name, after): (&String, &i64)| {
            let before = self.values.get(name).ok_or_else(|| format!("{name} was not counted at first"))?;
            let count =
                u64::try_from(after - before).map_err(|_| format!("the counter {name} went backwards"))?;
            Ok((name.clone(), count))
        };
        later.values.iter().map(since).collect()
    }
}
