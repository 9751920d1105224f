//! A control task with one fake shard, which answers commands from its mailbox as a shard would and remembers them. There are no
//! drives: the metadata are in memory. So policies are tested as they are, without the data path.

use std::cell::{Cell, RefCell};
use std::rc::Rc;

use tier0_description::Description;
use tier0_plan::{Lanes, NewPool, PoolShape, members_max};
use tier0_pool::metadata::Metadata;
use tier0_pool::{DriveClass, Member, MemberState, PoolState, SlotHome};
use tier0_raid::io::LostDrives;
use tier0_units::{ByteCount, ExtentId, Nanos, SlotRef, WriteCache};
use tier0_world::sync::{MailReceiver, MailSender, Notify, mailbox, oneshot};
use tier0_world::{IoError, PayloadWidth, VirtualRuntime, World};
use uuid::Uuid;

use crate::message::command::{Move, RebuiltColumn, ShardCommand};
use crate::message::control::{ControlMessage, Loss, MovedNote, SlotRebuiltNote};
use crate::message::request::ShardRequest;
use crate::{Control, ControlledPool, LossRules};

/// Of each drive.
const DRIVE_SECTORS: u64 = 128 << 11;

pub(crate) struct FakeShard {
    control: MailSender<ControlMessage>,
    metadata: Metadata,
    /// Moves that it was told to make. It makes them at once.
    pub(crate) moves: RefCell<Vec<Move>>,
    /// Columns that it was told to rebuild.
    pub(crate) rebuilds: RefCell<Vec<RebuiltColumn>>,
    /// Rebuilds do not end as long as this is set.
    pub(crate) holds_rebuilds: Cell<bool>,
    released: Notify,
    /// Its slot reserve, which it gives back when it is recalled.
    pub(crate) slot_reserve: RefCell<Vec<SlotRef>>,
}

impl FakeShard {
    async fn serve(self: Rc<Self>, world: World, mut inbox: MailReceiver<ShardRequest>) {
        while let Some(request) = inbox.receive().await {
            if let ShardRequest::Command(command) = request {
                world.spawn(self.clone().carry_out(command)).detach();
            }
        }
    }

    /// Whoever asks for something else gets no answer, as of a shard that has ended.
    async fn carry_out(self: Rc<Self>, command: ShardCommand) {
        match command {
            ShardCommand::MoveExtent { pool, one, reply, .. } => {
                self.moves.borrow_mut().push(one);
                let _ = reply.send(self.make(pool, one).await);
            }
            ShardCommand::Rebuild { column, reply, .. } => {
                self.rebuilds.borrow_mut().push(column);
                while self.holds_rebuilds.get() {
                    self.released.wait().await;
                }
                let _ = reply.send(self.rebuild(column).await);
            }
            ShardCommand::Settle { reply, .. }
            | ShardCommand::AddLogCopy { reply, .. }
            | ShardCommand::ConfirmLogCopy { reply, .. } => drop(reply.send(Ok(()))),
            ShardCommand::ReturnSlotReserve { reply, .. } => drop(reply.send(self.slot_reserve.take())),
            ShardCommand::Reclaim { reply, .. }
            | ShardCommand::ScrubReplayed { reply, .. }
            | ShardCommand::DropLogCopies { reply, .. }
            | ShardCommand::DropFlashCache { reply, .. } => drop(reply.send(())),
            _ => {}
        }
    }

    /// Says of every slot in use that it is rebuilt.
    async fn rebuild(&self, RebuiltColumn { set, column, .. }: RebuiltColumn) -> Result<(), IoError> {
        let target = self.metadata.state().rebuild(set, column).ok_or(IoError::Gone)?.target;
        let slots: Vec<u64> = {
            let state = self.metadata.state();
            let homes = state.used_slots_of(set).filter_map(|index| state.slot_at(SlotHome { set, index }));
            homes.collect()
        };
        for slot in slots {
            let (reply, noted) = oneshot::channel();
            let has_lost_pages = false;
            let note = SlotRebuiltNote { pool: 0, set, column, target, slot, has_lost_pages, reply };
            self.control.send(ControlMessage::SlotRebuilt(note));
            noted.await.unwrap_or(Err(IoError::Gone))?;
        }
        Ok(())
    }

    async fn make(&self, pool: usize, one: Move) -> bool {
        let (reply, moved) = oneshot::channel();
        let Move { extent, from, to, .. } = one;
        let note = MovedNote { pool, extents: vec![extent], from, to: Some(to), reply };
        self.control.send(ControlMessage::ExtentsMoved(note));
        let has_moved = matches!(moved.await, Ok(Ok(_)));
        let slot = if has_moved { from } else { to };
        self.control.send(ControlMessage::GiveBack { pool, slot });
        has_moved
    }
}

/// A control task of one pool.
pub(crate) struct Rig {
    pub(crate) world: World,
    pub(crate) control: Rc<Control>,
    pub(crate) shard: Rc<FakeShard>,
}

