//! Whether a connection works beside others.
//!
//! It notes whenever it begins something, which costs two loads as long as no other connection does. The clock is asked
//! only by who wants more than it may have beside others.

use std::cell::Cell;
use std::rc::Rc;

use tier0_units::Nanos;
use tier0_world::World;

use super::pool::Pool;

/// A connection that has seen no other begin anything for so long is alone.
const ALONE_AFTER: Nanos = Nanos::from_millis(100);

/// One connection's view of the others.
pub(crate) struct Neighbour {
    world: World,
    pool: Rc<Pool>,
    number: u64,
    /// How often the worker had changed when it was last asked, and since when that is so.
    seen: Cell<u64>,
    since: Cell<Nanos>,
}

impl Neighbour {
    pub(crate) fn new(world: &World, pool: &Rc<Pool>) -> Neighbour {
        pool.connections.set(pool.connections.get() + 1);
        Neighbour {
            world: world.clone(),
            pool: pool.clone(),
            number: pool.connections.get(),
            seen: Cell::new(u64::MAX),
            since: Cell::new(Nanos::ZERO),
        }
    }

    /// It begins something.
    #[inline]
    pub(crate) fn works(&self) {
        if self.pool.worker.get() != self.number {
            let changes = self.pool.changes.get();
            self.pool.worker.set(self.number);
            self.pool.changes.set(changes + 1);
            if self.seen.get() == changes {
                // Its own change says nothing of others.
                self.seen.set(changes + 1);
            }
        }
    }

    /// Whether no other connection has worked of late. A lone connection is so from its second request on.
    pub(crate) fn is_alone(&self) -> bool {
        let changes = self.pool.changes.get();
        if changes <= 1 {
            return true;
        }
        let now = self.world.now();
        if self.seen.replace(changes) != changes {
            self.since.set(now);
        }
        now.saturating_sub(self.since.get()) >= ALONE_AFTER
    }
}
