//! Starts: with consent where it is asked for, and those that must be refused.
//!
//! A start that is refused writes nothing: every drive holds byte by byte what it held. Consent is asked for only where drives that are away could have gone on by
//! themselves. Stale drives alone are never served as if they were current.

use std::collections::BTreeMap;
use std::rc::Rc;

use tier0_drive::DriveHandle;
use tier0_drive::sim::SimMedium;
use tier0_raid::layout::RaidLevel;
use tier0_world::{Random, World};

use crate::config::pick;
use crate::session::Session;
use crate::shelf::Whereabouts;
use crate::system::{System, SystemError, name_of};

/// Opens the array; where it asks for consent to do without what is away, it gets it.
///
/// # Errors
/// Why it does not open, or that it asked without need.
pub(crate) async fn open<S: System>(
    world: &World,
    system: &S,
    session: &Rc<Session>,
    handles: Vec<DriveHandle>,
) -> Result<S::Running, String> {
    let names: Vec<&str> = handles.iter().map(name_of).collect();
    session.note(world, format!("open with {}", names.join(" ")));
    let _request = session.request(|| "opening".to_owned());
    let array = &session.config.array;
    let restored = session.images.take_restored();
    let given: Vec<String> = session.consents.borrow().iter().cloned().collect();
    let first = system.open(world, array, handles.clone(), given.clone()).await;
    let asked = match first {
        Ok(running) => return Ok(running),
        Err(SystemError::Failed(why) | SystemError::Unfinished(why)) => {
            return Err(format!("the array cannot be opened: {why}"));
        }
        Err(SystemError::Refused(why)) => why,
    };
    let gone = session.shelf.borrow().names(Whereabouts::Gone);
    let forgotten = session.shelf.borrow().names_without_front();
    let away: Vec<String> = gone.iter().chain(restored.keys()).chain(&forgotten).cloned().collect();
    if away.is_empty() {
        return Err(format!("the array cannot be opened: {asked}"));
    }
    let may_ask =
        array.levels().any(|level| !matches!(level, RaidLevel::Raid0 | RaidLevel::Raid5 | RaidLevel::Raid50));
    if may_ask {
        session.note(world, format!("consent to start without {}: {asked}", away.join(" ")));
        let without = given.iter().chain(&away).cloned().collect();
        if let Ok(running) = system.open(world, array, handles.clone(), without).await {
            session.count("starts that asked for consent");
            session.parted.borrow_mut().extend(away);
            return Ok(running);
        }
    }
    if session.config.faults.refused_share == 0.0 {
        return Err(format!("the array cannot be opened: {asked}"));
    }
    // A mishap has cost the array a drive, and it died before it said so: it cannot do without another one, and must be
    // whole with it.
    session.note(world, format!("refused, so {} come back: {asked}", away.join(" ")));
    session.count("starts that had to wait for a drive");
    restored.iter().for_each(|(name, newest)| session.shelf.borrow().medium(name).restore(newest));
    let mut handles = handles;
    for name in &gone {
        let mut shelf = session.shelf.borrow_mut();
        shelf.put(name, Whereabouts::In);
        handles.push(shelf.handle(name, world));
    }
    let third = system.open(world, array, handles, given).await;
    third.map_err(|error| format!("the array cannot be opened with all its drives: {error}"))
}

/// A start that must be refused.
#[derive(Clone, Debug)]
pub(crate) struct Attempt {
    /// Why it must be.
    about: &'static str,
    /// Drives that are connected.
    with: Vec<String>,
}

