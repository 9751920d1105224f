//! Pauses: drives that a pool cannot do without and that do not answer are waited for.
//!
//! While a pool waits, nothing that needs the drive is acknowledged. After the pause timeout hosts that wait get an
//! error (`WriteBack::refuse` in every shard); the work below is held by the guards and goes on when the drive answers.
//! A pause is nowhere but in memory.
//!
//! One task per pool looks at what the guards know of its drives, in steps of a second, and tells what has changed.

use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::rc::Rc;
use std::sync::Arc;

use tier0_api::event::WaitFor;
use tier0_api::{EventKind, PauseStatus, Subject};
use tier0_drive::DriveHandle;
use tier0_drive::guard::{Health, HealthSnapshot, Standing};
use tier0_units::{Nanos, named};
use tier0_world::IoError;

use super::{Control, PoolCore};
use crate::message::command::{Refused, ShardCommand};

/// How often drives are looked at.
const LOOK: Nanos = Nanos::from_secs(1);
/// The same while a pool is paused: hosts wait for the end.
const LOOK_PAUSED: Nanos = Nanos::from_millis(100);

/// Drives that were away together seldom come back in the same moment: when the first of them answers, the others get this
/// much time before one of them is judged.
pub(super) const RESPITE: Nanos = Nanos::from_secs(10);

/// The drives that a pool waits for, and what is known of all of them.
#[derive(Default)]
pub(super) struct Pauses {
    awaited: RefCell<BTreeMap<u32, Awaited>>,
    /// Drives that events have named as waited for in this pause.
    named: RefCell<BTreeSet<u32>>,
    /// Since when some drive of a pause answers again while others are still waited for.
    returned_at: Cell<Option<Nanos>>,
    /// Since when the backing stores of serving drives have been full.
    full_since: RefCell<BTreeMap<u32, Nanos>>,
    /// What hosts are refused at present, by lane of the log.
    refused: RefCell<Vec<Refused>>,
    /// By member, where its drive has a guard.
    healths: RefCell<BTreeMap<u32, Arc<Health>>>,
    /// Members whose drives are block devices.
    devices: RefCell<BTreeSet<u32>>,
    /// What has been told of them.
    told: RefCell<BTreeMap<u32, HealthSnapshot>>,
}

/// A drive that is waited for.
struct Awaited {
    since: Nanos,
    /// Why it is not done without.
    reason: String,
}

impl Pauses {
    /// A member's drive, whose guard knows how it does.
    pub(super) fn watch(&self, member: u32, drive: &DriveHandle) {
        if let Some(guard) = drive.guard() {
            self.healths.borrow_mut().insert(member, guard.health().clone());
        }
        // Asked now, when the drive has just been opened: later its directory may hang.
        if !drive.world().is_virtual() && is_device(Path::new(&drive.info().name)) {
            self.devices.borrow_mut().insert(member);
        }
    }

    /// Whether guards stand before the drives.
    pub(super) fn has_guards(&self) -> bool {
        !self.healths.borrow().is_empty()
    }

    /// What is known of a member's drive, where it has a guard.
    pub(super) fn health(&self, member: u32) -> Option<HealthSnapshot> {
        self.healths.borrow().get(&member).map(|health| health.snapshot())
    }

    /// The health of a member's drive that is to be closed, unless writes from before it was lost may still change it.
    pub(super) fn forget(&self, member: u32) -> Option<Arc<Health>> {
        let mut healths = self.healths.borrow_mut();
        let is_quiet = healths.get(&member).is_some_and(|health| health.strays() == 0);
        is_quiet.then(|| healths.remove(&member)).flatten()
    }

    /// Whether a member's drive is a block device.
    pub(super) fn is_on_device(&self, member: u32) -> bool {
        self.devices.borrow().contains(&member)
    }

    /// Whether the pool waits for this drive.
    pub(super) fn awaits(&self, member: u32) -> bool {
        self.awaited.borrow().contains_key(&member)
    }

