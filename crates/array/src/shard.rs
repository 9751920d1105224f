//! A shard: the volumes as one core sees them, and how it answers what other shards and the control task ask.

use std::cell::RefCell;
use std::rc::Rc;

use tier0_control::message::request::ShardRequest;
use tier0_units::ExtentId;
use tier0_world::sync::{MailReceiver, MailSender, Notify};
use tier0_world::{IoError, World};

use crate::export_registry::ExportRegistry;
use crate::pool_shard::PoolShard;
use crate::upkeep::pace::Activity;
use crate::upkeep::relocate::Moving;
use crate::volume_io::VolumeIo;

/// One shard of an array.
pub(crate) struct Shard {
    pub(crate) world: World,
    pub(crate) index: usize,
    /// By the volumes' numbers in the array, which are never used again; none where a volume was deleted.
    pub(crate) volumes: RefCell<Vec<Option<Rc<VolumeIo>>>>,
    /// By the pools' numbers in the array.
    pub(crate) pools: Vec<Rc<PoolShard>>,
    /// The registry that offers the volumes to hosts, if there is one.
    pub(crate) exports: RefCell<Option<Rc<dyn ExportRegistry>>>,
    /// To every shard, itself included.
    pub(crate) peers: Vec<MailSender<ShardRequest>>,
    /// Requests of hosts, for background work to yield to.
    pub(crate) activity: Activity,
    /// Extents on their way to other slots.
    pub(crate) moving: Moving,
    /// Rung when the array is to stop.
    pub(crate) stopping: Notify,
}

impl Shard {
    /// A volume by its number in the array.
    ///
    /// # Errors
    /// [`IoError::Gone`] where it was deleted.
    #[inline]
    pub(crate) fn volume(&self, number: u32) -> Result<Rc<VolumeIo>, IoError> {
        let volumes = self.volumes.borrow();
        let listed = volumes.get(number as usize).and_then(Option::as_ref);
        listed.cloned().ok_or(IoError::Gone)
    }

    /// The name of a volume by its number in a pool, for messages.
    pub(crate) fn volume_name(&self, pool: &PoolShard, number: u32) -> String {
        let volumes = self.volumes.borrow();
        let is_it = |volume: &&Rc<VolumeIo>| std::ptr::eq(&*volume.pool, pool) && volume.number == number;
        let named = volumes.iter().flatten().find(is_it);
        named.map_or_else(|| format!("number {number}"), |volume| volume.name().to_string())
    }

    /// An extent of a pool, for messages.
    pub(crate) fn extent_name(&self, pool: &PoolShard, extent: ExtentId) -> String {
        format!("extent {} of volume {}", extent.index, self.volume_name(pool, extent.volume))
    }

    /// The array is to stop: servers end, and no request waits for the ceilings of its volume any more.
    pub(crate) fn begin_stop(&self) {
        self.volumes.borrow().iter().flatten().for_each(|volume| volume.throttle.let_through());
        self.stopping.notify_all();
    }

    /// Answers what other shards ask, until there are none.
    pub(crate) async fn answer(self: Rc<Self>, mut inbox: MailReceiver<ShardRequest>) {
        while let Some(request) = inbox.receive().await {
            let shard = self.clone();
            self.world.spawn(async move { shard.carry_out(request).await }).detach();
        }
    }

    async fn carry_out(self: &Rc<Self>, request: ShardRequest) {
        // The sender may be gone; then the answer is not needed.
        match request {
            ShardRequest::Read { volume, extent, offset, buf, reply } => {
                let _ = reply.send(match self.volume(volume) {
                    Ok(volume) => volume.read(extent, offset, buf).await,
                    Err(error) => (Err(error), buf),
                });
            }
            ShardRequest::Prefetch { volume, extent, offset, sectors } => {
                if let Ok(volume) = self.volume(volume) {
                    volume.prefetch(extent, offset, sectors).await;
                }
            }
            ShardRequest::Write { volume, extent, offset, buf, durable, reply } => {
                let _ = reply.send(match self.volume(volume) {
                    Ok(volume) => volume.write(extent, offset, buf, durable).await,
                    Err(error) => Err(error),
                });
            }
            ShardRequest::Zero { volume, extent, offset, sectors, durable, reply } => {
                let _ = reply.send(match self.volume(volume) {
                    Ok(volume) => volume.zero(extent, offset, sectors, durable).await,
                    Err(error) => Err(error),
                });
            }
            ShardRequest::Flush { volume, reply } => {
                let _ = reply.send(match self.volume(volume) {
                    Ok(volume) => volume.flush().await,
                    Err(error) => Err(error),
                });
            }
            ShardRequest::BlockStatus { volume, extent, reply } => {
                let _ = reply.send(self.volume(volume).map(|volume| volume.block_status(extent)));
            }
            ShardRequest::Command(command) => self.carry_out_for_pool(command).await,
            ShardRequest::Volumes(command) => self.carry_out_for_volume(command).await,
        }
    }
}
