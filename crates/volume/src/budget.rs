//! How much a volume with ceilings may do, for all shards together.
//!
//! Every shard has the same budget and takes from it with atomic additions, so there is no arbiter, no lease and no timer,
//! and a shard that is slow keeps no other waiting. Leases would cost messages every 100 ms, and a share that one shard holds
//! and does not use would be missing in another.
//!
//! A budget is a virtual clock for each ceiling: the time at which all that was taken is paid for. Taking puts the clock on by
//! what the request costs, and tells when the request may start: when the clock is no more than the allowance ahead of the
//! time. So a request that costs more than any share starts in its turn, and those behind it wait until it is paid for. A clock
//! that has fallen behind the time is set to it: what is not used is lost, but for the allowance.
//!
//! Two shards that take at the same instant may be told the same start. Both are paid for, so the next one waits longer: a
//! ceiling is exceeded by one request for each further shard at most, and never twice in a row.
//!
//! The budget reads no clock and does not wait: the caller gives the time, and waits until the start that it gets.

use std::sync::atomic::{AtomicU64, Ordering};

use tier0_units::Nanos;

/// What may always be used late, so that timers that ring late do not lower a ceiling: in any second, 4 % and one request more
/// than it.
const ALLOWANCE_MIN: Nanos = Nanos::from_millis(40);
const SECOND_NS: u64 = 1_000_000_000;

/// What a volume may do in a second. Zero is no ceiling.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Rates {
    /// Requests.
    pub requests: u64,
    /// Bytes.
    pub bytes: u64,
    /// So much time's unused budget may be used later.
    pub burst: Nanos,
}

/// A budget that shards share.
#[derive(Debug)]
pub struct Budget {
    rates: Rates,
    requests_paid: AtomicU64,
    bytes_paid: AtomicU64,
}

impl Budget {
    /// With nothing saved at `now`.
    pub fn new(rates: Rates, now: Nanos) -> Budget {
        let paid = (now + allowance(rates)).0;
        Budget { rates, requests_paid: AtomicU64::new(paid), bytes_paid: AtomicU64::new(paid) }
    }

    /// The same, and from now on apart from this one: what a planted bug gives to each shard.
    pub fn apart(&self) -> Budget {
        let copy = |clock: &AtomicU64| AtomicU64::new(clock.load(Ordering::Relaxed));
        Budget {
            rates: self.rates,
            requests_paid: copy(&self.requests_paid),
            bytes_paid: copy(&self.bytes_paid),
        }
    }

    /// Takes what a request of so many bytes costs, and tells when it may start: at `now`, or later.
    pub fn take(&self, bytes: u64, now: Nanos) -> Nanos {
        let paid = self.requests_paid.load(Ordering::Relaxed).max(self.bytes_paid.load(Ordering::Relaxed));
        let start = Nanos(paid).saturating_sub(allowance(self.rates)).max(now);
        pay(&self.requests_paid, cost(1, self.rates.requests), start);
        pay(&self.bytes_paid, cost(bytes, self.rates.bytes), start);
        start
    }
}

impl Budget {
    /// Gives back what was taken for a request of so many bytes that does not begin after all: later ones begin sooner.
    pub fn give_back(&self, bytes: u64) {
        // Its start, which was put on by the greater of both, has put both clocks on.
        let most = cost(1, self.rates.requests).max(cost(bytes, self.rates.bytes));
        refund(&self.requests_paid, most);
        refund(&self.bytes_paid, most);
    }
}

fn refund(clock: &AtomicU64, cost: u64) {
    clock.update(Ordering::Relaxed, Ordering::Relaxed, |paid| paid.saturating_sub(cost));
}

/// How far a clock may be ahead of the time.
fn allowance(rates: Rates) -> Nanos {
    rates.burst.max(ALLOWANCE_MIN)
}

/// How long so much takes at a rate, rounded up; no time where there is no ceiling.
fn cost(amount: u64, per_second: u64) -> u64 {
    match per_second {
        0 => 0,
        rate => (u128::from(amount) * u128::from(SECOND_NS)).div_ceil(u128::from(rate)) as u64,
    }
}

