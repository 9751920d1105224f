//! The counters of a server as a sample.

use std::collections::BTreeMap;

use mysql_async::Row;
use tier0_advisor::samples::Collected;
use tier0_advisor::samples::mysql::{
    FileKind, FileObject, MARK, MARK_MARIADB, MysqlSample, ServerCounters, VERSION,
};

use super::files::{Key, REDO_LOG, Space, Spaces, events, of_event};
use super::{Server, all, number, one, text};
use crate::verb::advise::processors::{process_ms, processors};

/// The time is that of the statement, from which the server also counts its uptime: their difference is exact.
const STATUS_MYSQL: &str = "
  select lower(variable_name), variable_value, unix_timestamp(now(6)) from performance_schema.global_status
   where variable_name in (NAMES)";
const STATUS_MARIADB: &str = "
  select lower(variable_name), variable_value, unix_timestamp(now(6)) from information_schema.global_status
   where variable_name in (NAMES)";
/// As the server spells them.
const VARIABLES: [&str; 16] = [
    "Uptime",
    "Com_commit",
    "Com_rollback",
    "Com_xa_commit",
    "Com_xa_rollback",
    "Innodb_buffer_pool_read_requests",
    "Innodb_buffer_pool_reads",
    "Innodb_pages_read",
    "Innodb_pages_written",
    "Innodb_data_reads",
    "Innodb_data_read",
    "Innodb_data_writes",
    "Innodb_data_fsyncs",
    "Innodb_log_writes",
    "Innodb_os_log_written",
    "Performance_schema_file_instances_lost",
];

const SPACES_MARIADB: &str = "
  select filename, if(allocated_size > 0, allocated_size, file_size), name like '%/%'
    from information_schema.innodb_sys_tablespaces where filename is not null";
const SPACES_MYSQL: &str = "
  select d.path, if(t.allocated_size > 0, t.allocated_size, t.file_size), t.name like '%/%'
    from information_schema.innodb_tablespaces t
    join information_schema.innodb_datafiles d on d.space = t.space
  union all
  select file_name, total_extents * extent_size, 0
    from information_schema.files where engine = 'InnoDB' and file_name not like '%.ibd'";

/// Which of the instruments that are used are on, and whether they time.
const INSTRUMENTS: &str = "
  select name, enabled = 'YES', timed = 'YES' from performance_schema.setup_instruments
   where name in ('wait/io/file/innodb/innodb_data_file', 'wait/io/table/sql/handler', 'transaction', 'statement/sql/select')";
/// What is counted of files.
const COLUMNS: &str = "event_name, count_read, count_write, sum_number_of_bytes_read, sum_number_of_bytes_write, sum_timer_read,
         sum_timer_write, sum_timer_misc";

/// Rows that were read without an index are counted under none.
const ROWS: &str = "
  select object_schema, object_name, sum(if(index_name is null, count_fetch, 0)),
         sum(if(index_name is null, 0, count_fetch))
    from performance_schema.table_io_waits_summary_by_index_usage
   where object_type = 'TABLE' and count_fetch > 0 group by object_schema, object_name";
const TRANSACTIONS: &str = "
  select sum(count_star) from performance_schema.events_transactions_summary_global_by_event_name";
/// Statements as clients send them, not those inside of procedures, whose time is in the call.
const STATEMENTS: &str = "
  select sum(sum_timer_wait) from performance_schema.events_statements_summary_global_by_event_name
   where event_name like 'statement/sql/%' or event_name in ('statement/com/Execute', 'statement/com/Fetch')";
/// Tables whose files are not tablespaces. It may open all tables, so it is asked once for a connection.
const OTHER_SIZES: &str = "
  select table_schema, table_name, data_length + index_length from information_schema.tables
   where engine in ('Aria', 'MyISAM') and table_schema not in ('information_schema', 'performance_schema')";

