//! Completions: the one place where an I/O or a timer meets the task that waits for it.
//!
//! Each has a slot in a slab of the world. [`Completion`] is the producer's half, a token that must be
//! completed; [`Pending`] is the waiting half, a future that may be dropped at any time: the slot then stays,
//! with the buffer, until the completion arrives. It stays as well for an I/O that was given up ([`UnderWay`]), whose
//! waiter is answered before it is over.

use std::future::Future;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll, Waker};

use tier0_units::Nanos;

use crate::real::Operation;
use crate::{IoError, Payload, World};

/// What an I/O ends with: its count (bytes, or what the operation returns) or its failure.
pub type Outcome = Result<u32, IoError>;

/// Names a slot: its place, and which use of that place, below [`GENERATION_END`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct SlotId {
    pub(crate) index: u32,
    pub(crate) generation: u32,
}

/// Looks at how an I/O ended before its waiter does ([`Completion::observed_by`]).
pub trait Observer {
    /// The I/O ended below with `outcome` and `payload`. The observer that takes `completion` answers the waiter with
    /// it, now or after another try.
    fn ended(self: Rc<Self>, token: u64, completion: Completion, outcome: Outcome, payload: Payload);
}

#[derive(Debug)]
enum State {
    Free {
        next: u32,
    },
    Waiting(Option<Waker>),
    /// Answered already with this, and still under way.
    GivenUp(Box<(Outcome, Payload)>),
    Abandoned,
    Done(Outcome),
}

struct Slot {
    generation: u32,
    state: State,
    payload: Payload,
    /// What the kernel does for it; it keeps the file open.
    operation: Option<Operation>,
    observer: Option<(Rc<dyn Observer>, u64)>,
}

const NONE: u32 = u32::MAX;

/// Generations count to here and start again; drivers use the bits above.
const GENERATION_END: u32 = 1 << 30;

/// All slots of a world.
pub(crate) struct Slots {
    slots: Vec<Slot>,
    free: u32,
    busy: usize,
}

impl Slots {
    pub(crate) fn new() -> Slots {
        Slots { slots: Vec::new(), free: NONE, busy: 0 }
    }

    pub(crate) fn insert(&mut self) -> SlotId {
        self.busy += 1;
        if self.free == NONE {
            let index = u32::try_from(self.slots.len()).expect("fewer than 2^32 I/Os are under way");
            self.slots.push(Slot {
                generation: 0,
                state: State::Waiting(None),
                payload: Payload::None,
                operation: None,
                observer: None,
            });
            return SlotId { index, generation: 0 };
        }
        let index = self.free;
        let slot = &mut self.slots[index as usize];
        let State::Free { next } = slot.state else { unreachable!("the free list holds free slots") };
        self.free = next;
        slot.state = State::Waiting(None);
        SlotId { index, generation: slot.generation }
    }

    /// Slots in use.
    pub(crate) fn busy(&self) -> usize {
        self.busy
    }

    /// Leaks the buffers of I/Os that are under way: the kernel may still write into them after the ring is closed.
    pub(crate) fn leave_to_kernel(&mut self) {
        for slot in &mut self.slots {
            if matches!(slot.state, State::Waiting(_) | State::GivenUp(_) | State::Abandoned) {
                std::mem::forget(std::mem::take(&mut slot.payload));
            }
        }
    }

    /// The world closes: no observer is told of anything any more.
    pub(crate) fn forget_observers(&mut self) -> Vec<(Rc<dyn Observer>, u64)> {
        self.slots.iter_mut().filter_map(|slot| slot.observer.take()).collect()
    }

    /// Whether it is still waited for, or its I/O under way.
    pub(crate) fn is_live(&self, id: SlotId) -> bool {
        self.slots.get(id.index as usize).is_some_and(|slot| slot.generation == id.generation)
    }

    fn get(&mut self, id: SlotId) -> Option<&mut Slot> {
        self.is_live(id).then(|| &mut self.slots[id.index as usize])
    }

    fn release(&mut self, index: u32) -> Payload {
        let slot = &mut self.slots[index as usize];
        slot.generation = (slot.generation + 1) % GENERATION_END;
        slot.state = State::Free { next: self.free };
        self.free = index;
        self.busy -= 1;
        slot.operation = None;
        slot.observer = None;
        std::mem::take(&mut slot.payload)
    }

    /// Who is to be told that the I/O ended, with its payload; none where it is its waiter alone.
    pub(crate) fn observed(&mut self, id: SlotId) -> Option<(Rc<dyn Observer>, u64, Payload)> {
        let slot = self.get(id)?;
        let (observer, token) = slot.observer.take()?;
        slot.operation = None;
        Some((observer, token, std::mem::take(&mut slot.payload)))
    }

