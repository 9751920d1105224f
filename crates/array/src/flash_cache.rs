//! The flash read cache of a pool in one shard: its part of each device, found warm or made anew.
//!
//! A shard has an equal piece of every chunklet of a device. What an opening believes is told by an epoch, which the metadata and
//! the device have alike: it is announced to the device, then changes in the metadata ([`announce_epochs`]), and then the shards
//! use the device under it. Whoever cannot has it disowned before anything is destaged.

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;

use tier0_control::message::control::ControlMessage;
use tier0_drive::DriveHandle;
use tier0_flash_cache::{
    Disown, FlashCache, FlashError, FlashIdentity, FlashOptions, FlashPlace, FlashRoom, LocalFuture,
    announce_epoch,
};
use tier0_integrity::MemoryShare;
use tier0_pool::metadata::Metadata;
use tier0_pool::{FlashCacheDevice, FlashCachePlacement, Geometry, MetaRecord, PoolState};
use tier0_raid::io::Members;
use tier0_units::{ByteCount, Lba, Nanos, PAGE_SECTORS, SECTOR_BYTES, SectorCount, counted};
use tier0_world::sync::{MailSender, oneshot};
use tier0_world::{PlantedBug, World, planted};
use uuid::Uuid;

use crate::ArrayError;
use crate::pool_shard::ShardId;

/// How long a record of the cache may take before its device is disowned: far longer than flash takes, and short beside what
/// hosts wait.
const PATIENCE: Nanos = Nanos::from_secs(1);
/// How long a read may take: what the slow drives take under load.
const READ_PATIENCE: Nanos = Nanos::from_millis(100);
/// Of the memory of a pool in a shard, the tables of the cache may take this part.
const MEMORY_PART: u64 = 2;
/// By so many epochs an opening goes on, at most, so that hardly one is announced twice.
const EPOCHS: u64 = 1 << 32;
/// Bytes of flash for each byte of the tables.
const BYTES_PER_TABLE_BYTE: u64 = 1024;

/// The flash cache of a pool in a shard.
pub(crate) struct ShardFlashCache {
    pub(crate) cache: Rc<FlashCache>,
    id: ShardId,
    geometry: Geometry,
    members: Members,
    /// What its tables take of the pool's memory in this shard.
    memory: MemoryShare,
    memory_max: ByteCount,
    devices: Rc<Devices>,
}

/// The devices that are in use, by member.
#[derive(Default)]
struct Devices(RefCell<BTreeMap<u32, FlashCacheDevice>>);

/// Has devices disowned.
struct Disowner {
    pool: usize,
    control: MailSender<ControlMessage>,
    devices: Rc<Devices>,
}

impl Disowner {
    async fn disown(&self, member: u32, id: Uuid, why: Option<String>) {
        let (reply, done) = oneshot::channel();
        self.control.send(ControlMessage::DisownFlashCache { pool: self.pool, member, id, why, reply });
        // The control task ends only with the array.
        let _ = done.await;
    }
}

impl Disown for Disowner {
    fn disown(&self, device: u32) -> LocalFuture<'_, ()> {
        let known = self.devices.0.borrow_mut().remove(&device);
        Box::pin(async move {
            if let Some(known) = known {
                self.disown(device, known.id, None).await;
            }
        })
    }
}

/// What a shard begins its flash cache with.
pub(crate) struct FlashSeed<'a> {
    pub(crate) id: ShardId,
    pub(crate) pool: usize,
    pub(crate) state: &'a PoolState,
    pub(crate) is_new: bool,
    pub(crate) writes_per_day: u32,
    pub(crate) members: Members,
    pub(crate) memory: MemoryShare,
    /// What tables, dirty and clean pages may take together.
    pub(crate) memory_max: ByteCount,
}

impl ShardFlashCache {
    /// The cache as the metadata place it. `slots` are those that extents of this shard have.
    pub(crate) async fn start(
        world: &World,
        seed: FlashSeed<'_>,
        control: &MailSender<ControlMessage>,
        slots: &BTreeSet<u64>,
    ) -> Rc<ShardFlashCache> {
        let FlashSeed { id, pool, state, is_new, writes_per_day, members, memory, memory_max } = seed;
        let geometry = state.geometry().clone();
        let options = options_of(&geometry, writes_per_day);
        let devices = Rc::<Devices>::default();
        let disowner = Rc::new(Disowner { pool, control: control.clone(), devices: devices.clone() });
        let cache = Rc::new(FlashCache::new(world, options, disowner.clone()));
        let shard = Rc::new(ShardFlashCache { cache, id, geometry, members, memory, memory_max, devices });
        for device in &state.flash_cache().devices {
            if let Err(error) = shard.find(device, is_new, slots).await {
                let name = state.member(device.member).map_or("", |member| member.name.as_str());
                tracing::warn!("the flash cache on drive {name} cannot be used: {error}");
                shard.cache.drop_device(device.member);
                shard.devices.0.borrow_mut().remove(&device.member);
                disowner.disown(device.member, device.id, Some(error)).await;
            }
        }
        shard
    }

