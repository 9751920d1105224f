//! Volumes that come, change and go while the array runs, as one shard sees it. The control task orders it, shard by
//! shard; [`VolumeFront`](crate::VolumeFront) is how whoever serves hosts learns of it.
//!
//! A new volume is known to every shard before the first front offers it. A volume that goes is withdrawn by every front,
//! then closed in every shard, then gone from the metadata, and only then forgotten: what was acknowledged is dropped
//! when nothing can bring it back.

use std::rc::Rc;

use tier0_pool::Volume as VolumeRecord;
use tier0_units::SlotRef;

use crate::Volume;
use crate::front::VolumeFront;
use crate::message::volumes::VolumesOrder;
use crate::shard::Shard;
use crate::volume_io::VolumeIo;

impl VolumesOrder {
    pub(crate) async fn carry_out(self, shard: &Rc<Shard>) {
        // Whoever ordered may be gone; then nobody needs the answer.
        match self {
            VolumesOrder::Add { number, pool, record, reply } => {
                shard.add_volume(number, pool, &record);
                let _ = reply.send(());
            }
            VolumesOrder::Offer { number, reply } => {
                let _ = reply.send(shard.offer_volume(number));
            }
            VolumesOrder::Resize { number, sectors, reply } => {
                shard.with_volume(number, async |volume| volume.sectors.set(sectors)).await;
                let _ = reply.send(());
            }
            VolumesOrder::Withdraw { number, force, reply } => {
                let _ = reply.send(shard.withdraw_volume(number, force).await);
            }
            VolumesOrder::Close { number, reply } => {
                shard.with_volume(number, async |volume| volume.gate.close().await).await;
                let _ = reply.send(());
            }
            VolumesOrder::Open { number, reply } => {
                shard.with_volume(number, async |volume| volume.gate.open()).await;
                let _ = reply.send(());
            }
            VolumesOrder::Forget { number, reply } => {
                let _ = reply.send(shard.forget_volume(number).await);
            }
        }
    }
}

impl Shard {
    /// Gives the volumes to `front`, those that come later too.
    pub(crate) fn set_front(self: &Rc<Self>, front: Rc<dyn VolumeFront>) -> Result<(), String> {
        *self.front.borrow_mut() = Some(front.clone());
        Volume::all(self).into_iter().try_for_each(|volume| front.offer(volume))
    }

    fn front(&self) -> Option<Rc<dyn VolumeFront>> {
        self.front.borrow().clone()
    }

    /// Does something to a volume, if it is still there.
    async fn with_volume(&self, number: u32, act: impl AsyncFnOnce(&VolumeIo)) {
        if let Ok(volume) = self.volume(number) {
            act(&volume).await;
        }
    }

    fn add_volume(&self, number: u32, pool: usize, record: &VolumeRecord) {
        let pool = self.pool(pool);
        pool.mapping.add_volume(record.number, record.thin);
        let volume = Rc::new(VolumeIo::new(pool, record));
        let mut volumes = self.volumes.borrow_mut();
        let place = number as usize;
        if volumes.len() <= place {
            volumes.resize_with(place + 1, || None);
        }
        volumes[place] = Some(volume);
    }

    fn offer_volume(self: &Rc<Self>, number: u32) -> Result<(), String> {
        match (self.front(), Volume::of(self, number)) {
            (Some(front), Some(volume)) => front.offer(volume),
            _ => Ok(()),
        }
    }

    async fn withdraw_volume(self: &Rc<Self>, number: u32, force: bool) -> Result<(), usize> {
        let (Some(front), Some(volume)) = (self.front(), Volume::of(self, number)) else { return Ok(()) };
        let users = front.users(volume.name());
        if users > 0 && !force {
            return Err(users);
        }
        front.withdraw(volume.name()).await;
        Ok(())
    }

    async fn forget_volume(&self, number: u32) -> Vec<SlotRef> {
        let volume = self.volumes.borrow_mut().get_mut(number as usize).and_then(Option::take);
        let Some(volume) = volume else { return Vec::new() };
        let pool = &volume.pool;
        pool.write_back.forget(|extent| extent.volume == volume.number).await;
        let slots = pool.mapping.remove_volume(volume.number).await;
        slots.iter().for_each(|slot| pool.slot_io.free(*slot));
        slots
    }
}
