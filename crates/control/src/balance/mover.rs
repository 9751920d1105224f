//! Extents on their way to other slots of their pool, in any group of sets: each by itself, a few at once, the more urgent first.
//!
//! Who wants extents moved chooses which and to which slot. One move is the business of the extent's shard and of the write
//! cache there. While columns are rebuilt nothing moves.

use std::cell::Cell;
use std::rc::Rc;

use tier0_pool::{Claim, MetaRecord, Volume};
use tier0_units::{ExtentId, SlotRef};
use tier0_volume::owner;
use tier0_world::sync::{Notify, oneshot};
use tier0_world::{IoError, Task};

use super::{Balance, BalancePool};
use crate::ShardRequest;
use crate::message::command::{Move, Pacing, ShardCommand};

/// Extents of a pool that are on their way at once.
pub(crate) const MOVES_AT_ONCE: u32 = 32;

/// Why extents move, the most urgent first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Purpose {
    /// They are to lie in another group.
    Placement,
    /// They are to lie in their volume's group, which they left before, or to which it has migrated.
    Return,
    /// They are hot and lie on disks, or are cold and lie on flash.
    Tier,
    /// Sets are to hold the same.
    Balance,
}

const PURPOSES: usize = 4;

/// How many extents of a pool are on their way, and how many moves wait.
#[derive(Default)]
pub(crate) struct Mover {
    under_way: Cell<u32>,
    /// By purpose.
    waiting: [Cell<u32>; PURPOSES],
    changed: Notify,
    /// Extents that have moved to another group since the start.
    placed: Cell<u64>,
}

/// How a move has begun.
pub(crate) enum Begun {
    /// It is under way; the task says whether it has moved.
    UnderWay(Task<bool>),
    /// The extent has no slot, or one in that group, or shares it with another that comes before it.
    NotNeeded,
    /// The group has no free slot.
    NoRoom,
}

/// The right to move one extent.
pub(crate) struct Permit(Rc<Mover>);

impl Drop for Permit {
    fn drop(&mut self) {
        self.0.under_way.set(self.0.under_way.get() - 1);
        self.0.changed.notify_all();
    }
}

impl Mover {
    /// Waits for the right to move one more extent.
    pub(crate) async fn enter(self: &Rc<Self>, purpose: Purpose) -> Permit {
        let rank = purpose as usize;
        let more_urgent = || self.waiting[..rank].iter().any(|count| count.get() > 0);
        self.waiting[rank].set(self.waiting[rank].get() + 1);
        while self.under_way.get() >= MOVES_AT_ONCE || more_urgent() {
            self.changed.wait().await;
        }
        self.waiting[rank].set(self.waiting[rank].get() - 1);
        self.under_way.set(self.under_way.get() + 1);
        self.changed.notify_all();
        Permit(self.clone())
    }
}

impl Balance {
    /// Moves an extent to the slot that was allocated for it, as fast as `pacing` says; whether it has moved. If not, the slot is
    /// given back.
    pub(crate) async fn move_extent(&self, number: usize, one: Move, pacing: Pacing) -> bool {
        let core = self.core(number);
        // A column's rebuild ends when no extent lacks it, so none must be on its way into a set meanwhile.
        let _turn = core.extents_or_rebuild.acquire(1).await;
        if self.repair.is_rebuilding(number) {
            core.restripe.pass_again();
            self.space.core(number).give_back(one.to);
            return false;
        }
        let shard = owner(one.family, u64::from(one.extent.index), self.shards.len());
        let (reply, answer) = oneshot::channel();
        let command = ShardCommand::MoveExtent { pool: number, one, pacing, reply };
        self.shards[shard].send(ShardRequest::Command(command));
        answer.await.unwrap_or(false)
    }

    /// Moves extents of a volume, so many from a first one on and again from its beginning, to a group of its pool.
    ///
    /// # Errors
    /// [`IoError::OutOfRange`] where there is no such volume or group; the metadata cannot be written.
    pub(crate) async fn move_extents(
        self: &Rc<Self>,
        number: usize,
        volume: &Volume,
        (first, count): (u32, u32),
        group: u32,
    ) -> Result<u64, IoError> {
        let (all, groups) = {
            let state = self.core(number).metadata.state();
            (state.extents_of(volume.sectors) as u32, state.groups().len())
        };
        if group as usize >= groups {
            return Err(IoError::OutOfRange);
        }
        let extent = |place: u32| ExtentId { volume: volume.number, index: (first % all + place) % all };
        self.place_extents(number, (0..count.min(all)).map(extent), group).await
    }

    /// How many extents of a pool have moved to another group since the start.
    pub(crate) fn extents_placed(&self, pool: usize) -> u64 {
        self.core(pool).mover.placed.get()
    }

