//! A run's options, drawn from its seed: the swarm.
//!
//! Every seed leaves some faults and some operations out and overdoes others (Groce et al., "Swarm Testing", ISSTA
//! 2012): a mixture of everything at once masks what only a run without it would find.

use tier0_drive::sim::PowerCut;
use tier0_raid::layout::RaidLevel;
use tier0_units::{Nanos, SectorCount, WriteCache};
use tier0_world::{PlantedBug, Random};

use crate::mixture::{Adversity, Mixture};
use crate::system::{Abilities, ArrayConfig, FlashCacheConfig, SecondGroup, System, VolumeConfig};

/// About one drawn array of four is refused: a seed runs out of these once in 10^60.
const DRAWS_MAX: usize = 100;

/// All options of a run.
#[derive(Clone, Debug)]
pub struct SimConfig {
    /// Everything random comes from it.
    pub seed: u64,
    /// The array.
    pub array: ArrayConfig,
    /// Its drives.
    pub drives: DriveOptions,
    /// What its users do.
    pub load: LoadOptions,
    /// What goes wrong.
    pub faults: FaultOptions,
    /// The array's lives, each from opening to crash; after them comes a last one that ends in peace.
    pub lives: Vec<LifePlan>,
    /// A discarded run of this many sectors, so aligned, reads as zeros.
    pub discard_granule_sectors: u64,
    /// The run ends after these lives, without the last one and its judgement: to count what a script does.
    pub stop_after_lives: bool,
    /// The kinds that it mixes.
    pub mixture: Mixture,
    /// The system can be told to scrub.
    pub can_scrub: bool,
    /// The system gives discarded space back.
    pub gives_space_back: bool,
}

/// What the drives are like.
#[derive(Clone, Debug)]
pub struct DriveOptions {
    /// Completed writes may be lost until a flush.
    pub volatile_cache: bool,
    /// Discarded sectors read as zeros.
    pub discard_zeroes: bool,
    /// A command takes a random time in this range.
    pub latency: std::ops::Range<Nanos>,
}

/// What the users do.
#[derive(Clone, Debug)]
pub struct LoadOptions {
    /// Users at once.
    pub clients: u64,
    /// Operations of all users in one life.
    pub operations: u64,
    /// Weights of the operations, by [`Operation`].
    pub weights: [u64; Operation::ALL.len()],
    /// Largest request, in sectors.
    pub sectors_max: u64,
    /// Requests are aligned to this many sectors, mostly.
    pub alignment_sectors: u64,
    /// Share of the aligned 4 KiB pages of a write that are zeros.
    pub zero_share: f64,
    /// Share of the writes with forced unit access.
    pub durable_share: f64,
    /// Share of the requests that go to a small part of the volume.
    pub hot_share: f64,
    /// Sectors of that part.
    pub hot_sectors: u64,
    /// Mean pause of a user between operations.
    pub think: Nanos,
    /// Volumes are larger than the pool, or its free space is little: writes may meet ENOSPC.
    pub may_run_out: bool,
}

/// What a user may do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Operation {
    /// Reads.
    Read,
    /// Writes.
    Write,
    /// Writes zeros.
    WriteZeroes,
    /// Discards.
    Discard,
    /// Flushes.
    Flush,
}

impl Operation {
    /// All operations, in the order of their weights.
    pub const ALL: [Operation; 5] =
        [Operation::Read, Operation::Write, Operation::WriteZeroes, Operation::Discard, Operation::Flush];
}

/// What goes wrong while the array runs.
#[derive(Clone, Debug)]
pub struct FaultOptions {
    /// Weights of the troubles, by [`Trouble`].
    pub weights: [u64; Trouble::ALL.len()],
    /// Share of the reopenings before which a start is tried that must be refused, with too few drives.
    pub refused_share: f64,
    /// Whether sectors that would become noise become zeros instead, whole stretches at once.
    pub forgets: bool,
    /// Troubles of one life, on average.
    pub per_life: f64,
    /// Share of the reopenings at which a drive is left out.
    pub missing_share: f64,
    /// Share of the drives that are out of the array which come back, with what they held, while it is down.
    pub return_share: f64,
}

