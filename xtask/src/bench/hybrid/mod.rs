//! `cargo xtask bench hybrid`: two slow disks and an SSD as a hybrid, by bcache, by dm-cache and by tier0.
//!
//! The drives are modelled against the wall clock. A guest under software emulation has them as virtio drives, through qemu's
//! NBD client, and makes bcache or dm-cache (smq) of them on RAID 0; or it has a volume of tier0, which has the same
//! drives and uses the SSD as a cache or as a tier. All have as many bytes of the SSD, tier0 less by what it has in memory, where the others keep no data. Neither data
//! nor dirty data are redundant. For all, the working set lies at the outer edge of the disks.
//!
//! What counts is what each stack leaves to the disks; IOPS come second, since emulation bounds them: the ceiling of each
//! stack on memory stands beside.

mod backing;
pub(crate) mod drives;
mod figures;
mod guest;
mod sizes;

use std::fmt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use clap::{Args, ValueEnum};

pub(super) use self::backing::load_average;
use self::backing::{Backing, Ground, seconds_since};
use self::figures::{Figures, Results};
use self::guest::{Guest, Image};
use self::sizes::{DISK, DISKS, MEMORY_MIB, SSD, Sizes};
use crate::error::BenchError;
use crate::server::build_tier0;
use crate::{clock, machine};

/// What to run.
#[derive(Args)]
pub(crate) struct Options {
    /// Rounds; in each every load goes through every stack, which takes three to four minutes
    #[arg(long, default_value_t = 3)]
    runs: u32,
    /// A load; may be given again [default: both]
    #[arg(long, value_enum)]
    load: Vec<Load>,
    /// A stack; may be given again [default: bcache, dm-cache, tier0, tier0-tier]
    #[arg(long, value_enum)]
    stack: Vec<Stack>,
    /// The working set, MiB; an eighth of it is the cache
    #[arg(long, value_name = "MIB", default_value_t = 1024, value_parser = clap::value_parser!(u64).range(512..=16384))]
    working_set: u64,
    /// Seconds of each measurement; warming up takes four times as long, settling after the hot set was shifted twice
    #[arg(long, default_value_t = 15)]
    seconds: u32,
    /// Requests under way
    #[arg(long, default_value_t = 16)]
    queue_depth: u32,
    /// A trial: one run of zipf on 512 MiB, 5 s each
    #[arg(long)]
    short: bool,
    /// A tier0 that is built already [default: build it]
    #[arg(long, value_name = "PATH")]
    tier0: Option<PathBuf>,
    /// Where to put the drives' files, sparse ones of 1.1 TB [default: the build's directory]
    #[arg(long, value_name = "DIR")]
    dir: Option<PathBuf>,
}

/// Where the hot data are.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Load {
    /// Zipf with theta 0.9, the hot blocks scattered
    Zipf,
    /// Nine tenths of the requests to one tenth of the data, which lies together
    HotCold,
}

impl Load {
    /// For fio: the hot set at first, and where it lies after it was shifted.
    fn distributions(self) -> (&'static str, &'static str) {
        match self {
            Load::Zipf => ("zipf:0.9:0.11", "zipf:0.9:0.61"),
            Load::HotCold => ("zoned:90/10:10/90", "zoned:5/50:90/10:5/40"),
        }
    }
}

impl fmt::Display for Load {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Load::Zipf => "zipf 0.9",
            Load::HotCold => "hot/cold",
        })
    }
}

/// What makes a hybrid of the drives.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Stack {
    /// The disks alone
    Disks,
    Bcache,
    DmCache,
    /// tier0's flash cache
    Tier0,
    /// tier0's performance tier
    Tier0Tier,
}

impl Stack {
    /// For the guest's job.
    fn name(self) -> &'static str {
        match self {
            Stack::Disks => "disks",
            Stack::Bcache => "bcache",
            Stack::DmCache => "dm-cache",
            Stack::Tier0 | Stack::Tier0Tier => "tier0",
        }
    }

    /// In tables.
    fn title(self) -> &'static str {
        match self {
            Stack::Tier0 => "tier0 as cache",
            Stack::Tier0Tier => "tier0 as tier",
            other => other.name(),
        }
    }

    /// Whether the guest gets a volume of tier0's.
    fn is_tier0(self) -> bool {
        matches!(self, Stack::Tier0 | Stack::Tier0Tier)
    }
}

/// What is measured of a stack, in this order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    Steady,
    Cut,
    Shifted,
}

impl Phase {
    const ALL: [Phase; 3] = [Phase::Steady, Phase::Cut, Phase::Shifted];

    /// For the guest's job.
    fn name(self) -> &'static str {
        match self {
            Phase::Steady => "steady",
            Phase::Cut => "cut",
            Phase::Shifted => "shifted",
        }
    }
}

impl fmt::Display for Phase {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Phase::Steady => "steady",
            Phase::Cut => "after a power cut",
            Phase::Shifted => "hot set shifted",
        })
    }
}

