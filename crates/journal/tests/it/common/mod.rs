//! A drive that loses power.
//!
//! Fault model: commands take random times and complete in any order. A write that was neither forced nor followed by a
//! flush may be lost; at a power cut any subset of the sectors of all such writes, and of writes under way, is there.
//! A medium outlives the worlds in which drives are opened on it.

#![allow(unreachable_pub, reason = "a test program has no public interface")]

pub mod kit;

use std::cell::RefCell;
use std::future::Future;
use std::pin::Pin;
use std::rc::Rc;

use tier0_drive::{Command, Drive, DriveHandle, DriveInfo};
use tier0_journal::{LossReport, Region};
use tier0_units::{Lba, Nanos, SectorCount};
use tier0_world::{Buf, Completion, IoError, Payload, Random, World};

pub const SECTOR: usize = 512;

/// What is stable, and what is not yet.
pub struct Medium {
    pub stable: Vec<u8>,
    unstable: Vec<Unstable>,
    next_command: u64,
    pub block_sectors: u32,
    pub volatile_cache: bool,
    /// Every command fails from now on.
    pub gone: bool,
    /// This many writes fail.
    pub write_errors: u32,
    /// The write with this number, counted from 0, fails.
    pub failing_write: Option<u64>,
    /// This many flushes fail.
    pub flush_errors: u32,
    /// Reads that touch these sectors fail.
    pub unreadable: std::ops::Range<u64>,
    pub writes: u64,
    pub reads: u64,
    /// Longest time a command takes, in nanoseconds.
    pub latency_max: u64,
}

/// A write that a power cut may undo.
struct Unstable {
    id: u64,
    lba: Lba,
    buf: Buf,
    /// Reads see it.
    completed: bool,
}

pub type MediumHandle = Rc<RefCell<Medium>>;

impl Medium {
    pub fn new(sectors: u64) -> MediumHandle {
        Medium::of(vec![0; sectors as usize * SECTOR])
    }

    /// One that holds this, and nothing that is not stable.
    pub fn of(stable: Vec<u8>) -> MediumHandle {
        Rc::new(RefCell::new(Medium {
            stable,
            unstable: Vec::new(),
            next_command: 0,
            block_sectors: 1,
            volatile_cache: true,
            gone: false,
            write_errors: 0,
            failing_write: None,
            flush_errors: 0,
            unreadable: 0..0,
            writes: 0,
            reads: 0,
            latency_max: 100_000,
        }))
    }

    fn read(&self, lba: Lba, bytes: &mut [u8]) {
        let first = lba.0 as usize * SECTOR;
        bytes.copy_from_slice(&self.stable[first..first + bytes.len()]);
        for write in self.unstable.iter().filter(|write| write.completed) {
            for (i, sector) in write.buf.as_slice().chunks_exact(SECTOR).enumerate() {
                let place = (write.lba.0 + i as u64).wrapping_sub(lba.0) as usize;
                if let Some(target) = bytes.chunks_exact_mut(SECTOR).nth(place) {
                    target.copy_from_slice(sector);
                }
            }
        }
    }

    fn put(&mut self, lba: Lba, bytes: &[u8]) {
        let first = lba.0 as usize * SECTOR;
        self.stable[first..first + bytes.len()].copy_from_slice(bytes);
    }

    /// Some completed writes become stable.
    fn settle(&mut self, which: impl Fn(u64) -> bool) {
        let settles = |write: &Unstable| write.completed && which(write.id);
        let (settled, left): (Vec<_>, Vec<_>) =
            std::mem::take(&mut self.unstable).into_iter().partition(settles);
        self.unstable = left;
        settled.iter().for_each(|write| self.put(write.lba, write.buf.as_slice()));
    }

    /// A completed write becomes stable, and what it overwrote before it, so that this does not come over it later.
    fn force(&mut self, id: u64) {
        let sectors = |write: &Unstable| write.lba.0..write.lba.0 + u64::from(write.buf.sectors());
        let Some(forced) = self.unstable.iter().find(|write| write.id == id).map(sectors) else { return };
        let is_below = |write: &Unstable| {
            let own = sectors(write);
            write.id < id && own.start < forced.end && forced.start < own.end
        };
        let below: Vec<u64> = self.unstable.iter().filter(|w| is_below(w)).map(|w| w.id).collect();
        self.settle(|other| other == id || below.contains(&other));
    }

    fn complete(&mut self, id: u64) {
        self.unstable.iter_mut().filter(|write| write.id == id).for_each(|write| write.completed = true);
    }

    /// The writer is killed, and the power stays: what was under way is in the drive's cache, or not at all.
    pub fn kill(&mut self, random: &mut Random) {
        self.unstable.retain(|write| write.completed || random.chance(0.5));
        self.unstable.iter_mut().for_each(|write| write.completed = true);
        self.write_errors = 0;
        self.flush_errors = 0;
    }

