//! The verbs of tier0, as a user would type them: prepare, a run in memory, a profile, predict, run, compare.

use std::fs::File;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use serde_json::Value;
use tier0_programs::process::Running;

use super::host::Host;
use super::site::{Drives, Stack};
use super::{Bench, tell};
use crate::clock;
use crate::error::BenchError;

/// How often it is looked whether something has ended.
const LOOK: Duration = Duration::from_millis(200);
/// The load whose processor time is that of an I/O: as many requests under way as the database has about.
const IO_SECONDS: u32 = 8;
const IO_DEPTH: u32 = 4;
/// Users of the run in memory start over so many seconds, and all pages are in memory then.
const MEMORY_RAMP_SECONDS: u32 = 10;
/// Seconds of each probe of the profile.
const PROBE_SECONDS: u32 = 2;

impl Bench {
    /// Loads the database.
    pub(super) fn prepare(&self, stack: &Stack) -> Result<(), BenchError> {
        tell(&format!("loading {} warehouses", self.extent.warehouses));
        let mut command = self.on_database("prepare", stack);
        command.args(["--warehouses", &self.extent.warehouses.to_string(), "--json"]);
        self.json_of("tier0 bench prepare", command, "prepared", &mut || {}).map(drop)
    }

    /// Runs with all files in the page cache: processor time and log of a transaction, and the memory of the server's processes.
    pub(super) fn run_in_memory(&self, stack: &Stack) -> Result<Host, BenchError> {
        tell("a run in memory");
        self.group.limit(None)?;
        let mut command = self.load(stack, "nurand", MEMORY_RAMP_SECONDS, self.extent.memory_run_s);
        command.arg("--json");
        let (mut process_bytes, mut spent) = (0, Vec::new());
        let mut look = || {
            process_bytes = self.group.process_bytes().unwrap_or(0).max(process_bytes);
            spent.extend(self.processors.spent_s().ok().map(|spent_s| (clock::wall_s(), spent_s)));
        };
        let mut told = self.json_of("tier0 bench run", command, "memory", &mut look)?;
        let transaction_ms = transaction_ms(&told, &spent).ok_or_else(|| {
            BenchError::Failed("the run in memory was too short to measure its processor time".to_owned())
        })?;
        // The report has the time of the whole machine; what counts is that of what this benchmark has started.
        told["per_transaction"]["processor_ms"] = transaction_ms.into();
        crate::bench::write(&self.kept("memory"), &told.to_string())?;
        let (limit, buffers) = (self.extent.memory_mib << 20, self.extent.buffers_mib << 20);
        let page_cache_bytes = limit.saturating_sub(buffers + process_bytes);
        if process_bytes == 0 || page_cache_bytes == 0 {
            return Err(BenchError::Failed(format!(
                "PostgreSQL's processes take {} MiB, which leaves nothing of {} MiB for a page cache",
                process_bytes >> 20,
                self.extent.memory_mib
            )));
        }
        let cores = std::thread::available_parallelism().map_or(1, usize::from);
        Ok(Host { cores, transaction_ms, io_us: 0.0, process_bytes, page_cache_bytes })
    }

    /// Profiles a file on the file system while the database does nothing; gives the processor time of an I/O, microseconds.
    pub(super) fn profile(&self, stack: &Stack) -> Result<f64, BenchError> {
        tell("profiling the storage without the database");
        let file = stack.on_volume("profile.dat");
        fill(&file, self.extent.profile_mib)?;
        let requests = ["--block", "8KiB", "--read", "70", "--durable", "--overwrite"];
        let probe = format!("{PROBE_SECONDS}s");
        let mut command = Command::new(&self.program);
        command.args(["lab", "profile"]).arg(&file).args(requests);
        command.args(["--limit", "1s", "--outstanding-max", "64", "--time", &probe, "--json"]);
        self.json_of("tier0 lab profile", command, "profile", &mut || {})?;
        let mut command = Command::new(&self.program);
        command.arg("load").arg(&file).args(requests);
        command.args(["--queue-depth", &IO_DEPTH.to_string(), "--time", &format!("{IO_SECONDS}s"), "--json"]);
        let before = self.processors.spent_s()?;
        let told = self.json_of("tier0 load", command, "load", &mut || {})?;
        let spent = self.processors.spent_s()? - before;
        std::fs::remove_file(&file).map_err(BenchError::system("the profiled file cannot be removed"))?;
        match told["all"]["ios"].as_f64().filter(|ios| *ios > 0.0) {
            Some(ios) => Ok(spent / ios * 1e6),
            None => Err(BenchError::Failed(format!("tier0 load counted no I/Os: {}", told["all"]))),
        }
    }

    /// Predicts a run.
    pub(super) fn predict(
        &self,
        host: &Host,
        drives: Drives,
        law: &str,
        name: &str,
    ) -> Result<PathBuf, BenchError> {
        let file = self.keep.join(format!("{name}.toml"));
        let items =
            if law == "nurand" { String::new() } else { format!("choices = {{ item = \"{law}\" }}\n") };
        let text = format!(
            "[database]\nworkload = \"order-entry\"\nengine = \"postgresql-15\"\nscale = {}\nbuffer = \"{}MiB\"\nusers = {}\n{items}\
             [host]\ncores = {}\nio_us = {:.1}\npage_cache = \"{}B\"\n[run]\nwarm_up = \"{}s\"\nmeasured = \"{}s\"\n",
            self.extent.warehouses,
            self.extent.buffers_mib,
            self.extent.users,
            host.cores,
            host.io_us,
            host.page_cache_bytes,
            self.extent.ramp_s,
            self.extent.measured_s,
        );
        crate::bench::write(&file, &text)?;
        let mut command = Command::new(&self.program);
        command.args(["bench", "predict"]).arg(&file).arg("--memory-run").arg(self.kept("memory"));
        match drives {
            Drives::Files => command.arg("--profile").arg(self.kept("profile")),
            Drives::Modelled => command.arg("--array").arg(self.site.array(drives)),
        };
        let name = format!("{name}-prediction");
        self.json_of("tier0 bench predict", command, &name, &mut || {})?;
        Ok(self.kept(&name))
    }

