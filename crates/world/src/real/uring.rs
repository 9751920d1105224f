//! The io_uring driver.
//!
//! One ring per thread, created with SINGLE_ISSUER and DEFER_TASKRUN (Linux 6.1): completions are processed only
//! when this thread asks for them, in batches. Submissions collect in the ring and go to the kernel together,
//! in the same call that waits. The bell (an eventfd) is read through the ring, so that other threads can end
//! a sleep.

use std::io;
use std::os::fd::{AsFd, AsRawFd};

use io_uring::types::{Fd, SubmitArgs, Timespec};
use io_uring::{IoUring, opcode, squeue};
use tier0_units::Nanos;

use super::driver::{Finished, Wait, outcome_of};
use super::file::Submission;
use super::op::{Op, Request, room_of};
use super::receives::Receives;
use crate::Payload;
use crate::completion::SlotId;

/// Submission entries; the completion queue has four times as many.
const ENTRIES: u32 = 1024;
/// User data of the bell's read, which is no slot.
const BELL: u64 = u64::MAX;
/// The bit of user data that tells operations on files from others; generations leave it free.
const ON_FILE: u64 = 1 << 63;
/// IORING_ENTER_GETEVENTS: run the deferred work and fill the completion queue.
const ENTER_GETEVENTS: u32 = 1;
/// Threads of the kernel for what would block: more than drives that hang can have commands under way. By default there
/// are four per processor, which one drive fills.
const KERNEL_WORKERS_MAX: u32 = 1024;
/// Linux limits one transfer to this (MAX_RW_COUNT, rounded down to the page).
const TRANSFER_BYTES_MAX: usize = 0x7fff_f000;

pub(crate) struct Uring {
    ring: IoUring,
    bell_value: Box<[u8; 8]>,
    bell_armed: bool,
    file_operations: usize,
    receives: Receives,
    /// Receives that have ended and are to be reported.
    received: Finished,
}

impl Uring {
    /// Opens a ring, or says why the kernel or the container forbids it.
    pub(crate) fn new() -> io::Result<Uring> {
        let ring = IoUring::builder()
            .setup_single_issuer()
            .setup_defer_taskrun()
            .setup_taskrun_flag()
            .setup_cqsize(ENTRIES * 4)
            .build(ENTRIES)
            .or_else(|_| IoUring::builder().setup_cqsize(ENTRIES * 4).build(ENTRIES))?;
        if !ring.params().is_feature_ext_arg() || !ring.params().is_feature_nodrop() {
            return Err(io::Error::new(
                io::ErrorKind::Unsupported,
                "io_uring of this kernel is too old (before 5.11)",
            ));
        }
        // Operations that a drive keeps waiting have a thread each, so that they leave some for the others' flushes.
        let _ = ring.submitter().register_iowq_max_workers(&mut [KERNEL_WORKERS_MAX, 0]);
        Ok(Uring {
            ring,
            bell_value: Box::new([0; 8]),
            bell_armed: false,
            file_operations: 0,
            receives: Receives::new(),
            received: Finished::new(),
        })
    }

    pub(crate) fn submit(&mut self, request: Request, payload: &mut Payload) {
        let mut data = user_data(request.slot);
        if request.op.is_on_file() {
            self.file_operations += 1;
            data |= ON_FILE;
        }
        let mut entry = entry_of(&request, payload).user_data(data);
        if request.submission == Submission::Apart {
            // What waits in this thread for a drive that hangs keeps all its tasks waiting.
            entry = entry.flags(squeue::Flags::ASYNC);
        }
        let left_to_ring = match request.op {
            Op::Receive { skip } => {
                let (room, expected) = (room_of(payload, skip), matches!(payload, Payload::Read(_)));
                self.receives.admit(request, room, entry, expected)
            }
            _ => Some(entry),
        };
        left_to_ring.iter().for_each(|entry| self.push(entry));
    }

    /// Operations on files and devices that are under way.
    pub(crate) fn file_operations(&self) -> usize {
        self.file_operations
    }

    fn push(&mut self, entry: &squeue::Entry) {
        loop {
            // SAFETY: what the entry points to (buffer, vectors, message header) lies on the heap in the slot's
            // payload, which stays until the completion arrives; the file stays open for as long.
            if unsafe { self.ring.submission().push(entry) }.is_ok() {
                return;
            }
            self.enter(0, None);
        }
    }

    pub(crate) fn poll(&mut self, now: Nanos, wait: Wait, bell: impl AsFd, finished: &mut Finished) {
        if !self.bell_armed && wait != Wait::Never {
            self.bell_armed = true;
            let fd = Fd(bell.as_fd().as_raw_fd());
            let read = opcode::Read::new(fd, self.bell_value.as_mut_ptr(), 8).build().user_data(BELL);
            self.push(&read);
        }
        self.try_receives(now);
        let wait = if self.received.is_empty() { wait } else { Wait::Never };
        if wait != Wait::Never {
            // Only the ring ends a sleep.
            let left: Vec<squeue::Entry> = self.receives.give_up().collect();
            left.iter().for_each(|entry| self.push(entry));
        }
        match wait {
            Wait::Never => self.enter(0, None),
            Wait::Forever => self.enter(1, None),
            Wait::AtMost(time) => {
                let duration = std::time::Duration::from(time);
                self.enter(1, Some(Timespec::new().sec(duration.as_secs()).nsec(duration.subsec_nanos())));
            }
        }
        self.reap(finished);
    }

