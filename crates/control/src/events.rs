//! What has happened lately, for the status; the log has it too.

use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::sync::mpsc::{SyncSender, TrySendError};

use tier0_api::{Event, EventKind, Severity, Subject, render};
use tier0_units::Nanos;

use crate::Control;
use crate::context::Context;

/// The most events that are kept: the oldest go first.
const EVENTS_MAX: usize = 256;

/// The latest events.
#[derive(Default)]
pub(crate) struct Events {
    /// Oldest first.
    latest: RefCell<VecDeque<(Nanos, Event)>>,
    /// Who else is told.
    listener: RefCell<Option<SyncSender<Event>>>,
    /// Events for which the listener had no room.
    missed: Cell<u64>,
    /// Events that were ever added.
    added: Cell<u64>,
}

/// The number of an event among all since the start.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct EventNumber(u64);

impl Events {
    fn add(&self, now: Nanos, event: Event) -> EventNumber {
        self.pass_on(&event);
        let mut events = self.latest.borrow_mut();
        if events.len() == EVENTS_MAX {
            events.pop_front();
        }
        events.push_back((now, event));
        let id = EventNumber(self.added.get());
        self.added.set(id.0 + 1);
        id
    }

    /// Changes what an event says, if it is still among the latest. Its place, its age and its advice stay.
    pub(crate) fn bring_up_to_date(&self, id: EventNumber, kind: &EventKind) {
        let mut events = self.latest.borrow_mut();
        let later = (self.added.get() - id.0) as usize;
        if let Some(place) = events.len().checked_sub(later) {
            let event = &mut events[place].1;
            event.what = render::event(kind, &event.subject).0;
        }
    }

    /// Tells the listener, unless it has no room.
    fn pass_on(&self, event: &Event) {
        let listener = self.listener.borrow();
        let Some(listener) = &*listener else { return };
        let is_kept = |event: Event| !matches!(listener.try_send(event), Err(TrySendError::Full(_)));
        let missed = self.missed.get();
        let of_missed = || Event::new(event.subject.clone(), &EventKind::EventsMissed { count: missed });
        let is_told = missed == 0 || is_kept(of_missed());
        let missed = if is_told { 0 } else { missed };
        self.missed.set(missed + u64::from(!is_told || !is_kept(event.clone())));
    }

    /// What was advised about `subject` is of no use any more.
    fn withdraw_advice(&self, subject: &Subject) {
        let mut events = self.latest.borrow_mut();
        events
            .iter_mut()
            .filter(|(_, event)| event.subject == *subject)
            .for_each(|(_, event)| event.remedy.clear());
    }

    /// All of them, newest last, with their age at `now`.
    pub(crate) fn all(&self, now: Nanos) -> Vec<Event> {
        let aged = |(at, event): &(Nanos, Event)| Event {
            age_s: now.saturating_sub(*at).0 / Nanos::from_secs(1).0,
            ..event.clone()
        };
        self.latest.borrow().iter().map(aged).collect()
    }
}

impl Control {
    /// Has events told here too.
    pub fn tell_events(&self, to: SyncSender<Event>) {
        *self.context.events.listener.borrow_mut() = Some(to);
    }
}

impl Context {
    /// Tells when the first shard's thread stood still: drives are not blamed for that.
    pub(crate) fn look_at_turns(&self) {
        let slow = self.world.slow_turns();
        if slow.count > self.slow_turns_told.replace(slow.count) {
            let ms = slow.last.0 / Nanos::from_millis(1).0;
            self.tell(self.array_subject(), EventKind::ProcessStalled { ms });
        }
    }

    /// Tells that a drive has left its pool: what was advised before would not find it.
    pub(crate) fn tell_left(&self, number: usize, drive: &str) {
        let subject = Subject::drive(drive);
        self.events.withdraw_advice(&subject);
        self.tell(subject, EventKind::DriveLeft { pool: self.pools[number].name.clone() });
    }

    /// The array, as the subject of events and findings.
    pub(crate) fn array_subject(&self) -> Subject {
        Subject::array(&self.array)
    }

    /// A pool, as the subject of events and findings.
    pub(crate) fn pool_subject(&self, number: usize) -> Subject {
        Subject::pool(&self.pools[number].name)
    }

    /// Something has happened.
    pub(crate) fn tell(&self, subject: Subject, kind: EventKind) {
        self.tell_first(subject, &kind);
    }

    /// The same of an event that is [brought up to date](Events::bring_up_to_date) later.
    pub(crate) fn tell_first(&self, subject: Subject, kind: &EventKind) -> EventNumber {
        let event = Event::new(subject, kind);
        log(&event);
        self.events.add(self.world.now(), event)
    }

    /// Has the log and the listener told of an event that is among the latest already, and has been brought up to date since.
    pub(crate) fn tell_listeners(&self, subject: Subject, kind: &EventKind) {
        let event = Event::new(subject, kind);
        log(&event);
        self.events.pass_on(&event);
    }
}

/// An event as a line of the log.
fn log(event: &Event) {
    let remedy = if event.remedy.is_empty() { String::new() } else { format!("; {}", event.remedy) };
    let text = format!("{}: {}{remedy}", event.thing, event.what);
    match event.severity {
        Severity::Info => tracing::info!("{text}"),
        Severity::Warning => tracing::warn!("{text}"),
        Severity::Critical => tracing::error!("{text}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn event(number: u64) -> Event {
        let text = number.to_string();
        Event::new(Subject::drive(format!("d{number}")), &EventKind::StartWarning { text })
    }

    #[test]
    fn the_oldest_events_go_first_and_ages_are_in_seconds() {
        let events = Events::default();
        for second in 0..300u64 {
            events.add(Nanos::from_secs(second), event(second));
        }
        let all = events.all(Nanos::from_secs(300));
        assert_eq!(all.len(), EVENTS_MAX);
        assert_eq!((all[0].what.as_str(), all[0].age_s), ("44", 256));
        assert_eq!((all[EVENTS_MAX - 1].what.as_str(), all[EVENTS_MAX - 1].age_s), ("299", 1));
        for (id, what) in [(43, "gone"), (44, "oldest"), (299, "newest")] {
            events.bring_up_to_date(EventNumber(id), &EventKind::StartWarning { text: what.to_owned() });
        }
        let all = events.all(Nanos::from_secs(300));
        assert_eq!((all[0].what.as_str(), all[1].what.as_str()), ("oldest", "45"));
        assert_eq!((all[EVENTS_MAX - 1].what.as_str(), all[EVENTS_MAX - 1].age_s), ("newest", 1));
    }

    /// The keeper of events is behind a file system that may hang; the array is not.
    #[test]
    fn events_without_room_are_counted_and_told_when_there_is_some() {
        let (to, kept) = std::sync::mpsc::sync_channel(2);
        let events = Events::default();
        *events.listener.borrow_mut() = Some(to);
        for number in 0..5 {
            events.add(Nanos::ZERO, event(number));
        }
        let things = || kept.try_iter().map(|event: Event| event.thing).collect::<Vec<_>>();
        assert_eq!(things(), ["drive d0", "drive d1"]);
        events.add(Nanos::ZERO, event(5));
        let told: Vec<Event> = kept.try_iter().collect();
        assert!(told[0].what.starts_with("3 events before this one"), "{}", told[0].what);
        assert_eq!(told[1].thing, "drive d5");
        assert_eq!(events.all(Nanos::ZERO).len(), 6);
    }
}
