//! The world as the engine sees it.

use std::cell::{Cell, RefCell, RefMut};
use std::future::Future;
use std::rc::Rc;
use std::sync::Arc;

use async_task::Task;
use tier0_units::Nanos;

use crate::completion::{Completion, Outcome, Pending, SlotId, Slots};
use crate::net::Network;
use crate::ready::{ReadyQueue, Remote};
use crate::real::{Driver, WallClock};
use crate::timer::{Event, Sleep, TimerTarget, Timers};
use crate::turns::{SlowTurns, Turns};
use crate::{BufMut, PayloadWidth, Random};

/// A handle on a world; cloning it copies a reference.
#[derive(Clone)]
pub struct World(Rc<Inner>);

#[expect(clippy::large_enum_variant, reason = "there is one per world")]
pub(crate) enum Kind {
    Virtual { now: Cell<Nanos>, hash: Cell<u64>, events: Cell<u64>, network: Network },
    Real { clock: WallClock, driver: RefCell<Driver> },
}

pub(crate) struct Inner {
    kind: Kind,
    width: PayloadWidth,
    seed: u64,
    ready: Arc<ReadyQueue>,
    timers: RefCell<Timers>,
    slots: RefCell<Slots>,
    turns: Turns,
    closing: Cell<bool>,
    /// Nonces that were drawn.
    nonces: Cell<u64>,
}

/// The random streams of a world from which it draws nonces, one each.
const NONCES: u64 = 0x4e0c_e000_0000_0000;

impl World {
    pub(crate) fn new(kind: Kind, width: PayloadWidth, seed: u64, ready: Arc<ReadyQueue>) -> World {
        World(Rc::new(Inner {
            kind,
            width,
            seed,
            ready,
            timers: RefCell::default(),
            slots: RefCell::new(Slots::new()),
            turns: Turns::default(),
            closing: Cell::new(false),
            nonces: Cell::new(0),
        }))
    }

    /// The time since the world began.
    #[inline]
    pub fn now(&self) -> Nanos {
        match &self.0.kind {
            Kind::Virtual { now, .. } => now.get(),
            Kind::Real { clock, .. } => clock.now(),
        }
    }

    /// The time of day in seconds since 1970, UTC; it may be set back. In virtual time the world begins with 1970.
    pub fn unix_s(&self) -> u64 {
        match &self.0.kind {
            Kind::Virtual { now, .. } => now.get().0 / Nanos::from_secs(1).0,
            Kind::Real { .. } => WallClock::unix_s(),
        }
    }

    /// The time on a clock that all worlds of the process have in common: for what threads compare. When it began is not said.
    pub fn common_time(&self) -> Nanos {
        match &self.0.kind {
            Kind::Virtual { now, .. } => now.get(),
            Kind::Real { .. } => WallClock::common(),
        }
    }

    /// The time since the world began in which its runtime turned. A process that is stopped, a machine that is
    /// suspended, a processor that is taken away and a task that holds its thread up make time pass in which no task
    /// looked at what ended: who has patience counts this time, not that of the clock.
    pub fn turned(&self) -> Nanos {
        self.now().saturating_sub(self.0.turns.lost())
    }

    /// Turns of the runtime that took so long that time was lost.
    pub fn slow_turns(&self) -> SlowTurns {
        self.0.turns.slow()
    }

    pub(crate) fn turns(&self) -> &Turns {
        &self.0.turns
    }

    /// The runtime stands still for so long, in virtual time: the clock goes on, and nothing else.
    ///
    /// # Panics
    /// In the real world.
    pub fn stall(&self, time: Nanos) {
        let Kind::Virtual { now, .. } = &self.0.kind else { panic!("real time cannot be stalled") };
        now.set(now.get().saturating_add(time));
        self.0.turns.took(time, Nanos::ZERO);
    }

    /// Ends after `time`.
    pub fn sleep(&self, time: Nanos) -> Sleep {
        Sleep::until(self, self.now().saturating_add(time))
    }

    /// Ends at `time`, at once if that is past.
    pub fn sleep_until(&self, time: Nanos) -> Sleep {
        Sleep::until(self, time)
    }

    /// Calls `target` at `time`, or as soon as possible if that is past. Such a timer cannot be taken back.
    pub fn call_at(&self, time: Nanos, target: Rc<dyn TimerTarget>, token: u64) {
        self.0.timers.borrow_mut().set(time, Event::Call(target, token));
    }

    /// Starts a task. Dropping the handle cancels it; `detach` lets it run.
    pub fn spawn<F>(&self, future: F) -> Task<F::Output>
    where
        F: Future + 'static,
        F::Output: 'static,
    {
        self.0.ready.spawn(Box::pin(future))
    }

    /// A handle by which other threads start tasks here.
    pub fn remote(&self) -> Remote {
        Remote(self.0.ready.clone())
    }

    /// The random stream `name` of this world's seed.
    pub fn random(&self, name: u64) -> Random {
        Random::new(self.0.seed, name)
    }

