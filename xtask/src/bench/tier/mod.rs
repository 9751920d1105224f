//! `cargo xtask bench tier`: disks alone, with a read cache on flash, with the same flash as a tier, and with both halves of it, on
//! modelled drives in virtual time.
//!
//! What processors do takes no virtual time, so what is compared is what drives do. The last load, with nothing hot, compares the
//! processor time of the simulation with the tier and without.
//!
//! `--postgres` compares the same under PostgreSQL, on drives that are modelled against the wall clock ([`postgres`]).

mod array;
mod page;
mod postgres;
mod scene;

use std::path::PathBuf;

use clap::Args;

use self::array::Flash;
use self::scene::{Figures, SCENES, Scene};
use super::{judge_at_least, judge_at_most, table, write};
use crate::error::BenchError;
use crate::machine;

/// What to run.
#[derive(Args)]
pub(crate) struct Options {
    /// Simulate a quarter of the time, of the first scene alone; with --postgres a smaller database for a shorter time
    #[arg(long)]
    short: bool,
    /// Only loads whose name contains this
    #[arg(long, value_name = "TEXT")]
    only: Option<String>,
    /// Draw requests and latency over time into this HTML file
    #[arg(long, value_name = "FILE")]
    html: Option<PathBuf>,
    /// Measure PostgreSQL on modelled drives in real time instead, and predict it; needs root
    #[arg(long, conflicts_with_all = ["only", "html"])]
    postgres: bool,
    /// With --postgres: print the result as JSON
    #[arg(long, requires = "postgres")]
    json: bool,
    /// With --postgres: a tier0 that is built already [default: build it]
    #[arg(long, value_name = "PATH", requires = "postgres")]
    tier0: Option<PathBuf>,
    /// With --postgres: where to put the drives' files, sparse ones of 1.5 TB that take up to 5 GiB [default: the directory for
    /// temporary files]
    #[arg(long, value_name = "DIR", requires = "postgres")]
    dir: Option<PathBuf>,
}

/// Of the host's reads, none of which memory answers, those that flash serves ten minutes after the hot set has moved.
const SHARE_LEAST: f64 = 0.85;
/// What the array with a tier brings at least in every interval, by what disks alone bring.
const WORST_LEAST: f64 = 0.95;
/// The 99th percentile while extents move, by that of disks alone.
const P99_MOST: f64 = 1.25;
/// What the tier takes of processor time where nothing is hot.
const PROCESSOR_MOST: f64 = 0.02;

/// A scene with each kind of flash.
struct Compared {
    scene: &'static Scene,
    all: Vec<(Flash, Figures)>,
}

impl Compared {
    fn of(&self, flash: Flash) -> Option<&Figures> {
        self.all.iter().find(|(own, _)| *own == flash).map(|(_, figures)| figures)
    }
}

/// Runs it and prints.
pub(crate) fn run(options: &Options) -> Result<(), BenchError> {
    if options.postgres {
        return postgres::run(&postgres::Options {
            is_short: options.short,
            json: options.json,
            tier0: options.tier0.as_deref(),
            directory: options.dir.as_deref(),
        });
    }
    println!("{}", machine::describe());
    println!("{}", array::sizes());
    let only = options.only.as_deref().unwrap_or_default();
    let wanted = SCENES.iter().filter(|scene| scene.name.contains(only));
    let wanted: Vec<&'static Scene> = wanted.take(if options.short { 1 } else { SCENES.len() }).collect();
    if wanted.is_empty() {
        return Err(BenchError::Failed("no load has such a name".into()));
    }
    let mut compared = Vec::new();
    for scene in wanted {
        let mut all = Vec::new();
        for flash in scene.kinds {
            all.push((*flash, scene.simulate(*flash, options.short)?));
            eprintln!("{}: {} done", scene.name, flash.name());
        }
        compared.push(Compared { scene, all });
    }
    compared.iter().for_each(print);
    if let Some(path) = &options.html {
        write(path, &page::render(&compared)?)?;
        eprintln!("charts: {}", path.display());
    }
    Ok(())
}

fn print(compared: &Compared) {
    println!("\n{}", compared.scene.name);
    let mut rows = table(&["flash", "IOPS", "mean ms", "p99 ms", "hits", "moved", "flash written"]);
    for (flash, figures) in &compared.all {
        rows.add_row([
            flash.name().to_owned(),
            format!("{:.0}", figures.iops),
            format!("{:.2}", figures.mean_ms),
            format!("{:.1}", figures.p99_ms),
            format!("{:.1} %", figures.hits * 100.0),
            format!("{}", figures.moved),
            format!("{:.1} GiB", figures.flash_written_gib),
        ]);
    }
    println!("{}", rows.trim_fmt());
    if compared.scene.is_shifted {
        for (flash, figures) in compared.all.iter().filter(|(flash, _)| *flash != Flash::None) {
            let minutes: Vec<String> =
                figures.hits_by_minute.iter().map(|share| format!("{:.0}", share * 100.0)).collect();
            println!(
                "  {}, hits by minute after the hot set has moved, %: {}",
                flash.name(),
                minutes.join(", ")
            );
        }
    }
    for line in compared.aims() {
        println!("  {line}");
    }
}

impl Compared {
    /// What was aimed at, and what came of it.
    fn aims(&self) -> Vec<String> {
        let (Some(alone), Some(tier)) = (self.of(Flash::None), self.of(Flash::Tier)) else {
            return Vec::new();
        };
        let worst = tier.worst_against(alone);
        let mut lines = vec![format!(
            "tier, worst interval by disks alone: {worst:.2} (>= {WORST_LEAST}: {})",
            judge_at_least(worst, WORST_LEAST)
        )];
        if let Some(ratio) = tier.p99_while_moving_against(alone) {
            lines.push(format!(
                "tier, p99 while extents move by that of disks alone in the same time: {ratio:.2} (<= {P99_MOST}: {})",
                judge_at_most(ratio, P99_MOST)
            ));
        }
        if self.scene.is_shifted {
            let share = tier.hits_by_minute.last().copied().unwrap_or_default();
            lines.push(format!(
                "tier, hits in the tenth minute after the hot set has moved: {:.1} % (>= {:.0} %: {})",
                share * 100.0,
                SHARE_LEAST * 100.0,
                judge_at_least(share, SHARE_LEAST)
            ));
        }
        if self.scene.is_cold() {
            let more = tier.processor_s / alone.processor_s - 1.0;
            if let Some(off) = self.of(Flash::TierOff) {
                let counting = off.processor_s / alone.processor_s - 1.0;
                lines.push(format!("of that, counting and deciding: {:.1} %", counting * 100.0));
            }
            lines.push(format!(
                "tier, processor time beyond that of disks alone: {:.1} % (<= {:.0} %: {})",
                more * 100.0,
                PROCESSOR_MOST * 100.0,
                judge_at_most(more, PROCESSOR_MOST)
            ));
        }
        lines
    }
}
