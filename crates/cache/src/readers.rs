//! Who is reading from which slot: nothing is written in place under a read, and no slot is given back under one.
//!
//! Before a batch writes pages of a slot it waits for the reads of that slot that are under way; later ones find the
//! pages in memory. Reads that begin while a task waits are counted apart, so that a busy slot does not starve it.

use std::cell::RefCell;
use std::collections::BTreeMap;

use tier0_world::sync::Notify;

#[derive(Default)]
struct Count {
    /// How often a task began to wait.
    generation: u64,
    /// Reads that began since then.
    current: u32,
    /// Reads that began before.
    old: u32,
}

/// The reads under way, by slot.
#[derive(Default)]
pub(crate) struct Readers {
    slots: RefCell<BTreeMap<u64, Count>>,
    left: Notify,
}

/// A read under way; dropping it ends it.
pub(crate) struct Reading<'a> {
    readers: &'a Readers,
    slot: u64,
    generation: u64,
}

impl Readers {
    /// A read of a slot begins.
    pub(crate) fn enter(&self, slot: u64) -> Reading<'_> {
        let mut slots = self.slots.borrow_mut();
        let count = slots.entry(slot).or_default();
        count.current += 1;
        Reading { readers: self, slot, generation: count.generation }
    }

    /// The slots that are read now.
    pub(crate) fn slots(&self) -> Vec<u64> {
        self.slots.borrow().keys().copied().collect()
    }

    /// Ends when some slot is read no more.
    pub(crate) async fn until_fewer(&self) {
        self.left.wait().await;
    }

    /// Ends when every read of the slot that is under way now has ended. At most one waits per slot.
    pub(crate) async fn wait(&self, slot: u64) {
        if let Some(count) = self.slots.borrow_mut().get_mut(&slot) {
            debug_assert_eq!(count.old, 0, "one waits per slot");
            count.old = std::mem::take(&mut count.current);
            count.generation += 1;
        }
        while self.slots.borrow().get(&slot).is_some_and(|count| count.old > 0) {
            self.left.wait().await;
        }
    }
}

impl Drop for Reading<'_> {
    fn drop(&mut self) {
        let mut slots = self.readers.slots.borrow_mut();
        let count = slots.get_mut(&self.slot).expect("a read under way is counted");
        let old = self.generation < count.generation;
        *(if old { &mut count.old } else { &mut count.current }) -= 1;
        let was_last_old = old && count.old == 0;
        let was_last = count.old == 0 && count.current == 0;
        if was_last {
            slots.remove(&self.slot);
        }
        drop(slots);
        if was_last || was_last_old {
            self.readers.left.notify_all();
        }
    }
}

#[cfg(test)]
mod tests {
    use std::rc::Rc;

    use tier0_units::Nanos;
    use tier0_world::{PayloadWidth, VirtualRuntime};

    use super::*;

    #[test]
    fn waits_for_earlier_reads_of_the_slot_and_for_no_others() {
        let runtime = VirtualRuntime::new(0, PayloadWidth::NONE);
        let world = runtime.world().clone();
        let readers = Rc::new(Readers::default());
        for (slot, start, end) in [(7, 0, 50), (7, 10, 70), (7, 25, 1000), (8, 0, 2000), (7, 60, 90)] {
            let (world, readers) = (world.clone(), readers.clone());
            let read = async move {
                world.sleep(Nanos(start)).await;
                let _reading = readers.enter(slot);
                world.sleep(Nanos(end - start)).await;
            };
            runtime.world().spawn(read).detach();
        }
        let kept = readers.clone();
        let ended = runtime.run(async move {
            world.sleep(Nanos(20)).await;
            readers.wait(7).await;
            let first = world.now();
            readers.wait(9).await;
            readers.wait(7).await;
            (first, world.now())
        });
        assert_eq!(ended, (Nanos(70), Nanos(1000)));
        runtime.run_until(Nanos(3000));
        assert!(kept.slots.borrow().is_empty());
    }
}
