//! Many measurements on all cores.
//!
//! Invariants: results come back in the order of the items whatever the threads do; the first error in that order is
//! the one reported; no measurement begins after one has failed.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};

/// Works on every item, up to `threads` at a time, and calls `done` with its place after each.
///
/// # Errors
/// The error of the first item, in their order, that has one.
pub fn each<T: Sync, R: Send, E: Send>(
    items: &[T],
    threads: usize,
    work: impl Fn(&T) -> Result<R, E> + Sync,
    done: impl Fn(usize) + Sync,
) -> Result<Vec<R>, E> {
    let results: Vec<Mutex<Option<Result<R, E>>>> = items.iter().map(|_| Mutex::new(None)).collect();
    let (next, failed) = (AtomicUsize::new(0), AtomicBool::new(false));
    let worker = || {
        while !failed.load(Ordering::Relaxed) {
            let place = next.fetch_add(1, Ordering::Relaxed);
            let Some(item) = items.get(place) else { return };
            let result = work(item);
            failed.fetch_or(result.is_err(), Ordering::Relaxed);
            *results[place].lock().unwrap_or_else(PoisonError::into_inner) = Some(result);
            done(place);
        }
    };
    std::thread::scope(|scope| {
        for _ in 1..threads.clamp(1, items.len().max(1)) {
            scope.spawn(worker);
        }
        worker();
    });
    // Items that were not begun lie behind a failed one: places are handed out in order.
    results
        .into_iter()
        .map_while(|result| result.into_inner().unwrap_or_else(PoisonError::into_inner))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn results_keep_their_order_on_any_number_of_threads() {
        let items: Vec<u64> = (0..100).collect();
        for threads in [1, 2, 7, 1000] {
            let told = AtomicUsize::new(0);
            let squares = each(
                &items,
                threads,
                |n| Ok::<_, ()>(n * n),
                |_| {
                    told.fetch_add(1, Ordering::Relaxed);
                },
            );
            assert_eq!(squares, Ok(items.iter().map(|n| n * n).collect()));
            assert_eq!(told.into_inner(), 100);
        }
    }

    #[test]
    fn an_error_stops_the_rest() {
        let items: Vec<usize> = (0..1000).collect();
        let begun = AtomicUsize::new(0);
        let work = |n: &usize| {
            begun.fetch_add(1, Ordering::Relaxed);
            if *n >= 3 { Err(*n) } else { Ok(*n) }
        };
        assert_eq!(each(&items, 2, work, |_| {}), Err(3));
        assert!(begun.into_inner() < 10);
    }

    #[test]
    fn nothing_to_do_is_done() {
        assert_eq!(each(&[], 4, |_: &u8| Ok::<u8, ()>(1), |_| {}), Ok(vec![]));
    }
}
