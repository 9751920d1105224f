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
mod describe;
mod events;
mod membership;
pub mod message;
mod pool;
mod repair;
mod report;
mod report_drives;
mod report_io;
mod space;
mod stats;
mod volumes;

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::pin::pin;
use std::rc::Rc;
use std::sync::Arc;

use futures_util::future::{join_all, select};
use tier0_drive::DriveHandle;
use tier0_plan::PoolShape;
use tier0_pool::metadata::Metadata;
use tier0_pool::{Claim, LogPlacement, MetaRecord};
use tier0_raid::io::LostDrives;
use tier0_units::{Nanos, SlotRef};
use tier0_world::sync::{MailReceiver, MailSender, Semaphore, oneshot};
use tier0_world::{IoError, World};

pub use membership::departed::departed_from;
pub use membership::opener::{
    Answer, Damage, DriveOpener, DriveSource, JoiningMedium, NewDrive, NotOpened, OtherPlace, RelocatedDrive,
};
pub use membership::witness::{Known, SplitRecord, Witness};
pub use repair::guard_arbiter::MemberArbiter;
pub use stats::{LaneStats, PoolStats};
pub use volumes::clones::without_unfinished;

use crate::events::Events;
use crate::message::command::ShardCommand;
use crate::message::control::{Commit, ControlMessage, Loss, MovedNote, Replenish};
use crate::message::request::ShardRequest;
use crate::pool::{PoolControl, PoolCore};

/// How often slots are looked for where none is free: a thick volume was promised its slots, so they must turn up.
const THICK_TRIES: u32 = 10_000;
const THIN_TRIES: u32 = 2;
const TRY_PAUSE: Nanos = Nanos::from_millis(1);
/// How long one waits for what hosts have discarded.
const RECLAIM_LIMIT: Nanos = Nanos::from_secs(5);

