//! An array on drive files that tier0 serves, in a directory of its own.

use std::fs::File;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::Command;

use clap::Args;
use serde_json::Value;
use tempfile::TempDir;

use crate::error::BenchError;
use crate::server::{Address, Server, build_tier0, tier0};

/// The options of every benchmark on files.
#[derive(Args)]
pub(crate) struct OnFiles {
    #[command(flatten)]
    pub(crate) place: Place,
    /// Rounds
    #[arg(long, default_value_t = 5)]
    pub(crate) rounds: u32,
}

/// Where the files are.
#[derive(Args)]
pub(crate) struct Place {
    /// Where to put the files; not a tmpfs [default: the build's directory]
    #[arg(long, value_name = "DIR")]
    pub(crate) dir: Option<PathBuf>,
}

/// An array that was created; dropping it removes its files.
pub(crate) struct Served {
    program: PathBuf,
    directory: TempDir,
    /// Where it listens beside its socket.
    port: Option<u16>,
}

/// What follows in the tables of the array, of its pool and of its one volume, lun0.
#[derive(Clone, Copy, Default)]
pub(crate) struct Tables<'a> {
    pub(crate) array: &'a str,
    pub(crate) pool: &'a str,
    pub(crate) volume: &'a str,
    /// The size of one more drive, `flash`, beside which the others are disks; 0 for none.
    pub(crate) flash_mib: u32,
}

impl Served {
    /// Makes an array of `drives` files of `drive_mib` each.
    pub(crate) fn create(
        place: Option<&Path>,
        drives: (u32, u32),
        tables: Tables<'_>,
    ) -> Result<Served, BenchError> {
        Served::create_to_listen(place, drives, tables, None)
    }

    /// The same, which listens on a port of this machine too.
    pub(crate) fn create_to_listen(
        place: Option<&Path>,
        (drives, drive_mib): (u32, u32),
        Tables { array, pool, volume, flash_mib }: Tables<'_>,
        port: Option<u16>,
    ) -> Result<Served, BenchError> {
        let program = build_tier0()?;
        let beside = program.parent().expect("a program lies in a directory");
        let directory = tempfile::tempdir_in(place.unwrap_or(beside))
            .map_err(BenchError::system("no directory for the files can be made; name one with --dir"))?;
        let served = Served { program, directory, port };
        let port = port.map_or_else(String::new, |port| format!(", \"127.0.0.1:{port}\""));
        let flash = match flash_mib {
            0 => String::new(),
            mib => format!(
                "class = \"disk\"\n[[drive]]\nname = \"flash\"\npath = {:?}\nsize = \"{mib}MiB\"\nclass = \"flash\"\n",
                served.path("flash.img")
            ),
        };
        let text = format!(
            "[array]\nname = \"bench\"\ncores = 1\n{array}\n\
             [[drive]]\nname = \"d{{n}}\"\ncount = {drives}\npath = {:?}\nsize = \"{drive_mib}MiB\"\n{flash}\
             [[pool]]\nname = \"pool0\"\n{pool}\n\
             [[volume]]\nname = \"lun0\"\n{volume}\n\
             [nbd]\nlisten = [\"unix:{}\"{port}]\n",
            served.path("d{n}.img"),
            served.socket().display()
        );
        super::write(&served.array(), &text)?;
        if flash_mib > 0 {
            fill(&served.path("flash.img"), flash_mib)?;
        }
        create(&served.program, &served.array())?;
        Ok(served)
    }

    /// Starts the server.
    pub(crate) fn serve(&self) -> Result<Server, BenchError> {
        tier0(&self.program, &self.array(), &Address::Unix(self.socket()))
    }

    /// Starts the server, to be asked at its port.
    pub(crate) fn serve_on_port(&self) -> Result<Server, BenchError> {
        let port = self.port.expect("an array that listens on a port");
        tier0(&self.program, &self.array(), &Address::Tcp(port))
    }

    /// Whether the one volume's reads look for pages in memory, from now on.
    pub(crate) fn cache_reads(&self, on: bool) -> Result<(), BenchError> {
        let switch = if on { "cache.read=on" } else { "cache.read=off" };
        run(&self.program, &["volume", "set"], &self.array(), &["lun0", switch]).map(drop)
    }

