//! The placement as a plan: the objects to move and the statements that move them.
//!
//! A plan says what it expects and what was measured before, so that it can be checked afterwards. Nothing is carried out here.

use serde::{Deserialize, Serialize};

use crate::advice::{Advice, Ranked, Verdict};
use crate::evidence::{Evidence, Format, Kind, Level};
use crate::gain::Gain;
use crate::samples::DatabaseAddress;
use crate::twin::Twin;

/// The value of [`Plan::tier0`].
pub const MARK: &str = "placement-plan";
/// The version of the form.
pub const VERSION: u32 = 2;

/// A plan.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Plan {
    /// What the document is: [`MARK`].
    pub tier0: String,
    /// The version of the form.
    pub version: u32,
    /// Bytes of flash.
    pub flash_bytes: f64,
    /// Bytes of the objects.
    pub used_bytes: f64,
    /// The expected gain of all moves together; none where it is not known.
    pub expected: Option<Gain>,
    /// Their share of the waits for storage.
    pub wait_share: Option<f64>,
    /// What was measured before.
    pub before: Before,
    /// The tablespace on flash.
    pub tablespace: String,
    /// The moves, those with the largest gain for each GB first.
    pub moves: Vec<Move>,
    /// Objects that would gain and are not in the plan, and why.
    pub left_out: Vec<LeftOut>,
    /// Caches of volumes that are better switched otherwise; of a plan for a named array.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub settings: Vec<CacheSetting>,
    /// What the twin says; of a plan that was simulated.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub twin: Option<Twin>,
    /// The database that was sampled, where the samples say which.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub database: Option<DatabaseAddress>,
    /// The files from which the plan was made.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub files: Vec<String>,
    /// The paragraph.
    pub answer: Vec<String>,
}

/// A switch of a volume's read cache, in memory and on flash.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CacheSetting {
    /// The volume.
    pub volume: String,
    /// Whether its reads use the read cache.
    pub read_cache: bool,
    /// Why.
    pub why: String,
}

impl CacheSetting {
    /// Of a volume that holds the log alone.
    pub fn log(volume: String) -> CacheSetting {
        let why = "it holds the log, which is written and hardly ever read".to_owned();
        CacheSetting { volume, read_cache: false, why }
    }

    /// Of a volume whose data is read by scans.
    pub fn scans(volume: String) -> CacheSetting {
        let why = "its reads are large scans, which would displace what others read again".to_owned();
        CacheSetting { volume, read_cache: false, why }
    }

    /// As a field of the array file.
    pub fn field(&self) -> String {
        format!("read_cache = {} in [[volume]] {:?}", self.read_cache, self.volume)
    }
}

/// What was measured before a plan is carried out.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Before {
    /// Seconds that were measured.
    pub seconds: Option<f64>,
    /// Transactions per second.
    pub transactions_s: Option<f64>,
    /// Busy share of the processors.
    pub busy: Option<f64>,
    /// Bytes of the log for each transaction.
    #[serde(default)]
    pub log_bytes: Option<f64>,
}

impl Before {
    /// What an evidence says.
    pub fn of(evidence: &Evidence) -> Before {
        let rate = evidence.instance.transactions.zip(evidence.seconds);
        let rate = rate.map(|(transactions, seconds)| transactions / seconds);
        Before {
            seconds: evidence.seconds,
            transactions_s: rate.filter(|rate| rate.is_finite()),
            busy: evidence.host.busy,
            log_bytes: evidence
                .instance
                .log_bytes
                .zip(evidence.instance.transactions)
                .map(|(bytes, transactions)| bytes / transactions)
                .filter(|bytes| bytes.is_finite()),
        }
    }
}

