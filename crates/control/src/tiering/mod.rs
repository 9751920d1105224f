//! The performance tier: which extents lie in a pool's fast group, by the policy of [`tier0_policy::tier`] or as an administrator
//! says.
//!
//! A round takes five seconds: shards report the heat of their extents; it is chosen what moves; extents move, no faster than hosts
//! tolerate; for the last second nothing moves, so that what hosts wait for can be compared. A pool in which no volume is
//! placed has no rounds, and its shards count nothing.

pub(crate) mod groups;
pub(crate) mod history;
pub(crate) mod homing;
pub(crate) mod leaving;
pub(crate) mod moves;
pub(crate) mod round;
pub(crate) mod settings;
mod stuck;
pub(crate) mod view;
pub(crate) mod wear;

use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Deref;
use std::rc::Rc;

use tier0_description::CacheSettings;
use tier0_policy::tier::Pace;
use tier0_units::Nanos;
use tier0_world::sync::Notify;

use crate::balance::Balance;
use crate::context::Context;
use crate::pool::Pool;
use crate::repair::Repair;
use crate::space::{RoomMaker, Space};
use crate::volumes::Volumes;
use history::History;
use round::Round;
use wear::WriteAllowance;

/// Slots for which extents give way where others need some.
const ROOM_AT_ONCE: u64 = 64;

/// Decides where extents lie.
pub(crate) struct Tiering {
    context: Rc<Context>,
    by_pool: Vec<Rc<TierPool>>,
    space: Rc<Space>,
    volumes: Rc<Volumes>,
    repair: Rc<Repair>,
    balance: Rc<Balance>,
}

/// The tier of a pool.
pub(crate) struct TierPool {
    pool: Rc<Pool>,
    /// Since when accesses are counted; `None` if they are not.
    counted_since: Cell<Option<Nanos>>,
    /// Slots that others need in the fast group.
    lacking: Cell<u64>,
    /// Whether a round is due at once.
    is_due: Cell<bool>,
    /// Rung when it is.
    changed: Notify,
    /// Rung when volumes have changed their group.
    homing: Notify,
    /// Groups without room for what is to come home, and since when.
    full_since: RefCell<BTreeMap<u32, Nanos>>,
    /// Groups that are to leave, and what was told that keeps them: a group without room, or lost pages.
    stuck_told: RefCell<BTreeSet<(u32, Option<u32>)>>,
    /// When was looked last for what keeps them.
    stuck_looked: Cell<Nanos>,
    pace: Cell<Pace>,
    /// Whether hosts wait longer for the fast group than for the others, as the last round has seen it.
    is_fast_slower: Cell<bool>,
    last: RefCell<Option<Round>>,
    history: RefCell<History>,
    allowance: RefCell<WriteAllowance>,
}

impl Tiering {
    pub(crate) fn new(
        context: &Rc<Context>,
        space: Rc<Space>,
        volumes: Rc<Volumes>,
        repair: Rc<Repair>,
        balance: Rc<Balance>,
    ) -> Rc<Tiering> {
        let by_pool: Vec<Rc<TierPool>> =
            context.pools.iter().map(|pool| Rc::new(TierPool::new(pool))).collect();
        for (number, core) in by_pool.iter().enumerate() {
            let core = Rc::downgrade(core);
            let make: RoomMaker =
                Box::new(move |group| core.upgrade().is_some_and(|core| core.make_room(group)));
            // A control task has one tiering.
            let _ = space.core(number).room_maker.set(make);
        }
        Rc::new(Tiering { context: context.clone(), by_pool, space, volumes, repair, balance })
    }

    /// What this keeps of a pool.
    pub(crate) fn core(&self, number: usize) -> &TierPool {
        &self.by_pool[number]
    }

    /// How often the array file lets flash be written over in a day, by pool.
    pub(crate) fn follow_caches(&self, wishes: &BTreeMap<String, CacheSettings>) {
        for core in &self.by_pool {
            wishes.get(&core.name).inspect(|wish| core.allowance.borrow_mut().set(wish.flash_writes_per_day));
        }
    }

    /// From now on accesses to a pool are counted, and rounds are made; the next one at once.
    pub(crate) fn begin_counting(&self, number: usize) {
        let core = self.core(number);
        if core.counted_since.get().is_none() {
            core.counted_since.set(Some(self.world.now()));
        }
        core.begin_round();
    }
}

impl TierPool {
    fn new(pool: &Rc<Pool>) -> TierPool {
        TierPool {
            pool: pool.clone(),
            counted_since: Cell::new(None),
            lacking: Cell::new(0),
            is_due: Cell::new(false),
            changed: Notify::new(),
            homing: Notify::new(),
            full_since: RefCell::default(),
            stuck_told: RefCell::default(),
            stuck_looked: Cell::new(Nanos::ZERO),
            pace: Cell::default(),
            is_fast_slower: Cell::new(false),
            last: RefCell::default(),
            history: RefCell::default(),
            allowance: RefCell::default(),
        }
    }
}

impl TierPool {
    /// A round is due at once.
    fn begin_round(&self) {
        self.is_due.set(true);
        self.changed.notify_all();
    }

    /// Others need slots of a group; whether extents give way there.
    fn make_room(&self, group: u32) -> bool {
        let gives_way = self.metadata.state().lent_to_tier(group) > 0;
        if gives_way {
            self.lacking.set(ROOM_AT_ONCE);
            self.begin_round();
        }
        gives_way
    }
}

impl Deref for Tiering {
    type Target = Context;

    fn deref(&self) -> &Context {
        &self.context
    }
}

impl Deref for TierPool {
    type Target = Pool;

    fn deref(&self) -> &Pool {
        &self.pool
    }
}
