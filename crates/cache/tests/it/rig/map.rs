//! The map from extents to slots as a pool's metadata keep it: what is committed outlives a world.

use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, BTreeSet};
use std::future::pending;
use std::rc::Rc;

use tier0_cache::{LocalFuture, Mapping, Relocation};
use tier0_drive::sim::PowerSwitch;
use tier0_units::{ExtentId, Nanos, SlotRef};
use tier0_world::{IoError, World};

/// What is on the drives; clones share it.
#[derive(Clone)]
pub(crate) struct DurableMap(Rc<Durable>);

struct Durable {
    slots: u64,
    /// Allocation numbers are never used twice, even if a crash takes the allocation back.
    next_allocation: Cell<u64>,
    committed: RefCell<BTreeMap<ExtentId, SlotRef>>,
}

impl DurableMap {
    pub(crate) fn new(slots: u64) -> DurableMap {
        DurableMap(Rc::new(Durable { slots, next_allocation: Cell::new(1), committed: RefCell::default() }))
    }

    pub(crate) fn slot_count(&self) -> u64 {
        self.0.slots
    }

    /// Committed extents.
    pub(crate) fn committed(&self) -> BTreeMap<ExtentId, SlotRef> {
        self.0.committed.borrow().clone()
    }
}

/// The map in one world.
pub(crate) struct PoolMap {
    world: World,
    durable: DurableMap,
    switch: PowerSwitch,
    pending: RefCell<BTreeMap<ExtentId, SlotRef>>,
    /// Extents that are being allocated: two calls for one at once are a mistake.
    allocating: RefCell<BTreeSet<ExtentId>>,
    /// Slots that extents are to move to, or have left and are not given back yet.
    allocated: RefCell<BTreeSet<u64>>,
    /// Extents whose new slot is durable and not yet the one they have here: this is.
    moving: RefCell<BTreeMap<ExtentId, SlotRef>>,
    /// So many commits fail.
    pub(crate) failures: Cell<u32>,
}

impl PoolMap {
    pub(crate) fn new(world: &World, durable: &DurableMap, switch: &PowerSwitch) -> PoolMap {
        PoolMap {
            world: world.clone(),
            durable: durable.clone(),
            switch: switch.clone(),
            pending: RefCell::default(),
            allocating: RefCell::default(),
            allocated: RefCell::default(),
            moving: RefCell::default(),
            failures: Cell::default(),
        }
    }

    /// Slots that are neither committed nor handed out.
    pub(crate) fn free(&self) -> u64 {
        self.durable.0.slots - self.taken().len() as u64
    }

    fn taken(&self) -> BTreeSet<u64> {
        let committed = self.durable.0.committed.borrow();
        let (pending, moving, allocated) =
            (self.pending.borrow(), self.moving.borrow(), self.allocated.borrow());
        // A slot that an extent is leaving is its own until it is given back.
        let used = committed.values().chain(pending.values()).chain(moving.values()).map(|slot| slot.slot);
        used.chain(allocated.iter().copied()).collect()
    }

    fn free_slot(&self) -> Option<SlotRef> {
        let taken = self.taken();
        let slot = (0..self.durable.0.slots).find(|slot| !taken.contains(slot))?;
        let next = &self.durable.0.next_allocation;
        Some(SlotRef { slot, allocation: next.replace(next.get() + 1) })
    }

    /// A slot for an extent that is to move.
    pub(crate) fn allocate_one(&self) -> Option<SlotRef> {
        let slot = self.free_slot()?;
        self.allocated.borrow_mut().insert(slot.slot);
        Some(slot)
    }

    /// An extent has the slot of another one from now on, durably when this ends.
    pub(crate) async fn share(&self, of: ExtentId, by: ExtentId) -> Result<(), IoError> {
        self.step().await;
        if self.failures.get() > 0 {
            self.failures.set(self.failures.get() - 1);
            return Err(IoError::Medium);
        }
        let slot = self.durable.0.committed.borrow().get(&of).copied().expect("it has a slot durably");
        assert_eq!(self.durable.0.committed.borrow_mut().insert(by, slot), None, "{by} had none");
        self.step().await;
        Ok(())
    }

    /// Whether no extent has a slot any more: it is allocated until it is given back.
    fn is_left(&self, slot: SlotRef) -> bool {
        let (committed, moving) = (self.durable.0.committed.borrow(), self.moving.borrow());
        let is_left = committed.values().chain(moving.values()).all(|other| *other != slot);
        if is_left {
            self.allocated.borrow_mut().insert(slot.slot);
        }
        is_left
    }

    /// A step that takes time, and that never ends once the power is off.
    async fn step(&self) {
        self.world.sleep(Nanos::from_micros(30)).await;
        if self.switch.is_off() {
            pending::<()>().await;
        }
    }
}

