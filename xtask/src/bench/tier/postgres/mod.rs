//! `cargo xtask bench tier --postgres`: PostgreSQL on disks only, with a read cache on flash, with a tier, and after the array was
//! killed; beside each what virtual time predicts.
//!
//! PostgreSQL runs on ext4 on a loop device (direct I/O) on nbdfuse on the volume, whose drives are modelled against the wall
//! clock. It has little memory, by a control group, so that reads reach the array.
//!
//! **The prediction.** The twin, the same array file in virtual time, knows nothing of transactions. It gets the I/O that the array
//! measured under *disks only*: the size of reads, how they are spread, how many writes reach the sets for each read, and how long
//! a client neither reads nor waits for a commit between two of them. For the other kinds of flash it predicts reads per second
//! and their latency, and transactions by the reads that one took on disks only. The prediction for disks only shares its think time
//! with the measurement, so its latency alone is a prediction.
//!
//! What it does not do: it is no benchmark of PostgreSQL. nbdfuse, the loop device and the clients share the cores with the models.

mod array;
mod database;
mod twin;

use std::path::{Path, PathBuf};

use rustix::process::Signal;
use serde_json::{Value, json};
use tempfile::TempDir;
use tier0_torture::TortureError;
use tier0_torture::memory::MemoryGroup;
use tier0_torture::mount::{self, Mounted};
use tier0_torture::postgres::{self, Cluster, Postmaster};
use tier0_torture::process::Running;
use tier0_torture::tools;

use self::array::{Site, Sizes, Use};
use self::database::Transactions;
use self::twin::{Prediction, Profile};
use super::super::hybrid::load_average;
use super::super::table;
use crate::error::BenchError;
use crate::interrupt::Interrupt;
use crate::machine;
use crate::server::{Server, build_tier0};

/// Sessions of pgbench.
const CLIENTS: u32 = 8;
/// What a restart is judged by.
const AFTER_CRASH_S: f64 = 5.0;
/// How long the load runs that the crash ends.
const BEFORE_CRASH_S: u32 = 5;
/// What the seconds after a crash bring at least, by what was before.
const AFTER_CRASH_LEAST: f64 = 0.95;

/// What differs between a whole run and a trial.
pub(super) struct Extent {
    sizes: Sizes,
    warm_s: u32,
    measured_s: u32,
}

impl Extent {
    fn of(is_short: bool) -> Extent {
        match is_short {
            true => Extent { sizes: Sizes::SHORT, warm_s: 25, measured_s: 15 },
            false => Extent { sizes: Sizes::WHOLE, warm_s: 120, measured_s: 60 },
        }
    }
}

/// How to run it.
pub(super) struct Options<'a> {
    pub(super) is_short: bool,
    pub(super) json: bool,
    pub(super) tier0: Option<&'a Path>,
    pub(super) directory: Option<&'a Path>,
}

/// What the array measured while the database was.
#[derive(Clone, Debug)]
struct Io {
    reads_per_s: f64,
    read_ms_mean: f64,
    read_ms_p99: f64,
    read_bytes_mean: f64,
    writes_per_s: f64,
    write_ms_mean: f64,
    flushes_per_s: f64,
    flush_ms_mean: f64,
    /// Of the volume's reads, those that memory answered.
    memory_share: f64,
    /// Of the drives' reads, those of flash.
    flash_share: f64,
    /// What went from the write cache to the sets.
    destaged_bytes_per_s: f64,
}

/// A kind of flash, measured.
struct Measured {
    name: &'static str,
    transactions: Transactions,
    io: Io,
}

