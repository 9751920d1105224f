//! `cargo xtask bench curves`: whether the caches ever make an array slower, on modelled drives in virtual time.
//!
//! Four loads that caches are known to suffer from, each on the same array with its caches and without, from a cold start on:
//! a burst after an idle time, a scan of everything through a hot set, a cache that is full of what is as good as anything
//! else, and a hot set twice as large as the cache. Virtual time leaves out what processors do, so what is compared is what
//! drives do; what a lookup costs a processor is told by `bench cache`.

mod page;
mod scene;

use std::path::PathBuf;

use clap::Args;

use self::scene::{Curve, HotSet, SCENES, Scene};
use super::{judge_at_least, table, write};
use crate::error::BenchError;
use crate::machine;

/// What to run.
#[derive(Args)]
pub(crate) struct Options {
    /// Simulate a tenth of the time of everything
    #[arg(long)]
    short: bool,
    /// Only loads whose name contains this
    #[arg(long, value_name = "TEXT")]
    only: Option<String>,
    /// Draw the curves into this HTML file
    #[arg(long, value_name = "FILE")]
    html: Option<PathBuf>,
}

/// What the array with caches brings at least in every interval, by what the one without brings.
const LEAST: f64 = 0.95;

/// A load on the array with caches and on the one without.
pub(super) struct Pair {
    pub(super) name: String,
    /// What is counted: the load's requests, or the scan's.
    pub(super) of: &'static str,
    pub(super) with: Curve,
    pub(super) without: Curve,
}

impl Pair {
    /// By interval, what the one with caches brings by what the one without brings. Intervals in which the latter has
    /// nothing to do are left out.
    fn ratios(&self) -> Vec<f64> {
        let both = self.with.points.iter().zip(&self.without.points);
        both.filter(|(_, without)| without.1 > 0.0).map(|(with, without)| with.1 / without.1).collect()
    }

    /// Over the whole run.
    fn ratio(&self) -> f64 {
        self.with.sum() / self.without.sum()
    }
}

/// Runs it and prints.
pub(crate) fn run(options: &Options) -> Result<(), BenchError> {
    println!("{}", machine::describe());
    println!("{}", scene::sizes());
    let mut pairs = Vec::new();
    for (scene, hot) in wanted(options) {
        pairs.extend(scene.run(hot, options.short)?);
        eprintln!("{} done", scene.name(hot));
    }
    if pairs.is_empty() {
        return Err(BenchError::Failed("no load has such a name".into()));
    }
    let mut rows = table(&["load", "of", "without", "with", "ratio", "worst interval", "aim"]);
    for pair in &pairs {
        let worst = pair.ratios().into_iter().fold(f64::INFINITY, f64::min);
        let mean = |curve: &Curve| format!("{:.0}/s", curve.mean());
        rows.add_row([
            pair.name.clone(),
            pair.of.to_owned(),
            mean(&pair.without),
            mean(&pair.with),
            format!("{:.2}", pair.ratio()),
            format!("{worst:.2}"),
            format!(">= {LEAST}: {}", judge_at_least(worst, LEAST)),
        ]);
    }
    println!("\n{}", rows.trim_fmt());
    if let Some(path) = &options.html {
        write(path, &page::render(&pairs)?)?;
        eprintln!("curves: {}", path.display());
    }
    Ok(())
}

fn wanted(options: &Options) -> Vec<(&'static Scene, HotSet)> {
    let all = SCENES.iter().flat_map(|scene| scene.hot_sets().iter().map(move |hot| (scene, *hot)));
    let only = options.only.as_deref().unwrap_or_default();
    all.filter(|(scene, hot)| scene.name(*hot).contains(only)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The deterministic part of it that is quick: the load for which caches bring nothing.
    #[test]
    fn a_full_cache_costs_nothing() {
        let scene = SCENES.iter().find(|scene| scene.is_uniform()).expect("there is one");
        for pair in scene.run(HotSet::Contiguous, true).expect("it can be simulated") {
            assert!(pair.ratio() >= LEAST, "{}: {}", pair.name, pair.ratio());
            assert!(pair.with.points != pair.without.points, "the caches were not there");
        }
    }
}
