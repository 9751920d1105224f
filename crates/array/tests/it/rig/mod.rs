//! What tests of arrays in virtual time share: drives that lose power, lives of the array's world, patterns on volumes.

use futures_util::future::LocalBoxFuture;
use tier0_api::{AdminReply, AdminRequest, PoolStatus};
use tier0_array::Volume;
use tier0_array::engine::{Engine, StartOptions, create, start};
use tier0_block::BlockTarget;
use tier0_description::Description;
use tier0_drive::DriveHandle;
use tier0_drive::sim::{PowerCut, PowerSwitch, SimMedium, SimOptions};
use tier0_units::{ByteCount, Lba, SectorCount, WriteCache};
use tier0_world::{IoError, PayloadWidth, VirtualRuntime, World};

pub(crate) mod told;
pub(crate) mod trouble;

const DRIVE_SECTORS: u64 = (32 << 20) / 512;
/// Sectors of a MiB, the extent of most shapes.
pub(crate) const MIB: u64 = 2048;

/// What is done in a life of a world.
pub(crate) type Life<A, T> = Box<dyn FnOnce(A) -> LocalBoxFuture<'static, T>>;

/// The drives of an array.
#[derive(Clone)]
pub(crate) struct Drives {
    pub(crate) media: Vec<SimMedium>,
    switch: PowerSwitch,
    seed: u64,
    width: PayloadWidth,
}

impl Drives {
    /// So many drives of 32 MiB with a new array on them: one pool of sets of `set_size`, a thin volume `lun0`.
    pub(crate) fn founded(raid: &str, drives: usize, set_size: usize, shards: usize, seed: u64) -> Drives {
        Drives::described(describe(raid, drives, set_size, ""), drives, shards, seed)
    }

    /// As [`Drives::founded`], with as many of the drives as spares.
    pub(crate) fn with_spares(raid: &str, drives: usize, spares: usize, shards: usize, seed: u64) -> Drives {
        let spare_drives = format!("spare_drives = {spares}");
        Drives::described(describe(raid, drives, drives - spares, &spare_drives), drives, shards, seed)
    }

    pub(crate) fn described(description: Description, drives: usize, shards: usize, seed: u64) -> Drives {
        Drives::in_world(PayloadWidth::REAL, description, drives, shards, seed)
    }

    /// As [`Drives::described`], in worlds that keep so much of the data.
    pub(crate) fn in_world(
        width: PayloadWidth,
        description: Description,
        drives: usize,
        shards: usize,
        seed: u64,
    ) -> Drives {
        let mut all = Drives { media: Vec::new(), switch: PowerSwitch::default(), seed, width };
        for _ in 0..drives {
            all.plug_in();
        }
        let own = all.clone();
        live_in(width, seed, |world| async move {
            create(&world, &description, own.open(&world), shards).await.expect("created");
        });
        all
    }

    /// One more drive; its name.
    pub(crate) fn plug_in(&mut self) -> String {
        let number = self.media.len();
        let name = format!("d{number}");
        let seed = self.seed * 1000 + number as u64;
        let options =
            SimOptions { width: self.width, ..SimOptions::new(&name, SectorCount(DRIVE_SECTORS), seed) };
        self.media.push(SimMedium::new(options, &self.switch));
        name
    }

    pub(crate) fn open(&self, world: &World) -> Vec<DriveHandle> {
        self.media.iter().map(|medium| medium.open(world)).collect()
    }

    pub(crate) fn cut(&self) {
        self.media.iter().for_each(|medium| medium.power_cut(PowerCut::Any));
    }

    /// A life of the array, and a power cut at its end.
    pub(crate) fn life<F: Future<Output = T> + 'static, T: 'static>(
        &self,
        seed: u64,
        life: impl FnOnce(World, Engine, Drives) -> F + 'static,
    ) -> T {
        self.life_of(seed, Box::new(|(world, engine, drives)| Box::pin(life(world, engine, drives))))
    }

    /// As [`Drives::life`], compiled once for each type of result.
    fn life_of<T: 'static>(&self, seed: u64, life: Life<(World, Engine, Drives), T>) -> T {
        let drives = self.clone();
        let result = live_in(self.width, seed, |world| async move {
            let engine = start(&world, drives.open(&world), &StartOptions::default()).await.expect("started");
            life((world, engine, drives)).await
        });
        self.cut();
        result
    }
}

pub(crate) fn describe(raid: &str, drives: usize, set_size: usize, more: &str) -> Description {
    let text = format!(
        r#"
[array]
name = "test"

[[drive]]
name = "d{{n}}"
count = {drives}
path = "d{{n}}"

[[pool]]
name = "pool0"
raid = "{raid}"
set_size = {set_size}
{more}
chunklet = "2MiB"
log = "2MiB"

[[volume]]
name = "lun0"
size = "6MiB"
thin = true
"#
    );
    Description::parse(&text, "test.toml").expect("a correct description")
}

