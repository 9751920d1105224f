//! What has happened lately, for the status; the log has it too.

use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::sync::mpsc::{SyncSender, TrySendError};

use tier0_api::{Event, Severity};
use tier0_units::{Nanos, counted};

use super::Control;
use super::drives::replace_command;
use super::moving::MoveReason;
use super::report::which_groups;

/// The most events that are kept: the oldest go first.
const EVENTS_MAX: usize = 256;

/// The latest events.
#[derive(Default)]
pub(super) struct Events {
    /// Oldest first.
    latest: RefCell<VecDeque<(Nanos, Event)>>,
    /// Who else is told.
    listener: RefCell<Option<SyncSender<Event>>>,
    /// Events for which the listener had no room.
    missed: Cell<u64>,
    /// Events that were ever added.
    added: Cell<u64>,
}

/// An event among all since the start.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct EventId(u64);

impl Events {
    fn add(&self, now: Nanos, event: Event) -> EventId {
        self.pass_on(&event);
        let mut events = self.latest.borrow_mut();
        if events.len() == EVENTS_MAX {
            events.pop_front();
        }
        events.push_back((now, event));
        let id = EventId(self.added.get());
        self.added.set(id.0 + 1);
        id
    }

    /// Changes what an event says, where it is still among the latest. Its place, its age and its advice stay.
    pub(super) fn bring_up_to_date(&self, id: EventId, what: String) {
        let mut events = self.latest.borrow_mut();
        let later = (self.added.get() - id.0) as usize;
        if let Some(place) = events.len().checked_sub(later) {
            events[place].1.what = what;
        }
    }

    /// Tells the listener, unless it has no room.
    fn pass_on(&self, event: &Event) {
        let listener = self.listener.borrow();
        let Some(listener) = &*listener else { return };
        let missed = self.missed.get();
        let of_missed = (missed > 0).then(|| Event {
            age_s: 0,
            severity: Severity::Warning,
            thing: event.thing.clone(),
            what: format!("{} before this one could not be kept in time", counted(missed, "event")),
            remedy: "look at the file system that has the file of events".to_owned(),
            original: None,
        });
        let told = match of_missed {
            Some(of_missed) => listener.try_send(of_missed).map(|()| self.missed.set(0)),
            None => Ok(()),
        };
        if let Err(TrySendError::Full(_)) = told.and_then(|()| listener.try_send(event.clone())) {
            self.missed.set(self.missed.get() + 1);
        }
    }

    /// What was advised on `thing` is of no use any more.
    fn withdraw_advice(&self, thing: &str) {
        let mut events = self.latest.borrow_mut();
        events
            .iter_mut()
            .filter(|(_, event)| event.thing == thing)
            .for_each(|(_, event)| event.remedy.clear());
    }

    /// All of them, newest last, with their age at `now`.
    pub(super) fn all(&self, now: Nanos) -> Vec<Event> {
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
        *self.events.listener.borrow_mut() = Some(to);
    }

    /// Tells when the first shard's thread stood still: drives are not blamed for that.
    pub(super) fn look_at_turns(&self) {
        let slow = self.world.slow_turns();
        if slow.count > self.slow_turns_told.replace(slow.count) {
            let what = format!("the process stood still for {} ms", slow.last.0 / Nanos::from_millis(1).0);
            let remedy = "look for a stopped process, a suspended machine or processors that others use up";
            self.tell(Severity::Warning, format!("array {}", self.array), what, remedy);
        }
    }

    /// Tells when a rebuild has begun or ended, and when there is no room for one.
    pub(super) fn look_at_rebuild(&self, number: usize) {
        self.look_at_findings(number);
        let core = self.core(number);
        let running = core.rebuild.is_running();
        let was_told = core.rebuild_told.replace(running);
        let thing = format!("pool {}", self.pools[number].name);
        let (lacking, leaving) = {
            let state = core.metadata.state();
            (state.lost_columns().count() as u64, state.leaving_columns().next().is_some())
        };
        if running {
            let what = match lacking {
                _ if was_told => return,
                _ if leaving => "what drives that leave hold is being copied",
                0 => match self.moves(number) {
                    (_, moves) if moves.is_empty() => "a rebuild has begun",
                    (MoveReason::CopyBack, _) => "columns move back to the drives that they belong on",
                    _ => "columns move to drives that have more room",
                },
                _ => "a rebuild has begun",
            };
            return self.tell(Severity::Info, thing, what, "");
        }
        let homeless = core.rebuild.without_spare.get();
        let homeless_told = core.room_told.replace(homeless);
        let remedy = || format!("add a drive (tier0 drive add{})", which_groups(&core.metadata.state()));
        match (was_told, lacking) {
            (true, 0) => self.tell(Severity::Info, thing, "every set is whole, and nothing is rebuilt", ""),
            (true, lacking) => {
                let columns = counted(lacking, "column");
                let what = format!("the rebuild has ended, and no spare chunklet is there for {columns}");
                self.tell(Severity::Warning, thing, what, remedy());
            }
            (false, _) if homeless > 0 && homeless != homeless_told => {
                let columns = counted(homeless, "column");
                let what = format!("{columns} cannot be rebuilt: no spare chunklet is there");
                self.tell(Severity::Warning, thing, what, remedy());
            }
            (false, _) => {}
        }
    }

