//! Mishaps: what leaves the data on the drives, and strikes any number of them at once.
//!
//! Other troubles stay within what redundancy makes up for ([`crate::atlas`]); these do not. The array has to wait: it
//! acknowledges nothing that it cannot keep, records no loss that it cannot survive, and is whole when the drives are
//! back. Users may be refused in the meantime, but not before the array has waited for as long as it promises.
//!
//! Invariants: a mishap begins only while nothing is broken; while one goes on nothing else is broken; all of them end
//! with the life they began in, at the latest.
//!
//! What it does not do: it destroys nothing. A drive that loses its power keeps what was stable.

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::ops::Range;
use std::rc::Rc;

use tier0_drive::{Fault, FaultPlan};
use tier0_units::Nanos;
use tier0_world::Random;

use crate::config::{Trouble, log_uniform, pick};
use crate::life::Life;
use crate::shelf::{Shelf, Whereabouts};
use crate::system::Running;

/// So long a system waits for drives before it refuses its users.
const REFUSES_AFTER: Nanos = Nanos::from_secs(120);
/// So much later users may still hear of it: their requests waited behind others.
const ECHO: Nanos = Nanos::from_secs(90);
/// So long a drive may answer again before the array has noticed.
const NOTICED: Nanos = Nanos::from_secs(10);
/// Drives that are struck together are struck within this time.
const SPREAD_MAX: u64 = 3_000_000_000;
/// The shortest and the longest mishap.
const LASTS: (u64, u64) = (1_000_000, 400_000_000_000);

/// How long a stretch cannot be read: long enough that something reads it, and too short for users to be refused.
const STRETCH_LASTS: (u64, u64) = (50_000_000, 4_000_000_000);

/// A span of time in which users may be refused.
struct Window {
    began: Nanos,
    ended: Option<Nanos>,
}

/// The mishaps of a run.
#[derive(Default)]
pub(crate) struct Mishaps {
    /// Drives that are struck now, and by how many mishaps.
    struck: RefCell<BTreeMap<String, u32>>,
    windows: RefCell<Vec<Window>>,
    /// Mishaps that have not ended.
    active: Cell<u32>,
    /// How often all were ended: one that has not begun by then does not begin.
    ended: Cell<u64>,
    /// Until then commands may hang that were given before.
    hangs_until: Cell<Nanos>,
}

impl Mishaps {
    /// Whether one is going on.
    pub(crate) fn is_active(&self) -> bool {
        self.active.get() > 0
    }

    /// Whether drives may still be called lost for what has just passed: verdicts that have fallen are being recorded.
    pub(crate) fn is_settling(&self, now: Nanos) -> bool {
        let windows = self.windows.borrow();
        windows.iter().any(|window| window.ended.is_none_or(|ended| now < ended + NOTICED))
    }

    /// Whether a request that began then and ends now may have been refused because of a mishap.
    pub(crate) fn excuse(&self, began: Nanos, now: Nanos) -> bool {
        let mut since = None;
        let mut last_end = Nanos::ZERO;
        self.windows.borrow().iter().any(|window| {
            // The array may not have noticed that the one before had passed.
            let start = since.filter(|_| window.began <= last_end + NOTICED).unwrap_or(window.began);
            since = Some(start);
            last_end = last_end.max(window.ended.unwrap_or(now));
            last_end.saturating_sub(start) >= REFUSES_AFTER && began <= last_end + ECHO && now >= start
        })
    }

    /// When users may have been refused, for whoever reads a failure.
    pub(crate) fn describe(&self) -> String {
        let windows = self.windows.borrow();
        let spans: Vec<String> = windows
            .iter()
            .map(|window| match window.ended {
                Some(ended) => format!("{} to {ended}", window.began),
                None => format!("since {}", window.began),
            })
            .collect();
        format!("mishaps: {}", spans.join(", "))
    }

    /// Until when commands hang, whatever is done to the drives.
    pub(crate) fn hangs_until(&self) -> Nanos {
        self.hangs_until.get()
    }

    /// The life is over, or all trouble ends: whatever was struck is as it was.
    pub(crate) fn end_all(&self, shelf: &Shelf, now: Nanos) {
        for name in self.struck.take().into_keys() {
            let medium = shelf.medium(&name);
            medium.clear_plans();
            if medium.is_gone() {
                medium.reconnect();
            }
        }
        for window in self.windows.borrow_mut().iter_mut().filter(|window| window.ended.is_none()) {
            window.ended = Some(now);
        }
        self.active.set(0);
        self.ended.set(self.ended.get() + 1);
    }

    /// A new life has a clock of its own.
    pub(crate) fn forget(&self) {
        self.hangs_until.set(Nanos::ZERO);
        self.windows.borrow_mut().clear();
    }

    fn begin(&self, now: Nanos) -> usize {
        self.active.set(self.active.get() + 1);
        let mut windows = self.windows.borrow_mut();
        windows.push(Window { began: now, ended: None });
        windows.len() - 1
    }

    fn end(&self, window: usize, now: Nanos) {
        let mut windows = self.windows.borrow_mut();
        if let Some(window) = windows.get_mut(window).filter(|window| window.ended.is_none()) {
            window.ended = Some(now);
            self.active.set(self.active.get() - 1);
        }
    }
}

