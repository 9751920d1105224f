//! Work that may hang, such as asking a file system: a thread for each piece, and an end to the waiting.

use std::io;
use std::sync::mpsc::channel;
use std::time::{Duration, Instant};

/// Does each piece of work in a thread of its own, so that one that hangs holds up only itself; the results in order.
///
/// # Errors
/// Of a piece: `TimedOut` where it takes longer than `limit`, counted from now, else why it has no thread.
#[expect(clippy::disallowed_methods, reason = "drives are opened before there is a world, and beside it")]
pub fn each_in_time<T, W>(limit: Duration, work: impl Iterator<Item = W>) -> Vec<io::Result<T>>
where
    T: Send + 'static,
    W: FnOnce() -> T + Send + 'static,
{
    let (answer, answers) = channel();
    let mut results = Vec::new();
    let mut begun = 0;
    for (number, work) in work.enumerate() {
        let answer = answer.clone();
        let thread = std::thread::Builder::new().name("tier0-open".to_owned());
        let started = thread.spawn(move || {
            // The caller may have given up.
            let _ = answer.send((number, work()));
        });
        begun += usize::from(started.is_ok());
        results.push(Err(started.err().unwrap_or_else(|| io::ErrorKind::TimedOut.into())));
    }
    let end = Instant::now() + limit;
    for _ in 0..begun {
        let left = end.saturating_duration_since(Instant::now());
        let Ok((number, result)) = answers.recv_timeout(left) else { break };
        results[number] = Ok(result);
    }
    results
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_hangs_holds_up_only_itself() {
        let (release, hangs) = channel::<()>();
        let mut hangs = Some(hangs);
        let work = (0..3).map(|number| {
            let hang = hangs.take_if(|_| number == 1);
            move || {
                hang.map(|hang| hang.recv());
                number
            }
        });
        let results = each_in_time(Duration::from_millis(200), work);
        let results: Vec<_> =
            results.into_iter().map(|result| result.map_err(|error| error.kind())).collect();
        assert_eq!(results, [Ok(0), Err(io::ErrorKind::TimedOut), Ok(2)]);
        drop(release);
    }
}
