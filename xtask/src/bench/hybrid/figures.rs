//! Figures of the runs, and the tables of them.

use std::fmt;

use serde_json::Value;

use super::super::{judge_at_least, table};
use super::backing::Counts;
use super::{Load, Phase, Stack};
use crate::error::BenchError;
use crate::spread::Spread;

/// tier0 by the better of the two others, at least.
const AIM: f64 = 1.3;
/// IOPS above this part of a stack's ceiling say more of the emulation than of the drives.
const BOUND_PART: f64 = 0.5;

/// What one measurement brought.
#[derive(Clone, Copy, Debug)]
pub(super) struct Figures {
    reads: f64,
    writes: f64,
    seconds: f64,
    p99_ms: f64,
    /// Of the reads: those that the disks had no part in.
    hit_share: f64,
    counts: Counts,
}

impl Figures {
    /// Reads them from fio's JSON, the words of the guest's status before and after, and the drives' counts.
    pub(super) fn of(
        stack: Stack,
        fio: &str,
        status: &[String],
        counts: Counts,
    ) -> Result<Figures, BenchError> {
        let failed = || BenchError::Failed(format!("unexpected words from fio in the guest: {fio}"));
        let json: Value =
            serde_json::from_str(&fio[fio.find('{').ok_or_else(failed)?..]).map_err(|_| failed())?;
        let job = &json["jobs"][0];
        let ios = |op: &str| job[op]["total_ios"].as_f64().ok_or_else(failed);
        let (reads, writes) = (ios("read")?, ios("write")?);
        let hit_share = match stack {
            Stack::Tier0 | Stack::Tier0Tier => counts.hits / counts.lookups.max(1.0),
            Stack::DmCache => dm_cache_hits(status).ok_or_else(|| {
                BenchError::Failed(format!("unexpected status of dm-cache: {}", status.join(" | ")))
            })?,
            // What bcache counts of itself comes seconds late. It reads from the disks what it does not have, and that alone.
            Stack::Bcache | Stack::Disks => (1.0 - counts.disk_reads / reads).max(0.0),
        };
        Ok(Figures {
            reads,
            writes,
            seconds: job["read"]["runtime"].as_f64().ok_or_else(failed)? / 1e3,
            p99_ms: job["read"]["clat_ns"]["percentile"]["99.000000"].as_f64().unwrap_or_default() / 1e6,
            hit_share,
            counts,
        })
    }

    pub(super) fn iops(&self) -> f64 {
        (self.reads + self.writes) / self.seconds
    }

    fn disk_ios(&self) -> f64 {
        (self.counts.disk_reads + self.counts.disk_writes) / (self.reads + self.writes)
    }

    fn of_ios(&self, count: f64) -> f64 {
        count / (self.reads + self.writes)
    }
}

impl fmt::Display for Figures {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{:.0} % hits, {:.3} disk I/Os per host I/O ({:.3} reads, {:.3} writes), {:.2} of the SSD, {:.0} IOPS, reads p99 {:.0} ms",
            self.hit_share * 100.0,
            self.disk_ios(),
            self.of_ios(self.counts.disk_reads),
            self.of_ios(self.counts.disk_writes),
            self.of_ios(self.counts.ssd_reads + self.counts.ssd_writes),
            self.iops(),
            self.p99_ms
        )
    }
}

/// Hits of reads by what `dmsetup status` said before and after: "status before 0 LENGTH cache BLOCK USED/ALL BLOCK USED/ALL
/// READ_HITS READ_MISSES …" (Linux, Documentation/admin-guide/device-mapper/cache.rst).
fn dm_cache_hits(status: &[String]) -> Option<f64> {
    let counts = |word: &str| {
        let line = status.iter().rev().find_map(|line| line.strip_prefix(word))?;
        let words: Vec<&str> = line.split_whitespace().collect();
        Some((words.get(7)?.parse::<f64>().ok()?, words.get(8)?.parse::<f64>().ok()?))
    };
    let (before, after) = (counts("status before ")?, counts("status after ")?);
    let (hits, misses) = (after.0 - before.0, after.1 - before.1);
    Some(hits / (hits + misses).max(1.0))
}

/// All that was measured.
#[derive(Default)]
pub(super) struct Results {
    pub(super) ceilings: Vec<(Stack, Figures)>,
    measured: Vec<(Load, Phase, Stack, Figures)>,
}

impl Results {
    pub(super) fn add(&mut self, load: Load, phase: Phase, stack: Stack, figures: Figures) {
        self.measured.push((load, phase, stack, figures));
    }

