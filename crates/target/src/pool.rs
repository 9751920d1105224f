//! Memory that all connections of a target share, beyond what each of them has for itself.
//!
//! A connection may hold as much of it as is left for the others at that moment: alone it may have half, beside another one
//! that does likewise a third, and so on (dynamic thresholds, Choudhury and Hahne 1998). So a few that take all they
//! can get leave something to connections that come later.

use std::cell::{Cell, RefCell};
use std::rc::Rc;

use tier0_world::sync::Notify;

/// Wakes the task that waits for room in a connection's flow. One at a time waits for it.
#[derive(Default)]
pub(crate) struct Bell {
    pub(crate) changed: Notify,
    /// The pool will ring it.
    is_in_pool: Cell<bool>,
}

/// What is lent to connections.
pub(crate) struct Pool {
    reserve_bytes: u64,
    free_bytes: Cell<u64>,
    waiting: RefCell<Vec<Rc<Bell>>>,
    /// The connection that began something last, and how often that has changed.
    pub(crate) worker: Cell<u64>,
    pub(crate) changes: Cell<u64>,
    pub(crate) connections: Cell<u64>,
}

impl Pool {
    pub(crate) fn new(pool_bytes: u64, reserve_bytes: u64) -> Pool {
        Pool {
            reserve_bytes,
            free_bytes: Cell::new(pool_bytes),
            waiting: RefCell::default(),
            worker: Cell::default(),
            changes: Cell::default(),
            connections: Cell::default(),
        }
    }

    /// Lets a connection that holds `held` bytes hold `more`, if that may be.
    #[inline]
    pub(crate) fn try_take(&self, held: u64, more: u64) -> bool {
        let beyond = self.beyond_reserve(held + more);
        let taken = beyond - self.beyond_reserve(held);
        let free = self.free_bytes.get();
        let fits = taken == 0 || (taken <= free && beyond <= free.max(taken));
        if fits {
            self.free_bytes.set(free - taken);
        }
        fits
    }

    /// A connection that holds `held` bytes gives back `less`.
    #[inline]
    pub(crate) fn give_back(&self, held: u64, less: u64) {
        let given = self.beyond_reserve(held) - self.beyond_reserve(held - less);
        self.free_bytes.set(self.free_bytes.get() + given);
        if given > 0 && !self.waiting.borrow().is_empty() {
            for bell in self.waiting.take() {
                bell.is_in_pool.set(false);
                bell.changed.notify_all();
            }
        }
    }

    /// Rings `bell` when something is given back.
    pub(crate) fn ring_when_freed(&self, bell: &Rc<Bell>) {
        if !bell.is_in_pool.replace(true) {
            self.waiting.borrow_mut().push(bell.clone());
        }
    }

    #[cfg(test)]
    pub(crate) fn waiting_count(&self) -> usize {
        self.waiting.borrow().len()
    }

    fn beyond_reserve(&self, held: u64) -> u64 {
        held.saturating_sub(self.reserve_bytes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reserves_are_everybodys_and_the_rest_is_shared() {
        let pool = Pool::new(1000, 10);
        let mut greedy = [0; 4];
        for held in &mut greedy {
            while pool.try_take(*held, 10) {
                *held += 10;
            }
        }
        assert_eq!(greedy, [510, 260, 140, 70], "half of what there was, and the reserve");
        assert!(pool.try_take(0, 10), "the reserve does not depend on the others");
        assert!(pool.try_take(10, 10), "and some is left for who comes later");
        greedy.iter().for_each(|&held| pool.give_back(held, held));
        pool.give_back(20, 20);
        assert_eq!(pool.free_bytes.get(), 1000);
    }

    #[test]
    fn a_long_request_has_all_that_is_free() {
        let pool = Pool::new(1000, 10);
        assert!(pool.try_take(0, 1010));
        assert!(!pool.try_take(0, 11));
        pool.give_back(1010, 1010);
        assert!(!pool.try_take(0, 1011));
    }
}
