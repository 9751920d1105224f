//! Volumes that come, change and go while the array runs, as one shard sees it. The control task orders it, shard by
//! shard; [`ExportRegistry`](crate::ExportRegistry) tells the servers of hosts of it.
//!
//! A new volume is known to every shard before the first registry offers it. A volume that goes is withdrawn by every registry,
//! then closed in every shard, then gone from the metadata, and only then forgotten: what was acknowledged is dropped
//! when nothing can bring it back.

use std::pin::pin;
use std::rc::Rc;

use futures_util::future::{Either, select, try_join_all};
use tier0_cache::WriteBack;
use tier0_control::message::command::CachingChange;
use tier0_control::message::volumes::{SharedExtents, VolumesCommand};
use tier0_pool::{Caching, Claim, Volume as VolumeRecord, WEIGHT_DEFAULT};
use tier0_units::{ExtentId, Nanos, SlotRef, WriteCache};
use tier0_volume::owner;
use tier0_world::IoError;

use crate::Volume;
use crate::export_registry::ExportRegistry;
use crate::pool_shard::TURN;
use crate::shard::Shard;
use crate::volume_io::{VolumeIo, settle};

/// How long what the log has of a volume may take to come into its place while hosts go on, or no host uses the volume.
const SETTLE_MAX: Nanos = Nanos::from_secs(20);
/// Extents that a closed volume discards before what the log has of them comes into its place.
const DISCARDS_AT_ONCE: usize = 4096;
/// How long what writes to a volume waits while it is held: a host's driver gives a request up after 30 s.
const HOLD_MAX: Nanos = Nanos::from_secs(10);
/// Slots of a volume that are forgotten before others have their turn.
const SLOTS_AT_ONCE: usize = 64;

impl Shard {
    /// Does what the control task orders of a volume.
    pub(crate) async fn carry_out_for_volume(self: &Rc<Self>, command: VolumesCommand) {
        // The control task may have stopped waiting; then the answer is dropped.
        match command {
            VolumesCommand::Add { number, pool, record, caching, reply } => {
                self.add_volume(number, pool, &record, caching);
                let _ = reply.send(());
            }
            VolumesCommand::Share { pool, extents, reply } => {
                self.share_extents(pool, &extents);
                let _ = reply.send(());
            }
            VolumesCommand::Settle { number, reply } => {
                let _ = reply.send(self.settle_volume(number).await);
            }
            VolumesCommand::Hold { number, reply } => {
                let _ = reply.send(self.hold_volume(number).await);
            }
            VolumesCommand::HoldFamily { numbers, reply } => {
                let _ = reply.send(self.hold_family(&numbers).await);
            }
            VolumesCommand::Regroup { volumes, reply } => {
                self.regroup(&volumes).await;
                let _ = reply.send(());
            }
            VolumesCommand::Offer { number, volatile, reply } => {
                let _ = reply.send(self.offer_volume(number, volatile));
            }
            VolumesCommand::Resize { number, sectors, reply } => {
                self.with_volume(number, async |volume| volume.sectors.set(sectors)).await;
                let _ = reply.send(());
            }
            VolumesCommand::DiscardTail { number, sectors, reply } => {
                let _ = reply.send(self.discard_tail(number, sectors).await);
            }
            VolumesCommand::SetBudget { number, budget, reply } => {
                self.with_volume(number, async |volume| volume.throttle.set(budget)).await;
                let _ = reply.send(());
            }
            VolumesCommand::SetWeight { number, weight, reply } => {
                self.with_volume(number, async |volume| volume.set_weight(weight)).await;
                let _ = reply.send(());
            }
            VolumesCommand::Rename { number, name, reply } => {
                let _ = reply.send(self.rename_volume(number, &name));
            }
            VolumesCommand::Withdraw { number, force, reply } => {
                let _ = reply.send(self.withdraw_volume(number, force).await);
            }
            VolumesCommand::Close { number, reply } => {
                self.with_volume(number, async |volume| volume.gate.close().await).await;
                let _ = reply.send(());
            }
            VolumesCommand::Open { number, reply } => {
                self.with_volume(number, async |volume| volume.open()).await;
                let _ = reply.send(());
            }
            VolumesCommand::Forget { number, reply } => {
                let _ = reply.send(self.forget_volume(number).await);
            }
        }
    }

    /// Gives the volumes to `exports`, those that come later too.
    pub(crate) fn set_exports(self: &Rc<Self>, exports: Rc<dyn ExportRegistry>) -> Result<(), String> {
        *self.exports.borrow_mut() = Some(exports.clone());
        Volume::all(self).into_iter().try_for_each(|volume| exports.offer(volume))
    }

