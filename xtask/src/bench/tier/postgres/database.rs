//! PostgreSQL under pgbench, in a control group of little memory.

use std::fmt;
use std::path::PathBuf;
use std::process::Command;
use std::time::Duration;

use rustix::process::Signal;
use tier0_torture::memory::MemoryGroup;
use tier0_torture::postgres::Cluster;
use tier0_torture::process::Running;
use tier0_torture::tools::output;

use super::array::{HOT_ACCESSES, HOT_ACCOUNTS, Site, Sizes};
use super::{CLIENTS, Failed};
use crate::clock;
use crate::error::BenchError;
use crate::interrupt::Interrupt;

/// Accounts in a scale of 1.
const ACCOUNTS: u32 = 100_000;
/// How often it is looked whether something has ended.
const LOOK: Duration = Duration::from_millis(100);

/// Makes pgbench's tables.
pub(super) fn fill(cluster: &Cluster, scale: u32) -> Result<(), Failed> {
    let scale = format!("--scale={scale}");
    output("pgbench", cluster.client("pgbench").args(["--initialize", &scale, "--quiet", "postgres"]))?;
    Ok(())
}

/// A transaction: four reads and one update of accounts, and a line of history.
fn script(sizes: &Sizes) -> String {
    let (all, hot) = (sizes.scale * ACCOUNTS, sizes.scale * ACCOUNTS / 100 * HOT_ACCOUNTS);
    let account = |number: u32| {
        format!(
            "\\set a{number} CASE WHEN random(1, 100) <= {HOT_ACCESSES} THEN random(1, {hot}) ELSE random({}, {all}) END\n",
            hot + 1
        )
    };
    let read = |number: u32| format!("SELECT abalance FROM pgbench_accounts WHERE aid = :a{number};\n");
    let accounts: String = (1..=5).map(account).collect();
    let reads: String = (1..=4).map(read).collect();
    format!(
        "{accounts}\\set delta random(-5000, 5000)\nBEGIN;\n{reads}\
         UPDATE pgbench_accounts SET abalance = abalance + :delta WHERE aid = :a5;\n\
         INSERT INTO pgbench_history (tid, bid, aid, delta, mtime) VALUES (1, 1, :a5, :delta, CURRENT_TIMESTAMP);\nEND;\n"
    )
}

/// pgbench for so many seconds.
pub(super) fn command(cluster: &Cluster, site: &Site, sizes: &Sizes, seconds: u32) -> Command {
    let file = site.path("script.sql");
    // Where it cannot be written, pgbench says that it is missing.
    let _ = std::fs::write(&file, script(sizes));
    let mut pgbench = cluster.client("pgbench");
    pgbench.arg("--file").arg(&file);
    pgbench.args(["--no-vacuum", "--protocol=prepared", "--jobs=1", "--log"]);
    pgbench.arg(format!("--client={CLIENTS}")).arg(format!("--time={seconds}"));
    pgbench.arg("--log-prefix").arg(prefix(site)).arg("postgres");
    pgbench
}

/// pgbench writes its log beside its socket, where its user may.
fn prefix(site: &Site) -> PathBuf {
    site.path("pg").join("transactions")
}

/// Runs the load to its end.
pub(super) fn run(
    cluster: &Cluster,
    site: &Site,
    sizes: &Sizes,
    seconds: u32,
    interrupt: &Interrupt,
) -> Result<Transactions, Failed> {
    remove_logs(site);
    let mut pgbench = command(cluster, site, sizes, seconds);
    let log = site.path("pgbench.log");
    let mut pgbench = Running::start("pgbench", &mut pgbench, &log)?;
    let status = loop {
        if let Some(status) = pgbench.status()? {
            break status;
        }
        if let Err(error) = interrupt.check() {
            pgbench.signal(Signal::KILL);
            return Err(error.into());
        }
        clock::pause(LOOK);
    };
    if !status.success() {
        let words = std::fs::read_to_string(&log).unwrap_or_default();
        return Err(BenchError::Failed(format!("pgbench ended with {status}: {}", words.trim())).into());
    }
    Ok(Transactions::read(site, seconds)?)
}

