//! The cache of one shard and pool as its owner sees it: zero or more devices.

use std::cell::{Ref, RefCell};
use std::future::Future;
use std::pin::Pin;
use std::rc::Rc;

use tier0_units::{Lba, Nanos, PAGE_SECTORS};
use tier0_world::{BufMut, World};
use uuid::Uuid;

use crate::admission::OverBudget;
use crate::device::{Device, Shared};
use crate::error::FlashError;
use crate::fill::{BATCH_LINES, Offered, QUEUE_LINES_MAX, bytes_of, page_of};
use crate::home::desire;
use crate::line::Lines;
use crate::load::LoadReport;
use crate::patience::within;
use crate::place::FlashPlace;
use crate::state::{Mode, State};
use crate::status::{FlashCacheStatus, FlashRoom};

/// A future of one thread, borrowed from its maker.
pub type LocalFuture<'a, T> = Pin<Box<dyn Future<Output = T> + 'a>>;

/// Which part of a device it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FlashIdentity {
    /// Names the device's part in this shard.
    pub id: Uuid,
    /// The shard.
    pub shard: u32,
    /// How many shards there are.
    pub shards: u32,
}

/// How the cache behaves.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct FlashOptions {
    /// Pages of a slot; the same in all shards, and for ever.
    pub pages_per_slot: u32,
    /// How often its size may be written to a device in a day.
    pub writes_per_day: f64,
    /// How long any one command that writes may take, or a flush, before the device is disowned. Settling takes longer
    /// where several records have to be written, one after the other.
    pub patience: Nanos,
    /// How long a read may take before it counts as a miss.
    pub read_patience: Nanos,
}

impl FlashOptions {
    /// What is usual, for slots of so many pages.
    pub fn new(pages_per_slot: u32) -> FlashOptions {
        FlashOptions {
            pages_per_slot,
            writes_per_day: 3.0,
            patience: Nanos::from_secs(1),
            read_patience: Nanos::from_millis(100),
        }
    }
}

/// Tells the owner of a device that it is not to be believed.
pub trait Disown {
    /// A device of the cache is not to be believed any more, also not after a restart. Ends when that is durable in the
    /// pool's metadata.
    fn disown(&self, device: u32) -> LocalFuture<'_, ()>;
}

/// Who offers what a slot holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Offer {
    /// It was read from a slow drive, for the first time as far as is known.
    First,
    /// It was read and found in memory again.
    Again,
}

/// The flash cache of one shard and pool.
pub struct FlashCache {
    pub(crate) shared: Rc<Shared>,
    devices: RefCell<Vec<Rc<Device>>>,
    /// Devices that were dropped, as long as something of them may be under way.
    gone: RefCell<Vec<Rc<Device>>>,
}

impl FlashCache {
    /// A cache without devices.
    pub fn new(world: &World, options: FlashOptions, disown: Rc<dyn Disown>) -> FlashCache {
        let shared = Shared {
            world: world.clone(),
            options,
            lines: Lines::new(options.pages_per_slot),
            disown,
            counters: RefCell::default(),
        };
        FlashCache { shared: Rc::new(shared), devices: RefCell::default(), gone: RefCell::default() }
    }

    /// Whether there is any device that serves.
    pub fn is_on(&self) -> bool {
        self.devices.borrow().iter().any(|device| !device.state.borrow().is_off())
    }

    /// Makes a device part empty under `epoch`, which no part of this identity ever had, and begins to use it.
    ///
    /// # Errors
    /// When the part cannot be used. It is not used then, and what it holds is not to be believed: the epoch in the
    /// pool's metadata must not be the one that it had before.
    pub async fn add_new(
        self: &Rc<Self>,
        device: u32,
        place: FlashPlace,
        identity: FlashIdentity,
        epoch: u64,
    ) -> Result<(), FlashError> {
        self.make_way_for(device).await?;
        let device = Device::format(&self.shared, device, place, identity, epoch).await?;
        self.devices.borrow_mut().push(device);
        Ok(())
    }

