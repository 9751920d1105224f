//! Many seeds on all cores, each in a world of its own.

use std::cell::RefCell;
use std::ops::Range;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, Once, PoisonError};

use crate::config::SimConfig;
use crate::coverage::Coverage;
use crate::failure::Failure;
use crate::run::{RunReport, run};
use crate::system::System;

/// What a sweep tells.
#[derive(Clone, Debug, Default)]
pub struct SweepReport {
    /// Runs that ended, failed ones included.
    pub runs: u64,
    /// What they reached together.
    pub coverage: Coverage,
    /// Those that failed, by seed.
    pub failures: Vec<Failure>,
}

thread_local! {
    /// The message of a panic, while one is expected on this thread.
    static CAUGHT: RefCell<Option<Option<String>>> = const { RefCell::new(None) };
}

/// Runs `one`, and makes a failure of its panic. In a build that aborts on panics the process ends instead, with the
/// panic's own message.
///
/// The failure says how to replay a seed that draws its mixture; a caller that runs something else says so itself.
pub fn catching(
    seed: u64,
    one: impl FnOnce() -> Result<RunReport, Box<Failure>>,
) -> Result<RunReport, Box<Failure>> {
    static HOOK: Once = Once::new();
    HOOK.call_once(|| {
        let usual = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |info| {
            let kept = CAUGHT.with_borrow_mut(|caught| match caught {
                Some(message) => {
                    // The first panic is the cause; others come from unwinding.
                    message.get_or_insert_with(|| info.to_string().replace('\n', " "));
                    true
                }
                None => false,
            });
            if !kept || cfg!(panic = "abort") {
                usual(info);
            }
        }));
    });
    let outer = CAUGHT.replace(Some(None));
    let result = catch_unwind(AssertUnwindSafe(one));
    let message = CAUGHT.replace(outer).flatten();
    result.unwrap_or_else(|_| {
        let message = message.unwrap_or_else(|| "a panic without a message".to_owned());
        Err(Box::new(Failure::of_seed(seed, message)))
    })
}

/// Runs a system as [`run`] does, and makes a failure of a panic as [`catching`] does; it says how to replay the run.
pub fn run_caught<S: System>(system: &S, config: &SimConfig) -> Result<RunReport, Box<Failure>> {
    catching(config.seed, || run(system, config))
        .map_err(|failure| Box::new(Failure { replay: config.command(), ..*failure }))
}

/// Runs `one` for each of `seeds` on `threads` threads, and stops after `failures_max` failures. `progress` is told after
/// each run how many have ended.
pub fn sweep(
    seeds: Range<u64>,
    threads: usize,
    failures_max: usize,
    one: impl Fn(u64) -> Result<RunReport, Box<Failure>> + Sync,
    progress: impl Fn(u64) + Sync,
) -> SweepReport {
    let next = AtomicU64::new(seeds.start);
    let stop = AtomicBool::new(false);
    let report = Mutex::new(SweepReport::default());
    let work = || {
        while !stop.load(Ordering::Relaxed) {
            let seed = next.fetch_add(1, Ordering::Relaxed);
            if seed >= seeds.end {
                return;
            }
            let result = catching(seed, || one(seed));
            // A thread that panicked here would have been caught: the report is never half changed.
            let mut report = report.lock().unwrap_or_else(PoisonError::into_inner);
            report.runs += 1;
            match result {
                Ok(run) => report.coverage.merge(&run.coverage),
                Err(failure) => report.failures.push(*failure),
            }
            if report.failures.len() >= failures_max {
                stop.store(true, Ordering::Relaxed);
            }
            let runs = report.runs;
            drop(report);
            progress(runs);
        }
    };
    std::thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(work);
        }
    });
    let mut report = report.into_inner().unwrap_or_else(PoisonError::into_inner);
    report.failures.sort_by_key(|failure| failure.seed);
    report
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_panic_is_the_failure_of_whoever_is_nearest() {
        let outer = catching(1, || {
            let inner = catching(2, || panic!("of the inner"));
            let failure = inner.expect_err("it has panicked");
            assert!(failure.sentence.contains("of the inner"), "{failure}");
            assert_eq!(failure.seed, 2);
            panic!("of the outer")
        });
        let failure = outer.expect_err("it has panicked");
        assert!(failure.sentence.contains("of the outer"), "{failure}");
        assert_eq!((failure.seed, failure.replay.as_str()), (1, "cargo xtask sim --seed 1"));
    }
}
