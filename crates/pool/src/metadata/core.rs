//! The metadata of an open pool: what all its parts share.

use std::cell::{Cell, Ref, RefCell};
use std::collections::VecDeque;
use std::rc::Rc;

use tier0_drive::DriveHandle;
use tier0_journal::Ring;
use tier0_world::sync::{Notify, Semaphore};
use tier0_world::{IoError, World};
use uuid::Uuid;

use super::allocation::Allocator;
use super::commit::Waiting;
use super::labels::Labels;
use super::pages::Pages;
use super::recognise::Taken;
use crate::PoolError;
use crate::checkpoint::PageTable;
use crate::state::PoolState;

/// Told of every member that is lost, once it is known to the superblocks. It is called in the middle of the metadata's
/// work, so it must not wait and must not commit; it may start tasks that do.
pub type LossHook = Rc<dyn Fn(u32, IoError)>;

/// Told of the state whenever sets have joined it, before a shard can get their slots. It is called in the middle of
/// the metadata's work: it must not ask the metadata for anything.
pub type SetsHook = Rc<dyn Fn(&PoolState)>;
/// Who gets slots that are free, and that is stable; they come back by [`Metadata::return_slots`].
pub type FreedHook = Box<dyn Fn(&Metadata, Vec<u64>)>;

/// The metadata of an open pool; clones are the same.
#[derive(Clone)]
pub struct Metadata(pub(super) Rc<Core>);

pub(super) struct Core {
    pub(super) world: World,
    pub(super) state: RefCell<PoolState>,
    pub(super) labels: RefCell<Labels>,
    pub(super) taken: Taken,
    /// By member; none where it is lost or was never there.
    pub(super) drives: RefCell<Vec<Option<DriveHandle>>>,
    /// Superblocks are written by one at a time.
    pub(super) label_turn: Semaphore,
    pub(super) journal: RefCell<Journal>,
    pub(super) pages: RefCell<Pages>,
    /// Checkpoints are written by one at a time.
    pub(super) checkpoint_turn: Semaphore,
    pub(super) allocator: RefCell<Allocator>,
    pub(super) failed: RefCell<Option<PoolError>>,
    pub(super) on_loss: LossHook,
    pub(super) on_sets: RefCell<Option<SetsHook>>,
    pub(super) on_freed: RefCell<Option<FreedHook>>,
    /// Rung when commits have ended.
    pub(super) changed: Notify,
    /// Rung when slots can be allocated that could not before.
    pub(super) slots_returned: Notify,
    /// Whether the pool has drives that remember anything.
    pub(super) persistent: bool,
}

/// The journal in use and what is known of it.
pub(super) struct Journal {
    /// None while there is none: commits wait.
    pub(super) ring: Option<Ring>,
    pub(super) id: Uuid,
    /// The members on which the ring's copies lie, by copy.
    pub(super) carriers: Vec<u32>,
    /// Records appended to the ring: the position of the next one.
    pub(super) position: u64,
    /// Commits that are not stable yet.
    pub(super) under_way: u64,
    /// Commits that came while there was no ring.
    pub(super) waiting: VecDeque<Waiting>,
    /// The newest checkpoint that was begun.
    pub(super) generation: u64,
    /// The newest that is complete on all that were to have it.
    pub(super) complete: u64,
    /// The members that have all of that.
    pub(super) holders: Vec<u32>,
    /// Whether a task is writing a checkpoint or a new journal, or will.
    pub(super) checkpoint_is_due: Cell<bool>,
}

impl Journal {
    pub(super) fn none() -> Journal {
        Journal {
            ring: None,
            id: Uuid::nil(),
            carriers: Vec::new(),
            position: 0,
            under_way: 0,
            waiting: VecDeque::new(),
            generation: 0,
            complete: 0,
            holders: Vec::new(),
            checkpoint_is_due: Cell::new(false),
        }
    }
}