/// Runs it and prints.
pub(super) fn run(options: &Options<'_>) -> Result<(), BenchError> {
    let torture = |error: TortureError| BenchError::Failed(error.to_string());
    for (tool, package) in [&mount::TOOLS[..], &postgres::TOOLS].concat() {
        if tools::find(tool).is_none() {
            return Err(BenchError::Skipped { tool, package });
        }
    }
    if !rustix::process::geteuid().is_root() {
        return Err(BenchError::Failed("mounting a volume needs root; run it as root".into()));
    }
    let interrupt = Interrupt::catch()?;
    let program = match options.tier0 {
        Some(program) => program.to_owned(),
        None => build_tier0()?,
    };
    let extent = Extent::of(options.is_short);
    let directory = match options.directory {
        Some(place) => tempfile::tempdir_in(place),
        None => tempfile::tempdir(),
    };
    let directory = directory
        .map_err(BenchError::system("no directory for the drives can be made; name one with --dir"))?;
    open_to_all(directory.path())?;
    let group = MemoryGroup::new().map_err(torture)?;
    group.limit(Some(u64::from(extent.sizes.group_mib()) << 20)).map_err(torture)?;
    let bench = Bench { program, extent, directory, group, interrupt };
    let mut all = Vec::new();
    let mut profile = None;
    for kind in [Use::Nothing, Use::Cache, Use::Tier] {
        let measured = bench.measure(kind, &mut all, &mut profile);
        // Ctrl-C ends what the terminal's other processes do too, and their words would say nothing.
        bench.interrupt.check()?;
        measured.map_err(|error| match error {
            Failed::Torture(error) => torture(error),
            Failed::Bench(error) => error,
        })?;
    }
    let profile: Profile = profile.expect("disks only are measured");
    let mut predictions = Vec::new();
    for kind in [Use::Nothing, Use::Cache, Use::Tier] {
        predictions.push(twin::predict(
            &bench.program,
            bench.directory.path(),
            kind,
            &bench.extent,
            &profile,
        )?);
        eprintln!("{}: predicted", kind.name());
        bench.interrupt.check()?;
    }
    // The twin is not killed; it takes the tier to be where it was.
    predictions.push(predictions[2].clone());
    if options.json {
        println!("{}", bench.json(&all, &predictions, &profile));
    } else {
        bench.print(&all, &predictions, &profile);
    }
    Ok(())
}

/// PostgreSQL's user has to reach its socket and the mount point.
fn open_to_all(directory: &Path) -> Result<(), BenchError> {
    use std::os::unix::fs::PermissionsExt as _;
    std::fs::set_permissions(directory, std::fs::Permissions::from_mode(0o755))
        .map_err(BenchError::system(format!("{} cannot be opened to others", directory.display())))
}

/// Errors of both worlds.
enum Failed {
    Torture(TortureError),
    Bench(BenchError),
}

impl From<TortureError> for Failed {
    fn from(error: TortureError) -> Failed {
        Failed::Torture(error)
    }
}

impl From<BenchError> for Failed {
    fn from(error: BenchError) -> Failed {
        Failed::Bench(error)
    }
}

/// What an array is started for.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Drives {
    /// For a new file system and database, at the speed of the drives' files.
    New,
    /// For the measurement, behind the models.
    Filled,
}

struct Bench {
    program: PathBuf,
    extent: Extent,
    // After the group, which a process that still runs would hold.
    group: MemoryGroup,
    directory: TempDir,
    interrupt: Interrupt,
}

/// All that runs for a database. Dropping it ends it, the database first.
struct Stack {
    postmaster: Postmaster,
    mounted: Mounted,
    server: Server,
}

impl Stack {
    /// Ends it so that nothing is lost.
    fn stop(self) -> Result<(), Failed> {
        self.postmaster.stop()?;
        self.mounted.unmount()?;
        // All is in the write log or in its slots: nothing is lost by an end at once.
        drop(self.server);
        Ok(())
    }

    /// Ends it at once, the array first: in order, slow disks would have the last checkpoint take minutes.
    fn kill(self) -> Result<(), Failed> {
        drop(self.server);
        self.postmaster.kill()?;
        Ok(self.mounted.abandon()?)
    }
}