    /// Collects what has ended, and calls the kernel only where it has something to do: a look costs a few loads else,
    /// and a virtual processor stays where the interrupt will find it.
    pub(crate) fn look(&mut self, now: Nanos, finished: &mut Finished) {
        let queue = self.ring.submission();
        let kernel_needed = queue.taskrun() || queue.cq_overflow() || !queue.is_empty();
        drop(queue);
        if kernel_needed {
            self.enter(0, None);
        }
        self.try_receives(now);
        self.reap(finished);
    }

    fn try_receives(&mut self, now: Nanos) {
        let mut left_to_ring = Vec::new();
        // SAFETY: the slot keeps the socket open and its payload in place until the receive is reported.
        unsafe {
            let drives_work = self.file_operations > 0;
            self.receives.try_all(now, drives_work, &mut self.received, |entry| left_to_ring.push(entry));
        }
        left_to_ring.iter().for_each(|entry| self.push(entry));
    }

    fn reap(&mut self, finished: &mut Finished) {
        self.run_deferred();
        for completion in self.ring.completion() {
            match completion.user_data() {
                BELL => self.bell_armed = false,
                data => {
                    self.file_operations -= usize::from(data & ON_FILE != 0);
                    finished.push((slot_id(data), outcome_of(completion.result())));
                }
            }
        }
        finished.append(&mut self.received);
    }

    /// Runs what deferred work is left: one call runs at most so many pieces (20 in Linux 6.18), and a batch shall be
    /// seen whole. The flag may stay up without work, where an interrupt raised it after its work was taken; then
    /// nothing comes, and that ends it.
    fn run_deferred(&mut self) {
        let mut completions = self.ring.completion().len();
        while self.ring.submission().taskrun() {
            self.enter(0, None);
            let now = self.ring.completion().len();
            if now == completions {
                return;
            }
            completions = now;
        }
    }

    /// Submits what has collected, runs the deferred work and waits for `want` completions.
    fn enter(&mut self, want: usize, timeout: Option<Timespec>) {
        let result = match &timeout {
            None => {
                let queued = self.ring.submission().len() as u32;
                // SAFETY: no argument is passed, and the entries are valid (see `push`).
                unsafe {
                    self.ring.submitter().enter::<libc::sigset_t>(queued, want as u32, ENTER_GETEVENTS, None)
                }
            }
            Some(timespec) => {
                self.ring.submitter().submit_with_args(want, &SubmitArgs::new().timespec(timespec))
            }
        };
        match result.map_err(|error| error.raw_os_error().unwrap_or(0)) {
            Ok(_) | Err(libc::ETIME | libc::EINTR | libc::EBUSY | libc::EAGAIN) => {}
            Err(errno) => panic!("io_uring_enter failed: {}", io::Error::from_raw_os_error(errno)),
        }
    }
}

fn user_data(slot: SlotId) -> u64 {
    u64::from(slot.generation) << 32 | u64::from(slot.index)
}

fn slot_id(data: u64) -> SlotId {
    SlotId { index: data as u32, generation: ((data & !ON_FILE) >> 32) as u32 }
}

fn entry_of(request: &Request, payload: &mut Payload) -> squeue::Entry {
    let fd = Fd(request.fd);
    match (&request.op, payload) {
        (Op::Read { offset, skip }, Payload::Read(buf)) => {
            let bytes = &mut buf.as_mut_slice()[*skip..];
            let length = bytes.len().min(TRANSFER_BYTES_MAX) as u32;
            opcode::Read::new(fd, bytes.as_mut_ptr(), length).offset(*offset).build()
        }
        (Op::Write { offset, skip, durable }, Payload::Write(buf)) => {
            let bytes = &buf.as_slice()[*skip..];
            let length = bytes.len().min(TRANSFER_BYTES_MAX) as u32;
            let flags = if *durable { libc::RWF_DSYNC } else { 0 };
            opcode::Write::new(fd, bytes.as_ptr(), length).offset(*offset).rw_flags(flags).build()
        }
        (Op::SyncData, _) => opcode::Fsync::new(fd).flags(io_uring::types::FsyncFlags::DATASYNC).build(),
        (Op::Deallocate { offset, bytes }, _) => {
            opcode::Fallocate::new(fd, *bytes).offset(*offset).mode(super::file::PUNCH_HOLE).build()
        }
        (Op::Accept, _) => {
            let null = std::ptr::null_mut();
            opcode::Accept::new(fd, null, null.cast()).flags(libc::SOCK_CLOEXEC).build()
        }
        (Op::Receive { skip }, payload) => {
            let (memory, bytes) = room_of(payload, *skip);
            opcode::Recv::new(fd, memory, bytes.min(TRANSFER_BYTES_MAX) as u32).build()
        }
        (Op::Send, Payload::Gather(gather)) => {
            let message = std::ptr::from_mut(gather.prepare());
            opcode::SendMsg::new(fd, message).flags(libc::MSG_NOSIGNAL as u32).build()
        }
        (Op::Readable, _) => opcode::PollAdd::new(fd, libc::POLLIN as u32).build(),
        (op, payload) => panic!("{op:?} cannot carry {payload:?}"),
    }
}
