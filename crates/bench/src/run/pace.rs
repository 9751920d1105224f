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
    /// The one that was taken last; none before the first user begins.
    last: Option<Instant>,
    random: Random,
}

impl Pace {
    pub(crate) fn new(think: Think, rate: Option<f64>, seed: u64) -> Pace {
        let arrivals = rate.map(|rate| {
            let random = Random::new(seed, u64::MAX);
            Mutex::new(Arrivals { mean_s: 1.0 / rate, last: None, random })
        });
        Pace { think, arrivals }
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
    fn take(&mut self) -> Instant {
        let gap = self.random.exponential(self.mean_s);
        let next = self.last.unwrap_or_else(Instant::now) + Duration::from_secs_f64(gap);
        self.last = Some(next);
        next
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What arrives while all users are busy counts from its arrival, and the rate is kept on average.
    #[test]
    fn arrivals_do_not_wait_for_users() {
        let mut arrivals = Arrivals { mean_s: 0.01, last: None, random: Random::new(1, 1) };
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
}
