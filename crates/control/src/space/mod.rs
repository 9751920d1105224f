//! Slots of a pool: discards of freed ones, and the rules of its space.

pub(crate) mod discards;
pub(crate) mod rules;
pub(crate) mod slots;

use std::cell::{OnceCell, RefCell};
use std::collections::BTreeMap;
use std::ops::{Deref, Range};
use std::rc::Rc;

use tier0_pool::SpaceRules;
use tier0_world::sync::Semaphore;

use crate::context::Context;
use crate::pool::Pool;
use discards::Discards;

/// The space of all pools.
pub(crate) struct Space {
    context: Rc<Context>,
    by_pool: Vec<SpacePool>,
}

/// Makes room in a group of a pool, if it can.
pub(crate) type RoomMaker = Box<dyn Fn(u32) -> bool>;

/// The space of a pool.
pub(crate) struct SpacePool {
    pool: Rc<Pool>,
    /// Allocation numbers that are reserved and not given.
    allocations: RefCell<Range<u64>>,
    /// One reserves allocation numbers for all.
    reserving: Semaphore,
    /// How urgent the last event about space was.
    told: RefCell<BTreeMap<u32, u8>>,
    /// When the administrator is told about space, and what thin volumes do not get.
    pub(crate) rules: RefCell<SpaceRules>,
    /// Asked for room in a group; whether some will come.
    pub(crate) room_maker: OnceCell<RoomMaker>,
    /// Freed slots on their way back.
    pub(crate) discards: Rc<Discards>,
}

impl Space {
    pub(crate) fn new(context: &Rc<Context>) -> Rc<Space> {
        let by_pool = context.pools.iter().map(SpacePool::new).collect();
        Rc::new(Space { context: context.clone(), by_pool })
    }

    /// What this keeps of a pool.
    pub(crate) fn core(&self, number: usize) -> &SpacePool {
        &self.by_pool[number]
    }
}

impl SpacePool {
    fn new(pool: &Rc<Pool>) -> SpacePool {
        SpacePool {
            pool: pool.clone(),
            allocations: RefCell::new(0..0),
            reserving: Semaphore::new(1),
            told: RefCell::default(),
            rules: RefCell::default(),
            room_maker: OnceCell::new(),
            discards: Discards::start(&pool.metadata, &pool.shape, &pool.column_places),
        }
    }
}

impl Deref for Space {
    type Target = Context;

    fn deref(&self) -> &Context {
        &self.context
    }
}

impl Deref for SpacePool {
    type Target = Pool;

    fn deref(&self) -> &Pool {
        &self.pool
    }
}
