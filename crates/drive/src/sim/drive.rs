//! A medium in a world: commands take time, end in any order, and end in the way that the medium's faults say.

use std::cell::{Cell, RefCell};
use std::future::Future;
use std::ops::Range;
use std::pin::Pin;
use std::rc::Rc;

use tier0_units::{Lba, Nanos};
use tier0_world::{BufMut, Completion, IoError, Payload, Random, TimerTarget, World};

use super::SimMedium;
use super::content::Write;
use super::fate::Fate;
use super::ledger::Injection;
use super::medium::{Sabotage, State};
use crate::{Command, Drive, DriveHandle, DriveInfo};

/// A simulated drive; see [`SimMedium::open`].
pub struct SimDrive(Rc<Inner>);

struct Inner {
    world: World,
    medium: SimMedium,
    /// The medium's epoch in which the handle was opened or revived.
    epoch: Cell<u64>,
    /// The newest epoch in which the drive of some handle was accepted; all handles of an opening share it.
    accepted: Rc<Cell<u64>>,
    /// By token; an entry whose time comes after the power was cut stays for ever.
    under_way: RefCell<Vec<Option<UnderWay>>>,
    free: RefCell<Vec<usize>>,
}

struct UnderWay {
    completion: Completion,
    work: Work,
    fails: bool,
}

enum Work {
    Read { lba: Lba, buf: BufMut },
    Write { write: Rc<Write>, fate: Fate, durable: bool },
    Flush { mark: u64 },
}

impl SimDrive {
    pub(super) fn new(world: &World, medium: &SimMedium) -> SimDrive {
        SimDrive::with(world, medium, Rc::new(Cell::new(medium.epoch())))
    }

    fn with(world: &World, medium: &SimMedium, accepted: Rc<Cell<u64>>) -> SimDrive {
        SimDrive(Rc::new(Inner {
            world: world.clone(),
            medium: medium.clone(),
            epoch: Cell::new(accepted.get()),
            accepted,
            under_way: RefCell::default(),
            free: RefCell::default(),
        }))
    }
}

impl Drive for SimDrive {
    fn info(&self) -> &DriveInfo {
        &self.0.medium.options().info
    }

    fn world(&self) -> &World {
        &self.0.world
    }

    fn gains_by_discard(&self) -> bool {
        self.0.medium.options().gains_by_discard
    }

    fn revive(&self) -> Pin<Box<dyn Future<Output = Result<(), IoError>>>> {
        let drive = self.0.clone();
        Box::pin(async move {
            if drive.medium.is_gone() {
                return Err(IoError::Gone);
            }
            drive.epoch.set(drive.medium.epoch());
            Ok(())
        })
    }

    fn accept(&self) {
        self.0.accepted.set(self.0.epoch.get());
    }

    fn another(&self) -> Option<DriveHandle> {
        let Inner { world, medium, accepted, .. } = &*self.0;
        Some(DriveHandle::new(SimDrive::with(world, medium, accepted.clone())))
    }

    fn is_cut_short(&self) -> bool {
        self.0.is_dead() && self.0.medium.ends_early()
    }

    fn submit(&self, command: Command, completion: Completion) {
        let drive = &self.0;
        let changes = !matches!(command, Command::Read { .. });
        let powered = match changes {
            true => drive.medium.switch().count(),
            false => !drive.medium.switch().is_off(),
        };
        if drive.is_dead() && powered {
            let end = drive.world.now() + drive.medium.draw_latency();
            let error = drive.dead_error(&command);
            let payload = match command {
                Command::Read { buf, .. } => Payload::Read(buf),
                _ => Payload::None,
            };
            return completion.complete_at(end, Err(error), payload);
        }
        let sabotage = if powered { drive.medium.sabotage(&command) } else { Sabotage::None };
        let delay = match sabotage {
            Sabotage::Delay(delay) => {
                drive.note(Injection::Delay, command.range());
                delay
            }
            _ => Nanos(0),
        };
        let end = drive.world.now() + drive.medium.draw_latency() + delay;
        let work = drive.begin(command, sabotage, powered, end);
        let fails = sabotage == Sabotage::Fail;
        let token = drive.insert(UnderWay { completion, work, fails });
        if powered {
            drive.world.call_at(end, drive.clone(), token as u64);
        }
    }
}

