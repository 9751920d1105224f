//! `cargo xtask bench databases`: order entry on PostgreSQL, each run predicted before it is done, on plain files and on modelled
//! disks.
//!
//! One database is loaded on an array of four files and measured over two storages: the files as they are, and the same files
//! behind disk models in real time. Before each run `tier0 bench predict` seals its prediction; afterwards `tier0 bench compare`
//! tells the error. What is fitted is measured without the run: processor time and log of a transaction by a run in memory, and of
//! the plain files a profile (`tier0 lab profile`) on the mounted file system.
//!
//! | file | concept |
//! |---|---|
//! | `site` | the array, its file system, PostgreSQL in a control group |
//! | `steps` | the verbs of tier0 that are run on it |
//! | `circle` | `tier0 advise`: sample, plan, place, run again, check |
//! | `host` | processor time of an I/O, and what memory is left for the page cache |
//!
//! It is no benchmark of PostgreSQL: load generator, database, nbdfuse, the array and its models share the machine.

mod circle;
mod host;
mod site;
mod steps;

use std::path::PathBuf;

use clap::Args;
use serde_json::{Value, json};
use tier0_programs::memory::MemoryGroup;
use tier0_programs::{mount, postgres, tools};

use self::circle::Circle;
use self::host::{Host, ProcessorGroup};
use self::site::{Drives, Shape, Site, Stack};
use super::hybrid::load_average;
use super::table;
use crate::error::BenchError;
use crate::interrupt::Interrupt;
use crate::machine;
use crate::server::build_tier0;

/// What to run.
#[derive(Args)]
pub(crate) struct Options {
    /// A small database and short runs, about ten minutes in all
    #[arg(long)]
    short: bool,
    /// Only parts whose name contains this: plain files, modelled disks, circle. A short run has no circle unless it is named
    #[arg(long, value_name = "TEXT", default_value = "")]
    only: String,
    /// Also write all figures to this JSON file
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
    /// Keep predictions and reports of runs in this directory
    #[arg(long, value_name = "DIR")]
    keep: Option<PathBuf>,
    /// A tier0 that is built already [default: build it]
    #[arg(long, value_name = "PATH")]
    tier0: Option<PathBuf>,
    /// Where to put the drives' files, sparse ones of 600 GB, of the circle 1.5 TB, that take up to 10 GiB; not a tmpfs [default: the build's directory]
    #[arg(long, value_name = "DIR")]
    dir: Option<PathBuf>,
}

/// What differs between a whole run and a short one.
pub(super) struct Extent {
    pub(super) warehouses: u32,
    pub(super) users: u32,
    /// `shared_buffers`.
    pub(super) buffers_mib: u64,
    /// All memory of PostgreSQL, the page cache included.
    pub(super) memory_mib: u64,
    pub(super) memory_run_s: u32,
    pub(super) ramp_s: u32,
    pub(super) measured_s: u32,
    /// The file that is profiled.
    pub(super) profile_mib: u64,
    /// Ramp and length of each run of the circle.
    pub(super) circle_ramp_s: u32,
    pub(super) circle_s: u32,
}

impl Extent {
    /// The database, about 110 MB for each warehouse, is about four times the memory for its pages.
    fn of(is_short: bool) -> Extent {
        match is_short {
            true => Extent {
                warehouses: 2,
                users: 8,
                buffers_mib: 32,
                memory_mib: 96,
                memory_run_s: 20,
                ramp_s: 30,
                measured_s: 40,
                profile_mib: 512,
                circle_ramp_s: 20,
                circle_s: 50,
            },
            false => Extent {
                warehouses: 10,
                users: 16,
                buffers_mib: 160,
                memory_mib: 360,
                memory_run_s: 60,
                ramp_s: 150,
                measured_s: 240,
                profile_mib: 2048,
                circle_ramp_s: 60,
                circle_s: 150,
            },
        }
    }
}

/// Laws of items, as `tier0 bench run --items` has them.
const LAWS: [&str; 2] = ["nurand", "uniform"];
/// Figures of the table.
const SHOWN: [&str; 9] = [
    "transactions per second",
    "NOPM",
    "response p50, ms",
    "response p95, ms",
    "database reads per transaction, blocks",
    "array reads per transaction",
    "database writes per transaction, blocks",
    "array writes per transaction",
    "WAL per transaction, bytes",
];

