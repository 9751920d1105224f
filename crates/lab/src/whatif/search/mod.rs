//! The cheapest drives that hold a rate of transactions within a response time.
//!
//! | file | concept |
//! |---|---|
//! | `file` | the form of `[search]`, and what is wrong with one |
//! | `candidate` | a kind of drives at a RAID level in the base's array, so many of them |
//! | `bisect` | the fewest that hold, by simulating few of the possible numbers |
//! | `words` | the answer in words |
//!
//! Every number of drives that is judged was simulated as a case of its own, which differs from the base in the drives alone. What
//! this takes for granted: more drives of a kind do not make a database slower.

mod bisect;
mod candidate;
mod file;
#[cfg(test)]
mod tests;
mod words;

use serde::Serialize;
use tier0_catalog::Catalog;
use tier0_units::Nanos;

use self::bisect::fewest;
pub use self::candidate::Candidate;
pub(super) use self::file::search_of;
pub use self::words::found;
use super::{SEED, limit_of};
use crate::LabError;
use crate::grid::each;

/// A goal and the candidates that may reach it.
#[derive(Clone, Debug)]
pub struct DriveSearch {
    /// Transactions of all kinds per second, at least.
    pub tps: f64,
    /// Their mean response time, at most.
    pub response: Nanos,
    /// How full the drives' space may be, percent.
    pub fill_percent: f64,
    /// Kinds of drives.
    pub candidates: Vec<Candidate>,
}

/// A number of drives that was simulated.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Probed {
    /// How many drives.
    pub drives: u32,
    /// Transactions of all kinds per second.
    pub tps: f64,
    /// Their mean response time, milliseconds.
    pub response_ms: f64,
    /// What limits, in words.
    pub limit: String,
    /// Whether it holds rate and response time.
    pub holds: bool,
    /// Whether the rate is nearer to the goal than the simulation can tell.
    pub is_close: bool,
}

/// What came of a candidate.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct CandidateResult {
    /// The model.
    pub model: String,
    /// The RAID level.
    pub raid: String,
    /// Drives of a set.
    pub set_size: u32,
    /// The fewest drives that have room.
    pub drives_for_room: u32,
    /// The fewest drives that hold what is asked for; nothing if none of the possible numbers do.
    pub drives: Option<u32>,
    /// What they cost, in the unit of the file; nothing without prices.
    pub price: Option<f64>,
    /// Their capacity without redundancy, bytes.
    pub usable_bytes: Option<u64>,
    /// How full that is, percent.
    pub fill_percent: Option<f64>,
    /// All numbers that were simulated, ascending.
    pub probed: Vec<Probed>,
}

/// What came of a search: the cheapest first, those that do not hold last.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct SearchResult {
    /// Transactions per second that were asked for.
    pub tps_min: f64,
    /// The response time that was asked for, milliseconds.
    pub response_ms_max: f64,
    /// How full the drives' space may be, percent.
    pub fill_percent_max: f64,
    /// Whether prices decide; else numbers of drives do.
    pub by_price: bool,
    /// The candidates.
    pub candidates: Vec<CandidateResult>,
}

impl CandidateResult {
    /// The probe of so many drives.
    pub(crate) fn probe(&self, drives: u32) -> Option<&Probed> {
        self.probed.iter().find(|probed| probed.drives == drives)
    }

    /// Price or number of drives, then capacity; what does not hold comes last.
    fn rank(&self) -> (bool, f64, u32, u64) {
        let drives = self.drives.unwrap_or(u32::MAX);
        (self.drives.is_none(), self.price.unwrap_or(0.0), drives, self.usable_bytes.unwrap_or(0))
    }
}

impl DriveSearch {
    /// Simulates until every candidate's number is known, `threads` candidates at a time; `told` learns what is simulated.
    ///
    /// # Errors
    /// A case cannot run.
    pub fn run(&self, threads: usize, told: &(dyn Fn(&str) + Sync)) -> Result<SearchResult, LabError> {
        let catalog = Catalog::embedded();
        let result = |candidate: &Candidate| self.judge(candidate, &catalog, told);
        let mut candidates = each(&self.candidates, threads, result, |_| ())?;
        candidates.sort_by(|a, b| a.rank().partial_cmp(&b.rank()).expect("prices are numbers"));
        Ok(SearchResult {
            tps_min: self.tps,
            response_ms_max: self.response.as_millis_f64(),
            fill_percent_max: self.fill_percent,
            by_price: self.candidates.iter().all(|candidate| candidate.price.is_some()),
            candidates,
        })
    }

    fn judge(
        &self,
        candidate: &Candidate,
        catalog: &Catalog,
        told: &(dyn Fn(&str) + Sync),
    ) -> Result<CandidateResult, LabError> {
        let mut probed: Vec<Probed> = Vec::new();
        let drives = fewest(&candidate.numbers(), |drives| {
            told(&format!("{drives} x {}", candidate.model));
            let case = candidate.case(drives)?;
            let report = case.measure(catalog, SEED)?;
            let (tps, response_ms) = (report.database.per_s, report.database.response_ms);
            let half_width = report.database.half_width;
            // What arrives by itself is answered or not; how much arrived scatters.
            let enough = match case.database.rate {
                Some(_) => self.tps * (1.0 - half_width),
                None => self.tps,
            };
            let holds = tps >= enough && response_ms <= self.response.as_millis_f64();
            let is_close = (tps - self.tps).abs() <= half_width * tps;
            probed.push(Probed {
                drives,
                tps,
                response_ms,
                limit: limit_of(&case, &report).words(),
                holds,
                is_close,
            });
            Ok::<bool, LabError>(holds)
        })?;
        probed.sort_by_key(|probed| probed.drives);
        let usable = drives.map(|drives| candidate.usable(drives));
        Ok(CandidateResult {
            model: candidate.model.clone(),
            raid: candidate.raid.name().to_owned(),
            set_size: candidate.set_size,
            drives_for_room: candidate.least,
            drives,
            price: drives.and_then(|drives| candidate.price.map(|price| price * f64::from(drives))),
            usable_bytes: usable.map(|usable| usable as u64),
            fill_percent: usable.map(|usable| candidate.needed as f64 / usable * 100.0),
            probed,
        })
    }
}