    pub(crate) fn exports(&self) -> Option<Rc<dyn ExportRegistry>> {
        self.exports.borrow().clone()
    }

    /// Does something to a volume, if it is still there.
    async fn with_volume(&self, number: u32, act: impl AsyncFnOnce(&VolumeIo)) {
        if let Ok(volume) = self.volume(number) {
            act(&volume).await;
        }
    }

    fn add_volume(&self, number: u32, pool: usize, record: &VolumeRecord, caching: Caching) {
        let pool = self.pool(pool);
        pool.mapping.add_volume(record.number, record.claim());
        let volume = Rc::new(VolumeIo::new(pool, record, caching));
        let mut volumes = self.volumes.borrow_mut();
        let place = number as usize;
        if volumes.len() <= place {
            volumes.resize_with(place + 1, || None);
        }
        volumes[place] = Some(volume);
    }

    /// Those of the extents that are this shard's have these slots.
    fn share_extents(&self, pool: usize, shared: &SharedExtents) {
        let mapping = &self.pool(pool).mapping;
        let is_own = |index: u32| owner(shared.family, u64::from(index), self.peers.len()) == self.index;
        for (index, slot) in shared.extents.iter().filter(|(index, _)| is_own(*index)) {
            mapping.share(ExtentId { volume: shared.volume, index: *index }, *slot);
        }
    }

    /// Volumes of a pool use the caches so from now on; ends when what was acknowledged before is as stable as it is to be.
    pub(crate) async fn set_caching(&self, pool: usize, changes: &[CachingChange]) -> Result<(), IoError> {
        let pool = self.pool(pool);
        // Each lane once: the volumes of a group of sets share it.
        let mut settled: Vec<(&WriteBack, WriteCache)> = Vec::new();
        for change in changes {
            let Ok(volume) = self.volume(change.volume) else { continue };
            volume.set_caching(change.caching);
            let own = (&pool.lane_of_volume(volume.number).write_back, volume.mode());
            let is_known =
                |known: &&(&WriteBack, WriteCache)| std::ptr::eq(known.0, own.0) && known.1 == own.1;
            if change.settles && !settled.iter().any(|known| is_known(&known)) {
                settled.push(own);
            }
        }
        try_join_all(settled.into_iter().map(|(write_back, mode)| settle(write_back, mode))).await.map(|_| ())
    }

    async fn settle_volume(&self, number: u32) -> Result<(), IoError> {
        let write_back = self.volume(number)?.write_back();
        self.within(SETTLE_MAX, write_back.retire(write_back.logged())).await
    }

    /// What `work` ends with, or [`IoError::Timeout`] if that takes longer.
    async fn within(
        &self,
        limit: Nanos,
        work: impl Future<Output = Result<(), IoError>>,
    ) -> Result<(), IoError> {
        match select(pin!(work), pin!(self.world.sleep(limit))).await {
            Either::Left((result, _)) => result,
            Either::Right(_) => Err(IoError::Timeout),
        }
    }

    /// Holds a volume, unless that takes too long for the hosts that wait.
    async fn hold_volume(&self, number: u32) -> Result<(), IoError> {
        let volumes = [self.volume(number)?];
        self.hold_or_open(&volumes, hold(&volumes)).await
    }

    /// Holds a family, reads of it too, unless that takes too long for the hosts that wait.
    async fn hold_family(&self, numbers: &[u32]) -> Result<(), IoError> {
        let volumes = self.those_of(numbers.iter().copied());
        let held = async {
            hold(&volumes).await?;
            if let Some(volume) = volumes.first() {
                volume.write_back().let_log_go().await?;
            }
            for volume in &volumes {
                volume.gate.pause().await;
            }
            until_unread(&volumes).await;
            Ok(())
        };
        self.hold_or_open(&volumes, held).await
    }

    /// Waits until volumes are held; where that takes too long or fails, they are open again.
    async fn hold_or_open(
        &self,
        volumes: &[Rc<VolumeIo>],
        held: impl Future<Output = Result<(), IoError>>,
    ) -> Result<(), IoError> {
        let held = self.within(HOLD_MAX, held).await;
        if held.is_err() {
            volumes.iter().for_each(|volume| volume.open());
        }
        held
    }

    /// A family that is held is of another group from now on: what hosts ask passes that one's lane. All of it at once, for its
    /// volumes have slots together, and a lane knows of no read in another one.
    async fn regroup(&self, changes: &[(u32, Claim)]) {
        let volumes = self.those_of(changes.iter().map(|(number, _)| *number));
        // A scrub or a rebuild may have begun to read a slot since.
        until_unread(&volumes).await;
        for (number, claim) in changes {
            if let Ok(volume) = self.volume(*number) {
                volume.pool.mapping.add_volume(volume.number, *claim);
                volume.change_lane(claim.group);
            }
        }
    }

