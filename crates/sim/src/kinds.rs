//! The kinds of trouble that the command line asks for.

use clap::Args;
use tier0_sim::{Adversity, Mixture};

/// The kinds. Without one a run draws its mixture from its seed.
#[derive(Args)]
pub(crate) struct Kinds {
    /// Run the swarm alone, without any of the kinds below; without an option of a kind each seed draws its mixture of them
    #[arg(long, conflicts_with_all = [
        "crash_points", "growing", "clones", "caches", "flash", "forgetful", "mishaps", "incidents", "ordeals", "groups",
        "moving", "tiering", "network",
    ])]
    plain: bool,
    /// Let pools grow, and volumes come and go
    #[arg(long)]
    pub(crate) growing: bool,
    /// Let volumes be cloned, and the clones be written to and deleted
    #[arg(long, conflicts_with_all = ["incidents", "ordeals"])]
    pub(crate) clones: bool,
    /// Let caches of volumes and of the pool be switched
    #[arg(long, conflicts_with = "crash_points")]
    caches: bool,
    /// Give the pool a flash read cache
    #[arg(long)]
    pub(crate) flash: bool,
    /// Let drives forget what they stored, 128 KiB at once
    #[arg(long, conflicts_with = "crash_points")]
    forgetful: bool,
    /// Let drives fail, hang and lose power for a while, beyond redundancy too, and try starts that must be refused
    #[arg(long, conflicts_with = "crash_points")]
    mishaps: bool,
    /// As --mishaps, and let drives be pulled and taken back, be put back to older images, and the process stand still
    #[arg(long, conflicts_with = "crash_points")]
    incidents: bool,
    /// As --mishaps, and let the power fail while the array is created, a drive lie about its flushes, operators be
    /// interrupted, and lost drives be believed again
    #[arg(long, conflicts_with_all = ["crash_points", "incidents"])]
    ordeals: bool,
    /// Give the pool a second group of sets
    #[arg(long, conflicts_with = "crash_points")]
    groups: bool,
    /// Let extents move between the two groups of --groups
    #[arg(long, conflicts_with = "crash_points", requires = "groups")]
    moving: bool,
    /// Make the second group of --groups flash, and let administrators place and pin volumes in the tier of both
    #[arg(long, conflicts_with = "crash_points", requires = "groups")]
    tiering: bool,
    /// Let all users come through NBD over a network whose connections die
    #[arg(long, conflicts_with = "crash_points")]
    network: bool,
}

impl Kinds {
    /// The mixture that is asked for, if one is.
    pub(crate) fn mixture(&self) -> Option<Mixture> {
        let adversity = match () {
            () if self.ordeals => Adversity::Ordeals,
            () if self.incidents => Adversity::Incidents,
            () if self.mishaps => Adversity::Mishaps,
            () => Adversity::None,
        };
        let mixture = Mixture {
            groups: self.groups,
            moving: self.moving,
            tiering: self.tiering,
            flash: self.flash,
            growing: self.growing,
            clones: self.clones,
            caches: self.caches,
            adversity,
            forgetful: self.forgetful,
            network: self.network,
        };
        (self.plain || mixture != Mixture::PLAIN).then_some(mixture)
    }
}

#[cfg(test)]
mod tests {
    use clap::{CommandFactory, FromArgMatches, Parser};

    use super::*;

    #[derive(Parser)]
    struct Line {
        #[command(flatten)]
        kinds: Kinds,
        #[arg(long)]
        crash_points: bool,
    }

    fn parse(options: &str) -> Option<Mixture> {
        let words = std::iter::once("sim").chain(options.split_whitespace());
        let matches = Line::command().try_get_matches_from(words).expect("the options go together");
        let line = Line::from_arg_matches(&matches).expect("it parses");
        assert!(!line.crash_points);
        line.kinds.mixture()
    }

    #[test]
    fn the_options_of_every_drawn_mixture_ask_for_it() {
        for mixture in (0..1_000).map(Mixture::draw) {
            assert_eq!(parse(&mixture.options()), Some(mixture), "{}", mixture.options());
        }
        assert_eq!(parse(""), None);
    }
}
