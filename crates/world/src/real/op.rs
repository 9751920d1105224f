//! The operations that the drivers of the real world know.

use std::os::fd::{AsRawFd, OwnedFd, RawFd};
use std::rc::Rc;

use super::file::Submission;
use crate::completion::{Completion, Outcome, Pending, SlotId};
use crate::world::Kind;
use crate::{Payload, World};

/// An open file or socket, shared; it stays open while an operation on it is under way.
pub type Fd = Rc<OwnedFd>;

/// One operation. The buffer comes separately, as the slot's payload.
#[derive(Clone, Debug)]
pub(crate) enum Op {
    /// Fills a `Payload::Read` from `skip` bytes on.
    Read { offset: u64, skip: usize },
    /// Writes a `Payload::Write` from `skip` bytes on; `durable` as with O_DSYNC.
    Write { offset: u64, skip: usize, durable: bool },
    /// Flushes data and the metadata needed to find it.
    SyncData,
    /// Gives space back; the range then reads as zeros.
    Deallocate { offset: u64, bytes: u64 },
    /// Takes a connection from a listening socket; ends with its descriptor.
    Accept,
    /// Appends to a `Payload::Bytes`, or fills a `Payload::Read` from `skip` bytes on.
    Receive { skip: usize },
    /// Sends a `Payload::Gather`.
    Send,
    /// Waits until there is something to read.
    Readable,
}

impl Op {
    /// Whether it is one on a file or device, which only a drive ends.
    pub(crate) fn is_on_file(&self) -> bool {
        matches!(self, Op::Read { .. } | Op::Write { .. } | Op::SyncData | Op::Deallocate { .. })
    }
}

/// An operation and what it is on, as the slot keeps it while it is under way.
pub(crate) struct Operation {
    pub(crate) op: Op,
    pub(crate) fd: Fd,
    pub(crate) submission: Submission,
}

/// An operation on its way to a driver.
pub(crate) struct Request {
    pub(crate) op: Op,
    pub(crate) fd: RawFd,
    pub(crate) submission: Submission,
    pub(crate) slot: SlotId,
}

/// Starts `op` on `fd`; `completion` ends with it.
pub(super) fn start(completion: Completion, fd: &Fd, op: Op, submission: Submission, payload: Payload) {
    let world = completion.world().clone();
    let slot = completion.into_slot();
    world.slots().set_operation(slot, Operation { op, fd: fd.clone(), submission }, payload);
    hand_over(&world, slot);
}

/// Passes on that the kernel has ended what `slot` asked for, or asks for what is left of it.
pub(super) fn ended(world: &World, slot: SlotId, outcome: Outcome) {
    let mut slots = world.slots();
    let (operation, payload) = slots.operation(slot);
    let bytes = match payload {
        Payload::Read(buf) => buf.as_slice().len(),
        Payload::Write(buf) => buf.as_slice().len(),
        _ => 0,
    };
    let step = operation.op.advance(outcome, bytes);
    drop(slots);
    match step {
        Some(outcome) => world.finish(slot, outcome),
        None => hand_over(world, slot),
    }
}

/// Gives the driver what is to be done of the operation in `slot`.
fn hand_over(world: &World, slot: SlotId) {
    let Kind::Real { driver, .. } = world.kind() else {
        panic!("files and sockets exist only in the real world");
    };
    let mut slots = world.slots();
    let (operation, payload) = slots.operation(slot);
    let (op, fd) = (operation.op.clone(), operation.fd.as_raw_fd());
    let request = Request { op, fd, submission: operation.submission, slot };
    driver.borrow_mut().submit(request, payload);
}

/// Starts `op` on the socket `fd`, for who waits for it.
pub(super) fn submit(world: &World, fd: &Fd, op: Op, payload: Payload) -> Pending {
    let (completion, pending) = world.completion();
    start(completion, fd, op, Submission::Direct, payload);
    pending
}

/// Where a receive puts what it gets, and how much at most.
pub(crate) fn room_of(payload: &mut Payload, skip: usize) -> (*mut u8, usize) {
    match payload {
        Payload::Bytes(bytes) => {
            let spare = bytes.spare_capacity_mut();
            (spare.as_mut_ptr().cast(), spare.len())
        }
        Payload::Read(buf) => {
            let bytes = &mut buf.as_mut_slice()[skip..];
            (bytes.as_mut_ptr(), bytes.len())
        }
        payload => panic!("{payload:?} cannot be received"),
    }
}
