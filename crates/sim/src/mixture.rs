//! Mixtures: which kinds of trouble and which features of the array a run brings together.
//!
//! A kind is what an option of `cargo xtask sim` names. A run without such an option draws its mixture from the seed, so
//! that kinds meet which no option list has put together: three seeds of one mixture that had never been run once showed
//! a write cache that had stopped for good.
//!
//! Invariants: a mixture says everything that a seed alone does not, so the two reproduce a run; the order in which kinds
//! change a seed's options is fixed; kinds that cannot be combined are never drawn together.

use tier0_world::Random;

use crate::config::SimConfig;
use crate::system::System;

/// Share of the seeds that run the swarm alone: a mixture masks what only a run without it would find.
const PLAIN_SHARE: f64 = 0.25;
/// Share of the other seeds that have each of the features.
const FEATURE_SHARE: f64 = 0.35;
/// Share of the seeds with two groups whose extents move between them.
const MOVING_SHARE: f64 = 0.5;
/// Share of the seeds with two groups that have a tier.
const TIERING_SHARE: f64 = 0.5;
/// Share of the seeds without mishaps whose drives forget, which leaves out all other troubles.
const FORGETFUL_SHARE: f64 = 0.1;
/// Share of the seeds whose users come through a network.
const NETWORK_SHARE: f64 = 0.125;

/// The kinds that a run mixes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Mixture {
    /// The pool has a second group of sets.
    pub groups: bool,
    /// Extents move between the groups, where there are two.
    pub moving: bool,
    /// The second group is of flash drives, and administrators place and pin volumes in the tier of the two.
    pub tiering: bool,
    /// The pool has a flash read cache.
    pub flash: bool,
    /// The pool grows, and volumes come and go.
    pub growing: bool,
    /// Volumes are cloned.
    pub clones: bool,
    /// Caches are switched.
    pub caches: bool,
    /// What happens beyond redundancy.
    pub adversity: Adversity,
    /// Drives forget what they stored, whole stretches at once.
    pub forgetful: bool,
    /// Users come through NBD over a network whose connections die.
    pub network: bool,
}

/// What happens to a run beyond the faults that redundancy makes up for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Adversity {
    /// Nothing.
    #[default]
    None,
    /// Drives fail, hang and lose power for a while, any number of them at once ([`SimConfig::mishaps`]).
    Mishaps,
    /// Mishaps, and what operators and machines do to healthy drives ([`SimConfig::incidents`]).
    Incidents,
    /// Mishaps, and what [`SimConfig::ordeals`] says.
    Ordeals,
}

impl Mixture {
    /// No kind: the swarm alone.
    pub const PLAIN: Mixture = Mixture {
        groups: false,
        moving: false,
        tiering: false,
        flash: false,
        growing: false,
        clones: false,
        caches: false,
        adversity: Adversity::None,
        forgetful: false,
        network: false,
    };

    /// The mixture that a seed draws.
    pub fn draw(seed: u64) -> Mixture {
        let random = &mut Random::new(seed, 0x3147);
        let is_plain = random.chance(PLAIN_SHARE);
        let adversity = match random.below(10) {
            0..4 => Adversity::None,
            4..6 => Adversity::Mishaps,
            6..8 => Adversity::Incidents,
            _ => Adversity::Ordeals,
        };
        let mut feature = || random.chance(FEATURE_SHARE);
        let mixed = Mixture {
            groups: feature(),
            moving: false,
            tiering: false,
            flash: feature(),
            growing: feature(),
            clones: feature() && adversity.allows_clones(),
            caches: feature(),
            adversity,
            forgetful: random.chance(FORGETFUL_SHARE) && adversity == Adversity::None,
            network: random.chance(NETWORK_SHARE),
        };
        // Drawn last: what a seed draws beside it stays the same.
        let mixed = Mixture { moving: random.chance(MOVING_SHARE) && mixed.groups, ..mixed };
        let mixed = Mixture { tiering: random.chance(TIERING_SHARE) && mixed.groups, ..mixed };
        if is_plain { Mixture::PLAIN } else { mixed }
    }