    /// Whether the pool waits for other drives than this one, of which none has come back yet.
    pub(super) fn awaits_others_than(&self, member: u32) -> bool {
        self.returned_at.get().is_none() && self.awaited.borrow().keys().any(|other| *other != member)
    }

    /// Some drive of the pause answers again.
    pub(super) fn note_return(&self, now: Nanos) {
        self.returned_at.set(self.returned_at.get().or(Some(now)));
    }

    /// Those that had come back are away again.
    pub(super) fn forget_return(&self) {
        self.returned_at.set(None);
    }

    /// Whether the drives that are still waited for have time to come back, because others just have.
    pub(super) fn has_respite(&self, now: Nanos) -> bool {
        self.returned_at.get().is_some_and(|at| now.saturating_sub(at) < RESPITE)
    }

    /// Since when the pool is paused, if it is.
    pub(super) fn since(&self) -> Option<Nanos> {
        self.awaited.borrow().values().map(|awaited| awaited.since).min()
    }

    /// A member was taken out. What waits for space on its drive fails then: no error would ever ask for a verdict on it.
    pub(super) fn end_waits_for_space(&self, member: u32, now: Nanos) {
        let health = self.healths.borrow().get(&member).cloned();
        if let Some(health) = health.filter(|health| health.snapshot().no_space) {
            health.lose(now);
        }
    }

    /// Notes since when which backing stores are full. A pool does not wait for the space of a drive that does not serve.
    fn look_for_space(&self, now: Nanos, serves: impl Fn(u32) -> bool) {
        let full: BTreeSet<u32> = self.full().into_iter().filter(|member| serves(*member)).collect();
        let mut since = self.full_since.borrow_mut();
        since.retain(|member, _| full.contains(member));
        full.into_iter().for_each(|member| {
            since.entry(member).or_insert(now);
        });
    }

    /// Members whose drives' backing store is full.
    pub(super) fn full(&self) -> Vec<u32> {
        let healths = self.healths.borrow();
        healths.iter().filter(|(_, health)| health.snapshot().no_space).map(|(place, _)| *place).collect()
    }
}

/// Whether a path leads to a device.
fn is_device(path: &Path) -> bool {
    std::fs::canonicalize(path).is_ok_and(|plain| plain.starts_with("/dev"))
}

impl Control {
    /// A member was judged, and is waited for.
    pub(super) fn await_drive(&self, number: usize, member: u32, error: IoError, reason: &str) {
        let core = self.core(number);
        let fresh = !core.pauses.awaits(member);
        let begins = core.pauses.since().is_none();
        let (now, name) = (self.world.now(), core.drive_name(member));
        let waits: BTreeSet<u32> = {
            let mut awaited = core.pauses.awaited.borrow_mut();
            let known =
                awaited.entry(member).or_insert_with(|| Awaited { since: now, reason: String::new() });
            reason.clone_into(&mut known.reason);
            // Those that did not answer either when this one was judged are needed as much.
            awaited.keys().copied().chain(core.court.silent()).collect()
        };
        if begins {
            core.pauses.named.take();
        }
        let has_news = !waits.is_subset(&core.pauses.named.borrow());
        if fresh {
            let (error, reason) = (error.to_string(), reason.to_owned());
            self.tell(Subject::drive(name), EventKind::DriveAwaited { error, reason });
        }
        if has_news {
            let drives = waits.iter().map(|member| core.drive_name(*member)).collect();
            core.pauses.named.borrow_mut().extend(waits);
            self.tell(self.pool_subject(number), EventKind::PoolPaused { drives });
        }
    }

    /// Tells of a pool's drives while its shards start: what the log has is written to its places then, and a drive that
    /// takes no write holds up the start.
    pub async fn watch_starting_drives(self: Rc<Self>, number: usize) {
        while !self.upkeep.get() {
            self.look_at_drives(number);
            self.world.sleep(LOOK).await;
        }
    }