    /// Keeps the payload of an I/O that is under way.
    pub(crate) fn set_payload(&mut self, id: SlotId, payload: Payload) {
        self.get(id).expect("an I/O under way has its slot").payload = payload;
    }

    /// Keeps what the kernel is to do, and with what, until the I/O is over.
    pub(crate) fn set_operation(&mut self, id: SlotId, operation: Operation, payload: Payload) {
        let slot = self.get(id).expect("an I/O under way has its slot");
        slot.operation = Some(operation);
        slot.payload = payload;
    }

    /// What the kernel does for an I/O that is under way, and with what.
    pub(crate) fn operation(&mut self, id: SlotId) -> (&mut Operation, &mut Payload) {
        let slot = self.get(id).expect("an I/O under way has its slot");
        (slot.operation.as_mut().expect("the kernel was asked for it"), &mut slot.payload)
    }

    /// Ends the I/O; returns who waits for it. A stale id (a timer whose sleeper is gone) is no one's.
    #[must_use]
    pub(crate) fn finish(&mut self, id: SlotId, outcome: Outcome) -> Option<Waker> {
        let slot = self.get(id)?;
        match std::mem::replace(&mut slot.state, State::Done(outcome)) {
            State::Waiting(waker) => waker,
            State::GivenUp(answer) => {
                let (outcome, payload) = *answer;
                slot.state = State::Done(outcome);
                slot.payload = payload;
                None
            }
            State::Abandoned => {
                drop(self.release(id.index));
                None
            }
            state => unreachable!("an I/O ends once, but its slot was {state:?}"),
        }
    }

    /// Answers who waits for an I/O that goes on; returns it.
    #[must_use]
    fn give_up(&mut self, id: SlotId, outcome: Outcome, payload: Payload) -> Option<Waker> {
        let slot = self.get(id)?;
        let State::Waiting(waker) = &mut slot.state else { return None };
        let waker = waker.take();
        slot.state = State::GivenUp(Box::new((outcome, payload)));
        waker
    }

    fn poll(&mut self, id: SlotId, context: &mut Context<'_>) -> Poll<(Outcome, Payload)> {
        let slot = self.get(id).expect("a waiting future has its slot");
        match &mut slot.state {
            State::Done(outcome) => {
                let outcome = *outcome;
                Poll::Ready((outcome, self.release(id.index)))
            }
            State::Waiting(waker) => {
                match waker {
                    Some(waker) => waker.clone_from(context.waker()),
                    None => *waker = Some(context.waker().clone()),
                }
                Poll::Pending
            }
            State::GivenUp(_) => match std::mem::replace(&mut slot.state, State::Abandoned) {
                State::GivenUp(answer) => Poll::Ready(*answer),
                _ => unreachable!("it was given up"),
            },
            state => unreachable!("a future waits on a slot that is {state:?}"),
        }
    }

    /// The waiting half is gone; `keep` says that a completion is still to come.
    fn abandon(&mut self, id: SlotId, keep: bool) -> Payload {
        let Some(slot) = self.get(id) else { return Payload::None };
        if keep && matches!(slot.state, State::Waiting(_) | State::GivenUp(_)) {
            slot.state = State::Abandoned;
            return Payload::None;
        }
        self.release(id.index)
    }
}

/// The producer's half of an I/O under way. It must be completed; dropping it panics.
#[must_use = "an I/O must be completed"]
pub struct Completion {
    world: World,
    id: SlotId,
    armed: bool,
}

impl Completion {
    pub(crate) fn new(world: &World) -> (Completion, Pending) {
        let id = world.slots().insert();
        let completion = Completion { world: world.clone(), id, armed: true };
        let pending = Pending { world: world.clone(), id, timer: false, answered: false };
        (completion, pending)
    }

    /// The world it belongs to.
    pub fn world(&self) -> &World {
        &self.world
    }

    /// The I/O's name, for who may have to give it up.
    pub fn under_way(&self) -> UnderWay {
        UnderWay(self.id)
    }

    /// The token of an I/O that ended below and is not answered yet.
    pub(crate) fn resumed(world: &World, id: SlotId) -> Completion {
        Completion { world: world.clone(), id, armed: true }
    }

    /// Has `observer` told how the I/O ends, with `token`, instead of its waiter. It replaces an observer that was
    /// there.
    pub fn observed_by(self, observer: Rc<dyn Observer>, token: u64) -> Completion {
        self.world.slots().get(self.id).expect("an I/O under way has its slot").observer =
            Some((observer, token));
        self
    }

    /// Ends the I/O now and gives its buffer back.
    pub fn complete(mut self, result: Result<(), IoError>, payload: Payload) {
        self.armed = false;
        self.world.slots().set_payload(self.id, payload);
        self.world.finish(self.id, result.map(|()| 0));
    }