/// Strikes drives, one or all of them or those with the log, for a while; false where something is broken already.
pub(crate) fn strike<R: Running>(life: &Rc<Life<R>>, trouble: Trouble, random: &mut Random) -> bool {
    let session = &life.session;
    if !session.atlas.borrow().is_clear() || session.mishaps.is_active() {
        session.count("mishaps left out, because something was broken");
        return false;
    }
    let drives = choose(life, random);
    let (shortest, longest) = if trouble == Trouble::StretchPasses { STRETCH_LASTS } else { LASTS };
    let whole = log_uniform(shortest, longest, random);
    session.count(match trouble {
        Trouble::ErrorsPass => "mishaps: errors that pass",
        Trouble::Outage => "mishaps: drives without power for a while",
        Trouble::StretchPasses => "mishaps: stretches that cannot be read for a while",
        _ => "mishaps: drives that hang for a while",
    });
    session.note(&life.world, format!("{trouble:?} on {} for {}", drives.join(" "), Nanos(whole)));
    let window = session.mishaps.begin(life.world.now());
    let left = Rc::new(Cell::new(drives.len()));
    for drive in drives {
        let stretch = match trouble {
            Trouble::StretchPasses => Stretch::draw(random),
            _ => Stretch::WHOLE,
        };
        let begins = if random.chance(0.5) { 0 } else { random.below(SPREAD_MAX) };
        let lasts = if random.chance(0.5) { whole } else { log_uniform(shortest, whole, random) };
        if trouble == Trouble::HangPasses {
            let until = life.world.now() + Nanos(begins + 2 * lasts);
            session.mishaps.hangs_until.set(session.mishaps.hangs_until.get().max(until));
        }
        let (life, left, ended) = (life.clone(), left.clone(), life.session.mishaps.ended.get());
        let world = life.world.clone();
        let course = async move {
            life.world.sleep(Nanos(begins)).await;
            if life.session.mishaps.ended.get() != ended {
                return;
            }
            begin_on(&life, trouble, &drive, &stretch, Nanos(lasts));
            life.world.sleep(Nanos(lasts)).await;
            end_on(&life, &drive);
            if trouble == Trouble::HangPasses {
                // What was asked last hangs for as long.
                life.world.sleep(Nanos(lasts)).await;
            }
            left.set(left.get() - 1);
            if left.get() == 0 {
                life.session.mishaps.end(window, life.world.now());
            }
        };
        world.spawn(course).detach();
    }
    true
}

/// Which drives: one, those with the log, those with the metadata, any, or all.
fn choose<R: Running>(life: &Life<R>, random: &mut Random) -> Vec<String> {
    let present = life.session.shelf.borrow().names(Whereabouts::In);
    let (log, metadata) = life.session.atlas.borrow().places();
    let there = |names: Vec<String>| -> Vec<String> {
        names.into_iter().filter(|name| present.contains(name)).collect()
    };
    let chosen = match random.below(6) {
        0 => vec![pick(&present, random)],
        1 => there(log),
        2 => there(metadata),
        3 => present.clone(),
        _ => present.iter().filter(|_| random.chance(0.4)).cloned().collect(),
    };
    if chosen.is_empty() { vec![pick(&present, random)] } else { chosen }
}

/// Part of a drive, as shares of its size.
struct Stretch {
    begin: f64,
    share: f64,
}

impl Stretch {
    const WHOLE: Stretch = Stretch { begin: 0.0, share: 1.0 };

    fn draw(random: &mut Random) -> Stretch {
        match random.chance(0.3) {
            true => Stretch::WHOLE,
            false => Stretch { begin: random.unit(), share: random.unit() },
        }
    }

    fn sectors(&self, all: u64) -> Range<u64> {
        let begin = (all as f64 * self.begin) as u64;
        begin..begin + 1 + (all as f64 * self.share) as u64
    }
}

fn begin_on<R: Running>(life: &Life<R>, trouble: Trouble, drive: &str, stretch: &Stretch, lasts: Nanos) {
    let session = &life.session;
    let medium = session.shelf.borrow().medium(drive);
    *session.mishaps.struck.borrow_mut().entry(drive.to_owned()).or_default() += 1;
    match trouble {
        Trouble::ErrorsPass => {
            for fault in [Fault::ReadError, Fault::WriteError, Fault::FlushError] {
                medium.inject(FaultPlan::share(fault, 1.0));
            }
        }
        Trouble::Outage => medium.lose_power(),
        Trouble::StretchPasses => {
            let sectors = stretch.sectors(medium.options().info.sectors.0);
            medium.inject(FaultPlan::always_in(Fault::ReadError, sectors));
        }
        // Whatever is asked meanwhile is answered as much later.
        _ => medium.inject(FaultPlan::share(Fault::Latency(lasts), 1.0)),
    }
}

fn end_on<R: Running>(life: &Life<R>, drive: &str) {
    let session = &life.session;
    {
        let mut struck = session.mishaps.struck.borrow_mut();
        let Some(times) = struck.get_mut(drive) else { return };
        *times -= 1;
        if *times > 0 {
            return;
        }
        struck.remove(drive);
    }
    let medium = session.shelf.borrow().medium(drive);
    medium.clear_plans();
    if medium.is_gone() {
        medium.reconnect();
    }
}
