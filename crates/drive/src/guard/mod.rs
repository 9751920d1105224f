//! The guard of a drive: no layer above sees a failure that may pass (decision 0008).
//!
//! A [`Guard`] stands around a drive in one shard. It retries what failed, waits for what hangs, and asks its
//! [`Arbiter`] before it gives a drive up. Only after a verdict of [`Verdict::Lost`] commands end with
//! [`IoError::Gone`]. Without an arbiter, before a pool is known, what fails for longer than its patience ends with its
//! error.
//!
//! | file | concept |
//! |---|---|
//! | `class` | what an error means |
//! | `commands` | the commands on their way, and what becomes of one that failed |
//! | `watch` | commands that take long |
//! | `outage` | a drive that is away, or lost its cache: the gate is closed until all is written again |
//! | `retained` | what the drive acknowledged and no flush has covered |
//! | `health` | what all guards of a drive know of it |
//!
//! Invariants: a command is below at most once at a time, so none that hangs can overtake its own second try; what was
//! acknowledged is on the drive, or is written again before any flush after it is acknowledged; while all is well a
//! command costs an entry in a table and no task.

mod class;
mod commands;
mod health;
mod outage;
mod retained;
#[cfg(test)]
mod tests;
mod watch;

use std::cell::{Cell, RefCell};
use std::future::Future;
use std::pin::Pin;
use std::rc::Rc;
use std::sync::Arc;

use tier0_stats::{IoRecorder, IoStats};
use tier0_units::{Nanos, SectorCount};
use tier0_world::{BufMut, Completion, IoError, Payload, PlantedBug, World, planted};

use self::outage::Stray;
use crate::{Command, Drive, DriveHandle, DriveInfo};
use commands::{Commands, Held};
pub use health::{Health, HealthSnapshot, Standing};
use retained::{Change, Retained};

/// What becomes of a drive that fails.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// The array cannot do without it now: go on trying, and ask again later.
    Wait,
    /// It is lost, and all others know: every command on it fails from now on.
    Lost,
}

/// Decides whether a drive is lost.
pub trait Arbiter {
    /// Arbitrates the drive, which failed with `error` for longer than its patience. Ends when the verdict counts: if it is
    /// lost, every other drive remembers it.
    fn arbitrate(&self, error: IoError) -> Pin<Box<dyn Future<Output = Verdict>>>;

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
        Patience { errors: Nanos::from_secs(3), answer: Nanos::from_secs(30), again: Nanos::from_secs(2) }
    }
}

impl Patience {
    /// From this age on a command makes its drive suspect.
    fn slow(&self) -> Nanos {
        Nanos(self.answer.0 / 6)
    }
}

/// A drive with a guard in front of it; clones are the same.
#[derive(Clone)]
pub struct Guard(Rc<Inner>);

struct Inner {
    drive: DriveHandle,
    patience: Patience,
    health: Arc<Health>,
    arbiter: RefCell<Option<Rc<dyn Arbiter>>>,
    commands: RefCell<Commands>,
    retained: RefCell<Retained>,
    /// Commands that wait for the gate, in the order in which they came.
    waiting: RefCell<Vec<Held>>,
    /// Whether the drive is away, or may have lost its cache: nothing passes.
    is_closed: Cell<bool>,
    /// The outages of the drive that this guard has made good.
    outages_seen: Cell<u64>,
    /// What this guard thinks of the drive.
    standing: Cell<Standing>,
    /// Troubles by which it thinks so.
    troubles: Cell<Troubles>,
    /// A task asks for a verdict.
    is_judging: Cell<bool>,
    /// Whether a task looks at the age of commands.
    is_watched: Cell<bool>,
    /// Without an arbiter, patience has run out once: what fails is tried once more and no longer.
    is_tired: Cell<bool>,
    /// A flush of the guard's own is on its way.
    is_flushing: Cell<bool>,
    /// When the newest command was given to the drive that it carried out.
    answered: Cell<Nanos>,
    /// What the drive did for this shard.
    stats: IoRecorder,
}

/// What is wrong at the moment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Troubles {
    /// Commands that are being tried again.
    retries: u32,
    /// The gate is closed.
    outage: bool,
    /// Some command is slow.
    slow: bool,
    /// The last verdict was to wait.
    awaited: bool,
}

impl Guard {
    /// A guard without an arbiter: what fails for longer than its patience ends with its error. `health` is shared by the
    /// guards that other shards have of the same drive.
    pub fn new(drive: DriveHandle, patience: Patience, health: Arc<Health>) -> Guard {
        let outages_seen = Cell::new(health.outages());
        Guard(Rc::new(Inner {
            drive,
            patience,
            health,
            arbiter: RefCell::default(),
            commands: RefCell::default(),
            retained: RefCell::default(),
            waiting: RefCell::default(),
            is_closed: Cell::default(),
            outages_seen,
            standing: Cell::default(),
            troubles: Cell::default(),
            is_judging: Cell::default(),
            is_watched: Cell::default(),
            is_tired: Cell::default(),
            is_flushing: Cell::default(),
            answered: Cell::default(),
            stats: IoRecorder::default(),
        }))
    }

    /// A guard of the same drive for another shard, without an arbiter.
    pub fn another(&self) -> Guard {
        let Inner { drive, patience, health, .. } = &*self.0;
        Guard::new(drive.another().unwrap_or_else(|| drive.clone()), *patience, health.clone())
    }