    /// Tells that a member is lost, once the others know.
    pub(super) fn tell_lost(&self, number: usize, member: usize) {
        let core = self.core(number);
        let member = member as u32;
        core.lost_at.borrow_mut().entry(member).or_insert_with(|| self.world.now());
        let known = core.pauses.health(member).and_then(|health| health.last_error);
        let why = match core.taken_out.borrow().contains(&member) {
            true => " (it was taken out)".to_owned(),
            false => known.map_or_else(String::new, |error| format!(" ({error})")),
        };
        let what = format!("lost{why}: what it held is rebuilt elsewhere as far as there is room");
        let leaves = core.metadata.state().member(member).is_some_and(|lost| lost.leaving);
        let remedy = match leaves {
            // It was removed on purpose.
            true => String::new(),
            false => {
                let replace = replace_command(&core.drive_name(member));
                format!("take it back if it answers (tier0 drive rejoin), or replace it ({replace})")
            }
        };
        self.tell(Severity::Critical, format!("drive {}", core.drive_name(member)), what, remedy);
    }

    /// Tells that a drive has left its pool: what was advised before would not find it.
    pub(super) fn tell_left(&self, number: usize, drive: &str) {
        let thing = format!("drive {drive}");
        self.events.withdraw_advice(&thing);
        let what = format!("it has left pool {}", self.pools[number].name);
        self.tell(Severity::Info, thing, what, "");
    }

    /// Something has happened to `thing` ("drive d0", "pool pool0"): `what` it was, and what to do, if anything.
    pub(super) fn tell(
        &self,
        severity: Severity,
        thing: impl Into<String>,
        what: impl Into<String>,
        remedy: impl Into<String>,
    ) {
        self.tell_first(severity, thing.into(), what.into(), remedy.into());
    }

    /// The same of an event that is [brought up to date](Events::bring_up_to_date) later.
    pub(super) fn tell_first(
        &self,
        severity: Severity,
        thing: String,
        what: String,
        remedy: String,
    ) -> EventId {
        self.tell_event(Event { age_s: 0, severity, thing, what, remedy, original: None })
    }

    /// Tells an event.
    pub(super) fn tell_event(&self, event: Event) -> EventId {
        log(&event);
        self.events.add(self.world.now(), event)
    }

    /// Has the log and the listener told of an event that is among the latest already, and has been brought up to date since.
    pub(super) fn tell_listeners(&self, severity: Severity, thing: String, what: String, remedy: &str) {
        let event = Event { age_s: 0, severity, thing, what, remedy: remedy.to_owned(), original: None };
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

    #[test]
    fn the_oldest_events_go_first_and_ages_are_in_seconds() {
        let events = Events::default();
        for second in 0..300u64 {
            let event = Event {
                age_s: 0,
                severity: Severity::Info,
                thing: "pool p".into(),
                what: second.to_string(),
                remedy: String::new(),
                original: None,
            };
            events.add(Nanos::from_secs(second), event);
        }
        let all = events.all(Nanos::from_secs(300));
        assert_eq!(all.len(), EVENTS_MAX);
        assert_eq!((all[0].what.as_str(), all[0].age_s), ("44", 256));
        assert_eq!((all[EVENTS_MAX - 1].what.as_str(), all[EVENTS_MAX - 1].age_s), ("299", 1));
        for (id, what) in [(43, "gone"), (44, "oldest"), (299, "newest")] {
            events.bring_up_to_date(EventId(id), what.to_owned());
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
        let event = |number: u64| Event {
            age_s: 0,
            severity: Severity::Info,
            thing: format!("drive d{number}"),
            what: "it is there".into(),
            remedy: String::new(),
            original: None,
        };
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
