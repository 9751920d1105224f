//! Timers: a heap ordered by time and, within one instant, by the order of setting.

use std::cmp::Ordering;
use std::collections::BinaryHeap;
use std::future::Future;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll};

use tier0_units::Nanos;

use crate::World;
use crate::completion::{Outcome, Pending, SlotId};

/// Something that is called when its timer fires: the event of a model.
pub trait TimerTarget {
    /// `token` is what was given when the timer was set. The world's clock stands at the time that was set, or
    /// later in the real world.
    fn fire(self: Rc<Self>, token: u64);
}

pub(crate) enum Event {
    Slot(SlotId, Outcome),
    Call(Rc<dyn TimerTarget>, u64),
}

struct Entry {
    time: Nanos,
    sequence: u64,
    event: Event,
}

impl PartialEq for Entry {
    fn eq(&self, other: &Entry) -> bool {
        self.sequence == other.sequence
    }
}

impl Eq for Entry {}

impl PartialOrd for Entry {
    fn partial_cmp(&self, other: &Entry) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Entry {
    /// The earliest is the greatest, because the heap pops its greatest first.
    fn cmp(&self, other: &Entry) -> Ordering {
        (other.time, other.sequence).cmp(&(self.time, self.sequence))
    }
}

/// Fewer timers whose sleepers are gone than this are left to fire.
const ABANDONED_MIN: usize = 1024;

#[derive(Default)]
pub(crate) struct Timers {
    heap: BinaryHeap<Entry>,
    sequence: u64,
    /// Sleepers that went since those were last taken out; some of them after their time.
    abandoned: usize,
}

impl Timers {
    pub(crate) fn set(&mut self, time: Nanos, event: Event) {
        self.sequence += 1;
        self.heap.push(Entry { time, sequence: self.sequence, event });
    }

    /// A sleeper is gone. Once as many are as half of all timers, theirs are taken out: a limit of 30 s on each of
    /// 200,000 commands per second would be six million timers otherwise, which wake the thread long after the load.
    pub(crate) fn abandon(&mut self, is_live: impl Fn(SlotId) -> bool) {
        self.abandoned += 1;
        if self.abandoned >= ABANDONED_MIN.max(self.heap.len() / 2) {
            self.abandoned = 0;
            self.heap.retain(|entry| match entry.event {
                Event::Slot(slot, _) => is_live(slot),
                Event::Call(..) => true,
            });
        }
    }

    /// When the next one fires.
    pub(crate) fn next(&self) -> Option<Nanos> {
        self.heap.peek().map(|entry| entry.time)
    }

    #[cfg(test)]
    pub(crate) fn len(&self) -> usize {
        self.heap.len()
    }

    /// The next one that is due at `now`, with its time.
    pub(crate) fn pop_due(&mut self, now: Nanos) -> Option<(Nanos, Event)> {
        let due = self.heap.peek()?.time <= now;
        due.then(|| self.heap.pop()).flatten().map(|entry| (entry.time, entry.event))
    }
}

/// A future that ends at a time.
#[must_use = "futures do nothing unless polled"]
pub struct Sleep(Option<Pending>);

impl Sleep {
    pub(crate) fn until(world: &World, time: Nanos) -> Sleep {
        if time <= world.now() {
            return Sleep(None);
        }
        let pending = Pending::timer(world);
        world.set_slot_timer(time, pending.id(), Ok(0));
        Sleep(Some(pending))
    }
}

impl Future for Sleep {
    type Output = ();

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<()> {
        match &mut self.get_mut().0 {
            None => Poll::Ready(()),
            Some(pending) => Pin::new(pending).poll(context).map(|_| ()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{PayloadWidth, VirtualRuntime};

    #[test]
    fn timers_of_nobody_do_not_pile_up() {
        let runtime = VirtualRuntime::new(1, PayloadWidth::NONE);
        let world = runtime.world().clone();
        runtime.run(async move {
            let kept = world.sleep(Nanos::from_secs(7));
            for _ in 0..100 * ABANDONED_MIN {
                drop(world.sleep(Nanos::from_secs(30)));
            }
            assert!(world.timers() <= 2 * ABANDONED_MIN, "{} timers", world.timers());
            kept.await;
            assert_eq!(world.now(), Nanos::from_secs(7));
        });
    }
}