    /// Looks after a pool's drives as long as the array runs.
    pub(super) async fn watch_drives(self: Rc<Self>, number: usize) {
        let core = self.core(number);
        if !core.pauses.has_guards() {
            return;
        }
        loop {
            let paused = core.pauses.since().is_some();
            self.world.sleep(if paused { LOOK_PAUSED } else { LOOK }).await;
            self.look_at_drives(number);
            self.end_waits(number);
            self.refuse_as_due(number).await;
            self.look_at_turns();
            self.look_at_space(number).await;
            self.look_at_rebuild(number);
        }
    }

    /// Tells what has changed since the last look.
    fn look_at_drives(&self, number: usize) {
        let core = self.core(number);
        let healths: Vec<u32> = core.pauses.healths.borrow().keys().copied().collect();
        for member in healths {
            let Some(now) = core.pauses.health(member) else { continue };
            let before = core.pauses.told.borrow_mut().insert(member, now.clone()).unwrap_or_default();
            let drive = Subject::drive(core.drive_name(member));
            self.tell_of_drive(&drive, core.pauses.is_on_device(member), &before, &now);
        }
    }

    fn tell_of_drive(&self, drive: &Subject, on_device: bool, before: &HealthSnapshot, now: &HealthSnapshot) {
        let tell = |kind| self.tell(drive.clone(), kind);
        match now.standing {
            standing if standing == before.standing => {}
            Standing::Suspect => {
                let error = now.last_error.clone().unwrap_or_else(|| "it does not answer".to_owned());
                tell(EventKind::DriveSuspect { error });
            }
            Standing::Healthy => tell(EventKind::DriveAnswers),
            // The control task has told that with its verdict.
            Standing::Awaited | Standing::Lost => {}
        }
        if now.no_space && !before.no_space {
            tell(EventKind::DriveFull { on_device });
        }
        if !now.no_space && before.no_space {
            tell(EventKind::DriveHasSpace);
        }
    }

    /// Drives that answer again, or are lost, are waited for no more.
    fn end_waits(&self, number: usize) {
        let core = self.core(number);
        let Some(since) = core.pauses.since() else { return };
        let pauses = &core.pauses;
        pauses.awaited.borrow_mut().retain(|member, _| {
            match pauses.health(*member).map(|health| health.standing) {
                Some(Standing::Suspect | Standing::Awaited) => true,
                Some(Standing::Healthy) => {
                    pauses.note_return(self.world.now());
                    false
                }
                Some(Standing::Lost) | None => false,
            }
        });
        if pauses.since().is_none() {
            pauses.forget_return();
            let after_s = self.world.now().saturating_sub(since).0 / Nanos::from_secs(1).0;
            self.tell(self.pool_subject(number), EventKind::PoolResumed { after_s });
            // Whatever was held back by failures on the way is due now.
            let mut refused = pauses.refused.borrow_mut();
            refused.iter_mut().for_each(|lane| lane.waiting = Some(IoError::Timeout));
        }
    }

    /// Has every shard refuse what hosts must not wait for any longer, and take it back when there is nothing to wait
    /// for.
    async fn refuse_as_due(&self, number: usize) {
        let core = self.core(number);
        core.pauses.look_for_space(self.world.now(), |member| core.metadata.state().is_active(member));
        let lanes = core.metadata.state().log().lanes as usize;
        let due: Vec<Refused> = (0..lanes).map(|lane| self.refused_in(core, lane)).collect();
        let mut before = core.pauses.refused.replace(due.clone());
        before.resize(lanes, Refused::default());
        if due == before {
            return;
        }
        let news = |lane: &usize| due[*lane].waiting.filter(|_| before[*lane].waiting != due[*lane].waiting);
        let fresh: Vec<(usize, IoError)> = (0..lanes).filter_map(|lane| Some((lane, news(&lane)?))).collect();
        match fresh.as_slice() {
            // The pool as a whole.
            [(_, error), others @ ..] if fresh.len() == lanes && others.iter().all(|one| one.1 == *error) => {
                self.tell_of_refusal(number, None, *error);
            }
            some => some.iter().for_each(|(lane, error)| self.tell_of_refusal(number, Some(*lane), *error)),
        }
        self.ask_all(|reply| ShardCommand::Refuse { pool: number, lanes: due.clone(), reply }).await;
    }

