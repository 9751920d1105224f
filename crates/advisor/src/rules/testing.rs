//! Cases for the tests of rules.

use super::{Case, Outcome, Rule};
use crate::evidence::{Counter, Counts, Device, Evidence, Identity, Kind, Level, Measured, Object};
use crate::gain::FlashTimes;
use crate::site::Site;

pub(crate) const FLASH: FlashTimes = FlashTimes { read_ms: 0.2, write_ms: 0.1 };

/// What a rule says of evidence alone.
pub(crate) fn of(rule: &Rule, evidence: &Evidence) -> Outcome {
    with(rule, evidence, &Site::default(), None)
}

/// What a rule says of a site.
pub(crate) fn of_site(rule: &Rule, site: &Site) -> Outcome {
    with(rule, &Evidence::default(), site, None)
}

/// What a rule says.
pub(crate) fn with(rule: &Rule, evidence: &Evidence, site: &Site, flash: Option<f64>) -> Outcome {
    let finding = rule.finding(&Case::new(evidence, site, flash, FLASH));
    assert!(!finding.evidence.is_empty(), "{}: it does not say what it has seen", rule.id);
    finding.outcome
}

/// An object of a database `db` with so many GB, reads, writes, and milliseconds of each I/O.
pub(crate) fn object(name: &str, kind: Kind, gb: f64, reads: f64, writes: f64, ms: f64) -> Object {
    Object {
        identity: Identity {
            level: Level::File,
            database: "db".to_owned(),
            name: name.to_owned(),
            path: None,
        },
        kind,
        table: None,
        measured: Measured::default(),
        bytes: Some(gb * 1e9),
        counts: Counts::default()
            .with(Counter::Reads, reads)
            .with(Counter::Writes, writes)
            .with(Counter::ReadBytes, reads * 8192.0)
            .with(Counter::ReadMs, reads * ms)
            .with(Counter::WriteMs, writes * ms),
    }
}

/// A period of 100 s with these objects, of a host with 8 processors.
pub(crate) fn period(objects: Vec<Object>, busy: f64) -> Evidence {
    let mut evidence = Evidence { objects, seconds: Some(100.0), is_period: true, ..Evidence::default() };
    (evidence.host.busy, evidence.host.cores) = (Some(busy), Some(8.0));
    evidence
}

/// A device with this queue in every interval.
pub(crate) fn device(queues: &[f32], bytes: &[f32]) -> Device {
    Device {
        name: "sda".to_owned(),
        queue: Some(f64::from(queues.iter().sum::<f32>()) / queues.len() as f64),
        queues: queues.to_vec(),
        series: queues.iter().copied().zip(bytes.iter().copied()).collect(),
        ..Device::default()
    }
}