/// A trouble.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Trouble {
    /// A stored bit flips.
    Rot,
    /// A stored sector becomes noise.
    Scramble,
    /// Sectors cannot be read.
    Unreadable,
    /// A write is lost.
    LostWrite,
    /// A write is torn.
    TornWrite,
    /// A write goes astray.
    Misdirect,
    /// A read fails.
    ReadError,
    /// A write fails.
    WriteError,
    /// A flush fails.
    FlushError,
    /// A drive is slow for a while.
    Slow,
    /// A drive hangs.
    Hang,
    /// A drive is gone, its cache lost.
    Unplug,
    /// A drive is gone, and comes back later with all it held.
    Disconnect,
    /// An administrator fails a drive.
    AdminFail,
    /// An administrator replaces a drive.
    AdminReplace,
    /// An administrator adds a drive.
    AdminAdd,
    /// An administrator starts a scrub.
    AdminScrub,
    /// All faults end, and the array must heal.
    Heal,
    /// An administrator adds drives and has the pool grow.
    AdminGrow,
    /// An administrator creates or deletes a volume.
    AdminVolumes,
    /// Any drives fail every command for a while.
    ErrorsPass,
    /// Any drives are without power for a while.
    Outage,
    /// Any drives do not answer for a while.
    HangPasses,
    /// An administrator takes a healthy drive out at once.
    AdminRemove,
    /// An administrator takes a drive back that was failed.
    AdminRejoin,
    /// An administrator has a healthy drive emptied and forgotten, or thinks better of it.
    AdminEmpty,
    /// Any drives fail reads of a stretch for some seconds, and answer elsewhere.
    StretchPasses,
}

impl Trouble {
    /// All troubles, in the order of their weights.
    pub const ALL: [Trouble; 27] = [
        Trouble::Rot,
        Trouble::Scramble,
        Trouble::Unreadable,
        Trouble::LostWrite,
        Trouble::TornWrite,
        Trouble::Misdirect,
        Trouble::ReadError,
        Trouble::WriteError,
        Trouble::FlushError,
        Trouble::Slow,
        Trouble::Hang,
        Trouble::Unplug,
        Trouble::Disconnect,
        Trouble::AdminFail,
        Trouble::AdminReplace,
        Trouble::AdminAdd,
        Trouble::AdminScrub,
        Trouble::Heal,
        Trouble::AdminGrow,
        Trouble::AdminVolumes,
        Trouble::ErrorsPass,
        Trouble::Outage,
        Trouble::HangPasses,
        Trouble::AdminRemove,
        Trouble::AdminRejoin,
        Trouble::AdminEmpty,
        Trouble::StretchPasses,
    ];

    /// Whether it damages what is stored on a drive that stays in service.
    pub const fn damages(self) -> bool {
        self.is_silent() || matches!(self, Trouble::Unreadable)
    }

    /// Whether it changes the array's shape. Only runs that are to grow have these ([`SimConfig::growing`]).
    pub const fn is_growth(self) -> bool {
        matches!(self, Trouble::AdminGrow | Trouble::AdminVolumes)
    }

    /// Whether it strikes any number of drives and passes ([`crate::mishap`]). Only runs that are to have mishaps have
    /// these ([`SimConfig::mishaps`]).
    pub const fn is_mishap(self) -> bool {
        matches!(self, Trouble::ErrorsPass | Trouble::Outage | Trouble::HangPasses | Trouble::StretchPasses)
    }

    /// Whether only runs with mishaps have it.
    pub const fn is_for_mishaps(self) -> bool {
        self.is_mishap() || matches!(self, Trouble::AdminRemove | Trouble::AdminRejoin | Trouble::AdminEmpty)
    }

    /// Whether only checksums can tell.
    pub const fn is_silent(self) -> bool {
        matches!(
            self,
            Trouble::Rot | Trouble::Scramble | Trouble::LostWrite | Trouble::TornWrite | Trouble::Misdirect
        )
    }
}

/// One life of the array.
#[derive(Clone, Debug)]
pub struct LifePlan {
    /// When it ends.
    pub end: LifeEnd,
    /// Whether the clock of its end runs while the array opens: the recovery itself may be struck.
    pub from_opening: bool,
    /// How it ends for the drives.
    pub crash: Crash,
    /// Whether the array must heal before its end, if it gets so far; the end may come while it does.
    pub heals: bool,
    /// Share of the volumes' content that is verified before the users come.
    pub verified_share: f64,
}