/// A move.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Move {
    /// The object, with its database or schema.
    pub object: String,
    /// Its database, schema or owner.
    pub database: String,
    /// Its name within it.
    pub name: String,
    /// Whether a PostgreSQL counted it: then tier0 can move or pin it.
    pub is_postgresql: bool,
    /// What it holds.
    pub kind: Kind,
    /// Its size.
    pub bytes: f64,
    /// Milliseconds of an I/O before.
    pub ms_per_io: Option<f64>,
    /// What it brings alone.
    pub gain: Option<Gain>,
    /// The statements that move it; none where the report does not say enough for them.
    pub statements: Vec<String>,
}

/// An object that would gain and stays.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct LeftOut {
    /// The object.
    pub object: String,
    /// Why.
    pub why: String,
}

/// Where objects move to.
#[derive(Clone, Debug, PartialEq)]
pub struct Target {
    /// The tablespace on flash.
    pub tablespace: String,
    /// The directory on flash, for databases that move files.
    pub directory: Option<String>,
}

/// The plan of an advice, which follows from `evidence`, for so many bytes of flash.
pub fn plan(advice: &Advice, evidence: &Evidence, flash: f64, target: &Target) -> Plan {
    let chosen = advice.objects.iter().filter(|row| row.verdict == Verdict::Flash);
    let left = advice.objects.iter().filter(|row| row.verdict == Verdict::NoRoom);
    Plan {
        tier0: MARK.to_owned(),
        version: VERSION,
        flash_bytes: flash,
        used_bytes: advice.chosen.bytes,
        expected: advice.chosen.gain,
        wait_share: advice.chosen.wait_share,
        before: Before::of(evidence),
        tablespace: target.tablespace.clone(),
        moves: chosen
            .map(|row| Move {
                object: row.name.clone(),
                database: row.database.clone(),
                name: row.own_name.clone(),
                is_postgresql: row.format == Some(Format::Postgresql),
                kind: row.kind,
                bytes: row.bytes.unwrap_or(0.0),
                ms_per_io: row.ms_per_io,
                gain: row.gain,
                statements: statements(row, target),
            })
            .collect(),
        left_out: left.map(|row| LeftOut { object: row.name.clone(), why: row.why.clone() }).collect(),
        settings: Vec::new(),
        twin: None,
        database: evidence.database.clone(),
        files: evidence.sources.iter().map(|source| source.file.clone()).collect(),
        answer: advice.answer.clone(),
    }
}

impl Plan {
    /// Reads one that [`plan`] made.
    ///
    /// # Errors
    /// It is none, or one of another version; with the remedy.
    pub fn parse(text: &str) -> Result<Plan, String> {
        let again = "make it again with \"tier0 advise plan\"";
        let value: serde_json::Value =
            serde_json::from_str(text).map_err(|error| format!("it is no JSON ({error}); {again}"))?;
        if value.get("tier0").and_then(serde_json::Value::as_str) != Some(MARK) {
            return Err(format!("it is no placement plan; {again}"));
        }
        if value.get("version").and_then(serde_json::Value::as_u64) != Some(u64::from(VERSION)) {
            return Err(format!("it is of another version than {VERSION}; {again}"));
        }
        serde_json::from_value(value).map_err(|error| format!("{error}; {again}"))
    }
}

/// The statements that move an object.
fn statements(row: &Ranked, target: &Target) -> Vec<String> {
    match row.format {
        Some(Format::Postgresql) => postgresql(row, target),
        Some(_) if !can_be_quoted(row, target) => Vec::new(),
        Some(Format::Awr) => oracle(row, target),
        Some(Format::Mysql) => mysql(row, target),
        Some(Format::Mariadb) => tablespace_file(row, target, true),
        Some(Format::FileStatistics | Format::VirtualFileStats | Format::BlitzFirst) => {
            sql_server(row, target)
        }
        _ => Vec::new(),
    }
}

/// Whether the names are such that quotation marks suffice. The clients of Oracle and SQL Server read lines on their own ("/", "GO",
/// ":!!") even between quotation marks, sqlcmd replaces "$(name)", and SQL*Plus asks for "&name".
fn can_be_quoted(row: &Ranked, target: &Target) -> bool {
    let asks = if row.format == Some(Format::Awr) { "&" } else { "$(" };
    let of_row = [&row.database, &row.own_name].into_iter().chain(&row.path);
    let mut names = of_row.chain([&target.tablespace]).chain(&target.directory);
    names.all(|name| !name.contains(is_harmful) && !name.contains(asks))
}