    /// Uses what a device part holds if its header says that it counts under `epoch`, which is durable in the pool's metadata, and
    /// says so under it alone. `is_ours` says whether a slot is some extent's of this shard now; lines of others are dropped.
    ///
    /// # Errors
    /// When the part holds nothing that counts. It is not used then, and the caller makes it new.
    pub async fn add_warm(
        self: &Rc<Self>,
        device: u32,
        place: FlashPlace,
        identity: FlashIdentity,
        epoch: u64,
        is_ours: impl Fn(u64) -> bool,
    ) -> Result<LoadReport, FlashError> {
        self.make_way_for(device).await?;
        let load = Device::load(&self.shared, device, place, identity, epoch, is_ours);
        let (device, report) = load.await?;
        // From here on a device that fails is disowned.
        self.devices.borrow_mut().push(device.clone());
        device.confirm().await?;
        Ok(report)
    }

    /// A device is used no more; the owner knows, and makes sure that it is not believed after a restart. What is under way
    /// ends by itself.
    pub fn drop_device(&self, device: u32) {
        let mut devices = self.devices.borrow_mut();
        let Some(at) = devices.iter().position(|other| other.number == device) else { return };
        let device = devices.remove(at);
        drop(devices);
        device.stop();
        self.gone.borrow_mut().push(device);
    }

    /// Ends when nothing of a device that was dropped is under way any more.
    pub async fn until_quiet(&self, device: u32) {
        let gone: Vec<Rc<Device>> =
            self.gone.borrow().iter().filter(|gone| gone.number == device).cloned().collect();
        for former in gone {
            former.quiet().await;
        }
    }

    /// A device has more or fewer pieces from now on; the first ones must be the same. When it ends nothing is read or
    /// written any more in what is gone.
    ///
    /// # Errors
    /// When it cannot be so, and then it stays as it was; or when the device failed, and then it is disowned.
    pub async fn resize(self: &Rc<Self>, device: u32, pieces: Vec<Lba>) -> Result<(), FlashError> {
        self.device(device)?.resize(pieces).await
    }

    /// What a device has room for, and what it has for which there is no use; nothing of one that is not there.
    pub fn room(&self, device: u32) -> FlashRoom {
        let Ok(device) = self.device(device) else { return FlashRoom::default() };
        device.state.borrow().room()
    }

    /// A number is used again: ends when nothing is under way of the device that had it.
    async fn make_way_for(&self, device: u32) -> Result<(), FlashError> {
        let former = self.devices.borrow().iter().find(|other| other.number == device).cloned();
        match former {
            Some(former) if former.mode() == Mode::Off => self.drop_device(device),
            Some(_) => return Err(FlashError::WrongState(device)),
            None => {}
        }
        let gone: Vec<Rc<Device>> = self.gone.borrow().clone();
        for former in gone.iter().filter(|gone| gone.number == device) {
            let patience = self.shared.options.patience;
            let quiet = within(&self.shared.world, patience, former.quiet()).await;
            quiet.ok_or(FlashError::Slow(patience))?;
        }
        self.gone.borrow_mut().retain(|gone| gone.number != device || gone.mode() == Mode::Failed);
        Ok(())
    }