/// When a life ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LifeEnd {
    /// As the n-th write, discard or flush of all drives is submitted, from 1.
    Change(u64),
    /// After this time.
    Time(Nanos),
    /// When the users are done.
    Done,
}

/// How the array dies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Crash {
    /// The power fails.
    Power(PowerCut),
    /// The process dies.
    Kill,
}

impl SimConfig {
    /// The options of `seed` for a system: the first of the seed's draws whose array it does not refuse.
    ///
    /// # Panics
    /// The system refuses whatever its own abilities allow.
    pub fn draw<S: System>(seed: u64, system: &S) -> SimConfig {
        let abilities = system.abilities();
        let random = &mut Random::new(seed, 0xc0f);
        let mut draws = (0..DRAWS_MAX).map(|_| SimConfig::draw_any(seed, &abilities, random));
        let accepted = draws.find(|config| system.refuses(&config.array).is_none());
        accepted.unwrap_or_else(|| panic!("seed {seed}: {DRAWS_MAX} arrays are refused in a row"))
    }

    /// The next options that `random` gives, whether the system accepts their array or not.
    fn draw_any(seed: u64, abilities: &Abilities, random: &mut Random) -> SimConfig {
        let array = draw_array(abilities, random);
        let may_run_out = array.volumes.iter().any(|volume| volume.thin);
        let crashes = random.below(4) + u64::from(random.chance(0.9));
        let mut config = SimConfig {
            seed,
            drives: DriveOptions {
                volatile_cache: random.chance(0.85),
                discard_zeroes: random.chance(0.7),
                latency: draw_latency(random),
            },
            load: draw_load(may_run_out, random),
            faults: draw_faults(&array, abilities, random),
            lives: (0..crashes).map(|_| draw_life(random)).collect(),
            array,
            discard_granule_sectors: abilities.discard_granule_sectors,
            stop_after_lives: false,
            mixture: Mixture::PLAIN,
            can_scrub: abilities.scrub,
            gives_space_back: abilities.thin,
        };
        crate::emphasis::apply(&mut config, abilities);
        config
    }

    /// The same, with administrators who let the pool grow, and create and delete volumes. Drawn apart, so that what a
    /// seed stands for without it stays the same.
    pub fn growing(mut self) -> SimConfig {
        self.mixture.growing = true;
        let random = &mut Random::new(self.seed, 0x6209);
        for (weight, trouble) in self.faults.weights.iter_mut().zip(Trouble::ALL) {
            if trouble.is_growth() {
                *weight = 2 + random.below(8);
            }
        }
        self.faults.per_life = self.faults.per_life.max(2.0 + random.unit() * 6.0);
        self
    }

    /// The same, with administrators who clone volumes, which are thin, write to the clones and delete them.
    pub fn cloned(mut self) -> SimConfig {
        self.mixture.clones = true;
        self.array.volumes.iter_mut().for_each(|volume| volume.thin = true);
        // What is written to a volume that has clones takes new space.
        self.load.may_run_out = true;
        self
    }

    /// The same, with extents that move between the groups.
    pub fn moving(mut self) -> SimConfig {
        self.mixture.moving = true;
        self
    }

    /// The same, with flash drives in the second group, and administrators who place and pin volumes. Flash drives get the log,
    /// so a volume that fitted may not fit any more: then they stay as they are.
    pub fn tiering<S: System>(mut self, system: &S) -> SimConfig {
        self.mixture.tiering = true;
        let array = ArrayConfig { has_tier: true, ..self.array.clone() };
        if system.refuses(&array).is_none() {
            self.array = array;
        }
        let random = &mut Random::new(self.seed, 0x6e19);
        for volume in &mut self.array.volumes {
            volume.weight = random.chance(0.7).then(|| 1 + random.below(100) as u32);
        }
        self
    }

    /// The same, with administrators who switch the caches of volumes and of the pool.
    pub fn switching(mut self) -> SimConfig {
        self.mixture.caches = true;
        self
    }