impl Bench {
    /// Fills an array, warms it, measures it, and kills it where it has a tier.
    fn measure(
        &self,
        kind: Use,
        all: &mut Vec<Measured>,
        profile: &mut Option<Profile>,
    ) -> Result<(), Failed> {
        let Extent { ref sizes, warm_s, measured_s } = self.extent;
        let site = Site::create(&self.program, self.directory.path(), kind, sizes)?;
        let cluster = Cluster::of(&site.path("mnt"), site.directory())?;
        self.tell(kind, "filling");
        let filling = self.start(&site, &cluster, Drives::New)?;
        database::fill(&cluster, sizes.scale)?;
        cluster.query("checkpoint")?;
        filling.stop()?;
        self.interrupt.check()?;
        let mut stack = self.start(&site, &cluster, Drives::Filled)?;
        if kind == Use::Tier {
            site.limit_tier(sizes)?;
        }
        if kind == Use::Nothing {
            site.plan()?;
        }
        self.tell(kind, &format!("warming up, {warm_s} s"));
        database::run(&cluster, &site, sizes, warm_s, &self.interrupt)?;
        self.tell(kind, &format!("measuring, {measured_s} s"));
        let (transactions, io) = self.observe(&cluster, &site, measured_s)?;
        self.tell(kind, &format!("{transactions}"));
        if kind == Use::Nothing {
            *profile = Some(Profile::of(&site, sizes, &transactions, &io)?);
        }
        all.push(Measured { name: kind.name(), transactions, io });
        if kind == Use::Tier {
            self.tell(kind, "killing the array under load");
            stack = self.kill(&site, &cluster, stack)?;
            let (transactions, io) = self.observe(&cluster, &site, measured_s)?;
            self.tell(kind, &format!("after kill -9: {transactions}"));
            all.push(Measured { name: "+ tier, after kill -9", transactions, io });
        }
        stack.kill()?;
        site.remove();
        Ok(())
    }

    fn tell(&self, kind: Use, what: &str) {
        eprintln!("{}: {what}", kind.name());
    }

    /// The array, the volume mounted, the database.
    fn start(&self, site: &Site, cluster: &Cluster, drives: Drives) -> Result<Stack, Failed> {
        let is_new = drives == Drives::New;
        let server = site.serve(!is_new)?;
        let mounted = Mounted::past_the_page_cache(site.directory(), &server.uri(), is_new)?;
        if is_new {
            cluster.create()?;
        }
        let settings = self.extent.sizes.settings();
        let postmaster = self.group.holding(|| cluster.start_with(&settings))?;
        Ok(Stack { postmaster, mounted, server })
    }

    /// Measures transactions, and beside them what the array counts.
    fn observe(&self, cluster: &Cluster, site: &Site, seconds: u32) -> Result<(Transactions, Io), Failed> {
        let counted = site.count(seconds)?;
        let transactions = database::run(cluster, site, &self.extent.sizes, seconds, &self.interrupt)?;
        Ok((transactions, counted.finish()?))
    }

    /// Kills the array under the load, and starts everything again.
    fn kill(&self, site: &Site, cluster: &Cluster, stack: Stack) -> Result<Stack, Failed> {
        let mut load = database::command(cluster, site, &self.extent.sizes, 600);
        let load = Running::start("pgbench", &mut load, &site.path("killed.log"))?;
        database::wait(BEFORE_CRASH_S, &self.interrupt)?;
        let killed = stack.kill();
        load.signal(Signal::KILL);
        drop(load);
        killed?;
        self.start(site, cluster, Drives::Filled)
    }

    fn describe(&self) -> String {
        let Extent { sizes, warm_s, measured_s } = &self.extent;
        format!(
            "PostgreSQL, pgbench with {CLIENTS} clients: four reads and one update of an account, {} % of them in {} % of the \
             accounts; a database of {} MiB (scale {}); shared_buffers {} MiB, array {} MiB of memory, all of PostgreSQL with its \
             page cache {}; {}; {} MiB of flash as cache or tier; warm after {warm_s} s, measured for {measured_s} s",
            array::HOT_ACCESSES,
            array::HOT_ACCOUNTS,
            sizes.database_mib(),
            sizes.scale,
            sizes.buffers_mib,
            sizes.memory_mib,
            database::describe(&self.group, self.extent.sizes.group_mib()),
            array::drives(),
            sizes.flash_mib,
        )
    }

