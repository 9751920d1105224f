//! A medium: what a simulated drive is outside of any world, and everything that can be done to it.

use std::cell::{Cell, Ref, RefCell, RefMut};
use std::ops::Range;
use std::rc::Rc;

use tier0_units::{Lba, Nanos, SectorCount};
use tier0_world::{PayloadWidth, Random, World};

use super::content::{Content, Image};
use super::fate::PowerCut;
use super::ledger::{Injected, Injection};
use super::{PowerSwitch, SimDrive};
use crate::{Command, DriveHandle, DriveInfo, Fault, FaultPlan};

/// A delay beyond any patience: a command so delayed hangs (one virtual day).
pub const HANG: Nanos = Nanos(86_400 * 1_000_000_000);

/// What a simulated drive is like.
#[derive(Clone, Debug)]
pub struct SimOptions {
    /// Name, size, alignment, cache, and whether discarded sectors read as zeros.
    pub info: DriveInfo,
    /// Bytes per sector; the same as in every world that the medium is opened in.
    pub width: PayloadWidth,
    /// Whether it is to be told of what holds nothing any more.
    pub gains_by_discard: bool,
    /// A command takes a random time in this range.
    pub latency: Range<Nanos>,
    /// This share of the commands takes up to 32 times as long.
    pub slow_share: f64,
    /// The seed of everything random about the drive.
    pub seed: u64,
}

impl SimOptions {
    /// A drive of `sectors` sectors with a volatile cache, whole sectors, and 20 to 200 µs per command.
    pub fn new(name: &str, sectors: SectorCount, seed: u64) -> SimOptions {
        let info = DriveInfo {
            name: name.to_owned(),
            sectors,
            block_sectors: 1,
            volatile_cache: true,
            discard_zeroes: true,
        };
        let latency = Nanos::from_micros(20)..Nanos::from_micros(200);
        SimOptions {
            info,
            width: PayloadWidth::REAL,
            gains_by_discard: false,
            latency,
            slow_share: 1.0 / 64.0,
            seed,
        }
    }
}

/// What is to go wrong with one command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Sabotage {
    /// Nothing.
    None,
    /// It takes this much longer.
    Delay(Nanos),
    /// It fails with [`IoError::Medium`](tier0_world::IoError::Medium); see the fault model for what it leaves.
    Fail,
    /// The write is acknowledged and not done.
    Lose,
    /// The write is acknowledged and done in part.
    Tear,
    /// The write is acknowledged and done at this address, where the whole of it must have room.
    Misdirect(Lba),
    /// The write is done with one flipped bit.
    Corrupt,
}

/// A copy of all that a medium held at one time.
pub struct MediumImage(Image);

/// A medium; clones share it.
#[derive(Clone)]
pub struct SimMedium(Rc<Inner>);

struct Inner {
    options: SimOptions,
    switch: PowerSwitch,
    state: RefCell<State>,
    gone: Cell<bool>,
    lies: Cell<bool>,
    /// How often it was taken away.
    taken: Cell<u64>,
    /// How often it lost its power under its handles.
    epoch: Cell<u64>,
    /// The clock of the world that it was opened in last, for the ledger.
    world: RefCell<Option<World>>,
    last_time: Cell<Nanos>,
}

pub(super) struct State {
    pub(super) content: Content,
    pub(super) random: Random,
    plans: Vec<FaultPlan>,
    ledger: Vec<Injected>,
}

impl SimMedium {
    /// A medium full of zeros, powered by `switch`.
    pub fn new(options: SimOptions, switch: &PowerSwitch) -> SimMedium {
        let state = State {
            content: Content::new(options.width),
            random: Random::new(options.seed, 0x51),
            plans: Vec::new(),
            ledger: Vec::new(),
        };
        SimMedium(Rc::new(Inner {
            options,
            switch: switch.clone(),
            state: RefCell::new(state),
            gone: Cell::default(),
            lies: Cell::default(),
            taken: Cell::default(),
            epoch: Cell::default(),
            world: RefCell::default(),
            last_time: Cell::default(),
        }))
    }

    /// The drive of this medium in `world`. One world uses it at a time: whatever was under way in an earlier one ends
    /// as after [`SimMedium::kill`].
    pub fn open(&self, world: &World) -> DriveHandle {
        assert_eq!(world.width(), self.0.options.width, "medium and world agree in bytes per sector");
        self.kill_under_way();
        *self.0.world.borrow_mut() = Some(world.clone());
        DriveHandle::new(SimDrive::new(world, self))
    }

    /// The world it was used in is gone: forgets it, so that its memory is freed.
    fn leave_world(&self) {
        self.0.last_time.set(self.now());
        *self.0.world.borrow_mut() = None;
    }