    /// Hosts get errors instead of waiting for a pool, or for one group of its sets.
    fn tell_of_refusal(&self, number: usize, lane: Option<usize>, error: IoError) {
        let wait = if error == IoError::NoSpace { WaitFor::Space } else { WaitFor::Drives };
        let after_s = self.pause_timeout.0 / Nanos::from_secs(1).0;
        let group = {
            let metadata = self.core(number).metadata.state();
            lane.and_then(|lane| metadata.name_of_group(lane as u32)).map(str::to_owned)
        };
        let subject = match group {
            Some(name) => Subject::Group { pool: self.pools[number].name.clone(), name },
            None => self.pool_subject(number),
        };
        self.tell(subject, EventKind::HostsRefused { wait, after_s });
    }

    /// What hosts must not wait for any longer in a lane of the log.
    fn refused_in(&self, core: &PoolCore, lane: usize) -> Refused {
        let now = self.world.now();
        let is_due = |since: Nanos| now.saturating_sub(since) >= self.pause_timeout;
        let full = core.full_since_in(lane);
        let waiting = match core.awaited_since_in(lane).is_some_and(is_due) {
            true => Some(IoError::Timeout),
            // Where the log itself finds no space, every write waits; where it does, none waits for long.
            false => full.is_some_and(is_due).then_some(IoError::NoSpace),
        };
        Refused { waiting, full: full.is_some() }
    }

    /// Ends when a pool has waited for drives, or for space under them, for `time` without a break: half a sentence about
    /// what it waits for, and what to do.
    pub(super) async fn has_waited_for(&self, time: Nanos) -> (String, &'static str) {
        let begun = self.world.now();
        loop {
            let now = self.world.now();
            let is_long = |since: Nanos| now.saturating_sub(since.max(begun)) >= time;
            for pool in &self.pools {
                let pauses = &pool.core.pauses;
                if pauses.since().is_some_and(is_long) {
                    let drives = named("drive", &pool.core.awaited_drives());
                    return (
                        format!("pool {:?} is paused and waits for {drives}", pool.name),
                        "bring it back",
                    );
                }
                let full = pauses.full_since.borrow();
                if full.values().copied().min().is_some_and(is_long) {
                    let names: Vec<String> =
                        full.keys().map(|member| pool.core.drive_name(*member)).collect();
                    let drives = named("drive", &names);
                    return (format!("pool {:?} lacks space under {drives}", pool.name), "give it space");
                }
            }
            self.world.sleep(LOOK_PAUSED).await;
        }
    }

    /// What requests meet that need drives which are waited for, "it" or "them".
    fn what_hosts_meet(&self, core: &PoolCore, it: &str) -> String {
        let state = core.metadata.state();
        let refused = core.pauses.refused.borrow();
        let now = self.world.now();
        let (mut failing, mut waiting, mut going_on, mut left) = (Vec::new(), Vec::new(), Vec::new(), None);
        for lane in 0..state.log().lanes as usize {
            let name = state.name_of_group(lane as u32).unwrap_or_default().to_owned();
            match core.awaited_since_in(lane) {
                None => going_on.push(name),
                Some(_) if refused.get(lane).is_some_and(|lane| lane.waiting.is_some()) => failing.push(name),
                Some(since) => {
                    let rest = self.pause_timeout.saturating_sub(now.saturating_sub(since));
                    left = Some(left.map_or(rest, |known: Nanos| known.min(rest)));
                    waiting.push(name);
                }
            }
        }
        let seconds = left.unwrap_or(Nanos::ZERO).0 / Nanos::from_secs(1).0;
        let mut text = match (failing.is_empty(), waiting.is_empty()) {
            (false, true) => format!("requests that need {it} get errors"),
            (false, false) => format!(
                "requests of {} that need {it} get errors, those of {} wait, for {seconds} s more",
                named("group", &failing),
                named("group", &waiting)
            ),
            (true, _) => format!("requests that need {it} wait, for {seconds} s more before they get errors"),
        };
        if !going_on.is_empty() {
            let go = if going_on.len() == 1 { "goes" } else { "go" };
            text.push_str(&format!("; {} {go} on", named("group", &going_on)));
        }
        text
    }

