//! Which slots the extents of one shard have, and the shard's slot reserves.
//!
//! Invariants: an extent that is being unmapped has no slot any more, so a write that arrives meanwhile allocates anew;
//! a slot goes back to the pool only when its unmapping is stable (the control task sees to that), and when no extent has it
//! here: of several that have it, those that leave it are counted out when that is stable. A thick volume's
//! space is a reservation: its extents, too, take slots when they are written, but of a slot reserve that thin volumes cannot
//! use up.

use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;

use tier0_control::message::control::{Commit, ControlMessage, MovedNote, Replenish};
use tier0_plan::PoolShape;
use tier0_units::{ExtentId, SlotRef};
use tier0_world::IoError;
use tier0_world::sync::{MailSender, Notify, oneshot};

use tier0_cache::{LocalFuture, Mapping, Relocation};
use tier0_pool::{Claim, ExtentMap};

/// The extents of one pool in one shard.
pub(crate) struct ShardMapping {
    pool: usize,
    control: MailSender<ControlMessage>,
    shape: PoolShape,
    /// By the volumes' numbers in the pool.
    extents: RefCell<BTreeMap<u32, ExtentMap>>,
    /// Slots that several extents have, and how many.
    shared: RefCell<BTreeMap<u64, u32>>,
    /// Slots to which extents are to be copied.
    copy_slots: RefCell<BTreeMap<ExtentId, SlotRef>>,
    slot_reserves: RefCell<BTreeMap<Claim, Rc<SlotReserve>>>,
    /// By the volumes' numbers in the pool.
    claims: RefCell<BTreeMap<u32, Claim>>,
    /// Slots that background work has pinned, and how often: they are not given back meanwhile.
    pinned: RefCell<BTreeMap<u64, u32>>,
    unpinned: Notify,
}

/// A slot that background work has pinned.
pub(crate) struct Pinned<'a> {
    mapping: &'a ShardMapping,
    slot: u64,
}

impl Drop for Pinned<'_> {
    fn drop(&mut self) {
        let mut pinned = self.mapping.pinned.borrow_mut();
        let count = pinned.get_mut(&self.slot).expect("it is pinned");
        *count -= 1;
        if *count == 0 {
            pinned.remove(&self.slot);
            drop(pinned);
            self.mapping.unpinned.notify_all();
        }
    }
}

/// The slot reserve of a shard: free slots that the control task has allocated to it for one claim and that no extent has yet.
/// It is neither the space that a pool keeps back from thin volumes ([`tier0_pool::Reserve`]) nor the slots that thick volumes
/// have reserved, which are counts in the metadata. A slot reserve for a thick claim holds slots of the latter.
#[derive(Default)]
struct SlotReserve {
    /// Taken from the end.
    slots: RefCell<Vec<SlotRef>>,
    replenishing: Cell<bool>,
    replenished: Notify,
}

impl ShardMapping {
    /// A shard without extents, and what volumes may claim.
    pub(crate) fn new(
        pool: usize,
        control: MailSender<ControlMessage>,
        shape: PoolShape,
        claims: impl IntoIterator<Item = (u32, Claim)>,
    ) -> Rc<ShardMapping> {
        Rc::new(ShardMapping {
            pool,
            control,
            shape,
            extents: RefCell::default(),
            shared: RefCell::default(),
            copy_slots: RefCell::default(),
            slot_reserves: RefCell::default(),
            claims: RefCell::new(claims.into_iter().collect()),
            pinned: RefCell::default(),
            unpinned: Notify::new(),
        })
    }

    /// An extent has this slot, as the pool's metadata have it, perhaps together with others, each of which is learnt.
    pub(crate) fn learn(&self, extent: ExtentId, slot: SlotRef, is_shared: bool) {
        self.map(extent, slot);
        if is_shared {
            *self.shared.borrow_mut().entry(slot.slot).or_default() += 1;
        }
    }

    /// An extent of a new volume has the slot of another one of its family from now on.
    pub(crate) fn share(&self, extent: ExtentId, slot: SlotRef) {
        self.map(extent, slot);
        *self.shared.borrow_mut().entry(slot.slot).or_insert(1) += 1;
    }

    /// So many extents have left a slot, and that is stable; whether none has it any more.
    fn leave(&self, slot: SlotRef, count: usize) -> bool {
        let mut shared = self.shared.borrow_mut();
        let Some(left) = shared.get_mut(&slot.slot) else { return true };
        *left -= count as u32;
        let left = *left;
        if left <= 1 {
            shared.remove(&slot.slot);
        }
        left == 0
    }