/// What an array is beside its shards.
pub struct Control {
    world: World,
    array: String,
    pools: Vec<Rc<PoolControl>>,
    /// To every shard.
    shards: Vec<MailSender<ShardRequest>>,
    /// To the control task itself, for those that ask it.
    post: MailSender<ControlMessage>,
    /// Told before a loss is recorded, if there is one.
    witness: Option<Witness>,
    /// What was wrong with it when it was looked at last.
    witness_fault: RefCell<Option<String>>,
    /// Where drives lie, or lay, that were damaged from outside.
    damaged: RefCell<Vec<(PathBuf, Damage)>>,
    /// Where drives lay that serve and were moved, and where they lie.
    relocated: RefCell<Vec<RelocatedDrive>>,
    events: Events,
    /// Slow turns of this world that events have told.
    slow_turns_told: Cell<u64>,
    /// How long hosts wait for drives of a paused pool before they get errors.
    pause_timeout: Nanos,
    /// Opens drives that are to join; `None` if they come as handles.
    opener: Option<Rc<dyn DriveOpener>>,
    /// By pool and the volume's number in it: its number in the array.
    volume_numbers: RefCell<BTreeMap<(usize, u32), u32>>,
    /// Volumes that there ever were in this run: the next number in the array.
    volumes_ever: Cell<u32>,
    /// Volumes and pools change their shape one after the other.
    turn: Semaphore,
    /// Identities made so far.
    identities: Cell<u64>,
    /// Whether every shard is there for orders.
    upkeep: Cell<bool>,
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
        let pool = |pool: ControlledPool| {
            let name = pool.metadata.state().name().to_owned();
            Rc::new(PoolControl {
                name,
                lost: pool.lost,
                core: PoolCore::new(pool.metadata, pool.shape, &pool.drives),
            })
        };
        let control = Control {
            world: world.clone(),
            array,
            pools: pools.into_iter().map(pool).collect(),
            shards,
            post,
            witness: rules.witness,
            witness_fault: RefCell::default(),
            damaged: RefCell::default(),
            relocated: RefCell::default(),
            events: Events::default(),
            slow_turns_told: Cell::new(0),
            pause_timeout: rules.pause_timeout,
            opener,
            volume_numbers: RefCell::default(),
            volumes_ever: Cell::new(0),
            turn: Semaphore::new(1),
            identities: Cell::new(0),
            upkeep: Cell::new(false),
        };
        control.number_volumes();
        Rc::new(control)
    }

    /// The volumes of the start are numbered as every shard lists them: pool by pool, and as the pools number them.
    fn number_volumes(&self) {
        for (pool, control) in self.pools.iter().enumerate() {
            let volumes = control.core.volume_numbers();
            for volume in volumes {
                self.number_volume(pool, volume);
            }
        }
    }

    /// All shards are there: rebuilds and scrubs may begin, or go on.
    pub fn begin_upkeep(self: &Rc<Self>) {
        self.upkeep.set(true);
        self.world.spawn(self.clone().watch_witness()).detach();
        self.world.spawn(self.clone().watch_damaged_drives()).detach();
        for number in 0..self.pools.len() {
            let control = self.clone();
            let begin = async move {
                // Drives that were lost while shards started.
                for member in control.pools[number].lost_members() {
                    control.drop_log_copies(number, member).await;
                    control.drop_flash_cache(number, member).await;
                }
                control.begin_flash_cache(number);
                let core = control.core(number);
                core.unverified.resume(&core.metadata.state());
                if let Err(error) = control.finish_rejoins(number).await {
                    tracing::error!("the old place of a drive cannot be forgotten: {error}");
                }
                control.start_rebuilds(number);
                control.resume_scrub(number);
                control.resume_restripe(number);
                control.ask_all(|reply| ShardCommand::ScrubReplayed { pool: number, reply }).await;
            };
            self.world.spawn(begin).detach();
            self.world.spawn(self.clone().watch_drives(number)).detach();
            self.world.spawn(self.clone().keep_heartbeat(number)).detach();
            // What others write to shows on files and devices alone.
            if self.opener.is_some() {
                self.world.spawn(self.clone().watch_fronts(number)).detach();
                self.world.spawn(self.clone().watch_lost_pages(number)).detach();
            }
        }
    }

    /// A copy of the log on a drive that is never believed again must not be the one a ring lives on.
    async fn drop_log_copies(&self, pool: usize, member: usize) {
        if self.upkeep.get() {
            self.ask_all(|reply| ShardCommand::DropLogCopies { pool, member, reply }).await;
        }
    }

    /// Serves the shards until there are none.
    pub async fn serve(self: Rc<Self>, mut inbox: MailReceiver<ControlMessage>) {
        while let Some(message) = inbox.receive().await {
            let control = self.clone();
            self.world.spawn(async move { control.handle(message).await }).detach();
        }
    }

    async fn handle(self: Rc<Self>, message: ControlMessage) {
        // The sender may be gone; then the answer is not needed.
        match message {
            ControlMessage::Loss(loss) => self.lose(loss).await,
            ControlMessage::Arbitrate { pool, member, error, reply } => {
                let _ = reply.send(self.arbitrate(pool, member, error).await);
            }
            ControlMessage::Recognise { pool, member, seen, reply } => {
                let known = self.core(pool).metadata.recognise(member as u32, &seen);
                let _ = reply.send(known);
            }
            ControlMessage::Lost { pool, member } => {
                self.tell_lost(pool, member);
                self.drop_log_copies(pool, member).await;
                self.drop_flash_cache(pool, member).await;
                self.start_rebuilds(pool);
            }
            ControlMessage::Replenish(Replenish { pool, claim, reply }) => {
                let _ = reply.send(self.replenish(pool, claim).await);
            }
            ControlMessage::Commit(Commit { pool, mapped, unmapped, reply }) => {
                let _ = reply.send(self.pools[pool].commit(mapped, unmapped).await);
            }
            ControlMessage::ExtentsMoved(MovedNote { pool, extents, from, to, reply }) => {
                let _ = reply.send(self.pools[pool].move_extents(extents, from, to).await);
            }
            ControlMessage::DisownFlashCache { pool, member, id, why, reply } => {
                self.disown_flash_cache(pool, member, id, why).await;
                let _ = reply.send(());
            }
            ControlMessage::PageError { pool, event } => self.note_page_error(pool, &event),
            ControlMessage::TableError { pool, event } => self.note_table_error(pool, &event),
            ControlMessage::TableLost { pool, slot } => self.note_table_lost(pool, slot),
            ControlMessage::GiveBack { pool, slot } => self.pools[pool].give_back(slot),
            ControlMessage::SlotRebuilt(note) => {
                // It is rebuilt again later where that cannot be remembered, and does not keep others from it.
                let is_known = !note.has_lost_pages || self.rebuild_met_lost_pages(note.pool).await;
                let result = match is_known {
                    true => self.pools[note.pool].slot_rebuilt(&note).await,
                    false => Err(IoError::Timeout),
                };
                let _ = note.reply.send(result);
            }
            ControlMessage::Admin { request, reply } => self.carry_out(request, reply).await,
        }
    }

    /// Slots for a shard that has none.
    async fn replenish(&self, pool: usize, claim: Claim) -> Vec<SlotRef> {
        if !self.upkeep.get() {
            // Shards are recovering, and cannot be asked to give back: no one gets more than it needs.
            return self.pools[pool].allocate_slots(claim, None).await;
        }
        let shards = Some(self.shards.len());
        let tries = if claim.thin { THIN_TRIES } else { THICK_TRIES };
        for number in 0..tries {
            let slots = self.pools[pool].allocate_slots(claim, shards).await;
            if !slots.is_empty() {
                return slots;
            }
            self.recall_slot_reserves(pool).await;
            let slots = self.pools[pool].allocate_slots(claim, shards).await;
            if !slots.is_empty() {
                return slots;
            }
            if number == 0 {
                self.reclaim(pool, claim.group).await;
            }
            // Slots may be on their way to a shard that needs fewer, or their unmapping is not stable yet.
            self.world.sleep(TRY_PAUSE).await;
        }
        Vec::new()
    }

    /// Has shards destage what hosts have discarded of a group, whose slots come back then; while drives are away, not for
    /// long.
    async fn reclaim(&self, pool: usize, group: u32) {
        // Extents of any group may lie in this one.
        let group = Some(group).filter(|_| !self.core(pool).metadata.state().is_mixed());
        let reclaimed = pin!(self.ask_all(|reply| ShardCommand::Reclaim { pool, group, reply }));
        select(reclaimed, pin!(self.world.sleep(RECLAIM_LIMIT))).await;
    }

    /// Takes back the slot reserves of all shards: one of them needs what another one does not.
    async fn recall_slot_reserves(&self, pool: usize) {
        for slots in
            self.ask_all(|reply| ShardCommand::ReturnSlotReserve { pool, reply }).await.into_iter().flatten()
        {
            self.pools[pool].take_back(slots);
        }
    }

    /// How many slots of a set of a pool have extents; `None` if there is no such set.
    pub fn used_slots(&self, pool: usize, set: u32) -> Option<u32> {
        self.core(pool).used_slots(set)
    }

    /// Records where the log of a pool is to lie. Ends when that is stable.
    ///
    /// # Errors
    /// The metadata cannot be written.
    pub async fn place_log(&self, pool: usize, placement: LogPlacement) -> Result<(), IoError> {
        self.core(pool).commit(vec![MetaRecord::LogPlaced(placement)]).await
    }

    /// What is kept of a pool.
    fn core(&self, number: usize) -> &PoolCore {
        &self.pools[number].core
    }

    /// Orders something of every shard; none from a shard that has ended.
    async fn ask_all<T>(&self, command: impl Fn(oneshot::Sender<T>) -> ShardCommand) -> Vec<Option<T>> {
        self.ask_every(|reply| ShardRequest::Command(command(reply))).await
    }

    /// Asks something of every shard; none from a shard that has ended.
    async fn ask_every<T>(&self, request: impl Fn(oneshot::Sender<T>) -> ShardRequest) -> Vec<Option<T>> {
        let ask = |shard: &MailSender<ShardRequest>| {
            let (reply, answer) = oneshot::channel();
            shard.send(request(reply));
            async move { answer.await.ok() }
        };
        join_all(self.shards.iter().map(ask).collect::<Vec<_>>()).await
    }

    async fn lose(self: &Rc<Self>, loss: Loss) {
        self.pools[loss.pool].lose(loss.member, loss.error).await;
        self.drop_log_copies(loss.pool, loss.member).await;
        let _ = loss.done.send(());
        self.drop_flash_cache(loss.pool, loss.member).await;
        self.start_rebuilds(loss.pool);
    }
}