    /// Moves those of these extents that have slots to a group of their pool, as far as it has room for them; how many have
    /// moved. Those that a batch is on, or that are rebuilt meanwhile, stay where they are.
    ///
    /// # Errors
    /// The metadata cannot be written.
    async fn place_extents(
        self: &Rc<Self>,
        number: usize,
        extents: impl IntoIterator<Item = ExtentId>,
        group: u32,
    ) -> Result<u64, IoError> {
        self.mix_groups(number).await?;
        let pacing = Pacing::Yielding { rate: None };
        let mut under_way = Vec::new();
        for extent in extents {
            match self.begin_placing(number, extent, group, (Purpose::Placement, pacing)).await {
                Begun::UnderWay(task) => under_way.push(task),
                Begun::NotNeeded => {}
                Begun::NoRoom => break,
            }
        }
        Ok(count_moved(under_way).await)
    }

    /// Begins to move an extent to a group of its pool, of which the metadata know that its extents are mixed.
    pub(crate) async fn begin_placing(
        self: &Rc<Self>,
        number: usize,
        extent: ExtentId,
        group: u32,
        (purpose, pacing): (Purpose, Pacing),
    ) -> Begun {
        let core = self.core(number);
        let permit = core.mover.enter(purpose).await;
        let Some(from) = core.slot_elsewhere(extent, group) else { return Begun::NotNeeded };
        // What is reserved for an extent that comes home is its own; any other takes what is not reserved.
        let claim = Claim { group, thin: !core.is_reserved_in(extent, group) };
        let space = self.space.core(number);
        let to = match purpose {
            Purpose::Return => space.allocate_for_return(claim).await,
            _ => space.allocate_slots(claim, None).await.pop(),
        };
        let Some(to) = to else { return Begun::NoRoom };
        let family = core.metadata.state().family_of(extent.volume);
        let balance = self.clone();
        Begun::UnderWay(self.world.spawn(async move {
            let _permit = permit;
            let has_moved = balance.move_extent(number, Move { extent, family, from, to }, pacing).await;
            balance.core(number).mover.placed.update(|placed| placed + u64::from(has_moved));
            has_moved
        }))
    }

    /// Extents of a pool may lie in other groups than their volume's from now on.
    ///
    /// # Errors
    /// The metadata cannot be written.
    pub(crate) async fn mix_groups(&self, number: usize) -> Result<(), IoError> {
        let core = self.core(number);
        if core.metadata.state().is_mixed() {
            return Ok(());
        }
        core.commit(vec![MetaRecord::GroupsMixed {}]).await
    }
}

impl BalancePool {
    /// The slot of an extent, if it has one that is not of this group. Of several extents that have it, it is the first's.
    fn slot_elsewhere(&self, extent: ExtentId, group: u32) -> Option<SlotRef> {
        let state = self.metadata.state();
        let slot = state.slot(extent)?;
        let is_first = state.owners(slot.slot).next() == Some(extent);
        (is_first && self.shape.slots.group_of(slot.slot) != group).then_some(slot)
    }

    /// Whether a slot of this group is reserved for an extent that lies elsewhere.
    fn is_reserved_in(&self, extent: ExtentId, group: u32) -> bool {
        let state = self.metadata.state();
        state.volume(extent.volume).is_some_and(|volume| !volume.thin && volume.group == group)
    }
}

/// Waits for moves; how many extents have moved.
pub(crate) async fn count_moved(moves: Vec<impl Future<Output = bool>>) -> u64 {
    let mut count = 0;
    for moved in moves {
        count += u64::from(moved.await);
    }
    count
}

#[cfg(test)]
mod tests {
    use std::cell::RefCell;

    use tier0_units::Nanos;
    use tier0_world::{PayloadWidth, VirtualRuntime};

    use super::*;

    #[test]
    fn what_is_more_urgent_goes_first() {
        let runtime = VirtualRuntime::new(1, PayloadWidth::NONE);
        let world = runtime.world().clone();
        runtime.run(async move {
            let mover = Rc::new(Mover::default());
            let mut held = Vec::new();
            for _ in 0..MOVES_AT_ONCE {
                held.push(mover.enter(Purpose::Balance).await);
            }
            let order = Rc::new(RefCell::new(Vec::new()));
            for purpose in [Purpose::Balance, Purpose::Placement, Purpose::Balance, Purpose::Placement] {
                let (mover, order) = (mover.clone(), order.clone());
                let enter = async move {
                    let permit = mover.enter(purpose).await;
                    order.borrow_mut().push(purpose);
                    drop(permit);
                };
                world.spawn(enter).detach();
            }
            world.sleep(Nanos::from_millis(1)).await;
            assert!(order.borrow().is_empty(), "as many are on their way as may be");
            held.pop();
            world.sleep(Nanos::from_millis(1)).await;
            use Purpose::{Balance, Placement};
            assert_eq!(*order.borrow(), [Placement, Placement, Balance, Balance]);
        });
    }
}
