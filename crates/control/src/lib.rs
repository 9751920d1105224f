//! The control task: what concerns a pool as a whole and not one shard. It keeps the metadata, hands out free slots,
//! records losses before anything is acknowledged on top of them, and has lost columns rebuilt.
//!
//! One task in the first shard's world receives what shards send; what has to wait for a drive runs in a task of its own,
//! and the metadata journal keeps the order.
//!
//! - [`Control`]: the task, and what an array has it do at its start and its end.
//! - [`message`]: what it and the shards tell each other.
//! - [`admin`]: what administrators ask and are told.
//! - [`DriveOpener`]: whom it asks to open drives that are to join.
//! - [`Witness`]: a file that remembers which drives a pool went on without.

pub mod admin;
mod administer;
mod balance;
mod caches;
mod context;
mod describe;
mod events;
mod membership;
pub mod message;
mod pauses;
mod pool;
mod repair;
mod report;
mod report_drives;
mod report_io;
mod space;
mod stats;
#[cfg(test)]
mod testing;
mod tiering;
mod upkeep;
mod volumes;

use std::collections::BTreeMap;
use std::rc::Rc;
use std::sync::Arc;

use tier0_description::CacheSettings;
use tier0_drive::DriveHandle;
use tier0_plan::PoolShape;
use tier0_pool::metadata::Metadata;
use tier0_pool::{LogPlacement, MetaRecord, SpaceRules};
use tier0_raid::io::LostDrives;
use tier0_units::Nanos;
use tier0_world::sync::{MailReceiver, MailSender};
use tier0_world::{IoError, World};

pub use membership::departed::departed_from;
pub use membership::opener::{
    Answer, Damage, DriveOpener, DriveSource, JoiningMedium, NewDrive, NotOpened, OtherPlace, RelocatedDrive,
};
pub use repair::guard_arbiter::MemberArbiter;
pub use repair::witness::{Known, SplitRecord, Witness};
pub use stats::{HeldBack, LaneStats, PoolStats};
pub use volumes::ceilings::budget_of;
pub use volumes::clones::without_unfinished;

use crate::admin::AdminError;
use crate::balance::Balance;
use crate::caches::Caches;
use crate::context::Context;
use crate::membership::Membership;
use crate::message::control::{Commit, ControlMessage, Loss, MovedNote, Replenish};
use crate::message::request::ShardRequest;
use crate::pool::Pool;
use crate::repair::Repair;
use crate::space::Space;
use crate::tiering::Tiering;
use crate::volumes::Volumes;

/// The control task: it routes messages of shards, and requests of administrators, to the wings.
pub struct Control {
    context: Rc<Context>,
    space: Rc<Space>,
    volumes: Rc<Volumes>,
    repair: Rc<Repair>,
    caches: Rc<Caches>,
    balance: Rc<Balance>,
    tiering: Rc<Tiering>,
    membership: Rc<Membership>,
}

/// A pool whose metadata are open, as the control task takes it over.
pub struct ControlledPool {
    /// Its metadata.
    pub metadata: Metadata,
    /// Its sets and slots, which all shards share.
    pub shape: PoolShape,
    /// Its drives that are lost, which all shards share.
    pub lost: Arc<LostDrives>,
    /// Its drives by member, as the control task's world has them; `None` if one is lost.
    pub drives: Vec<Option<DriveHandle>>,
}

/// What is done where drives fail.
pub struct LossRules {
    /// How long hosts wait for drives of a paused pool before they get errors.
    pub pause_timeout: Nanos,
    /// Who is told before a pool splits.
    pub witness: Option<Witness>,
}

