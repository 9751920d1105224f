//! The array: its file in three forms, its directory, and what it counts.

use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;
use tier0_torture::process::Running;

use super::super::super::{served, write};
use super::{Failed, Io};
use crate::error::BenchError;
use crate::server::{Address, Server, tier0};

/// The disks, in the catalogue: with a buffer of 16 MiB each, which the database does not fit. Two, so that they are what PostgreSQL
/// waits for, and not this machine's processors.
const DISK: &str = "sas-15k-146gb-sff";
const DISKS: u32 = 2;
const SSD: &str = "ssd-sas-400gb";
const SSDS: u32 = 2;
/// Room of the sparse files, more than the models have.
const DISK_FILE: &str = "150GB";
const SSD_FILE: &str = "450GB";
/// Accesses to the hot accounts, percent.
pub(super) const HOT_ACCESSES: u32 = 90;
/// The accounts that are hot, percent, the first ones.
pub(super) const HOT_ACCOUNTS: u32 = 30;
/// A hundred thousand accounts and what belongs to them (pgbench's scale of 1) take so many KiB with their index, measured with
/// `pg_database_size`.
const SCALE_KIB: u32 = 15_300;
/// Beside the tables: PostgreSQL's log, what grows, the file system.
const VOLUME_MORE_MIB: u32 = 512;
/// Writes a day, as a multiple of the flash cache or of the fast group's size: what is compared is what flash does for disks, and
/// this flash is a small part of two SSDs.
const WRITES_A_DAY: u32 = 1000;

/// How flash is used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Use {
    /// For the write log alone.
    Nothing,
    /// As a read cache.
    Cache,
    /// As a tier.
    Tier,
}

impl Use {
    pub(super) fn name(self) -> &'static str {
        match self {
            Use::Nothing => "disks only",
            Use::Cache => "+ read cache",
            Use::Tier => "+ tier",
        }
    }

    fn directory(self) -> &'static str {
        match self {
            Use::Nothing => "disks",
            Use::Cache => "cache",
            Use::Tier => "tier",
        }
    }
}

/// How much there is of everything.
pub(super) struct Sizes {
    /// pgbench's.
    pub(super) scale: u32,
    /// PostgreSQL's own.
    pub(super) buffers_mib: u32,
    /// The array's.
    pub(super) memory_mib: u32,
    /// As cache or as tier.
    pub(super) flash_mib: u32,
}

impl Sizes {
    /// The database is four times the memory of array and PostgreSQL, and the hot accounts fit the flash.
    pub(super) const WHOLE: Sizes = Sizes { scale: 68, buffers_mib: 128, memory_mib: 128, flash_mib: 384 };
    pub(super) const SHORT: Sizes = Sizes { scale: 26, buffers_mib: 32, memory_mib: 64, flash_mib: 144 };

    pub(super) fn database_mib(&self) -> u32 {
        self.scale * SCALE_KIB / 1024
    }

    pub(super) fn volume_mib(&self) -> u32 {
        (self.database_mib() + VOLUME_MORE_MIB).next_multiple_of(64)
    }

    /// PostgreSQL with its processes, and what is left is the page cache's.
    pub(super) fn group_mib(&self) -> u32 {
        self.buffers_mib + 64
    }

    /// What PostgreSQL is told.
    pub(super) fn settings(&self) -> Vec<String> {
        let buffers = format!("shared_buffers={}MB", self.buffers_mib);
        [&buffers, "max_wal_size=128MB", "checkpoint_timeout=60s", "autovacuum=off", "max_connections=20"]
            .map(str::to_owned)
            .to_vec()
    }
}

/// What stands in descriptions.
pub(super) fn drives() -> String {
    format!("{DISKS} x {DISK} in RAID 1, {SSDS} x {SSD} in RAID 1 with the log, modelled")
}

/// What the drives of an array file are.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Drives {
    /// Files.
    Files,
    /// Files behind models, against the wall clock.
    ModelledFiles,
    /// Models in virtual time.
    Models,
}

