//! Threads that do what would block: file operations where there is no io_uring.
//!
//! Every file has workers of its own, so that one drive that hangs keeps no other drive's commands waiting. They are
//! started when there is something to do and end when there is nothing for a while. The process does not wait for them:
//! one whose system call never ends does not hold up the end of the process.
//!
//! Files are told apart by their descriptors. A number is given to another file only when nothing is under way on it
//! any more, because the slot of an operation keeps its file open; then its workers are idle and serve the other.

use std::collections::{BTreeMap, VecDeque};
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd, RawFd};
use std::sync::{Arc, Condvar, Mutex, MutexGuard};
use std::time::Duration;

use super::driver::Finished;
use super::threads::Call;
use crate::IoError;

/// Workers of one file: as many as a disk has use for, few enough for an array of a hundred drives.
const WORKERS_MAX: usize = 4;
/// How long a worker without work stays.
const IDLE: Duration = Duration::from_secs(10);

/// The workers of all files of a world.
pub(super) struct Workers {
    files: BTreeMap<RawFd, Arc<File>>,
    ended: Arc<Ended>,
}

/// What was ended and is to be reported.
struct Ended {
    operations: Mutex<Finished>,
    news: OwnedFd,
}

/// What is to be done on one file.
struct File {
    queue: Mutex<Queue>,
    work: Condvar,
    ended: Arc<Ended>,
}

#[derive(Default)]
struct Queue {
    calls: VecDeque<Call>,
    workers: usize,
    idle: usize,
    is_closed: bool,
}

impl Workers {
    pub(super) fn new() -> io::Result<Workers> {
        let flags = rustix::event::EventfdFlags::NONBLOCK | rustix::event::EventfdFlags::CLOEXEC;
        let news = rustix::event::eventfd(0, flags)?;
        Ok(Workers { files: BTreeMap::new(), ended: Arc::new(Ended { operations: Mutex::default(), news }) })
    }

    /// Becomes readable when something has ended.
    pub(super) fn news(&self) -> BorrowedFd<'_> {
        self.ended.news.as_fd()
    }

    /// Has a call made. One for which no thread can be had ends with ENOMEM.
    pub(super) fn submit(&mut self, call: Call) {
        let new =
            || Arc::new(File { queue: Mutex::default(), work: Condvar::new(), ended: self.ended.clone() });
        let file = self.files.entry(call.fd).or_insert_with(new);
        let mut queue = file.queue();
        queue.calls.push_back(call);
        if queue.idle >= queue.calls.len() || queue.workers == WORKERS_MAX {
            file.work.notify_one();
            return;
        }
        queue.workers += 1;
        let worker = file.clone();
        let started = std::thread::Builder::new().name("tier0-file".into()).spawn(move || worker.run());
        if started.is_ok() {
            return;
        }
        queue.workers -= 1;
        if queue.workers == 0
            && let Some(call) = queue.calls.pop_back()
        {
            self.ended.report(&call, Err(IoError::Os(libc::ENOMEM)));
        }
    }

    /// Passes on what has ended; how many those are.
    pub(super) fn collect(&mut self, finished: &mut Finished) -> usize {
        let mut operations = self.ended.operations.lock().expect("no worker panics");
        let count = operations.len();
        finished.append(&mut operations);
        count
    }
}

impl Drop for Workers {
    fn drop(&mut self) {
        for file in self.files.values() {
            file.queue().is_closed = true;
            file.work.notify_all();
        }
    }
}

impl File {
    fn queue(&self) -> MutexGuard<'_, Queue> {
        self.queue.lock().expect("no worker panics")
    }

    /// Does what is to be done until there is nothing for a while.
    fn run(&self) {
        let mut queue = self.queue();
        loop {
            if let Some(call) = queue.calls.pop_front() {
                drop(queue);
                self.ended.report(&call, call.execute());
                queue = self.queue();
                continue;
            }
            if queue.is_closed {
                break;
            }
            queue.idle += 1;
            let (woken, waited) = self.work.wait_timeout(queue, IDLE).expect("no worker panics");
            queue = woken;
            queue.idle -= 1;
            if waited.timed_out() && queue.calls.is_empty() {
                break;
            }
        }
        queue.workers -= 1;
    }
}

impl Ended {
    fn report(&self, call: &Call, outcome: crate::completion::Outcome) {
        self.operations.lock().expect("no worker panics").push((call.slot, outcome));
        let _ = rustix::io::write(&self.news, &1u64.to_ne_bytes());
    }
}
