//! What is known of a drive's health, shared by all its guards.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tier0_units::Nanos;
use tier0_world::IoError;

/// How a drive stands with its guards.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum Standing {
    /// It answers.
    #[default]
    Healthy,
    /// Some command fails or takes long; it is being tried again.
    Suspect,
    /// It is not done without, and waited for: commands that need it wait.
    Awaited,
    /// It was given up.
    Lost,
}

/// Counters and reasons.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct HealthSnapshot {
    /// How it stands.
    pub standing: Standing,
    /// Since when, in the time of the world that noticed.
    pub since: Nanos,
    /// The last error, as a sentence: the command, its address and what the system said.
    pub last_error: Option<String>,
    /// Reads that failed, tries included.
    pub read_errors: u64,
    /// Writes and discards that failed, tries included.
    pub write_errors: u64,
    /// Flushes that failed.
    pub flush_errors: u64,
    /// Commands that took longer than a sixth of their patience.
    pub slow: u64,
    /// Commands that were tried again and then succeeded.
    pub retried: u64,
    /// Times that it may have lost its volatile cache.
    pub outages: u64,
    /// Whether writes are held because its backing store is full.
    pub no_space: bool,
}

/// The health of one drive, shared by the guards of all shards.
#[derive(Debug, Default)]
pub struct Health {
    account: Mutex<Account>,
    outages: AtomicU64,
    /// The newest outage that some guard has made good: since then there may be changes that another outage takes.
    made_good: AtomicU64,
    lost: AtomicBool,
    /// Writes and discards that had not ended when the drive was lost, and still may change it, and those that recover it.
    strays: AtomicU64,
    /// Held reads end with an error instead of waiting.
    refusing: AtomicBool,
}

#[derive(Debug, Default)]
struct Account {
    snapshot: HealthSnapshot,
    /// Guards that say [`Standing::Suspect`] and [`Standing::Awaited`].
    suspecting: u32,
    awaiting: u32,
    /// Writes that are held for want of space.
    without_space: u32,
}

/// What failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Failed {
    Read,
    Write,
    Flush,
}

impl Health {
    /// Healthy.
    pub fn new() -> Arc<Health> {
        Arc::default()
    }

    /// What is known now.
    pub fn snapshot(&self) -> HealthSnapshot {
        HealthSnapshot { outages: self.outages(), ..self.lock().snapshot.clone() }
    }

    /// Reads of a drive that is awaited end with [`IoError::Timeout`] from now on, or wait again.
    pub fn refuse_reads(&self, refuse: bool) {
        self.refusing.store(refuse, Ordering::SeqCst);
    }

    /// Whether reads that would wait are refused.
    pub fn refuses_reads(&self) -> Option<IoError> {
        self.refusing.load(Ordering::Relaxed).then_some(IoError::Timeout)
    }

    /// Whether it was given up.
    pub fn is_lost(&self) -> bool {
        self.lost.load(Ordering::Relaxed)
    }

    /// It was given up: every guard fails every command on it.
    pub fn lose(&self, now: Nanos) {
        self.lost.store(true, Ordering::SeqCst);
        self.lock().settle(true, now);
    }

    /// Writes and discards that had not ended when it was given up, and have not ended since: each may still change what it
    /// holds.
    pub fn strays(&self) -> u64 {
        self.strays.load(Ordering::SeqCst)
    }

    pub(super) fn count_stray(&self) {
        self.strays.fetch_add(1, Ordering::SeqCst);
    }

    pub(super) fn stray_ended(&self) {
        self.strays.fetch_sub(1, Ordering::SeqCst);
    }

    /// How often it may have lost what no flush had covered.
    pub(super) fn outages(&self) -> u64 {
        self.outages.load(Ordering::SeqCst)
    }

    /// It may have lost what no flush had covered.
    pub(super) fn count_outage(&self) {
        self.outages.fetch_add(1, Ordering::SeqCst);
    }

    /// A guard has made good the outage of this number.
    pub(super) fn make_good(&self, outage: u64) {
        self.made_good.fetch_max(outage, Ordering::SeqCst);
    }

    /// A guard that is making good an outage finds the drive away. That is another outage if some guard has had the drive
    /// back meanwhile, and the same one otherwise.
    pub(super) fn count_outage_again(&self) {
        let known = self.outages();
        if self.made_good.load(Ordering::SeqCst) >= known {
            // If another guard was faster, it has counted.
            let _ = self.outages.compare_exchange(known, known + 1, Ordering::SeqCst, Ordering::SeqCst);
        }
    }

    /// A guard thinks otherwise than before.
    pub(super) fn change(&self, from: Standing, to: Standing, now: Nanos) {
        let mut account = self.lock();
        *account.guards(from) -= u32::from(matches!(from, Standing::Suspect | Standing::Awaited));
        *account.guards(to) += u32::from(matches!(to, Standing::Suspect | Standing::Awaited));
        account.settle(self.is_lost(), now);
    }

    /// A try failed.
    pub(super) fn count_failure(&self, what: Failed, sentence: String) {
        let mut account = self.lock();
        let snapshot = &mut account.snapshot;
        *match what {
            Failed::Read => &mut snapshot.read_errors,
            Failed::Write => &mut snapshot.write_errors,
            Failed::Flush => &mut snapshot.flush_errors,
        } += 1;
        snapshot.last_error = Some(sentence);
    }

    /// Something is wrong that is no command's failure.
    pub(super) fn note(&self, sentence: String) {
        self.lock().snapshot.last_error = Some(sentence);
    }

    pub(super) fn count_slow(&self, sentence: String) {
        let mut account = self.lock();
        account.snapshot.slow += 1;
        account.snapshot.last_error = Some(sentence);
    }

    pub(super) fn count_retried(&self) {
        self.lock().snapshot.retried += 1;
    }

    /// A write finds no space; status says so until it has ended.
    pub(super) fn lack_space(self: &Arc<Self>) -> LacksSpace {
        self.lock().count_without_space(1);
        LacksSpace(self.clone())
    }

    fn lock(&self) -> MutexGuard<'_, Account> {
        self.account.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A write for which there was no space, until it ends.
pub(super) struct LacksSpace(Arc<Health>);

impl Drop for LacksSpace {
    fn drop(&mut self) {
        self.0.lock().count_without_space(-1);
    }
}

impl Account {
    fn count_without_space(&mut self, change: i32) {
        self.without_space = self.without_space.saturating_add_signed(change);
        self.snapshot.no_space = self.without_space > 0;
    }

    fn guards(&mut self, standing: Standing) -> &mut u32 {
        match standing {
            Standing::Awaited => &mut self.awaiting,
            _ => &mut self.suspecting,
        }
    }

    fn settle(&mut self, lost: bool, now: Nanos) {
        let standing = match () {
            () if lost => Standing::Lost,
            () if self.awaiting > 0 => Standing::Awaited,
            () if self.suspecting > 0 => Standing::Suspect,
            () => Standing::Healthy,
        };
        if standing != self.snapshot.standing {
            self.snapshot.standing = standing;
            self.snapshot.since = now;
        }
    }
}
