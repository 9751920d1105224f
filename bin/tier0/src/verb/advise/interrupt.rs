//! Waiting for a database until Ctrl-C.

use std::pin::pin;
use std::time::Duration;

use crate::signals::Signals;

/// The time between two checks for a signal.
const LOOK: Duration = Duration::from_millis(200);

/// What `waited` gives; none if a signal comes before.
pub(super) async fn or_interrupted<T>(signals: &Signals, waited: impl Future<Output = T>) -> Option<T> {
    let mut waited = pin!(waited);
    loop {
        if let Ok(given) = tokio::time::timeout(LOOK, waited.as_mut()).await {
            return Some(given);
        }
        if signals.raised() {
            return None;
        }
    }
}
