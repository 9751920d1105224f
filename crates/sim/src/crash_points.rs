//! Every crash point of a script: the same load again and again, crashed at the first, the second, … change of any drive.
//!
//! A script is an array, a load and perhaps a lost drive. It runs once without a crash to count the writes, discards and
//! flushes; then once per change and manner of losing what was not stable. After each crash the array is opened, every
//! byte is verified, and the script's peaceful end follows: more load, healing, one more power cut, verification.
//!
//! The life that is crashed begins with the opening, which rolls the metadata's checkpoint over, and ends with healing,
//! which rebuilds and scrubs; so the points lie in those too. Until the crash all runs of a script are the same, event by
//! event, so no change is left out.

use tier0_drive::sim::PowerCut;
use tier0_raid::layout::RaidLevel;
use tier0_units::{Nanos, SectorCount, WriteCache};

use crate::config::{
    Crash, DriveOptions, FaultOptions, LifeEnd, LifePlan, LoadOptions, Operation, SimConfig, Trouble,
    drives_min,
};
use crate::failure::Failure;
use crate::mixture::Mixture;
use crate::run::RunReport;
use crate::sweep::run_caught;
use crate::system::{Abilities, ArrayConfig, System, VolumeConfig};

/// The manners in which every point loses what was not stable.
pub const MANNERS: [PowerCut; 4] =
    [PowerCut::KeepNothing, PowerCut::KeepAll, PowerCut::Torn, PowerCut::Sectors];

/// The most operations of a user where there is a flash cache.
const FLASH_OPERATIONS_MAX: u64 = 120;

/// What a script is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Theme {
    /// The array's level.
    pub level: RaidLevel,
    /// When its writes are acknowledged.
    pub write_cache: WriteCache,
    /// An administrator fails a drive meanwhile, and a spare takes its place.
    pub loses_drive: bool,
}

impl Theme {
    /// Every level with every write cache, without and, where there is redundancy, with the loss of a drive.
    pub fn all(abilities: &Abilities) -> Vec<Theme> {
        let mut themes = Vec::new();
        for loses_drive in [false, true] {
            for &level in abilities.levels.iter().filter(|level| !loses_drive || **level != RaidLevel::Raid0)
            {
                for write_cache in [WriteCache::Durable, WriteCache::Volatile, WriteCache::Off] {
                    if abilities.write_caches.contains(&write_cache) {
                        themes.push(Theme { level, write_cache, loses_drive });
                    }
                }
            }
        }
        themes
    }

    /// In words.
    pub fn describe(&self) -> String {
        let loss = if self.loses_drive { ", a drive lost" } else { "" };
        format!("{} {}{loss}", self.level, self.write_cache.name())
    }

    /// Extents of one row, taken, given back and taken again; partial pages, zeros and discards; a log so small that it
    /// wraps.
    fn config(&self, number: u64, abilities: &Abilities) -> SimConfig {
        let least = |choices: &[u64]| choices.iter().copied().min();
        let volume = VolumeConfig {
            sectors: SectorCount(
                1024.clamp(*abilities.volume_sectors.start(), *abilities.volume_sectors.end()),
            ),
            thin: abilities.thin,
            write_cache: self.write_cache,
            weight: None,
        };
        let fewest = drives_min(self.level).max(*abilities.drives.start());
        let spare_drives = u32::from(self.loses_drive && fewest < *abilities.drives.end());
        let mut weights = [0; Trouble::ALL.len()];
        weights[Trouble::AdminFail as usize] = 1;
        SimConfig {
            seed: number,
            array: ArrayConfig {
                level: self.level,
                set_size: None,
                drives: fewest + spare_drives as usize,
                drive_sectors: least(&abilities.drive_sectors).expect("drives have a size"),
                block_sectors: 1,
                chunklet_sectors: least(&abilities.chunklet_sectors).expect("chunklets have a size"),
                extent_rows: Some(1),
                stripe_unit_sectors: least(&abilities.stripe_unit_sectors).expect("stripes have a size"),
                spare_drives,
                log_sectors: least(&abilities.log_sectors),
                shards: 1,
                second: None,
                has_tier: false,
                flash_cache: None,
                volumes: vec![volume],
            },
            drives: DriveOptions {
                volatile_cache: true,
                discard_zeroes: true,
                latency: Nanos::from_micros(20)..Nanos::from_micros(200),
            },
            load: LoadOptions {
                clients: 3,
                operations: 24,
                weights: Operation::ALL.map(|operation| match operation {
                    Operation::Write => 8,
                    Operation::WriteZeroes | Operation::Discard => 2,
                    Operation::Read | Operation::Flush => 1,
                }),
                sectors_max: 48,
                alignment_sectors: 4,
                zero_share: 0.1,
                durable_share: 0.1,
                hot_share: 0.5,
                hot_sectors: 128,
                think: Nanos::from_micros(200),
                may_run_out: abilities.thin,
            },
            faults: FaultOptions {
                refused_share: 0.0,
                forgets: false,
                weights,
                per_life: if self.loses_drive { 2.0 } else { 0.0 },
                missing_share: 0.0,
                return_share: 0.0,
            },
            lives: Vec::new(),
            discard_granule_sectors: abilities.discard_granule_sectors,
            mixture: Mixture::PLAIN,
            stop_after_lives: false,
            can_scrub: abilities.scrub,
            gives_space_back: abilities.thin,
        }
    }
}

