//! Failed drives and wrong data: the arbiter, pauses, rebuilds, scrubs, verification, lost pages.

pub(crate) mod arbiter;
pub(crate) mod guard_arbiter;
pub(crate) mod lost_pages;
pub(crate) mod page_errors;
pub(crate) mod pause;
pub(crate) mod placement;
pub(crate) mod rebuild;
pub(crate) mod scrub;
pub(crate) mod verification;
pub(crate) mod witness;
pub(crate) mod witness_watch;

use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Deref;
use std::rc::Rc;

use tier0_pool::ChunkletAddress;
use tier0_units::Nanos;

use crate::context::Context;
use crate::pool::Pool;
use arbiter::FailureArbiter;
use page_errors::PageErrors;
use rebuild::RebuildProgress;
use scrub::ScrubProgress;
use verification::Unverified;
use witness::Witness;

/// Decides on failures, and repairs what they leave.
pub(crate) struct Repair {
    context: Rc<Context>,
    by_pool: Vec<RepairPool>,
    /// Told before a loss is recorded, if there is one.
    witness: Option<Witness>,
    /// What was wrong with it when it was looked at last.
    pub(crate) witness_fault: RefCell<Option<String>>,
}

/// Failures and repairs of a pool.
pub(crate) struct RepairPool {
    pool: Rc<Pool>,
    pub(crate) arbiter: FailureArbiter,
    pub(crate) page_errors: PageErrors,
    pub(crate) rebuild: RebuildProgress,
    pub(crate) scrub: ScrubProgress,
    /// Whether the last event about a rebuild said that one goes on.
    pub(crate) rebuild_told: Cell<bool>,
    /// Of how many columns events have told last that there is no spare chunklet for them.
    pub(crate) room_told: Cell<u64>,
    /// Columns that are rebuilt where they were until their drive was lost: set, column and place.
    pub(crate) returned: RefCell<BTreeMap<(u32, u32), ChunkletAddress>>,
    /// Drives that were taken back by what has changed, until a scrub has read them whole.
    pub(crate) unverified: Unverified,
    /// Members that the administrator has taken out of service, in this run.
    pub(crate) taken_out: RefCell<BTreeSet<u32>>,
    /// When members were lost, in this run.
    pub(crate) lost_at: RefCell<BTreeMap<u32, Nanos>>,
}

impl Repair {
    pub(crate) fn new(context: &Rc<Context>, witness: Option<Witness>) -> Rc<Repair> {
        let by_pool = context.pools.iter().map(RepairPool::new).collect();
        Rc::new(Repair { context: context.clone(), by_pool, witness, witness_fault: RefCell::default() })
    }

    /// Whether a rebuild of a pool goes on, or is about to.
    pub(crate) fn is_rebuilding(&self, number: usize) -> bool {
        self.core(number).rebuild.is_running()
    }

    /// Whether nobody outside of the drives remembers splits.
    pub(crate) fn has_no_witness(&self) -> bool {
        self.witness.is_none()
    }

    /// What this keeps of a pool.
    pub(crate) fn core(&self, number: usize) -> &RepairPool {
        &self.by_pool[number]
    }
}

impl RepairPool {
    fn new(pool: &Rc<Pool>) -> RepairPool {
        RepairPool {
            pool: pool.clone(),
            arbiter: FailureArbiter::default(),
            page_errors: PageErrors::default(),
            rebuild: RebuildProgress::default(),
            scrub: ScrubProgress::default(),
            rebuild_told: Cell::new(false),
            room_told: Cell::new(0),
            returned: RefCell::default(),
            unverified: Unverified::default(),
            taken_out: RefCell::default(),
            lost_at: RefCell::default(),
        }
    }
}

impl Deref for Repair {
    type Target = Context;

    fn deref(&self) -> &Context {
        &self.context
    }
}

impl Deref for RepairPool {
    type Target = Pool;

    fn deref(&self) -> &Pool {
        &self.pool
    }
}
