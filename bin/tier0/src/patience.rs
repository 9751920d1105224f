//! Looking at files that may hang: in a thread of its own, and not for ever.

use std::sync::mpsc::channel;
use std::time::Duration;

/// What `work` finds, unless it takes longer than `limit`; then it goes on, and its result is dropped.
pub(crate) fn within<T: Send + 'static>(
    limit: Duration,
    work: impl FnOnce() -> T + Send + 'static,
) -> Option<T> {
    let (reply, answer) = channel();
    let thread = std::thread::Builder::new().name("tier0-look".to_owned());
    // The caller may have stopped waiting.
    thread.spawn(move || drop(reply.send(work()))).ok()?;
    answer.recv_timeout(limit).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_hangs_is_not_waited_for() {
        let (release, held) = channel::<()>();
        assert_eq!(within(Duration::from_secs(60), || 7), Some(7));
        assert_eq!(within(Duration::from_millis(1), move || held.recv().is_err()), None);
        drop(release);
    }
}
