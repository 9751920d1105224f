//! The statistics views of PostgreSQL, by version: one statement for the server and the database, one for its relations.
//!
//! 14 brought active times and `pg_stat_wal`. 17 moved the writes of checkpoints to `pg_stat_checkpointer` and left those of sessions
//! to `pg_stat_io`. 18 moved the writes of the log to `pg_stat_io`, and counts bytes there: one extension of a file may be many pages.

/// The versions whose views are known, as `server_version_num` has them.
const VERSIONS: std::ops::Range<i32> = 140_000..190_000;

/// Pages that the background writer, checkpoints and sessions wrote: the text of their resets, the sum, and the views.
const WRITTEN_UNTIL_16: [&str; 3] = [
    "coalesce(b.stats_reset::text, '')",
    "(b.buffers_checkpoint + b.buffers_clean + b.buffers_backend)::float8",
    "pg_stat_bgwriter b",
];
const WRITTEN_OF_17: [&str; 3] = [
    "coalesce(b.stats_reset::text, '') || ' ' || coalesce(c.stats_reset::text, '') || ' ' || coalesce(s.stats_reset::text, '')",
    "(c.buffers_written + b.buffers_clean + s.pages)::float8",
    "pg_stat_bgwriter b, pg_stat_checkpointer c,
         (select max(stats_reset) as stats_reset, coalesce(sum(coalesce(writes, 0) + coalesce(extends, 0)), 0) as pages from pg_stat_io
           where object = 'relation' and backend_type not in ('checkpointer', 'background writer')) s",
];
const WRITTEN_SINCE_18: [&str; 3] = [
    WRITTEN_OF_17[0],
    WRITTEN_OF_17[1],
    "pg_stat_bgwriter b, pg_stat_checkpointer c,
         (select max(stats_reset) as stats_reset,
                 coalesce(sum(coalesce(write_bytes, 0) + coalesce(extend_bytes, 0)), 0) / current_setting('block_size')::numeric as pages
            from pg_stat_io
           where object = 'relation' and backend_type not in ('checkpointer', 'background writer')) s",
];

/// The writes of the log and the milliseconds of its writes and flushes, and the view that has them.
const LOG_UNTIL_17: [&str; 2] =
    ["w.wal_write::float8, w.wal_bytes::float8, w.wal_write_time + w.wal_sync_time", ""];
/// Context "init" fills new files of the log; `pg_stat_wal` did not count that.
const LOG_SINCE_18: [&str; 2] = [
    "l.writes::float8, w.wal_bytes::float8, l.ms",
    ",
         (select sum(writes) as writes, sum(write_time + fsync_time) as ms from pg_stat_io
           where object = 'wal' and context = 'normal') l",
];

/// The statement for the server and the current database; none for a version whose views are not known.
pub(super) fn instance(version: i32) -> Option<String> {
    if !VERSIONS.contains(&version) {
        return None;
    }
    let [resets, written, views] = match version {
        ..170_000 => WRITTEN_UNTIL_16,
        170_000..180_000 => WRITTEN_OF_17,
        _ => WRITTEN_SINCE_18,
    };
    let [log, log_view] = if version < 180_000 { LOG_UNTIL_17 } else { LOG_SINCE_18 };
    Some(format!(
        "
  select extract(epoch from clock_timestamp())::float8,
         current_setting('server_version'),
         pg_postmaster_start_time()::text || ' ' || coalesce(d.stats_reset::text, '') || ' '
           || {resets} || ' ' || coalesce(w.stats_reset::text, ''),
         current_setting('block_size')::float8,
         pg_size_bytes(current_setting('shared_buffers'))::float8,
         current_setting('track_io_timing') = 'on',
         current_setting('track_wal_io_timing') = 'on',
         (d.xact_commit + d.xact_rollback)::float8, d.blks_hit::float8, d.blks_read::float8,
         d.blk_read_time, d.blk_write_time, d.active_time,
         {written},
         {log},
         pg_backend_pid()
    from pg_stat_database d, pg_stat_wal w, {views}{log_view}
   where d.datname = current_database()"
    ))
}

/// The main parts of tables with their TOAST tables; an estimate of changed entries for indexes.
pub(super) const RELATIONS: &str = "
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_version_is_asked_for_what_its_views_have() {
        for version in [130_022, 190_000, 0] {
            assert_eq!(instance(version), None, "{version}");
        }
        let has = |version, words: &[&str]| {
            let statement = instance(version).expect("a known version");
            words.iter().map(|word| statement.contains(word)).collect::<Vec<_>>()
        };
        let words = ["buffers_backend", "pg_stat_checkpointer", "extend_bytes", "wal_write_time", "'wal'"];
        assert_eq!(has(140_000, &words), [true, false, false, true, false]);
        assert_eq!(has(160_004, &words), [true, false, false, true, false]);
        assert_eq!(has(170_010, &words), [false, true, false, true, false]);
        assert_eq!(has(180_004, &words), [false, true, true, false, true]);
    }
}
