//! Drives that join, leave and come back, and what becomes of those that serve: superblocks, foreign and moved drives, the
//! witness.

pub(crate) mod arrival;
pub(crate) mod damaged_drives;
pub(crate) mod departed;
pub(crate) mod heartbeat;
pub(crate) mod join;
pub(crate) mod named_drives;
pub(crate) mod new_group;
pub(crate) mod opener;
pub(crate) mod original_array;
pub(crate) mod overwritten_superblocks;
pub(crate) mod rejoin;
pub(crate) mod relocated_drives;
pub(crate) mod removal;
pub(crate) mod start_check;

use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Deref;
use std::path::PathBuf;
use std::rc::Rc;

use tier0_drive::DriveHandle;

use crate::caches::Caches;
use crate::context::Context;
use crate::pool::Pool;
use crate::repair::Repair;
use opener::{Damage, DriveOpener, RelocatedDrive};

/// The drives of all pools.
pub(crate) struct Membership {
    context: Rc<Context>,
    by_pool: Vec<MembershipPool>,
    repair: Rc<Repair>,
    caches: Rc<Caches>,
    /// Opens drives that are to join; `None` if they come as handles.
    pub(crate) opener: Option<Rc<dyn DriveOpener>>,
    /// Where drives lie, or lay, that were damaged from outside.
    damaged: RefCell<Vec<(PathBuf, Damage)>>,
    /// Where drives lay that serve and were moved, and where they lie.
    pub(crate) relocated: RefCell<Vec<RelocatedDrive>>,
}

/// Members of a pool that come and go.
pub(crate) struct MembershipPool {
    pool: Rc<Pool>,
    /// Lost members that are to be forgotten although what they hold may be needed.
    given_up: RefCell<BTreeSet<u32>>,
    /// Members that are to be forgotten when nothing is theirs any more, with their drives where they answer.
    leaving: RefCell<BTreeMap<u32, Option<DriveHandle>>>,
    /// The lost member whose drive joins again at present.
    rejoining: Cell<Option<u32>>,
}

impl Membership {
    pub(crate) fn new(
        context: &Rc<Context>,
        repair: Rc<Repair>,
        caches: Rc<Caches>,
        opener: Option<Rc<dyn DriveOpener>>,
    ) -> Rc<Membership> {
        let by_pool = context.pools.iter().map(MembershipPool::new).collect();
        Rc::new(Membership {
            context: context.clone(),
            by_pool,
            repair,
            caches,
            opener,
            damaged: RefCell::default(),
            relocated: RefCell::default(),
        })
    }

    /// What this keeps of a pool.
    pub(crate) fn core(&self, number: usize) -> &MembershipPool {
        &self.by_pool[number]
    }
}

impl MembershipPool {
    fn new(pool: &Rc<Pool>) -> MembershipPool {
        MembershipPool {
            pool: pool.clone(),
            given_up: RefCell::default(),
            leaving: RefCell::default(),
            rejoining: Cell::default(),
        }
    }
}

impl Deref for Membership {
    type Target = Context;

    fn deref(&self) -> &Context {
        &self.context
    }
}

impl Deref for MembershipPool {
    type Target = Pool;

    fn deref(&self) -> &Pool {
        &self.pool
    }
}