impl Control {
    /// The control task of these pools, which tells `shards` and is told through `post`. It opens drives that are to join
    /// with `opener`; without one, they come as handles.
    pub fn new(
        world: &World,
        array: String,
        pools: Vec<ControlledPool>,
        shards: Vec<MailSender<ShardRequest>>,
        opener: Option<Rc<dyn DriveOpener>>,
        post: MailSender<ControlMessage>,
        rules: LossRules,
    ) -> Rc<Control> {
        let pool =
            |pool: ControlledPool| Rc::new(Pool::new(pool.metadata, pool.shape, pool.lost, &pool.drives));
        let pools = pools.into_iter().map(pool).collect();
        let context = Context::new(world, array, pools, shards, post, rules.pause_timeout);
        let space = Space::new(&context);
        let volumes = Volumes::new(&context, &space);
        let repair = Repair::new(&context, rules.witness);
        let caches = Caches::new(&context, repair.clone(), volumes.clone());
        let balance = Balance::new(&context, space.clone(), repair.clone());
        let tiering = Tiering::new(&context, space.clone(), volumes.clone(), repair.clone(), balance.clone());
        let membership = Membership::new(&context, repair.clone(), caches.clone(), opener);
        Rc::new(Control { context, space, volumes, repair, caches, balance, tiering, membership })
    }

    /// Serves the shards until there are none.
    pub async fn serve(self: Rc<Self>, mut inbox: MailReceiver<ControlMessage>) {
        while let Some(message) = inbox.receive().await {
            let control = self.clone();
            self.context.world.spawn(async move { control.handle(message).await }).detach();
        }
    }

    async fn handle(self: Rc<Self>, message: ControlMessage) {
        // The sender may be gone; then the answer is not needed.
        match message {
            ControlMessage::Loss(loss) => self.lose(loss).await,
            ControlMessage::Arbitrate { pool, member, error, reply } => {
                let _ = reply.send(self.repair.arbitrate(pool, member, error).await);
            }
            ControlMessage::Recognise { pool, member, seen, reply } => {
                let known = self.context.pool(pool).metadata.recognise(member as u32, &seen);
                let _ = reply.send(known);
            }
            ControlMessage::Lost { pool, member } => {
                self.repair.tell_lost(pool, member);
                self.caches.drop_log_copies(pool, member).await;
                self.caches.drop_flash_cache(pool, member).await;
                self.repair.start_rebuilds(pool);
            }
            ControlMessage::Replenish(Replenish { pool, claim, reply }) => {
                let _ = reply.send(self.space.replenish(pool, claim).await);
            }
            ControlMessage::Commit(Commit { pool, mapped, unmapped, reply }) => {
                let _ = reply.send(self.volumes.core(pool).commit_extents(mapped, unmapped).await);
            }
            ControlMessage::ExtentsMoved(MovedNote { pool, extents, from, to, reply }) => {
                let _ = reply.send(self.volumes.core(pool).move_extents(extents, from, to).await);
            }
            ControlMessage::DisownFlashCache { pool, member, id, why, reply } => {
                self.caches.disown_flash_cache(pool, member, id, why).await;
                let _ = reply.send(());
            }
            ControlMessage::PageError { pool, event } => self.repair.note_page_error(pool, &event),
            ControlMessage::TableError { pool, event } => self.repair.note_table_error(pool, &event),
            ControlMessage::TableLost { pool, slot } => self.repair.note_table_lost(pool, slot),
            ControlMessage::GiveBack { pool, slot } => self.space.core(pool).give_back(slot),
            ControlMessage::SlotRebuilt(note) => {
                let result = self.repair.slot_rebuilt(&note).await;
                let _ = note.reply.send(result);
            }
            ControlMessage::Admin { request, reply } => self.carry_out(request, reply).await,
        }
    }

    /// How many slots of a set of a pool have extents; `None` if there is no such set.
    pub fn used_slots(&self, pool: usize, set: u32) -> Option<u32> {
        self.context.pool(pool).used_slots(set)
    }

    /// Records where the log of a pool is to lie. Ends when that is stable.
    ///
    /// # Errors
    /// The metadata cannot be written.
    pub async fn place_log(&self, pool: usize, placement: LogPlacement) -> Result<(), IoError> {
        self.context.pool(pool).commit(vec![MetaRecord::LogPlaced(placement)]).await
    }

