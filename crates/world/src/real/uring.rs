//! The io_uring driver.
//!
//! One ring per thread, created with SINGLE_ISSUER and DEFER_TASKRUN (Linux 6.1): completions are processed only
//! when this thread asks for them, in batches. Submissions collect in the ring and go to the kernel together,
//! in the same call that waits. The bell (an eventfd) is read through the ring, so that other threads can end
//! a sleep.

use std::collections::VecDeque;
use std::io;
use std::os::fd::{AsFd, AsRawFd, RawFd};

use io_uring::types::{Fd, SubmitArgs, Timespec};
use io_uring::{IoUring, opcode, squeue};
use tier0_units::Nanos;

use super::WallClock;
use super::convoy::Convoys;
use super::driver::{Finished, Wait, outcome_of};
use super::file::Submission;
use super::leisure::{Leisure, Nap, Unread};
use super::op::{Op, Request, room_of};
use super::receives::Receives;
use super::room_polls::RoomPolls;
use super::sends::Sends;
use crate::Payload;
use crate::completion::{Outcome, SlotId};

/// Submission entries; the completion queue has four times as many.
const ENTRIES: u32 = 1024;
/// User data of the bell's read, which is no slot.
const BELL: u64 = u64::MAX;
/// The bit of user data that tells operations on files from others; generations leave it free.
const ON_FILE: u64 = 1 << 63;
/// The bit of user data that tells transfers, which may be held back, from other operations on files.
const TRANSFER: u64 = 1 << 62;
/// IORING_ENTER_GETEVENTS: run the deferred work and fill the completion queue.
const ENTER_GETEVENTS: u32 = 1;
/// So many transfers of a batch that was held go to the device in a call of their own: it wakes up over them while the
/// others are being prepared.
const FIRST_OF_BATCH: usize = 2;
/// So many transfers are reported at a time. Whoever waits for the first of them is answered, and may ask again, before
/// the others are looked through; what was asked meanwhile does not queue up behind them.
const REPORTED_AT_ONCE: usize = 3;
/// Requests go to drives where one has been given something within this time.
const LATELY: Nanos = Nanos::from_millis(1);
/// Threads of the kernel for what would block: more than drives that hang can have commands under way. By default there
/// are four per processor, which one drive fills.
const KERNEL_WORKERS_MAX: u32 = 1024;
/// Linux limits one transfer to this (MAX_RW_COUNT, rounded down to the page).
const TRANSFER_BYTES_MAX: usize = 0x7fff_f000;

pub(crate) struct Uring {
    ring: IoUring,
    bell_value: Box<[u8; 8]>,
    bell_armed: bool,
    /// For what happens between two looks at the runtime's clock.
    clock: WallClock,
    /// When the runtime last looked at its clock.
    now: Nanos,
    file_operations: usize,
    last_on_file: Option<Nanos>,
    /// Transfers that have ended and are to be reported.
    transferred: VecDeque<(SlotId, Outcome)>,
    convoys: Convoys,
    /// Transfers that go to their device now; kept for its memory.
    released: Vec<squeue::Entry>,
    /// Operations on sockets, which go to the kernel after the transfers that collect meanwhile.
    copies: Vec<Copy>,
    receives: Receives,
    leisure: Leisure,
    room_polls: RoomPolls,
    sends: Sends,
    /// Sends that wait in the ring for room in their sockets.
    choked: Vec<(SlotId, RawFd)>,
    /// Somebody was answered since receives were to be tried last.
    has_answered: bool,
    /// Sends and receives that have ended and are to be reported.
    copied: Finished,
}

/// An operation on a socket.
enum Copy {
    InRing(squeue::Entry),
    AtOnce(SendAtOnce),
}