impl Inner {
    /// Whether this handle leads to nothing.
    fn is_dead(&self) -> bool {
        let leads_there = |epoch: &Cell<u64>| epoch.get() == self.medium.epoch();
        self.medium.is_gone() || !(leads_there(&self.epoch) || leads_there(&self.accepted))
    }

    /// What a handle that leads to nothing says: that it is so, or what Linux says of a disk that it has taken away, which
    /// has no sectors any more.
    fn dead_error(&self, command: &Command) -> IoError {
        match (self.medium.ends_early(), command) {
            (false, _) => IoError::Gone,
            (true, Command::Read { .. }) => IoError::OutOfRange,
            (true, Command::Write { .. }) => IoError::NoSpace,
            (true, Command::Flush | Command::Discard { .. }) => IoError::Os(libc::EIO),
        }
    }

    fn insert(&self, entry: UnderWay) -> usize {
        let mut under_way = self.under_way.borrow_mut();
        match self.free.borrow_mut().pop() {
            Some(token) => {
                under_way[token] = Some(entry);
                token
            }
            None => {
                under_way.push(Some(entry));
                under_way.len() - 1
            }
        }
    }

    fn note(&self, injection: Injection, (lba, sectors): (Lba, u64)) {
        self.medium.record(injection, lba, sectors);
    }

    /// Turns a command into what is to be done when its time comes. Without power nothing reaches the medium.
    fn begin(&self, command: Command, sabotage: Sabotage, powered: bool, end: Nanos) -> Work {
        let range = command.range();
        match command {
            Command::Read { lba, buf } => Work::Read { lba, buf },
            Command::Flush => Work::Flush { mark: self.medium.state().content.flush_mark() },
            Command::Write { buf, durable, .. } => {
                let bytes = self.medium.state().content.whole(&buf).into_owned();
                self.begin_write(range, Some(&bytes), durable, sabotage, powered, end)
            }
            Command::Discard { .. } => self.begin_write(range, None, false, sabotage, powered, end),
        }
    }

    fn begin_write(
        &self,
        (mut lba, sectors): (Lba, u64),
        bytes: Option<&[u8]>,
        durable: bool,
        sabotage: Sabotage,
        powered: bool,
        end: Nanos,
    ) -> Work {
        let mut fate = self.fate(sectors, bytes.is_none());
        let mut rotten = None;
        match sabotage {
            Sabotage::Lose => {
                fate = Fate::Lost;
                self.note(Injection::LostWrite, (lba, sectors));
            }
            Sabotage::Tear => {
                fate = Fate::Front(self.medium.state().random.below(sectors));
                self.note(Injection::TornWrite, (lba, sectors));
            }
            Sabotage::Misdirect(to) => {
                self.note(Injection::MisdirectedWrite { intended: lba }, (to, sectors));
                lba = to;
            }
            Sabotage::Corrupt => {
                rotten = bytes.filter(|bytes| !bytes.is_empty()).map(<[u8]>::to_vec);
                if let Some(bytes) = &mut rotten {
                    let bit = self.medium.state().random.below(bytes.len() as u64 * 8);
                    bytes[(bit / 8) as usize] ^= 1 << (bit % 8);
                    self.note(Injection::Rot, (lba, sectors));
                }
            }
            Sabotage::None | Sabotage::Delay(_) | Sabotage::Fail => {}
        }
        let whole = matches!(fate, Fate::Kept) && powered && sabotage != Sabotage::Fail;
        let early = if whole { self.draw_early(sectors, end) } else { None };
        let bytes = rotten.as_deref().or(bytes);
        let write = match powered {
            true => self.medium.state().content.begin(lba, sectors, bytes, early),
            false => Write::unpowered(lba, sectors),
        };
        Work::Write { write, fate, durable: durable || !self.medium.options().info.volatile_cache }
    }