    /// What the array file says of its pools' space.
    pub fn follow_space_rules(&self, rules: &BTreeMap<String, SpaceRules>) {
        self.space.follow_rules(rules);
    }

    /// What the array file says of where logs are to lie.
    pub fn follow_log_drives(&self, named: &BTreeMap<String, Vec<String>>) {
        self.caches.follow_log_drives(named);
    }

    /// What the array file says of caches, by pool.
    pub fn follow_caches(&self, wishes: &BTreeMap<String, CacheSettings>) {
        self.caches.follow_caches(wishes);
        self.tiering.follow_caches(wishes);
    }

    /// The array ends, and the next start finds what lies there then: whatever was told before is told anew.
    pub async fn tell_damaged_drives_at_the_end(&self) {
        self.membership.tell_damaged_drives_at_the_end().await;
    }

    /// Moves extents of a volume, so many from a first one on and again from its beginning, to a group of its pool.
    ///
    /// # Errors
    /// [`IoError::OutOfRange`] where there is no such volume or group; the metadata cannot be written.
    pub async fn move_extents(&self, volume: &str, extents: (u32, u32), group: u32) -> Result<u64, IoError> {
        let meant = self.volumes.find_volume(volume).ok_or(IoError::OutOfRange)?;
        self.balance.move_extents(meant.pool, &meant.record, extents, group).await
    }

    /// How many extents of a pool have moved to another group since the start.
    pub fn extents_placed(&self, pool: usize) -> u64 {
        self.balance.extents_placed(pool)
    }

    /// Makes a drive that has come as a handle a member of a group of a pool. `give_to_shards` makes it the member of that
    /// place in every shard, before anything is placed on it.
    ///
    /// # Errors
    /// The pool does not take it, or its metadata cannot be written.
    pub async fn join_handle(
        &self,
        place: (usize, u32),
        name: &str,
        drive: DriveHandle,
        give_to_shards: impl FnOnce(usize, &DriveHandle),
    ) -> Result<(), AdminError> {
        self.membership.join_handle(place, name, drive, give_to_shards).await
    }

    /// A drive that has come as a handle takes the place of the drive of another name, from which everything is copied first
    /// where it serves. `give_to_shards` makes it the member of that place in every shard, before anything is placed on it.
    ///
    /// # Errors
    /// The pool does not take it, there is no such drive, or the metadata cannot be written.
    pub async fn replace_handle(
        &self,
        old: &str,
        name: &str,
        drive: DriveHandle,
        give_to_shards: impl FnOnce(usize, usize, &DriveHandle),
    ) -> Result<(), AdminError> {
        self.membership.replace_handle(old, name, drive, give_to_shards).await
    }

    /// Takes back a drive that was lost under this name in a pool, answers again and has come as a handle: it joins as a new
    /// member, and what it lacks is rebuilt. One that is not the lost one joins as any other. `give_to_shards` makes it the
    /// member of that place in every shard, before anything is placed on it.
    ///
    /// # Errors
    /// It cannot join, or what it lacks cannot be rebuilt.
    pub async fn rejoin_handle(
        &self,
        pool: usize,
        name: &str,
        drive: DriveHandle,
        give_to_shards: impl FnOnce(usize, &DriveHandle),
    ) -> Result<(), AdminError> {
        self.membership.rejoin_handle(pool, name, drive, give_to_shards).await
    }

    async fn lose(self: &Rc<Self>, loss: Loss) {
        self.context.pools[loss.pool].lose(loss.member, loss.error).await;
        self.caches.drop_log_copies(loss.pool, loss.member).await;
        let _ = loss.done.send(());
        self.caches.drop_flash_cache(loss.pool, loss.member).await;
        self.repair.start_rebuilds(loss.pool);
    }
}
