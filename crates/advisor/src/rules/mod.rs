//! The rules of diagnosis and placement, one file each. A rule fires, is silent, or does not know, and says what it has seen and
//! where its threshold lies.
//!
//! The thresholds are those of published evaluations of arrays under databases and of the administrators' guides of the time;
//! each file says which. A rule that lacks a figure is unknown and names what to measure; it never takes 0 for it.

mod case;
mod latency;
#[cfg(test)]
pub(crate) mod testing;

mod array_averages;
mod busy_objects;
mod cable;
mod cached;
mod cpu_limits;
mod fill;
mod flash_buses;
mod flash_caches;
mod flash_redundancy;
mod hot_latency;
mod hot_set;
mod indexes;
mod log_stays;
mod logical_reads;
mod next_limit;
mod oltp_mix;
mod one_sample;
mod partitions;
mod paths;
mod physical_reads;
mod ports;
mod queue_grows;
mod queue_per_spindle;
mod raid;
mod read_latency;
mod sequential;
mod small_read_table;
mod stall_percent;
mod temp_last;
mod tempdb_files;
mod waits_for_io;
mod write_latency;

use serde::Serialize;

pub use case::Case;

/// What a rule says.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Outcome {
    /// It applies.
    Fires,
    /// It does not apply.
    Silent,
    /// What it needs was not measured.
    Unknown,
}

/// What a rule is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Subject {
    /// Whether the measurements can be believed.
    Measurement,
    /// Whether storage limits.
    Diagnosis,
    /// What belongs on flash.
    Placement,
    /// Caches of the array.
    Cache,
    /// Drives, RAID, cables.
    Layout,
}

/// Outcome and evidence.
type Said = (Outcome, String);

/// A rule.
pub struct Rule {
    /// Its name.
    pub id: &'static str,
    /// What it is about.
    pub subject: Subject,
    /// When it fires, with the threshold.
    pub threshold: &'static str,
    /// What to do where it fires.
    pub advice: &'static str,
    check: fn(&Case<'_>) -> Said,
}

/// What a rule has found.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Finding {
    /// The rule.
    pub rule: &'static str,
    /// What it is about.
    pub subject: Subject,
    /// What it says.
    pub outcome: Outcome,
    /// What it has seen, or what it lacks.
    pub evidence: String,
    /// When it fires.
    pub threshold: &'static str,
    /// What to do where it fires.
    pub advice: &'static str,
}

/// All rules, in the order in which they are told.
pub const ALL: [&Rule; 32] = [
    &one_sample::RULE,
    &stall_percent::RULE,
    &logical_reads::RULE,
    &array_averages::RULE,
    &cpu_limits::RULE,
    &waits_for_io::RULE,
    &queue_per_spindle::RULE,
    &queue_grows::RULE,
    &read_latency::RULE,
    &write_latency::RULE,
    &hot_latency::RULE,
    &busy_objects::RULE,
    &physical_reads::RULE,
    &next_limit::RULE,
    &log_stays::RULE,
    &small_read_table::RULE,
    &indexes::RULE,
    &temp_last::RULE,
    &partitions::RULE,
    &cached::RULE,
    &sequential::RULE,
    &hot_set::RULE,
    &flash_caches::RULE,
    &oltp_mix::RULE,
    &raid::RULE,
    &fill::RULE,
    &flash_buses::RULE,
    &flash_redundancy::RULE,
    &cable::RULE,
    &ports::RULE,
    &paths::RULE,
    &tempdb_files::RULE,
];

/// What all rules say of a case.
pub fn findings(case: &Case<'_>) -> Vec<Finding> {
    ALL.iter().map(|rule| rule.finding(case)).collect()
}

impl Rule {
    fn finding(&self, case: &Case<'_>) -> Finding {
        let (outcome, evidence) = (self.check)(case);
        Finding {
            rule: self.id,
            subject: self.subject,
            outcome,
            evidence,
            threshold: self.threshold,
            advice: self.advice,
        }
    }
}

fn fires(evidence: impl Into<String>) -> Said {
    (Outcome::Fires, evidence.into())
}

fn silent(evidence: impl Into<String>) -> Said {
    (Outcome::Silent, evidence.into())
}

fn unknown(lacks: impl Into<String>) -> Said {
    (Outcome::Unknown, lacks.into())
}

/// Fires or is silent.
fn told(fires: bool, evidence: impl Into<String>) -> Said {
    (if fires { Outcome::Fires } else { Outcome::Silent }, evidence.into())
}

/// A share in whole per cent.
pub(crate) fn percent(share: f64) -> String {
    format!("{:.0} %", share * 100.0)
}

/// Names, the first few of them.
fn names(of: &[String]) -> String {
    const SHOWN: usize = 5;
    match of.len() {
        0 => "none".to_owned(),
        all if all <= SHOWN => of.join(", "),
        all => format!("{} and {} more", of[..SHOWN].join(", "), all - SHOWN),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rules_have_words_and_names_of_their_own() {
        for (at, rule) in ALL.iter().enumerate() {
            assert!(!rule.threshold.is_empty() && !rule.advice.is_empty(), "{}", rule.id);
            assert!(ALL[..at].iter().all(|other| other.id != rule.id), "{} is there twice", rule.id);
        }
    }

    /// Nothing measured: no rule takes that for 0. Only those are silent whose trap would be in the files.
    #[test]
    fn nothing_measured_is_unknown() {
        let (evidence, site) = (crate::evidence::Evidence::default(), crate::site::Site::default());
        let case = Case::new(&evidence, &site, None, testing::FLASH);
        for finding in findings(&case) {
            assert_eq!(finding.outcome, Outcome::Unknown, "{}: {}", finding.rule, finding.evidence);
            assert!(!finding.evidence.is_empty(), "{} does not say what it lacks", finding.rule);
        }
    }
}
