//! Where a database's pages and log lie: objects on volumes, and what they read and write there.

use std::cell::RefCell;
use std::rc::Rc;

use tier0_block::BlockTarget;
use tier0_units::{ByteCount, Lba, SECTOR_BYTES};
use tier0_workload::stats::Tally;
use tier0_world::sync::{Permit, Semaphore};
use tier0_world::{IoError, World};

use crate::layout::Layout;
use crate::page_cache::PageCache;

/// Objects that lie on several volumes are dealt out in pieces of this size, as engines fill the files of a group in turn.
const PIECE: ByteCount = ByteCount::mib(1);

/// On which volumes a database's objects lie, by their places in a list of volumes.
#[derive(Clone, Debug, PartialEq)]
pub struct Placement {
    /// By object: at least one volume each.
    pub objects: Vec<Vec<usize>>,
    /// The log's volume.
    pub log: usize,
    /// The log's size; it is written in a ring.
    pub log_bytes: ByteCount,
    /// Pieces lie so many times as far apart as they are long, at least 1: what is between them is never touched.
    pub spread: f64,
}

impl Placement {
    /// What lies on each of so many volumes.
    pub fn needed(&self, layout: &Layout, volumes: usize) -> Vec<ByteCount> {
        let mut used = vec![0; volumes];
        for (object, on) in layout.objects.iter().zip(&self.objects) {
            on.iter().for_each(|volume| used[*volume] += self.share(object.pages, layout.page, on.len()));
        }
        used[self.log] += self.log_bytes.0;
        used.into_iter().map(ByteCount).collect()
    }

    /// Bytes that an object of so many pages takes on each of so many volumes.
    fn share(&self, pages: u64, page: ByteCount, volumes: usize) -> u64 {
        byte_of((pages * page.0).div_ceil(PIECE.0).div_ceil(volumes as u64), self.spread)
    }
}

/// The byte of an object on a volume at which its piece of this number there begins.
fn byte_of(piece: u64, spread: f64) -> u64 {
    (piece as f64 * spread) as u64 * PIECE.0
}

/// A volume that is too small.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "volume {volume} has {has:#} and its objects need {needs:#}; make it larger, place fewer objects on it, or scale the database down"
)]
pub struct TooSmall {
    /// Its place in the list.
    pub volume: usize,
    /// Its size.
    pub has: ByteCount,
    /// What lies on it.
    pub needs: ByteCount,
}

/// Where an object's first piece on each of its volumes lies.
struct Home {
    /// Volume, and the byte at which the object begins there.
    volumes: Vec<(usize, u64)>,
}

/// What was read and written, by object, and by the log.
pub struct Transfers {
    /// Reads of each object's pages.
    pub reads: Vec<Tally>,
    /// Pages of each object that the database asked for and the page cache held.
    pub cached: Vec<u64>,
    /// Writes of each object's pages.
    pub writes: Vec<Tally>,
    /// Writes of the log.
    pub log: Tally,
    /// The same by volume, the log's writes with them.
    pub volumes: Vec<VolumeIo>,
    /// Pages written: a write can carry several.
    pub pages_written: u64,
}

/// What a database read from a volume and wrote to it.
#[derive(Clone, Debug, Default)]
pub struct VolumeIo {
    /// Reads.
    pub reads: Tally,
    /// Writes.
    pub writes: Tally,
}

impl Transfers {
    fn none(objects: usize, volumes: usize) -> Transfers {
        let tallies = || (0..objects).map(|_| Tally::new()).collect();
        Transfers {
            reads: tallies(),
            cached: vec![0; objects],
            writes: tallies(),
            log: Tally::new(),
            volumes: vec![VolumeIo::default(); volumes],
            pages_written: 0,
        }
    }
}

