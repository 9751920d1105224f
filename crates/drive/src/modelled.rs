//! Modelled disks, flash and write caches as drives: the model says when a command ends, the content says what it carries.
//!
//! In virtual time the content is a sparse store, which keeps no data where the world does not. Against the wall clock it is another drive, usually a
//! file: a command then ends when both the model and that drive are done, so a laptop can serve a LUN on disks that
//! it does not have.

use std::cell::{Cell, RefCell};
use std::rc::Rc;

use tier0_units::{Lba, Nanos, SectorCount};
use tier0_world::{Completion, Payload, TimerTarget, World};

use crate::disk::{DiskModel, DiskRequest, Operation};
use crate::flash::{FlashCommand, FlashModel};
use crate::{Command, Drive, DriveHandle, DriveInfo, NvramModel, SparseStore};

/// What a modelled drive holds.
pub enum Content {
    /// Memory, as wide as the world says.
    Memory(SparseStore),
    /// Another drive of at least the same size.
    Drive(DriveHandle),
}

impl Content {
    /// Empty memory of what this world keeps.
    pub fn memory(world: &World) -> Content {
        Content::Memory(SparseStore::new(world.width()))
    }
}

enum Held {
    Memory(RefCell<SparseStore>),
    Drive(DriveHandle),
}

impl Held {
    fn close(&self) {
        if let Held::Drive(drive) = self {
            drive.close();
        }
    }
}

impl From<Content> for Held {
    fn from(content: Content) -> Held {
        match content {
            Content::Memory(store) => Held::Memory(RefCell::new(store)),
            Content::Drive(drive) => Held::Drive(drive),
        }
    }
}

/// What a model that times commands is asked.
trait Timing: Drive + Clone + 'static {
    /// Ends `completion` when the model has carried out a command of this kind and range.
    fn start(&self, command: Timed, completion: Completion, payload: Payload);

    fn held(&self) -> &Held;

    /// Carries a command out on the content, and ends it when the model says.
    fn execute(&self, command: Command, completion: Completion) {
        let timed = Timed::of(&command);
        let payload = match self.held() {
            Held::Memory(store) => store.borrow_mut().execute(command),
            Held::Drive(drive) => return self.execute_on(drive.clone(), timed, command, completion),
        };
        self.start(timed, completion, payload);
    }

    /// Carries a command out on another drive, and ends it when that and the model are done.
    fn execute_on(&self, drive: DriveHandle, timed: Timed, command: Command, completion: Completion) {
        let (on_time, pending) = self.world().completion();
        self.start(timed, on_time, Payload::None);
        let task = async move {
            let (held, done) = drive.world().completion();
            drive.submit(command, held);
            let ((outcome, payload), _) = futures_util::future::join(done, pending).await;
            completion.complete(outcome.map(|_| ()), payload);
        };
        self.world().spawn(task).detach();
    }
}

#[derive(Clone, Copy)]
enum Kind {
    Read,
    Write { durable: bool },
    Flush,
    Discard,
}

/// A command without its buffer.
#[derive(Clone, Copy)]
struct Timed {
    kind: Kind,
    lba: Lba,
    sectors: u32,
}

impl Timed {
    fn of(command: &Command) -> Timed {
        let (lba, sectors) = command.range();
        let kind = match command {
            Command::Read { .. } => Kind::Read,
            Command::Write { durable, .. } => Kind::Write { durable: *durable },
            Command::Flush => Kind::Flush,
            Command::Discard { .. } => Kind::Discard,
        };
        Timed { kind, lba, sectors: u32::try_from(sectors).unwrap_or(u32::MAX) }
    }
}

fn info(name: &str, sectors: SectorCount, volatile_cache: bool) -> DriveInfo {
    DriveInfo { name: name.to_owned(), sectors, block_sectors: 1, volatile_cache, discard_zeroes: true }
}

/// A modelled disk; clones share it.
#[derive(Clone)]
pub struct DiskDrive(Rc<Disk>);

struct Disk {
    world: World,
    info: DriveInfo,
    held: Held,
    model: RefCell<DiskModel>,
    under_way: RefCell<Vec<Option<(Completion, Payload)>>>,
    free: RefCell<Vec<usize>>,
    /// When the timer that counts is set to fire; others are stale.
    alarm: Cell<Nanos>,
}

impl DiskDrive {
    /// A disk of this model, whose clock must not have started. It offers `capacity`: its tracks may hold a little
    /// more.
    pub fn new(
        world: &World,
        name: &str,
        model: DiskModel,
        capacity: SectorCount,
        content: Content,
    ) -> DiskDrive {
        assert!(capacity <= model.geometry().sectors(), "the disk's tracks hold its capacity");
        let volatile =
            model.geometry().parameters().buffer.write_reporting != crate::disk::WriteReporting::Medium;
        DiskDrive(Rc::new(Disk {
            world: world.clone(),
            info: info(name, capacity, volatile),
            held: content.into(),
            model: RefCell::new(model),
            under_way: RefCell::default(),
            free: RefCell::default(),
            alarm: Cell::new(Nanos::MAX),
        }))
    }
}

impl Disk {
    /// Sets the timer to the model's next event, unless it is set already.
    fn set_alarm(self: &Rc<Self>) {
        let Some(next) = self.model.borrow().next_event() else { return self.alarm.set(Nanos::MAX) };
        if next != self.alarm.get() {
            self.alarm.set(next);
            self.world.call_at(next, self.clone(), next.0);
        }
    }

    fn finish(&self, id: u64) {
        let entry = self.under_way.borrow_mut()[id as usize].take();
        let (completion, payload) = entry.expect("the model ends what it was given, once");
        self.free.borrow_mut().push(id as usize);
        completion.complete(Ok(()), payload);
    }
}

