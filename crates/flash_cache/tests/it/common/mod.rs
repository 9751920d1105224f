//! A flash cache on a simulated drive, with the truth beside it.
//!
//! A page of a slot has a version, and from these three follows what it holds. Pages change as in an array: they are
//! struck out, and until that is settled something else shadows them, also over a crash.

#![allow(unreachable_pub, reason = "a test program has no public interface")]

use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;

use tier0_drive::DriveHandle;
use tier0_drive::sim::{PowerSwitch, SimMedium, SimOptions};
use tier0_flash_cache::{
    Disown, FlashCache, FlashError, FlashIdentity, FlashOptions, FlashPlace, LoadReport, LocalFuture, Offer,
    announce_epoch,
};
use tier0_units::{Lba, Nanos, SectorCount};
use tier0_world::{BufMut, PayloadWidth, World};
use uuid::Uuid;

pub const SLOTS: u64 = 8;
pub const PAGES: u32 = 64;
pub const PIECE_SECTORS: u64 = 64 * 8;
pub const PIECES: usize = 5;
pub const PIECES_MAX: usize = 8;
/// Pages of each copy of the log in so small a part.
pub const RING_PAGES: u64 = 34;
/// Pages before its first way.
pub const FRONT_PAGES: u64 = 2 + 2 * RING_PAGES;
pub const DEVICE: u32 = 3;
pub const IDENTITY: FlashIdentity = FlashIdentity { id: Uuid::from_u128(0xf1a5), shard: 1, shards: 2 };

/// What outlives the worlds: the drive, and what the pool's metadata and its write log know.
pub struct Pool {
    pub medium: SimMedium,
    pub switch: PowerSwitch,
    /// The epoch of the device; none if it is to be made new.
    pub epoch: Cell<Option<u64>>,
    /// The last epoch that was ever named.
    last_epoch: Cell<u64>,
    pub pieces: Cell<usize>,
    pub disowned: Cell<u32>,
    /// Whether steps of a life may cut the power.
    pub steps_cut: Cell<bool>,
    versions: RefCell<BTreeMap<(u64, u32), u64>>,
    /// Pages whose strike is not settled.
    shadow: RefCell<BTreeSet<(u64, u32)>>,
}

impl Pool {
    pub fn new(seed: u64) -> Rc<Pool> {
        let switch = PowerSwitch::new();
        let sectors = SectorCount(2 * PIECES_MAX as u64 * PIECE_SECTORS + 1000);
        let medium = SimMedium::new(SimOptions::new("flash", sectors, seed), &switch);
        Rc::new(Pool {
            medium,
            switch,
            epoch: Cell::new(None),
            last_epoch: Cell::new(100),
            pieces: Cell::new(PIECES),
            disowned: Cell::new(0),
            steps_cut: Cell::new(false),
            versions: RefCell::default(),
            shadow: RefCell::default(),
        })
    }

    pub fn fresh_epoch(&self) -> u64 {
        self.last_epoch.set(self.last_epoch.get() + 1);
        self.last_epoch.get()
    }

    pub fn version(&self, slot: u64, page: u32) -> u64 {
        self.versions.borrow().get(&(slot, page)).copied().unwrap_or(0)
    }

    pub fn is_shadowed(&self, slot: u64, page: u32) -> bool {
        self.shadow.borrow().contains(&(slot, page))
    }

    pub fn shadowed(&self) -> Vec<(u64, u32)> {
        self.shadow.borrow().iter().copied().collect()
    }

    /// What a slot holds, as if read.
    pub fn content(&self, slot: u64, page: u32, pages: u32) -> BufMut {
        let mut buf = BufMut::new(pages * 8, PayloadWidth::REAL);
        for (page, bytes) in (page..).zip(buf.as_mut_slice().chunks_exact_mut(4096)) {
            let mark = slot << 48 ^ u64::from(page) << 32 ^ self.version(slot, page);
            for (n, place) in (0u64..).zip(bytes.chunks_exact_mut(8)) {
                let value = (mark ^ n << 56).wrapping_mul(0x9e37_79b9_7f4a_7c15);
                place.copy_from_slice(&value.to_le_bytes());
            }
        }
        buf
    }
}

impl Disown for Pool {
    fn disown(&self, device: u32) -> LocalFuture<'_, ()> {
        assert_eq!(device, DEVICE);
        Box::pin(async {
            self.disowned.set(self.disowned.get() + 1);
            self.epoch.set(None);
        })
    }
}

/// First sectors of pieces: the first four are neighbours, the others lie elsewhere.
pub fn pieces(count: usize) -> Vec<Lba> {
    let scattered = |n: u64| Lba(8 + if n < 4 { n * PIECE_SECTORS } else { n * 2 * PIECE_SECTORS - 64 });
    (0..count as u64).map(scattered).collect()
}

/// A cache in one world.
#[derive(Clone)]
pub struct Rig {
    pub pool: Rc<Pool>,
    pub world: World,
    pub drive: DriveHandle,
    pub cache: Rc<FlashCache>,
}

pub fn options() -> FlashOptions {
    FlashOptions { writes_per_day: f64::INFINITY, ..FlashOptions::new(PAGES) }
}

impl Rig {
    /// A cache without a device.
    pub fn new(world: &World, pool: &Rc<Pool>) -> Rig {
        let drive = pool.medium.open(world);
        Rig::on(world, pool, drive, options())
    }

    pub fn on(world: &World, pool: &Rc<Pool>, drive: DriveHandle, options: FlashOptions) -> Rig {
        let cache = Rc::new(FlashCache::new(world, options, pool.clone()));
        Rig { pool: pool.clone(), world: world.clone(), drive, cache }
    }