/// A database's volumes.
pub struct Storage<T> {
    world: World,
    volumes: Vec<Rc<T>>,
    layout: Layout,
    homes: Vec<Home>,
    log: (usize, u64, u64),
    spread: f64,
    /// What may be under way to each volume; no limit where there is none.
    queues: Vec<Semaphore>,
    /// Writes may stay in volatile caches until a flush.
    flushes: bool,
    page_cache: RefCell<PageCache>,
    transfers: RefCell<Transfers>,
}

impl<T: BlockTarget> Storage<T> {
    /// Places a layout's objects on volumes.
    ///
    /// # Errors
    /// A volume is too small.
    pub fn new(
        world: &World,
        layout: &Layout,
        volumes: Vec<Rc<T>>,
        placement: &Placement,
    ) -> Result<Storage<T>, TooSmall> {
        let mut used = vec![0u64; volumes.len()];
        let homes = layout.objects.iter().zip(&placement.objects).map(|(object, on)| {
            let each = placement.share(object.pages, layout.page, on.len());
            let place = |volume: &usize| {
                let begin = used[*volume];
                used[*volume] += each;
                (*volume, begin)
            };
            Home { volumes: on.iter().map(place).collect() }
        });
        let homes = homes.collect();
        let log = (placement.log, used[placement.log], placement.log_bytes.0);
        used[placement.log] += placement.log_bytes.0;
        for (number, (volume, needs)) in volumes.iter().zip(used).enumerate() {
            let has = volume.info().sectors.bytes();
            if needs > has.0 {
                return Err(TooSmall { volume: number, has, needs: ByteCount(needs) });
            }
        }
        let transfers = RefCell::new(Transfers::none(layout.objects.len(), volumes.len()));
        let (world, layout, spread) = (world.clone(), layout.clone(), placement.spread);
        let (queues, page_cache) = (Vec::new(), RefCell::new(PageCache::new(0)));
        Ok(Storage {
            world,
            volumes,
            layout,
            homes,
            log,
            spread,
            queues,
            page_cache,
            flushes: false,
            transfers,
        })
    }

    /// The same from a host that has so many I/Os to a volume under way at most.
    pub fn with_queue(mut self, depth: Option<u32>) -> Storage<T> {
        let queue = |depth| Semaphore::new(u64::from(depth));
        self.queues =
            depth.into_iter().flat_map(|depth| self.volumes.iter().map(move |_| queue(depth))).collect();
        self
    }

    /// The same for an engine whose writes may stay in volatile caches until a flush, which follows each write of the log.
    pub fn with_flushes(mut self, flushes: bool) -> Storage<T> {
        self.flushes = flushes;
        self
    }

    /// The same behind a page cache of so many bytes.
    pub fn with_page_cache(self, size: ByteCount) -> Storage<T> {
        self.page_cache.replace(PageCache::new(size.0 / self.layout.page.0));
        self
    }

    /// Pages that the page cache can hold.
    pub(crate) fn page_cache_capacity(&self) -> u64 {
        self.page_cache.borrow().capacity()
    }

    /// A page goes through the page cache without I/O: whether it was there.
    pub(crate) fn pass_page_cache(&self, page: u64) -> bool {
        self.page_cache.borrow_mut().access(page)
    }

    /// Waits until an I/O to a volume may leave the host; it may until what this returns is dropped.
    async fn turn(&self, volume: usize) -> Option<Permit> {
        match self.queues.get(volume) {
            Some(queue) => Some(queue.acquire(1).await),
            None => None,
        }
    }

    /// Where a page lies: the volume, the first sector, how many.
    pub(crate) fn place_of(&self, page: u64) -> (usize, Lba, u64) {
        let (volume, lba, sectors) = self.place(self.layout.object_of(page), page, 1);
        (volume, lba, u64::from(sectors))
    }

