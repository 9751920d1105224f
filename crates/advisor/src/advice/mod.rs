//! The advice: an answer in a paragraph, objects by gain for each GB, what stays and why, caches, how much flash, drives.
//!
//! | file | concept |
//! |---|---|
//! | `answer` | the paragraph |
//! | `rank` | objects: what is worth moving, what stays and why |
//! | `sizing` | drives for it |

mod answer;
mod rank;
mod sizing;

use serde::Serialize;

use crate::drives::{Disk, FlashDrive};
use crate::evidence::{Evidence, Source};
use crate::gain::Gain;
use crate::rules::{Case, Finding, findings};
use crate::site::Site;

pub use rank::{Ranked, Verdict};
pub use sizing::{Sizing, Step};

/// What is asked.
#[derive(Clone, Debug)]
pub struct Question {
    /// Bytes of flash that there are or would be.
    pub flash: Option<f64>,
    /// The kind of flash drive.
    pub drive: FlashDrive,
    /// The kind of disk that holds the rest.
    pub disk: Disk,
    /// What is known of the site.
    pub site: Site,
}

/// What the chosen objects take and bring together.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Chosen {
    /// How many.
    pub objects: usize,
    /// Bytes of them.
    pub bytes: f64,
    /// Their share of the waits for storage.
    pub wait_share: Option<f64>,
    /// Their share of the I/Os.
    pub io_share: Option<f64>,
    /// What all of them bring.
    pub gain: Option<Gain>,
    /// What all candidates would bring, those that do not fit or have no known size included.
    pub gain_of_all: Option<Gain>,
    /// Busy share of the processors then.
    pub busy_then: Option<f64>,
    /// Share of the time in which sessions would wait for storage.
    pub storage_share_then: Option<f64>,
}

/// The advice.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Advice {
    /// Sentences of one paragraph.
    pub answer: Vec<String>,
    /// All objects, those to move first, by gain for each GB.
    pub objects: Vec<Ranked>,
    /// Those to move.
    pub chosen: Chosen,
    /// How much flash which share of the waits takes.
    pub steps: Vec<Step>,
    /// Settings of caches.
    pub caches: Vec<String>,
    /// Drives.
    pub sizing: Sizing,
    /// What the rules say.
    pub findings: Vec<Finding>,
    /// What else the reader should know.
    pub notes: Vec<String>,
    /// The files.
    pub sources: Vec<Source>,
    /// Seconds that were measured.
    pub seconds: Option<f64>,
    /// Share of the time in which sessions wait for storage.
    pub storage_share: Option<f64>,
    /// Busy share of the processors.
    pub busy: Option<f64>,
    /// The flash drive whose latencies are expected.
    pub drive: FlashDrive,
}

/// Advises.
pub fn advise(evidence: &Evidence, question: &Question) -> Advice {
    // Rules about the size of the flash speak of what there is, and not of what is proposed.
    let case = Case::new(evidence, &question.site, question.flash, question.drive.times);
    let (objects, chosen) = rank::rank(&case, question);
    let findings = findings(&case);
    let answer = answer::answer(&case, question, &findings, &objects, &chosen);
    let mut notes = evidence.notes.clone();
    if case.waits.iter().flatten().any(|waits| waits.is_derived) {
        notes.push("waits of some objects are their I/Os × the latency of the busiest device: they were not timed themselves".into());
    }
    Advice {
        answer,
        steps: sizing::steps(&case),
        caches: sizing::caches(&question.site),
        sizing: sizing::sizing(question, &objects, &chosen),
        objects,
        chosen,
        findings,
        notes,
        sources: evidence.sources.clone(),
        seconds: evidence.seconds,
        storage_share: case.model.as_ref().map(crate::gain::Model::storage_share),
        busy: evidence.host.busy,
        drive: question.drive.clone(),
    }
}
