//! A drive that fails on purpose, around any other drive.
//!
//! Fault model: read and write errors, added latency, silent faults of writes (lost: acknowledged, never done; torn:
//! only a front part done; misdirected: done at another address), bit rot (a stored bit flips), and the loss of the
//! whole drive. Each comes from a rule with a probability, a range and a number of times, all drawn from the
//! world's seeded randomness, so a seed reproduces it. Silent faults are counted, so that a checker outside the
//! engine can compare what was injected with what was found.

use std::cell::{Cell, RefCell};
use std::ops::Range;
use std::rc::Rc;

use tier0_units::{Lba, Nanos};
use tier0_world::{BufMut, Completion, IoError, Payload, Random, World};

use crate::{Command, Drive, DriveHandle, DriveInfo};

/// One kind of misbehaviour.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// The read fails with [`IoError::Medium`].
    ReadError,
    /// The write fails with [`IoError::Medium`] and changes nothing.
    WriteError,
    /// The flush fails with [`IoError::Medium`].
    FlushError,
    /// The command takes this much longer.
    Latency(Nanos),
    /// The write is acknowledged and never done.
    LostWrite,
    /// Only a front part of the write, cut at a random sector, is done.
    TornWrite,
    /// The write is done at a random other address.
    MisdirectedWrite,
    /// After the write, one bit of what was written flips.
    BitRot,
}

impl Fault {
    fn concerns(self, command: &Command) -> bool {
        match self {
            Fault::ReadError => matches!(command, Command::Read { .. }),
            Fault::FlushError => matches!(command, Command::Flush),
            Fault::Latency(_) => true,
            _ => matches!(command, Command::Write { .. }),
        }
    }
}

/// When a fault strikes.
#[derive(Clone, Debug)]
pub struct FaultPlan {
    /// What happens.
    pub fault: Fault,
    /// To which share of the commands it concerns, 0 to 1.
    pub probability: f64,
    /// Only to commands that touch these sectors; everywhere if none is given.
    pub range: Option<Range<u64>>,
    /// How many times at most; without limit if none is given.
    pub times: Option<u32>,
}

impl FaultPlan {
    /// `fault` once, at the next command it concerns.
    pub fn once(fault: Fault) -> FaultPlan {
        FaultPlan { fault, probability: 1.0, range: None, times: Some(1) }
    }

    /// `fault` always in `range`.
    pub fn always_in(fault: Fault, range: Range<u64>) -> FaultPlan {
        FaultPlan { fault, probability: 1.0, range: Some(range), times: None }
    }

    /// `fault` in this share of the commands.
    pub fn share(fault: Fault, probability: f64) -> FaultPlan {
        FaultPlan { fault, probability, range: None, times: None }
    }

    pub(crate) fn strikes(&mut self, command: &Command, random: &mut Random) -> bool {
        let (lba, sectors) = command.range();
        let here = self.range.as_ref().is_none_or(|range| lba.0 < range.end && range.start < lba.0 + sectors);
        let strikes = here
            && self.fault.concerns(command)
            && self.times != Some(0)
            && (self.probability >= 1.0 || random.chance(self.probability));
        if strikes && let Some(times) = &mut self.times {
            *times -= 1;
        }
        strikes
    }
}

/// A drive with faults; clones share them.
#[derive(Clone)]
pub struct FaultDrive(Rc<Inner>);

struct Inner {
    drive: DriveHandle,
    plans: RefCell<Vec<FaultPlan>>,
    random: RefCell<Random>,
    gone: Cell<bool>,
    struck: Cell<u64>,
}

impl FaultDrive {
    /// `drive`, faultless until told otherwise; `stream` names its randomness.
    pub fn new(drive: DriveHandle, stream: u64) -> FaultDrive {
        let random = RefCell::new(drive.world().random(stream));
        FaultDrive(Rc::new(Inner {
            drive,
            plans: RefCell::default(),
            random,
            gone: Cell::default(),
            struck: Cell::default(),
        }))
    }

