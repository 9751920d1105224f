//! What a stack stands on: bare drives that the guest's own stack makes a hybrid of, or tier0 with the same drives and a
//! volume; and what the drives have done.

use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use serde_json::Value;

use super::super::{served, write};
use super::Stack;
use super::sizes::{DISK, DISKS, MEMORY_MIB, POOLS, SSD, Sizes};
use crate::clock;
use crate::error::BenchError;
use crate::server::{Address, Server, tier0};

/// What all drives of a kind have done.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Counts {
    pub(super) disk_reads: f64,
    pub(super) disk_writes: f64,
    pub(super) ssd_reads: f64,
    pub(super) ssd_writes: f64,
    /// tier0 alone: lookups of its caches, and those that found something.
    pub(super) lookups: f64,
    pub(super) hits: f64,
}

impl Counts {
    pub(super) fn since(self, earlier: Counts) -> Counts {
        Counts {
            disk_reads: self.disk_reads - earlier.disk_reads,
            disk_writes: self.disk_writes - earlier.disk_writes,
            ssd_reads: self.ssd_reads - earlier.ssd_reads,
            ssd_writes: self.ssd_writes - earlier.ssd_writes,
            lookups: self.lookups - earlier.lookups,
            hits: self.hits - earlier.hits,
        }
    }
}

/// Where the drives' data lie, and whether they have models.
#[derive(Clone, Copy)]
pub(super) struct Ground<'a> {
    pub(super) directory: &'a Path,
    /// Without them, memory takes the place of modelled drives: the ceiling.
    pub(super) is_modelled: bool,
    pub(super) sizes: Sizes,
    pub(super) program: &'a Path,
}

/// Running servers of drives or of a volume; dropping it is a power cut.
pub(super) enum Backing {
    Bare(Bare),
    Volume(Volume),
}

impl Backing {
    /// Makes what is needed before the first start.
    pub(super) fn create(stack: Stack, ground: Ground<'_>) -> Result<(), BenchError> {
        if !stack.is_tier0() {
            return Ok(());
        }
        write(&array(ground), &array_file(stack, ground))?;
        served::create(ground.program, &array(ground))?;
        match stack {
            Stack::Tier0Tier => limit_tier(ground),
            _ => Ok(()),
        }
    }

    pub(super) fn start(stack: Stack, ground: Ground<'_>) -> Result<Backing, BenchError> {
        if !stack.is_tier0() {
            return Bare::start(ground).map(Backing::Bare);
        }
        let server = tier0(ground.program, &array(ground), &Address::Unix(socket(ground)))?;
        let (program, array) = (ground.program.to_owned(), array(ground));
        Ok(Backing::Volume(Volume { _server: server, program, array }))
    }

    /// The drives that the guest gets: serial numbers and addresses.
    pub(super) fn drives(&self, ground: Ground<'_>) -> Vec<(String, String)> {
        let address = |export: &str| format!("nbd+unix:///{export}?socket={}", socket(ground).display());
        match self {
            Backing::Volume(_) => vec![("volume".into(), address("lun0"))],
            Backing::Bare(_) => {
                let names = (0..DISKS).map(|number| format!("disk{number}")).chain(["ssd".into()]);
                names.map(|name| (name.clone(), address(&name))).collect()
            }
        }
    }

    pub(super) fn counts(&mut self) -> Result<Counts, BenchError> {
        match self {
            Backing::Bare(bare) => bare.counts(),
            Backing::Volume(volume) => volume.counts(),
        }
    }
}

/// The process that serves bare drives.
pub(super) struct Bare {
    child: Child,
    answers: BufReader<std::process::ChildStdout>,
}

impl Bare {
    fn start(ground: Ground<'_>) -> Result<Bare, BenchError> {
        let own = std::env::current_exe().map_err(BenchError::system("the own path is unknown"))?;
        let socket = socket(ground);
        // What a killed process leaves.
        let _ = std::fs::remove_file(&socket);
        let mut command = Command::new(own);
        command.args([
            "bench",
            "hybrid-drives",
            "--working-set-mib",
            &ground.sizes.working_set_mib.to_string(),
        ]);
        command.arg("--socket").arg(&socket);
        if ground.is_modelled {
            command.arg("--dir").arg(ground.directory);
        }
        let child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn();
        let mut child = child.map_err(BenchError::system("the drives cannot be served"))?;
        let answers = BufReader::new(child.stdout.take().expect("its stdout is a pipe"));
        let mut bare = Bare { child, answers };
        // It answers when it listens.
        bare.counts()?;
        Ok(bare)
    }

    fn counts(&mut self) -> Result<Counts, BenchError> {
        let system = || BenchError::system("the server of the drives does not answer; see its words above");
        writeln!(self.child.stdin.as_mut().expect("its stdin is a pipe")).map_err(system())?;
        let mut line = String::new();
        self.answers.read_line(&mut line).map_err(system())?;
        let all: Value = serde_json::from_str(&line)
            .map_err(|error| BenchError::Failed(format!("the server of the drives has ended: {error}")))?;
        let disks = |field: &str| -> f64 {
            (0..DISKS).filter_map(|number| all[format!("disk{number}")][field].as_f64()).sum()
        };
        let ssd = |field: &str| all["ssd"][field].as_f64().unwrap_or_default();
        Ok(Counts {
            disk_reads: disks("reads"),
            disk_writes: disks("writes"),
            ssd_reads: ssd("reads"),
            ssd_writes: ssd("writes"),
            ..Counts::default()
        })
    }
}

