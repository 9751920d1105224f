//! What some seeds dwell on: situations that need several things at once, which a swarm seldom brings together.
//!
//! Measured with bugs planted in the array: among 300 seeds of the swarm alone, 16 drives of 600 runs came back stale
//! and no run noticed an array that believes them, nor that a mapping counted before it was stable, for which the power
//! must fail within microseconds of a commit.
//!
//! Invariants: most seeds dwell on nothing; what a seed dwells on is drawn from a stream of its own, so a new emphasis
//! leaves the other seeds as they were. Nothing here asks for more than the array promises to survive.

use tier0_drive::sim::PowerCut;
use tier0_raid::layout::RaidLevel;
use tier0_units::Nanos;
use tier0_world::Random;

use crate::config::{Crash, LifeEnd, LifePlan, Operation, SimConfig, Trouble, log_uniform, pick};
use crate::system::Abilities;

/// Of this many seeds, one dwells on each of the things below.
const ONE_IN: u64 = 12;

/// Changes the options of seeds that dwell on something.
pub(crate) fn apply(config: &mut SimConfig, abilities: &Abilities) {
    let random = &mut Random::new(config.seed, 0xe3f);
    match random.below(ONE_IN) {
        0 if config.array.level != RaidLevel::Raid0 => departures(config, random),
        1 if abilities.thin => allocation(config, random),
        _ => {}
    }
}

/// Drives leave and come back with what they held, and nothing else goes wrong.
///
/// Spares would take the place of what left, so there are few; and nothing damages what is stored, so that whatever a
/// scrub repairs is the array's fault. Drives leave early in a life, so that much is written without them before the
/// power fails, and some that fail a command or are failed by an administrator are there again at the next start.
fn departures(config: &mut SimConfig, random: &mut Random) {
    let weights = &mut config.faults.weights;
    weights.fill(0);
    for trouble in [Trouble::Disconnect, Trouble::Unplug, Trouble::AdminFail, Trouble::WriteError] {
        weights[trouble as usize] = 1 + random.below(3);
    }
    // Healed, the array may be struck again.
    weights[Trouble::Heal as usize] = 1;
    config.faults.per_life = 4.0 + random.unit() * 8.0;
    config.faults.missing_share = 0.2 + random.unit() * 0.6;
    config.faults.return_share = 0.9;
    if random.chance(0.7) {
        config.array.spare_drives = 0;
    }
    config.load.operations = log_uniform(150, 400, random);
    config.lives = (0..3 + random.below(5))
        .map(|_| LifePlan {
            end: LifeEnd::Change(log_uniform(200, 4_000, random)),
            // Verification of everything repairs what a stale drive holds, before a scrub can count it.
            verified_share: pick(&[0.0, 1.0], random),
            ..life(0.4, random)
        })
        .collect();
}

/// Extents are small, taken and given back all the time, and the power fails often.
fn allocation(config: &mut SimConfig, random: &mut Random) {
    config.array.volumes.iter_mut().for_each(|volume| volume.thin = true);
    config.array.extent_rows = Some(1);
    config.array.stripe_unit_sectors = pick(&[8, 16], random);
    config.drives.volatile_cache = true;
    config.faults.per_life = 0.0;
    let load = &mut config.load;
    load.clients = 4 + random.below(20);
    load.weights = Operation::ALL.map(|operation| match operation {
        Operation::Write => 8,
        Operation::Read | Operation::Flush => 1,
        Operation::WriteZeroes | Operation::Discard => 1 + random.below(4),
    });
    load.sectors_max = log_uniform(8, 64, random);
    load.hot_share = 0.0;
    load.think = Nanos(log_uniform(1_000, 200_000, random));
    load.may_run_out = true;
    config.lives = (0..6 + random.below(8)).map(|_| life(0.0, random)).collect();
}

/// Users read what they have read, for so long that a cache on flash takes it in, and write between. For runs that have one
/// ([`SimConfig::flash_cached`]).
pub(crate) fn reading(config: &mut SimConfig) {
    let random = &mut Random::new(config.seed, 0xf1a6);
    let load = &mut config.load;
    load.operations = log_uniform(200, 1_500, random);
    load.weights = Operation::ALL.map(|operation| match operation {
        Operation::Read => 6 + random.below(10),
        Operation::Write => 1 + random.below(5),
        Operation::Flush | Operation::WriteZeroes | Operation::Discard => random.below(3),
    });
    load.sectors_max = log_uniform(8, 128, random);
    load.alignment_sectors = pick(&[1, 8, 8, 16], random);
    load.hot_share = random.unit();
    load.hot_sectors = log_uniform(256, 4_096, random);
    load.think = Nanos(log_uniform(500_000, 100_000_000, random));
    config.lives = (0..2 + random.below(5))
        .map(|_| LifePlan {
            end: match random.below(3) {
                0 => LifeEnd::Done,
                1 => LifeEnd::Time(Nanos(log_uniform(500_000_000, 20_000_000_000, random))),
                _ => LifeEnd::Change(log_uniform(100, 5_000, random)),
            },
            crash: pick(&[Crash::Power(PowerCut::Any), Crash::Power(PowerCut::Any), Crash::Kill], random),
            ..life(0.3, random)
        })
        .collect();
}

