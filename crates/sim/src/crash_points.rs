//! Every crash point of a script: the same load again and again, crashed at the first, the second, … change of any drive.
//!
//! A seed chooses the script: array, load and troubles. It runs once without a crash to count the writes, discards and
//! flushes; then once per change and manner of losing what was not stable. After each crash the array is opened, every
//! byte is verified, and the script's peaceful end follows: more load, healing, one more power cut, verification.
//!
//! Until the crash all runs of a script are the same, event by event, so no change is left out.

use tier0_drive::sim::PowerCut;

use crate::config::{Crash, LifeEnd, LifePlan, SimConfig};
use crate::failure::Failure;
use crate::run::{RunReport, run};
use crate::system::System;

/// The manners in which every point loses what was not stable.
pub const MANNERS: [PowerCut; 4] =
    [PowerCut::KeepNothing, PowerCut::KeepAll, PowerCut::Torn, PowerCut::Sectors];

/// A script that is crashed at every point.
#[derive(Clone, Debug)]
pub struct Script {
    config: SimConfig,
    /// Changes of its drives until its users are done.
    pub changes: u64,
}

impl Script {
    /// The script of these options; its own lives are left out. Runs it once.
    ///
    /// # Errors
    /// It fails without a crash.
    pub fn new<S: System>(system: &S, mut config: SimConfig) -> Result<Script, Box<Failure>> {
        config.lives = vec![plan(LifeEnd::Done, PowerCut::KeepAll)];
        config.stop_after_lives = true;
        let changes = run(system, &config)?.changes;
        config.stop_after_lives = false;
        Ok(Script { config, changes })
    }

    /// The script of a seed: its array under a load that is small enough to crash everywhere, and no trouble but that.
    ///
    /// # Errors
    /// It fails without a crash.
    pub fn of_seed<S: System>(system: &S, seed: u64) -> Result<Script, Box<Failure>> {
        let mut config = SimConfig::draw(seed, &system.abilities());
        config.load.operations = config.load.operations.min(24);
        config.load.sectors_max = config.load.sectors_max.min(64);
        config.faults.per_life = 0.0;
        config.faults.missing_share = 0.0;
        Script::new(system, config)
    }

    /// How many runs it takes.
    pub fn points(&self) -> u64 {
        self.changes * MANNERS.len() as u64
    }

    /// Crashes at point `point`, below [`Script::points`].
    ///
    /// # Errors
    /// What broke.
    pub fn crash<S: System>(&self, system: &S, point: u64) -> Result<RunReport, Box<Failure>> {
        let manners = MANNERS.len() as u64;
        let (change, manner) = (point / manners + 1, MANNERS[(point % manners) as usize]);
        let mut config = self.config.clone();
        config.lives = vec![plan(LifeEnd::Change(change), manner)];
        run(system, &config).map_err(|mut failure| {
            failure.sentence = format!("crashed at change {change}, {manner:?}: {}", failure.sentence);
            failure.replay =
                format!("cargo xtask sim --crash-points --seed {} --point {point}", self.config.seed);
            failure
        })
    }
}

fn plan(end: LifeEnd, manner: PowerCut) -> LifePlan {
    LifePlan { end, from_opening: true, crash: Crash::Power(manner), heals: true, verified_share: 1.0 }
}
