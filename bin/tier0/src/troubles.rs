//! What is wrong with a server and with none of its pools: status tells it as long as it is so, and events tell since when.

use std::collections::BTreeMap;
use std::sync::mpsc::SyncSender;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tier0_api::{AdminReply, Event, EventKind, FindingKind, Subject};

/// The troubles of a server, for all its threads.
#[derive(Clone)]
pub(crate) struct Troubles(Arc<Inner>);

struct Inner {
    array: String,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    /// By what has them: the fact and the remedy.
    standing: BTreeMap<String, String>,
    /// To the keeper of events, if there is one.
    keeper: Option<SyncSender<Event>>,
}

impl Troubles {
    /// Those of the server of `array`: none so far.
    pub(crate) fn of(array: &str) -> Troubles {
        Troubles(Arc::new(Inner { array: array.to_owned(), state: Mutex::default() }))
    }

    /// The array's name.
    pub(crate) fn array(&self) -> &str {
        &self.0.array
    }

    /// Has events told there, until [`Troubles::close`].
    pub(crate) fn tell_to(&self, keeper: SyncSender<Event>) {
        self.lock().keeper = Some(keeper);
    }

    /// Tells no more events, so that their keeper may end.
    pub(crate) fn close(&self) {
        self.lock().keeper = None;
    }

    /// Tells an event of the array.
    pub(crate) fn tell(&self, kind: &EventKind) {
        let event = Event::new(Subject::array(&self.0.array), kind);
        if let Some(keeper) = &self.lock().keeper {
            // A keeper that has no room has more important events.
            let _ = keeper.try_send(event);
        }
    }

    /// Something is wrong with `what`.
    pub(crate) fn note(&self, what: &str, fault: String) {
        self.lock().standing.insert(what.to_owned(), fault);
    }

    /// Nothing is wrong with `what` any more; whether something was.
    pub(crate) fn is_over(&self, what: &str) -> bool {
        self.lock().standing.remove(what).is_some()
    }

    /// The reply of the array, whose status has the server's troubles too.
    pub(crate) fn added_to(&self, mut reply: AdminReply) -> AdminReply {
        if let AdminReply::Status(status) = &mut reply {
            let faults: Vec<String> = self.lock().standing.values().cloned().collect();
            faults.into_iter().for_each(|text| status.add(&FindingKind::ServerTrouble { text }));
        }
        reply
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.0.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
