//! How a caller sees how far work is, and asks for an early end.

use std::time::Duration;

/// How often the caller's wish is looked at.
pub(crate) const LOOK: Duration = Duration::from_millis(100);

/// The caller's side of something that takes long.
#[derive(Clone, Copy)]
pub struct Watch<'a> {
    /// Takes a line of progress, about one a second.
    pub say: &'a (dyn Fn(&str) + Sync),
    /// Whether the caller wants an end.
    pub is_over: &'a (dyn Fn() -> bool + Sync),
}

impl Watch<'_> {
    /// One that shows nothing and never ends early.
    pub fn none() -> Watch<'static> {
        Watch { say: &|_| {}, is_over: &|| false }
    }

    /// Ends once the caller wants an end.
    pub(crate) async fn over(&self) {
        while !(self.is_over)() {
            tokio::time::sleep(LOOK).await;
        }
    }
}