    /// The options of `seed` with these kinds.
    ///
    /// # Panics
    /// As [`SimConfig::draw`].
    pub fn config<S: System>(self, seed: u64, system: &S) -> SimConfig {
        let when = |is_wanted: bool, change: fn(SimConfig) -> SimConfig| {
            move |config: SimConfig| if is_wanted { change(config) } else { config }
        };
        let config = SimConfig::draw(seed, system);
        let config = if self.groups { config.grouped(system) } else { config };
        let config = when(self.moving, SimConfig::moving)(config);
        let config = if self.tiering { config.tiering(system) } else { config };
        let config = if self.flash { config.flash_cached(system) } else { config };
        let config = when(self.clones, SimConfig::cloned)(config);
        let config = when(self.caches, SimConfig::switching)(config);
        let config = match self.adversity {
            Adversity::None => config,
            Adversity::Mishaps => config.mishaps(),
            Adversity::Incidents => config.incidents(),
            Adversity::Ordeals => config.ordeals(),
        };
        let config = when(self.forgetful, SimConfig::forgetful)(config);
        // Behind the kinds that draw the weights of all troubles.
        let config = when(self.growing, SimConfig::growing)(config);
        when(self.network, SimConfig::networked)(config)
    }

    /// The options of `cargo xtask sim` that force it, each after a space.
    pub fn options(self) -> String {
        match self == Mixture::PLAIN {
            true => " --plain".to_owned(),
            false => self.kinds(),
        }
    }

    /// The options of its kinds, each after a space.
    pub(crate) fn kinds(self) -> String {
        let adversity = match self.adversity {
            Adversity::None => "",
            Adversity::Mishaps => " --mishaps",
            Adversity::Incidents => " --incidents",
            Adversity::Ordeals => " --ordeals",
        };
        let kinds = [
            (self.groups, " --groups"),
            (self.moving, " --moving"),
            (self.tiering, " --tiering"),
            (self.flash, " --flash"),
            (self.growing, " --growing"),
            (self.clones, " --clones"),
            (self.caches, " --caches"),
            (true, adversity),
            (self.forgetful, " --forgetful"),
            (self.network, " --network"),
        ];
        kinds.iter().filter(|(is_there, _)| *is_there).map(|(_, option)| *option).collect()
    }
}

impl Adversity {
    /// Whether volumes may be cloned meanwhile.
    const fn allows_clones(self) -> bool {
        matches!(self, Adversity::None | Adversity::Mishaps)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SEEDS: std::ops::Range<u64> = 0..2_000;

    #[test]
    fn every_kind_is_drawn_with_and_without_every_other() {
        let drawn: Vec<String> = SEEDS.map(|seed| Mixture::draw(seed).options() + " ").collect();
        let kinds = ["groups", "flash", "growing", "caches", "mishaps", "incidents", "ordeals", "network"];
        let has = |options: &str, kind: &str| options.contains(&format!(" --{kind} "));
        let adversities = ["mishaps", "incidents", "ordeals"];
        for (one, other) in kinds.iter().flat_map(|one| kinds.iter().map(move |other| (*one, *other))) {
            let excludes = adversities.contains(&one) && adversities.contains(&other);
            if one == other || excludes {
                continue;
            }
            let with = drawn.iter().any(|options| has(options, one) && has(options, other));
            let without = drawn.iter().any(|options| has(options, one) && !has(options, other));
            assert!(with && without, "{one} is never drawn with, or never without, {other}");
        }
        for kind in ["clones", "forgetful", "moving", "tiering", "plain"] {
            assert!(drawn.iter().any(|options| has(options, kind)), "{kind} is never drawn");
        }
    }

    #[test]
    fn kinds_that_exclude_each_other_are_not_drawn_together() {
        for mixture in SEEDS.map(Mixture::draw) {
            assert!(!mixture.clones || mixture.adversity.allows_clones(), "{}", mixture.options());
            assert!(!mixture.forgetful || mixture.adversity == Adversity::None, "{}", mixture.options());
        }
    }

    #[test]
    fn options_name_every_kind_of_a_mixture() {
        let mixture =
            Mixture { groups: true, flash: true, adversity: Adversity::Incidents, ..Mixture::PLAIN };
        assert_eq!(mixture.options(), " --groups --flash --incidents");
        assert_eq!(Mixture::PLAIN.options(), " --plain");
    }
}