/// The array file. `other_bytes` is what another volume takes of the flash group, so that the tier has no more than it should.
fn text(kind: Use, sizes: &Sizes, drives: Drives, other_bytes: Option<u64>) -> String {
    let drive = |name: &str, count: u32, model: &str, file: &str, class: &str| {
        let place = format!("path = \"{name}{{n}}.img\"\nsize = \"{file}\"\nclass = \"{class}\"\n");
        let place = if drives == Drives::Models { String::new() } else { place };
        let model = format!("model = \"{model}\"\n");
        let model = if drives == Drives::Files { String::new() } else { model };
        format!("[[drive]]\nname = \"{name}{{n}}\"\ncount = {count}\n{place}{model}")
    };
    let cache = match kind {
        Use::Cache => {
            format!("flash_cache = \"{}MiB\"\nflash_cache_drives = [\"ssd*\"]\n", sizes.flash_mib)
        }
        Use::Nothing | Use::Tier => String::new(),
    };
    let place = if kind == Use::Tier { "auto" } else { "slow" };
    let other = other_bytes.map_or_else(String::new, |bytes| {
        format!("[[volume]]\nname = \"other\"\nsize = \"{bytes}B\"\ngroup = \"flash\"\n")
    });
    let listen = if drives == Drives::Models { "" } else { "[nbd]\nlisten = [\"unix:s\"]\n" };
    format!(
        "[array]\nname = \"pg\"\ncores = 1\nmemory = \"{memory}MiB\"\n\
         {disks}{ssds}\
         [[pool]]\nname = \"pool0\"\nlog = \"64MiB\"\nlog_drives = [\"ssd*\"]\nchunklet = \"16MiB\"\nextent = \"1MiB\"\n\
         flash_cache_writes = {WRITES_A_DAY}\n{cache}\
         [[pool.group]]\nname = \"disks\"\ndrives = [\"disk*\"]\nraid = \"raid1\"\nset_size = {DISKS}\n\
         [[pool.group]]\nname = \"flash\"\ndrives = [\"ssd*\"]\nraid = \"raid1\"\nset_size = {SSDS}\n\
         [[volume]]\nname = \"lun0\"\nsize = \"{volume}MiB\"\ngroup = \"disks\"\nplace = \"{place}\"\n{other}{listen}",
        memory = sizes.memory_mib,
        disks = drive("disk", DISKS, DISK, DISK_FILE, "disk"),
        ssds = drive("ssd", SSDS, SSD, SSD_FILE, "flash"),
        volume = sizes.volume_mib(),
    )
}

/// The twin's array file.
pub(super) fn twin(kind: Use, sizes: &Sizes, other_bytes: Option<u64>) -> String {
    text(kind, sizes, Drives::Models, other_bytes)
}

/// An array and what lies beside it.
pub(super) struct Site {
    program: PathBuf,
    directory: PathBuf,
}

impl Site {
    /// Creates it.
    pub(super) fn create(
        program: &Path,
        within: &Path,
        kind: Use,
        sizes: &Sizes,
    ) -> Result<Site, BenchError> {
        let directory = within.join(kind.directory());
        std::fs::create_dir(&directory)
            .map_err(BenchError::system(format!("{} cannot be made", directory.display())))?;
        let site = Site { program: program.to_owned(), directory };
        write(&site.array(), &text(kind, sizes, Drives::ModelledFiles, None))?;
        write(&site.plain(), &text(kind, sizes, Drives::Files, None))?;
        served::create(&site.program, &site.array())?;
        Ok(site)
    }

    pub(super) fn directory(&self) -> &Path {
        &self.directory
    }

    /// A file of it.
    pub(super) fn path(&self, name: &str) -> PathBuf {
        self.directory.join(name)
    }

    fn array(&self) -> PathBuf {
        self.path("array.toml")
    }

    /// The same array without models, to be filled as fast as files are.
    fn plain(&self) -> PathBuf {
        self.path("plain.toml")
    }

    /// Serves it.
    pub(super) fn serve(&self, is_modelled: bool) -> Result<Server, BenchError> {
        let array = if is_modelled { self.array() } else { self.plain() };
        tier0(&self.program, &array, &Address::Unix(self.path("s")))
    }

    /// The status of the running, modelled array.
    pub(super) fn status(&self) -> Result<Value, BenchError> {
        served::status(&self.program, &self.array())
    }