    pub(crate) fn devices(&self) -> Ref<'_, Vec<Rc<Device>>> {
        self.devices.borrow()
    }

    fn device(&self, number: u32) -> Result<Rc<Device>, FlashError> {
        let devices = self.devices.borrow();
        devices.iter().find(|device| device.number == number).cloned().ok_or(FlashError::WrongState(number))
    }

    /// The device to which a line belongs.
    pub(crate) fn home(&self, x: u64) -> Option<Rc<Device>> {
        let devices = self.devices.borrow();
        let wish = |device: &&Rc<Device>| {
            let state = device.state.borrow();
            desire(x, device.id, if state.is_off() { 0 } else { state.room_bytes() })
        };
        let home = match devices.as_slice() {
            [] => None,
            [only] => Some(only),
            _ => devices.iter().max_by(|one, other| wish(one).total_cmp(&wish(other))),
        };
        home.filter(|device| !device.state.borrow().is_off()).cloned()
    }

    /// The first answer of a line's home, and then of the other devices.
    pub(crate) fn in_order<T>(&self, x: u64, ask: impl Fn(&Rc<Device>) -> Option<T>) -> Option<T> {
        let devices = self.devices.borrow();
        if let [only] = devices.as_slice() {
            return ask(only);
        }
        drop(devices);
        let home = self.home(x);
        let first = home.as_ref().and_then(&ask);
        first.or_else(|| {
            let devices = self.devices.borrow();
            let mut others =
                devices.iter().filter(|other| home.as_ref().is_none_or(|home| !Rc::ptr_eq(home, other)));
            others.find_map(ask)
        })
    }

    /// Offers what a slot holds from `first_sector` on, of which whole pages count. The caller guarantees that it is what
    /// the slot holds now. It is copied only where it is admitted.
    pub fn offer(self: &Rc<Self>, slot: u64, first_sector: u64, buf: &BufMut, offer: Offer) {
        if !self.is_on() || buf.width() != self.shared.world.width() {
            return;
        }
        let first = first_sector.div_ceil(PAGE_SECTORS);
        let end = first_sector.saturating_add(u64::from(buf.sectors())) / PAGE_SECTORS;
        let mut page = first;
        while page < end {
            let Ok(number) = u32::try_from(page) else { return };
            let Some(x) = self.shared.lines.number(slot, number) else { return };
            // From an even page on both of its line may be there.
            let has_both = number.is_multiple_of(2) && page + 1 < end;
            let halves = if has_both { 3 } else { crate::line::half_bit(number) };
            let line_start = page - u64::from(number % 2);
            let copy = |half: u64| {
                let page = line_start + half;
                page_of(buf.as_slice(), buf.width(), (page * PAGE_SECTORS - first_sector) as u32)
            };
            self.offer_line(x, halves, offer, copy);
            page += u64::from(halves.count_ones());
        }
    }

    fn offer_line(&self, x: u64, halves: u8, offer: Offer, copy: impl Fn(u64) -> Option<tier0_world::Buf>) {
        let is_there = |device: &Rc<Device>| {
            let state = device.state.borrow();
            let spot = state.spot(x)?;
            state.table.find(spot).filter(|_| !state.is_off()).map(|(_, entry)| entry.valid)
        };
        let there = self.in_order(x, is_there).unwrap_or(0);
        let missing = halves & !there;
        if missing == 0 {
            return;
        }
        let mut counters = self.shared.counters.borrow_mut();
        counters.offered += 1;
        let Some(home) = self.home(x) else { return };
        let now = home.world.now();
        let is_due = {
            let mut state = home.state.borrow_mut();
            let Some(spot) = state.spot(x).filter(|_| state.mode == Mode::On) else { return };
            // It is written already.
            if state.filling.contains_key(&x) {
                return;
            }
            let waiting = state.queue.iter().position(|offered| offered.x == x);
            let queued = waiting.map_or(0, |at| state.queue[at].halves());
            let missing = missing & !queued;
            if missing == 0 {
                return;
            }
            let is_known = offer == Offer::Again || queued != 0 || there != 0;
            let has_empty = state.has_empty(spot.set);
            if !state.admission.is_welcome(spot.hash, is_known, || has_empty) {
                return;
            }
            if waiting.is_none() && state.queue.len() >= QUEUE_LINES_MAX {
                counters.dropped_queue += 1;
                return;
            }
            let pages = [0, 1].map(|half| (missing & 1 << half != 0).then(|| copy(half)).flatten());
            if pages.iter().flatten().count() != missing.count_ones() as usize {
                // A buffer whose content is not kept.
                return;
            }
            let takes_empty = waiting.is_none() && there == 0 && has_empty;
            if let Err(OverBudget) = state.admission.pay(bytes_of(missing), takes_empty, now) {
                counters.refused_budget += 1;
                return;
            }
            counters.admitted += u64::from(waiting.is_none());
            admit(&mut state, x, waiting, pages, now);
            // The first begins to wait, and with the last a batch is complete.
            matches!(state.queue.len(), 1 | BATCH_LINES)
        };
        drop(counters);
        if is_due {
            home.changed.notify_all();
        }
    }

    /// Offers what a page of a slot holds since it was destaged, in the place of what was struck out for that. The caller
    /// guarantees that it is what the slot holds now.
    pub fn offer_written(&self, slot: u64, page: u32, content: &[u8]) {
        let Some(x) = self.shared.lines.number(slot, page) else { return };
        let copy = |_: u64| page_of(content, self.shared.world.width(), 0);
        self.offer_line(x, crate::line::half_bit(page), Offer::Again, copy);
    }

    /// Pages of a slot change, or have changed: from now on they are in no device, and this is durable after the next
    /// [`FlashCache::settle`]. What is beside them in their lines goes with them. Returns those of them that were read lately:
    /// what they hold once they have changed is worth an offer.
    pub fn strike(&self, slot: u64, pages: impl Iterator<Item = u32> + Clone) -> Vec<u32> {
        let mut read_lately = Vec::new();
        for device in self.devices.borrow().iter() {
            let mut last = (None, false);
            for page in pages.clone() {
                let x = self.shared.lines.number(slot, page);
                if x != last.0 {
                    last = (x, x.is_some_and(|x| device.strike(x)));
                }
                if last.1 {
                    read_lately.push(page);
                }
            }
        }
        read_lately
    }

    /// Strikes out all pages of a slot.
    pub fn forget_slot(&self, slot: u64) {
        for device in self.devices.borrow().iter() {
            for x in self.shared.lines.of_slot(slot) {
                device.strike(x);
            }
        }
    }

    /// Ends when all that was struck out so far is durable on each device, or the device is disowned. Costs nothing where
    /// nothing was struck out since.
    pub async fn settle(&self) {
        let unsettled: Vec<(Rc<Device>, u64)> = {
            let (devices, gone) = (self.devices.borrow(), self.gone.borrow());
            let unsettled = devices.iter().chain(gone.iter()).filter(|device| !device.is_settled());
            unsettled.map(|device| (device.clone(), device.struck())).collect()
        };
        // All of them have begun before one is waited for.
        unsettled.iter().for_each(|(device, struck)| device.demand(*struck));
        for (device, struck) in unsettled {
            device.settle(struck).await;
        }
    }

    /// Bytes of memory of all tables.
    pub fn memory_bytes(&self) -> u64 {
        let bytes = |device: &Rc<Device>| {
            let state = device.state.borrow();
            state.table.memory_bytes() + state.admission.doorkeeper.memory_bytes()
        };
        self.devices.borrow().iter().map(bytes).sum()
    }

    /// What it has done, and how it stands.
    pub fn status(&self) -> FlashCacheStatus {
        let mut status = *self.shared.counters.borrow();
        status.memory_bytes = self.memory_bytes();
        for device in self.devices.borrow().iter() {
            let state = device.state.borrow();
            if state.is_off() {
                status.devices_off += 1;
                continue;
            }
            status.devices += 1;
            status.devices_paused += u64::from(state.paused_until > device.world.now());
            status.bytes += state.table.held_bytes();
            let room = state.room();
            status.room_bytes += room.used_bytes;
            status.unused_bytes += room.unused_bytes;
        }
        status
    }
}

impl Drop for FlashCache {
    fn drop(&mut self) {
        // The tasks of a device keep it.
        self.devices.borrow().iter().for_each(|device| device.stop());
    }
}

/// A line waits to be written, or more of its pages do.
fn admit(
    state: &mut State,
    x: u64,
    waiting: Option<usize>,
    pages: [Option<tier0_world::Buf>; 2],
    since: Nanos,
) {
    match waiting {
        Some(at) => {
            let offered = &mut state.queue[at];
            for (own, new) in offered.pages.iter_mut().zip(pages) {
                *own = own.take().or(new);
            }
        }
        None => state.queue.push_back(Offered { x, pages, since }),
    }
}
