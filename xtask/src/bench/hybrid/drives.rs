//! Bare drives for the guest: two modelled disks and one modelled SSD against the wall clock, served by NBD, and what they
//! have done.
//!
//! It runs as a process of its own, so that it can be killed as a power cut would. A line on its stdin is answered with the
//! counts on its stdout. The data lie in sparse files. Of each drive the guest sees the beginning, as much as the
//! benchmark needs: tier0 too packs what it stores at the outer edge.
//!
//! What it does not do: it keeps no counts over a restart, and drops nothing that a volatile cache would lose.

use std::io::{BufRead, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use clap::Args;
use serde_json::{Value, json};
use tier0_array::models::Model;
use tier0_block::{BlockTarget, TargetInfo, write_zeros};
use tier0_catalog::Catalog;
use tier0_drive::{Content, DriveHandle, FileMedium, RamMedium};
use tier0_nbd::server::{ExportOptions, Server, ServerOptions};
use tier0_units::{ByteCount, Lba, SectorCount};
use tier0_world::net::PeerAddress;
use tier0_world::{Buf, BufMut, IoError, RealOptions, RealRuntime, World};

use super::sizes::{DISK, DISKS, SSD, Sizes};
use crate::error::BenchError;

/// What to serve.
#[derive(Args)]
pub(crate) struct Options {
    /// The socket
    #[arg(long)]
    socket: PathBuf,
    /// Where the files are; without, the drives are memory without models
    #[arg(long)]
    dir: Option<PathBuf>,
    /// The working set, MiB
    #[arg(long)]
    working_set_mib: u64,
}

/// Serves until it is killed.
pub(crate) fn run(options: &Options) -> Result<(), BenchError> {
    let system = |what: &str| BenchError::system(what.to_owned());
    let sizes = Sizes::of(options.working_set_mib);
    let runtime = RealRuntime::new(&RealOptions::default()).map_err(system("no runtime"))?;
    let world = runtime.world().clone();
    let server = Server::new(&world, ServerOptions::default());
    let catalog = Catalog::embedded();
    let model = |id: &str| {
        Model::of(&catalog, id).map_err(|error| BenchError::Failed(format!("drive model {id}: {error}")))
    };
    // Making them takes a while, and memory has none.
    let models = match &options.dir {
        Some(directory) => Some((directory, model(DISK)?, model(SSD)?)),
        None => None,
    };
    let mut counts = Vec::new();
    for number in 0..=DISKS {
        let is_disk = number < DISKS;
        let name = if is_disk { format!("disk{number}") } else { "ssd".to_owned() };
        let shown = if is_disk { sizes.disk_sectors() } else { sizes.ssd_sectors() };
        let drive = match &models {
            Some((directory, disk, ssd)) => {
                modelled(&world, if is_disk { disk } else { ssd }, directory, &name, number)?
            }
            None => {
                let medium =
                    RamMedium::new(&name, ByteCount(shown << 9)).map_err(system("no memory for a drive"))?;
                DriveHandle::new(medium.open(&world))
            }
        };
        let counted = Arc::new(Counts::default());
        counts.push((name.clone(), counted.clone()));
        let target = Shown { drive, sectors: shown, counts: counted };
        let failed = |error: &dyn std::fmt::Display| BenchError::Failed(format!("export {name}: {error}"));
        server.add_export(ExportOptions::named(&*name), target).map_err(|error| failed(&error))?;
    }
    let listening = server.listen(&PeerAddress::Unix(options.socket.clone()));
    listening.map_err(|error| BenchError::Failed(error.to_string()))?;
    answer_on_stdin(counts);
    runtime.run(std::future::pending::<()>());
    Ok(())
}

/// Answers each line with the counts, in a thread of its own, and ends the process with its stdin.
#[expect(clippy::disallowed_methods, reason = "stdin blocks; nothing of any engine runs in this thread")]
fn answer_on_stdin(counts: Vec<(String, Arc<Counts>)>) {
    std::thread::spawn(move || {
        for line in std::io::stdin().lock().lines() {
            let all: serde_json::Map<String, Value> =
                counts.iter().map(|(name, counts)| (name.clone(), counts.snapshot())).collect();
            let written = writeln!(std::io::stdout(), "{}", Value::Object(all));
            if line.is_err() || written.is_err() {
                break;
            }
        }
        std::process::exit(0);
    });
}

/// A drive of a model whose data lie in a sparse file.
fn modelled(
    world: &World,
    model: &Model,
    directory: &Path,
    name: &str,
    number: u64,
) -> Result<DriveHandle, BenchError> {
    let path = directory.join(format!("{name}.img"));
    let system = |source| BenchError::System { what: format!("{} cannot be used", path.display()), source };
    let file = std::fs::OpenOptions::new().create(true).truncate(false).write(true).open(&path);
    file.and_then(|file| file.set_len(model.sectors().bytes().0)).map_err(system)?;
    let medium = FileMedium::open(&path)
        .map_err(|error| BenchError::Failed(format!("{} cannot be used: {error}", path.display())))?;
    let content = Content::Drive(DriveHandle::new(medium.drive(world).map_err(system)?));
    Ok(model.drive(world, name, number, content, SectorCount(0)))
}

/// What a drive was asked.
#[derive(Default)]
struct Counts {
    reads: AtomicU64,
    writes: AtomicU64,
}

impl Counts {
    fn snapshot(&self) -> Value {
        let of = |count: &AtomicU64| count.load(Ordering::Relaxed);
        json!({"reads": of(&self.reads), "writes": of(&self.writes)})
    }
}

/// A drive as the guest sees it: its first sectors.
struct Shown {
    drive: DriveHandle,
    sectors: u64,
    counts: Arc<Counts>,
}

impl Shown {
    fn check(&self, lba: Lba, sectors: u64) -> Result<(), IoError> {
        match lba.0.checked_add(sectors) {
            Some(end) if end <= self.sectors => Ok(()),
            _ => Err(IoError::OutOfRange),
        }
    }
}

impl BlockTarget for Shown {
    fn info(&self) -> TargetInfo {
        TargetInfo { sectors: SectorCount(self.sectors), ..BlockTarget::info(&self.drive) }
    }

    async fn read(&self, lba: Lba, buf: BufMut) -> (Result<(), IoError>, BufMut) {
        if let Err(error) = self.check(lba, u64::from(buf.sectors())) {
            return (Err(error), buf);
        }
        self.counts.reads.fetch_add(1, Ordering::Relaxed);
        self.drive.read(lba, buf).await
    }

    async fn write(&self, lba: Lba, buf: Buf, durable: bool) -> Result<(), IoError> {
        self.check(lba, u64::from(buf.sectors()))?;
        self.counts.writes.fetch_add(1, Ordering::Relaxed);
        self.drive.write(lba, buf, durable).await
    }

    async fn flush(&self) -> Result<(), IoError> {
        self.drive.flush().await
    }

    async fn discard(&self, lba: Lba, sectors: u64) -> Result<(), IoError> {
        self.check(lba, sectors)?;
        self.drive.discard(lba, sectors).await
    }

    async fn write_zeroes(&self, lba: Lba, sectors: u64, _: bool, durable: bool) -> Result<(), IoError> {
        write_zeros(self, self.drive.world().width(), lba, sectors, durable).await
    }
}