/// Runs it and prints.
pub(crate) fn run(options: &Options) -> Result<(), BenchError> {
    let bench = Bench::new(options)?;
    println!("{}, load average {}", machine::describe(), load_average());
    println!("{}", bench.describe());
    let stacks = match &options.stack[..] {
        [] => vec![Stack::Bcache, Stack::DmCache, Stack::Tier0, Stack::Tier0Tier],
        stacks => stacks.to_vec(),
    };
    let loads = match &options.load[..] {
        [] if options.short => vec![Load::Zipf],
        [] => vec![Load::Zipf, Load::HotCold],
        loads => loads.to_vec(),
    };
    let mut results = Results::default();
    for &stack in &stacks {
        let ceiling = bench.ceiling(stack)?;
        eprintln!("{}: ceiling {:.0} IOPS (load average {})", stack.title(), ceiling.iops(), load_average());
        results.ceilings.push((stack, ceiling));
    }
    let runs = if options.short { 1 } else { options.runs };
    for run in 0..runs {
        for &load in &loads {
            // Each begins once, in turn: a shared machine is faster and slower by the minute.
            for turn in 0..stacks.len() {
                let stack = stacks[(turn + run as usize) % stacks.len()];
                let began = clock::wall_s();
                for (phase, figures) in bench.phases(stack, load)? {
                    eprintln!("run {}, {load}, {}, {phase}: {figures}", run + 1, stack.title());
                    results.add(load, phase, stack, figures);
                }
                eprintln!("took {:.0} s (load average {})", seconds_since(began), load_average());
            }
        }
    }
    results.print();
    Ok(())
}

/// What all measurements have in common.
struct Bench {
    image: Image,
    program: PathBuf,
    place: PathBuf,
    sizes: Sizes,
    seconds: u32,
    queue_depth: u32,
}

impl Bench {
    fn new(options: &Options) -> Result<Bench, BenchError> {
        let program = match &options.tier0 {
            Some(program) => program.clone(),
            None => build_tier0()?,
        };
        let own = std::env::current_exe().map_err(BenchError::system("the own path is unknown"))?;
        let beside = own.parent().and_then(Path::parent).expect("the program lies in target/PROFILE");
        Ok(Bench {
            image: Image::get(beside)?,
            program,
            place: options.dir.clone().unwrap_or_else(|| beside.to_owned()),
            sizes: Sizes::of(if options.short { 512 } else { options.working_set }),
            seconds: if options.short { 5 } else { options.seconds },
            queue_depth: options.queue_depth,
        })
    }

    fn describe(&self) -> String {
        let Sizes { working_set_mib } = self.sizes;
        format!(
            "{DISKS} {DISK} in RAID 0 and one {SSD}, modelled; {working_set_mib} MiB at the outer edge of the disks; \
             {} MiB of SSD, of which tier0 has {} for its log and {} for its flash cache or its tier, and {MEMORY_MIB} MiB of memory; \
             8 KiB, 90 % reads, {} under way, {} s each",
            self.sizes.cache_mib(),
            self.sizes.log_mib(),
            self.sizes.flash_cache_mib(),
            self.queue_depth,
            self.seconds
        )
    }

    /// The same load with memory in the place of the drives.
    fn ceiling(&self, stack: Stack) -> Result<Figures, BenchError> {
        let directory =
            tempfile::tempdir_in("/dev/shm").map_err(BenchError::system("no directory on /dev/shm"))?;
        let ground = Ground { is_modelled: false, ..self.ground(directory.path()) };
        Backing::create(stack, ground)?;
        let mut part = self.start(stack, Load::Zipf, ground, "make fill warm steady")?;
        part.measure(Phase::Steady)
    }

    /// Warm and steady, after a power cut, and with another hot set.
    fn phases(&self, stack: Stack, load: Load) -> Result<[(Phase, Figures); 3], BenchError> {
        let directory = tempfile::tempdir_in(&self.place)
            .map_err(BenchError::system("no directory for the files can be made; name one with --dir"))?;
        let ground = self.ground(directory.path());
        Backing::create(stack, ground)?;
        let mut part = self.start(stack, load, ground, "make fill warm steady go")?;
        let steady = part.measure(Phase::Steady)?;
        part.guest.until("going")?;
        // Of the load that the power cut ends.
        clock::pause(Duration::from_secs(5));
        drop(part);
        let mut part = self.start(stack, load, ground, "open cut settle shifted")?;
        let cut = part.measure(Phase::Cut)?;
        let shifted = part.measure(Phase::Shifted)?;
        Ok([(Phase::Steady, steady), (Phase::Cut, cut), (Phase::Shifted, shifted)])
    }

    fn ground<'a>(&'a self, directory: &'a Path) -> Ground<'a> {
        Ground { directory, is_modelled: true, sizes: self.sizes, program: &self.program }
    }

    fn start(&self, stack: Stack, load: Load, ground: Ground<'_>, steps: &str) -> Result<Part, BenchError> {
        let backing = Backing::start(stack, ground)?;
        let (hot, shifted) = load.distributions();
        let settings = format!(
            "stack={}\nsteps=\"{steps}\"\nhot={hot}\nshifted={shifted}\nseconds={}\nwarm_seconds={}\n\
             settle_seconds={}\ndepth={}\n",
            stack.name(),
            self.seconds,
            if ground.is_modelled { self.seconds * 4 } else { self.seconds },
            self.seconds * 2,
            self.queue_depth,
        );
        let guest = self.image.boot(ground.directory, &backing.drives(ground), &settings)?;
        Ok(Part { guest, stack, backing })
    }
}

/// What runs from one power cut to the next; dropping it is one, of the guest first.
struct Part {
    guest: Guest,
    stack: Stack,
    backing: Backing,
}

impl Part {
    /// Waits for a phase and counts meanwhile.
    fn measure(&mut self, phase: Phase) -> Result<Figures, BenchError> {
        let mut status = self.guest.until(&format!("begin {}", phase.name()))?;
        let before = self.backing.counts()?;
        let load = self.guest.until(&format!("end {}", phase.name()))?;
        let counts = self.backing.counts()?.since(before);
        status.extend(self.guest.until(&format!("done {}", phase.name()))?);
        Figures::of(self.stack, &load.join("\n"), &status, counts)
    }
}