impl Rig {
    /// Gives extents of the volume slots, so many in each of these sets, from the first extent on.
    pub(crate) async fn fill(&self, sets: &[(u32, u32)]) {
        let mut index = 0;
        for (set, count) in sets {
            for _ in 0..*count {
                let slot = self.control.space.core(0).allocate_in(*set).await.expect("the set has room");
                let mapped = vec![(ExtentId { volume: 0, index }, slot)];
                let committed = self.control.volumes.core(0).commit_extents(mapped, Vec::new()).await;
                committed.expect("the metadata are in memory");
                index += 1;
            }
        }
    }

    /// A thick volume joins, which reserves a few extents.
    pub(crate) async fn make_thick_volume(&self) {
        let size = ByteCount(8 << 20);
        let made =
            self.control.volumes.create_volume(None, "thick", size, false, WriteCache::Off, None).await;
        // The shard offers no volume.
        made.expect_err("the shard does not answer");
    }

    /// A member fails.
    pub(crate) async fn lose(&self, member: usize) {
        let (done, told) = oneshot::channel();
        let loss = Loss { pool: 0, member, error: IoError::Gone, done };
        self.shard.control.send(ControlMessage::Loss(loss));
        told.await.expect("it is recorded");
    }

    /// Rebuilds end.
    pub(crate) fn release_rebuilds(&self) {
        self.shard.holds_rebuilds.set(false);
        self.shard.released.notify_all();
    }

    /// Slots in use, by set.
    pub(crate) fn used(&self) -> Vec<u32> {
        (0..).map_while(|set| self.control.used_slots(0, set)).collect()
    }

    pub(crate) async fn sleep_s(&self, seconds: u64) {
        self.world.sleep(Nanos::from_secs(seconds)).await;
    }
}

/// Runs a test with a pool of so many drives, in sets of so many, with spare chunklets for so many, and a thin volume.
pub(crate) fn with_pool<F: Future<Output = ()> + 'static>(
    (raid, drives, set_size, spares): (&str, usize, usize, usize),
    test: impl FnOnce(Rig) -> F + 'static,
) {
    let text = format!(
        "[array]\nname = \"test\"\n[[drive]]\nname = \"d{{n}}\"\ncount = {drives}\npath = \"d{{n}}\"\n[[pool]]\nname = \"p\"\n\
         raid = \"{raid}\"\nset_size = {set_size}\nspare_drives = {spares}\nchunklet = \"16MiB\"\nlog = \"2MiB\"\n[[volume]]\nname = \"v\"\n\
         size = \"64MiB\"\nthin = true\n"
    );
    let description = Description::parse(&text, "test.toml").expect("a correct description");
    let state = state_of(&description);
    let runtime = VirtualRuntime::new(1, PayloadWidth::NONE);
    let world = runtime.world().clone();
    runtime.run(async move {
        let (control, inbox) = mailbox();
        let (to_shard, of_shard) = mailbox();
        let lost = LostDrives::new(members_max(state.members().len()));
        let shape = PoolShape::new(&state).expect("a planned state");
        let metadata = Metadata::volatile(&world, state, Rc::new(|_, _| {}));
        let pool = ControlledPool {
            drives: vec![None; metadata.state().members().len()],
            shape,
            metadata: metadata.clone(),
            lost,
        };
        let shard = Rc::new(FakeShard {
            control: control.clone(),
            metadata,
            moves: RefCell::default(),
            rebuilds: RefCell::default(),
            holds_rebuilds: Cell::new(false),
            released: Notify::new(),
            slot_reserve: RefCell::default(),
        });
        world.spawn(shard.clone().serve(world.clone(), of_shard)).detach();
        let rules = LossRules { pause_timeout: Nanos::from_secs(60), witness: None };
        let control = Control::new(&world, "test".into(), vec![pool], vec![to_shard], None, control, rules);
        world.spawn(control.clone().serve(inbox)).detach();
        control.begin_upkeep();
        test(Rig { world, control, shard }).await;
    });
}

fn state_of(description: &Description) -> PoolState {
    let mut ids = 0;
    let mut id = || {
        ids += 1;
        Uuid::from_u128(ids)
    };
    let member = |drive: &tier0_description::DriveDescription| Member {
        id: Uuid::new_v4(),
        name: drive.name.clone(),
        sectors: DRIVE_SECTORS,
        class: DriveClass::Disk,
        state: MemberState::Active,
        leaving: false,
        role: Default::default(),
        group: 0,
        path: String::new(),
    };
    let new = NewPool {
        array: "test",
        description: &description.pools[0],
        volumes: description.volumes.iter().collect(),
        members: description.drives.iter().map(member).collect(),
        log_members: Vec::new(),
        flash_cache_members: Vec::new(),
        shards: 1,
        lanes: Lanes::PerGroup,
    };
    new.state(&mut id).expect("a pool that can be")
}
