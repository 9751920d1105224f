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
use tier0_block::{BlockTarget, TargetInfo, write_zeros};
use tier0_catalog::{Catalog, DriveSpec};
use tier0_drive::disk::{DiskModel, DiskParameters, Geometry};
use tier0_drive::flash::{FlashModel, FlashParameters, Precondition};
use tier0_drive::{Content, DiskDrive, DriveHandle, FileMedium, FlashDrive, RamMedium};
use tier0_nbd::server::{ExportOptions, Server, ServerOptions};
use tier0_units::{ByteCount, Lba, Nanos, SectorCount};
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
    let mut counts = Vec::new();
    for number in 0..=DISKS {
        let is_disk = number < DISKS;
        let name = if is_disk { format!("disk{number}") } else { "ssd".to_owned() };
        let shown = if is_disk { sizes.disk_sectors() } else { sizes.ssd_sectors() };
        let drive = match &options.dir {
            Some(directory) => modelled(&world, directory, &name, number)?,
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

/// A drive of the catalogue whose data lie in a sparse file.
fn modelled(world: &World, directory: &Path, name: &str, number: u64) -> Result<DriveHandle, BenchError> {
    let failed = |fact: &dyn std::fmt::Display| BenchError::Failed(format!("drive {name}: {fact}"));
    let id = if number < DISKS { DISK } else { SSD };
    let catalog = Catalog::embedded();
    let spec = catalog.drive_by_reference(id).map_err(|error| failed(&error))?;
    let content = |sectors: SectorCount| -> Result<Content, BenchError> {
        let path = directory.join(format!("{name}.img"));
        let system =
            |source| BenchError::System { what: format!("{} cannot be used", path.display()), source };
        let file = std::fs::OpenOptions::new().create(true).truncate(false).write(true).open(&path);
        file.and_then(|file| file.set_len(sectors.bytes().0)).map_err(system)?;
        let medium = FileMedium::open(&path).map_err(|error| failed(&error))?;
        Ok(Content::Drive(DriveHandle::new(medium.drive(world).map_err(system)?)))
    };
    match &spec {
        DriveSpec::Disk(disk) => {
            let parameters = DiskParameters::try_from(&**disk).map_err(|error| failed(&error))?;
            let geometry = Geometry::new(parameters).map_err(|error| failed(&error))?;
            let capacity = SectorCount(disk.parameters.capacity_sectors()).min(geometry.sectors());
            let phase = world.random(number).below(geometry.revolution().0);
            let model = DiskModel::new(geometry, Nanos(phase));
            Ok(DriveHandle::new(DiskDrive::new(world, name, model, capacity, content(capacity)?)))
        }
        DriveSpec::Flash(flash) => {
            let parameters = FlashParameters::try_from(&**flash).map_err(|error| failed(&error))?;
            let mut model = FlashModel::new(parameters, number).map_err(|error| failed(&error))?;
            model.precondition(Precondition::default());
            let content = content(model.capacity())?;
            Ok(DriveHandle::new(FlashDrive::new(world, name, model, content)))
        }
        DriveSpec::Nvram(_) => Err(failed(&"is a write cache, and no disk or SSD")),
    }
}

/// What a drive was asked.
#[derive(Default)]
struct Counts {
    reads: AtomicU64,
    writes: AtomicU64,
    read_sectors: AtomicU64,
    written_sectors: AtomicU64,
}

impl Counts {
    fn add(&self, is_read: bool, sectors: u64) {
        let (count, sum) =
            if is_read { (&self.reads, &self.read_sectors) } else { (&self.writes, &self.written_sectors) };
        count.fetch_add(1, Ordering::Relaxed);
        sum.fetch_add(sectors, Ordering::Relaxed);
    }

    fn snapshot(&self) -> Value {
        let of = |count: &AtomicU64| count.load(Ordering::Relaxed);
        json!({
            "reads": of(&self.reads),
            "writes": of(&self.writes),
            "read_bytes": of(&self.read_sectors) << 9,
            "written_bytes": of(&self.written_sectors) << 9,
        })
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
        let sectors = u64::from(buf.sectors());
        if let Err(error) = self.check(lba, sectors) {
            return (Err(error), buf);
        }
        self.counts.add(true, sectors);
        self.drive.read(lba, buf).await
    }

    async fn write(&self, lba: Lba, buf: Buf, durable: bool) -> Result<(), IoError> {
        let sectors = u64::from(buf.sectors());
        self.check(lba, sectors)?;
        self.counts.add(false, sectors);
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
