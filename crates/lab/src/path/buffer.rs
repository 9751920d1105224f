//! The protected write buffer of an array under a lasting random load.
//!
//! A write is acknowledged once the buffer has room for it. It leaves the buffer when the drives hold it; the oldest
//! leaves first. The buffer starts full of earlier writes, as it is after minutes of load: if the drives then keep up,
//! it drains and writes are fast; if they do not, every write waits for room, and the wait grows until the host's loop
//! asks no faster than the drives write.
//!
//! Assumptions: nothing in the buffer is overwritten or read (a random load over hundreds of gigabytes meets a gigabyte
//! of buffer once in some hundred requests); destaging neither sorts nor joins writes. Then the buffer's size changes
//! only how long it takes to fill or drain, so a part of it is modelled.

use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::rc::Rc;

use tier0_drive::BlockTarget;
use tier0_units::Lba;
use tier0_world::sync::{Permit, Semaphore};
use tier0_world::{Random, World};

/// A write buffer above the volumes of one array; clones share it.
pub struct WriteBuffer<T>(Rc<Inner<T>>);

impl<T> Clone for WriteBuffer<T> {
    fn clone(&self) -> WriteBuffer<T> {
        WriteBuffer(self.0.clone())
    }
}

struct Inner<T> {
    world: World,
    volumes: Rc<[T]>,
    room: Semaphore,
    dirty: RefCell<VecDeque<Dirty>>,
    under_way: Cell<usize>,
    under_way_max: usize,
}

struct Dirty {
    volume: usize,
    lba: Lba,
    sectors: u32,
    _room: Option<Permit>,
}

impl<T: BlockTarget + 'static> WriteBuffer<T> {
    /// A buffer of `sectors` over `volumes`, whose back end lets `pages` be destaged at a time. So many writes are under
    /// way: each has a page at least, so those that wait for a RAID row's lock leave no page unused.
    pub fn new(world: &World, volumes: Rc<[T]>, sectors: u64, pages: usize) -> WriteBuffer<T> {
        assert_eq!(world.width().bytes(), 0, "the buffer keeps no data");
        WriteBuffer(Rc::new(Inner {
            world: world.clone(),
            volumes,
            room: Semaphore::new(sectors),
            dirty: RefCell::default(),
            under_way: Cell::new(0),
            under_way_max: pages,
        }))
    }

    /// Fills the room there is with writes of `sectors` at random places, whole multiples of `align`.
    pub async fn fill(&self, sectors: u32, align: u64, random: &mut Random) {
        while self.0.room.free() >= u64::from(sectors) {
            let volume = random.below(self.0.volumes.len() as u64) as usize;
            let size = self.0.volumes[volume].info().sectors.0;
            let places = (size - u64::from(sectors)) / align + 1;
            self.write(volume, Lba(random.below(places) * align), sectors).await;
        }
    }

    /// Ends when the buffer holds the write.
    pub async fn write(&self, volume: usize, lba: Lba, sectors: u32) {
        let room = self.0.room.acquire(u64::from(sectors)).await;
        self.0.dirty.borrow_mut().push_back(Dirty { volume, lba, sectors, _room: Some(room) });
        self.destage();
    }

    /// Sends the oldest writes on, as many as may be under way.
    fn destage(&self) {
        while self.0.under_way.get() < self.0.under_way_max {
            let Some(dirty) = self.0.dirty.borrow_mut().pop_front() else { return };
            self.0.under_way.set(self.0.under_way.get() + 1);
            let buffer = self.clone();
            self.0.world.spawn(async move { buffer.carry_out(dirty).await }).detach();
        }
    }

    async fn carry_out(&self, dirty: Dirty) {
        let data = self.0.world.buffer(dirty.sectors).freeze();
        // A modelled drive without injected faults takes every write; were one lost, the row would be degraded, and
        // the volume says so itself.
        let _ = self.0.volumes[dirty.volume].write(dirty.lba, data, false).await;
        drop(dirty);
        self.0.under_way.set(self.0.under_way.get() - 1);
        self.destage();
    }
}
