//! `tier0 advise collect`: samples of a running PostgreSQL, MySQL or MariaDB, as JSON lines that `tier0 advise` reads.
//!
//! Every line is complete when the next is begun, so a kill costs at most one sample. A file that exists is continued. A server
//! that goes away is asked again at the next sample.

use std::fs::{File, OpenOptions};
use std::io::{BufRead, BufReader, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::time::Duration;

use clap::Args;
use jiff::SignedDuration;
use tier0_advisor::samples::mysql::MysqlSample;
use tier0_advisor::samples::postgres::PostgresSample;
use tier0_advisor::samples::{Collected, DatabaseAddress};

use super::input::parse_period;
use super::volumes::volumes;
use super::{mysql, postgres};
use crate::cli::Global;
use crate::control::Addressee;
use crate::driving::live_line;
use crate::failure::Failure;
use crate::output::json_line;

const EXAMPLES: &str = "\
Examples:
  tier0 advise collect --dsn 'host=/run/postgresql dbname=shop' --out shop.jsonl
      a sample every 10 s for 24 h; Ctrl-C ends it, and what is written counts
  tier0 advise collect --dsn postgresql://monitor@localhost/shop \\
    --every 30s --for 1h --out shop.jsonl
  tier0 advise collect --dsn mysql://monitor@db1:3306/ --out shop.jsonl
      a MySQL or a MariaDB, with all its databases
  tier0 advise collect --out shop.jsonl \\
    --dsn 'mysql://monitor@localhost/?socket=/run/mysqld/mysqld.sock'
  tier0 advise shop.jsonl --flash 800GB
      what the samples say

PostgreSQL: the user needs the role pg_monitor; the password belongs into
PGPASSWORD. Without track_io_timing and track_wal_io_timing the server's waits
read \"not measured\".

MySQL 8.0, MariaDB 10.6 and later: the user needs the privileges PROCESS on *.*
and SELECT on performance_schema.*; the password belongs into MYSQL_PWD. MariaDB
has performance_schema switched off by default: without it, tables read \"not
measured\". ?require_ssl=true in the DSN encrypts the connection.

Passwords are never printed. Where the server is on this host, its processors
are sampled too.";

/// The shortest time between samples: each is a scan of the server's statistics.
const SHORTEST: SignedDuration = SignedDuration::from_secs(1);
/// How much of a file's end is looked at for a line that was cut off.
const TAIL_BYTES: u64 = 64 << 20;

/// Collects.
#[derive(Args, Debug)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Collect {
    /// The database: postgresql://, key=value pairs of PostgreSQL, mysql:// or mariadb://
    #[arg(long, value_name = "DSN")]
    dsn: String,
    /// Time between samples
    #[arg(long, value_name = "TIME", default_value = "10s", value_parser = parse_period)]
    every: SignedDuration,
    /// How long to collect
    #[arg(long = "for", value_name = "TIME", default_value = "24h", value_parser = parse_period)]
    lasts: SignedDuration,
    /// The file; one that exists is continued
    #[arg(long, value_name = "FILE")]
    out: PathBuf,
    /// Also sample the volumes of this running array
    #[arg(long, value_name = "ARRAY.TOML")]
    array: Option<PathBuf>,
}

/// Does it.
pub(super) fn run(verb: &Collect, global: &Global) -> Result<(), Failure> {
    if verb.every < SHORTEST {
        return Err(Failure::Input(
            "--every is less than 1s; samples so close measure themselves; use 1s or more".into(),
        ));
    }
    match mysql::is_mysql(&verb.dsn) {
        true => collect(verb, global, Mysql { settings: mysql::Settings::of(&verb.dsn)?, server: None }),
        false => {
            collect(verb, global, Postgres { settings: postgres::Settings::of(&verb.dsn)?, server: None })
        }
    }
}

/// A server that is asked for samples.
trait Source {
    type Sample: Collected;

    /// A sample. A server that went away is connected to again.
    async fn sample(&mut self) -> Result<Self::Sample, String>;
    /// Ends the connection.
    async fn close(&mut self);
}

struct Postgres {
    settings: postgres::Settings,
    server: Option<postgres::Server>,
}

impl Source for Postgres {
    type Sample = PostgresSample;

    async fn sample(&mut self) -> Result<PostgresSample, String> {
        let server = match self.server.take() {
            Some(server) => server,
            None => postgres::Server::connect(&self.settings).await?,
        };
        let sample = server.sample(&self.settings).await?;
        self.server = Some(server);
        Ok(sample)
    }

    async fn close(&mut self) {
        self.server = None;
    }
}

struct Mysql {
    settings: mysql::Settings,
    server: Option<mysql::Server>,
}

impl Source for Mysql {
    type Sample = MysqlSample;