    pub fn place(&self) -> FlashPlace {
        FlashPlace {
            drive: self.drive.clone(),
            pieces: pieces(self.pool.pieces.get()),
            piece_sectors: PIECE_SECTORS,
        }
    }

    pub async fn warm(&self, epoch: u64) -> Result<LoadReport, FlashError> {
        self.cache.add_warm(DEVICE, self.place(), IDENTITY, epoch, |slot| slot < SLOTS).await
    }

    /// The device is made new under an epoch that the pool has first.
    pub async fn format(&self) -> Result<(), FlashError> {
        let epoch = self.pool.fresh_epoch();
        self.pool.epoch.set(Some(epoch));
        self.cache.add_new(DEVICE, self.place(), IDENTITY, epoch).await
    }

    /// Announces the next epoch of the device, which it returns.
    pub async fn announce(&self) -> Result<u64, FlashError> {
        let (epoch, next) = (self.pool.epoch.get().unwrap_or_default(), self.pool.fresh_epoch());
        announce_epoch(&self.world, &self.place(), &IDENTITY, (epoch, next), &options()).await?;
        Ok(next)
    }

    /// Renews the epoch of the device before it is opened.
    pub async fn renew(&self) -> Result<u64, FlashError> {
        let next = self.announce().await?;
        self.pool.epoch.set(Some(next));
        Ok(next)
    }

    /// As an array starts: with what the device holds, or anew.
    pub async fn start(&self) -> Result<Option<LoadReport>, FlashError> {
        if self.pool.epoch.get().is_some() {
            let next = self.renew().await?;
            if let Ok(report) = self.warm(next).await {
                return Ok(Some(report));
            }
        }
        self.format().await?;
        Ok(None)
    }

    pub fn offer(&self, slot: u64, page: u32, pages: u32, offer: Offer) {
        let buf = self.pool.content(slot, page, pages);
        self.cache.offer(slot, u64::from(page) * 8, &buf, offer);
    }

    /// Reads pages; an error if what comes from flash is not what the slot holds.
    pub async fn read(&self, slot: u64, page: u32, pages: u32) -> Result<bool, String> {
        self.read_sectors(slot, u64::from(page) * 8, pages * 8).await
    }

    pub async fn read_sectors(&self, slot: u64, first: u64, sectors: u32) -> Result<bool, String> {
        let (hit, buf) = self.cache.read(slot, first, self.world.buffer(sectors)).await;
        assert_eq!(buf.sectors(), sectors, "the buffer comes back");
        let page = (first / 8) as u32;
        let pages = (first + u64::from(sectors)).div_ceil(8) as u32 - page;
        let right = self.pool.content(slot, page, pages);
        let from = (first % 8) as usize * 512;
        if hit && buf.as_slice() != &right.as_slice()[from..from + sectors as usize * 512] {
            return Err(format!("pages {page}+{pages} of slot {slot} are not what the slot holds"));
        }
        Ok(hit)
    }

    /// Pages of a slot are about to change: they are struck out, and shadowed. Those that were read lately.
    pub fn change(&self, slot: u64, pages: impl Iterator<Item = u32> + Clone) -> Vec<u32> {
        for page in pages.clone() {
            self.pool.shadow.borrow_mut().insert((slot, page));
            *self.pool.versions.borrow_mut().entry((slot, page)).or_default() += 1;
        }
        match pages.clone().count() == PAGES as usize {
            true => {
                self.cache.forget_slot(slot);
                Vec::new()
            }
            false => self.cache.strike(slot, pages),
        }
    }

    /// Pages of a slot have changed, and the cache may keep what they hold now.
    pub fn offer_written(&self, slot: u64, pages: &[u32]) {
        for page in pages {
            self.cache.offer_written(slot, *page, self.pool.content(slot, *page, 1).as_slice());
        }
    }

    /// Settles; what was changed before is shadowed no more.
    pub async fn settle(&self) {
        let shadowed = self.pool.shadowed();
        self.cache.settle().await;
        self.pool.shadow.borrow_mut().retain(|page| !shadowed.contains(page));
    }

    /// After a start: what was shadowed is struck out again, and settled.
    pub async fn replay(&self) {
        for (slot, page) in self.pool.shadowed() {
            self.cache.strike(slot, std::iter::once(page));
        }
        self.settle().await;
    }

    /// Reads everything that is not shadowed: how many pages came from flash. Nothing fails its check.
    pub async fn verify(&self) -> Result<u64, String> {
        let mut found = 0;
        for slot in 0..SLOTS {
            for page in (0..PAGES).step_by(2) {
                let is_free = |page: &u32| !self.pool.is_shadowed(slot, *page);
                if is_free(&page) && is_free(&(page + 1)) && self.read(slot, page, 2).await? {
                    found += 2;
                    continue;
                }
                for page in [page, page + 1].into_iter().filter(is_free) {
                    found += u64::from(self.read(slot, page, 1).await?);
                }
            }
        }
        match self.cache.status().read_errors {
            0 => Ok(found),
            errors => Err(format!("{errors} lines fail their check on a good drive")),
        }
    }

    /// Fills the cache, and waits until all that came in is in the log.
    pub async fn fill(&self) {
        for slot in 0..SLOTS {
            for page in (0..PAGES).step_by(16) {
                self.offer(slot, page, 16, Offer::Again);
            }
            self.rest().await;
        }
    }

    /// Longer than anything waits for others.
    pub async fn rest(&self) {
        self.world.sleep(Nanos::from_millis(1600)).await;
    }
}