    /// Those of these volumes that are there.
    fn those_of(&self, numbers: impl Iterator<Item = u32>) -> Vec<Rc<VolumeIo>> {
        numbers.filter_map(|number| self.volume(number).ok()).collect()
    }

    fn offer_volume(self: &Rc<Self>, number: u32, volatile: bool) -> Result<(), String> {
        if let Ok(volume) = self.volume(number) {
            volume.tell_volatile(volatile);
            volume.throttle.resume();
        }
        match (self.exports(), Volume::of(self, number)) {
            (Some(exports), Some(volume)) => exports.offer(volume),
            _ => Ok(()),
        }
    }

    /// Closes a volume and discards what it holds here beyond its first `sectors`, unless its drives keep one of the steps
    /// waiting for too long. When it ends, the log has nothing of the volume, so no recovery finds any of that.
    ///
    /// # Errors
    /// Some of it cannot be discarded; other parts may be. Then the volume is open again.
    async fn discard_tail(&self, number: u32, sectors: u64) -> Result<(), IoError> {
        let volume = self.volume(number)?;
        let closing = async {
            volume.gate.close().await;
            // An extent on its way to another slot would keep a slot of zeros.
            volume.write_back().hold(volume.number).await
        };
        let discarded = async {
            self.within(SETTLE_MAX, closing).await?;
            for extents in volume.tail(sectors).chunks(DISCARDS_AT_ONCE) {
                for extent in extents {
                    self.within(SETTLE_MAX, volume.discard_behind(*extent, sectors)).await?;
                }
                self.within(SETTLE_MAX, volume.write_back().hold(volume.number)).await?;
            }
            Ok(())
        };
        let discarded = discarded.await;
        if discarded.is_err() {
            volume.open();
        }
        discarded
    }

    fn rename_volume(self: &Rc<Self>, number: u32, name: &str) -> Result<(), String> {
        let Some(volume) = Volume::of(self, number) else { return Ok(()) };
        let before = volume.name();
        volume.rename(name);
        self.exports().map_or(Ok(()), |exports| exports.rename(&before, volume))
    }

    async fn withdraw_volume(self: &Rc<Self>, number: u32, force: bool) -> Result<(), usize> {
        let (Some(exports), Some(volume)) = (self.exports(), Volume::of(self, number)) else { return Ok(()) };
        let users = exports.users(&volume.name());
        if users > 0 && !force {
            return Err(users);
        }
        // Its connections end when what they have asked is answered.
        volume.let_through();
        exports.withdraw(&volume.name()).await;
        Ok(())
    }

    async fn forget_volume(&self, number: u32) -> Vec<SlotRef> {
        let volume = self.volumes.borrow_mut().get_mut(number as usize).and_then(Option::take);
        let Some(volume) = volume else { return Vec::new() };
        let pool = &volume.pool;
        let write_back = volume.write_back();
        write_back.keep_in_place(volume.number);
        write_back.forget(|extent| extent.volume == volume.number).await;
        pool.heat.forget(volume.number);
        let slots = pool.mapping.remove_volume(volume.number).await;
        write_back.has_gone(volume.number);
        volume.set_weight(WEIGHT_DEFAULT);
        // A read of an extent that has left one of them may still be under way there.
        for (number, slot) in slots.iter().enumerate() {
            write_back.until_unread(*slot).await;
            // Each may have pages in memory.
            if (number + 1).is_multiple_of(SLOTS_AT_ONCE) {
                self.world.sleep(TURN).await;
            }
        }
        slots
    }
}

/// Lets wait what writes to volumes, and brings into place what was written before.
async fn hold(volumes: &[Rc<VolumeIo>]) -> Result<(), IoError> {
    for volume in volumes {
        volume.gate.hold().await;
    }
    for volume in volumes {
        volume.write_back().hold(volume.number).await?;
    }
    Ok(())
}

/// Waits until no slot of volumes of one lane is read there.
async fn until_unread(volumes: &[Rc<VolumeIo>]) {
    let Some(lane) = volumes.first().map(|volume| volume.write_back()) else { return };
    loop {
        let read = lane.slots_read();
        if !volumes.iter().any(|volume| volume.pool.mapping.has_any(volume.number, &read)) {
            return;
        }
        lane.until_fewer_are_read().await;
    }
}
