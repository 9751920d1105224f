//! The guard of a drive: no layer above sees a failure that may pass (decision 0008).
//!
//! A [`Guard`] stands around a drive in one shard. It retries what failed, waits for what hangs, and asks its
//! [`Judge`] before it gives a drive up. Only after a verdict of [`Verdict::Lost`] commands end with
//! [`IoError::Gone`](tier0_world::IoError::Gone).
//!
//! What all guards of one drive share is its [`Health`]: its state, counters and outages, read by whoever reports.

mod health;

use std::future::Future;
use std::pin::Pin;
use std::rc::Rc;
use std::sync::Arc;

use tier0_units::Nanos;
use tier0_world::{Completion, IoError, World};

use crate::{Command, Drive, DriveHandle, DriveInfo};

pub use health::{Health, HealthSnapshot, Standing};

/// What becomes of a drive that fails.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// The array cannot do without it now: go on trying, and ask again later.
    Wait,
    /// It is lost, and all others know: every command on it fails from now on.
    Lost,
}

/// Whoever decides whether a drive is lost.
pub trait Judge {
    /// Judges the drive, which failed with `error` for longer than its patience. Ends when the verdict counts: if it is
    /// lost, every other drive remembers it.
    fn judge(&self, error: IoError) -> Pin<Box<dyn Future<Output = Verdict>>>;

    /// Whether `drive`, which was away, is still the drive it was: reads its superblock. The sentence says why not.
    fn recognise(&self, drive: DriveHandle) -> Pin<Box<dyn Future<Output = Result<(), String>>>>;
}

/// How long a guard waits for what.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Patience {
    /// How long errors are tried again before a verdict is asked for.
    pub errors: Nanos,
    /// How long a command may take, in time in which the runtime turned, before a verdict is asked for.
    pub answer: Nanos,
    /// After a verdict to wait, how long until the next one is asked for.
    pub again: Nanos,
}

impl Default for Patience {
    /// 3 s, 30 s and 2 s. 30 s is what the Linux SCSI layer waits for a command, so that the kernel's own recovery of a
    /// real device has had its turn.
    fn default() -> Patience {
        Patience {
            errors: Nanos::from_secs(3),
            answer: Nanos::from_secs(30),
            again: Nanos::from_secs(2),
        }
    }
}

/// A drive with a guard in front of it; clones are the same.
#[derive(Clone)]
pub struct Guard(Rc<Inner>);

struct Inner {
    drive: DriveHandle,
    health: Arc<Health>,
}

impl Guard {
    /// A guard without a judge: what fails for longer than its patience ends with its error. `health` is shared by the
    /// guards that other shards have of the same drive.
    pub fn new(drive: DriveHandle, patience: Patience, health: Arc<Health>) -> Guard {
        let _ = patience;
        Guard(Rc::new(Inner { drive, health }))
    }

    /// The guarded drive. [`Drive::guard`] leads from there back to the guard.
    pub fn handle(&self) -> DriveHandle {
        DriveHandle::new(self.clone())
    }

    /// From now on `judge` decides whether the drive is lost.
    pub fn obey(&self, judge: Rc<dyn Judge>) {
        let _ = judge;
    }

    /// What is known of the drive.
    pub fn health(&self) -> &Arc<Health> {
        &self.0.health
    }

    /// The drive itself, past the guard: for probes.
    pub fn bare(&self) -> &DriveHandle {
        &self.0.drive
    }
}

impl Drive for Guard {
    fn info(&self) -> &DriveInfo {
        self.0.drive.info()
    }

    fn world(&self) -> &World {
        self.0.drive.world()
    }

    fn guard(&self) -> Option<&Guard> {
        Some(self)
    }

    fn submit(&self, command: Command, completion: Completion) {
        self.0.drive.submit(command, completion);
    }
}