    /// What it is like.
    pub fn options(&self) -> &SimOptions {
        &self.0.options
    }

    /// Its power supply.
    pub fn switch(&self) -> &PowerSwitch {
        &self.0.switch
    }

    /// The power fails: keeps a random part of what was not stable, and loses the rest. To be called after the world
    /// that used it was dropped, or while the drive is unplugged.
    pub fn power_cut(&self, manner: PowerCut) {
        self.record(Injection::PowerCut, Lba(0), 0);
        let mut state = self.state();
        let State { content, random, .. } = &mut *state;
        content.power_cut(manner, random);
        drop(state);
        self.leave_world();
    }

    /// The process dies and the drive keeps its power: what is under way is done in part, the cache stays.
    pub fn kill(&self) {
        self.record(Injection::Killed, Lba(0), 0);
        self.kill_under_way();
        self.leave_world();
    }

    fn kill_under_way(&self) {
        let mut state = self.state();
        let State { content, random, .. } = &mut *state;
        content.kill(random);
    }

    /// Takes the drive away with its power: its cache is lost in part, and every command fails.
    pub fn unplug(&self) {
        self.disconnect();
        let mut state = self.state();
        let State { content, random, .. } = &mut *state;
        content.power_cut(PowerCut::Any, random);
    }

    /// As [`SimMedium::unplug`], and handles stay dead when it is back, as descriptors of a device do that went away,
    /// until they are revived ([`Drive::revive`](crate::Drive::revive)).
    pub fn lose_power(&self) {
        self.unplug();
        self.0.epoch.set(self.0.epoch.get() + 1);
    }

    pub(super) fn epoch(&self) -> u64 {
        self.0.epoch.get()
    }

    /// Every command fails from now on, those under way included; the drive keeps its power.
    pub fn disconnect(&self) {
        self.record(Injection::Gone, Lba(0), 0);
        self.0.gone.set(true);
        self.0.taken.set(self.0.taken.get() + 1);
    }

    /// Whether handles that lead to nothing say of it that it has no sectors any more; each other time that it is taken
    /// away, so that no randomness is drawn.
    pub(super) fn ends_early(&self) -> bool {
        (self.0.options.seed ^ self.0.taken.get()) & 1 == 0
    }

    /// Back again, with what it holds.
    pub fn reconnect(&self) {
        self.record(Injection::Returned, Lba(0), 0);
        self.0.gone.set(false);
    }

    /// What it holds, in its cache too, as a copy of it would have it.
    pub fn image(&self) -> MediumImage {
        MediumImage(self.state().content.image())
    }

    /// A hash of what it holds, in its cache too: two contents that differ have different ones, but for chance.
    pub fn fingerprint(&self) -> u64 {
        self.state().content.fingerprint()
    }

    /// From now on flushes and durable writes are acknowledged, and nothing of its cache becomes stable.
    pub fn begin_to_lie(&self) {
        self.record(Injection::Lies, Lba(0), 0);
        self.0.lies.set(true);
    }

    /// Lies no more, and what had completed is stable; nothing happens to one that does not lie.
    pub fn come_clean(&self) {
        if self.0.lies.replace(false) {
            let mut state = self.state();
            let mark = state.content.flush_mark();
            state.content.flush(mark);
        }
    }

    /// Whether it acknowledges flushes that it does not do.
    pub fn lies(&self) -> bool {
        self.0.lies.get()
    }

    /// Puts it back to an image of itself. Nothing must be under way.
    pub fn restore(&self, image: &MediumImage) {
        self.record(Injection::RolledBack, Lba(0), 0);
        self.state().content.restore(&image.0);
    }

    /// Whether it is unplugged or disconnected.
    pub fn is_gone(&self) -> bool {
        self.0.gone.get()
    }

    /// Makes all content zeros, and every sector readable.
    pub fn wipe(&self) {
        self.record(Injection::Wiped, Lba(0), 0);
        self.state().content.wipe();
    }

    /// Reads of these sectors fail from now on, until they are written.
    pub fn make_unreadable(&self, sectors: Range<u64>) {
        self.record(Injection::Unreadable, Lba(sectors.start), sectors.end - sectors.start);
        self.state().content.make_unreadable(sectors);
    }

    /// Whether none of these sectors is unreadable.
    pub fn is_readable(&self, sectors: Range<u64>) -> bool {
        self.state().content.is_readable(sectors)
    }

    /// One bit of a stable sector flips; false, and nothing done, where a write of it is still in the cache.
    pub fn rot(&self, lba: Lba) -> bool {
        self.spoil(lba, |sector, random| {
            let bit = random.below(sector.len() as u64 * 8);
            sector[(bit / 8) as usize] ^= 1 << (bit % 8);
        })
    }

