//! What is counted while users work: ends of transactions by kind, response times, refusals; a row for each second.

use std::sync::Mutex;
use std::time::Duration;

use hdrhistogram::Histogram;
use serde::{Deserialize, Serialize};

use super::script::Outcome;

/// Significant decimal digits of a response time.
const DIGITS: u8 = 3;

/// Why the server refused a transaction, which was then repeated.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Refusal {
    /// SQLSTATE 40001.
    Serialization,
    /// SQLSTATE 40P01.
    Deadlock,
}

/// Transactions of a kind that ended in the measured time.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct KindReport {
    /// The name of the kind.
    pub kind: String,
    /// Those that were committed.
    pub committed: u64,
    /// Those that were rolled back because the specification wants it.
    pub rolled_back: u64,
    /// How often the server refused one because others had changed its rows.
    pub serialization_failures: u64,
    /// How often it refused one because of a deadlock.
    pub deadlocks: u64,
    /// The share of all transactions that ended, 0 to 1.
    pub share: f64,
    /// Response times in milliseconds, from the start (with a rate: from the arrival) to the answer to the commit, repetitions
    /// included; none where none ended.
    pub response_ms: Option<Quantiles>,
}

/// A distribution of response times, milliseconds.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Quantiles {
    /// The mean.
    pub mean: f64,
    /// The median.
    pub p50: f64,
    /// The 95th percentile.
    pub p95: f64,
    /// The 99th percentile.
    pub p99: f64,
    /// The longest.
    pub max: f64,
}

/// A second of a run.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Second {
    /// The end of the second, from the beginning of the measured time.
    pub second: f64,
    /// Transactions of the load's own measure that were committed: New-Orders, trade results, or queries.
    #[serde(alias = "new_orders")]
    pub headline: u64,
    /// All transactions that were committed.
    pub commits: u64,
    /// Refusals by the server.
    pub retries: u64,
    /// 95 % of the response times were no longer, milliseconds; none where nothing ended.
    pub p95_ms: Option<f64>,
    /// The share of this machine's processors that were busy, 0 to 1; none where the server is elsewhere.
    pub busy: Option<f64>,
}

/// All users' counts.
pub(crate) struct Tally {
    names: Vec<&'static str>,
    /// The place of the kind that is the load's own measure; none: all of them are.
    headline: Option<usize>,
    users: usize,
    counts: Mutex<Counts>,
}

struct Counts {
    kinds: Vec<KindCounts>,
    missed: u64,
    cancelled: u64,
    by_user: Vec<u64>,
    /// Of the second that goes on.
    second: SecondCounts,
}

struct KindCounts {
    committed: u64,
    rolled_back: u64,
    serialization_failures: u64,
    deadlocks: u64,
    response_us: Histogram<u64>,
}

struct SecondCounts {
    headline: u64,
    commits: u64,
    retries: u64,
    response_us: Histogram<u64>,
}

fn histogram() -> Histogram<u64> {
    let mut fresh = Histogram::new(DIGITS).expect("three digits are allowed");
    fresh.auto(true);
    fresh
}

impl SecondCounts {
    fn new() -> SecondCounts {
        SecondCounts { headline: 0, commits: 0, retries: 0, response_us: histogram() }
    }
}

impl Counts {
    fn new(kinds: usize, users: usize) -> Counts {
        let kind = |_| KindCounts {
            committed: 0,
            rolled_back: 0,
            serialization_failures: 0,
            deadlocks: 0,
            response_us: histogram(),
        };
        Counts {
            kinds: (0..kinds).map(kind).collect(),
            missed: 0,
            cancelled: 0,
            by_user: vec![0; users],
            second: SecondCounts::new(),
        }
    }
}

impl Tally {
    /// Nothing yet, of so many users and these kinds.
    pub(crate) fn new(names: Vec<&'static str>, headline: Option<usize>, users: u32) -> Tally {
        let counts = Mutex::new(Counts::new(names.len(), users as usize));
        Tally { names, headline, users: users as usize, counts }
    }

    /// Forgets everything: the measured time begins.
    pub(crate) fn restart(&self) {
        *self.counts() = Counts::new(self.names.len(), self.users);
    }

    /// A transaction of a user has ended.
    pub(crate) fn ended(&self, user: u64, kind: usize, outcome: Outcome, response: Duration) {
        let mut counts = self.counts();
        let counts = &mut *counts;
        counts.by_user[user as usize] += 1;
        let own = &mut counts.kinds[kind];
        let response_us = response.as_micros() as u64;
        match outcome {
            Outcome::RolledBack => own.rolled_back += 1,
            Outcome::Committed { missed } => {
                own.committed += 1;
                counts.missed += u64::from(missed);
                counts.second.commits += 1;
                counts.second.headline += u64::from(self.headline.is_none_or(|own| own == kind));
            }
        }
        for histogram in [&mut own.response_us, &mut counts.second.response_us] {
            histogram.record(response_us).expect("it grows to what it is given");
        }
    }