    async fn sample(&mut self) -> Result<MysqlSample, String> {
        let mut server = match self.server.take() {
            Some(server) => server,
            None => mysql::Server::connect(&self.settings).await?,
        };
        let sample = server.sample().await?;
        self.server = Some(server);
        Ok(sample)
    }

    async fn close(&mut self) {
        if let Some(server) = self.server.take() {
            server.close().await;
        }
    }
}

/// Samples until the end.
fn collect<S: Source>(verb: &Collect, global: &Global, mut source: S) -> Result<(), Failure> {
    let array = verb.array.as_deref().map(Addressee::of).transpose()?;
    let (mut file, continued) = open::<S::Sample>(&verb.out)?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime = runtime
        .map_err(|error| Failure::Run(format!("cannot start: {error}; check the limits of this process")))?;
    let bar = live_line(global.quiet == 0);
    let collected = runtime.block_on(async {
        let mut every = tokio::time::interval(positive(verb.every));
        every.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
        let end = tokio::time::Instant::now() + positive(verb.lasts);
        let mut known = Vec::new();
        let (mut written, mut failed) = (0_u64, 0_u64);
        loop {
            every.tick().await;
            match sample(&mut source, array.as_ref()).await {
                Ok(sample) => {
                    if written == 0 {
                        check_same(&verb.out, continued.as_ref(), sample.address())?;
                        sample.lacks().iter().for_each(|fact| tracing::warn!("{fact}"));
                    }
                    let sample = changed(sample, &mut known, written == 0);
                    write(&mut file, &verb.out, &json_line(&sample))?;
                    written += 1;
                    bar.set_message(format!("{written} samples in {}", verb.out.display()));
                }
                // The first connection must work: a wrong name would fail for a day.
                Err(fact) if written == 0 => {
                    remove_if_empty(&verb.out);
                    return Err(Failure::Run(fact));
                }
                Err(fact) => {
                    failed += 1;
                    tracing::warn!("{fact}; trying again at the next sample");
                }
            }
            // The first sample is at 0, the last at the end.
            if tokio::time::Instant::now() + positive(verb.every) / 2 > end {
                source.close().await;
                return Ok((written, failed));
            }
        }
    });
    bar.finish_and_clear();
    let (written, failed) = collected?;
    let failed = if failed == 0 { String::new() } else { format!(", {failed} failed") };
    crate::output::print(&format!(
        "{written} samples{failed}; \"tier0 advise {}\" says what they mean\n",
        verb.out.display()
    ))
}

/// A duration that was checked to be above 0.
fn positive(duration: SignedDuration) -> Duration {
    Duration::try_from(duration).unwrap_or(Duration::from_secs(1))
}

async fn sample<S: Source>(source: &mut S, array: Option<&Addressee>) -> Result<S::Sample, String> {
    let mut sample = source.sample().await?;
    if let Some(array) = array {
        sample.set_volumes(volumes(array).map_err(|failure| failure.text().unwrap_or_default())?);
    }
    Ok(sample)
}

/// The sample with only the objects whose counters have changed, unless it is the first.
fn changed<S: Collected>(mut sample: S, known: &mut Vec<S::Object>, is_first: bool) -> S {
    let all = std::mem::take(sample.objects());
    // An object that went makes the list a new one.
    let gone = known.iter().any(|before| find::<S>(&all, before).is_none());
    let is_full = is_first || gone;
    sample.set_full(is_full);
    *sample.objects() = match is_full {
        true => all.clone(),
        false => all.iter().filter(|now| find::<S>(known, now) != Some(*now)).cloned().collect(),
    };
    *known = all;
    sample
}

/// The object of the same key; lists are ordered by it.
fn find<'a, S: Collected>(list: &'a [S::Object], like: &S::Object) -> Option<&'a S::Object> {
    let found = list.binary_search_by(|object| S::key(object).cmp(&S::key(like)));
    found.ok().map(|at| &list[at])
}

fn write(file: &mut File, path: &Path, line: &str) -> Result<(), Failure> {
    let written = file.write_all(line.as_bytes()).and_then(|()| file.flush());
    written.map_err(|error| {
        Failure::Run(format!("cannot write to {}: {error}; check the file system's space", path.display()))
    })
}

/// Refuses to continue a file of another database.
fn check_same(
    path: &Path,
    continued: Option<&DatabaseAddress>,
    now: Option<&DatabaseAddress>,
) -> Result<(), Failure> {
    match continued.zip(now) {
        Some((before, now)) if !before.is_same(now) => Err(Failure::Input(format!(
            "{} has samples of {}, and this is {}; name another file",
            path.display(),
            before.words(),
            now.words()
        ))),
        _ => Ok(()),
    }
}