impl TimerTarget for Disk {
    fn fire(self: Rc<Self>, token: u64) {
        if token != self.alarm.get().0 {
            return;
        }
        self.alarm.set(Nanos::MAX);
        let now = self.world.now();
        self.model.borrow_mut().advance(now, &mut |id, _| self.finish(id));
        self.set_alarm();
    }
}

impl Timing for DiskDrive {
    fn held(&self) -> &Held {
        &self.0.held
    }

    fn start(&self, command: Timed, completion: Completion, payload: Payload) {
        let operation = match command.kind {
            Kind::Read => Operation::Read,
            Kind::Write { durable: false } => Operation::Write,
            Kind::Write { durable: true } => Operation::WriteThrough,
            Kind::Flush => Operation::Flush,
            // A disk of these generations has no discard; the content forgets, the mechanism does nothing.
            Kind::Discard => return completion.complete(Ok(()), payload),
        };
        let disk = &self.0;
        let id = disk.free.borrow_mut().pop().unwrap_or_else(|| {
            disk.under_way.borrow_mut().push(None);
            disk.under_way.borrow().len() - 1
        });
        disk.under_way.borrow_mut()[id] = Some((completion, payload));
        let request = DiskRequest { id: id as u64, operation, lba: command.lba, sectors: command.sectors };
        // What ends at this very moment goes first: its timer may stand behind the task that submits.
        let now = disk.world.now();
        let mut model = disk.model.borrow_mut();
        model.advance(now, &mut |id, _| disk.finish(id));
        model.submit(now, request).expect("the command was checked");
        drop(model);
        disk.set_alarm();
    }
}

impl Drive for DiskDrive {
    fn info(&self) -> &DriveInfo {
        &self.0.info
    }

    fn world(&self) -> &World {
        &self.0.world
    }

    fn close(&self) {
        self.held().close();
    }

    fn submit(&self, command: Command, completion: Completion) {
        self.execute(command, completion);
    }
}

/// A modelled flash drive; clones share it.
#[derive(Clone)]
pub struct FlashDrive(Rc<Flash>);

struct Flash {
    world: World,
    info: DriveInfo,
    held: Held,
    model: RefCell<FlashModel>,
}

impl FlashDrive {
    /// A drive of this model, which should be preconditioned.
    pub fn new(world: &World, name: &str, model: FlashModel, content: Content) -> FlashDrive {
        let parameters = model.parameters();
        let info = info(name, SectorCount::in_bytes(parameters.capacity), !parameters.power_loss_protected);
        FlashDrive(Rc::new(Flash {
            world: world.clone(),
            info,
            held: content.into(),
            model: RefCell::new(model),
        }))
    }

    /// Looks at the model: its statistics and wear.
    pub fn with_model<T>(&self, look: impl FnOnce(&FlashModel) -> T) -> T {
        look(&self.0.model.borrow())
    }
}

impl Timing for FlashDrive {
    fn held(&self) -> &Held {
        &self.0.held
    }

    fn start(&self, command: Timed, completion: Completion, payload: Payload) {
        let kind = match command.kind {
            Kind::Read => FlashCommand::Read,
            Kind::Write { .. } => FlashCommand::Write,
            Kind::Flush => FlashCommand::Flush,
            Kind::Discard => FlashCommand::Discard,
        };
        let mut model = self.0.model.borrow_mut();
        let sectors = SectorCount(u64::from(command.sectors));
        let mut end = model.submit(self.0.world.now(), kind, command.lba, sectors);
        if matches!(command.kind, Kind::Write { durable: true }) && self.0.info.volatile_cache {
            end = end.max(model.submit(self.0.world.now(), FlashCommand::Flush, Lba(0), SectorCount(0)));
        }
        completion.complete_at(end, Ok(()), payload);
    }
}

impl Drive for FlashDrive {
    fn info(&self) -> &DriveInfo {
        &self.0.info
    }

    fn world(&self) -> &World {
        &self.0.world
    }

    fn gains_by_discard(&self) -> bool {
        true
    }

    fn close(&self) {
        self.held().close();
    }

    fn submit(&self, command: Command, completion: Completion) {
        self.execute(command, completion);
    }
}

/// A modelled write cache in virtual time; clones share it.
#[derive(Clone)]
pub struct NvramDrive(Rc<Nvram>);

struct Nvram {
    world: World,
    info: DriveInfo,
    held: Held,
    model: RefCell<NvramModel>,
}

impl NvramDrive {
    /// A write cache of this model. It offers `sectors`, which may be more than the cache holds: where a pool keeps its
    /// metadata on every drive, they take none of the cache.
    pub fn new(world: &World, name: &str, model: NvramModel, sectors: SectorCount) -> NvramDrive {
        NvramDrive(Rc::new(Nvram {
            world: world.clone(),
            info: info(name, sectors, false),
            held: Content::memory(world).into(),
            model: RefCell::new(model),
        }))
    }
}

impl Timing for NvramDrive {
    fn held(&self) -> &Held {
        &self.0.held
    }

    fn start(&self, command: Timed, completion: Completion, payload: Payload) {
        match command.kind {
            Kind::Read | Kind::Write { .. } => {
                let end = self.0.model.borrow_mut().submit(self.0.world.now(), u64::from(command.sectors));
                completion.complete_at(end, Ok(()), payload);
            }
            // What is answered is stable.
            Kind::Flush | Kind::Discard => completion.complete(Ok(()), payload),
        }
    }
}

impl Drive for NvramDrive {
    fn info(&self) -> &DriveInfo {
        &self.0.info
    }

    fn world(&self) -> &World {
        &self.0.world
    }

    fn submit(&self, command: Command, completion: Completion) {
        self.execute(command, completion);
    }
}