    /// A write is done wholly; a discard as well, unless the drive leaves open what it does.
    fn fate(&self, sectors: u64, discard: bool) -> Fate {
        if discard && !self.medium.options().info.discard_zeroes {
            return Fate::any(sectors, &mut self.medium.state().random);
        }
        Fate::Kept
    }

    /// Which part of a write becomes visible before it completes, and when.
    fn draw_early(&self, sectors: u64, end: Nanos) -> Option<(Nanos, Range<u64>)> {
        let random = &mut self.medium.state().random;
        let now = self.world.now();
        let first = random.below(sectors);
        let last = first + random.below(sectors - first + 1);
        Some((Nanos(now.0 + random.below(end.0 - now.0 + 1)), first..last))
    }

    fn finish(&self, entry: UnderWay) {
        let UnderWay { completion, work, fails } = entry;
        let gone = self.is_dead();
        let error = match (gone, fails) {
            (true, _) => Some(IoError::Gone),
            (_, true) => Some(IoError::Medium),
            _ => None,
        };
        match work {
            Work::Read { lba, buf } => self.finish_read(completion, lba, buf, error),
            Work::Write { write, fate, durable } => {
                self.finish_write(completion, &write, &fate, durable, error);
            }
            Work::Flush { mark } => self.finish_flush(completion, mark, error),
        }
    }

    fn finish_read(&self, completion: Completion, lba: Lba, mut buf: BufMut, error: Option<IoError>) {
        let sectors = u64::from(buf.sectors());
        if error == Some(IoError::Medium) {
            self.note(Injection::ReadError, (lba, sectors));
        }
        let readable = self.medium.state().content.read(lba, sectors, buf.as_mut_slice(), self.world.now());
        let result = error.map_or(Ok(()), Err).and(if readable { Ok(()) } else { Err(IoError::Medium) });
        if result.is_err() {
            // The caller must not take what a failed read leaves for content.
            buf.as_mut_slice().fill(0xe7);
        }
        completion.complete(result, Payload::Read(buf));
    }

    fn finish_write(
        &self,
        completion: Completion,
        write: &Rc<Write>,
        fate: &Fate,
        durable: bool,
        error: Option<IoError>,
    ) {
        if error == Some(IoError::Medium) {
            self.note(Injection::WriteError, write.range());
        }
        self.with_content(|content, random| match error {
            Some(_) => content.abandon(write, random),
            None => content.end(write, fate, durable && !self.medium.lies(), random),
        });
        completion.complete(error.map_or(Ok(()), Err), Payload::None);
    }

    fn finish_flush(&self, completion: Completion, mark: u64, error: Option<IoError>) {
        if error == Some(IoError::Medium) {
            self.note(Injection::FlushError, (Lba(0), 0));
        }
        self.with_content(|content, random| match error {
            Some(IoError::Medium) => content.drop_part(random),
            Some(_) => {}
            None if self.medium.lies() => {}
            None => content.flush(mark),
        });
        completion.complete(error.map_or(Ok(()), Err), Payload::None);
    }

    fn with_content(&self, act: impl FnOnce(&mut super::content::Content, &mut Random)) {
        let mut state = self.medium.state();
        let State { content, random, .. } = &mut *state;
        act(content, random);
    }
}

impl TimerTarget for Inner {
    fn fire(self: Rc<Self>, token: u64) {
        if self.medium.switch().is_off() {
            return;
        }
        let entry = self.under_way.borrow_mut()[token as usize].take();
        self.free.borrow_mut().push(token as usize);
        self.finish(entry.expect("a command ends once"));
    }
}