    /// The status of the running array.
    pub(crate) fn status(&self) -> Result<Value, BenchError> {
        status(&self.program, &self.array())
    }

    /// A file of the array's directory.
    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    fn array(&self) -> PathBuf {
        self.path("array.toml")
    }

    fn socket(&self) -> PathBuf {
        self.path("s")
    }
}

/// Writes a file in order, as the others are by their first load: one that is written here and there first lies in as many
/// pieces on its file system, and each read looks for its own.
fn fill(path: &Path, mib: u32) -> Result<(), BenchError> {
    let mebibyte = vec![0; 1 << 20];
    let write = || {
        let mut file = File::create(path)?;
        (0..mib).try_for_each(|_| file.write_all(&mebibyte))?;
        file.sync_all()
    };
    write().map_err(BenchError::system("the flash drive's file cannot be written"))
}

/// Creates the array that a file describes.
pub(super) fn create(program: &Path, array: &Path) -> Result<(), BenchError> {
    run(program, &["create", "--json"], array, &[]).map(drop)
}

/// The status of a running array.
pub(super) fn status(program: &Path, array: &Path) -> Result<Value, BenchError> {
    // It exits with other codes too where something wants attention, as a drive that is late on a busy machine, and tells all.
    let output = Command::new(program).arg("status").arg(array).arg("--json").output();
    let output = output.map_err(BenchError::system("tier0 cannot be started"))?;
    serde_json::from_slice(&output.stdout).map_err(|error| {
        let words = String::from_utf8_lossy(&output.stderr);
        BenchError::Failed(format!("tier0 status ends with {}: {error}; {}", output.status, words.trim()))
    })
}

/// The I/O statistics of a running array since its start.
pub(super) fn io(program: &Path, array: &Path) -> Result<Value, BenchError> {
    let text = run(program, &["iostat", "--json"], array, &[])?;
    serde_json::from_slice(&text).map_err(|error| BenchError::Failed(format!("tier0 iostat: {error}")))
}

/// What the tier of a running array would do.
pub(super) fn plan(program: &Path, array: &Path) -> Result<Value, BenchError> {
    let text = run(program, &["tier", "plan", "--json"], array, &[])?;
    serde_json::from_slice(&text).map_err(|error| BenchError::Failed(format!("tier0 tier plan: {error}")))
}

/// Has another volume take all of a running array's group of flash but `left` bytes: a tier has no more then.
pub(super) fn limit_tier(program: &Path, array: &Path, left: u64) -> Result<(), BenchError> {
    let rest = format!("{}B", flash_usable(&status(program, array)?)?.saturating_sub(left));
    let volume = ["other", "--pool", "pool0", "--size", &rest, "--group", "flash"];
    run(program, &["volume", "create", "--yes", "--json"], array, &volume).map(drop)
}

/// What volumes can use of the first pool's group of flash, by the status of its array.
pub(super) fn flash_usable(status: &Value) -> Result<u64, BenchError> {
    let groups = status["pools"][0]["groups"].as_array().map(Vec::as_slice).unwrap_or_default();
    let flash = groups.iter().find(|group| group["name"] == "flash");
    let usable = flash.and_then(|group| group["usable_bytes"].as_u64());
    usable.ok_or_else(|| BenchError::Failed("tier0 status tells no size of the flash group".into()))
}

/// Runs a verb, with what stands before the array file and behind it.
fn run(program: &Path, arguments: &[&str], array: &Path, behind: &[&str]) -> Result<Vec<u8>, BenchError> {
    let output = Command::new(program).args(arguments).arg(array).args(behind).output();
    let output = output.map_err(BenchError::system("tier0 cannot be started"))?;
    if output.status.success() {
        return Ok(output.stdout);
    }
    let words = String::from_utf8_lossy(&output.stderr);
    Err(BenchError::Failed(format!("tier0 {} ends with {}: {}", arguments[0], output.status, words.trim())))
}