    /// Pins a slot, so that it is not given back; `None` if the extent neither has it nor is to be copied there.
    pub(crate) fn pin(&self, extent: ExtentId, slot: SlotRef) -> Option<Pinned<'_>> {
        self.is_of(extent, slot).then(|| {
            *self.pinned.borrow_mut().entry(slot.slot).or_default() += 1;
            Pinned { mapping: self, slot: slot.slot }
        })
    }

    /// Pins a slot for any of the extents that have it, this one if it does, and says which; `None` if no extent has it.
    pub(crate) fn pin_for_any(&self, extent: ExtentId, slot: SlotRef) -> Option<(ExtentId, Pinned<'_>)> {
        let has_it = |owner: &ExtentId| self.is_of(*owner, slot);
        let others = || {
            let volumes: Vec<u32> = self.extents.borrow().keys().copied().collect();
            volumes.into_iter().map(|volume| ExtentId { volume, ..extent }).find(has_it)
        };
        let owner = Some(extent).filter(has_it).or_else(others)?;
        self.pin(owner, slot).map(|pinned| (owner, pinned))
    }

    fn is_of(&self, extent: ExtentId, slot: SlotRef) -> bool {
        self.slot_of(extent) == Some(slot) || self.copy_slots.borrow().get(&extent) == Some(&slot)
    }

    /// Sends something to the control task.
    pub(crate) fn tell(&self, message: ControlMessage) {
        self.control.send(message);
    }

    /// The slot of an extent, if it has one.
    pub(crate) fn slot_of(&self, extent: ExtentId) -> Option<SlotRef> {
        self.extents.borrow().get(&extent.volume)?.get(extent.index)
    }

    fn map(&self, extent: ExtentId, slot: SlotRef) {
        self.extents.borrow_mut().entry(extent.volume).or_default().insert(extent.index, slot);
    }

    fn unmap(&self, extent: ExtentId) {
        if let Some(map) = self.extents.borrow_mut().get_mut(&extent.volume) {
            map.remove(extent.index);
        }
    }

    /// The extents that have slots, in order.
    pub(crate) fn extents(&self) -> Vec<(ExtentId, SlotRef)> {
        let all = self.extents.borrow();
        let of_volume = |(volume, map): (&u32, &ExtentMap)| {
            let id = |(index, slot)| (ExtentId { volume: *volume, index }, slot);
            map.iter().map(id).collect::<Vec<_>>()
        };
        all.iter().flat_map(of_volume).collect()
    }

    /// The extents of a volume from the one of number `first` on that have slots, by their numbers.
    pub(crate) fn indices_from(&self, volume: u32, first: u64) -> Vec<u32> {
        let Ok(first) = u32::try_from(first) else { return Vec::new() };
        let all = self.extents.borrow();
        all.get(&volume).into_iter().flat_map(|map| map.iter_from(first)).map(|(index, _)| index).collect()
    }

    /// Whether an extent of a volume has one of these slots.
    pub(crate) fn has_any(&self, volume: u32, slots: &[u64]) -> bool {
        let all = self.extents.borrow();
        let mut own = all.get(&volume).into_iter().flat_map(|map| map.iter_from(0));
        !slots.is_empty() && own.any(|(_, slot)| slots.contains(&slot.slot))
    }

    /// Up to so many extents of a volume that have slots, from the one of number `first` on, with their slots.
    pub(crate) fn extents_from(&self, volume: u32, first: u32, most: usize) -> Vec<(u32, SlotRef)> {
        let all = self.extents.borrow();
        all.get(&volume).into_iter().flat_map(|map| map.iter_from(first)).take(most).collect()
    }

    /// Slots that hold something: those that extents have, and those to which some are being copied.
    pub(crate) fn slots_in_use(&self) -> Vec<(ExtentId, SlotRef)> {
        let mut slots = self.slots();
        slots.extend(self.copy_slots.borrow().iter().map(|(extent, slot)| (*extent, *slot)));
        slots
    }

    /// The slots that extents have, each once, with one of the extents that have it.
    pub(crate) fn slots(&self) -> Vec<(ExtentId, SlotRef)> {
        let mut seen = BTreeSet::new();
        let is_first = |(_, slot): &(ExtentId, SlotRef)| !self.is_shared(*slot) || seen.insert(slot.slot);
        self.extents().into_iter().filter(is_first).collect()
    }

    /// The group of sets that a volume's extents lie on; the first of one that is gone.
    pub(crate) fn group_of(&self, volume: u32) -> u32 {
        self.claims.borrow().get(&volume).map_or(0, |claim| claim.group)
    }

    /// A volume was created.
    pub(crate) fn add_volume(&self, volume: u32, claim: Claim) {
        self.claims.borrow_mut().insert(volume, claim);
    }

    /// A volume is gone, hosts no longer write to it, and nothing of it is dirty: the slots that its extents had and no other
    /// has. Ends when none of them is pinned.
    pub(crate) async fn remove_volume(&self, volume: u32) -> Vec<SlotRef> {
        self.claims.borrow_mut().remove(&volume);
        let map = self.extents.borrow_mut().remove(&volume).unwrap_or_default();
        let gone: Vec<SlotRef> =
            map.iter().map(|(_, slot)| slot).filter(|slot| self.leave(*slot, 1)).collect();
        self.until_unpinned(&gone).await;
        gone
    }

    /// Waits until none of these slots is pinned; their extents have them no more, so none is pinned anew.
    pub(crate) async fn until_unpinned(&self, slots: &[SlotRef]) {
        while slots.iter().any(|slot| self.pinned.borrow().contains_key(&slot.slot)) {
            self.unpinned.wait().await;
        }
    }

    /// A slot was allocated for an extent that moves.
    pub(crate) fn declare_fresh(&self, slot: SlotRef) {
        self.shape.declare_fresh(slot.slot);
    }

    /// By group: how many slots the slot reserve for thin volumes has.
    pub(crate) fn thin_slot_reserve(&self) -> BTreeMap<u32, u64> {
        let slot_reserves = self.slot_reserves.borrow();
        let thin = slot_reserves.iter().filter(|(claim, _)| claim.thin);
        thin.map(|(claim, reserve)| (claim.group, reserve.slots.borrow().len() as u64)).collect()
    }

    /// Takes all slots out of the slot reserves.
    pub(crate) fn return_slot_reserves(&self) -> Vec<SlotRef> {
        let slot_reserves = self.slot_reserves.borrow();
        slot_reserves.values().flat_map(|reserve| std::mem::take(&mut *reserve.slots.borrow_mut())).collect()
    }

    /// The slot of an extent, which gets one if it has none. The mapping is not stable before it is committed.
    ///
    /// # Errors
    /// [`IoError::NoSpace`] when the pool has no slot left.
    pub(crate) async fn slot_or_new(&self, extent: ExtentId) -> Result<SlotRef, IoError> {
        let (claim, reserve) = self.slot_reserve_for(extent);
        loop {
            if let Some(slot) = self.slot_of(extent) {
                return Ok(slot);
            }
            if let Some(slot) = self.take(&reserve) {
                self.map(extent, slot);
                return Ok(slot);
            }
            self.replenish(&reserve, claim).await?;
        }
    }

    /// A free slot for the copy of an extent.
    async fn another_slot(&self, extent: ExtentId) -> Result<SlotRef, IoError> {
        let (claim, reserve) = self.slot_reserve_for(extent);
        loop {
            if let Some(slot) = self.take(&reserve) {
                self.copy_slots.borrow_mut().insert(extent, slot);
                return Ok(slot);
            }
            self.replenish(&reserve, claim).await?;
        }
    }

    /// What an extent may claim, and the slot reserve for it.
    fn slot_reserve_for(&self, extent: ExtentId) -> (Claim, Rc<SlotReserve>) {
        // Of a volume that is gone nothing is reserved any more.
        let unreserved = Claim { group: 0, thin: true };
        let claim = self.claims.borrow().get(&extent.volume).copied().unwrap_or(unreserved);
        (claim, self.slot_reserves.borrow_mut().entry(claim).or_default().clone())
    }

    fn take(&self, reserve: &SlotReserve) -> Option<SlotRef> {
        let slot = reserve.slots.borrow_mut().pop()?;
        self.shape.declare_fresh(slot.slot);
        Some(slot)
    }

    /// Asks for more slots; one asks for all who wait.
    async fn replenish(&self, reserve: &SlotReserve, claim: Claim) -> Result<(), IoError> {
        if reserve.replenishing.replace(true) {
            reserve.replenished.wait().await;
            return Ok(());
        }
        let (reply, answer) = oneshot::channel();
        self.control.send(ControlMessage::Replenish(Replenish { pool: self.pool, claim, reply }));
        let slots = answer.await;
        reserve.replenishing.set(false);
        reserve.replenished.notify_all();
        let mut slots = slots.map_err(|_| IoError::Gone)?;
        if slots.is_empty() {
            return Err(IoError::NoSpace);
        }
        // Low slots are to be taken first.
        slots.reverse();
        reserve.slots.borrow_mut().splice(0..0, slots);
        Ok(())
    }

    /// Makes mappings and unmappings stable, in this order. An extent that has another slot by now is not unmapped.
    pub(crate) async fn make_stable(
        &self,
        mapped: Vec<(ExtentId, SlotRef)>,
        mut unmapped: Vec<(ExtentId, SlotRef)>,
    ) -> Result<(), IoError> {
        unmapped.retain(|(extent, slot)| self.slot_of(*extent) == Some(*slot));
        debug_assert!(
            unmapped.iter().all(|(_, slot)| !self.is_shared(*slot)),
            "a batch has emptied a shared slot"
        );
        for (extent, _) in &unmapped {
            self.unmap(*extent);
        }
        // No request pins them any more.
        self.until_unpinned(&unmapped.iter().map(|(_, slot)| *slot).collect::<Vec<_>>()).await;
        if mapped.is_empty() && unmapped.is_empty() {
            return Ok(());
        }
        let (reply, answer) = oneshot::channel();
        let taken_back = unmapped.clone();
        self.control.send(ControlMessage::Commit(Commit { pool: self.pool, mapped, unmapped, reply }));
        let result = answer.await.unwrap_or(Err(IoError::Gone));
        if result.is_err() {
            // Nothing has changed; an extent that got a slot meanwhile keeps the new one.
            for (extent, slot) in taken_back {
                if self.slot_of(extent).is_none() {
                    self.map(extent, slot);
                }
            }
        }
        result
    }
}