/// Mirrored flash beside RAID 5 of disks, with these volumes.
pub(crate) fn disks_and_flash(volumes: &str) -> Description {
    let pool = r#"
[array]
name = "test"

[[drive]]
name = "f{n}"
count = 2
path = "f{n}"
class = "flash"

[[drive]]
name = "d{n}"
count = 4
path = "d{n}"
class = "disk"

[[pool]]
name = "pool0"
chunklet = "2MiB"
extent = "1MiB"
log = "2MiB"

[[pool.group]]
name = "disks"
drives = ["d*"]
raid = "raid5"
set_size = 3

[[pool.group]]
name = "flash"
drives = ["f*"]
raid = "raid1"
set_size = 2
"#;
    Description::parse(&format!("{pool}{volumes}"), "test.toml").expect("a correct description")
}

/// One life of a world.
pub(crate) fn live<F: Future<Output = T> + 'static, T: 'static>(
    seed: u64,
    life: impl FnOnce(World) -> F,
) -> T {
    live_in(PayloadWidth::REAL, seed, life)
}

fn live_in<F: Future<Output = T> + 'static, T: 'static>(
    width: PayloadWidth,
    seed: u64,
    life: impl FnOnce(World) -> F,
) -> T {
    let runtime = VirtualRuntime::new(seed, width);
    let world = runtime.world().clone();
    runtime.run(life(world))
}

/// A volume that is there.
pub(crate) fn volume(engine: &Engine, name: &str) -> Volume {
    let found = engine.volumes().into_iter().find(|volume| *volume.name() == *name);
    found.unwrap_or_else(|| panic!("no volume {name}"))
}

/// Writes sectors of one value.
pub(crate) async fn write(world: &World, volume: &Volume, lba: u64, sectors: u32, value: u8) {
    try_write(world, volume, lba, sectors, value).await.expect("a write succeeds");
}

pub(crate) async fn try_write(
    world: &World,
    volume: &Volume,
    lba: u64,
    sectors: u32,
    value: u8,
) -> Result<(), IoError> {
    let mut buf = world.buffer(sectors);
    buf.as_mut_slice().fill(value);
    volume.write(Lba(lba), buf.freeze(), false).await
}

/// Reads sectors that must all have one value.
pub(crate) async fn expect(world: &World, volume: &Volume, lba: u64, sectors: u32, value: u8) {
    let (result, buf) = volume.read(Lba(lba), world.buffer(sectors)).await;
    result.expect("a read succeeds");
    let bytes = buf.as_slice();
    let name = volume.name();
    assert!(bytes.iter().all(|byte| *byte == value), "{name}: sector {lba} holds {}, not {value}", bytes[0]);
}

/// Writes to a thin volume of 400 MiB, a MiB after the other, each with its own value, until there is no space; how many.
pub(crate) async fn fill(world: &World, engine: &Engine, name: &str) -> u64 {
    let filled = volume(engine, name);
    for extent in 0..400 {
        if try_write(world, &filled, extent * MIB, 16, value_of(extent)).await.is_err() {
            return extent;
        }
    }
    panic!("there is more space than the drives have");
}

/// So much of a volume holds what [`fill`] wrote.
pub(crate) async fn expect_filled(world: &World, engine: &Engine, name: &str, extents: u64) {
    let filled = volume(engine, name);
    for extent in 0..extents {
        expect(world, &filled, extent * MIB, 16, value_of(extent)).await;
    }
}

fn value_of(extent: u64) -> u8 {
    1 + (extent % 250) as u8
}

/// Asks for something that must be done; what the array says.
pub(crate) async fn done(engine: &Engine, request: AdminRequest) -> String {
    match engine.administer(request).await {
        AdminReply::Done(text) => text,
        reply => panic!("{reply:?}"),
    }
}

/// Asks for something that must be refused; what the array says.
pub(crate) async fn refused(engine: &Engine, request: AdminRequest) -> String {
    match engine.administer(request).await {
        AdminReply::Refused(text) | AdminReply::Held(text) => text,
        reply => panic!("{reply:?}"),
    }
}

pub(crate) fn create_volume(name: &str, size: ByteCount, thin: bool) -> AdminRequest {
    let name = name.to_owned();
    AdminRequest::VolumeCreate { pool: None, name, size, thin, write_cache: WriteCache::Durable, group: None }
}

/// The only pool is to grow.
pub(crate) const GROW: AdminRequest = AdminRequest::PoolGrow { pool: None, stop: false };

/// How the pool does.
pub(crate) async fn pool(engine: &Engine) -> PoolStatus {
    engine.status().await.pools.remove(0)
}
