//! One device part of a cache: its state and its tasks.

use std::cell::{Cell, RefCell};
use std::rc::Rc;

use tier0_drive::DriveHandle;
use tier0_journal::Ring;
use tier0_world::World;
use tier0_world::sync::{Notify, Semaphore};
use uuid::Uuid;

use crate::cache::{Disown, FlashOptions};
use crate::label::LogLoss;
use crate::line::Lines;
use crate::patience::Fault;
use crate::state::{Mode, State};
use crate::status::FlashCacheStatus;

/// What all devices of a cache share.
pub(crate) struct Shared {
    pub(crate) world: World,
    pub(crate) options: FlashOptions,
    pub(crate) lines: Lines,
    pub(crate) disown: Rc<dyn Disown>,
    pub(crate) counters: RefCell<FlashCacheStatus>,
}

/// A device part.
pub(crate) struct Device {
    pub(crate) number: u32,
    pub(crate) id: Uuid,
    pub(crate) world: World,
    pub(crate) options: FlashOptions,
    pub(crate) shared: Rc<Shared>,
    pub(crate) drive: DriveHandle,
    pub(crate) state: RefCell<State>,
    /// Its log, once it may be written to.
    pub(crate) ring: RefCell<Option<Ring>>,
    pub(crate) log_loss: Rc<LogLoss>,
    /// Rung when anything has changed for which somebody waits.
    pub(crate) changed: Notify,
    /// Rung when a read has ended, or a command that may change the drive.
    pub(crate) ended: Notify,
    /// One batch is being filled, or the part changes its size. Who takes several of these takes them in this order.
    pub(crate) fill_turn: Semaphore,
    /// One record is being written, or the part changes its size.
    pub(crate) log_turn: Semaphore,
    /// Map pages are being written, or the part changes its size.
    pub(crate) map_turn: Semaphore,
    /// Commands under way that may change the drive.
    pub(crate) under_way: Cell<u32>,
    /// A checkpoint is under way.
    pub(crate) is_checkpointing: Cell<bool>,
}

impl Device {
    pub(crate) fn new(shared: &Rc<Shared>, number: u32, id: Uuid, state: State) -> Rc<Device> {
        Rc::new(Device {
            number,
            id,
            world: shared.world.clone(),
            options: shared.options,
            shared: shared.clone(),
            drive: state.place.drive.clone(),
            state: RefCell::new(state),
            ring: RefCell::new(None),
            log_loss: Rc::default(),
            changed: Notify::new(),
            ended: Notify::new(),
            fill_turn: Semaphore::new(1),
            log_turn: Semaphore::new(1),
            map_turn: Semaphore::new(1),
            under_way: Cell::new(0),
            is_checkpointing: Cell::new(false),
        })
    }

    pub(crate) fn mode(&self) -> Mode {
        self.state.borrow().mode
    }

    /// Whether it answers reads now.
    pub(crate) fn answers(&self) -> bool {
        let state = self.state.borrow();
        !state.is_off() && state.paused_until <= self.world.now()
    }

    /// Begins to write to the device.
    pub(crate) fn start(self: &Rc<Self>, ring: Ring) {
        *self.ring.borrow_mut() = Some(ring);
        {
            let mut state = self.state.borrow_mut();
            state.mode = Mode::On;
            // What was struck out while nothing could be written.
            state.demanded = state.struck;
        }
        let (logger, filler) = (self.clone(), self.clone());
        self.world.spawn(async move { logger.keep_logging().await }).detach();
        self.world.spawn(async move { filler.keep_filling().await }).detach();
        self.changed.notify_all();
    }

    pub(crate) fn ring(&self) -> Result<Ring, Fault> {
        self.ring.borrow().clone().ok_or(Fault::Off)
    }

    /// Nothing that the device says is believed any more, and the owner makes this durable.
    pub(crate) fn fail(self: &Rc<Self>, fault: &Fault) {
        if self.state.borrow().is_off() {
            return;
        }
        let reason = fault.clone().of(self.number);
        tracing::warn!("device {} of the flash cache is switched off: {reason}", self.number);
        self.state.borrow_mut().clear(Mode::Failed);
        self.changed.notify_all();
        let device = self.clone();
        self.world
            .spawn(async move {
                device.shared.disown.disown(device.number).await;
                device.state.borrow_mut().mode = Mode::Off;
                device.changed.notify_all();
            })
            .detach();
    }

    /// The device is used no more; the owner knows.
    pub(crate) fn stop(&self) {
        let mut state = self.state.borrow_mut();
        // Who waits for that a failure is durable still waits.
        if !state.is_off() {
            state.clear(Mode::Off);
        }
        drop(state);
        self.changed.notify_all();
    }

    /// A line changes.
    pub(crate) fn strike(&self, x: u64) -> bool {
        let mut state = self.state.borrow_mut();
        if state.is_off() {
            return false;
        }
        let struck = state.strike(x);
        self.shared.counters.borrow_mut().struck += struck.places;
        struck.was_read
    }

    /// How many changes there were when something was struck out last.
    pub(crate) fn struck(&self) -> u64 {
        self.state.borrow().struck
    }

    /// Whether all that was struck out so far is durable, or need not be.
    pub(crate) fn is_settled(&self) -> bool {
        self.is_settled_to(self.struck())
    }

    fn is_settled_to(&self, struck: u64) -> bool {
        let state = self.state.borrow();
        match state.mode {
            Mode::Waiting | Mode::On => state.logged >= struck,
            Mode::Failed => false,
            Mode::Off => true,
        }
    }

    /// Ends when all that was struck out up to this count is durable, or when the owner has made durable that the device
    /// does not count. While the epoch is not renewed, that waits for the renewal.
    pub(crate) async fn settle(&self, struck: u64) {
        while !self.is_settled_to(struck) {
            self.changed.wait().await;
        }
    }
}