    /// What the tier would do, and what each size of flash would serve. From the first question on, accesses are counted.
    pub(super) fn plan(&self) -> Result<Value, BenchError> {
        served::plan(&self.program, &self.array())
    }

    /// Leaves the tier as much of the flash group as it is to have.
    pub(super) fn limit_tier(&self, sizes: &Sizes) -> Result<(), BenchError> {
        served::limit_tier(&self.program, &self.array(), u64::from(sizes.flash_mib) << 20)
    }

    /// Counts for so many seconds.
    pub(super) fn count(&self, seconds: u32) -> Result<Counting, Failed> {
        let log = self.path("iostat.json");
        let _ = std::fs::remove_file(&log);
        let mut command = Command::new(&self.program);
        command.arg("iostat").arg(self.array()).args([&seconds.to_string(), "1", "--json"]);
        let process = Running::start("tier0 iostat", &mut command, &log)?;
        Ok(Counting { process, log })
    }

    /// Removes its files, which the next array does not need beside its own.
    pub(super) fn remove(self) {
        // What stays goes with the directory around it.
        let _ = std::fs::remove_dir_all(&self.directory);
    }
}

/// What the array counts while something runs.
pub(super) struct Counting {
    process: Running,
    log: PathBuf,
}

impl Counting {
    pub(super) fn finish(mut self) -> Result<Io, Failed> {
        self.process.ends()?;
        let text = std::fs::read_to_string(&self.log)
            .map_err(BenchError::system("what tier0 iostat told cannot be read"))?;
        let told: Value = serde_json::from_str(&text)
            .map_err(|_| BenchError::Failed(format!("unexpected words from tier0 iostat: {text}")))?;
        Ok(Io::of(&told))
    }
}

impl Io {
    fn of(told: &Value) -> Io {
        let seconds = told["seconds"].as_f64().unwrap_or(1.0);
        let pool = &told["pools"][0];
        let list = |name: &str| pool[name].as_array().map(Vec::as_slice).unwrap_or_default();
        let number = |value: &Value| value.as_f64().unwrap_or_default();
        let volume = list("volumes").iter().find(|one| one["name"] == "lun0").unwrap_or(&Value::Null);
        let (read, write, flush) = (&volume["read"], &volume["write"], &volume["flush"]);
        let reads_of = |begin: &str| -> f64 {
            let drives = list("drives").iter();
            let own = drives.filter(|one| one["name"].as_str().is_some_and(|name| name.starts_with(begin)));
            own.map(|one| number(&one["read"]["count"])).sum()
        };
        let (disks, flash) = (reads_of("disk"), reads_of("ssd"));
        let cache = &pool["read_cache"];
        let hits: f64 =
            ["read_hits", "write_hits", "prefetch_hits"].iter().map(|field| number(&cache[*field])).sum();
        let pages: f64 = list("write_cache")
            .iter()
            .flat_map(|lane| {
                ["idle", "high_watermark", "forced", "demanded"].map(|why| number(&lane[why]["pages"]))
            })
            .sum();
        let count = number(&read["count"]);
        Io {
            reads_per_s: count / seconds,
            read_ms_mean: number(&read["mean_ns"]) / 1e6,
            read_ms_p99: number(&read["p99_ns"]) / 1e6,
            read_bytes_mean: number(&read["bytes"]) / count.max(1.0),
            writes_per_s: number(&write["count"]) / seconds,
            write_ms_mean: number(&write["mean_ns"]) / 1e6,
            flushes_per_s: number(&flush["count"]) / seconds,
            flush_ms_mean: number(&flush["mean_ns"]) / 1e6,
            memory_share: hits / (hits + number(&cache["misses"])).max(1.0),
            flash_share: flash / (disks + flash).max(1.0),
            destaged_bytes_per_s: pages * 4096.0 / seconds,
        }
    }
}

/// What another volume takes of the flash group so that the tier has its size and no more.
pub(super) fn other_bytes(flash_usable: u64, sizes: &Sizes) -> u64 {
    flash_usable.saturating_sub(u64::from(sizes.flash_mib) << 20)
}
