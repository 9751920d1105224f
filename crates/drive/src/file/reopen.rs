//! Opening a drive's file anew after an outage: a device that was pulled and put back is behind another descriptor.
//!
//! A thread of its own opens it, because that may take as long as the device likes. What it opens is a *candidate*: the
//! one shard that asked reads with it who the drive is, and only what was recognised is *accepted* and used by all
//! ([`Drive::accept`](crate::Drive::accept)). Another drive under the old path thus gets no command but reads.

use std::fs::File;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tier0_world::IoError;
use tier0_world::sync::oneshot;

use super::{Claims, FileMedium, OpenError, OpenFile, open_locked};

/// One opening of the file; later ones have higher numbers.
#[derive(Clone)]
pub(super) struct Opening {
    pub(super) number: u64,
    pub(super) file: Arc<OwnedFd>,
    claims: Claims,
}

/// How often the file was opened, and which of these openings counts.
pub(super) struct Openings {
    state: Mutex<State>,
    /// The number of the opening that all use, to be looked at without the lock.
    accepted: AtomicU64,
    /// Whether the file was given up.
    closed: AtomicBool,
}

struct State {
    accepted: Opening,
    candidate: Option<Opening>,
    /// Who waits for the thread that opens the file; none where there is no such thread.
    waiting: Option<Vec<oneshot::Sender<Result<(), IoError>>>>,
}

impl Opening {
    /// It alone, as the first of others.
    pub(super) fn alone(self) -> Openings {
        let accepted = Opening { number: 0, ..self };
        Openings {
            state: Mutex::new(State { accepted, candidate: None, waiting: None }),
            accepted: AtomicU64::new(0),
            closed: AtomicBool::new(false),
        }
    }
}

impl Openings {
    pub(super) fn new(file: OwnedFd, claims: Claims) -> Openings {
        Opening { number: 0, file: Arc::new(file), claims }.alone()
    }

    /// The number of the opening that all use.
    pub(super) fn accepted_number(&self) -> u64 {
        self.accepted.load(Ordering::Acquire)
    }

    /// The opening that all use.
    pub(super) fn accepted(&self) -> Opening {
        self.state().accepted.clone()
    }

    /// The newest opening, accepted or not.
    fn newest(&self) -> Opening {
        let state = self.state();
        state.candidate.as_ref().unwrap_or(&state.accepted).clone()
    }

    /// The candidate of this number is the drive that it was: all use it from now on.
    pub(super) fn accept(&self, number: u64) {
        let mut state = self.state();
        if let Some(candidate) = state.candidate.take_if(|candidate| candidate.number == number) {
            self.accepted.store(candidate.number, Ordering::Release);
            state.accepted = candidate;
        }
    }

    /// Gives up the file and its locks. What is open in its place holds nothing, and the opening of each shard lasts until that
    /// shard uses it too.
    ///
    /// # Errors
    /// The system has no descriptor left.
    pub(super) fn close(&self) -> io::Result<Opening> {
        let mut state = self.state();
        if self.closed.load(Ordering::Relaxed) {
            return Ok(state.accepted.clone());
        }
        let nothing = File::open("/dev/null")?;
        let number = state.candidate.as_ref().unwrap_or(&state.accepted).number + 1;
        state.accepted = Opening { number, file: Arc::new(nothing.into()), claims: Claims::default() };
        state.candidate = None;
        self.accepted.store(number, Ordering::Release);
        self.closed.store(true, Ordering::Relaxed);
        Ok(state.accepted.clone())
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// An opening newer than that of number `mine`, made now if need be; nothing where the file at the path is the one that
/// is open.
///
/// # Errors
/// The file is not there, smaller than it was, or cannot be opened.
pub(super) async fn newer_than(medium: Arc<FileMedium>, mine: u64) -> Result<Option<Opening>, IoError> {
    let newer = |opening: Opening| (opening.number > mine).then_some(opening);
    if let Some(opening) = newer(medium.openings.newest()) {
        return Ok(Some(opening));
    }
    let answer = ask(&medium)?;
    answer.await.unwrap_or(Err(IoError::Gone))?;
    Ok(newer(medium.openings.newest()))
}

/// Has a thread open the file, or waits with others for the one that does.
fn ask(medium: &Arc<FileMedium>) -> Result<oneshot::Receiver<Result<(), IoError>>, IoError> {
    let (reply, answer) = oneshot::channel();
    let mut state = medium.openings.state();
    if let Some(waiting) = &mut state.waiting {
        // Those that have given up need no answer.
        waiting.retain(|one| !one.is_canceled());
        waiting.push(reply);
        return Ok(answer);
    }
    let opener = medium.clone();
    let thread = std::thread::Builder::new().name("tier0-open".to_owned());
    thread.spawn(move || open(&opener)).map_err(|_| IoError::Gone)?;
    state.waiting = Some(vec![reply]);
    Ok(answer)
}

fn open(medium: &FileMedium) {
    let known = medium.openings.newest();
    let opened = reopened(medium, &known);
    let mut state = medium.openings.state();
    let result = opened.map(|opened| {
        if let Some(OpenFile { file, claims, .. }) = opened
            && !medium.openings.closed.load(Ordering::Relaxed)
        {
            let number = known.number + 1;
            state.candidate = Some(Opening { number, file: Arc::new(file.into()), claims });
        }
    });
    for one in state.waiting.take().into_iter().flatten() {
        // The shard that asked may have given up.
        let _ = one.send(result);
    }
}

/// The file at the path, if it is another one than `known`.
fn reopened(medium: &FileMedium, known: &Opening) -> Result<Option<OpenFile>, IoError> {
    let path = &medium.path;
    let there = std::fs::metadata(path).map_err(|_| IoError::Gone)?;
    let is_device = there.file_type().is_block_device();
    let is_known = rustix::fs::fstat(known.file.as_fd()).is_ok_and(|known| match is_device {
        true => known.st_rdev == there.rdev(),
        false => (known.st_dev, known.st_ino) == (there.dev(), there.ino()),
    });
    if is_known && !is_device {
        return Ok(None);
    }
    let opened = match open_locked(path, known.claims.behind.as_ref(), 1) {
        Ok(opened) => opened,
        // This process has the device, and it is there.
        Err(OpenError::Busy { .. }) if is_known => return Ok(None),
        Err(error) => {
            tracing::warn!(drive = medium.info.name, "{error}");
            return Err(IoError::Gone);
        }
    };
    if opened.sectors < medium.info.sectors || opened.block_sectors > medium.info.block_sectors {
        tracing::warn!(
            drive = medium.info.name,
            "the device at its path is now smaller, or has larger blocks"
        );
        return Err(IoError::Gone);
    }
    Ok(Some(opened))
}