/// Drives forget stretches and then leave, while pages are given up and written again in rows that keep others. For runs
/// that are told to ([`SimConfig::forgetful`]).
pub(crate) fn forgetting(config: &mut SimConfig) {
    let random = &mut Random::new(config.seed, 0xf026);
    config.faults.forgets = true;
    let weights = &mut config.faults.weights;
    weights.fill(0);
    weights[Trouble::Scramble as usize] = 20;
    weights[Trouble::Unplug as usize] = 1;
    // Most are left out: the drive that has forgotten must be the one that leaves, too.
    config.faults.per_life = 50.0;
    config.faults.missing_share = 0.5;
    config.faults.return_share = 0.0;
    let load = &mut config.load;
    load.operations = log_uniform(400, 1_500, random);
    load.weights = Operation::ALL.map(|operation| match operation {
        Operation::Write => 8,
        Operation::Read => 0,
        Operation::Flush => 1,
        Operation::WriteZeroes | Operation::Discard => 2 + random.below(4),
    });
    load.sectors_max = log_uniform(8, 32, random);
    config.lives = (0..2 + random.below(4))
        .map(|_| LifePlan { end: LifeEnd::Change(log_uniform(2_000, 10_000, random)), ..life(0.5, random) })
        .collect();
}

/// Drives fail, hang and lose their power for a while, any of them at once, while administrators take some out and back.
/// For runs that are told to ([`SimConfig::mishaps`]).
pub(crate) fn mishaps(config: &mut SimConfig) {
    let random = &mut Random::new(config.seed, 0x6d15);
    let redundant = config.array.level != RaidLevel::Raid0;
    let weights = &mut config.faults.weights;
    for (weight, trouble) in weights.iter_mut().zip(Trouble::ALL) {
        *weight = match trouble {
            Trouble::ErrorsPass | Trouble::Outage | Trouble::HangPasses => 2 + random.below(6),
            Trouble::Heal => 1 + random.below(3),
            Trouble::Slow | Trouble::AdminScrub | Trouble::AdminGrow => random.below(2),
            Trouble::AdminRemove | Trouble::AdminRejoin | Trouble::AdminAdd if redundant => random.below(3),
            Trouble::AdminFail | Trouble::AdminReplace | Trouble::Disconnect if redundant => random.below(2),
            _ => 0,
        };
    }
    for (trouble, stream, most) in [(Trouble::AdminEmpty, 0xe317, 5), (Trouble::StretchPasses, 0x57e7, 7)] {
        let place = Trouble::ALL.iter().position(|one| *one == trouble).expect("it is one of all");
        weights[place] = Random::new(config.seed, stream).below(most);
    }
    config.faults.per_life = 2.0 + random.unit() * 6.0;
    config.faults.refused_share = 0.5;
    config.faults.missing_share = if redundant { 0.3 * random.unit() } else { 0.0 };
    config.load.think = Nanos(log_uniform(1_000_000, 2_000_000_000, random));
    config.lives = (0..1 + random.below(4))
        .map(|_| LifePlan {
            end: match random.below(4) {
                0 => LifeEnd::Done,
                1 => LifeEnd::Time(Nanos(log_uniform(100_000_000, 300_000_000_000, random))),
                _ => LifeEnd::Change(log_uniform(20, 3_000, random)),
            },
            ..life(0.3, random)
        })
        .collect();
}

/// Drives leave and stay away, so that others can be missed while those that left are there. For runs that are told to
/// ([`SimConfig::ordeals`]).
pub(crate) fn ordeals(config: &mut SimConfig) {
    if config.array.level == RaidLevel::Raid0 {
        return;
    }
    let random = &mut Random::new(config.seed, 0x03dea1);
    for trouble in [Trouble::AdminFail, Trouble::Disconnect] {
        let place = Trouble::ALL.iter().position(|one| *one == trouble).expect("it is one of all");
        config.faults.weights[place] += random.below(6);
    }
    config.faults.missing_share = 0.4 * random.unit();
    config.faults.return_share = 0.1;
}

/// A life that a power cut ends under load.
fn life(heal_share: f64, random: &mut Random) -> LifePlan {
    LifePlan {
        end: LifeEnd::Change(log_uniform(20, 2_000, random)),
        from_opening: random.chance(0.2),
        crash: Crash::Power(PowerCut::Any),
        heals: random.chance(heal_share),
        verified_share: 1.0,
    }
}
