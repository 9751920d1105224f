//! What is logged, for tests of what the administrator is told and how often.

use std::fmt::Debug;
use std::sync::{Arc, Mutex, PoisonError};

use tracing::field::{Field, Visit};
use tracing::span::{Attributes, Id, Record};
use tracing::{Dispatch, Event, Level, Metadata, Subscriber};

/// Events of this thread: level and message.
#[derive(Clone, Default)]
pub(crate) struct Told(Arc<Mutex<Vec<(Level, String)>>>);

impl Told {
    /// Everything that is logged while `work` runs.
    pub(crate) fn by<T>(work: impl FnOnce() -> T) -> (T, Told) {
        let told = Told::default();
        // With one subscriber alone, a thread that has none and comes to an event first has it ignored by everybody.
        let _other = Dispatch::new(Told::default());
        let done = tracing::subscriber::with_default(told.clone(), work);
        (done, told)
    }

    /// How many messages of a level begin so.
    pub(crate) fn count(&self, level: Level, begins: &str) -> usize {
        let all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        all.iter().filter(|(of, text)| *of == level && text.starts_with(begins)).count()
    }
}

/// The message of an event.
#[derive(Default)]
struct Message(String);

impl Visit for Message {
    fn record_debug(&mut self, field: &Field, value: &dyn Debug) {
        if field.name() == "message" {
            self.0 = format!("{value:?}");
        }
    }
}

impl Subscriber for Told {
    fn enabled(&self, _: &Metadata<'_>) -> bool {
        true
    }

    fn new_span(&self, _: &Attributes<'_>) -> Id {
        Id::from_u64(1)
    }

    fn record(&self, _: &Id, _: &Record<'_>) {}

    fn record_follows_from(&self, _: &Id, _: &Id) {}

    fn event(&self, event: &Event<'_>) {
        let mut message = Message::default();
        event.record(&mut message);
        self.0.lock().unwrap_or_else(PoisonError::into_inner).push((*event.metadata().level(), message.0));
    }

    fn enter(&self, _: &Id) {}

    fn exit(&self, _: &Id) {}
}