    /// The guarded drive. [`Drive::guard`] leads from there back to the guard.
    pub fn handle(&self) -> DriveHandle {
        DriveHandle::new(self.clone())
    }

    /// From now on `arbiter` decides whether the drive is lost.
    pub fn obey(&self, arbiter: Rc<dyn Arbiter>) {
        *self.0.arbiter.borrow_mut() = Some(arbiter);
    }

    /// What is known of the drive.
    pub fn health(&self) -> &Arc<Health> {
        &self.0.health
    }

    /// The drive is lost by a decision that this guard was not asked for: whatever waits for it fails now.
    pub fn give_up(&self) {
        self.0.die();
    }

    /// A number that no other guard has as long as this one is there.
    pub fn id(&self) -> usize {
        Rc::as_ptr(&self.0).addr()
    }

    /// What the drive did for this guard's shard: each try counts, in time in which the runtime turned.
    pub fn stats(&self) -> IoStats {
        self.0.stats.snapshot()
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

    fn is_cut_short(&self) -> bool {
        self.0.drive.is_cut_short()
    }

    fn stored(&self) -> SectorCount {
        self.0.drive.stored()
    }

    fn was_cut(&self) -> bool {
        self.0.drive.was_cut()
    }

    fn gains_by_discard(&self) -> bool {
        self.0.drive.gains_by_discard()
    }

    fn close(&self) {
        self.0.health.lose(self.0.world().now());
        self.0.die();
        self.0.drive.close();
    }

    fn submit(&self, command: Command, completion: Completion) {
        if let Command::Discard { .. } = command {
            return self.0.discard(command, completion);
        }
        let held = Held::new(command, completion);
        if self.0.health.is_lost() {
            return held.fail(IoError::Gone);
        }
        if self.0.is_closed.get() {
            return self.0.hold(held);
        }
        if self.0.has_to_make_good() {
            return self.0.shut(held, IoError::Gone);
        }
        self.0.pass(held);
    }
}

impl Inner {
    fn world(&self) -> &World {
        self.drive.world()
    }

    /// Gives the drive a discard past the table, and ends it when the drive does, as the drive does. It is not tried again, not
    /// kept for after an outage, and says nothing of the drive: what it would free costs space alone, and a discard that came
    /// late would meet what was written since. While the drive is away it fails at once.
    fn discard(self: &Rc<Self>, command: Command, completion: Completion) {
        if self.health.is_lost() {
            completion.complete(Err(IoError::Gone), Payload::None);
        } else if self.is_closed.get() || self.has_to_make_good() {
            self.discard_again();
            completion.complete(Err(IoError::Timeout), Payload::None);
        } else {
            self.retain_discard(&command);
            self.drive.submit(command, Stray::counted(&self.health, completion));
        }
    }

    /// Keeps what a discard leaves until a flush covers it, where that is to be done wrong.
    fn retain_discard(&self, command: &Command) {
        if planted(PlantedBug::DiscardReplayed) && self.drive.info().volatile_cache {
            let (lba, sectors) = command.range();
            let buf = BufMut::zeroed(sectors as u32, self.world().width()).freeze();
            self.retained.borrow_mut().add(Change { lba, buf });
        }
    }

    /// Makes good an outage when a discard comes, where discards are kept.
    fn discard_again(self: &Rc<Self>) {
        if planted(PlantedBug::DiscardReplayed) {
            self.flush_by_itself();
        }
    }

    /// Whether another guard saw an outage, after which changes of this one may be missing.
    fn has_to_make_good(&self) -> bool {
        !planted(PlantedBug::ReplayHereOnly)
            && self.health.outages() != self.outages_seen.get()
            && !self.retained.borrow().is_empty()
    }

    /// Something has become wrong, or right.
    fn trouble(&self, change: impl FnOnce(&mut Troubles)) {
        let mut troubles = self.troubles.get();
        change(&mut troubles);
        if troubles.retries == 0 && !troubles.outage && !troubles.slow {
            troubles.awaited = false;
        }
        self.troubles.set(troubles);
        let standing = match troubles {
            Troubles { retries: 0, outage: false, slow: false, .. } => Standing::Healthy,
            Troubles { awaited: true, .. } => Standing::Awaited,
            _ => Standing::Suspect,
        };
        let before = self.standing.replace(standing);
        if before != standing {
            self.health.change(before, standing, self.world().now());
        }
    }

    /// Asks for a verdict. With [`Verdict::Lost`] everything has failed when it returns.
    async fn ask(self: &Rc<Self>, error: IoError) -> Verdict {
        let arbiter = self.arbiter.borrow().clone();
        let Some(arbiter) = arbiter else { return Verdict::Wait };
        if self.health.is_lost() {
            self.die();
            return Verdict::Lost;
        }
        if self.is_judging.replace(true) {
            // Its answer is that of all commands which wait.
            return Verdict::Wait;
        }
        let verdict = arbiter.arbitrate(class::plain(error)).await;
        self.is_judging.set(false);
        match verdict {
            Verdict::Lost => {
                self.health.lose(self.world().now());
                self.die();
            }
            Verdict::Wait => self.trouble(|troubles| troubles.awaited = true),
        }
        verdict
    }

    /// The drive is lost: whatever waits for it fails, whether it is below or not.
    fn die(&self) {
        let waiting = std::mem::take(&mut *self.waiting.borrow_mut());
        waiting.into_iter().for_each(|held| held.fail(IoError::Gone));
        self.give_up_all();
    }
}
