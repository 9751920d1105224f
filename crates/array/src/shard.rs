//! A shard: the volumes as one core sees them, and the mailboxes through which shards ask each other.

use std::rc::Rc;
use std::sync::Arc;

use tier0_raid::io::{Members, RaidIo};
use tier0_volume::ExtentIo;
use tier0_world::sync::{MailReceiver, MailSender, Notify, oneshot};
use tier0_world::{Buf, BufMut, IoError, World};

use crate::plan::PoolPlan;

/// A request for another shard's extent.
pub(crate) enum Ask {
    Read {
        volume: u32,
        extent: u64,
        offset: u64,
        buf: BufMut,
        reply: oneshot::Sender<(Result<(), IoError>, BufMut)>,
    },
    Write {
        volume: u32,
        extent: u64,
        offset: u64,
        buf: Buf,
        durable: bool,
        reply: oneshot::Sender<Result<(), IoError>>,
    },
}

/// One shard of an array.
pub(crate) struct Shard {
    pub(crate) world: World,
    pub(crate) index: usize,
    /// By the volumes' numbers in the array.
    pub(crate) volumes: Vec<ExtentIo>,
    /// To every shard, itself included.
    pub(crate) peers: Vec<MailSender<Ask>>,
    /// Rung when the array is to stop.
    pub(crate) stopping: Notify,
}

impl Shard {
    /// The volumes of all pools in one shard, in the order of pools and records; `members` by pool.
    pub(crate) fn new(
        world: &World,
        index: usize,
        plans: &[PoolPlan],
        members: Vec<Members>,
        peers: Vec<MailSender<Ask>>,
    ) -> Rc<Shard> {
        let mut volumes = Vec::new();
        for (plan, members) in plans.iter().zip(members) {
            let raid = RaidIo::new(plan.sets.clone(), members);
            for volume in &plan.record.volumes {
                volumes.push(ExtentIo::new(Arc::new(plan.map(volume)), plan.slots.clone(), raid.clone()));
            }
        }
        Rc::new(Shard { world: world.clone(), index, volumes, peers, stopping: Notify::new() })
    }

    /// Answers what other shards ask, until there are none.
    pub(crate) async fn answer(self: Rc<Self>, mut inbox: MailReceiver<Ask>) {
        while let Some(ask) = inbox.receive().await {
            let shard = self.clone();
            self.world.spawn(async move { shard.carry_out(ask).await }).detach();
        }
    }

    async fn carry_out(&self, ask: Ask) {
        // Whoever asked may be gone; then nobody needs the answer.
        match ask {
            Ask::Read { volume, extent, offset, buf, reply } => {
                let _ = reply.send(self.volumes[volume as usize].read(extent, offset, buf).await);
            }
            Ask::Write { volume, extent, offset, buf, durable, reply } => {
                let _ = reply.send(self.volumes[volume as usize].write(extent, offset, buf, durable).await);
            }
        }
    }
}