    /// Adds a plan.
    pub fn inject(&self, plan: FaultPlan) {
        self.0.plans.borrow_mut().push(plan);
    }

    /// Forgets all plans.
    pub fn clear(&self) {
        self.0.plans.borrow_mut().clear();
    }

    /// The whole drive is gone (every command fails), or back with what it held.
    pub fn set_gone(&self, gone: bool) {
        self.0.gone.set(gone);
    }

    /// How often a fault has struck.
    pub fn struck_count(&self) -> u64 {
        self.0.struck.get()
    }
}

impl Inner {
    /// The faults that strike this command.
    fn draw(&self, command: &Command) -> Vec<Fault> {
        let mut random = self.random.borrow_mut();
        let mut plans = self.plans.borrow_mut();
        let struck: Vec<Fault> = plans
            .iter_mut()
            .filter_map(|plan| plan.strikes(command, &mut random).then_some(plan.fault))
            .collect();
        self.struck.set(self.struck.get() + struck.len() as u64);
        struck
    }

    async fn execute(&self, command: Command, completion: Completion) {
        let faults = self.draw(&command);
        for fault in &faults {
            if let Fault::Latency(time) = fault {
                self.drive.world().sleep(*time).await;
            }
        }
        if self.gone.get() {
            return command.refuse(IoError::Gone, completion);
        }
        if faults
            .iter()
            .any(|fault| matches!(fault, Fault::ReadError | Fault::WriteError | Fault::FlushError))
        {
            return command.refuse(IoError::Medium, completion);
        }
        match command {
            Command::Read { lba, buf } => {
                let (result, buf) = self.drive.read(lba, buf).await;
                completion.complete(result, Payload::Read(buf));
            }
            Command::Write { lba, buf, durable } => {
                let result = self.write(lba, buf, durable, &faults).await;
                completion.complete(result, Payload::None);
            }
            Command::Flush => completion.complete(self.drive.flush().await, Payload::None),
            Command::Discard { lba, sectors } => {
                completion.complete(self.drive.discard(lba, sectors).await, Payload::None);
            }
        }
    }

    async fn write(
        &self,
        lba: Lba,
        buf: tier0_world::Buf,
        durable: bool,
        faults: &[Fault],
    ) -> Result<(), IoError> {
        let block = self.drive.info().block_sectors;
        let sectors = buf.sectors();
        if faults.contains(&Fault::LostWrite) {
            return Ok(());
        }
        let (mut lba, mut buf) = (lba, buf);
        if faults.contains(&Fault::MisdirectedWrite) {
            let places = (self.drive.info().sectors.0 - u64::from(sectors)) / u64::from(block) + 1;
            lba = Lba(self.random.borrow_mut().below(places) * u64::from(block));
        }
        if faults.contains(&Fault::TornWrite) {
            let blocks = self.random.borrow_mut().below(u64::from(sectors / block)) as u32;
            if blocks == 0 {
                return Ok(());
            }
            buf = buf.slice(0, blocks * block);
        }
        if faults.contains(&Fault::BitRot) && !buf.as_slice().is_empty() {
            let kept = (buf.as_slice().len() / buf.width().bytes()) as u32;
            let mut rotten = BufMut::with_blank_rest(kept, sectors, buf.width());
            rotten.as_mut_slice().copy_from_slice(buf.as_slice());
            let bit = self.random.borrow_mut().below(rotten.as_slice().len() as u64 * 8);
            rotten.as_mut_slice()[(bit / 8) as usize] ^= 1 << (bit % 8);
            buf = rotten.freeze();
        }
        self.drive.write(lba, buf, durable).await
    }
}

impl Drive for FaultDrive {
    fn info(&self) -> &DriveInfo {
        self.0.drive.info()
    }

    fn world(&self) -> &World {
        self.0.drive.world()
    }

    fn submit(&self, command: Command, completion: Completion) {
        let inner = self.0.clone();
        self.world().spawn(async move { inner.execute(command, completion).await }).detach();
    }
}