    /// The same, with a second group of sets in the pool, if the system accepts one beside the first.
    pub fn grouped<S: System>(mut self, system: &S) -> SimConfig {
        self.mixture.groups = true;
        let (abilities, random) = (system.abilities(), &mut Random::new(self.seed, 0x6709));
        let is_redundant = self.array.level != RaidLevel::Raid0;
        let levels: Vec<RaidLevel> = abilities
            .levels
            .iter()
            .copied()
            .filter(|level| !is_redundant || *level != RaidLevel::Raid0)
            .collect();
        for _ in 0..DRAWS_MAX {
            let mut array = self.array.clone();
            let level = pick(&levels, random);
            let drives = drives_min(level) + random.below(3) as usize;
            array.second = Some(SecondGroup {
                level,
                drives,
                stripe_unit_sectors: pick(&abilities.stripe_unit_sectors, random),
                spare_drives: u32::from(drives > drives_min(level) && random.chance(0.7)),
            });
            array.drives += drives;
            if let [only] = &array.volumes[..] {
                array.volumes = vec![only.clone(), only.clone()];
            }
            array.extent_rows = random.chance(0.8).then(|| 1 + random.below(40));
            if system.refuses(&array).is_none() {
                self.array = array;
                return self;
            }
        }
        self
    }

    /// The same, with a flash read cache, if the system accepts one: on drives of its own, or on drives that have data too.
    pub fn flash_cached<S: System>(mut self, system: &S) -> SimConfig {
        self.mixture.flash = true;
        let random = &mut Random::new(self.seed, 0xf1a5);
        for _ in 0..DRAWS_MAX {
            let mut array = self.array.clone();
            let alone = random.chance(0.5);
            let drives = 1 + random.below(2) as usize;
            let chunklets = log_uniform(1, 8, random);
            array.flash_cache = Some(FlashCacheConfig { drives, alone, chunklets });
            array.drives += if alone { drives } else { 0 };
            // Each shard's piece of one has room for a log.
            array.chunklet_sectors =
                system.abilities().chunklet_sectors.into_iter().max().unwrap_or_default();
            if drives < array.drives && system.refuses(&array).is_none() {
                self.array = array;
                crate::emphasis::reading(&mut self);
                return self;
            }
        }
        self
    }

    /// The same, with drives that forget what they stored: whole stretches become zeros.
    pub fn forgetful(mut self) -> SimConfig {
        self.mixture.forgetful = true;
        crate::emphasis::forgetting(&mut self);
        self
    }

    /// The same, with mishaps beyond redundancy, with starts that must be refused, and with administrators who take
    /// drives out and back.
    pub fn mishaps(mut self) -> SimConfig {
        self.mixture.adversity = Adversity::Mishaps;
        crate::emphasis::mishaps(&mut self);
        self
    }

    /// As [`SimConfig::mishaps`], and drives are pulled and taken back or put back to older images, and the process stands
    /// still.
    pub fn incidents(self) -> SimConfig {
        let mut config = self.mishaps();
        config.mixture.adversity = Adversity::Incidents;
        config
    }

    /// As [`SimConfig::mishaps`], and the power fails while the array is created, a drive lies about its flushes, operators
    /// are interrupted, and drives that were lost are believed again where no start opens the array.
    pub fn ordeals(self) -> SimConfig {
        let mut config = self.mishaps();
        config.mixture.adversity = Adversity::Ordeals;
        crate::emphasis::ordeals(&mut config);
        config
    }

    /// The same, with users who come through NBD over a network whose connections die.
    pub fn networked(mut self) -> SimConfig {
        self.mixture.network = true;
        self
    }

    /// Whether operators and machines do what [`SimConfig::incidents`] says.
    pub(crate) fn has_incidents(&self) -> bool {
        self.mixture.adversity == Adversity::Incidents
    }

    /// Whether the array goes through what [`SimConfig::ordeals`] says.
    pub(crate) fn has_ordeals(&self) -> bool {
        self.mixture.adversity == Adversity::Ordeals
    }

    /// The command that runs it.
    pub fn command(&self) -> String {
        format!("cargo xtask sim --seed {}{}", self.seed, self.mixture.options())
    }