    /// Ends the I/O at `time`, which is not in the past, without waking a task before.
    pub fn complete_at(mut self, time: Nanos, result: Result<(), IoError>, payload: Payload) {
        self.armed = false;
        self.world.slots().set_payload(self.id, payload);
        self.world.set_slot_timer(time, self.id, result.map(|()| 0));
    }

    /// Hands the completion over to the driver, which finishes the slot by its id.
    pub(crate) fn into_slot(mut self) -> SlotId {
        self.armed = false;
        self.id
    }
}

impl Drop for Completion {
    fn drop(&mut self) {
        assert!(
            !self.armed || std::thread::panicking() || self.world.is_closing(),
            "an I/O was dropped without being completed"
        );
    }
}

/// Names an I/O in the world that it belongs to, also after it is over.
#[derive(Clone, Copy, Debug)]
pub struct UnderWay(SlotId);

impl UnderWay {
    /// Whether its completion is still to come, or to be taken by who waits for it.
    pub fn is_live(self, world: &World) -> bool {
        world.slots().is_live(self.0)
    }

    /// Answers who waits for it with `error` and `payload`, while it goes on with the buffer that it was given. Nothing
    /// happens where it is over, or has no waiter.
    pub fn give_up(self, world: &World, error: IoError, payload: Payload) {
        let waker = world.slots().give_up(self.0, Err(error), payload);
        if let Some(waker) = waker {
            waker.wake();
        }
    }
}

/// The waiting half of an I/O or a timer.
#[must_use = "futures do nothing unless polled"]
pub struct Pending {
    world: World,
    id: SlotId,
    /// Only the clock ends it, and may find it gone.
    timer: bool,
    /// It has been answered: its slot may be another I/O's.
    answered: bool,
}

impl Pending {
    /// A slot that only a timer finishes, and that is not needed once the sleeper is gone.
    pub(crate) fn timer(world: &World) -> Pending {
        Pending { world: world.clone(), id: world.slots().insert(), timer: true, answered: false }
    }

    pub(crate) fn id(&self) -> SlotId {
        self.id
    }
}

impl Future for Pending {
    type Output = (Outcome, Payload);

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        let this = self.get_mut();
        let poll = this.world.slots().poll(this.id, context);
        this.answered = poll.is_ready();
        poll
    }
}

impl Drop for Pending {
    fn drop(&mut self) {
        if self.answered {
            return;
        }
        let payload = self.world.slots().abandon(self.id, !self.timer);
        drop(payload);
        if self.timer {
            self.world.abandon_timer();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{PayloadWidth, VirtualRuntime};

    fn given_up(world: &World) -> (Completion, Pending) {
        let (completion, pending) = world.completion();
        completion.under_way().give_up(world, IoError::Timeout, Payload::Read(world.buffer(2)));
        (completion, pending)
    }

    #[test]
    fn what_is_given_up_is_answered_once_and_keeps_its_slot_until_it_is_over() {
        let runtime = VirtualRuntime::new(1, PayloadWidth::REAL);
        let world = runtime.world().clone();
        runtime.run(async move {
            let (completion, pending) = given_up(&world);
            let (outcome, payload) = pending.await;
            assert_eq!((outcome, payload.into_read().sectors()), (Err(IoError::Timeout), 2));
            assert_eq!(world.pending_count(), 1);
            completion.complete(Ok(()), Payload::Read(world.buffer(7)));
            assert_eq!(world.pending_count(), 0);

            let (completion, pending) = given_up(&world);
            completion.complete(Ok(()), Payload::Read(world.buffer(7)));
            let (outcome, payload) = pending.await;
            assert_eq!((outcome, payload.into_read().sectors()), (Err(IoError::Timeout), 2));
            assert_eq!(world.pending_count(), 0);

            let (completion, pending) = given_up(&world);
            drop(pending);
            assert_eq!(world.pending_count(), 1);
            completion.complete(Ok(()), Payload::None);
            assert_eq!(world.pending_count(), 0);
        });
    }

    #[test]
    fn what_is_over_cannot_be_given_up() {
        let runtime = VirtualRuntime::new(1, PayloadWidth::REAL);
        let world = runtime.world().clone();
        runtime.run(async move {
            let (completion, pending) = world.completion();
            let io = completion.under_way();
            completion.complete(Ok(()), Payload::None);
            io.give_up(&world, IoError::Timeout, Payload::None);
            assert_eq!(pending.await.0, Ok(0));
            let (next, waiting) = world.completion();
            assert!(!io.is_live(&world), "its slot is another's");
            io.give_up(&world, IoError::Timeout, Payload::None);
            next.complete(Ok(()), Payload::None);
            assert_eq!(waiting.await.0, Ok(0));
        });
    }
}