    /// The whole of a stable sector becomes noise; false, and nothing done, where a write of it is still in the cache.
    pub fn scramble(&self, lba: Lba) -> bool {
        self.spoil(lba, |sector, random| sector.iter_mut().for_each(|byte| *byte ^= random.bits() as u8 | 1))
    }

    /// Stable sectors read as zeros from now on, as where a drive lost its mapping or a file was cut short; those that are
    /// still in the cache stay as they are.
    pub fn forget(&self, sectors: Range<u64>) {
        self.record(Injection::Forgotten, Lba(sectors.start), sectors.end - sectors.start);
        let mut state = self.state();
        sectors.for_each(|lba| _ = state.content.rot(Lba(lba), |sector| sector.fill(0)));
    }

    fn spoil(&self, lba: Lba, change: impl FnOnce(&mut [u8], &mut Random)) -> bool {
        let mut state = self.state();
        let State { content, random, .. } = &mut *state;
        let done = content.rot(lba, |sector| change(sector, random));
        drop(state);
        if done {
            self.record(Injection::Rot, lba, 1);
        }
        done
    }

    /// Adds a plan: faults with probability, range and count, as for a [`FaultDrive`](crate::FaultDrive).
    pub fn inject(&self, plan: FaultPlan) {
        self.state().plans.push(plan);
    }

    /// Forgets all plans.
    pub fn clear_plans(&self) {
        self.state().plans.clear();
    }

    /// A random sector near one that was ever written; none where nothing was. Faults struck elsewhere do no harm.
    pub fn sample_written(&self, random: &mut Random) -> Option<Lba> {
        let inside = |lba: &Lba| lba.0 < self.0.options.info.sectors.0;
        self.state().content.sample_written(random).filter(inside)
    }

    /// Sectors whose newest version is not stable.
    pub fn cached_sectors(&self) -> usize {
        self.state().content.cached_sectors()
    }

    /// What one would read, without a drive, an error, or a trace: for checkers. Unreadable sectors are read too.
    pub fn peek(&self, lba: Lba, bytes: &mut [u8]) {
        self.state().content.peek(lba, bytes);
    }

    /// Everything that was injected, in order.
    pub fn ledger(&self) -> Ref<'_, [Injected]> {
        Ref::map(self.0.state.borrow(), |state| state.ledger.as_slice())
    }

    pub(super) fn state(&self) -> RefMut<'_, State> {
        self.0.state.borrow_mut()
    }

    fn now(&self) -> Nanos {
        self.0.world.borrow().as_ref().map_or(self.0.last_time.get(), World::now)
    }

    /// Enters an injection into the ledger and into the world's event hash.
    pub(super) fn record(&self, injection: Injection, lba: Lba, sectors: u64) {
        if let Some(world) = &*self.0.world.borrow() {
            world.record(0xfa01, lba.0 << 20 ^ sectors);
        }
        let entry = Injected { time: self.now(), injection, lba, sectors };
        self.state().ledger.push(entry);
    }

    /// What goes wrong with a command that is submitted now.
    pub(super) fn sabotage(&self, command: &Command) -> Sabotage {
        let mut state = self.state();
        let State { content, plans, random, .. } = &mut *state;
        let fault = plans.iter_mut().find_map(|plan| plan.strikes(command, random).then_some(plan.fault));
        match fault {
            None => Sabotage::None,
            Some(Fault::ReadError | Fault::WriteError | Fault::FlushError) => Sabotage::Fail,
            Some(Fault::Latency(time)) => Sabotage::Delay(time),
            Some(Fault::LostWrite) => Sabotage::Lose,
            Some(Fault::TornWrite) => Sabotage::Tear,
            Some(Fault::BitRot) => Sabotage::Corrupt,
            Some(Fault::MisdirectedWrite) => {
                let block = u64::from(self.0.options.info.block_sectors);
                let last = self.0.options.info.sectors.0 - command.range().1;
                // Half of them hit what is in use: anywhere else they are nothing but lost.
                let used = random.chance(0.5).then(|| content.sample_written(random)).flatten();
                let target = used.map_or_else(|| random.below(last + 1), |lba| lba.0.min(last));
                Sabotage::Misdirect(Lba(target / block * block))
            }
        }
    }

    /// How long a command takes.
    pub(super) fn draw_latency(&self) -> Nanos {
        let options = &self.0.options;
        let mut state = self.state();
        let spread = options.latency.end.0.saturating_sub(options.latency.start.0).max(1);
        let time = options.latency.start.0 + state.random.below(spread);
        let slow = state.random.chance(options.slow_share);
        Nanos(if slow { time * (1 + state.random.below(32)) } else { time })
    }
}