    /// Uses what a device holds, or makes it anew.
    async fn find(
        &self,
        device: &FlashCacheDevice,
        is_new: bool,
        slots: &BTreeSet<u64>,
    ) -> Result<(), String> {
        let member = device.member;
        let place = self.place_of(device)?;
        self.devices.0.borrow_mut().insert(member, device.clone());
        if !is_new {
            let identity = self.identity(device);
            let warm =
                self.cache.add_warm(member, place, identity, device.epoch, |slot| slots.contains(&slot));
            match warm.await {
                Ok(report) => {
                    tracing::debug!(member, ?report, "the flash cache is warm");
                    self.leave_memory();
                    return Ok(());
                }
                Err(FlashError::NotOurs { reason }) => {
                    tracing::info!(member, "the flash cache begins empty: {reason}");
                }
                Err(error) => return Err(error.to_string()),
            }
        }
        self.make(device).await
    }

    async fn make(&self, device: &FlashCacheDevice) -> Result<(), String> {
        let (place, identity) = (self.place_of(device)?, self.identity(device));
        self.devices.0.borrow_mut().insert(device.member, device.clone());
        let made = self.cache.add_new(device.member, place, identity, device.epoch).await;
        self.leave_memory();
        made.map_err(|error| {
            let mut devices = self.devices.0.borrow_mut();
            if devices.get(&device.member).is_some_and(|known| known.id == device.id) {
                devices.remove(&device.member);
            }
            error.to_string()
        })
    }

    /// Uses a device as it lies now: the one that is in use with more or fewer chunklets, or one that is new here.
    ///
    /// # Errors
    /// A sentence. The device is not used then.
    pub(crate) async fn place(&self, device: &FlashCacheDevice) -> Result<FlashRoom, String> {
        let member = device.member;
        let known = self.devices.0.borrow().get(&member).map(|known| known.id);
        if known != Some(device.id) {
            self.forgo(member).await;
            self.make(device).await?;
            return Ok(self.cache.room(member));
        }
        let place = self.place_of(device)?;
        let resized = self.cache.resize(member, place.pieces).await;
        self.leave_memory();
        resized.map_err(|error| error.to_string())?;
        self.devices.0.borrow_mut().insert(member, device.clone());
        Ok(self.cache.room(member))
    }

    /// Does without the device on a member; ends when nothing of it is read or written any more.
    pub(crate) async fn forgo(&self, member: u32) {
        self.devices.0.borrow_mut().remove(&member);
        self.cache.drop_device(member);
        self.cache.until_quiet(member).await;
        self.leave_memory();
    }

    fn leave_memory(&self) {
        self.memory.take(self.cache.memory_bytes() as usize);
    }

    fn identity(&self, device: &FlashCacheDevice) -> FlashIdentity {
        FlashIdentity { id: device.id, shard: self.id.index as u32, shards: self.id.shards as u32 }
    }

    /// This shard's pieces of a device, if there is memory for its tables.
    fn place_of(&self, device: &FlashCacheDevice) -> Result<FlashPlace, String> {
        let drive = self.members.drive(device.member as usize).cloned().ok_or("its drive is not there")?;
        let others: u64 = {
            let devices = self.devices.0.borrow();
            let others = devices.values().filter(|other| other.member != device.member);
            others.map(FlashCacheDevice::chunklet_count).sum()
        };
        check_size(&self.geometry, std::slice::from_ref(device), self.id.shards)?;
        self.check_memory(others + device.chunklet_count())?;
        Ok(place(&self.geometry, device, self.id, drive))
    }

    /// Whether the parts of a cache that lies so are large enough, and there is memory for their tables.
    ///
    /// # Errors
    /// A sentence.
    pub(crate) fn check_fits(&self, placement: &FlashCachePlacement) -> Result<(), String> {
        check_size(&self.geometry, &placement.devices, self.id.shards)?;
        self.check_memory(placement.devices.iter().map(FlashCacheDevice::chunklet_count).sum())
    }

    fn check_memory(&self, chunklets: u64) -> Result<(), String> {
        let bytes = chunklets * piece_sectors(&self.geometry, self.id.shards) * SECTOR_BYTES;
        let (needed, most) = (bytes / BYTES_PER_TABLE_BYTE, self.memory_max.0 / MEMORY_PART);
        if needed > most {
            return Err(format!(
                "its tables need {:#} of memory, of {:#} that each core has for this pool, half of which may be theirs; raise \
                 array.memory, or ask for a smaller flash cache",
                ByteCount(needed),
                self.memory_max
            ));
        }
        Ok(())
    }
}

/// More chunklets of a drive are not asked for.
const CHUNKLETS_MAX: u64 = 1 << 16;

