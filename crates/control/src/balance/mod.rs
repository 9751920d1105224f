//! Where extents and columns lie: the mover, restriping, moves of columns, growth of a pool.

pub(crate) mod column_moves;
pub(crate) mod grow;
pub(crate) mod misplaced_columns;
pub(crate) mod mover;
pub(crate) mod rebuild_events;
pub(crate) mod restripe;

use std::cell::{Cell, RefCell};
use std::collections::BTreeSet;
use std::ops::Deref;
use std::rc::Rc;

use tier0_world::sync::{Permit, Semaphore};

use crate::context::Context;
use crate::pool::Pool;
use crate::repair::Repair;
use crate::space::Space;
use column_moves::MoveReason;
use mover::{MOVES_AT_ONCE, Mover};
use restripe::RestripeProgress;

/// Moves extents and columns.
pub(crate) struct Balance {
    context: Rc<Context>,
    by_pool: Vec<BalancePool>,
    space: Rc<Space>,
    repair: Rc<Repair>,
}

/// What moves in a pool.
pub(crate) struct BalancePool {
    pool: Rc<Pool>,
    /// Extents on their way.
    mover: Rc<Mover>,
    restripe: RestripeProgress,
    /// The administrator has asked for sets that need columns to move first.
    pub(crate) growing: Cell<bool>,
    /// Why those columns move that move now.
    pub(crate) move_reason: Cell<MoveReason>,
    /// Members that are not for data of which was told that they have columns.
    misplaced_told: RefCell<BTreeSet<u32>>,
    /// Extents move, or columns are rebuilt, not both: a move has one permit, a rebuild all of them.
    extents_or_rebuild: Semaphore,
}

impl Balance {
    pub(crate) fn new(context: &Rc<Context>, space: Rc<Space>, repair: Rc<Repair>) -> Rc<Balance> {
        let by_pool = context.pools.iter().map(BalancePool::new).collect();
        Rc::new(Balance { context: context.clone(), by_pool, space, repair })
    }

    /// Until this is dropped, no extent of a pool moves.
    pub(crate) async fn hold_extents(&self, number: usize) -> Permit {
        self.core(number).extents_or_rebuild.acquire(u64::from(MOVES_AT_ONCE)).await
    }

    /// What this keeps of a pool.
    pub(crate) fn core(&self, number: usize) -> &BalancePool {
        &self.by_pool[number]
    }
}

impl BalancePool {
    fn new(pool: &Rc<Pool>) -> BalancePool {
        BalancePool {
            pool: pool.clone(),
            mover: Rc::default(),
            restripe: RestripeProgress::default(),
            growing: Cell::new(false),
            move_reason: Cell::default(),
            misplaced_told: RefCell::default(),
            extents_or_rebuild: Semaphore::new(u64::from(MOVES_AT_ONCE)),
        }
    }
}

impl Deref for Balance {
    type Target = Context;

    fn deref(&self) -> &Context {
        &self.context
    }
}

impl Deref for BalancePool {
    type Target = Pool;

    fn deref(&self) -> &Pool {
        &self.pool
    }
}