impl Drop for Bare {
    fn drop(&mut self) {
        // It may have ended by itself; both calls then fail, and nothing is left to do.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A volume that tier0 serves.
pub(super) struct Volume {
    _server: Server,
    program: PathBuf,
    array: PathBuf,
}

impl Volume {
    fn counts(&self) -> Result<Counts, BenchError> {
        let status = served::status(&self.program, &self.array)?;
        let pool = &status["pools"][0];
        let drives = pool["drives"].as_array().map(Vec::as_slice).unwrap_or_default();
        let count = |class: &str, op: &str| -> f64 {
            let of_class = drives.iter().filter(|drive| drive["class"] == class);
            of_class.filter_map(|drive| drive["io"][op]["count"].as_f64()).sum()
        };
        let io = served::io(&self.program, &self.array)?;
        let on_tier = io["pools"][0]["tier"]["reads_fast"].as_f64().unwrap_or_default();
        let memory = |field: &str| pool["read_cache"][field].as_f64().unwrap_or_default();
        let found = ["read_hits", "write_hits", "prefetch_hits"].into_iter().map(memory).sum::<f64>();
        Ok(Counts {
            disk_reads: count("disk", "read"),
            disk_writes: count("disk", "write"),
            ssd_reads: count("flash", "read"),
            ssd_writes: count("flash", "write"),
            lookups: found + memory("misses"),
            hits: found + pool["flash_cache"]["hits"].as_f64().unwrap_or_default() + on_tier,
        })
    }
}

fn socket(ground: Ground<'_>) -> PathBuf {
    ground.directory.join("s")
}

fn array(ground: Ground<'_>) -> PathBuf {
    ground.directory.join("array.toml")
}

/// Leaves the tier as much of the SSD as the cache has.
fn limit_tier(ground: Ground<'_>) -> Result<(), BenchError> {
    let _server = tier0(ground.program, &array(ground), &Address::Unix(socket(ground)))?;
    served::limit_tier(ground.program, &array(ground), ground.sizes.flash_cache_mib() << 20)
}

/// Two disks in RAID 0, log and flash cache or tier on the SSD. Pools that hold nothing take their shares of the least memory, so that
/// the one that is measured has little.
fn array_file(stack: Stack, ground: Ground<'_>) -> String {
    let sizes = ground.sizes;
    let (disk, ssd) = if ground.is_modelled {
        (format!("model = \"{DISK}\"\nsize = \"1100GB\""), format!("model = \"{SSD}\"\nsize = \"450GB\""))
    } else {
        // Beside its data a drive has metadata and room for chunklets.
        let disk = sizes.working_set_mib / DISKS + 512;
        let ssd = sizes.cache_mib() + 256;
        (format!("size = \"{disk}MiB\"\nclass = \"disk\""), format!("size = \"{ssd}MiB\"\nclass = \"flash\""))
    };
    let idle: String = (1..POOLS)
        .map(|number| {
            format!(
                "[[drive]]\nname = \"idle{number}\"\npath = \"idle{number}.img\"\nsize = \"64MiB\"\n\
                 [[pool]]\nname = \"idle{number}\"\ndrives = [\"idle{number}\"]\nraid = \"raid0\"\nset_size = 1\n\
                 log = \"1MiB\"\n"
            )
        })
        .collect();
    let groups = match stack {
        Stack::Tier0Tier => format!(
            "[[pool.group]]\nname = \"disks\"\ndrives = [\"disk*\"]\nraid = \"raid0\"\nset_size = {DISKS}\nstripe_unit = \"64KiB\"\n\
             [[pool.group]]\nname = \"flash\"\ndrives = [\"ssd\"]\nraid = \"raid0\"\nset_size = 1\nstripe_unit = \"64KiB\"\n"
        ),
        _ => String::new(),
    };
    let (layout, use_of_flash, place) = match stack {
        Stack::Tier0Tier => (String::new(), String::new(), "group = \"disks\"\nplace = \"auto\"\n"),
        _ => (
            format!("drives = [\"disk*\"]\nraid = \"raid0\"\nset_size = {DISKS}\nstripe_unit = \"64KiB\"\n"),
            format!("flash_cache = \"{}MiB\"\nflash_cache_drives = [\"ssd\"]\n", sizes.flash_cache_mib()),
            "",
        ),
    };
    format!(
        "[array]\nname = \"hybrid\"\ncores = 1\nmemory = \"{memory}MiB\"\n\
         [[drive]]\nname = \"disk{{n}}\"\ncount = {DISKS}\npath = \"disk{{n}}.img\"\n{disk}\n\
         [[drive]]\nname = \"ssd\"\npath = \"ssd.img\"\n{ssd}\n\
         [[pool]]\nname = \"pool0\"\n{layout}chunklet = \"16MiB\"\nextent = \"1MiB\"\n\
         log = \"{log}MiB\"\nlog_drives = [\"ssd\"]\n{use_of_flash}flash_cache_writes = {WRITES_A_DAY}\n{groups}\
         [[volume]]\nname = \"lun0\"\npool = \"pool0\"\nsize = \"{volume}MiB\"\n{place}\
         {idle}\
         [nbd]\nlisten = [\"unix:s\"]\n",
        memory = MEMORY_MIB * POOLS,
        log = sizes.log_mib(),
        volume = sizes.working_set_mib,
    )
}

/// How often a day tier0's flash cache, or the fast group, may be written over: without a limit that counts, as the peers have none.
const WRITES_A_DAY: u32 = 100_000;

/// One line of the machine's load, for progress.
pub(in super::super) fn load_average() -> String {
    let text = std::fs::read_to_string("/proc/loadavg").unwrap_or_default();
    text.split(' ').next().unwrap_or("unknown").to_owned()
}

/// Seconds since `since`.
pub(super) fn seconds_since(since: f64) -> f64 {
    clock::wall_s() - since
}