    /// The run, with little memory.
    pub(super) fn run_limited(&self, stack: &Stack, law: &str, name: &str) -> Result<PathBuf, BenchError> {
        tell(&format!("{name}: {} s of ramp, {} s measured", self.extent.ramp_s, self.extent.measured_s));
        // The modelled database begins with a checkpoint too: full images of pages in the log depend on when that was.
        stack.cluster.query("checkpoint")?;
        self.group.limit(Some(self.extent.memory_mib << 20))?;
        let mut command = self.load(stack, law, self.extent.ramp_s, self.extent.measured_s);
        command.arg("--json");
        let name = format!("{name}-run");
        let done = self.json_of("tier0 bench run", command, &name, &mut || {});
        self.group.limit(None)?;
        done?;
        Ok(self.kept(&name))
    }

    /// Predicted, measured, error.
    pub(super) fn compare(&self, prediction: &Path, run: &Path) -> Result<Value, BenchError> {
        let mut command = Command::new(&self.program);
        command.args(["bench", "compare"]).arg(prediction).arg(run).arg("--json");
        self.json_of("tier0 bench compare", command, "compared", &mut || {})
    }

    pub(super) fn kept(&self, name: &str) -> PathBuf {
        self.keep.join(format!("{name}.json"))
    }

    fn on_database(&self, verb: &str, stack: &Stack) -> Command {
        let mut command = Command::new(&self.program);
        let dsn = format!("host={} user=postgres dbname=postgres", stack.cluster.socket().display());
        command.args(["bench", verb, "--dsn", &dsn]);
        command
    }

    pub(super) fn load(&self, stack: &Stack, law: &str, ramp_s: u32, seconds: u32) -> Command {
        let mut command = self.on_database("run", stack);
        command.args(["--users", &self.extent.users.to_string(), "--items", law]);
        command.args(["--ramp", &format!("{ramp_s}s"), "--duration", &format!("{seconds}s")]);
        command.arg("--array").arg(&stack.array);
        command
    }

    /// Runs a command to its end and keeps what it prints; `look` is called meanwhile.
    pub(super) fn json_of(
        &self,
        what: &'static str,
        mut command: Command,
        name: &str,
        look: &mut dyn FnMut(),
    ) -> Result<Value, BenchError> {
        let (told, words) = (self.kept(name), self.keep.join(format!("{name}.log")));
        let file = |path: &Path| {
            File::create(path).map_err(BenchError::system(format!("{} cannot be written", path.display())))
        };
        // A redirection by a shell, because a process of `Running` has one log for both.
        let mut shell = Command::new("sh");
        shell
            .args(["-c", "exec \"$@\" > \"$0\""])
            .arg(&told)
            .arg(command.get_program())
            .args(command.get_args());
        command = shell;
        file(&words)?;
        let mut process = Running::start(what, &mut command, &words)?;
        let status = loop {
            if let Some(status) = process.status()? {
                break status;
            }
            self.interrupt.check()?;
            look();
            clock::pause(LOOK);
        };
        let read = |path: &Path| std::fs::read_to_string(path).unwrap_or_default();
        if !status.success() {
            return Err(BenchError::Failed(format!("{what} ended with {status}: {}", read(&words).trim())));
        }
        serde_json::from_str(&read(&told)).map_err(|error| BenchError::Failed(format!("{what}: {error}")))
    }
}

/// Processor time of a transaction: what was spent in a second, between the ramp and the end, by the transactions of a second.
fn transaction_ms(told: &Value, spent: &[(f64, f64)]) -> Option<f64> {
    let (began, ended) = (spent.first()?.0, spent.last()?.0);
    let counted = |at: f64| at >= began + f64::from(MEMORY_RAMP_SECONDS) + 1.0 && at <= ended - 1.0;
    let mut inside = spent.iter().filter(|(at, _)| counted(*at));
    let (first, last) = (inside.next()?, inside.next_back()?);
    let kinds = told["transactions"].as_array()?.iter();
    let count = |kind: &Value, what: &str| kind[what].as_f64().unwrap_or(0.0);
    let done: f64 = kinds.map(|kind| count(kind, "committed") + count(kind, "rolled_back")).sum();
    let per_s = done / told["seconds"].as_f64()?;
    (per_s > 0.0 && last.0 > first.0).then(|| (last.1 - first.1) / (last.0 - first.0) / per_s * 1e3)
}

/// Writes a file whose content no layer takes for zeros.
fn fill(path: &Path, mib: u64) -> Result<(), BenchError> {
    let write = || {
        let mut file = File::create(path)?;
        for piece in 0..mib {
            let byte = (piece % 251 + 1) as u8;
            file.write_all(&vec![byte; 1 << 20])?;
        }
        file.sync_all()
    };
    write().map_err(BenchError::system("the file to profile cannot be written"))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn processor_time_is_counted_after_the_ramp() {
        let told = json!({ "seconds": 20.0, "transactions": [{ "committed": 1900, "rolled_back": 100 }] });
        // Half a second of work in each second after the ramp.
        let spent: Vec<(f64, f64)> =
            (0..=30).map(|s| (f64::from(s), 5.0 + 0.5 * f64::from(s.max(10)))).collect();
        assert_eq!(transaction_ms(&told, &spent), Some(5.0));
        assert_eq!(transaction_ms(&told, &spent[..11]), None);
    }
}
