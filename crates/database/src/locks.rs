//! Locks of rows that transactions change: who wants one that is held waits, in the order of arrival, until its holder has committed.
//!
//! Only rows that the workload names are locked (`hold = true`). Its check has them in an order, so that transactions do not wait
//! for each other in a circle.

use std::cell::RefCell;
use std::collections::BTreeMap;

use tier0_world::sync::{Permit, Semaphore};

/// Locks by the number of their row, made when a row is locked first.
#[derive(Default)]
pub(crate) struct Locks {
    rows: RefCell<BTreeMap<u64, Semaphore>>,
}

impl Locks {
    /// Whether a lock can be had without waiting.
    pub(crate) fn is_free(&self, row: u64) -> bool {
        self.rows.borrow().get(&row).is_none_or(|lock| lock.free() > 0)
    }

    /// Waits for a lock. It is held until what this returns is dropped.
    pub(crate) async fn lock(&self, row: u64) -> Permit {
        let acquire = self.rows.borrow_mut().entry(row).or_insert_with(|| Semaphore::new(1)).acquire(1);
        acquire.await
    }
}