impl Core {
    pub(super) fn new(
        world: &World,
        state: PoolState,
        pages: Pages,
        labels: Labels,
        drives: Vec<Option<DriveHandle>>,
        persistent: bool,
        on_loss: LossHook,
    ) -> Rc<Core> {
        let allocator = Allocator::new(&state);
        Rc::new(Core {
            world: world.clone(),
            state: RefCell::new(state),
            labels: RefCell::new(labels),
            taken: Taken::default(),
            drives: RefCell::new(drives),
            label_turn: Semaphore::new(1),
            journal: RefCell::new(Journal::none()),
            pages: RefCell::new(pages),
            checkpoint_turn: Semaphore::new(1),
            allocator: RefCell::new(allocator),
            failed: RefCell::new(None),
            on_loss,
            on_sets: RefCell::default(),
            on_freed: RefCell::default(),
            changed: Notify::new(),
            slots_returned: Notify::new(),
            persistent,
        })
    }

    /// The drive of a member that serves.
    pub(super) fn drive(&self, member: u32) -> Option<DriveHandle> {
        self.drives.borrow().get(member as usize).cloned().flatten()
    }

    pub(super) fn pool_name(&self) -> String {
        self.state.borrow().name().to_owned()
    }

    pub(super) fn failure(&self) -> Option<PoolError> {
        self.failed.borrow().clone()
    }

    pub(super) fn check_works(&self) -> Result<(), PoolError> {
        self.failure().map_or(Ok(()), Err)
    }

    /// Nothing is committed any more.
    pub(super) fn fail(&self) -> PoolError {
        let error = PoolError::Failed { pool: self.pool_name() };
        if self.failed.borrow().is_none() {
            tracing::error!("{error}");
            *self.failed.borrow_mut() = Some(error.clone());
        }
        let waiting = std::mem::take(&mut self.journal.borrow_mut().waiting);
        for waiting in waiting {
            // The caller may be gone.
            let _ = waiting.done.send(Err(error.clone()));
        }
        self.changed.notify_all();
        error
    }
}

impl Metadata {
    /// Metadata that no drive remembers: for pools in memory and for worlds without payload. Commits take effect at
    /// once.
    pub fn volatile(world: &World, state: PoolState, on_loss: LossHook) -> Metadata {
        let labels = Labels::of(&state, Vec::new());
        let drives = vec![None; state.members().len()];
        let pages = Pages::new(PageTable::empty(0, 0));
        Metadata(Core::new(world, state, pages, labels, drives, false, on_loss))
    }

    /// The state as it was accepted. Let it go before waiting for anything and before the next commit, which would find
    /// it borrowed and panic.
    pub fn state(&self) -> Ref<'_, PoolState> {
        self.0.state.borrow()
    }

    /// Has `hook` told when sets have joined.
    pub fn on_sets_added(&self, hook: SetsHook) {
        *self.0.on_sets.borrow_mut() = Some(hook);
    }

    /// Has `hook` given the slots that commits free, but for those of [`Metadata::commit_keeping_slots`].
    pub fn on_freed(&self, hook: FreedHook) {
        *self.0.on_freed.borrow_mut() = Some(hook);
    }

    /// The world in which its drives are.
    pub fn world(&self) -> &World {
        &self.0.world
    }

    /// The drive of a member that serves.
    pub fn drive(&self, member: u32) -> Option<DriveHandle> {
        self.0.drive(member)
    }

    /// Rung when commits have ended, and when the metadata have failed.
    pub fn changed(&self) -> &Notify {
        &self.0.changed
    }

    /// Why nothing can be committed any more, if so.
    pub fn failure(&self) -> Option<PoolError> {
        self.0.failure()
    }

    /// The members that carry journal and checkpoints.
    pub fn carriers(&self) -> Vec<u32> {
        self.0.labels.borrow().label.carriers.clone()
    }

    /// The last generation that the superblocks of all members have which it calls active, 0 if none.
    pub fn settled(&self) -> u64 {
        self.0.labels.borrow().complete
    }

    /// The generation of the superblocks.
    pub fn generation(&self) -> u64 {
        self.0.labels.borrow().generation
    }
}
