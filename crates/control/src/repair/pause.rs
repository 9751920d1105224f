//! Pauses: drives that a pool cannot do without and that do not answer are waited for.
//!
//! While a pool waits, nothing that needs the drive is acknowledged. After the pause timeout hosts that wait get an
//! error (`WriteBack::refuse` in every shard); the work below is held by the guards and goes on when the drive answers.
//! A pause is nowhere but in memory.
//!
//! One task per pool looks at what the guards know of its drives, in steps of a second, and tells what has changed.

use std::collections::BTreeSet;

use tier0_api::event::WaitFor;
use tier0_api::{EventKind, PauseStatus, Subject};
use tier0_drive::guard::{HealthSnapshot, Standing};
use tier0_units::{Nanos, named};
use tier0_world::IoError;

use super::{Repair, RepairPool};
use crate::message::command::{Refused, ShardCommand};
use crate::pauses::Awaited;

/// How often paused pools are looked at: hosts wait for the end.
const LOOK_PAUSED: Nanos = Nanos::from_millis(100);

impl Repair {
    /// A member was arbitrated, and is waited for.
    pub(crate) fn await_drive(&self, number: usize, member: u32, error: IoError, reason: &str) {
        let core = self.core(number);
        let fresh = !core.pauses.awaits(member);
        let begins = core.pauses.since().is_none();
        let (now, name) = (self.world.now(), core.drive_name(member));
        let waits: BTreeSet<u32> = {
            let mut awaited = core.pauses.awaited.borrow_mut();
            let known =
                awaited.entry(member).or_insert_with(|| Awaited { since: now, reason: String::new() });
            reason.clone_into(&mut known.reason);
            // Those that did not answer either when this one was arbitrated are needed as much.
            awaited.keys().copied().chain(core.arbiter.silent()).collect()
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

    /// Tells what has changed since the last look.
    pub(crate) fn look_at_drives(&self, number: usize) {
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
    pub(crate) fn end_waits(&self, number: usize) {
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
    pub(crate) async fn refuse_as_due(&self, number: usize) {
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
    fn refused_in(&self, core: &RepairPool, lane: usize) -> Refused {
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
    pub(crate) async fn has_waited_for(&self, time: Nanos) -> (String, &'static str) {
        let begun = self.world.now();
        loop {
            let now = self.world.now();
            let is_long = |since: Nanos| now.saturating_sub(since.max(begun)) >= time;
            for pool in &self.pools {
                let pauses = &pool.pauses;
                if pauses.since().is_some_and(is_long) {
                    let drives = named("drive", &pool.awaited_drives());
                    return (
                        format!("pool {:?} is paused and waits for {drives}", pool.name),
                        "bring it back",
                    );
                }
                let full = pauses.full_since.borrow();
                if full.values().copied().min().is_some_and(is_long) {
                    let names: Vec<String> = full.keys().map(|member| pool.drive_name(*member)).collect();
                    let drives = named("drive", &names);
                    return (format!("pool {:?} lacks space under {drives}", pool.name), "give it space");
                }
            }
            self.world.sleep(LOOK_PAUSED).await;
        }
    }

    /// What requests meet that need drives which are waited for, "it" or "them".
    fn what_hosts_meet(&self, core: &RepairPool, it: &str) -> String {
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
    pub(crate) fn pause_status(&self, core: &RepairPool) -> Option<PauseStatus> {
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