/// A run beside its prediction.
struct Judged {
    storage: &'static str,
    law: &'static str,
    /// What `tier0 bench compare --json` tells.
    told: Value,
}

/// Everything that the steps need.
struct Bench {
    pub(super) program: PathBuf,
    pub(super) extent: Extent,
    pub(super) site: Site,
    pub(super) keep: PathBuf,
    pub(super) group: MemoryGroup,
    pub(super) processors: ProcessorGroup,
    pub(super) interrupt: Interrupt,
}

/// Runs it and prints.
pub(crate) fn run(options: &Options) -> Result<(), BenchError> {
    tools::need(&[&mount::TOOLS[..], &postgres::TOOLS].concat())?;
    if !rustix::process::geteuid().is_root() {
        return Err(BenchError::Failed("mounting a volume needs root; run it as root".into()));
    }
    let interrupt = Interrupt::catch()?;
    let program = match &options.tier0 {
        Some(program) => std::fs::canonicalize(program).map_err(BenchError::system("--tier0"))?,
        None => build_tier0()?,
    };
    let extent = Extent::of(options.short);
    let site = Site::create(&program, options.dir.as_deref(), extent.warehouses, Shape::Disks)?;
    let keep = match &options.keep {
        Some(keep) => keep.clone(),
        None => site.path("kept"),
    };
    std::fs::create_dir_all(&keep)
        .map_err(BenchError::system(format!("{} cannot be made", keep.display())))?;
    let group = MemoryGroup::new()?;
    if !group.is_effective() {
        return Err(BenchError::Failed(
            "this system has no control groups of memory to limit the page cache".into(),
        ));
    }
    let processors = ProcessorGroup::enter()?;
    let bench = Bench { program, extent, site, keep, group, processors, interrupt };
    let done = bench.run(options);
    // Ctrl-C ends what the terminal's other processes do too, and their words would say nothing.
    bench.interrupt.check()?;
    let done = done?;
    bench.print(&done);
    if let Some(path) = &options.json {
        super::write(path, &format!("{:#}\n", bench.json(&done)))?;
    }
    Ok(())
}

/// What was measured.
#[derive(Default)]
struct Done {
    host: Option<Host>,
    judged: Vec<Judged>,
    circle: Option<Circle>,
}

/// The name of the circle among the parts.
const CIRCLE: &str = "circle";

impl Bench {
    fn run(&self, options: &Options) -> Result<Done, BenchError> {
        let only = options.only.as_str();
        let is_wanted = |drives: Drives| drives.name().contains(only);
        let mut done = match [Drives::Files, Drives::Modelled].into_iter().any(is_wanted) {
            true => self.run_predicted(&is_wanted)?,
            false => Done::default(),
        };
        let is_named = !only.is_empty() && CIRCLE.contains(only);
        if is_named || only.is_empty() && !options.short {
            done.circle = Some(self.circle(options.dir.as_deref())?);
        }
        if done.host.is_none() && done.circle.is_none() {
            return Err(BenchError::Failed(format!(
                "no part has {only:?} in its name; use plain files, modelled disks or {CIRCLE}"
            )));
        }
        Ok(done)
    }

    /// Runs beside their predictions.
    fn run_predicted(&self, is_wanted: &dyn Fn(Drives) -> bool) -> Result<Done, BenchError> {
        let mut judged = Vec::new();
        let stack = self.start(Drives::Files, true)?;
        self.prepare(&stack)?;
        let mut host = self.run_in_memory(&stack)?;
        host.io_us = self.profile(&stack)?;
        tell(&format!("measured without the run: {host}"));
        for law in LAWS.into_iter().filter(|_| is_wanted(Drives::Files)) {
            judged.push(self.run_and_compare(&stack, &host, Drives::Files, law)?);
        }
        stack.stop()?;
        if !is_wanted(Drives::Modelled) {
            return Ok(Done { host: Some(host), judged, circle: None });
        }
        let stack = self.start(Drives::Modelled, false)?;
        for law in LAWS {
            judged.push(self.run_and_compare(&stack, &host, Drives::Modelled, law)?);
        }
        stack.kill()?;
        Ok(Done { host: Some(host), judged, circle: None })
    }

