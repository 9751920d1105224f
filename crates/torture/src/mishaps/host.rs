//! A host that writes, reads and verifies in a thread of its own, while a story goes on.

use std::cell::RefCell;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::thread::JoinHandle;
use std::time::Duration;

use crate::TortureError;
use crate::client::{Orders, check, load_until};
use crate::clock::{pause, wall_s};
use crate::ledger::Ledger;

/// How often a host is looked at.
const LOOK: Duration = Duration::from_millis(5);

/// A host of one volume, and what it knows of it.
pub(crate) struct Host {
    uri: String,
    /// Nothing while a load has it.
    ledger: Option<Ledger>,
    load: Option<Load>,
    /// Loads so far: each draws other requests.
    loads: u64,
}

struct Load {
    orders: Arc<Orders>,
    thread: JoinHandle<(Ledger, Result<(), TortureError>)>,
}

/// What a load has seen.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Seen {
    /// Acknowledged changes.
    pub(crate) acknowledged: u64,
    /// Requests answered with an error.
    pub(crate) errors: u64,
    /// The longest request, in seconds.
    pub(crate) longest_s: f64,
}

impl Host {
    /// Of a new volume of `sectors`, all zeros, which keeps what it has acknowledged.
    pub(crate) fn new(uri: String, sectors: u64) -> Host {
        Host { uri, ledger: Some(Ledger::new(sectors, 18, true)), load: None, loads: 0 }
    }

    /// Begins a load; `errors_pass` where requests may fail.
    #[expect(clippy::disallowed_methods, reason = "a host is another machine; it lives in the real world")]
    pub(crate) fn begin(&mut self, errors_pass: bool) {
        let ledger = self.ledger.take().expect("one load at a time");
        self.loads += 1;
        let (orders, uri, seed) = (Arc::new(Orders::default()), self.uri.clone(), self.loads);
        orders.errors_pass.store(errors_pass, Relaxed);
        let given = orders.clone();
        let thread = std::thread::spawn(move || {
            let ledger = Rc::new(RefCell::new(ledger));
            let done = load_until(&uri, &ledger, seed, given);
            let ledger = Rc::into_inner(ledger).expect("the load has ended").into_inner();
            (ledger, done)
        });
        self.load = Some(Load { orders, thread });
    }

    /// What the load has seen so far.
    pub(crate) fn seen(&self) -> Seen {
        let orders = &self.load.as_ref().expect("a load runs").orders;
        Seen {
            acknowledged: orders.acknowledged.load(Relaxed),
            errors: orders.errors.load(Relaxed),
            longest_s: orders.longest_ns.load(Relaxed) as f64 / 1e9,
        }
    }

    /// Waits until `count` more changes are acknowledged; fails after `seconds`.
    pub(crate) fn goes_on(&self, count: u64, seconds: u32) -> Result<(), TortureError> {
        let (before, until) = (self.seen().acknowledged, wall_s() + f64::from(seconds));
        while self.seen().acknowledged < before + count {
            let ended = self.load.as_ref().is_some_and(|load| load.thread.is_finished());
            if ended || wall_s() > until {
                let (done, errors) = (self.seen().acknowledged - before, self.seen().errors);
                let why = if ended { "the load has ended" } else { "time is over" };
                return Err(TortureError::Failed(format!(
                    "only {done} of {count} writes were acknowledged in {seconds} s, {errors} failed: {why}"
                )));
            }
            pause(LOOK);
        }
        Ok(())
    }

    /// How many changes are acknowledged within `time`.
    pub(crate) fn within(&self, time: Duration) -> u64 {
        let before = self.seen().acknowledged;
        pause(time);
        self.seen().acknowledged - before
    }

    /// From now on the server may go.
    pub(crate) fn server_ends(&self) {
        if let Some(load) = &self.load {
            load.orders.ending.store(true, Relaxed);
        }
    }

    /// Ends the load; fails where a request failed or read wrong data.
    pub(crate) fn end(&mut self) -> Result<Seen, TortureError> {
        self.load.as_ref().expect("a load runs").orders.stop.store(true, Relaxed);
        self.join()
    }

    fn join(&mut self) -> Result<Seen, TortureError> {
        let mut seen = self.seen();
        let load = self.load.take().expect("a load runs");
        let orders = load.orders.clone();
        let (ledger, done) =
            load.thread.join().map_err(|_| TortureError::Failed("the host has panicked".to_owned()))?;
        self.ledger = Some(ledger);
        seen.acknowledged = orders.acknowledged.load(Relaxed);
        seen.longest_s = orders.longest_ns.load(Relaxed) as f64 / 1e9;
        done.map(|()| seen)
    }

    /// A load of so many acknowledged changes.
    pub(crate) fn writes(&mut self, count: u64) -> Result<Seen, TortureError> {
        self.begin(false);
        let went = self.goes_on(count, 60);
        let ended = self.end();
        // What the host saw says more than that it did not go on.
        let seen = ended?;
        went.map(|()| seen)
    }

    /// Reads the whole volume and judges it; ends a load before, if one runs.
    pub(crate) fn check(&mut self) -> Result<(), TortureError> {
        if self.load.is_some() {
            self.end()?;
        }
        let ledger = Rc::new(RefCell::new(self.ledger.take().expect("no load runs")));
        let judged = check(&self.uri, &ledger);
        self.ledger = Rc::into_inner(ledger).map(RefCell::into_inner);
        judged
    }
}

impl Drop for Host {
    fn drop(&mut self) {
        if let Some(load) = &self.load {
            load.orders.ending.store(true, Relaxed);
            load.orders.stop.store(true, Relaxed);
        }
    }
}