    /// Reads pages that lie side by side in a piece.
    pub(crate) async fn read(&self, first: u64, pages: u64) -> Result<(), IoError> {
        let object = self.layout.object_of(first);
        let mut are_cached = true;
        (first..first + pages).for_each(|page| are_cached &= self.pass_page_cache(page));
        if are_cached {
            self.transfers.borrow_mut().cached[object] += pages;
            return Ok(());
        }
        let (volume, lba, sectors) = self.place(object, first, pages);
        let began = self.world.now();
        let _turn = self.turn(volume).await;
        let (result, _) = self.volumes[volume].read(lba, self.world.buffer(sectors)).await;
        result?;
        let bytes = u64::from(sectors) * SECTOR_BYTES;
        let took = self.world.now().saturating_sub(began);
        let mut transfers = self.transfers.borrow_mut();
        transfers.reads[object].record(bytes, took);
        transfers.volumes[volume].reads.record(bytes, took);
        Ok(())
    }

    /// Writes pages that lie side by side in a piece.
    pub(crate) async fn write(&self, first: u64, pages: u64) -> Result<(), IoError> {
        let object = self.layout.object_of(first);
        let (volume, lba, sectors) = self.place(object, first, pages);
        let began = self.world.now();
        let data = self.world.buffer(sectors).freeze();
        (first..first + pages).for_each(|page| _ = self.pass_page_cache(page));
        let _turn = self.turn(volume).await;
        self.volumes[volume].write(lba, data, !self.flushes).await?;
        let bytes = u64::from(sectors) * SECTOR_BYTES;
        let took = self.world.now().saturating_sub(began);
        let mut transfers = self.transfers.borrow_mut();
        transfers.writes[object].record(bytes, took);
        transfers.volumes[volume].writes.record(bytes, took);
        transfers.pages_written += pages;
        Ok(())
    }

    /// Writes so many bytes of the log behind its byte `at`. They are durable when this returns.
    pub(crate) async fn write_log(&self, at: u64, bytes: u64) -> Result<(), IoError> {
        let (volume, begin, size) = self.log;
        let inside = (at % size).min(size - bytes.min(size));
        let sectors = (bytes / SECTOR_BYTES) as u32;
        let began = self.world.now();
        let data = self.world.buffer(sectors).freeze();
        // The ring begins and goes on at whole pages of the array.
        let lba = Lba((begin + inside) / 4096 * 4096 / SECTOR_BYTES);
        let _turn = self.turn(volume).await;
        self.volumes[volume].write(lba, data, !self.flushes).await?;
        if self.flushes {
            self.volumes[volume].flush().await?;
        }
        let took = self.world.now().saturating_sub(began);
        let mut transfers = self.transfers.borrow_mut();
        transfers.log.record(bytes, took);
        transfers.volumes[volume].writes.record(bytes, took);
        Ok(())
    }

    /// The pages around one that may be written at once with it: those of its object and its piece.
    pub(crate) fn together(&self, page: u64) -> std::ops::Range<u64> {
        let object = &self.layout.objects[self.layout.object_of(page)];
        let per_piece = PIECE.0 / self.layout.page.0;
        let piece = (page - object.first_page) / per_piece;
        let first = object.first_page + piece * per_piece;
        first..(first + per_piece).min(object.first_page + object.pages)
    }

    fn place(&self, object: usize, page: u64, pages: u64) -> (usize, Lba, u32) {
        let home = &self.homes[object].volumes;
        let byte = (page - self.layout.objects[object].first_page) * self.layout.page.0;
        let (piece, inside) = (byte / PIECE.0, byte % PIECE.0);
        let count = home.len() as u64;
        let (volume, begin) = home[(piece % count) as usize];
        let at = begin + byte_of(piece / count, self.spread) + inside;
        (volume, Lba(at / SECTOR_BYTES), (pages * self.layout.page.0 / SECTOR_BYTES) as u32)
    }

    /// What was transferred since it was last asked.
    pub fn take_transfers(&self) -> Transfers {
        self.transfers.replace(Transfers::none(self.layout.objects.len(), self.volumes.len()))
    }
}