    /// 64 bits that no other call has drawn or will draw. In virtual time the seed repeats them.
    ///
    /// # Panics
    /// In the real world, where the kernel has no randomness.
    pub fn nonce(&self) -> u64 {
        if self.is_virtual() {
            let count = self.0.nonces.replace(self.0.nonces.get() + 1);
            return self.random(NONCES + count).bits();
        }
        let mut bytes = [0; 8];
        let drawn = rustix::rand::getrandom(&mut bytes, rustix::rand::GetRandomFlags::empty());
        assert_eq!(drawn, Ok(bytes.len()), "the kernel gives so few bytes at once");
        u64::from_ne_bytes(bytes)
    }

    /// Bytes per sector in this world's buffers.
    pub fn width(&self) -> PayloadWidth {
        self.0.width
    }

    /// A buffer of this world's width; its content is arbitrary.
    #[inline]
    pub fn buffer(&self, sectors: u32) -> BufMut {
        BufMut::new(sectors, self.0.width)
    }

    /// Both halves of an I/O that is to begin.
    #[inline]
    pub fn completion(&self) -> (Completion, Pending) {
        Completion::new(self)
    }

    /// Whether time is simulated.
    pub fn is_virtual(&self) -> bool {
        matches!(self.0.kind, Kind::Virtual { .. })
    }

    /// The network of a virtual world; none in the real one, whose network is the kernel's.
    pub fn network(&self) -> Option<Network> {
        match &self.0.kind {
            Kind::Virtual { network, .. } => Some(network.clone()),
            Kind::Real { .. } => None,
        }
    }

    /// Mixes an event into the hash of the run; nothing in the real world.
    #[inline]
    pub fn record(&self, kind: u64, value: u64) {
        if let Kind::Virtual { now, hash, .. } = &self.0.kind {
            hash.set(mix(mix(mix(hash.get(), now.get().0), kind), value));
        }
    }

    /// The hash of all events so far. Two runs of one commit and one seed agree in it.
    pub fn event_hash(&self) -> u64 {
        match &self.0.kind {
            Kind::Virtual { hash, .. } => hash.get(),
            Kind::Real { .. } => 0,
        }
    }

    /// Timer events so far in virtual time.
    pub fn event_count(&self) -> u64 {
        match &self.0.kind {
            Kind::Virtual { events, .. } => events.get(),
            Kind::Real { .. } => 0,
        }
    }

    /// I/Os and sleeps under way.
    pub fn pending_count(&self) -> usize {
        self.0.slots.borrow().busy()
    }

    pub(crate) fn slots(&self) -> RefMut<'_, Slots> {
        self.0.slots.borrow_mut()
    }

    pub(crate) fn kind(&self) -> &Kind {
        &self.0.kind
    }

    pub(crate) fn ready(&self) -> &Arc<ReadyQueue> {
        &self.0.ready
    }

    pub(crate) fn set_slot_timer(&self, time: Nanos, slot: SlotId, outcome: Outcome) {
        self.0.timers.borrow_mut().set(time, Event::Slot(slot, outcome));
    }

    /// The sleeper of a timer is gone.
    pub(crate) fn abandon_timer(&self) {
        // While the world closes, all timers go anyway.
        if let Ok(mut timers) = self.0.timers.try_borrow_mut() {
            let slots = self.slots();
            timers.abandon(|slot| slots.is_live(slot));
        }
    }

    #[cfg(test)]
    pub(crate) fn timers(&self) -> usize {
        self.0.timers.borrow().len()
    }

    pub(crate) fn next_timer(&self) -> Option<Nanos> {
        self.0.timers.borrow().next()
    }

    /// Ends the I/O in `slot`: tells its observer, or wakes its task.
    pub(crate) fn finish(&self, slot: SlotId, outcome: Outcome) {
        let observed = self.slots().observed(slot);
        if let Some((observer, token, payload)) = observed {
            return observer.ended(token, Completion::resumed(self, slot), outcome, payload);
        }
        let waker = self.slots().finish(slot, outcome);
        if let Some(waker) = waker {
            waker.wake();
        }
    }

    /// Fires one timer that is due; false if there is none.
    pub(crate) fn fire_one(&self, now: Nanos) -> bool {
        let due = self.0.timers.borrow_mut().pop_due(now);
        let Some((time, event)) = due else { return false };
        if let Kind::Virtual { events, .. } = &self.0.kind {
            events.set(events.get() + 1);
            self.record(0, time.0);
        }
        match event {
            Event::Slot(slot, outcome) => self.finish(slot, outcome),
            Event::Call(target, token) => target.fire(token),
        }
        true
    }

    pub(crate) fn is_closing(&self) -> bool {
        self.0.closing.get()
    }

    /// Ends every task: without it, tasks and world would hold each other for ever.
    pub(crate) fn close(&self) {
        self.0.closing.set(true);
        drop(std::mem::take(&mut *self.0.timers.borrow_mut()));
        // They hold drives, and drives hold the world.
        let observers = self.slots().forget_observers();
        drop(observers);
        loop {
            self.0.ready.wake_all();
            self.0.ready.drain_inbox();
            // Dropping a runnable drops its future.
            if std::iter::from_fn(|| self.0.ready.pop()).count() == 0 {
                break;
            }
        }
        if !self.is_virtual() {
            self.slots().leave_to_kernel();
        }
    }
}

/// One step of a multiply-rotate hash; strong enough to tell two event logs apart, and two cycles long.
#[inline]
fn mix(hash: u64, value: u64) -> u64 {
    (hash.rotate_left(23) ^ value).wrapping_mul(0x9e37_79b9_7f4a_7c15)
}