impl Mapping for ShardMapping {
    fn slot(&self, extent: ExtentId) -> Option<SlotRef> {
        self.slot_of(extent)
    }

    fn is_shared(&self, slot: SlotRef) -> bool {
        let shared = self.shared.borrow();
        !shared.is_empty() && shared.contains_key(&slot.slot)
    }

    fn owners(&self, extent: ExtentId) -> Vec<ExtentId> {
        match self.slot_of(extent) {
            Some(slot) if self.is_shared(slot) => {
                let all = self.extents.borrow();
                let own = all.iter().filter(|(_, map)| map.get(extent.index) == Some(slot));
                own.map(|(volume, _)| ExtentId { volume: *volume, index: extent.index }).collect()
            }
            Some(_) => vec![extent],
            None => Vec::new(),
        }
    }

    fn allocate_copy(&self, extent: ExtentId) -> LocalFuture<'_, Result<SlotRef, IoError>> {
        Box::pin(self.another_slot(extent))
    }

    fn give_back(&self, slot: SlotRef) {
        self.copy_slots.borrow_mut().retain(|_, copy| *copy != slot);
        self.control.send(ControlMessage::GiveBack { pool: self.pool, slot });
    }

    fn allocate(&self, extent: ExtentId) -> LocalFuture<'_, Result<SlotRef, IoError>> {
        Box::pin(self.slot_or_new(extent))
    }

    fn commit(
        &self,
        mapped: Vec<(ExtentId, SlotRef)>,
        unmapped: Vec<(ExtentId, SlotRef)>,
    ) -> LocalFuture<'_, Result<(), IoError>> {
        Box::pin(self.make_stable(mapped, unmapped))
    }

    fn commit_move(&self, relocation: Relocation) -> LocalFuture<'_, Result<Vec<ExtentId>, IoError>> {
        let Relocation { extents, from, to } = relocation;
        let (reply, answer) = oneshot::channel();
        let to = Some(to);
        self.control.send(ControlMessage::ExtentsMoved(MovedNote {
            pool: self.pool,
            extents,
            from,
            to,
            reply,
        }));
        Box::pin(async move { answer.await.unwrap_or(Err(IoError::Gone)) })
    }

    fn commit_leave(&self, extent: ExtentId, slot: SlotRef) -> LocalFuture<'_, Result<(), IoError>> {
        let (reply, answer) = oneshot::channel();
        let note = MovedNote { pool: self.pool, extents: vec![extent], from: slot, to: None, reply };
        self.control.send(ControlMessage::ExtentsMoved(note));
        Box::pin(async move { answer.await.unwrap_or(Err(IoError::Gone)).map(|_| ()) })
    }

    fn has_left(&self, extent: ExtentId, slot: SlotRef) -> bool {
        self.unmap(extent);
        self.leave(slot, 1)
    }

    fn moved(&self, relocation: &Relocation) -> bool {
        let Relocation { extents, from, to } = relocation;
        for extent in extents {
            self.map(*extent, *to);
        }
        self.copy_slots.borrow_mut().retain(|_, copy| copy != to);
        if extents.len() > 1 {
            self.shared.borrow_mut().insert(to.slot, extents.len() as u32);
        }
        self.leave(*from, extents.len())
    }
}