/// Of the files that are counted, so many may be lost without a word: a few are at each start.
const LOST_SHARE: f64 = 0.05;
const LOST_AT_START: f64 = 8.0;
/// performance_schema counts in picoseconds.
const PICOSECONDS_PER_MS: f64 = 1e9;

/// How the kernel names the server.
const PROGRAMS: [&str; 2] = ["mariadbd", "mysqld"];

/// Which instruments are on.
#[derive(Default)]
struct Instruments {
    files: bool,
    file_times: bool,
    rows: bool,
    transactions: bool,
    statements: bool,
}

/// Rows of counters.
#[derive(Default)]
struct Counted {
    files: Vec<Row>,
    events: Vec<Row>,
}

/// Names as a list of SQL.
fn listed(names: impl IntoIterator<Item = &'static str>) -> String {
    names.into_iter().map(|name| format!("'{name}'")).collect::<Vec<_>>().join(", ")
}

/// The objects by their keys in paths.
type Objects = BTreeMap<Key, (FileKind, FileObject)>;

impl Server {
    /// A sample.
    pub(in crate::verb::advise) async fn sample(&mut self) -> Result<MysqlSample, String> {
        let instruments = self.instruments().await?;
        let (at, status) = self.status().await?;
        let get = |name: &str| status.get(name).copied();
        let spaces = self.spaces().await?;
        let counted = self.counted(instruments.files).await?;
        let (lost, files) = (get("performance_schema_file_instances_lost"), counted.files.len());
        let is_lost = lost.unwrap_or(0.0) > LOST_SHARE * files as f64 + LOST_AT_START;
        // A file that is not counted has had no I/O, unless there was no room to count it.
        let initial = (instruments.files && !is_lost).then_some(0.0);
        let (objects, log_ms) = objects(&spaces, &counted, initial);
        let objects = self.named(objects, &instruments).await?;
        let commits = ["com_commit", "com_rollback", "com_xa_commit", "com_xa_rollback"].map(get);
        let transactions = match instruments.transactions {
            true => number(&one(&mut self.conn, TRANSACTIONS).await?, 0),
            false => None,
        };
        let active = match instruments.statements {
            true => number(&one(&mut self.conn, STATEMENTS).await?, 0),
            false => None,
        };
        let buffer = one(&mut self.conn, "select @@innodb_buffer_pool_size").await?;
        let facts = &self.facts;
        Ok(MysqlSample {
            tier0: if facts.is_mariadb { MARK_MARIADB } else { MARK }.to_owned(),
            version: VERSION,
            at,
            full: false,
            address: Some(facts.address.clone()),
            server: facts.version.clone(),
            epoch: format!("{:.0}", at.floor() - get("uptime").unwrap_or(0.0)),
            page_bytes: facts.page_bytes,
            buffer_bytes: number(&buffer, 0),
            flush_method: facts.flush_method.clone(),
            has_files: instruments.files,
            has_io_times: instruments.files && instruments.file_times,
            instance: ServerCounters {
                commits: commits.into_iter().flatten().reduce(|one, other| one + other),
                transactions,
                page_requests: get("innodb_buffer_pool_read_requests"),
                page_misses: get("innodb_buffer_pool_reads"),
                pages_read: get("innodb_pages_read"),
                pages_written: get("innodb_pages_written"),
                data_reads: get("innodb_data_reads"),
                data_read_bytes: get("innodb_data_read"),
                data_writes: get("innodb_data_writes"),
                data_flushes: get("innodb_data_fsyncs"),
                log_writes: get("innodb_log_writes"),
                log_bytes: get("innodb_os_log_written"),
                log_ms,
                active_ms: active.map(|time| time / PICOSECONDS_PER_MS),
            },
            objects,
            processor_ms: facts.is_local.then(|| process_ms(facts.process, &PROGRAMS)).flatten(),
            host: facts.is_local.then(processors).flatten(),
            volumes: Vec::new(),
        })
    }