    /// A transaction was cancelled because the run has ended.
    pub(crate) fn cancelled(&self) {
        self.counts().cancelled += 1;
    }

    /// The server has refused a transaction.
    pub(crate) fn refused(&self, kind: usize, refusal: Refusal) {
        let mut counts = self.counts();
        let own = &mut counts.kinds[kind];
        match refusal {
            Refusal::Serialization => own.serialization_failures += 1,
            Refusal::Deadlock => own.deadlocks += 1,
        }
        counts.second.retries += 1;
    }

    /// Ends the second that goes on.
    pub(crate) fn take_second(&self, second: f64, busy: Option<f64>) -> Second {
        let taken = std::mem::replace(&mut self.counts().second, SecondCounts::new());
        let p95_ms = (!taken.response_us.is_empty()).then(|| ms(taken.response_us.value_at_quantile(0.95)));
        Second {
            second,
            headline: taken.headline,
            commits: taken.commits,
            retries: taken.retries,
            p95_ms,
            busy,
        }
    }

    /// What it has come to, by kind.
    pub(crate) fn kinds(&self) -> Vec<KindReport> {
        let counts = self.counts();
        let ended = |own: &KindCounts| own.committed + own.rolled_back;
        let all: u64 = counts.kinds.iter().map(ended).sum();
        let of = |(name, own): (&&str, &KindCounts)| KindReport {
            kind: (*name).to_owned(),
            committed: own.committed,
            rolled_back: own.rolled_back,
            serialization_failures: own.serialization_failures,
            deadlocks: own.deadlocks,
            share: ended(own) as f64 / all.max(1) as f64,
            response_ms: quantiles(&own.response_us),
        };
        self.names.iter().zip(&counts.kinds).map(of).collect()
    }

    /// Response times of all kinds.
    pub(crate) fn responses(&self) -> Option<Quantiles> {
        let mut all = histogram();
        for own in &self.counts().kinds {
            all.add(&own.response_us).expect("it grows to what it is given");
        }
        quantiles(&all)
    }

    /// What transactions did not find.
    pub(crate) fn missed(&self) -> u64 {
        self.counts().missed
    }

    /// Transactions that were cancelled at the end.
    pub(crate) fn count_cancelled(&self) -> u64 {
        self.counts().cancelled
    }

    /// Transactions that ended, by user.
    pub(crate) fn by_user(&self) -> Vec<u64> {
        self.counts().by_user.clone()
    }

    fn counts(&self) -> std::sync::MutexGuard<'_, Counts> {
        self.counts.lock().expect("no user panics while it counts")
    }
}

fn ms(us: u64) -> f64 {
    us as f64 / 1000.0
}

fn quantiles(response_us: &Histogram<u64>) -> Option<Quantiles> {
    let at = |share: f64| ms(response_us.value_at_quantile(share));
    (!response_us.is_empty()).then(|| Quantiles {
        mean: response_us.mean() / 1000.0,
        p50: at(0.5),
        p95: at(0.95),
        p99: at(0.99),
        max: ms(response_us.max()),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_ends_is_counted_by_kind_and_by_second() {
        let tally = Tally::new(vec!["new-order", "payment", "delivery"], Some(0), 2);
        let missed = |missed| Outcome::Committed { missed };
        tally.ended(0, 1, missed(0), Duration::from_secs(9));
        tally.restart();
        for ms in 1..=100 {
            tally.ended(0, 0, missed(0), Duration::from_millis(ms));
        }
        tally.ended(1, 0, Outcome::RolledBack, Duration::from_millis(1));
        tally.ended(1, 2, missed(3), Duration::from_millis(500));
        tally.refused(0, Refusal::Serialization);
        tally.refused(2, Refusal::Deadlock);
        let second = tally.take_second(1.0, None);
        assert_eq!((second.headline, second.commits, second.retries), (100, 101, 2));
        assert_eq!(tally.take_second(2.0, Some(0.5)).p95_ms, None);
        let kinds = tally.kinds();
        let new_order = &kinds[0];
        assert_eq!(
            (new_order.committed, new_order.rolled_back, new_order.serialization_failures),
            (100, 1, 1)
        );
        let response = new_order.response_ms.expect("some ended");
        assert!((response.p95 - 95.0).abs() < 1.1 && response.max >= 100.0, "{response:?}");
        assert_eq!((kinds[1].committed, kinds[1].response_ms), (0, None));
        assert_eq!((kinds[2].deadlocks, tally.missed(), tally.count_cancelled()), (1, 3, 0));
        assert_eq!(tally.by_user(), [100, 2]);
        let all = tally.responses().expect("some ended");
        assert!((all.max - 500.0).abs() < 1.0 && (all.p50 - 50.0).abs() < 1.6, "{all:?}");
        assert!((new_order.share - 101.0 / 102.0).abs() < 1e-9);
    }
}