fn pay(clock: &AtomicU64, cost: u64, start: Nanos) {
    let put_on = |paid: u64| paid.max(start.0).saturating_add(cost);
    clock.update(Ordering::Relaxed, Ordering::Relaxed, put_on);
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn rates(requests: u64, bytes: u64, burst_s: u64) -> Rates {
        Rates { requests, bytes, burst: Nanos::from_secs(burst_s) }
    }

    /// When requests of so many bytes start that all come at once at `now`, by second.
    fn started(budget: &Budget, count: usize, bytes: u64, now: Nanos) -> Vec<usize> {
        let mut seconds = Vec::new();
        for _ in 0..count {
            let second = ((budget.take(bytes, now) - now).0 / SECOND_NS) as usize;
            seconds.resize(seconds.len().max(second + 1), 0);
            seconds[second] += 1;
        }
        seconds
    }

    #[test]
    fn requests_start_at_the_rate_from_the_first_second_on() {
        let budget = Budget::new(rates(1000, 0, 0), Nanos::from_secs(7));
        assert_eq!(started(&budget, 3000, 8192, Nanos::from_secs(7)), [1000, 1000, 1000]);
    }

    #[test]
    fn bytes_count_where_they_are_the_lower_ceiling() {
        let budget = Budget::new(rates(1000, 4_096_000, 0), Nanos::ZERO);
        assert_eq!(started(&budget, 1500, 8192, Nanos::ZERO), [500, 500, 500]);
        let budget = Budget::new(rates(1000, 4_096_000, 0), Nanos::ZERO);
        assert_eq!(started(&budget, 2000, 512, Nanos::ZERO), [1000, 1000]);
    }

    /// Small and large requests in turn took the time of both.
    #[test]
    fn a_mix_reaches_the_ceiling_that_it_meets() {
        let budget = Budget::new(rates(1000, 10_000_000, 0), Nanos::ZERO);
        // Of 20,000 bytes in the mean, 500 a second.
        let mut last = Nanos::ZERO;
        for number in 0..2000 {
            last = budget.take(if number % 2 == 0 { 39_000 } else { 1_000 }, Nanos::ZERO);
        }
        let seconds = last.as_secs_f64();
        assert!((3.9..4.1).contains(&seconds), "{seconds}");
    }

    #[test]
    fn what_is_given_back_is_there_for_others() {
        let budget = Budget::new(rates(1000, 0, 0), Nanos::ZERO);
        (0..5000).for_each(|_| _ = budget.take(0, Nanos::ZERO));
        (0..5000).for_each(|_| budget.give_back(0));
        assert_eq!(started(&budget, 1000, 0, Nanos::ZERO), [1000]);
    }

    #[test]
    fn forty_milliseconds_are_saved_without_a_burst() {
        let budget = Budget::new(rates(1000, 0, 0), Nanos::ZERO);
        assert_eq!(started(&budget, 2040, 0, Nanos::from_secs(100)), [1040, 1000]);
    }

    #[test]
    fn a_burst_is_what_was_not_used_and_no_more() {
        let budget = Budget::new(rates(1000, 0, 2), Nanos::ZERO);
        assert_eq!(started(&budget, 2000, 0, Nanos::ZERO), [1000, 1000], "nothing is saved yet");
        let budget = Budget::new(rates(1000, 0, 2), Nanos::ZERO);
        assert_eq!(started(&budget, 3000, 0, Nanos::from_secs(1)), [2000, 1000], "a second is");
        let budget = Budget::new(rates(1000, 0, 2), Nanos::ZERO);
        assert_eq!(started(&budget, 4000, 0, Nanos::from_secs(60)), [3000, 1000], "two are");
    }

    #[test]
    fn a_request_of_more_than_a_second_starts_in_its_turn_and_is_paid_for() {
        let budget = Budget::new(rates(0, 1_000_000, 0), Nanos::ZERO);
        assert_eq!(budget.take(3_000_000, Nanos::ZERO), Nanos::ZERO);
        assert_eq!(budget.take(512, Nanos::ZERO), Nanos::from_secs(3));
        assert_eq!(budget.take(3_000_000, Nanos::from_secs(9)), Nanos::from_secs(9));
    }

    #[test]
    fn threads_that_take_at_once_get_no_more_together() {
        let budget = Budget::new(rates(1_000_000, 0, 0), Nanos::ZERO);
        let take = || (0..10_000).map(|_| budget.take(0, Nanos::ZERO)).max();
        let last = std::thread::scope(|threads| {
            let all: Vec<_> = (0..4).map(|_| threads.spawn(take)).collect();
            all.into_iter().filter_map(|one| one.join().expect("it ends")).max()
        });
        let (last, paid) = (last.expect("some"), Nanos::from_micros(40_000));
        assert!(last <= paid && last + Nanos::from_micros(10) >= paid, "{last:?}");
    }
}
