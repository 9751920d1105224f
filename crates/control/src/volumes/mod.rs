//! Volumes that come, change and go; clones; commits of extents that move.

pub(crate) mod ceilings;
pub(crate) mod clones;
pub(crate) mod extent_commits;
pub(crate) mod lifecycle;
pub(crate) mod migrate;
mod settle;
pub(crate) mod shrink;
mod weights;

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::ops::Deref;
use std::rc::Rc;

use crate::context::Context;
use crate::pool::Pool;
use crate::space::Space;
use crate::space::discards::Discards;
use extent_commits::ExtentCommits;

/// The volumes of all pools.
pub(crate) struct Volumes {
    context: Rc<Context>,
    by_pool: Vec<VolumesPool>,
    /// By pool and the volume's number in it: its number in the array.
    numbers: RefCell<BTreeMap<(usize, u32), u32>>,
    /// Volumes that there ever were in this run: the next number in the array.
    ever: Cell<u32>,
}

/// The volumes of a pool.
pub(crate) struct VolumesPool {
    pool: Rc<Pool>,
    extent_commits: ExtentCommits,
    discards: Rc<Discards>,
}

impl Volumes {
    /// The volumes of the start are numbered as every shard lists them: pool by pool, and as the pools number them.
    pub(crate) fn new(context: &Rc<Context>, space: &Space) -> Rc<Volumes> {
        let of_pool = |(number, pool): (usize, &Rc<Pool>)| VolumesPool {
            pool: pool.clone(),
            extent_commits: ExtentCommits::default(),
            discards: space.core(number).discards.clone(),
        };
        let by_pool = context.pools.iter().enumerate().map(of_pool).collect();
        let (numbers, ever) = (RefCell::default(), Cell::new(0));
        let volumes = Rc::new(Volumes { context: context.clone(), by_pool, numbers, ever });
        for (number, pool) in context.pools.iter().enumerate() {
            let known: Vec<u32> = pool.metadata.state().volumes().map(|volume| volume.number).collect();
            for volume in known {
                volumes.number_volume(number, volume);
            }
        }
        volumes
    }

    /// What this keeps of a pool.
    pub(crate) fn core(&self, number: usize) -> &VolumesPool {
        &self.by_pool[number]
    }
}

impl Deref for Volumes {
    type Target = Context;

    fn deref(&self) -> &Context {
        &self.context
    }
}

impl Deref for VolumesPool {
    type Target = Pool;

    fn deref(&self) -> &Pool {
        &self.pool
    }
}
