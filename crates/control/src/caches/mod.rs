//! The write cache, the read cache, the flash cache and the write log: switches, sizes and places.

pub(crate) mod flash_cache;
pub(crate) mod log_placement;
pub(crate) mod switches;

use std::cell::RefCell;
use std::ops::Deref;
use std::rc::Rc;

use crate::context::Context;
use crate::pool::Pool;
use crate::repair::Repair;
use crate::volumes::Volumes;
use flash_cache::FlashCacheUpkeep;

/// The caches and write logs of all pools.
pub(crate) struct Caches {
    context: Rc<Context>,
    by_pool: Vec<CachesPool>,
    repair: Rc<Repair>,
    volumes: Rc<Volumes>,
}

/// The caches and the write log of a pool.
pub(crate) struct CachesPool {
    pool: Rc<Pool>,
    flash_cache: FlashCacheUpkeep,
    /// The drives that are to hold the write log, where the array file says so.
    log_drives: RefCell<Vec<String>>,
}

impl Caches {
    pub(crate) fn new(context: &Rc<Context>, repair: Rc<Repair>, volumes: Rc<Volumes>) -> Rc<Caches> {
        let by_pool = context.pools.iter().map(CachesPool::new).collect();
        Rc::new(Caches { context: context.clone(), by_pool, repair, volumes })
    }

    /// What this keeps of a pool.
    pub(crate) fn core(&self, number: usize) -> &CachesPool {
        &self.by_pool[number]
    }
}

impl CachesPool {
    fn new(pool: &Rc<Pool>) -> CachesPool {
        CachesPool {
            pool: pool.clone(),
            flash_cache: FlashCacheUpkeep::default(),
            log_drives: RefCell::default(),
        }
    }
}

impl Deref for Caches {
    type Target = Context;

    fn deref(&self) -> &Context {
        &self.context
    }
}

impl Deref for CachesPool {
    type Target = Pool;

    fn deref(&self) -> &Pool {
        &self.pool
    }
}
