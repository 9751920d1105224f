//! When a user begins the next transaction: at once, after thinking, or when one arrives.

use std::sync::Mutex;
use std::time::Duration;

use tier0_world::Random;
use tokio::time::Instant;

use super::options::Think;
use super::script::Script;

/// The pace of all users.
pub(crate) struct Pace {
    think: Think,
    arrivals: Option<Mutex<Arrivals>>,
}

/// Transactions that arrive at a rate, exponentially apart.
struct Arrivals {
    mean_s: f64,
    seed: u64,
    random: Random,
    /// When the first user began.
    began: Option<Instant>,
    /// The one that was taken last.
    last: Option<Instant>,
    /// Those that users took: begun, or awaited.
    taken: u64,
}

/// What arrived in a time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Arrived {
    /// Transactions that arrived in it.
    pub(crate) offered: u64,
    /// Those of this time and before that no user had begun at its end.
    pub(crate) waiting: u64,
}

impl Pace {
    pub(crate) fn new(think: Think, rate: Option<f64>, seed: u64) -> Pace {
        Pace { think, arrivals: rate.map(|rate| Mutex::new(Arrivals::new(1.0 / rate, seed))) }
    }

    /// What arrived from one moment to another, which is now; none without a rate.
    pub(crate) fn arrived(&self, begins: Instant, ends: Instant) -> Option<Arrived> {
        Some(self.arrivals.as_ref()?.lock().expect("no user panics here").arrived(begins, ends))
    }

    /// Waits until a user is to begin a transaction. Gives the moment from which its response time counts: with a rate, the
    /// arrival, even if all users were busy then.
    pub(crate) async fn wait(&self, script: &impl Script, kind: usize) -> Instant {
        if let Some(arrivals) = &self.arrivals {
            let at = arrivals.lock().expect("no user panics here").take();
            tokio::time::sleep_until(at).await;
            return at;
        }
        if self.think == Think::Spec {
            tokio::time::sleep(Duration::from_secs_f64(script.keying(kind))).await;
        }
        Instant::now()
    }

    /// Thinks after a transaction.
    pub(crate) async fn think(&self, script: &impl Script, kind: usize, random: &mut Random) {
        let seconds = match self.think {
            Think::None => return,
            Think::Exponential(mean) => random.exponential(mean.as_secs_f64()),
            Think::Spec => script.thinking(kind, random),
        };
        tokio::time::sleep(Duration::from_secs_f64(seconds)).await;
    }
}

impl Arrivals {
    fn new(mean_s: f64, seed: u64) -> Arrivals {
        Arrivals { mean_s, seed, random: Random::new(seed, u64::MAX), began: None, last: None, taken: 0 }
    }

    fn take(&mut self) -> Instant {
        let began = *self.began.get_or_insert_with(Instant::now);
        let gap = self.random.exponential(self.mean_s);
        let next = self.last.unwrap_or(began) + Duration::from_secs_f64(gap);
        self.last = Some(next);
        self.taken += 1;
        next
    }

    /// The same draws are made once more, past those that busy users have not taken.
    fn arrived(&self, begins: Instant, ends: Instant) -> Arrived {
        let mut again = Arrivals { began: self.began, ..Arrivals::new(self.mean_s, self.seed) };
        let (mut due, mut offered) = (0_u64, 0);
        while self.began.is_some() {
            let at = again.take();
            if at > ends {
                break;
            }
            due += 1;
            offered += u64::from(at >= begins);
        }
        Arrived { offered, waiting: due.saturating_sub(self.taken) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What arrives while all users are busy counts from its arrival, and the rate is kept on average.
    #[test]
    fn arrivals_do_not_wait_for_users() {
        let mut arrivals = Arrivals::new(0.01, 1);
        let first = arrivals.take();
        let mut last = first;
        for _ in 0..10_000 {
            let next = arrivals.take();
            assert!(next >= last);
            last = next;
        }
        let seconds = (last - first).as_secs_f64();
        assert!((95.0..105.0).contains(&seconds), "{seconds}");
    }

    /// What no user took has arrived all the same.
    #[test]
    fn arrivals_that_busy_users_leave_are_counted() {
        let mut arrivals = Arrivals::new(0.01, 1);
        let nothing = arrivals.arrived(Instant::now(), Instant::now());
        assert_eq!(nothing, Arrived { offered: 0, waiting: 0 });
        let taken: Vec<Instant> = (0..500).map(|_| arrivals.take()).collect();
        let began = arrivals.began.expect("it began");
        // All that was due was taken.
        let in_time = arrivals.arrived(began, taken[399]);
        assert_eq!(in_time, Arrived { offered: 400, waiting: 0 });
        let late = arrivals.arrived(taken[100], began + Duration::from_secs(100));
        assert!((9_500..10_500).contains(&(late.offered + 100)), "{late:?}");
        assert_eq!(late.waiting, late.offered + 100 - 500);
    }
}