/// A file that was made for nothing would be taken for samples.
fn remove_if_empty(path: &Path) {
    if std::fs::metadata(path).is_ok_and(|file| file.is_file() && file.len() == 0) {
        _ = std::fs::remove_file(path);
    }
}

/// Opens the file for more lines. A line that was cut off is removed. Gives the database of the first sample too, if there is one.
fn open<S: Collected>(path: &Path) -> Result<(File, Option<DatabaseAddress>), Failure> {
    let shown = path.display();
    let opened = OpenOptions::new().read(true).append(true).create(true).open(path);
    let mut file = opened.map_err(|error| {
        Failure::Input(format!("cannot open {shown}: {error}; name a file in an existing directory"))
    })?;
    let unreadable =
        |error: std::io::Error| Failure::Run(format!("cannot read {shown}: {error}; name another file"));
    let length = file.metadata().map_err(unreadable)?.len();
    if length == 0 {
        return Ok((file, None));
    }
    let mut first = Vec::new();
    let mut head = BufReader::new((&file).take(TAIL_BYTES));
    head.read_until(b'\n', &mut first).map_err(unreadable)?;
    let first: Option<S> = serde_json::from_slice(&first).ok();
    let Some(first) = first.filter(|first| S::MARKS.contains(&first.head().mark)) else {
        return Err(Failure::Input(format!(
            "{shown} exists and has no samples of such a server; name another file"
        )));
    };
    file.seek(SeekFrom::Start(length.saturating_sub(TAIL_BYTES))).map_err(unreadable)?;
    let mut tail = Vec::new();
    (&file).take(TAIL_BYTES).read_to_end(&mut tail).map_err(unreadable)?;
    let complete = tail.iter().rposition(|byte| *byte == b'\n').map_or(0, |at| at + 1);
    let cut = (tail.len() - complete) as u64;
    if cut > 0 {
        tracing::warn!("the last line of {shown} is cut off and is removed; its sample is missing");
        file.set_len(length - cut).map_err(unreadable)?;
    }
    Ok((file, first.address().cloned()))
}

#[cfg(test)]
mod tests {
    use tier0_advisor::samples::postgres::{MARK, Relation};

    use super::*;

    fn relation(name: &str, reads: f64) -> Relation {
        Relation { schema: "s".into(), name: name.into(), reads: Some(reads), ..Relation::default() }
    }

    #[test]
    fn later_samples_have_what_changed() {
        let sample = |relations: &[Relation]| PostgresSample {
            relations: relations.to_vec(),
            ..PostgresSample::default()
        };
        let mut known = Vec::new();
        let first = changed(sample(&[relation("a", 1.0), relation("b", 1.0)]), &mut known, true);
        assert!(first.full && first.relations.len() == 2);
        let second =
            changed(sample(&[relation("a", 2.0), relation("b", 1.0), relation("c", 0.0)]), &mut known, false);
        let names: Vec<_> = second.relations.iter().map(|relation| relation.name.as_str()).collect();
        assert!(!second.full && names == ["a", "c"], "{names:?}");
        assert!(
            changed(sample(&[relation("a", 2.0), relation("c", 0.0)]), &mut known, false).full,
            "b is gone"
        );
    }

    #[test]
    fn a_file_is_continued_after_its_last_whole_line() {
        let directory = tempfile::tempdir().expect("a directory");
        let path = directory.path().join("f.jsonl");
        let line = json_line(&PostgresSample { tier0: MARK.to_owned(), ..PostgresSample::default() });
        std::fs::write(&path, format!("{line}{line}{{\"tier")).expect("a file");
        open::<PostgresSample>(&path).expect("it has samples").0.write_all(b"x\n").expect("it is open");
        assert_eq!(std::fs::read_to_string(&path).expect("a file"), format!("{line}{line}x\n"));
        std::fs::write(&path, "something else\n").expect("a file");
        assert!(open::<PostgresSample>(&path).is_err(), "it is not ours");
        std::fs::write(&path, format!("notes on {MARK}\nlast line")).expect("a file");
        assert!(open::<PostgresSample>(&path).is_err(), "it names samples and has none");
        std::fs::write(&path, &line).expect("a file");
        assert!(open::<MysqlSample>(&path).is_err(), "it is of another server");
    }

    #[test]
    fn a_file_of_another_database_is_not_continued() {
        let of = |database: &str| DatabaseAddress { database: database.into(), ..DatabaseAddress::default() };
        let path = Path::new("f.jsonl");
        assert!(check_same(path, Some(&of("shop")), Some(&of("shop"))).is_ok());
        assert!(check_same(path, None, Some(&of("shop"))).is_ok());
        assert!(check_same(path, Some(&of("shop")), Some(&of("test"))).is_err());
    }
}