    /// The options of `seed` under which `bug` is looked for.
    ///
    /// # Panics
    /// As [`SimConfig::draw`].
    pub fn to_find<S: System>(bug: PlantedBug, seed: u64, system: &S) -> SimConfig {
        let config = SimConfig::draw(seed, system);
        match bug {
            PlantedBug::TrustGivenUpPage => config.forgetful(),
            PlantedBug::ForgetChangedSlots => config.incidents(),
            PlantedBug::KeepPagesOfFreedSlot => config.growing(),
            // The smallest logs are those of several groups, alone on flash drives.
            PlantedBug::DelayWhenNothingIsDirty => config.grouped(system).flash_cached(system),
            PlantedBug::IntentsOfWrongGroup
            | PlantedBug::DiscardBeforeUnmapStable
            | PlantedBug::FreeBeforeMoveStable
            | PlantedBug::WriteOldPlaceDuringMove => config.grouped(system).moving(),
            PlantedBug::PinForgotten | PlantedBug::FlipLaneBeforeRetire => {
                config.grouped(system).tiering(system)
            }
            PlantedBug::RebuildInWrongLane | PlantedBug::DiscardReplayed => {
                config.grouped(system).moving().mishaps()
            }
            PlantedBug::KeepFreedSlotOnFlash => config.flash_cached(system).growing(),
            PlantedBug::FlashEpochNotRenewed => config.flash_cached(system).incidents(),
            bug if bug.needs_flash_cache() => config.flash_cached(system),
            PlantedBug::BelieveFirstLogCopy
            | PlantedBug::LabelsBeforeLog
            | PlantedBug::HideStaleLosses
            | PlantedBug::CutFullLog => config.ordeals(),
            bug if bug.needs_network() => config.networked(),
            bug if bug.needs_clones() => config.cloned(),
            bug if bug.needs_mishaps() => config.mishaps(),
            _ => config,
        }
    }

    /// One line about it, for reports.
    pub fn describe(&self) -> String {
        let kinds = self.mixture.kinds();
        let caches: Vec<&str> = self.array.volumes.iter().map(|volume| volume.write_cache.name()).collect();
        format!(
            "{} on {}{} drives, {} shards, volumes {}, {} clients, {} operations and {:.1} troubles per life, {} crashes{}",
            self.array.level,
            self.array.second.as_ref().map_or_else(String::new, |second| format!(
                "{} and {} on {} of ",
                self.array.drives - second.drives,
                second.level,
                second.drives
            )),
            self.array.drives,
            self.array.shards,
            caches.join("+"),
            self.load.clients,
            self.load.operations,
            self.faults.per_life,
            self.lives.len(),
            if kinds.is_empty() { String::new() } else { format!("; kinds:{kinds}") },
        )
    }
}

/// One of several.
pub(crate) fn pick<T: Clone>(of: &[T], random: &mut Random) -> T {
    of[random.below(of.len() as u64) as usize].clone()
}

/// A number from `least` to `most`, small ones more often: uniform in the logarithm.
pub(crate) fn log_uniform(least: u64, most: u64, random: &mut Random) -> u64 {
    let span = (most as f64 / least as f64).ln();
    ((least as f64 * (random.unit() * span).exp()) as u64).clamp(least, most)
}

fn between(range: &std::ops::RangeInclusive<u64>, random: &mut Random) -> u64 {
    range.start() + random.below(range.end() - range.start() + 1)
}

/// The fewest drives of a level.
pub(crate) fn drives_min(level: RaidLevel) -> usize {
    match level {
        RaidLevel::Raid0 => 1,
        RaidLevel::Raid1 => 2,
        RaidLevel::Raid5 => 3,
        RaidLevel::Raid10 | RaidLevel::Raid6 => 4,
        RaidLevel::Raid50 => 6,
    }
}