/// Whether the part that each shard has of each of these devices is large enough.
///
/// # Errors
/// A sentence.
pub(crate) fn check_size(
    geometry: &Geometry,
    devices: &[FlashCacheDevice],
    shards: usize,
) -> Result<(), String> {
    let piece = piece_sectors(geometry, shards);
    let is_enough = |chunklets: u64| {
        // With one shard, its pieces are neighbours where chunklets are.
        let front = if shards == 1 { chunklets * piece } else { piece };
        FlashPlace::is_enough(chunklets * piece, front)
    };
    let Some(least) = devices.iter().map(FlashCacheDevice::chunklet_count).min() else { return Ok(()) };
    if is_enough(least) {
        return Ok(());
    }
    let cores = counted(shards as u64, "core");
    let bytes = |chunklets: u64| SectorCount(chunklets * geometry.chunklet_sectors).bytes();
    let has = bytes(devices.iter().map(FlashCacheDevice::chunklet_count).sum());
    Err(match (least + 1..CHUNKLETS_MAX).find(|chunklets| is_enough(*chunklets)) {
        Some(needed) => format!(
            "a flash cache of {has:#} is too small for {cores}, each of which has a part of it on every drive; set \
             flash_cache to {:#} or more, or reduce array.cores",
            bytes(needed * devices.len() as u64)
        ),
        None => {
            let larger = |chunklet: &u64| {
                let piece = piece_of(*chunklet, shards);
                FlashPlace::is_enough(CHUNKLETS_MAX * piece, piece)
            };
            let doubled =
                std::iter::successors(Some(geometry.chunklet_sectors), |chunklet| Some(chunklet * 2));
            let chunklet =
                doubled.take(u32::BITS as usize).find(larger).map(|sectors| SectorCount(sectors).bytes());
            format!(
                "the flash cache cannot be divided among {cores}: chunklets of {:#} are too small for that; set \
                 pool.chunklet to {:#} or more, or reduce array.cores",
                bytes(1),
                chunklet.unwrap_or_default()
            )
        }
    })
}

/// Memory of which the tables of a cache of this size may be a part.
pub(crate) fn memory_for_tables(flash: ByteCount) -> ByteCount {
    ByteCount(flash.0.div_ceil(BYTES_PER_TABLE_BYTE) * MEMORY_PART)
}

fn options_of(geometry: &Geometry, writes_per_day: u32) -> FlashOptions {
    FlashOptions {
        pages_per_slot: (geometry.extent_sectors / PAGE_SECTORS) as u32,
        writes_per_day: f64::from(writes_per_day),
        patience: PATIENCE,
        read_patience: READ_PATIENCE,
    }
}

/// A shard's part of a chunklet.
fn piece_sectors(geometry: &Geometry, shards: usize) -> u64 {
    piece_of(geometry.chunklet_sectors, shards)
}

fn piece_of(chunklet_sectors: u64, shards: usize) -> u64 {
    chunklet_sectors / shards as u64 / PAGE_SECTORS * PAGE_SECTORS
}

/// A shard's pieces of a device.
fn place(geometry: &Geometry, device: &FlashCacheDevice, id: ShardId, drive: DriveHandle) -> FlashPlace {
    let piece_sectors = piece_sectors(geometry, id.shards);
    let first = |chunklet| Lba(geometry.chunklet_start(chunklet) + id.index as u64 * piece_sectors);
    FlashPlace { drive, pieces: device.addresses().map(first).collect(), piece_sectors }
}

/// By so many epochs a device goes on to one that was never announced.
pub(crate) fn fresh_epochs(world: &World) -> u64 {
    1 + world.nonce() % EPOCHS
}

/// Renews the epochs of a pool's flash cache: no device that is not there now, or that others write to meanwhile, is believed
/// later. `drives` are those of the members.
///
/// # Errors
/// When the metadata cannot be written.
pub(crate) async fn announce_epochs(
    world: &World,
    metadata: &Metadata,
    drives: &[Option<DriveHandle>],
) -> Result<(), ArrayError> {
    let state = metadata.state().clone();
    if state.flash_cache().devices.is_empty() {
        return Ok(());
    }
    let shards = state.log().shards().max(1);
    let options = options_of(state.geometry(), 0);
    let mut renewed = FlashCachePlacement::default();
    for device in &state.flash_cache().devices {
        // One that was announced in a start that came to nothing is not announced again.
        let next = device.epoch + fresh_epochs(world);
        if planted(PlantedBug::FlashEpochNotRenewed) {
            renewed = renewed.with(device.clone());
            continue;
        }
        let drive = drives.get(device.member as usize).cloned().flatten();
        for index in 0..shards {
            let Some(drive) = drive.clone() else { continue };
            let place = place(state.geometry(), device, ShardId { index, shards }, drive);
            let identity = FlashIdentity { id: device.id, shard: index as u32, shards: shards as u32 };
            // What cannot be told of it is not found warm.
            if let Err(error) = announce_epoch(world, &place, &identity, (device.epoch, next), &options).await
            {
                tracing::info!("the flash cache on drive {} begins empty: {error}", device.member);
            }
        }
        renewed = renewed.with(FlashCacheDevice { epoch: next, ..device.clone() });
    }
    metadata.commit(vec![MetaRecord::FlashCachePlaced(renewed)]).await?;
    Ok(())
}