    /// The array, the volume mounted, the database.
    fn start(&self, drives: Drives, is_new: bool) -> Result<Stack, BenchError> {
        tell(&format!("{}: starting array, file system and PostgreSQL", drives.name()));
        Stack::start(&self.program, &self.site, &self.group, &self.extent, drives, is_new)
    }

    /// Seals a prediction, then does the run and compares.
    fn run_and_compare(
        &self,
        stack: &Stack,
        host: &Host,
        drives: Drives,
        law: &'static str,
    ) -> Result<Judged, BenchError> {
        let name = format!("{}-{law}", drives.name().replace(' ', "-"));
        let prediction = self.predict(host, drives, law, &name)?;
        let run = self.run_limited(stack, law, &name)?;
        let told = self.compare(&prediction, &run)?;
        for name in ["transactions per second", "response p95, ms"] {
            tell(&format!("{} {law}: {name} {}", drives.name(), in_words(&told, name)));
        }
        Ok(Judged { storage: drives.name(), law, told })
    }

    fn describe(&self, host: Option<&Host>) -> String {
        let Extent { warehouses, users, buffers_mib, memory_mib, ramp_s, measured_s, .. } = &self.extent;
        format!(
            "PostgreSQL, order entry with {warehouses} warehouses and {users} users without think time; shared_buffers {buffers_mib} \
             MiB, all of PostgreSQL {memory_mib} MiB; {}; {}",
            site::describe(),
            match host {
                Some(host) =>
                    format!("{ramp_s} s of ramp, {measured_s} s measured\nmeasured without the run: {host}"),
                None =>
                    format!("{} s of ramp, {} s measured", self.extent.circle_ramp_s, self.extent.circle_s),
            }
        )
    }

    fn print(&self, done: &Done) {
        println!("{}, load average {}", machine::describe(), load_average());
        println!("{}", self.describe(done.host.as_ref()));
        for one in &done.judged {
            println!("\n{}, items {}", one.storage, one.law);
            let mut rows = table(&["figure", "predicted", "measured", "error"]);
            for name in SHOWN {
                let Some(figure) = figure_of(&one.told, name) else { continue };
                rows.add_row([
                    name.to_owned(),
                    number(&figure["predicted"]),
                    number(&figure["measured"]),
                    figure["error_percent"].as_f64().map_or("-".to_owned(), |error| format!("{error:+.0} %")),
                ]);
            }
            println!("{}", rows.trim_fmt());
        }
        if let Some(circle) = &done.circle {
            circle.print();
        }
    }

    fn json(&self, done: &Done) -> Value {
        let rows: Vec<Value> = done
            .judged
            .iter()
            .map(|one| json!({ "storage": one.storage, "items": one.law, "compared": one.told }))
            .collect();
        json!({
            "machine": machine::describe(),
            "load_average": load_average(),
            "setup": self.describe(done.host.as_ref()),
            "runs": rows,
            "circle": done.circle.as_ref().map(Circle::json),
        })
    }
}

pub(super) fn tell(what: &str) {
    eprintln!("{what}");
}

fn figure_of<'a>(told: &'a Value, name: &str) -> Option<&'a Value> {
    told["figures"].as_array()?.iter().find(|figure| figure["name"] == name)
}

fn in_words(told: &Value, name: &str) -> String {
    let Some(figure) = figure_of(told, name) else { return "not compared".to_owned() };
    format!("predicted {}, measured {}", number(&figure["predicted"]), number(&figure["measured"]))
}

/// With three digits.
fn number(value: &Value) -> String {
    match value.as_f64() {
        None => "not measured".to_owned(),
        Some(number) if number.abs() < 10.0 => format!("{number:.2}"),
        Some(number) if number.abs() < 100.0 => format!("{number:.1}"),
        Some(number) => format!("{number:.0}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_are_found_by_name() {
        let told = json!({ "figures": [{ "name": "NOPM", "predicted": 1234.4, "measured": null }] });
        assert_eq!(in_words(&told, "NOPM"), "predicted 1234, measured not measured");
        assert_eq!(in_words(&told, "other"), "not compared");
        assert_eq!([1.234, 12.34].map(|one| number(&json!(one))), ["1.23", "12.3"]);
    }
}
