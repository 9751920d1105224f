//! The driver for kernels and containers that forbid io_uring: sockets through epoll, files through a few threads each
//! (`workers`).
//!
//! Slower than the ring (each file operation crosses two threads), otherwise the same. Payloads stay in their
//! slots; a thread gets only addresses, which the slot keeps valid until the operation is reported.

use std::collections::BTreeMap;
use std::io;
use std::os::fd::{AsFd, OwnedFd, RawFd};

use rustix::event::epoll;

use super::driver::{Finished, Wait, outcome_of};
use super::op::{Op, Request, room_of};
use super::workers::Workers;
use crate::Payload;
use crate::completion::{Outcome, SlotId};

/// Epoll's name for the bell and for the workers' news: no descriptor has these.
const BELL: u64 = u64::MAX;
const NEWS: u64 = u64::MAX - 1;

pub(crate) struct Threads {
    epoll: OwnedFd,
    bell_registered: bool,
    workers: Workers,
    sockets: BTreeMap<RawFd, Waiting>,
    /// Ended at once, to be reported by the next poll.
    instant: Finished,
    file_operations: usize,
}

/// What waits for a socket, per direction.
#[derive(Default)]
struct Waiting {
    registered: bool,
    input: Option<Call>,
    output: Option<Call>,
}

/// A system call with its addresses; `slot` keeps them valid.
pub(super) struct Call {
    pub(super) slot: SlotId,
    pub(super) fd: RawFd,
    kind: CallKind,
}

enum CallKind {
    Read { address: usize, bytes: usize, offset: u64 },
    Write { address: usize, bytes: usize, offset: u64, durable: bool },
    SyncData,
    Deallocate { offset: u64, bytes: u64 },
    Accept,
    Receive { address: usize, bytes: usize },
    Send { message: usize },
    Readable,
}

impl Threads {
    pub(crate) fn new() -> io::Result<Threads> {
        let workers = Workers::new()?;
        let epoll = epoll::create(epoll::CreateFlags::CLOEXEC)?;
        epoll::add(&epoll, workers.news(), epoll::EventData::new_u64(NEWS), epoll::EventFlags::IN)?;
        Ok(Threads {
            epoll,
            bell_registered: false,
            workers,
            sockets: BTreeMap::new(),
            instant: Vec::new(),
            file_operations: 0,
        })
    }

    pub(crate) fn submit(&mut self, request: Request, payload: &mut Payload) {
        let call = Call { slot: request.slot, fd: request.fd, kind: call_of(&request.op, payload) };
        match call.kind {
            CallKind::Accept | CallKind::Receive { .. } | CallKind::Readable | CallKind::Send { .. } => {
                self.try_socket(call)
            }
            _ => {
                self.file_operations += 1;
                self.workers.submit(call);
            }
        }
    }

    /// Operations on files and devices that are under way.
    pub(crate) fn file_operations(&self) -> usize {
        self.file_operations
    }

    pub(crate) fn poll(&mut self, wait: Wait, bell: impl AsFd, finished: &mut Finished) {
        if !self.bell_registered {
            self.bell_registered = true;
            epoll::add(&self.epoll, bell.as_fd(), epoll::EventData::new_u64(BELL), epoll::EventFlags::IN)
                .expect("an eventfd can be polled");
        }
        finished.append(&mut self.instant);
        let timeout = match wait {
            _ if !finished.is_empty() => Some(std::time::Duration::ZERO),
            Wait::Never => Some(std::time::Duration::ZERO),
            Wait::AtMost(time) => Some(time.into()),
            Wait::Forever => None,
        };
        let timeout = timeout
            .map(|duration| rustix::event::Timespec::try_from(duration).expect("a timer fits a timespec"));
        let mut events: Vec<epoll::Event> = Vec::with_capacity(64);
        // An interrupted wait is a short one.
        let _ = epoll::wait(&self.epoll, rustix::buffer::spare_capacity(&mut events), timeout.as_ref());
        for event in events {
            match event.data.u64() {
                BELL => drain_eventfd(bell.as_fd()),
                NEWS => drain_eventfd(self.workers.news()),
                fd => self.socket_ready(fd as RawFd),
            }
        }
        self.file_operations -= self.workers.collect(finished);
        finished.append(&mut self.instant);
    }

    /// Tries a socket call at once; if it would block, epoll says when to try again.
    fn try_socket(&mut self, call: Call) {
        match call.execute() {
            Err(crate::IoError::Os(libc::EAGAIN)) => {}
            outcome => return self.instant.push((call.slot, outcome)),
        }
        let fd = call.fd;
        let waiting = self.sockets.entry(fd).or_default();
        let place =
            if matches!(call.kind, CallKind::Send { .. }) { &mut waiting.output } else { &mut waiting.input };
        assert!(place.is_none(), "one operation per direction of a socket at a time");
        *place = Some(call);
        self.rearm(fd);
    }

    fn rearm(&mut self, fd: RawFd) {
        let waiting = self.sockets.get_mut(&fd).expect("called with a waiting socket");
        let mut flags = epoll::EventFlags::ONESHOT;
        flags.set(epoll::EventFlags::IN, waiting.input.is_some());
        flags.set(epoll::EventFlags::OUT, waiting.output.is_some());
        // SAFETY: the slot of the waiting call keeps the descriptor open.
        let borrowed = unsafe { std::os::fd::BorrowedFd::borrow_raw(fd) };
        let data = epoll::EventData::new_u64(fd as u64);
        // A descriptor that was closed and reused is unknown to epoll although it was registered: then add it.
        let modified = waiting.registered && epoll::modify(&self.epoll, borrowed, data, flags).is_ok();
        if !modified {
            epoll::add(&self.epoll, borrowed, data, flags)
                .or_else(|_| epoll::modify(&self.epoll, borrowed, data, flags))
                .expect("a socket can be polled");
        }
        waiting.registered = true;
    }