fn logs(site: &Site) -> Vec<PathBuf> {
    let prefix = prefix(site);
    let (directory, name) = (prefix.parent().expect("a file in a directory"), prefix.file_name());
    let name = name.and_then(|name| name.to_str()).unwrap_or_default();
    let entries = std::fs::read_dir(directory).into_iter().flatten().flatten().map(|entry| entry.path());
    let is_log = |path: &PathBuf| {
        path.file_name().and_then(|own| own.to_str()).is_some_and(|own| own.starts_with(name))
    };
    entries.filter(is_log).collect()
}

fn remove_logs(site: &Site) {
    logs(site).iter().for_each(|path| {
        // A log that stays would count as one of the next run, and its name holds another process's number.
        let _ = std::fs::remove_file(path);
    });
}

/// Waits, or fails where the user wants an end.
pub(super) fn wait(seconds: u32, interrupt: &Interrupt) -> Result<(), BenchError> {
    let until = clock::wall_s() + f64::from(seconds);
    while clock::wall_s() < until {
        interrupt.check()?;
        clock::pause(LOOK);
    }
    Ok(())
}

/// What transactions took.
pub(super) struct Transactions {
    seconds: f64,
    /// The time of the end of each since the first began, seconds, and how long it took, ms; by the second.
    all: Vec<(f64, f64)>,
}

impl Transactions {
    /// Reads pgbench's logs: "client transaction time_us script epoch_s epoch_us" (pgbench(1), per-transaction logging).
    fn read(site: &Site, seconds: u32) -> Result<Transactions, BenchError> {
        let mut lines = String::new();
        for path in logs(site) {
            lines += &std::fs::read_to_string(&path)
                .map_err(BenchError::system(format!("{} cannot be read", path.display())))?;
        }
        Transactions::parse(&lines, f64::from(seconds))
            .ok_or_else(|| BenchError::Failed("pgbench logged no transaction".into()))
    }

    fn parse(lines: &str, seconds: f64) -> Option<Transactions> {
        let one = |line: &str| {
            let fields: Vec<f64> = line.split(' ').map_while(|field| field.parse().ok()).collect();
            let [_, _, took_us, _, s, us, ..] = fields[..] else { return None };
            Some((s + us / 1e6, took_us / 1e3))
        };
        let mut all: Vec<(f64, f64)> = lines.lines().filter_map(one).collect();
        let began = all.iter().map(|(end, took)| end - took / 1e3).reduce(f64::min)?;
        all.iter_mut().for_each(|(end, _)| *end -= began);
        Some(Transactions { seconds, all })
    }

    pub(super) fn per_s(&self) -> f64 {
        self.all.len() as f64 / self.seconds
    }

    pub(super) fn per_s_in_first(&self, seconds: f64) -> f64 {
        self.all.iter().filter(|(end, _)| *end <= seconds).count() as f64 / seconds
    }

    pub(super) fn p99_ms(&self) -> f64 {
        let mut took: Vec<f64> = self.all.iter().map(|(_, took)| *took).collect();
        took.sort_by(f64::total_cmp);
        took[(took.len() - 1) * 99 / 100]
    }
}

impl fmt::Display for Transactions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:.0} transactions per second, p99 {:.0} ms", self.per_s(), self.p99_ms())
    }
}

/// What limits the memory of PostgreSQL, in words.
pub(super) fn describe(group: &MemoryGroup, mib: u32) -> String {
    match group.is_effective() {
        true => format!("{mib} MiB"),
        false => "without a limit, for this system has no control groups of memory".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn transactions_are_read_from_pgbenchs_log() {
        let log = "0 1 10000 0 100 10000\n1 1 30000 0 100 30000\n0 2 20000 0 106 0\n";
        let read = Transactions::parse(log, 10.0).expect("three transactions");
        assert_eq!((read.all.len(), read.per_s()), (3, 0.3));
        assert_eq!(read.per_s_in_first(5.0), 0.4);
        assert_eq!(read.p99_ms(), 20.0);
        assert!(Transactions::parse("", 10.0).is_none());
    }
}
