//! What the figures of alternatives say, in words.

use tier0_catalog::{Catalog, DriveSpec};

use super::{NOW, WhatIf};
use crate::case::{Case, CaseReport, drives_of};
use crate::record::format_number;

/// A resource that is at work for this share of the time is what limits.
const BUSY: f64 = 0.85;
/// Users that wait for I/O for this share of their response time are limited by its latency.
const WAITING: f64 = 0.5;

/// What keeps a case from more transactions.
#[derive(Clone, Debug, PartialEq)]
pub enum Limit {
    /// The host's cores.
    Cpu(f64),
    /// A resource of the array.
    Resource(String, f64),
    /// Users wait for one I/O after the other, for this share of their time, and no resource is known to be saturated. Flash drives
    /// that always have a command under way may be: how many they could serve at once is not known here.
    Latency(f64, Option<String>),
    /// No resource is busy, and users hardly wait: there are too few, or they think.
    Users,
}

impl Limit {
    /// In words.
    pub fn words(&self) -> String {
        match self {
            Limit::Cpu(busy) => format!("the host's processors ({:.0} % busy)", busy * 100.0),
            Limit::Resource(name, busy) => format!("the array's {name} ({:.0} % busy)", busy * 100.0),
            Limit::Latency(share, busy) => {
                let busy = match busy {
                    Some(name) => format!("the {name} always have a command under way and may be saturated"),
                    None => "no resource is saturated".to_owned(),
                };
                format!(
                    "I/O latency: users wait for the storage {:.0} % of the time, and {busy}",
                    share * 100.0
                )
            }
            Limit::Users => "the number of users and their think time".to_owned(),
        }
    }
}

/// What limits a case.
pub fn limit_of(case: &Case, report: &CaseReport) -> Limit {
    let database = &report.database;
    if database.cpu >= BUSY {
        return Limit::Cpu(database.cpu);
    }
    // A flash drive serves many commands at once: that it always has one does not mean that it can take no more.
    let catalog = Catalog::built_in();
    let is_flash = |model: &str| matches!(catalog.drive_by_reference(model), Ok(DriveSpec::Flash(_)));
    let models = case.system.drives.iter().filter_map(|drive| drive.model.as_deref());
    let flash: Vec<String> = models.filter(|model| is_flash(model)).map(drives_of).collect();
    let busiest = |is_flash: bool| {
        let rows = report.usage.rows.iter();
        let rows = rows.filter(|row| row.busy >= BUSY && flash.contains(&row.resource) == is_flash);
        rows.max_by(|a, b| a.busy.total_cmp(&b.busy))
    };
    if let Some(row) = busiest(false) {
        return Limit::Resource(row.resource.clone(), row.busy);
    }
    // No core is short, so what is not processor time is waiting for reads, for the log, or for a dirty page to give way.
    let cores = f64::from(case.database.host.cores);
    let processor_ms = database.cpu * cores / database.per_s.max(1e-9) * 1e3;
    let cycle_ms = database.response_ms + case.database.think.as_secs_f64() * 1e3;
    let waiting = (database.response_ms - processor_ms) / cycle_ms.max(1e-9);
    match waiting >= WAITING {
        true => Limit::Latency(waiting, busiest(true).map(|row| row.resource.clone())),
        false => Limit::Users,
    }
}

/// A few sentences: what there is now, what each alternative brings, and what limits then.
pub fn answer(whatif: &WhatIf, reports: &[CaseReport]) -> Vec<String> {
    let (first, base) = (&whatif.cases[0], &reports[0]);
    let mut lines = vec![format!(
        "{NOW}: {} transactions per second at {} ms; the limit is {}.",
        format_number(base.database.per_s),
        format_number(base.database.response_ms),
        limit_of(first, base).words(),
    )];
    if let Some(measured) = first.measured_tps {
        lines.push(format!(
            "You measured {}: the model is off by {:+.0} %. If that is much, rely on its ratios and not on its rates.",
            format_number(measured),
            (base.database.per_s / measured - 1.0) * 100.0,
        ));
    }
    for (case, report) in whatif.cases.iter().zip(reports).skip(1) {
        let ratio = report.database.per_s / base.database.per_s.max(1e-9);
        let interval = ratio * report.database.half_width.hypot(base.database.half_width);
        let what = match (ratio - 1.0).abs() <= interval {
            true => "no difference that the simulation can tell".to_owned(),
            false => format!("{ratio:.2} times the transactions, ± {interval:.2}"),
        };
        lines.push(format!(
            "{}: {what}, at {} ms; the limit is then {}.",
            case.name,
            format_number(report.database.response_ms),
            limit_of(case, report).words(),
        ));
    }
    lines.extend(beside(whatif, reports));
    lines
}

/// What the databases beside do in each case, a sentence for each of them.
fn beside(whatif: &WhatIf, reports: &[CaseReport]) -> Vec<String> {
    let named: Vec<(&str, &CaseReport)> =
        whatif.cases.iter().map(|case| case.name.as_str()).zip(reports).collect();
    let mut names: Vec<&str> = Vec::new();
    for (name, _) in named.iter().flat_map(|(_, report)| &report.beside) {
        if !names.contains(&name.as_str()) {
            names.push(name);
        }
    }
    let of = |name: &str| {
        let figures = named.iter().filter_map(|(case, report)| {
            let (_, found) = report.beside.iter().find(|(known, _)| known == name)?;
            Some(format!("{case} {} at {} ms", format_number(found.per_s), format_number(found.response_ms)))
        });
        format!("Beside it {name}, transactions per second: {}.", figures.collect::<Vec<_>>().join("; "))
    };
    names.into_iter().map(of).collect()
}