    async fn instruments(&mut self) -> Result<Instruments, String> {
        let mut found = Instruments::default();
        if !self.facts.has_performance_schema {
            return Ok(found);
        }
        for row in all(&mut self.conn, INSTRUMENTS).await? {
            let (is_on, is_timed) = (number(&row, 1) == Some(1.0), number(&row, 2) == Some(1.0));
            match text(&row, 0).as_str() {
                "transaction" => found.transactions = is_on,
                "statement/sql/select" => found.statements = is_on && is_timed,
                "wait/io/table/sql/handler" => found.rows = is_on,
                _ => (found.files, found.file_times) = (is_on, is_timed),
            }
        }
        Ok(found)
    }

    /// The time by the server's clock, and the variables of its status.
    async fn status(&mut self) -> Result<(f64, BTreeMap<String, f64>), String> {
        let query = if self.facts.is_mariadb { STATUS_MARIADB } else { STATUS_MYSQL };
        let rows = all(&mut self.conn, &query.replace("NAMES", &listed(VARIABLES))).await?;
        let at = rows.first().and_then(|row| number(row, 2));
        let at = at.ok_or("the database has no status; check its performance_schema")?;
        let of_row = |row: &Row| Some((text(row, 0), number(row, 1)?));
        Ok((at, rows.iter().filter_map(of_row).collect()))
    }

    /// The I/Os of data files and, where files come and go, of events.
    async fn counted(&mut self, are_counted: bool) -> Result<Counted, String> {
        if !are_counted {
            return Ok(Counted::default());
        }
        let events = listed(events());
        let files = format!(
            "select {COLUMNS}, file_name from performance_schema.file_summary_by_instance
              where (event_name like 'wait/io/file/innodb/%' and event_name not in ({events}))
                 or event_name in ('wait/io/file/aria/MAD', 'wait/io/file/aria/MAI', 'wait/io/file/myisam/dfile', 'wait/io/file/myisam/kfile')"
        );
        let sums = format!(
            "select {COLUMNS} from performance_schema.file_summary_by_event_name where event_name in ({events}) and count_star > 0"
        );
        Ok(Counted { files: all(&mut self.conn, &files).await?, events: all(&mut self.conn, &sums).await? })
    }

    async fn spaces(&mut self) -> Result<Vec<Space>, String> {
        let query = if self.facts.is_mariadb { SPACES_MARIADB } else { SPACES_MYSQL };
        let directory = self.facts.data_directory.trim_end_matches('/').to_owned();
        let of_row = |row: &Row| {
            let path = text(row, 0);
            let path = match path.strip_prefix("./") {
                Some(below) => format!("{directory}/{below}"),
                None => path,
            };
            Space { path, bytes: number(row, 1).unwrap_or(0.0), is_of_table: number(row, 2) == Some(1.0) }
        };
        Ok(all(&mut self.conn, query).await?.iter().map(of_row).collect())
    }