    /// The pause that a pool is in, if it is in one.
    pub(super) fn pause_status(&self, core: &PoolCore) -> Option<PauseStatus> {
        let now = self.world.now();
        let paused_for = now.saturating_sub(core.pauses.since()?);
        let awaited = core.pauses.awaited.borrow();
        let seconds = |time: Nanos| time.0 / Nanos::from_secs(1).0;
        let (it, answers) = if awaited.len() == 1 { ("it", "it answers") } else { ("them", "they answer") };
        let next = format!("{}; everything goes on by itself when {answers}", self.what_hosts_meet(core, it));
        Some(PauseStatus {
            since_s: seconds(paused_for),
            drives: core.awaited_drives(),
            why: awaited.values().map(|awaited| awaited.reason.clone()).next().unwrap_or_default(),
            next,
        })
    }
}

impl PoolCore {
    /// Whether a lane of the log needs a member's drive: one of a group in which extents of its volumes lie, or one that holds the
    /// log or the metadata.
    fn is_needed_in(&self, lane: usize, member: u32) -> bool {
        let state = self.metadata.state();
        self.metadata.carriers().contains(&member)
            || state.log().copies().any(|copy| copy.member == member)
            || state.member(member).is_some_and(|known| self.reaches(lane, known.group))
    }

    /// Whether extents of the volumes of a lane may lie in a group.
    fn reaches(&self, lane: usize, group: u32) -> bool {
        let state = self.metadata.state();
        if !state.is_mixed() {
            return state.log().lane_of(group) == lane;
        }
        let mut own = (0..state.groups().len() as u32).filter(|own| state.log().lane_of(*own) == lane);
        own.any(|own| state.groups_reached_from(own).contains(&group))
    }

    /// Since when drives are waited for that a lane of the log needs.
    fn awaited_since_in(&self, lane: usize) -> Option<Nanos> {
        let awaited = self.pauses.awaited.borrow();
        let needed = awaited.iter().filter(|(member, _)| self.is_needed_in(lane, **member));
        needed.map(|(_, awaited)| awaited.since).min()
    }

    /// Since when there is no space under drives that a lane of the log needs.
    fn full_since_in(&self, lane: usize) -> Option<Nanos> {
        let full = self.pauses.full_since.borrow();
        full.iter().filter(|(member, _)| self.is_needed_in(lane, **member)).map(|(_, since)| *since).min()
    }

    /// The names of the drives that the pool waits for.
    fn awaited_drives(&self) -> Vec<String> {
        self.pauses.awaited.borrow().keys().map(|member| self.drive_name(*member)).collect()
    }

    /// The name of a member's drive.
    pub(super) fn drive_name(&self, member: u32) -> String {
        let state = self.metadata.state();
        state.member(member).map_or_else(|| format!("number {member}"), |known| known.name.clone())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_device_is_known_through_a_link() {
        let directory = tempfile::tempdir().expect("a directory");
        let link = directory.path().join("d0.dev");
        std::os::unix::fs::symlink("/dev/null", &link).expect("a link");
        std::fs::write(directory.path().join("d1.img"), [0]).expect("a file");
        assert!(is_device(&link) && is_device(Path::new("/dev/null")));
        assert!(!is_device(&directory.path().join("d1.img")) && !is_device(Path::new("d0")));
    }
}