/// A script that is crashed at every point.
#[derive(Clone, Debug)]
pub struct Script {
    config: SimConfig,
    /// Changes of its drives until its users are done and it is healed.
    pub changes: u64,
    /// How the command line names it.
    name: String,
}

impl Script {
    /// The script of these options; its own lives are left out. Runs it once.
    ///
    /// # Errors
    /// It fails without a crash.
    pub fn new<S: System>(system: &S, config: SimConfig) -> Result<Script, Box<Failure>> {
        let name = format!("--seed {}{}", config.seed, config.mixture.kinds());
        Script::named(system, config, name)
    }

    fn named<S: System>(system: &S, mut config: SimConfig, name: String) -> Result<Script, Box<Failure>> {
        config.lives = vec![plan(LifeEnd::Done, PowerCut::KeepAll)];
        config.stop_after_lives = true;
        let uncrashed = run_caught(system, &config).map_err(|mut failure| {
            failure.replay = format!("cargo xtask sim --crash-points {name}");
            failure
        });
        let changes = uncrashed?.changes;
        config.stop_after_lives = false;
        Ok(Script { config, changes, name })
    }

    /// The script of a seed: its array under a load that is small enough to crash everywhere, and no trouble but that.
    ///
    /// # Errors
    /// It fails without a crash.
    pub fn of_seed<S: System>(system: &S, seed: u64) -> Result<Script, Box<Failure>> {
        let mut config = small(system, seed);
        config.faults.per_life = 0.0;
        Script::new(system, config)
    }

    /// The script of a theme; `number` is its place in [`Theme::all`].
    ///
    /// # Errors
    /// It fails without a crash.
    pub fn of_theme<S: System>(system: &S, number: u64, theme: &Theme) -> Result<Script, Box<Failure>> {
        Script::named(system, theme.config(number, &system.abilities()), format!("--script {number}"))
    }

    /// As [`Script::of_seed`], while the pool grows and volumes come and go.
    ///
    /// # Errors
    /// It fails without a crash.
    pub fn growing<S: System>(system: &S, seed: u64) -> Result<Script, Box<Failure>> {
        let mut config = small(system, seed);
        config.faults.weights.fill(0);
        Script::new(system, config.growing())
    }

    /// That of `seed` with volumes that are cloned and written to, without other trouble.
    ///
    /// # Errors
    /// It fails without a crash.
    pub fn cloned<S: System>(system: &S, seed: u64) -> Result<Script, Box<Failure>> {
        let mut config = small(system, seed);
        config.faults.weights.fill(0);
        Script::new(system, config.cloned())
    }

    /// That of `seed` with a flash read cache, without other trouble: more users' requests, most of them reads, so that
    /// there is a map to be found.
    ///
    /// # Errors
    /// It fails without a crash.
    pub fn flash_cached<S: System>(system: &S, seed: u64) -> Result<Script, Box<Failure>> {
        let mut config = small(system, seed);
        config.faults.weights.fill(0);
        let mut config = config.flash_cached(system);
        config.load.operations = config.load.operations.min(FLASH_OPERATIONS_MAX);
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
        run_caught(system, &config).map_err(|mut failure| {
            failure.sentence = format!("crashed at change {change}, {manner:?}: {}", failure.sentence);
            failure.replay = format!("cargo xtask sim --crash-points {} --point {point}", self.name);
            failure
        })
    }
}

/// The options of a seed, with a load that is small enough to crash everywhere.
fn small<S: System>(system: &S, seed: u64) -> SimConfig {
    let mut config = SimConfig::draw(seed, system);
    config.load.operations = config.load.operations.min(24);
    config.load.sectors_max = config.load.sectors_max.min(64);
    config.faults.missing_share = 0.0;
    config
}

fn plan(end: LifeEnd, manner: PowerCut) -> LifePlan {
    LifePlan { end, from_opening: true, crash: Crash::Power(manner), heals: true, verified_share: 1.0 }
}
