//! Shards of pools whose writes go straight to the drives.

use std::cell::RefCell;
use std::future::Future;
use std::pin::Pin;
use std::rc::Rc;
use std::sync::Arc;

use tier0_raid::io::{FailureReport, Members, RaidIo};
use tier0_volume::ExtentIo;
use tier0_world::sync::{MailSender, Notify};
use tier0_world::{IoError, World};

use crate::plan::PoolPlan;
use crate::shard::{Ask, ListedVolume, Shard};
use crate::upkeep::Activity;
use crate::volume_io::VolumeIo;

/// Nothing remembers the loss of such a drive: it is gone with the process, like all others.
pub(crate) struct Forgetful;

impl FailureReport for Forgetful {
    fn report(&self, _: usize, _: IoError) -> Pin<Box<dyn Future<Output = ()>>> {
        Box::pin(async {})
    }
}

/// The volumes of all pools in one shard, in the order of pools and records; `members` by pool.
pub(crate) fn shard(
    world: &World,
    index: usize,
    plans: &[&PoolPlan],
    members: Vec<Members>,
    peers: Vec<MailSender<Ask>>,
) -> Rc<Shard> {
    let mut volumes = Vec::new();
    for (plan, members) in plans.iter().zip(members) {
        let raid = RaidIo::new(plan.sets.clone(), members);
        for volume in &plan.record.volumes {
            let extents = ExtentIo::new(Arc::new(plan.map(volume)), plan.slots.clone(), raid.clone());
            volumes.push(Some(ListedVolume::new(&volume.name, VolumeIo::Direct(extents))));
        }
    }
    Rc::new(Shard {
        world: world.clone(),
        index,
        volumes: RefCell::new(volumes),
        pools: plans.iter().map(|_| None).collect(),
        front: RefCell::default(),
        peers,
        activity: Activity::default(),
        stopping: Notify::new(),
    })
}