/// Starts to try while the array is down.
pub(crate) fn attempts(session: &Session, random: &mut Random) -> Vec<Attempt> {
    let shelf = session.shelf.borrow();
    let (mut present, mut stale) = (shelf.names(Whereabouts::In), shelf.names(Whereabouts::Out));
    present.retain(|name| !session.images.is_old(name));
    stale.retain(|name| !session.images.is_old(name));
    let (log, metadata) = session.atlas.borrow().places();
    let without = |away: &[String]| -> Vec<String> {
        present.iter().filter(|name| !away.contains(name)).cloned().collect()
    };
    let mut attempts = Vec::new();
    let mut attempt = |about, with: Vec<String>| {
        if !with.is_empty() && with.len() < present.len() {
            attempts.push(Attempt { about, with });
        }
    };
    if !log.is_empty() && session.places_known.get() {
        attempt("starts refused for want of the log", without(&log));
    }
    if !metadata.is_empty() && session.places_known.get() {
        attempt("starts refused for want of the metadata", without(&metadata));
    }
    // A drive that is alone by right starts alone.
    let known: Vec<String> =
        present.iter().filter(|name| !session.known_lost.borrow().contains(*name)).cloned().collect();
    // A set of one column is on one drive, and the others may have nothing that matters.
    let array = &session.config.array;
    let without_spares = array.first_drives() - array.spare_drives as usize;
    let has_one_column = array.second.is_none()
        && array.level == RaidLevel::Raid0
        && array.set_size.unwrap_or(without_spares) == 1;
    if known.len() > 1 && session.places_known.get() && !has_one_column {
        attempt("starts refused with one drive", vec![pick(&known, random)]);
    }
    if !stale.is_empty() {
        attempts.push(Attempt { about: "starts refused with stale drives alone", with: stale });
    }
    attempts
}

/// What became of an attempt.
pub(crate) enum Tried {
    Started,
    Refused(SystemError),
    /// Its drives had given up the others in the moment at which the power failed, before the array could say so and the
    /// administrator consented to go on without them. They go on by right; with the others they are a split.
    ByRight,
}

/// Tries a start.
pub(crate) async fn attempt<S: System>(
    world: World,
    system: S,
    session: Rc<Session>,
    attempt: Attempt,
) -> Tried {
    let drives: Vec<DriveHandle> =
        attempt.with.iter().map(|name| session.shelf.borrow().medium(name).open(&world)).collect();
    let have_parted = attempt.with.iter().all(|name| session.parted.borrow().contains(name));
    if have_parted && !system.called_lost(drives.clone()).await.is_empty() {
        return Tried::ByRight;
    }
    match system.open(&world, &session.config.array, drives, Vec::new()).await {
        Ok(_) => Tried::Started,
        Err(error) => Tried::Refused(error),
    }
}

impl Attempt {
    /// A start with these drives, which must be refused.
    pub(crate) fn of(about: &'static str, with: Vec<String>) -> Attempt {
        Attempt { about, with }
    }

    /// Connects its drives; returns those that were away, to be disconnected again.
    pub(crate) fn connect(&self, session: &Session) -> Vec<SimMedium> {
        let media = self.with.iter().map(|name| session.shelf.borrow().medium(name));
        let away: Vec<SimMedium> = media.filter(SimMedium::is_gone).collect();
        away.iter().for_each(SimMedium::reconnect);
        away
    }

    /// Whether it was refused as it must be.
    pub(crate) fn judge(
        &self,
        tried: Tried,
        written: u64,
        before: &BTreeMap<String, u64>,
        session: &Session,
    ) -> Result<(), String> {
        let with = self.with.join(" ");
        let after = session.shelf.borrow().fingerprints();
        match tried {
            Tried::Started => {
                Err(format!("the array starts with {with} alone, where it must not ({})", self.about))
            }
            Tried::Refused(error) if written > 0 => Err(format!(
                "a start with {with} alone is refused ({error}) after {written} changes of the drives"
            )),
            Tried::Refused(error) if after != *before => {
                let changed = after.iter().filter(|(name, hash)| before.get(*name) != Some(hash));
                let changed: Vec<&str> = changed.map(|(name, _)| name.as_str()).collect();
                let changed = changed.join(" ");
                Err(format!(
                    "a start with {with} alone is refused ({error}), and {changed} hold something else"
                ))
            }
            Tried::Refused(_) => {
                session.count(self.about);
                Ok(())
            }
            Tried::ByRight => {
                session.count("stale drives that had given the others up");
                Ok(())
            }
        }
    }
}