/// Whether a character commands a terminal or turns the direction of what is written.
fn is_harmful(c: char) -> bool {
    c.is_control() || matches!(c, '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

/// A name of SQL in quotes, so that no name of an object can become a statement.
fn quoted(name: &str) -> String {
    format!("\"{}\"", name.replace('"', "\"\""))
}

/// A name of PostgreSQL in quotes, with escapes for what would command a terminal.
fn quoted_of_postgresql(name: &str) -> String {
    if !name.contains(is_harmful) {
        return quoted(name);
    }
    let mut escaped = String::new();
    for c in name.chars() {
        match c {
            '\\' => escaped.push_str("\\\\"),
            c if is_harmful(c) => escaped.push_str(&format!("\\{:04x}", u32::from(c))),
            c => escaped.push(c),
        }
    }
    format!("U&{}", quoted(&escaped))
}

/// A text of SQL.
fn text(value: &str) -> String {
    format!("'{}'", value.replace('\'', "''"))
}

/// A text in a comment, which ends with its line.
pub fn in_comment(name: &str) -> String {
    // sqlcmd replaces "$(name)" in comments too.
    name.replace(is_harmful, " ").replace("$(", "$ (")
}

/// A name in the brackets of SQL Server.
fn bracketed(name: &str) -> String {
    format!("[{}]", name.replace(']', "]]"))
}

fn postgresql(row: &Ranked, target: &Target) -> Vec<String> {
    vec![postgresql_move(row.kind, &row.database, &row.own_name, &target.tablespace)]
}

/// The statement that moves a table or an index of PostgreSQL.
pub fn postgresql_move(kind: Kind, schema: &str, name: &str, tablespace: &str) -> String {
    let what = if kind == Kind::Index { "index" } else { "table" };
    let [schema, name, tablespace] = [schema, name, tablespace].map(quoted_of_postgresql);
    format!("alter {what} {schema}.{name} set tablespace {tablespace};")
}

fn oracle(row: &Ranked, target: &Target) -> Vec<String> {
    let space = quoted(&target.tablespace);
    let (object, part) = match row.own_name.split_once(':') {
        Some((object, part)) => (object, Some(part)),
        None => (row.own_name.as_str(), None),
    };
    let name = format!("{}.{}", quoted(&row.database), quoted(object));
    match (row.level, row.kind, part) {
        (Level::Segment, Kind::Index, Some(part)) => {
            vec![format!("alter index {name} rebuild partition {} tablespace {space};", quoted(part))]
        }
        (Level::Segment, Kind::Index, None) => {
            vec![format!("alter index {name} rebuild tablespace {space};")]
        }
        // Rows get other addresses: indexes are unusable until they are rebuilt.
        (Level::Segment, _, Some(part)) => {
            vec![format!(
                "alter table {name} move partition {} tablespace {space} update indexes;",
                quoted(part)
            )]
        }
        (Level::Segment, _, None) => vec![
            format!("alter table {name} move tablespace {space};"),
            format!("-- then rebuild the indexes of {}", in_comment(&name)),
        ],
        (Level::File, ..) => match (&row.path, &target.directory) {
            (Some(path), Some(directory)) => vec![format!(
                "alter database move datafile {} to {};",
                text(path),
                text(&format!("{}/{}", directory.trim_end_matches('/'), row.own_name))
            )],
            _ => Vec::new(),
        },
        _ => Vec::new(),
    }
}

/// A name of SQL in the quotes of MySQL.
fn in_backquotes(name: &str) -> String {
    format!("`{}`", name.replace('`', "``"))
}

/// A table goes to a general tablespace while the server runs; a partition cannot lie in one, so its file moves.
fn mysql(row: &Ranked, target: &Target) -> Vec<String> {
    match (row.level, row.kind, &row.path) {
        (Level::File, Kind::Table, Some(_)) => vec![format!(
            "alter table {}.{} tablespace {};",
            in_backquotes(&row.database),
            in_backquotes(&row.own_name),
            in_backquotes(&target.tablespace)
        )],
        _ => tablespace_file(row, target, false),
    }
}

/// How the file of a tablespace is moved by hand: neither server moves one that exists by a statement (`data directory` is ignored
/// by `alter table`).
fn tablespace_file(row: &Ranked, target: &Target, is_mariadb: bool) -> Vec<String> {
    let is_of_table = matches!(row.kind, Kind::Table | Kind::Partition);
    let file = row.path.as_deref().filter(|_| is_of_table).and_then(|path| path.rsplit_once('/'));
    let Some((stem, schema)) = file.and_then(|(directory, file)| {
        Some((file.strip_suffix(".ibd")?, directory.rsplit('/').next().unwrap_or_default()))
    }) else {
        return vec![in_comment(&format!(
            "-- {}: it is no table of InnoDB with a file of its own, so it moves with the data directory only",
            row.name
        ))];
    };
    let (Some(path), Some(directory)) = (&row.path, &target.directory) else { return Vec::new() };
    let directory = directory.trim_end_matches('/');
    let to = format!("{directory}/{schema}/{stem}.ibd");
    let tell = match is_mariadb {
        true => format!(
            "write that path, without a line end, into the file {} below the data directory",
            text(&format!("{schema}/{stem}.isl"))
        ),
        false => format!("name {} in innodb_directories of the configuration", text(directory)),
    };
    vec![in_comment(&format!(
        "-- stop the server; move the file {} to {}; {tell}; the server's user must own both; start the server",
        text(path),
        text(&to)
    ))]
}

fn sql_server(row: &Ranked, target: &Target) -> Vec<String> {
    let (Some(path), Some(directory)) = (&row.path, &target.directory) else { return Vec::new() };
    let file = path.rsplit(['\\', '/']).next().unwrap_or(path);
    let separator = if directory.contains('/') { '/' } else { '\\' };
    let to = format!("{}{separator}{file}", directory.trim_end_matches(['\\', '/']));
    let database = bracketed(&row.database);
    vec![
        format!(
            "alter database {database} modify file (name = N{}, filename = N{});",
            text(&row.own_name),
            text(&to)
        ),
        in_comment(&format!(
            "-- then: alter database {database} set offline; move the file; alter database {database} set online;"
        )),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(format: Format, level: Level, kind: Kind, name: &str, path: Option<&str>) -> Ranked {
        Ranked {
            name: format!("app.{name}"),
            own_name: name.to_owned(),
            database: "app".to_owned(),
            kind,
            level,
            table: None,
            path: path.map(str::to_owned),
            format: Some(format),
            verdict: Verdict::Flash,
            bytes: Some(1e9),
            io_share: None,
            wait_share: None,
            ms_per_io: None,
            reads_s: None,
            writes_s: None,
            gain: None,
            gain_per_gb: None,
            why: String::new(),
            value: 1.0,
        }
    }

    #[test]
    fn each_database_gets_its_own_statements() {
        let target = Target { tablespace: "flash".into(), directory: Some("F:\\fast".into()) };
        let of = |row: &Ranked| statements(row, &target)[0].clone();
        let postgres = |kind, name| row(Format::Postgresql, Level::Segment, kind, name, None);
        assert_eq!(
            of(&postgres(Kind::Table, "orders")),
            "alter table \"app\".\"orders\" set tablespace \"flash\";"
        );
        assert_eq!(of(&postgres(Kind::Index, "i")), "alter index \"app\".\"i\" set tablespace \"flash\";");
        let part = row(Format::Awr, Level::Segment, Kind::Partition, "LINES:P1", None);
        assert_eq!(
            of(&part),
            "alter table \"app\".\"LINES\" move partition \"P1\" tablespace \"flash\" update indexes;"
        );
        let file = row(Format::VirtualFileStats, Level::File, Kind::Data, "data", Some("D:\\d\\a.ndf"));
        assert_eq!(
            of(&file),
            "alter database [app] modify file (name = N'data', filename = N'F:\\fast\\a.ndf');"
        );
    }

    /// `alter table … data directory` is ignored by both servers.
    #[test]
    fn files_of_mysql_and_mariadb_move_in_their_ways() {
        let flash = |directory: Option<&str>| Target {
            tablespace: "flash".into(),
            directory: directory.map(str::to_owned),
        };
        let path = Some("/var/lib/mysql/app/t`.ibd");
        let table = |format| row(format, Level::File, Kind::Table, "t`", path);
        assert_eq!(
            statements(&table(Format::Mysql), &flash(None)),
            ["alter table `app`.`t``` tablespace `flash`;"]
        );
        assert!(statements(&table(Format::Mariadb), &flash(None)).is_empty());
        let by_hand = statements(&table(Format::Mariadb), &flash(Some("/flash/")));
        let [told] = &by_hand[..] else { panic!("{by_hand:?}") };
        assert!(told.starts_with("-- stop the server; ") && told.contains("'/flash/app/t`.ibd'"), "{told}");
        assert!(told.contains("'app/t`.isl' below the data directory"), "{told}");
        let mut part = row(Format::Mysql, Level::File, Kind::Partition, "t:p0", Some("/d/app/t#p#p0.ibd"));
        part.table = Some("t".into());
        let by_hand = statements(&part, &flash(Some("/flash")));
        assert!(by_hand[0].contains("innodb_directories") && by_hand[0].contains("/flash/app/t#p#p0.ibd"));
        let data = row(Format::Mariadb, Level::File, Kind::Data, "system tablespace", None);
        assert!(statements(&data, &flash(Some("/flash")))[0].contains("with the data directory only"));
    }

    /// A table whose name would end the statement and begin another.
    #[test]
    fn a_name_does_not_become_a_statement() {
        let target = Target { tablespace: "f\"x".into(), directory: Some("F:\\'".into()) };
        let wicked = "t\"; drop table x; --";
        let of = row(Format::Postgresql, Level::Segment, Kind::Table, wicked, None);
        assert_eq!(
            statements(&of, &target),
            ["alter table \"app\".\"t\"\"; drop table x; --\" set tablespace \"f\"\"x\";"]
        );
        let mut file = row(Format::VirtualFileStats, Level::File, Kind::Data, "a'b", Some("D:\\a.ndf"));
        assert!(statements(&file, &target)[0].contains("N'a''b'"));
        file.database = "or]d --".to_owned();
        let [statement, comment] = &statements(&file, &target)[..] else { panic!("two lines") };
        assert!(statement.contains("[or]]d --]") && comment.starts_with("-- then"), "{statement}{comment}");
    }

    /// Lines within quotation marks are commands to some clients, and to a terminal.
    #[test]
    fn a_name_with_control_characters_stays_on_its_line() {
        let target = Target { tablespace: "flash".into(), directory: Some("F:\\fast".into()) };
        let of = row(Format::Postgresql, Level::Segment, Kind::Table, "a\\b\n\u{1b}[2J\"", None);
        assert_eq!(
            statements(&of, &target),
            ["alter table \"app\".U&\"a\\\\b\\000a\\001b[2J\"\"\" set tablespace \"flash\";"]
        );
        for name in ["a\nGO\n:!!del", "a$(b)"] {
            let file = row(Format::VirtualFileStats, Level::File, Kind::Data, name, Some("D:\\a.ndf"));
            assert!(statements(&file, &target).is_empty(), "{name:?}");
        }
        for name in ["a\n/\n", "R&D"] {
            let table = row(Format::Awr, Level::Segment, Kind::Table, name, None);
            assert!(statements(&table, &target).is_empty(), "{name:?}");
        }
        assert_eq!(in_comment("a\nb\u{202e}$(c)"), "a b $ (c)");
    }
}