    /// Prints the tables.
    pub(super) fn print(&self) {
        let mut all = table(&[
            "load",
            "phase",
            "stack",
            "hits %",
            "disk I/Os per host I/O",
            "of them reads",
            "SSD I/Os per host I/O",
            "IOPS",
            "of its ceiling",
            "reads p99 ms",
        ]);
        let mut ratios = table(&[
            "load",
            "phase",
            "stack",
            "disk I/Os: better other by tier0",
            "IOPS: tier0 by better other",
        ]);
        for load in [Load::Zipf, Load::HotCold] {
            for phase in Phase::ALL {
                for &(stack, ceiling) in &self.ceilings {
                    let runs = self.runs(load, phase, stack);
                    if !runs.is_empty() {
                        all.add_row(row(load, phase, stack, &runs, ceiling.iops()));
                    }
                }
                for own in [Stack::Tier0, Stack::Tier0Tier] {
                    let Some((disk_ios, iops)) = self.ratios(load, phase, own) else { continue };
                    let judged =
                        |spread: &Spread| format!("{spread:.2}: {}", judge_at_least(spread.median(), AIM));
                    ratios.add_row([
                        load.to_string(),
                        phase.to_string(),
                        own.title().to_owned(),
                        judged(&disk_ios),
                        judged(&iops),
                    ]);
                }
            }
        }
        println!("\n{}", all.trim_fmt());
        let ceilings: Vec<String> = self
            .ceilings
            .iter()
            .map(|(stack, figures)| format!("{} {:.0}", stack.title(), figures.iops()))
            .collect();
        println!("\nceilings, IOPS on memory: {}", ceilings.join(", "));
        println!("IOPS above {BOUND_PART} of the ceiling (!) are bounded by emulation, not by the drives");
        if !ratios.is_empty() {
            println!("\n{}\naimed at: >= {AIM} each", ratios.trim_fmt());
        }
    }

    fn runs(&self, load: Load, phase: Phase, stack: Stack) -> Vec<Figures> {
        let of = self.measured.iter().filter(|(l, p, s, _)| (*l, *p, *s) == (load, phase, stack));
        of.map(|(.., figures)| *figures).collect()
    }

    /// tier0 beside the better of the others, run by run: disk I/Os saved, and IOPS.
    fn ratios(&self, load: Load, phase: Phase, own: Stack) -> Option<(Spread, Spread)> {
        let own = self.runs(load, phase, own);
        let others = [Stack::Bcache, Stack::DmCache].map(|stack| self.runs(load, phase, stack));
        let runs = own.len().min(others.iter().map(Vec::len).max()?);
        if runs == 0 {
            return None;
        }
        let of_others = |run: usize| others.iter().filter_map(move |runs| runs.get(run));
        let disk_ios = (0..runs).map(|run| {
            of_others(run).map(Figures::disk_ios).fold(f64::INFINITY, f64::min) / own[run].disk_ios()
        });
        let iops =
            (0..runs).map(|run| own[run].iops() / of_others(run).map(Figures::iops).fold(0.0, f64::max));
        Some((Spread::of(disk_ios), Spread::of(iops)))
    }
}

fn row(load: Load, phase: Phase, stack: Stack, runs: &[Figures], ceiling: f64) -> Vec<String> {
    let spread = |figure: &dyn Fn(&Figures) -> f64| Spread::of(runs.iter().map(figure));
    let of_ceiling = spread(&Figures::iops).median() / ceiling;
    vec![
        load.to_string(),
        phase.to_string(),
        stack.title().to_owned(),
        format!("{:.0}", spread(&|figures| figures.hit_share * 100.0)),
        format!("{:.2}", spread(&Figures::disk_ios)),
        format!("{:.2}", spread(&|figures| figures.of_ios(figures.counts.disk_reads)).median()),
        format!(
            "{:.2}",
            spread(&|figures| figures.of_ios(figures.counts.ssd_reads + figures.counts.ssd_writes)).median()
        ),
        format!("{:.0}", spread(&Figures::iops)),
        format!("{of_ceiling:.2}{}", if of_ceiling > BOUND_PART { " !" } else { "" }),
        format!("{:.0}", spread(&|figures| figures.p99_ms).median()),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hits_are_those_between_two_words_of_dm_cache() {
        let words = |hits: u32, misses: u32| {
            format!(
                "0 1048576 cache 8 10/1280 64 1888/1888 {hits} {misses} 77 15010 0 1888 328 1 writeback 2 smq 0 rw - "
            )
        };
        let status =
            [format!("status before {}", words(100, 300)), format!("status after {}", words(175, 325))];
        assert_eq!(dm_cache_hits(&status), Some(0.75));
        assert_eq!(dm_cache_hits(&status[..1]), None);
    }
}