    fn print(&self, all: &[Measured], predictions: &[Prediction], profile: &Profile) {
        println!("{}, load average {}", machine::describe(), load_average());
        println!("{}", self.describe());
        let mut rows = table(&[
            "flash",
            "tps",
            "p99 ms",
            "reads/s",
            "mean ms",
            "p99 ms",
            "writes/s",
            "mean ms",
            "flush ms",
            "on flash",
            "twin: tps",
            "error",
            "reads/s",
            "error",
            "mean ms",
            "error",
        ]);
        for (one, twin) in all.iter().zip(predictions) {
            let Measured { name, transactions, io } = one;
            let error =
                |predicted: f64, measured: f64| format!("{:+.0} %", (predicted / measured - 1.0) * 100.0);
            rows.add_row([
                (*name).to_owned(),
                format!("{:.0}", transactions.per_s()),
                format!("{:.0}", transactions.p99_ms()),
                format!("{:.0}", io.reads_per_s),
                format!("{:.2}", io.read_ms_mean),
                format!("{:.1}", io.read_ms_p99),
                format!("{:.0}", io.writes_per_s),
                format!("{:.2}", io.write_ms_mean),
                format!("{:.1}", io.flush_ms_mean),
                format!("{:.0} %", io.flash_share * 100.0),
                format!("{:.0}", twin.tps(profile)),
                error(twin.tps(profile), transactions.per_s()),
                format!("{:.0}", twin.reads_per_s),
                error(twin.reads_per_s, io.reads_per_s),
                format!("{:.2}", twin.read_ms_mean),
                error(twin.read_ms_mean, io.read_ms_mean),
            ]);
        }
        println!("\n{}", rows.trim_fmt());
        println!("\nthe twin's load, from what the array measured on disks only: {profile}");
        if let Some((first, ratio)) = after_crash(all) {
            let judged = super::super::judge_at_least(ratio, AFTER_CRASH_LEAST);
            println!(
                "tier, the first {AFTER_CRASH_S:.0} s after kill -9 by the mean before: {first:.0} tps, {ratio:.2} (>= \
                 {AFTER_CRASH_LEAST}: {judged})"
            );
        }
    }

    fn json(&self, all: &[Measured], predictions: &[Prediction], profile: &Profile) -> Value {
        let rows = all.iter().zip(predictions).map(|(one, twin)| {
            let Measured { name, transactions, io } = one;
            json!({
                "flash": name,
                "tps": transactions.per_s(),
                "transaction_ms_p99": transactions.p99_ms(),
                "reads_per_s": io.reads_per_s,
                "read_ms_mean": io.read_ms_mean,
                "read_ms_p99": io.read_ms_p99,
                "writes_per_s": io.writes_per_s,
                "write_ms_mean": io.write_ms_mean,
                "flushes_per_s": io.flushes_per_s,
                "flush_ms_mean": io.flush_ms_mean,
                "destaged_bytes_per_s": io.destaged_bytes_per_s,
                "reads_from_memory_share": io.memory_share,
                "drive_reads_on_flash_share": io.flash_share,
                "predicted": {
                    "tps": twin.tps(profile),
                    "reads_per_s": twin.reads_per_s,
                    "read_ms_mean": twin.read_ms_mean,
                },
            })
        });
        json!({
            "machine": machine::describe(),
            "load_average": load_average(),
            "setup": self.describe(),
            "profile": profile.to_string(),
            "rows": rows.collect::<Vec<_>>(),
            "first_seconds_after_kill": after_crash(all).map(|(tps, ratio)| json!({ "tps": tps, "ratio": ratio })),
        })
    }
}

/// Transactions per second of the first seconds after the crash, and by the mean before it.
fn after_crash(all: &[Measured]) -> Option<(f64, f64)> {
    let [.., before, after] = all else { return None };
    let first = after.transactions.per_s_in_first(AFTER_CRASH_S);
    Some((first, first / before.transactions.per_s()))
}