    /// Any subset of the unstable sectors is there, the rest is not.
    pub fn power_cut(&mut self, random: &mut Random) {
        for Unstable { lba, buf, .. } in std::mem::take(&mut self.unstable) {
            let share = [0.0, 1.0, 0.5, 0.9][random.below(4) as usize];
            for (i, sector) in buf.as_slice().chunks_exact(SECTOR).enumerate() {
                if random.unit() < share {
                    self.put(Lba(lba.0 + i as u64), sector);
                }
            }
        }
        self.write_errors = 0;
        self.flush_errors = 0;
    }
}

/// A drive on a medium in one world.
pub struct CrashDrive {
    world: World,
    info: DriveInfo,
    medium: MediumHandle,
    random: Rc<RefCell<Random>>,
}

impl CrashDrive {
    pub fn open(world: &World, medium: &MediumHandle, stream: u64) -> DriveHandle {
        let info = {
            let medium = medium.borrow();
            DriveInfo {
                name: format!("drive {stream}"),
                sectors: SectorCount((medium.stable.len() / SECTOR) as u64),
                block_sectors: medium.block_sectors,
                volatile_cache: medium.volatile_cache,
                discard_zeroes: false,
            }
        };
        let random = Rc::new(RefCell::new(world.random(1000 + stream)));
        DriveHandle::new(CrashDrive { world: world.clone(), info, medium: medium.clone(), random })
    }

    pub fn region(world: &World, medium: &MediumHandle, stream: u64) -> Region {
        let sectors = (medium.borrow().stable.len() / SECTOR) as u64;
        Region { drive: Self::open(world, medium, stream), first: Lba(0), sectors }
    }
}

impl Drive for CrashDrive {
    fn info(&self) -> &DriveInfo {
        &self.info
    }

    fn world(&self) -> &World {
        &self.world
    }

    fn submit(&self, command: Command, completion: Completion) {
        let (world, medium) = (self.world.clone(), self.medium.clone());
        let latency = 1 + self.random.borrow_mut().below(medium.borrow().latency_max);
        // The write is in the drive from now on, and may reach the medium at any time.
        let (id, failing) = {
            let mut medium = medium.borrow_mut();
            let id = medium.next_command;
            medium.next_command += 1;
            let mut failing = medium.gone;
            match &command {
                Command::Write { lba, buf, .. } => {
                    failing |= medium.failing_write == Some(medium.writes);
                    medium.writes += 1;
                    medium.unstable.push(Unstable { id, lba: *lba, buf: buf.clone(), completed: false });
                    if medium.write_errors > 0 {
                        medium.write_errors -= 1;
                        failing = true;
                    }
                }
                Command::Flush if medium.flush_errors > 0 => {
                    medium.flush_errors -= 1;
                    failing = true;
                }
                Command::Read { lba, buf } => {
                    medium.reads += 1;
                    let bad = medium.unreadable.clone();
                    failing |= lba.0 < bad.end && bad.start < lba.0 + u64::from(buf.sectors());
                }
                _ => {}
            }
            (id, failing)
        };
        let volatile_cache = self.info.volatile_cache;
        self.world
            .spawn(async move {
                world.sleep(Nanos(latency)).await;
                if failing || medium.borrow().gone {
                    return command.refuse(IoError::Medium, completion);
                }
                match command {
                    Command::Read { lba, mut buf } => {
                        medium.borrow().read(lba, buf.as_mut_slice());
                        completion.complete(Ok(()), Payload::Read(buf));
                    }
                    Command::Write { durable, .. } => {
                        medium.borrow_mut().complete(id);
                        if durable || !volatile_cache {
                            medium.borrow_mut().force(id);
                        }
                        completion.complete(Ok(()), Payload::None);
                    }
                    Command::Flush => {
                        medium.borrow_mut().settle(|other| other < id);
                        completion.complete(Ok(()), Payload::None);
                    }
                    Command::Discard { .. } => completion.complete(Err(IoError::Unsupported), Payload::None),
                }
            })
            .detach();
    }
}

/// The owner's durable knowledge of its copies.
pub struct Owner {
    world: World,
    pub lost: Rc<RefCell<Vec<bool>>>,
    latency: Nanos,
}

impl Owner {
    pub fn new(world: &World, lost: &Rc<RefCell<Vec<bool>>>, latency: Nanos) -> Rc<Owner> {
        Rc::new(Owner { world: world.clone(), lost: lost.clone(), latency })
    }

    /// Of copies that never get lost.
    pub fn of_good_copies(world: &World) -> Rc<Owner> {
        Owner::new(world, &Rc::new(RefCell::new(vec![false; 3])), Nanos(0))
    }
}

impl LossReport for Owner {
    fn report(&self, copy: usize, _: IoError) -> Pin<Box<dyn Future<Output = ()>>> {
        let (world, lost, latency) = (self.world.clone(), self.lost.clone(), self.latency);
        Box::pin(async move {
            world.sleep(latency).await;
            lost.borrow_mut()[copy] = true;
        })
    }
}
