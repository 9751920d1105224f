//! Scans: an object's pages in order, in large reads, with several of them under way.
//!
//! A read that finds all its pages in the buffer costs no I/O. An object that is small beside the buffer leaves its pages there; a
//! large one is read past it. Where the engine joins scans, one that begins while another reads the same object starts at the
//! place where that is, and reads what it has missed afterwards. What was read last stays for a moment ([`RECENT`]), so both need
//! each read once.

use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, VecDeque};
use std::ops::Range;
use std::rc::Rc;

use tier0_block::BlockTarget;
use tier0_units::Nanos;
use tier0_world::sync::Notify;
use tier0_world::{IoError, World};

use crate::engine::Engine;
use crate::host::Host;
use crate::layout::Layout;
use crate::pages::Pages;
use crate::storage::Storage;

/// Reads of an object that stay for other scans, beside those under way.
const RECENT: usize = 16;

/// Scans of a database.
pub(crate) struct Scans<T> {
    world: World,
    storage: Rc<Storage<T>>,
    pages: Rc<Pages<T>>,
    layout: Layout,
    engine: Engine,
    costs: ScanCosts,
    /// By object.
    joint: RefCell<BTreeMap<usize, Joint>>,
    next: Cell<u64>,
}

/// Processor times.
#[derive(Clone, Copy)]
pub(crate) struct ScanCosts {
    /// Of a page.
    pub(crate) page: Nanos,
    /// Of an I/O.
    pub(crate) io: Nanos,
}

/// What the scans of an object have in common.
#[derive(Default)]
struct Joint {
    /// Where each scan is, by its number.
    places: BTreeMap<u64, u64>,
    /// The newest reads, by their numbers in the object.
    recent: VecDeque<(u64, Rc<Fetch>)>,
}

/// A read.
#[derive(Default)]
struct Fetch {
    done: Cell<Option<Result<(), IoError>>>,
    bell: Notify,
}

impl Fetch {
    async fn done(&self) -> Result<(), IoError> {
        loop {
            match self.done.get() {
                Some(result) => return result,
                None => self.bell.wait().await,
            }
        }
    }
}

impl<T: BlockTarget + 'static> Scans<T> {
    /// Scans through a buffer.
    pub(crate) fn new(
        world: &World,
        engine: &Engine,
        storage: &Rc<Storage<T>>,
        pages: &Rc<Pages<T>>,
        layout: &Layout,
        costs: ScanCosts,
    ) -> Scans<T> {
        let (world, storage, pages) = (world.clone(), storage.clone(), pages.clone());
        let (layout, engine) = (layout.clone(), engine.clone());
        let (joint, next) = (RefCell::default(), Cell::new(0));
        Scans { world, storage, pages, layout, engine, costs, joint, next }
    }

    /// Reads so many pages from `first` on, and works on each.
    pub(crate) async fn run(&self, first: u64, pages: u64, host: &Host) -> Result<(), IoError> {
        let object = self.layout.object_of(first);
        let placed = &self.layout.objects[object];
        let each = self.engine.read_ahead_pages();
        let begin = (first - placed.first_page) / each;
        let end = (first + pages - placed.first_page).div_ceil(each);
        let number = self.next.replace(self.next.get() + 1);
        let start = self.join(object, number, begin..end);
        let mut left = (start..end).chain(begin..start);
        let mut under_way = VecDeque::new();
        let mut owed = Nanos::ZERO;
        loop {
            while under_way.len() < self.engine.read_ahead_depth.value as usize
                && let Some(read) = left.next()
            {
                let (fetch, has_io) = self.fetch(object, read);
                if has_io {
                    owed = owed.saturating_add(self.costs.io);
                }
                under_way.push_back((read, fetch));
            }
            let Some((read, fetch)) = under_way.pop_front() else { break };
            if let Some(place) = self.joint.borrow_mut().entry(object).or_default().places.get_mut(&number) {
                *place = read;
            }
            host.work(std::mem::take(&mut owed)).await;
            fetch.done().await?;
            let pages = self.range(object, read);
            owed = Nanos(self.costs.page.0 * (pages.end - pages.start));
        }
        self.leave(object, number);
        host.work(owed).await;
        Ok(())
    }

    /// Where a scan of a range begins: where another one is, if there is one in this range.
    fn join(&self, object: usize, number: u64, range: Range<u64>) -> u64 {
        let mut joint = self.joint.borrow_mut();
        let places = &mut joint.entry(object).or_default().places;
        let others = places.values().find(|place| range.contains(place)).copied();
        let start = others.filter(|_| self.shares()).unwrap_or(range.start);
        places.insert(number, start);
        start
    }

    /// A scan is done. With the last one of an object its newest reads go.
    fn leave(&self, object: usize, number: u64) {
        let mut all = self.joint.borrow_mut();
        let joint = all.entry(object).or_default();
        joint.places.remove(&number);
        if joint.places.is_empty() {
            all.remove(&object);
        }
    }

    fn shares(&self) -> bool {
        self.engine.shared_scans.value > 0.0
    }

    /// The pages of a read.
    fn range(&self, object: usize, read: u64) -> Range<u64> {
        let placed = &self.layout.objects[object];
        let each = self.engine.read_ahead_pages();
        let first = placed.first_page + read * each;
        first..(first + each).min(placed.first_page + placed.pages)
    }

    /// Begins a read, if no other scan has, and tells whether it costs an I/O.
    fn fetch(&self, object: usize, read: u64) -> (Rc<Fetch>, bool) {
        let mut joint = self.joint.borrow_mut();
        let recent = &mut joint.entry(object).or_default().recent;
        if self.shares()
            && let Some((_, fetch)) = recent.iter().find(|(known, _)| *known == read)
        {
            return (fetch.clone(), false);
        }
        let fetch = Rc::new(Fetch::default());
        recent.push_back((read, fetch.clone()));
        if recent.len() > RECENT + self.engine.read_ahead_depth.value as usize {
            recent.pop_front();
        }
        let range = self.range(object, read);
        if range.clone().all(|page| self.pages.is_in_memory(page)) {
            fetch.done.set(Some(Ok(())));
            return (fetch, false);
        }
        let keeps = self.engine.keeps_scanned(self.layout.objects[object].pages, self.pages.capacity());
        let (storage, pages, result) = (self.storage.clone(), self.pages.clone(), fetch.clone());
        let work = async move {
            let read = async {
                storage.read(range.start, range.end - range.start).await?;
                if keeps {
                    pages.bring_in(range).await?;
                }
                Ok(())
            };
            result.done.set(Some(read.await));
            result.bell.notify_all();
        };
        self.world.spawn(work).detach();
        (fetch, true)
    }
}