impl Mapping for PoolMap {
    fn slot(&self, extent: ExtentId) -> Option<SlotRef> {
        let handed_out = self.pending.borrow().get(&extent).copied();
        let handed_out = handed_out.or_else(|| self.moving.borrow().get(&extent).copied());
        handed_out.or_else(|| self.durable.0.committed.borrow().get(&extent).copied())
    }

    fn is_shared(&self, slot: SlotRef) -> bool {
        let committed = self.durable.0.committed.borrow();
        let durable = committed.values().filter(|other| **other == slot).count();
        let leaving = self.moving.borrow().values().filter(|other| **other == slot).count();
        durable + leaving > 1
    }

    fn owners(&self, extent: ExtentId) -> Vec<ExtentId> {
        let (slot, committed) = (self.slot(extent), self.durable.0.committed.borrow());
        committed.keys().copied().filter(|other| self.slot(*other) == slot).collect()
    }

    fn allocate_copy(&self, _: ExtentId) -> LocalFuture<'_, Result<SlotRef, IoError>> {
        Box::pin(async move {
            self.step().await;
            self.allocate_one().ok_or(IoError::NoSpace)
        })
    }

    fn give_back(&self, slot: SlotRef) {
        assert!(self.allocated.borrow_mut().remove(&slot.slot), "{slot:?} was allocated");
    }

    fn allocate(&self, extent: ExtentId) -> LocalFuture<'_, Result<SlotRef, IoError>> {
        Box::pin(async move {
            assert_eq!(self.slot(extent), None, "{extent} has a slot");
            assert!(self.allocating.borrow_mut().insert(extent), "{extent} is being allocated twice");
            self.step().await;
            assert!(self.allocating.borrow_mut().remove(&extent));
            let slot = self.free_slot().ok_or(IoError::NoSpace)?;
            self.pending.borrow_mut().insert(extent, slot);
            Ok(slot)
        })
    }

    fn commit(
        &self,
        mapped: Vec<(ExtentId, SlotRef)>,
        unmapped: Vec<(ExtentId, SlotRef)>,
    ) -> LocalFuture<'_, Result<(), IoError>> {
        Box::pin(async move {
            self.step().await;
            if self.failures.get() > 0 {
                self.failures.set(self.failures.get() - 1);
                return Err(IoError::Medium);
            }
            {
                let mut committed = self.durable.0.committed.borrow_mut();
                for (extent, slot) in mapped {
                    assert_eq!(
                        self.pending.borrow_mut().remove(&extent),
                        Some(slot),
                        "{extent} was handed out"
                    );
                    assert_eq!(committed.insert(extent, slot), None, "{extent} had no slot");
                }
                for (extent, slot) in unmapped {
                    let handed_out = self.pending.borrow_mut().remove(&extent);
                    assert_eq!(
                        handed_out.or_else(|| committed.remove(&extent)),
                        Some(slot),
                        "{extent} has the slot"
                    );
                }
            }
            self.step().await;
            Ok(())
        })
    }

    fn commit_move(&self, relocation: Relocation) -> LocalFuture<'_, Result<Vec<ExtentId>, IoError>> {
        Box::pin(async move {
            self.step().await;
            if self.failures.get() > 0 {
                self.failures.set(self.failures.get() - 1);
                return Err(IoError::Medium);
            }
            let Relocation { extents, from, to } = relocation;
            for extent in &extents {
                let had = self.durable.0.committed.borrow_mut().insert(*extent, to);
                assert_eq!(had, Some(from), "{extent} has the slot durably");
                self.moving.borrow_mut().insert(*extent, from);
            }
            self.step().await;
            Ok(extents)
        })
    }

    fn commit_leave(&self, extent: ExtentId, slot: SlotRef) -> LocalFuture<'_, Result<(), IoError>> {
        Box::pin(async move {
            self.step().await;
            if self.failures.get() > 0 {
                self.failures.set(self.failures.get() - 1);
                return Err(IoError::Medium);
            }
            let had = self.durable.0.committed.borrow_mut().remove(&extent);
            assert_eq!(had, Some(slot), "{extent} has the slot durably");
            self.moving.borrow_mut().insert(extent, slot);
            self.step().await;
            Ok(())
        })
    }

    fn has_left(&self, extent: ExtentId, slot: SlotRef) -> bool {
        assert_eq!(self.moving.borrow_mut().remove(&extent), Some(slot), "{extent} was leaving");
        self.is_left(slot)
    }

    fn moved(&self, relocation: &Relocation) -> bool {
        let Relocation { extents, from, to } = relocation;
        for extent in extents {
            assert_eq!(self.moving.borrow_mut().remove(extent), Some(*from), "{extent} was moving");
        }
        assert!(self.allocated.borrow_mut().remove(&to.slot), "{to:?} was allocated");
        self.is_left(*from)
    }
}
