//! The page buffer at work: pages are read when they are missing, dirty ones are written behind.
//!
//! A dirty page that gives way keeps its memory until it is written. A few pages can be in this state ([`RESERVE`]); a task that
//! needs memory waits when there are more. Checkpoints write every dirty page, spread over a share of the time between them.
//! Both writers join dirty pages that lie side by side, up to the engine's limit.
//!
//! Invariant: no page is written before the log up to its newest change.

use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::ops::Range;
use std::rc::Rc;

use tier0_block::BlockTarget;
use tier0_units::Nanos;
use tier0_world::sync::{Notify, Semaphore};
use tier0_world::{IoError, World};

use crate::buffer::{Access, Buffer, Gathered};
use crate::engine::Engine;
use crate::images::Images;
use crate::log::Log;
use crate::script::TouchKind;
use crate::storage::Storage;

/// Pages that may be on their way out at once, as a share of the buffer: what an engine's free list holds.
const RESERVE: f64 = 0.02;
/// And at least.
const RESERVE_MIN: usize = 16;

/// How a page was had.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Had {
    /// It was in memory.
    InMemory,
    /// It was read, or waited for while another task read it.
    Read,
}

/// A page buffer over storage.
pub(crate) struct Pages<T> {
    world: World,
    storage: Rc<Storage<T>>,
    log: Rc<Log<T>>,
    buffer: RefCell<Buffer>,
    /// Pages that are being read, with the tasks that wait for them.
    loading: RefCell<BTreeMap<u64, Rc<Notify>>>,
    /// Dirty pages that gave way and nothing writes yet.
    victims: RefCell<VecDeque<u64>>,
    /// Pages that gave way and are being written.
    writing: RefCell<BTreeSet<u64>>,
    /// Pages that gave way and still have memory.
    leaving: Cell<usize>,
    reserve: usize,
    work: Notify,
    room: Notify,
    writes: Semaphore,
    gather: u64,
    checkpoint: (Nanos, f64),
    images: Images,
    error: Cell<Option<IoError>>,
}