/// A send that is tried at once, and goes through the ring only if the socket is full.
struct SendAtOnce {
    slot: SlotId,
    fd: RawFd,
    /// In the slot's payload.
    message: *const libc::msghdr,
    /// So many bytes at the beginning are not cut.
    pieces_after: usize,
    entry: squeue::Entry,
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
            clock: WallClock::new(),
            now: Nanos(0),
            file_operations: 0,
            last_on_file: None,
            transferred: VecDeque::new(),
            convoys: Convoys::new(),
            released: Vec::new(),
            copies: Vec::new(),
            receives: Receives::new(),
            leisure: Leisure::new(),
            room_polls: RoomPolls::default(),
            sends: Sends::new(),
            choked: Vec::new(),
            has_answered: false,
            copied: Finished::new(),
        })
    }

    pub(crate) fn submit(&mut self, request: Request, payload: &mut Payload) {
        let mut data = user_data(request.slot);
        if request.op.is_on_file() {
            self.file_operations += 1;
            self.last_on_file = Some(self.now);
            data |= ON_FILE;
        }
        if request.submission == Submission::Apart {
            // What waits in this thread for a drive that hangs keeps everybody waiting.
            return self.push(&entry_of(&request, payload).user_data(data).flags(squeue::Flags::ASYNC));
        }
        if !request.op.is_transfer() {
            let entry = entry_of(&request, payload).user_data(data);
            return match (&request.op, payload) {
                (Op::Send { in_pieces_after: Some(pieces_after) }, Payload::Gather(gather)) => {
                    let message: *const libc::msghdr =
                        gather.message.as_deref().expect("prepared with the entry");
                    let (slot, fd, pieces_after) = (request.slot, request.fd, *pieces_after);
                    self.copies.push(Copy::AtOnce(SendAtOnce { slot, fd, message, pieces_after, entry }));
                }
                (Op::Receive { skip, .. }, payload) => {
                    let (room, expected) = (room_of(payload, *skip), matches!(payload, Payload::Read(_)));
                    if let Some(entry) = self.receives.admit(request, room, entry, expected) {
                        self.copies.push(Copy::InRing(entry));
                    }
                }
                (Op::Send { .. }, _) => self.copies.push(Copy::InRing(entry)),
                _ => self.push(&entry),
            };
        }
        let entry = entry_of(&request, payload).user_data(data | TRANSFER);
        if let Some(entry) = self.convoys.admit(self.now, request.fd, request.slot.index, entry) {
            self.push(&entry);
        }
    }

    /// Whether all clients are too busy to miss this thread, and for how long. The sockets that are to end a nap are
    /// watched from now on until it is said that it has.
    pub(crate) fn leisure(&mut self) -> Option<Nap> {
        if self.file_operations > 0 {
            return None;
        }
        self.start_copies();
        if !self.copied.is_empty() {
            return None;
        }
        let unread = self.unread()?;
        let nap = self.leisure.nap(unread, self.drives_worked_lately())?;
        if nap.until_told {
            self.watch_for_room();
        }
        Some(nap)
    }

    /// Learns from a nap that took `slept`.
    pub(crate) fn rested(&mut self, nap: Nap, slept: Nanos) {
        for removal in self.room_polls.remove() {
            self.push(&removal);
        }
        let now = self.clock.now();
        let (receives, leisure) = (&self.receives, &mut self.leisure);
        leisure.ended(nap, slept, now, || receives.unread(|_| false).map(Unread::least));
    }

    /// What clients have to read, at least. What they ask while their sockets are full can wait for room, unless it takes a
    /// drive some time to answer it.
    fn unread(&self) -> Option<Unread> {
        let drives_worked = self.drives_worked_lately();
        let unread = self.receives.unread(|fd| !drives_worked && self.is_choked(fd));
        unread.map(|unread| if self.room_polls.are_under_way() { unread.untold() } else { unread })
    }

    fn is_choked(&self, fd: RawFd) -> bool {
        self.choked.iter().any(|(_, choked)| *choked == fd)
    }

    /// Polls sockets for room, but for full ones: there a send waits for it.
    fn watch_for_room(&mut self) {
        let sockets: Vec<RawFd> = self.receives.sockets().filter(|fd| !self.is_choked(*fd)).collect();
        let polls: Vec<squeue::Entry> = self.room_polls.start(sockets.into_iter()).collect();
        polls.iter().for_each(|poll| self.push(poll));
    }

    fn drives_worked_lately(&self) -> bool {
        self.last_on_file.is_some_and(|last| self.now.saturating_sub(last) < LATELY)
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
        self.now = now;
        if !self.bell_armed && wait != Wait::Never {
            self.bell_armed = true;
            let fd = Fd(bell.as_fd().as_raw_fd());
            let read = opcode::Read::new(fd, self.bell_value.as_mut_ptr(), 8).build().user_data(BELL);
            self.push(&read);
        }
        let wait = match (wait, self.convoys.patience(now)) {
            (Wait::Forever, Some(patience)) => Wait::AtMost(patience),
            (Wait::AtMost(time), Some(patience)) => Wait::AtMost(time.min(patience)),
            (wait, _) => wait,
        };
        self.start_copies();
        if !matches!(wait, Wait::Nap(_)) {
            self.try_receives();
        }
        let reported = self.copied.is_empty() && self.transferred.is_empty();
        let wait = if reported { wait } else { Wait::Never };
        if matches!(wait, Wait::AtMost(_) | Wait::Forever) {
            for entry in self.receives.give_up() {
                self.copies.push(Copy::InRing(entry));
            }
        }
        match wait {
            Wait::Never => self.enter(0, None),
            Wait::Forever => self.enter(1, None),
            Wait::Nap(time) | Wait::AtMost(time) => {
                let duration = std::time::Duration::from(time);
                self.enter(1, Some(Timespec::new().sec(duration.as_secs()).nsec(duration.subsec_nanos())));
            }
        }
        self.reap(finished);
    }

    /// Collects what has ended, and calls the kernel only where it has something to do: a look costs a few loads else,
    /// and a virtual processor stays where the interrupt will find it.
    pub(crate) fn look(&mut self, now: Nanos, finished: &mut Finished) {
        self.now = now;
        self.start_copies();
        let queue = self.ring.submission();
        let kernel_needed = queue.taskrun() || queue.cq_overflow() || !queue.is_empty();
        drop(queue);
        if kernel_needed {
            self.call(0, None);
        }
        self.try_receives();
        self.reap(finished);
    }

    /// Whoever was answered just now is busy with that, and what others ask goes into the next batch: unless it takes a
    /// drive some time, it can wait until it is known whether this thread may nap.
    fn try_receives(&mut self) {
        if std::mem::take(&mut self.has_answered) && !self.drives_worked_lately() {
            return;
        }
        let (now, drives_work, copies) = (self.now, self.file_operations > 0, &mut self.copies);
        // SAFETY: the slot keeps the socket open and its payload in place until the receive is reported.
        unsafe {
            self.receives
                .try_all(now, drives_work, &mut self.copied, |entry| copies.push(Copy::InRing(entry)));
        }
    }

    fn reap(&mut self, finished: &mut Finished) {
        self.run_deferred();
        for completion in self.ring.completion() {
            match completion.user_data() {
                BELL => self.bell_armed = false,
                data if self.room_polls.ended(data) => {}
                data => {
                    let slot = slot_id(data);
                    let outcome = outcome_of(completion.result());
                    self.file_operations -= usize::from(data & ON_FILE != 0);
                    if data & TRANSFER != 0 {
                        self.convoys.ended(slot.index);
                        self.transferred.push_back((slot, outcome));
                    } else {
                        self.choked.retain(|(choked, _)| *choked != slot);
                        finished.push((slot, outcome));
                    }
                }
            }
        }
        self.release();
        finished.append(&mut self.copied);
        let at_drives = self.file_operations - self.convoys.held();
        let count = portion(self.transferred.len(), at_drives);
        finished.extend(self.transferred.drain(..count));
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

    /// Gives devices what was held for them, before anybody looks at what they have done.
    fn release(&mut self) {
        let mut released = std::mem::take(&mut self.released);
        self.convoys.judge(self.now, &mut released);
        let (first, rest) = released.split_at(released.len().min(FIRST_OF_BATCH));
        for part in [first, rest].into_iter().filter(|part| !part.is_empty()) {
            part.iter().for_each(|entry| self.push(entry));
            self.call(0, None);
        }
        released.clear();
        self.released = released;
    }

    /// Starts the operations on sockets. Devices get their transfers when the last entry of a call has been dealt with,
    /// and what is sent is copied at once, which takes longer than all the rest: so transfers have a call of their own
    /// before it.
    fn start_copies(&mut self) {
        if self.copies.is_empty() {
            return;
        }
        if !self.ring.submission().is_empty() {
            self.call(0, None);
        }
        let mut copies = std::mem::take(&mut self.copies);
        for copy in copies.drain(..) {
            match copy {
                Copy::InRing(entry) => self.push(&entry),
                Copy::AtOnce(send) => self.send_at_once(&send),
            }
        }
        self.copies = copies;
    }

    fn send_at_once(&mut self, send: &SendAtOnce) {
        self.has_answered = true;
        self.leisure.answered(|| self.clock.now());
        // SAFETY: message and vectors lie on the heap in the slot's payload, which nobody touches before the send is
        // reported; so do the bytes that they point to.
        let sent = unsafe {
            let message = &*send.message;
            let vectors = std::slice::from_raw_parts(message.msg_iov, message.msg_iovlen);
            self.sends.send(send.fd, vectors, send.pieces_after)
        };
        let outcome = match sent.map_err(|error| error.raw_os_error().unwrap_or(libc::EIO)) {
            Ok(sent) => sent as i32,
            Err(libc::EAGAIN) => {
                self.choked.push((send.slot, send.fd));
                return self.push(&send.entry);
            }
            Err(errno) => -errno,
        };
        self.copied.push((send.slot, outcome_of(outcome)));
    }

    /// Submits what has collected, runs the deferred work and waits for `want` completions.
    fn enter(&mut self, want: usize, timeout: Option<Timespec>) {
        self.start_copies();
        self.call(want, timeout);
    }

    fn call(&mut self, want: usize, timeout: Option<Timespec>) {
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

/// How many of the transfers that have ended are reported now. A few only while the drives have enough to do: they would
/// be given no more than a few at a time else, end them before anything more is reported, and stay idle for the most part
/// although many ask.
fn portion(ended: usize, at_drives: usize) -> usize {
    ended.min(REPORTED_AT_ONCE.max(ended.saturating_sub(2 * at_drives)))
}

fn user_data(slot: SlotId) -> u64 {
    u64::from(slot.generation) << 32 | u64::from(slot.index)
}

fn slot_id(data: u64) -> SlotId {
    SlotId { index: data as u32, generation: ((data & !(ON_FILE | TRANSFER)) >> 32) as u32 }
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
        (Op::Receive { skip, .. }, payload) => {
            let (memory, bytes) = room_of(payload, *skip);
            opcode::Recv::new(fd, memory, bytes.min(TRANSFER_BYTES_MAX) as u32).build()
        }
        (Op::Send { .. }, Payload::Gather(gather)) => {
            let message = std::ptr::from_mut(gather.prepare());
            opcode::SendMsg::new(fd, message).flags(libc::MSG_NOSIGNAL as u32).build()
        }
        (Op::Readable, _) => opcode::PollAdd::new(fd, libc::POLLIN as u32).build(),
        (op, payload) => panic!("{op:?} cannot carry {payload:?}"),
    }
}

#[cfg(test)]
mod tests {
    use std::io::{Read, Write};
    use std::os::fd::OwnedFd;
    use std::os::unix::net::UnixStream;

    use super::*;
    use crate::real::send_buffer;
    use crate::{BufMut, Gather, PayloadWidth};

    /// None, and a word about it, where the kernel or a container forbids it.
    fn uring_and_bell() -> Option<(Uring, OwnedFd)> {
        let uring = Uring::new()
            .inspect_err(|error| eprintln!("skipped: io_uring is not to be had here: {error}"))
            .ok()?;
        let bell = rustix::event::eventfd(0, rustix::event::EventfdFlags::CLOEXEC).expect("an eventfd");
        Some((uring, bell))
    }

    fn request(socket: &UnixStream, index: u32, op: Op) -> Request {
        Request {
            op,
            fd: socket.as_raw_fd(),
            submission: Submission::Direct,
            slot: SlotId { index, generation: 1 },
        }
    }

    #[test]
    fn a_nap_ends_by_itself_and_what_was_said_meanwhile_is_found() {
        let Some((mut uring, bell)) = uring_and_bell() else { return };
        let (mut near, mut far) = UnixStream::pair().expect("a pair");
        let mut payload = Payload::Bytes(Vec::with_capacity(64));
        uring.submit(request(&near, 7, Op::Receive { skip: 0, mark: Some(1 << 30) }), &mut payload);
        assert_eq!(uring.leisure(), None, "the client has nothing to do");
        near.write_all(&[1; 150_000]).expect("there is room");
        let nap = uring.leisure().expect("the client has much to read");
        assert!(!nap.until_told, "it would tell at once");

        let mut finished = Finished::new();
        uring.poll(Nanos(0), Wait::Nap(nap.time), &bell, &mut finished);
        far.write_all(b"request").expect("there is room");
        uring.poll(Nanos(1), Wait::Nap(nap.time), &bell, &mut finished);
        assert!(finished.is_empty(), "a nap is not ended by what clients say");
        uring.look(Nanos::from_secs(1), &mut finished);
        assert_eq!(finished[0].1.as_ref().ok(), Some(&7));

        far.read_exact(&mut [0; 150_000]).expect("it was sent");
        assert_eq!(uring.leisure(), None, "nobody is listened to");
    }

    /// A driver that listens to the first of two sockets, whose peer has much to read, and what it listens with.
    fn beside_a_busy_client() -> Option<(Uring, OwnedFd, UnixStream, UnixStream, Payload)> {
        let (mut uring, bell) = uring_and_bell()?;
        let (mut near, far) = UnixStream::pair().expect("a pair");
        let mark = send_buffer::widen(&near);
        let mut payload = Payload::Bytes(Vec::with_capacity(64));
        uring.submit(request(&near, 7, Op::Receive { skip: 0, mark: Some(mark) }), &mut payload);
        while send_buffer::unread(near.as_raw_fd()) < Some(2 * mark) {
            near.write_all(&[1; 1_000]).expect("there is room");
        }
        Some((uring, bell, near, far, payload))
    }

    #[test]
    fn a_client_that_has_read_ends_a_nap() {
        let Some((mut uring, bell, near, mut far, _payload)) = beside_a_busy_client() else { return };
        let nap = uring.leisure().expect("the client has much to read");
        assert!(nap.until_told);
        let (mut finished, began) = (Finished::new(), uring.clock.now());
        std::thread::scope(|scope| {
            let reader = scope.spawn(|| {
                while send_buffer::unread(near.as_raw_fd()) > Some(0) {
                    far.read_exact(&mut [0; 1_000]).expect("it was sent");
                }
            });
            uring.poll(Nanos(0), Wait::Nap(Nanos::from_secs(600)), &bell, &mut finished);
            reader.join().expect("it runs");
        });
        assert!(!uring.room_polls.are_under_way(), "it was told");
        uring.rested(nap, uring.clock.now() - began);
        assert_eq!((finished.len(), uring.leisure()), (0, None), "nothing is left to read");
    }

    #[test]
    fn a_nap_that_something_else_ends_leaves_no_socket_open() {
        let Some((mut uring, bell, near, mut far, _payload)) = beside_a_busy_client() else { return };
        let nap = uring.leisure().expect("the client has much to read");
        let mut finished = Finished::new();
        rustix::io::write(&bell, &1u64.to_ne_bytes()).expect("an eventfd");
        uring.poll(Nanos(0), Wait::Nap(Nanos::from_secs(600)), &bell, &mut finished);
        assert!(uring.room_polls.are_under_way());
        assert!(
            !uring.leisure().expect("it has as much as before").until_told,
            "they are to be removed first"
        );
        uring.rested(nap, Nanos(1));
        uring.poll(Nanos(1), Wait::Never, &bell, &mut finished);
        uring.poll(Nanos(2), Wait::Never, &bell, &mut finished);
        assert!(!uring.room_polls.are_under_way());
        drop(near);
        far.set_read_timeout(Some(std::time::Duration::from_secs(60))).expect("a timeout");
        far.read_to_end(&mut Vec::new()).expect("it ends, because the socket is closed");
    }

    #[test]
    fn who_is_choked_is_not_watched_until_there_is_room() {
        let Some((mut uring, bell)) = uring_and_bell() else { return };
        let (near, mut far) = UnixStream::pair().expect("a pair");
        let mut asked = Payload::Bytes(Vec::with_capacity(64));
        uring.submit(request(&near, 7, Op::Receive { skip: 0, mark: Some(50_000) }), &mut asked);
        let mut finished = Finished::new();
        let mut send = |uring: &mut Uring, index| {
            let mut gather = Box::new(Gather::new());
            gather.push_data(BufMut::zeroed(300, PayloadWidth::REAL).freeze());
            let mut answer = Payload::Gather(gather);
            uring.submit(request(&near, index, Op::Send { in_pieces_after: Some(0) }), &mut answer);
            uring.poll(Nanos(0), Wait::Never, &bell, &mut finished);
            (answer, finished.drain(..).count())
        };
        let answers = [(); 2].map(|()| send(&mut uring, 8));
        let (choked, ended) = send(&mut uring, 9);
        assert_eq!(ended, 0, "150,000 bytes, twice, fill a socket");
        assert!(uring.leisure().is_some_and(|nap| nap.until_told));
        assert!(!uring.room_polls.are_under_way(), "the send waits for room itself");

        uring.file_operations = 1;
        assert_eq!(uring.leisure(), None, "a drive will report");
        uring.file_operations = 0;
        uring.last_on_file = Some(uring.now);
        assert!(uring.leisure().is_some_and(|nap| !nap.until_told));
        uring.last_on_file = None;

        std::thread::scope(|scope| {
            let reader = scope.spawn(|| far.read_exact(&mut [0; 300_000]));
            while finished.is_empty() {
                uring.poll(Nanos(1), Wait::Nap(Nanos::from_secs(10)), &bell, &mut finished);
            }
            assert!(uring.choked.is_empty(), "there is room");
            reader.join().expect("it runs").expect("it was sent");
        });
        drop((answers, choked));
    }

    /// At every turn clients ask again for what was reported at the last, and the drive ends all that it has.
    #[test]
    fn drives_do_not_starve_beside_a_backlog() {
        let (mut ended, mut at_drive) = (29, 3);
        let mut most = 0;
        for _ in 0..8 {
            let reported = portion(ended, at_drive);
            assert!((1..=ended).contains(&reported));
            ended = ended - reported + at_drive;
            at_drive = reported;
            most = most.max(at_drive);
        }
        assert!(most >= 16, "a drive gets at most {most} of 32 at a time");
    }

    #[test]
    fn while_drives_have_enough_to_do_few_are_reported_at_a_time() {
        assert_eq!([portion(0, 0), portion(2, 0), portion(20, 0)], [0, 2, 20]);
        assert_eq!([portion(20, 12), portion(20, 8), portion(20, 5)], [3, 4, 10]);
    }
}
