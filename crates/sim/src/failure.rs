//! A run that failed: what broke, in one sentence, and how to see it again.

use std::fmt;

use crate::config::SimConfig;

/// A failed run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failure {
    /// The seed of the run.
    pub seed: u64,
    /// What broke.
    pub sentence: String,
    /// What was done to the array before it broke, oldest first.
    pub events: Vec<String>,
    /// The command that shows it again.
    pub replay: String,
}

impl Failure {
    /// A failure of a run with these options.
    pub fn of_run(config: &SimConfig, sentence: String, events: Vec<String>) -> Failure {
        Failure { seed: config.seed, sentence, events, replay: config.command() }
    }

    /// A failure of a seed whose options are not known, or that draws its mixture.
    pub fn of_seed(seed: u64, sentence: String) -> Failure {
        Failure { seed, sentence, events: Vec::new(), replay: format!("cargo xtask sim --seed {seed}") }
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "seed {}: {}", self.seed, self.sentence)?;
        write!(f, "replay: {}", self.replay)
    }
}

impl std::error::Error for Failure {}