fn draw_array(abilities: &Abilities, random: &mut Random) -> ArrayConfig {
    let level = pick(&abilities.levels, random);
    let fewest = drives_min(level).max(*abilities.drives.start());
    let most = (*abilities.drives.end()).max(fewest).min(fewest + 5);
    let drives = fewest + random.below((most - fewest + 1) as u64) as usize;
    let count = between(&(*abilities.volumes.start() as u64..=*abilities.volumes.end() as u64), random);
    let write_cache = pick(&abilities.write_caches, random);
    let volumes = (0..count)
        .map(|_| VolumeConfig {
            sectors: SectorCount(between(&abilities.volume_sectors, random) / 8 * 8),
            thin: abilities.thin && random.chance(0.8),
            write_cache: if random.chance(0.8) { write_cache } else { pick(&abilities.write_caches, random) },
            weight: None,
        })
        .collect();
    ArrayConfig {
        level,
        set_size: None,
        drives,
        drive_sectors: pick(&abilities.drive_sectors, random),
        block_sectors: pick(&abilities.block_sectors, random),
        chunklet_sectors: pick(&abilities.chunklet_sectors, random),
        extent_rows: random.chance(0.8).then(|| 1 << random.below(6)),
        stripe_unit_sectors: pick(&abilities.stripe_unit_sectors, random),
        spare_drives: u32::from(drives > fewest && random.chance(0.7)),
        second: None,
        has_tier: false,
        flash_cache: None,
        log_sectors: (!abilities.log_sectors.is_empty()).then(|| pick(&abilities.log_sectors, random)),
        shards: 1 + random.below(abilities.shards_max as u64) as usize,
        volumes,
    }
}

fn draw_latency(random: &mut Random) -> std::ops::Range<Nanos> {
    let least = log_uniform(1_000, 1_000_000, random);
    Nanos(least)..Nanos(least * (1 + random.below(20)))
}

fn draw_load(may_run_out: bool, random: &mut Random) -> LoadOptions {
    let mut weights = [0; Operation::ALL.len()];
    for (weight, most) in weights.iter_mut().zip([6, 12, 2, 3, 2]) {
        *weight = if random.chance(0.8) { random.below(most + 1) } else { 0 };
    }
    weights[Operation::Write as usize] += 1;
    LoadOptions {
        clients: log_uniform(1, 24, random),
        operations: log_uniform(20, 400, random),
        weights,
        sectors_max: log_uniform(1, 512, random),
        alignment_sectors: pick(&[1, 1, 8, 8, 16], random),
        zero_share: if random.chance(0.4) { random.unit() * 0.6 } else { 0.0 },
        durable_share: if random.chance(0.5) { random.unit() * 0.3 } else { 0.0 },
        hot_share: if random.chance(0.7) { random.unit() } else { 0.0 },
        hot_sectors: log_uniform(8, 1024, random),
        think: Nanos(log_uniform(1_000, 5_000_000, random)),
        may_run_out,
    }
}

fn draw_faults(array: &ArrayConfig, abilities: &Abilities, random: &mut Random) -> FaultOptions {
    let mut weights = [0; Trouble::ALL.len()];
    let redundant = array.level != RaidLevel::Raid0;
    for (weight, trouble) in weights.iter_mut().zip(Trouble::ALL) {
        let can = match trouble {
            trouble if trouble.is_growth() || trouble.is_for_mishaps() => false,
            Trouble::Slow => true,
            Trouble::AdminScrub => abilities.scrub,
            Trouble::Unreadable => redundant && abilities.scrub,
            Trouble::AdminAdd | Trouble::Heal => redundant,
            trouble if trouble.is_silent() => redundant && abilities.integrity,
            _ => redundant,
        };
        *weight = if can && random.chance(0.5) { 1 + random.below(4) } else { 0 };
    }
    let per_life = if random.chance(0.75) { random.unit() * 8.0 } else { 0.0 };
    let missing_share = if redundant && random.chance(0.4) { random.unit() * 0.6 } else { 0.0 };
    FaultOptions { weights, refused_share: 0.0, forgets: false, per_life, missing_share, return_share: 0.3 }
}

fn draw_life(random: &mut Random) -> LifePlan {
    let end = match random.below(10) {
        0..6 => LifeEnd::Change(log_uniform(1, 3_000, random)),
        6..9 => LifeEnd::Time(Nanos(log_uniform(10_000, 3_000_000_000, random))),
        _ => LifeEnd::Done,
    };
    let crash = match random.below(4) {
        0 => Crash::Kill,
        _ => Crash::Power(PowerCut::Any),
    };
    let verified_share = pick(&[0.0, 0.3, 1.0, 1.0], random);
    LifePlan { end, from_opening: random.chance(0.35), crash, heals: random.chance(0.25), verified_share }
}

/// How a write cache acknowledges.
pub(crate) fn acknowledges_stable(cache: WriteCache) -> bool {
    cache != WriteCache::Volatile
}