    /// The objects with the names that people gave them, in order, and with what is known of tables besides their files.
    async fn named(
        &mut self,
        objects: Objects,
        instruments: &Instruments,
    ) -> Result<Vec<FileObject>, String> {
        for encoded in self.names.unknown(objects.keys()) {
            // What is not encoded in the way of file names stays as it is.
            let query = format!(
                "select convert(convert(cast(x'{}' as binary) using filename) using utf8mb4)",
                encoded.bytes().map(|byte| format!("{byte:02x}")).collect::<String>()
            );
            let decoded = one(&mut self.conn, &query).await.map(|row| text(&row, 0));
            let decoded = decoded.ok().filter(|name| !name.is_empty() && !name.contains('?'));
            self.names.learn(encoded.clone(), decoded.unwrap_or(encoded));
        }
        let named = objects.iter().map(|(key, (kind, counted))| {
            let FileObject { schema, name, partition, .. } = self.names.object(key, *kind);
            FileObject { schema, name, partition, ..counted.clone() }
        });
        let mut named: Vec<FileObject> = named.collect();
        named.sort_by(|a, b| MysqlSample::key(a).cmp(&MysqlSample::key(b)));
        if instruments.rows {
            let rows = all(&mut self.conn, ROWS).await?;
            let of_row = |row: &Row| ((text(row, 0), text(row, 1)), (number(row, 2), number(row, 3)));
            let rows: BTreeMap<_, _> = rows.iter().map(of_row).collect();
            for object in named.iter_mut().filter(|object| object.kind == FileKind::Table) {
                // Each partition has the table's: only their share is used.
                let read = rows.get(&(object.schema.clone(), object.name.clone()));
                (object.scanned_rows, object.fetched_rows) = read.copied().unwrap_or((Some(0.0), Some(0.0)));
            }
        }
        if self.other_sizes.is_empty() {
            let sizes = all(&mut self.conn, OTHER_SIZES).await?;
            let of_row = |row: &Row| Some((text(row, 0), text(row, 1), number(row, 2)?));
            self.other_sizes = sizes.iter().filter_map(of_row).collect();
        }
        for (schema, name, bytes) in &self.other_sizes {
            let key = [schema.as_str(), name.as_str(), ""];
            if let Ok(at) = named.binary_search_by(|object| MysqlSample::key(object).cmp(&key)) {
                named[at].bytes = named[at].bytes.or(Some(*bytes));
            }
        }
        Ok(named)
    }
}

/// The objects of tablespaces and of counted files, and the milliseconds of the redo log, which is no object here. `initial` is
/// what a file has that is not counted.
fn objects(spaces: &[Space], counted: &Counted, initial: Option<f64>) -> (Objects, Option<f64>) {
    let known = Spaces::of(spaces);
    let mut objects = Objects::new();
    for space in spaces {
        let Some((key, kind)) = known.place(&space.path) else { continue };
        let (_, object) = objects.entry(key).or_insert_with(|| {
            let path = space.path.ends_with(".ibd").then(|| space.path.clone());
            let [reads, writes, read_bytes, write_bytes, read_ms] = [initial; 5];
            let new = FileObject { kind, path, ..FileObject::default() };
            (kind, FileObject { reads, writes, read_bytes, write_bytes, read_ms, ..new })
        });
        object.bytes = Some(object.bytes.unwrap_or(0.0) + space.bytes);
    }
    let files = counted.files.iter().filter_map(|row| Some((known.place(&text(row, 8))?, row)));
    let events = counted.events.iter().filter_map(|row| Some((of_event(&text(row, 0))?, row)));
    for ((key, kind), row) in files.chain(events) {
        let entry = objects.entry(key);
        let (_, object) = entry.or_insert_with(|| (kind, FileObject { kind, ..FileObject::default() }));
        add(&mut object.reads, number(row, 1));
        add(&mut object.writes, number(row, 2));
        add(&mut object.read_bytes, number(row, 3));
        add(&mut object.write_bytes, number(row, 4));
        add(&mut object.read_ms, ms(row, 5));
        match kind {
            FileKind::Log => add(&mut object.write_ms, written_ms(row)),
            // InnoDB hands its writes over, and only that is timed.
            FileKind::Table if !text(row, 0).starts_with("wait/io/file/innodb/") => {
                add(&mut object.write_ms, ms(row, 6));
            }
            _ => {}
        }
    }
    let redo = counted.events.iter().find(|row| text(row, 0) == REDO_LOG);
    (objects, redo.and_then(written_ms))
}

fn ms(row: &Row, at: usize) -> Option<f64> {
    number(row, at).map(|time| time / PICOSECONDS_PER_MS)
}

/// The time of writes and flushes: a commit waits for both.
fn written_ms(row: &Row) -> Option<f64> {
    Some(ms(row, 6)? + ms(row, 7)?)
}

fn add(to: &mut Option<f64>, value: Option<f64>) {
    if let Some(value) = value {
        *to = Some(to.unwrap_or(0.0) + value);
    }
}
