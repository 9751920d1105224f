//! Configurations under the same load, the best first, with what else a buyer weighs.
//!
//! What differs by less than the simulation can tell has the same rank. Points of a grid differ in their loads and are not
//! ranked.

use tier0_units::{ByteCount, Nanos, counted};

use crate::run::{Measured, StudyOutcome};
use crate::study::{Goal, Metric, Requests, Setup};

/// Configurations that bear the same load.
#[derive(Clone, Debug, PartialEq)]
pub struct Ranking {
    /// The load.
    pub load: String,
    /// The best first.
    pub lines: Vec<Ranked>,
}

/// One of them.
#[derive(Clone, Debug, PartialEq)]
pub struct Ranked {
    /// From 1.
    pub rank: usize,
    /// The configuration's id.
    pub id: String,
    /// Its title.
    pub title: String,
    /// I/Os per second; none where not even one request at a time keeps the limit.
    pub iops: Option<f64>,
    /// Half the width of the 95 % interval that the simulation leaves them, as a share, where it is known.
    pub half_width: Option<f64>,
    /// The latency that 99 % of the requests keep there, in milliseconds.
    pub p99_ms: f64,
    /// What the drives hold, without redundancy.
    pub usable: ByteCount,
    /// Drives with data, of all groups of sets and all members.
    pub drives: u32,
    /// What the drives draw, in watts.
    pub drive_watts: f64,
    /// What is left of the busiest resource, 0 to 1, and which one that is: it saturates first.
    pub headroom: Option<(f64, String)>,
}

/// A write cache is too small where a write waits for room in it half of the time, on average, though nothing behind it is at
/// work for more than this share of the time.
const DELAYED_LEAST: f64 = 0.5;
const OTHERS_BUSY_MOST: f64 = 0.8;

impl Ranked {
    fn of(measured: &Measured) -> Ranked {
        let (configuration, measurement) = (&measured.configuration, &measured.measurement);
        let usage = &measurement.usage;
        let busiest = usage.busiest();
        let is_throttled = usage.delayed_writes >= DELAYED_LEAST
            && busiest.is_some_and(|busiest| busiest.busy < OTHERS_BUSY_MOST);
        let headroom = match is_throttled {
            true => Some((0.0, "write cache".to_owned())),
            false => busiest.map(|row| ((1.0 - row.busy).max(0.0), row.resource.clone())),
        };
        Ranked {
            rank: 0,
            id: configuration.id.clone(),
            title: configuration.title.clone(),
            iops: measurement.metric(Metric::Iops),
            half_width: measurement.half_width(Metric::Iops),
            p99_ms: measurement.result.p99_ms,
            usable: measured.usable,
            drives: configuration.setup.set_groups().iter().map(|sets| sets.drives).sum::<u32>()
                * configuration.setup.members,
            drive_watts: measured.drive_watts,
            headroom,
        }
    }

    /// Whether this one, which gives no more than the other, may as well give as much.
    fn may_equal(&self, better: &Ranked) -> bool {
        let (Some(less), Some(more)) = (self.iops, better.iops) else { return self.iops == better.iops };
        let width = |ranked: &Ranked, iops: f64| iops * ranked.half_width.unwrap_or(0.0);
        more - less <= width(self, less).hypot(width(better, more))
    }
}

/// The rankings of a study: one for each load that at least two configurations bear.
pub fn rankings(outcome: &StudyOutcome) -> Vec<Ranking> {
    let mut groups: Vec<Vec<&Measured>> = Vec::new();
    for measured in outcome.outside_grid() {
        let setup = &measured.configuration.setup;
        let bears_it = |group: &&mut Vec<&Measured>| is_same_load(&group[0].configuration.setup, setup);
        match groups.iter_mut().find(bears_it) {
            Some(group) => group.push(measured),
            None => groups.push(vec![measured]),
        }
    }
    groups.retain(|group| group.len() > 1);
    groups.iter().map(|group| ranking(group)).collect()
}

fn ranking(group: &[&Measured]) -> Ranking {
    let mut lines: Vec<Ranked> = group.iter().map(|measured| Ranked::of(measured)).collect();
    let rate = |ranked: &Ranked| ranked.iops.unwrap_or(0.0);
    lines.sort_by(|a, b| rate(b).total_cmp(&rate(a)));
    let mut first = 0;
    for place in 0..lines.len() {
        if !lines[place].may_equal(&lines[first]) {
            first = place;
        }
        lines[place].rank = first + 1;
    }
    let any = &group[0].configuration.setup;
    Ranking { load: load(any), lines }
}

fn is_same_load(a: &Setup, b: &Setup) -> bool {
    let of = |setup: &Setup| (setup.block.clone(), setup.pattern, setup.alignment, setup.goal);
    // Whatever serves them.
    let beside = |setup: &Setup| -> Vec<(Requests, u32, Nanos)> {
        let loads = setup.neighbours.iter();
        loads.map(|one| (one.sets.requests.clone(), one.users, one.think)).collect()
    };
    of(a) == of(b) && a.read_percent == b.read_percent && beside(a) == beside(b)
}

/// The load in words.
fn load(setup: &Setup) -> String {
    let goal = match setup.goal {
        Goal::LatencyLimit { limit_ms } => {
            let kind = match setup.read_percent {
                100.0 => "reads",
                0.0 => "writes",
                _ => "reads and writes each",
            };
            format!("{kind} within {limit_ms} ms on average")
        }
        Goal::Users { users, .. } => counted(u64::from(users), "user"),
    };
    let own = format!("{}, {}, {} % reads, {goal}", setup.block, setup.pattern, setup.read_percent);
    let beside = setup.neighbours.iter().map(|neighbour| {
        let Requests { block, pattern, read_percent, .. } = &neighbour.sets.requests;
        let users = counted(u64::from(neighbour.users), "user");
        format!("; beside it {block}, {pattern}, {read_percent} % reads, {users}")
    });
    own + &beside.collect::<String>()
}
