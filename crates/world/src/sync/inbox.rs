//! What other threads send to one that may sleep: a lock-free queue, and the word that its owner is about to sleep.
//!
//! The owner says that it sleeps and then looks once more; a sender puts its item in and then asks whether the owner
//! sleeps. Both do so by exchanges of one word, and nothing else changes it, so one exchange comes first: either the
//! sender finds the owner asleep, or the owner's exchange follows the sender's and acquires what it put in. Nothing is
//! slept through, whatever the queue promises.

use crate::sync::shared::{AtomicBool, Flaw, Ordering, SegQueue, flawed};

/// The inbox of a thread.
pub(crate) struct Inbox<T> {
    queue: SegQueue<T>,
    sleeping: AtomicBool,
}

impl<T> Inbox<T> {
    /// An empty one, whose owner is awake.
    pub(crate) fn new() -> Inbox<T> {
        Inbox { queue: SegQueue::new(), sleeping: AtomicBool::new(false) }
    }

    /// Puts an item in, and calls `ring` if that must end the owner's sleep.
    pub(crate) fn push(&self, item: T, ring: impl FnOnce()) {
        self.queue.push(item);
        if self.sleeping.swap(false, Ordering::AcqRel) {
            ring();
        }
    }

    /// The oldest item. Only the owner may call it.
    pub(crate) fn pop(&self) -> Option<T> {
        self.queue.pop()
    }

    /// Announces that the owner is about to sleep; false if an item has come in the meantime.
    pub(crate) fn prepare_to_sleep(&self) -> bool {
        self.sleeping.swap(true, Ordering::AcqRel);
        if flawed(Flaw::SleepWithoutLook) || self.queue.is_empty() {
            return true;
        }
        self.awake();
        false
    }

    /// The owner is awake again.
    pub(crate) fn awake(&self) {
        self.sleeping.swap(false, Ordering::AcqRel);
    }
}

#[cfg(all(test, tier0_loom))]
mod models {
    use std::sync::Arc;

    use loom::sync::Notify;
    use loom::thread;

    use super::*;
    use crate::sync::shared::explore;

    /// Two threads send one item each while the owner takes and sleeps as the runtime does. A wake-up that is lost is a
    /// deadlock, which loom finds.
    fn items_arrive(flaw: Option<Flaw>) {
        explore(flaw, || {
            let inbox = Arc::new(Inbox::new());
            let bell = Arc::new(Notify::new());
            for item in 0..2 {
                let (inbox, bell) = (inbox.clone(), bell.clone());
                thread::spawn(move || inbox.push(item, || bell.notify()));
            }
            let mut got = 0;
            while got < 2 {
                while inbox.pop().is_some() {
                    got += 1;
                }
                if got == 2 || !inbox.prepare_to_sleep() {
                    continue;
                }
                bell.wait();
                inbox.awake();
            }
        });
    }

    #[test]
    fn nothing_is_slept_through() {
        items_arrive(None);
    }

    #[test]
    #[should_panic(expected = "deadlock")]
    fn sleeping_without_a_second_look_is_found() {
        items_arrive(Some(Flaw::SleepWithoutLook));
    }

    #[test]
    #[should_panic(expected = "deadlock")]
    fn relaxed_orderings_are_found() {
        items_arrive(Some(Flaw::RelaxedOrderings));
    }
}
