//! What is known of a drive's health, shared by all its guards.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

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
    /// It is not done without, and waited for: whoever needs it waits.
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
    snapshot: Mutex<HealthSnapshot>,
    /// Held reads end with an error instead of waiting.
    refusing: AtomicBool,
}

impl Health {
    /// Healthy.
    pub fn new() -> Arc<Health> {
        Arc::default()
    }

    /// What is known now.
    pub fn snapshot(&self) -> HealthSnapshot {
        self.lock().clone()
    }

    /// Whoever waits for a read of a drive that is awaited gets [`IoError::Timeout`] from now on, or waits again.
    pub fn refuse_reads(&self, refuse: bool) {
        self.refusing.store(refuse, Ordering::SeqCst);
    }

    /// Whether reads that would wait are refused.
    pub fn refuses_reads(&self) -> Option<IoError> {
        self.refusing.load(Ordering::SeqCst).then_some(IoError::Timeout)
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, HealthSnapshot> {
        self.snapshot.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