impl<T: BlockTarget + 'static> Pages<T> {
    pub(crate) fn new(
        world: &World,
        engine: &Engine,
        storage: &Rc<Storage<T>>,
        log: &Rc<Log<T>>,
        images: Images,
        buffer: Buffer,
    ) -> Pages<T> {
        let reserve = (buffer.capacity() as f64 * RESERVE) as usize;
        Pages {
            world: world.clone(),
            storage: storage.clone(),
            log: log.clone(),
            buffer: RefCell::new(buffer),
            loading: RefCell::default(),
            victims: RefCell::default(),
            writing: RefCell::default(),
            leaving: Cell::new(0),
            reserve: reserve.max(RESERVE_MIN),
            work: Notify::new(),
            room: Notify::new(),
            writes: Semaphore::new(engine.writes.value as u64),
            gather: engine.gather.value as u64,
            checkpoint: (
                Nanos((engine.checkpoint.value * 1e6) as u64),
                engine.checkpoint_spread.value / 100.0,
            ),
            images,
            error: Cell::new(None),
        }
    }

    /// A page is about to be changed: bytes of its full image that the log needs.
    pub(crate) fn image(&self, page: u64) -> u64 {
        self.images.change(page)
    }

    /// Whether a page can be had without waiting.
    pub(crate) fn is_in_memory(&self, page: u64) -> bool {
        self.buffer.borrow().holds(page) && !self.loading.borrow().contains_key(&page)
    }

    /// How many pages the buffer holds.
    pub(crate) fn capacity(&self) -> u64 {
        self.buffer.borrow().capacity()
    }

    /// Whether a page is neither in memory nor on its way there.
    pub(crate) fn is_absent(&self, page: u64) -> bool {
        !self.buffer.borrow().holds(page)
    }

    /// Has a page in memory, and changes it where `log` says where the record of the change ends.
    pub(crate) async fn touch(&self, page: u64, kind: TouchKind, log: Option<u64>) -> Result<Had, IoError> {
        let mut had = Had::InMemory;
        loop {
            let loading = self.loading.borrow().get(&page).cloned();
            if let Some(loading) = loading {
                had = Had::Read;
                loading.wait().await;
                self.check()?;
                continue;
            }
            let access = self.buffer.borrow_mut().access(page);
            let (evicted, must_read) = match access {
                Access::Hit => (None, false),
                Access::Back { evicted } => {
                    self.leaving.set(self.leaving.get() - 1);
                    (evicted, false)
                }
                Access::Miss { evicted } => {
                    (evicted, kind != TouchKind::Create && !self.writing.borrow().contains(&page))
                }
            };
            if must_read {
                self.loading.borrow_mut().insert(page, Rc::new(Notify::new()));
            }
            self.give_way(evicted);
            if access != Access::Hit {
                self.until_room().await?;
            }
            if must_read {
                had = Had::Read;
                let result = self.storage.read(page, 1).await;
                if let Some(waiting) = self.loading.borrow_mut().remove(&page) {
                    waiting.notify_all();
                }
                result.inspect_err(|error| self.error.set(Some(*error)))?;
            }
            // Where memory is very short it can have given way again.
            let mut buffer = self.buffer.borrow_mut();
            if !buffer.holds(page) {
                continue;
            }
            if let Some(log) = log {
                buffer.change(page, log);
            }
            return Ok(had);
        }
    }

    /// Reads a page that will be touched, meanwhile.
    pub(crate) fn read_ahead(self: &Rc<Self>, page: u64) {
        let pages = self.clone();
        // The page's own touch fails where this fails.
        let read = async move { _ = pages.touch(page, TouchKind::Read, None).await };
        self.world.spawn(read).detach();
    }

    /// Reads pages past the buffer.
    pub(crate) async fn read_past(&self, first: u64, pages: u64) -> Result<(), IoError> {
        self.storage.read(first, pages).await
    }

    /// Takes pages in that a scan has read.
    pub(crate) async fn bring_in(&self, range: Range<u64>) -> Result<(), IoError> {
        for page in range {
            if self.loading.borrow().contains_key(&page) {
                continue;
            }
            let access = self.buffer.borrow_mut().access(page);
            match access {
                Access::Hit => continue,
                Access::Back { evicted } => {
                    self.leaving.set(self.leaving.get() - 1);
                    self.give_way(evicted);
                }
                Access::Miss { evicted } => self.give_way(evicted),
            }
            self.until_room().await?;
        }
        Ok(())
    }

    /// A dirty page gave way, and waits for a writer.
    fn give_way(&self, evicted: Option<u64>) {
        let Some(gone) = evicted else { return };
        self.leaving.set(self.leaving.get() + 1);
        self.victims.borrow_mut().push_back(gone);
        self.work.notify_all();
    }

    /// Waits while too many pages are on their way out.
    async fn until_room(&self) -> Result<(), IoError> {
        while self.leaving.get() > self.reserve {
            self.room.wait().await;
            self.check()?;
        }
        Ok(())
    }

    fn check(&self) -> Result<(), IoError> {
        self.error.get().map_or(Ok(()), Err)
    }

    /// Writes pages that gave way, without end.
    pub(crate) async fn write_victims(self: Rc<Self>) {
        loop {
            let Some(page) = self.victims.borrow_mut().pop_front() else {
                self.work.wait().await;
                continue;
            };
            self.write_around(page).await;
        }
    }

    /// Checkpoints, without end.
    pub(crate) async fn checkpoint(self: Rc<Self>) {
        let (interval, spread) = self.checkpoint;
        loop {
            let began = self.world.now();
            self.images.checkpoint();
            let time = Nanos::from_secs_f64(interval.as_secs_f64() * spread);
            let all = self.buffer.borrow().dirty().max(1);
            let (mut from, mut done) = (0, 0);
            loop {
                let next = self.buffer.borrow().next_dirty(from);
                let Some(page) = next else { break };
                let written = self.write_around(page).await;
                (from, done) = (written.map_or(page + 1, |pages| pages.first + pages.pages), done + 1);
                let pages = written.map_or(1, |pages| pages.pages);
                let share = (done as f64 * pages as f64 / all as f64).min(1.0);
                let due = began.saturating_add(Nanos::from_secs_f64(time.as_secs_f64() * share));
                if due > self.world.now() {
                    self.world.sleep_until(due).await;
                }
            }
            let next = began.saturating_add(interval);
            if next > self.world.now() {
                self.world.sleep_until(next).await;
            }
        }
    }

    /// Begins to write a page with its dirty neighbours, if it is dirty.
    async fn write_around(self: &Rc<Self>, page: u64) -> Option<Gathered> {
        let permit = self.writes.acquire(1).await;
        let bounds = self.storage.together(page);
        let (gathered, left) = {
            let mut buffer = self.buffer.borrow_mut();
            let gathered = buffer.gather(page, self.gather, bounds)?;
            let pages = gathered.first..gathered.first + gathered.pages;
            let left: Vec<u64> = pages.filter(|page| !buffer.holds(*page)).collect();
            (gathered, left)
        };
        self.writing.borrow_mut().extend(&left);
        let pages = self.clone();
        let write = async move {
            let _permit = permit;
            let written = async {
                pages.log.until_written(gathered.newest).await?;
                assert!(pages.log.written() >= gathered.newest, "a page is written before its log");
                pages.storage.write(gathered.first, gathered.pages).await
            };
            if let Err(error) = written.await {
                pages.error.set(Some(error));
            }
            let mut writing = pages.writing.borrow_mut();
            left.iter().for_each(|page| _ = writing.remove(page));
            pages.leaving.set(pages.leaving.get() - left.len());
            drop(writing);
            pages.room.notify_all();
        };
        self.world.spawn(write).detach();
        Some(gathered)
    }

    /// What went wrong, if anything did.
    pub(crate) fn error(&self) -> Option<IoError> {
        self.error.get()
    }

    /// Dirty pages, as a share of the buffer.
    pub(crate) fn dirty_share(&self) -> f64 {
        let buffer = self.buffer.borrow();
        buffer.dirty() as f64 / buffer.capacity() as f64
    }
}
