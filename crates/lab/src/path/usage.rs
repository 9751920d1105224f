//! How busy each resource on the path was: what a configuration waits for.

use serde::{Deserialize, Serialize};
use tier0_block::BlockTarget;
use tier0_units::Nanos;

use super::{Group, Resource};

/// One resource.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct UsageRow {
    /// What it is.
    pub resource: String,
    /// Share of the time that its servers were at work, on average over all of them, 0 to 1.
    pub busy: f64,
}

/// The resource that drives are.
const DRIVES: &str = "drives";

/// All resources of a group over some time.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Usage {
    /// Ports, processors, buses, drives.
    pub rows: Vec<UsageRow>,
    /// Writes that waited for room in a write cache, on average.
    #[serde(default)]
    pub delayed_writes: f64,
}

impl Usage {
    /// The usage of `group` from its beginning to now, which is `elapsed` later. `names` are those of the groups of sets, of which
    /// the first is measured.
    pub fn of<T: BlockTarget + 'static>(group: &Group<T>, names: &[String], elapsed: Nanos) -> Usage {
        let seconds = elapsed.as_secs_f64().max(1e-9);
        let share = |resources: &[&Resource]| {
            let busy: f64 = resources.iter().map(|resource| resource.busy().as_secs_f64()).sum();
            let servers: usize = resources.iter().map(|resource| resource.servers()).sum();
            busy / seconds / servers.max(1) as f64
        };
        let mut loads: Vec<(&str, Vec<&Resource>)> = Vec::new();
        let mut drives_busy: Vec<f64> = Vec::new();
        for member in group.members() {
            for (name, resources) in member.front_end.loads() {
                gather(&mut loads, name, resources);
            }
            gather(&mut loads, "back-end buses", member.back_end.buses());
            let groups = member.back_end.groups_busy(elapsed);
            drives_busy.resize(groups.len(), 0.0);
            let members = group.members().len() as f64;
            drives_busy.iter_mut().zip(groups).for_each(|(sum, busy)| *sum += busy / members);
        }
        let mut rows: Vec<UsageRow> = loads
            .iter()
            .map(|(name, resources)| UsageRow { resource: (*name).to_owned(), busy: share(resources) })
            .collect();
        let names = names.iter().enumerate().map(|(place, name)| match place {
            0 => DRIVES.to_owned(),
            _ => format!("{DRIVES} of {name}"),
        });
        rows.extend(names.zip(drives_busy).map(|(resource, busy)| UsageRow { resource, busy }));
        Usage { rows, delayed_writes: 0.0 }
    }

    /// The usage from `then`, up to which `before` is the usage, to `now`, up to which this is.
    pub fn since(&self, now: Nanos, before: &Usage, then: Nanos) -> Usage {
        let (all, earlier) = (now.as_secs_f64(), then.as_secs_f64());
        let between = |value: f64, before: f64| (value * all - before * earlier) / (all - earlier).max(1e-9);
        let rows = self.rows.iter().zip(&before.rows);
        let row = |(row, before): (&UsageRow, &UsageRow)| UsageRow {
            resource: row.resource.clone(),
            busy: between(row.busy, before.busy),
        };
        Usage {
            rows: rows.map(row).collect(),
            delayed_writes: between(self.delayed_writes, before.delayed_writes),
        }
    }

    /// The part of the time in which the drives were at work, by group of sets.
    pub fn drives_busy(&self) -> impl Iterator<Item = f64> {
        self.rows.iter().filter(|row| row.resource.starts_with(DRIVES)).map(|row| row.busy)
    }

    /// The busiest resource.
    pub fn busiest(&self) -> Option<&UsageRow> {
        self.rows.iter().max_by(|a, b| a.busy.total_cmp(&b.busy))
    }
}

fn gather<'a>(loads: &mut Vec<(&'a str, Vec<&'a Resource>)>, name: &'a str, resources: Vec<&'a Resource>) {
    match loads.iter_mut().find(|(known, _)| *known == name) {
        Some((_, all)) => all.extend(resources),
        None => loads.push((name, resources)),
    }
}
