//! Waiting for what a process that is gone still holds.
//!
//! A killed process keeps its sockets and file locks while the kernel winds its io_uring up, which goes on after the
//! process was reaped and waits for what its drives have under way. A process that starts in its place the same moment
//! finds them in use, in one of four restarts under load.

use std::time::Duration;

/// The time between two attempts.
const STEP: Duration = Duration::from_millis(10);

/// Attempts something up to `tries` times, 10 ms apart, while it fails because another process holds what it needs.
///
/// # Errors
/// What the last attempt ended with.
#[expect(
    clippy::disallowed_methods,
    reason = "drives and sockets are opened before there is another task to wait"
)]
pub fn retry_while_busy<T, E>(
    tries: u32,
    attempt: impl Fn() -> Result<T, E>,
    is_held: impl Fn(&E) -> bool,
) -> Result<T, E> {
    for _ in 1..tries {
        match attempt() {
            Err(error) if is_held(&error) => std::thread::sleep(STEP),
            result => return result,
        }
    }
    attempt()
}
