//! Locks on ranges of pages of an extent, in the order of arrival: a write that must first read what surrounds it, or
//! allocate, is not overtaken by a later one to the same pages.

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::ops::Range;
use std::rc::Rc;

use tier0_units::ExtentId;
use tier0_world::sync::Notify;

/// All pages of an extent.
pub(crate) const WHOLE: Range<u32> = 0..u32::MAX;

struct Ticket {
    number: u64,
    pages: Range<u32>,
}

/// The tickets of the extents that have any, oldest first.
#[derive(Default)]
pub(crate) struct PageLocks {
    extents: RefCell<BTreeMap<ExtentId, Vec<Ticket>>>,
    next: Cell<u64>,
    released: Notify,
}

impl PageLocks {
    /// Whether a lock of these pages would be given at once.
    pub(crate) fn is_free(&self, extent: ExtentId, pages: &Range<u32>) -> bool {
        let extents = self.extents.borrow();
        extents.is_empty()
            || extents
                .get(&extent)
                .is_none_or(|tickets| !tickets.iter().any(|ticket| overlap(&ticket.pages, pages)))
    }

    /// Waits until all locks of these pages that were asked for earlier are given back.
    pub(crate) async fn lock(self: &Rc<Self>, extent: ExtentId, pages: Range<u32>) -> PageGuard {
        let guard = self.enter(extent, pages);
        while !self.is_first(&guard) {
            self.released.wait().await;
        }
        guard
    }

    /// Locks the whole extent if no task has locked or waits for any of it.
    pub(crate) fn try_lock_whole(self: &Rc<Self>, extent: ExtentId) -> Option<PageGuard> {
        let free = !self.extents.borrow().contains_key(&extent);
        free.then(|| self.enter(extent, WHOLE))
    }

    fn enter(self: &Rc<Self>, extent: ExtentId, pages: Range<u32>) -> PageGuard {
        let number = self.next.replace(self.next.get() + 1);
        self.extents.borrow_mut().entry(extent).or_default().push(Ticket { number, pages });
        PageGuard { locks: self.clone(), extent, number }
    }

    fn is_first(&self, guard: &PageGuard) -> bool {
        let extents = self.extents.borrow();
        let tickets = &extents[&guard.extent];
        let place = tickets.iter().position(|ticket| ticket.number == guard.number).expect("it has entered");
        !tickets[..place].iter().any(|earlier| overlap(&earlier.pages, &tickets[place].pages))
    }
}

fn overlap(a: &Range<u32>, b: &Range<u32>) -> bool {
    a.start < b.end && b.start < a.end
}

/// A locked range, or a place in the queue for it; dropping it gives it up.
pub(crate) struct PageGuard {
    locks: Rc<PageLocks>,
    extent: ExtentId,
    number: u64,
}

impl Drop for PageGuard {
    fn drop(&mut self) {
        let mut extents = self.locks.extents.borrow_mut();
        let tickets = extents.get_mut(&self.extent).expect("it has entered");
        tickets.retain(|ticket| ticket.number != self.number);
        if tickets.is_empty() {
            extents.remove(&self.extent);
        }
        drop(extents);
        self.locks.released.notify_all();
    }
}

#[cfg(test)]
mod tests {
    use tier0_units::Nanos;
    use tier0_world::{PayloadWidth, VirtualRuntime};

    use super::*;

    const EXTENT: ExtentId = ExtentId { volume: 0, index: 0 };

    #[test]
    fn overlapping_ranges_go_in_order_of_arrival() {
        let runtime = VirtualRuntime::new(0, PayloadWidth::NONE);
        let world = runtime.world().clone();
        let order = Rc::new(RefCell::new(Vec::new()));
        let locks = Rc::new(PageLocks::default());
        let tasks: Vec<_> = [(0, 0..2), (1, 1..4), (2, 3..5), (3, 7..8), (4, 0..1)]
            .into_iter()
            .map(|(name, pages)| {
                let (world, order, locks) = (world.clone(), order.clone(), locks.clone());
                world.clone().spawn(async move {
                    let _guard = locks.lock(EXTENT, pages).await;
                    order.borrow_mut().push((name, world.now().0));
                    world.sleep(Nanos(10)).await;
                })
            })
            .collect();
        let after = locks.clone();
        runtime.run(async move {
            for task in tasks {
                task.await;
            }
        });
        assert_eq!(*order.borrow(), [(0, 0), (3, 0), (1, 10), (4, 10), (2, 20)]);
        assert!(after.extents.borrow().is_empty());
    }

    #[test]
    fn the_whole_extent_is_locked_only_when_nobody_is_in_it() {
        let locks = Rc::new(PageLocks::default());
        let guard = locks.try_lock_whole(EXTENT).expect("free");
        assert!(!locks.is_free(EXTENT, &(5..6)));
        assert!(locks.is_free(ExtentId { volume: 0, index: 1 }, &WHOLE));
        assert!(locks.try_lock_whole(EXTENT).is_none());
        drop(guard);
        assert!(locks.is_free(EXTENT, &WHOLE));
    }
}