    fn socket_ready(&mut self, fd: RawFd) {
        let Some(mut waiting) = self.sockets.remove(&fd) else { return };
        let calls = [waiting.input.take(), waiting.output.take()];
        self.sockets.insert(fd, Waiting { registered: true, ..Waiting::default() });
        for call in calls.into_iter().flatten() {
            self.try_socket(call);
        }
        if self.sockets[&fd].input.is_none() && self.sockets[&fd].output.is_none() {
            self.sockets.remove(&fd);
            // SAFETY: epoll only looks the number up; a closed one is refused, which is as good.
            let _ = epoll::delete(&self.epoll, unsafe { std::os::fd::BorrowedFd::borrow_raw(fd) });
        }
    }
}

fn drain_eventfd(fd: std::os::fd::BorrowedFd<'_>) {
    // Nothing to read means that another wake-up has read it already.
    let _ = rustix::io::read(fd, &mut [0u8; 8]);
}

fn call_of(op: &Op, payload: &mut Payload) -> CallKind {
    let of = |bytes: &[u8]| (bytes.as_ptr() as usize, bytes.len());
    match (op, payload) {
        (Op::Read { offset, skip }, Payload::Read(buf)) => {
            let (address, bytes) = of(&buf.as_mut_slice()[*skip..]);
            CallKind::Read { address, bytes, offset: *offset }
        }
        (Op::Write { offset, skip, durable }, Payload::Write(buf)) => {
            let (address, bytes) = of(&buf.as_slice()[*skip..]);
            CallKind::Write { address, bytes, offset: *offset, durable: *durable }
        }
        (Op::SyncData, _) => CallKind::SyncData,
        (Op::Deallocate { offset, bytes }, _) => CallKind::Deallocate { offset: *offset, bytes: *bytes },
        (Op::Accept, _) => CallKind::Accept,
        (Op::Receive { skip }, payload) => {
            let (memory, bytes) = room_of(payload, *skip);
            CallKind::Receive { address: memory as usize, bytes }
        }
        (Op::Send, Payload::Gather(gather)) => {
            CallKind::Send { message: std::ptr::from_mut(gather.prepare()) as usize }
        }
        (Op::Readable, _) => CallKind::Readable,
        (op, payload) => panic!("{op:?} cannot carry {payload:?}"),
    }
}

impl Call {
    pub(super) fn execute(&self) -> Outcome {
        let fd = self.fd;
        // SAFETY: the addresses lie in the payload of a slot that stays until this call is reported, exclusive
        // for reads and receives; the slot also keeps the descriptor open.
        let result = unsafe {
            match self.kind {
                CallKind::Read { address, bytes, offset } => {
                    libc::pread(fd, address as *mut _, bytes, offset as i64)
                }
                CallKind::Write { address, bytes, offset, durable } => {
                    let vector = libc::iovec { iov_base: address as *mut _, iov_len: bytes };
                    libc::pwritev2(fd, &vector, 1, offset as i64, if durable { libc::RWF_DSYNC } else { 0 })
                }
                CallKind::SyncData => libc::fdatasync(fd) as isize,
                CallKind::Deallocate { offset, bytes } => {
                    libc::fallocate(fd, super::file::PUNCH_HOLE, offset as i64, bytes as i64) as isize
                }
                CallKind::Accept => match readable_now(fd) {
                    Ok(true) => {
                        libc::accept4(fd, std::ptr::null_mut(), std::ptr::null_mut(), libc::SOCK_CLOEXEC)
                            as isize
                    }
                    Ok(false) => return Err(crate::IoError::Os(libc::EAGAIN)),
                    Err(error) => return Err(error),
                },
                CallKind::Receive { address, bytes } => {
                    libc::recv(fd, address as *mut _, bytes, libc::MSG_DONTWAIT)
                }
                CallKind::Send { message } => {
                    libc::sendmsg(fd, message as *const libc::msghdr, libc::MSG_NOSIGNAL | libc::MSG_DONTWAIT)
                }
                CallKind::Readable => match readable_now(fd) {
                    Ok(true) => 1,
                    Ok(false) => return Err(crate::IoError::Os(libc::EAGAIN)),
                    Err(error) => return Err(error),
                },
            }
        };
        if result < 0 {
            outcome_of(-io::Error::last_os_error().raw_os_error().unwrap_or(libc::EIO))
        } else {
            outcome_of(result.min(i32::MAX as isize) as i32)
        }
    }
}

/// Whether a read would find something: accepting and polling must not block.
fn readable_now(fd: RawFd) -> Result<bool, crate::IoError> {
    // SAFETY: the slot keeps the descriptor open.
    let borrowed = unsafe { std::os::fd::BorrowedFd::borrow_raw(fd) };
    let mut poll = [rustix::event::PollFd::new(&borrowed, rustix::event::PollFlags::IN)];
    let zero = rustix::event::Timespec { tv_sec: 0, tv_nsec: 0 };
    Ok(rustix::event::poll(&mut poll, Some(&zero))? > 0)
}
