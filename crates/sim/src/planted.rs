//! `cargo xtask sim --planted`: the bugs that are planted in the array, and whether the simulator finds them.
//!
//! A bug is active only on the thread that runs a seed, while it runs it; see [`tier0_world::PlantedBug`]. A bug counts
//! as found by a seed that fails with it and is clean without.

#[cfg(debug_assertions)]
pub(crate) use with::*;
#[cfg(not(debug_assertions))]
pub(crate) use without::*;

#[cfg(debug_assertions)]
mod with {
    use std::ops::Range;

    use tier0_sim::sweep::{run_caught, sweep};
    use tier0_sim::{Array, Failure, Mixture, RunReport, SimConfig};
    use tier0_world::{PlantedBug, plant};

    /// What stands for all bugs on the command line.
    pub(crate) const ALL: &str = "all";

    /// Whether there is a bug of that name.
    pub(crate) fn check(name: &str) -> Result<(), String> {
        let names: Vec<String> = PlantedBug::ALL.iter().map(|bug| format!("{bug:?}")).collect();
        if name == ALL || named(name).is_some() {
            return Ok(());
        }
        Err(format!("there is no bug {name:?}; plant one of {}", names.join(", ")))
    }

    /// Does something while the bug of that name, if one is given, is active.
    pub(crate) fn with_bug<T>(name: Option<&str>, act: impl FnOnce() -> T) -> T {
        let _planted = name.and_then(named).map(plant);
        act()
    }

    /// The options of `seed` that show the bug of that name, if there is one.
    pub(crate) fn to_find(name: &str, seed: u64) -> Option<SimConfig> {
        named(name).map(|bug| SimConfig::to_find(bug, seed, &Array))
    }

    /// Looks for every bug among these seeds, with the kinds of `mixture` or with those that show it, and prints a line for
    /// each; true if one is not found.
    pub(crate) fn search(seeds: &Range<u64>, threads: usize, mixture: Option<Mixture>) -> bool {
        let mut missed = false;
        println!("{:<26} {:>6} {:>6}  what the simulator says", "bug", "seed", "runs");
        for bug in PlantedBug::ALL {
            let report = sweep(seeds.clone(), threads, 1, |seed| find(bug, seed, mixture), |_| {});
            match report.failures.first() {
                Some(failure) => {
                    let name = format!("{bug:?}");
                    println!("{name:<26} {:>6} {:>6}  {}", failure.seed, report.runs, failure.sentence);
                }
                None => {
                    missed = true;
                    println!("{:<26} {:>6} {:>6}  nothing", format!("{bug:?}"), "-", report.runs);
                }
            }
        }
        missed
    }

    /// A failure that is due to the bug alone.
    fn find(bug: PlantedBug, seed: u64, mixture: Option<Mixture>) -> Result<RunReport, Box<Failure>> {
        let to_find = || SimConfig::to_find(bug, seed, &Array);
        let config = mixture.map_or_else(to_find, |mixture| mixture.config(seed, &Array));
        let planted = plant(bug);
        let report = run_caught(&Array, &config);
        drop(planted);
        match report {
            Ok(report) => Ok(report),
            Err(failure) => match run_caught(&Array, &config) {
                Ok(_) => Err(failure),
                // It fails anyway, which proves nothing.
                Err(_) => Ok(RunReport::default()),
            },
        }
    }

    fn named(name: &str) -> Option<PlantedBug> {
        PlantedBug::ALL.into_iter().find(|bug| format!("{bug:?}").eq_ignore_ascii_case(name))
    }
}

#[cfg(not(debug_assertions))]
mod without {
    use std::ops::Range;

    use tier0_sim::{Mixture, SimConfig};

    /// What stands for all bugs on the command line.
    pub(crate) const ALL: &str = "all";

    /// There is no bug in this build.
    pub(crate) fn check(_: &str) -> Result<(), String> {
        Err("this build has no planted bugs; build it with debug assertions, as `cargo xtask sim` does"
            .to_owned())
    }

    /// Does something.
    pub(crate) fn with_bug<T>(_: Option<&str>, act: impl FnOnce() -> T) -> T {
        act()
    }

    /// No options show a bug.
    pub(crate) fn to_find(_: &str, _: u64) -> Option<SimConfig> {
        None
    }

    /// Nothing to look for, and [`check`] has said so.
    pub(crate) fn search(_: &Range<u64>, _: usize, _: Option<Mixture>) -> bool {
        true
    }
}
