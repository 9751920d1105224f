//! Commands on their way to a drive and back, and what becomes of one that failed.

use std::rc::Rc;

use tier0_stats::Op;
use tier0_units::{Lba, Nanos, PAGE_SECTORS, SECTOR_BYTES};
use tier0_world::{
    Buf, BufMut, Completion, IoError, Observer, Outcome, Payload, PlantedBug, UnderWay, planted,
};

use super::class::{Class, class, plain};
use super::health::{Failed, LacksSpace};
use super::retained::Change;
use super::{Inner, Verdict};
use crate::Command;

/// Tries of a read that fails with a medium error.
const READ_TRIES: u32 = 3;
/// The pause before a read is tried again.
const READ_PAUSE: Nanos = Nanos::from_millis(10);
/// The first pause before a write is tried again; it doubles.
pub(super) const PAUSE_MIN: Nanos = Nanos::from_millis(10);
/// The longest.
pub(super) const PAUSE_MAX: Nanos = Nanos::from_millis(500);
/// The pause before a write is tried again for which there was no space.
const SPACE_PAUSE: Nanos = Nanos::from_secs(1);
/// A command that fails so often as if the drive were away, while the drive answers in between, is arbitrated by itself.
const ALONE_OUTAGES: u32 = 3;
/// With more than this retained, the guard flushes by itself: memory is not kept for ever.
const RETAINED_MAX: usize = 64 << 20;
/// Where a probe reads: the first superblock (docs/format.md).
const PROBE_LBA: u64 = 65_536 / SECTOR_BYTES;

/// A command that is not below.
pub(super) struct Held {
    kind: Kind,
    completion: Completion,
    /// When it first failed.
    pub(super) failed_at: Option<Nanos>,
    tries: u32,
    /// The pause before the next try.
    pub(super) pause: Nanos,
    /// How often it has failed as if the drive were away.
    outages: u32,
    /// There was no space for it.
    lacks_space: Option<LacksSpace>,
}

/// What a command is, so that it can be given again.
enum Kind {
    Read { lba: Lba, buf: BufMut },
    Write { lba: Lba, buf: Buf, durable: bool },
    Flush,
}

/// A command that is below.
pub(super) struct Sent {
    kind: SentKind,
    under_way: UnderWay,
    /// When it was given to the drive, in time in which the runtime turned.
    pub(super) came: Nanos,
    failed_at: Option<Nanos>,
    tries: u32,
    pause: Nanos,
    /// How often it has failed as if the drive were away.
    outages: u32,
    lacks_space: Option<LacksSpace>,
    /// It was told as slow.
    pub(super) is_slow: bool,
    /// Its caller has been answered.
    is_given_up: bool,
    /// It had not ended when the drive was lost, and is counted as such.
    is_stray: bool,
}

enum SentKind {
    Read {
        lba: Lba,
        sectors: u32,
    },
    Write {
        lba: Lba,
        buf: Buf,
        durable: bool,
    },
    /// What it covers.
    Flush {
        mark: u64,
    },
}

/// Commands below, by token.
pub(super) type Commands = slab::Slab<Sent>;

impl Held {
    pub(super) fn new(command: Command, completion: Completion) -> Held {
        let kind = match command {
            Command::Read { lba, buf } => Kind::Read { lba, buf },
            Command::Write { lba, buf, durable } => Kind::Write { lba, buf, durable },
            Command::Flush => Kind::Flush,
            Command::Discard { .. } => unreachable!("a discard goes past the table"),
        };
        Held { kind, completion, failed_at: None, tries: 0, pause: PAUSE_MIN, outages: 0, lacks_space: None }
    }

    /// Ends it with an error.
    pub(super) fn fail(self, error: IoError) {
        let payload = match self.kind {
            Kind::Read { buf, .. } => Payload::Read(buf),
            _ => Payload::None,
        };
        self.completion.complete(Err(error), payload);
    }

    pub(super) fn is_read(&self) -> bool {
        matches!(self.kind, Kind::Read { .. })
    }
}

impl Sent {
    /// Answers the caller, while the drive goes on with it.
    pub(super) fn give_up(&mut self, inner: &Inner, error: IoError) {
        self.is_given_up = true;
        let world = inner.world();
        let payload = match self.kind {
            SentKind::Read { sectors, .. } if self.under_way.is_live(world) => {
                Payload::Read(BufMut::zeroed(sectors, world.width()))
            }
            _ => Payload::None,
        };
        self.under_way.give_up(world, error, payload);
    }

    pub(super) fn is_read(&self) -> bool {
        matches!(self.kind, SentKind::Read { .. })
    }

    /// Whether it may end whenever it likes: its caller has been answered, and it changes nothing.
    pub(super) fn is_idle(&self) -> bool {
        self.is_given_up && matches!(self.kind, SentKind::Read { .. } | SentKind::Flush { .. })
    }

    /// What it is, for messages.
    pub(super) fn describe(&self) -> String {
        match &self.kind {
            SentKind::Read { lba, sectors } => format!("a read of {sectors} sectors at sector {lba}"),
            SentKind::Write { lba, buf, .. } => {
                format!("a write of {} sectors at sector {lba}", buf.sectors())
            }
            SentKind::Flush { .. } => "a flush".to_owned(),
        }
    }

    /// As what it counts, and with how many bytes.
    fn counted(&self) -> (Op, u64) {
        match &self.kind {
            SentKind::Read { sectors, .. } => (Op::Read, u64::from(*sectors) * SECTOR_BYTES),
            SentKind::Write { buf, .. } => (Op::Write, u64::from(buf.sectors()) * SECTOR_BYTES),
            SentKind::Flush { .. } => (Op::Flush, 0),
        }
    }

    fn failed(&self) -> Failed {
        match self.kind {
            SentKind::Read { .. } => Failed::Read,
            SentKind::Write { .. } => Failed::Write,
            SentKind::Flush { .. } => Failed::Flush,
        }
    }

    /// The command as it came, to be given again.
    fn hold(self, completion: Completion, payload: Payload) -> Held {
        let kind = match self.kind {
            SentKind::Read { lba, .. } => Kind::Read { lba, buf: payload.into_read() },
            SentKind::Write { lba, buf, durable } => Kind::Write { lba, buf, durable },
            SentKind::Flush { .. } => Kind::Flush,
        };
        let Sent { failed_at, tries, pause, outages, lacks_space, .. } = self;
        Held { kind, completion, failed_at, tries, pause, outages, lacks_space }
    }
}

impl Observer for Inner {
    fn ended(self: Rc<Self>, token: u64, completion: Completion, outcome: Outcome, payload: Payload) {
        let sent = self.commands.borrow_mut().remove(token as usize);
        if sent.is_stray {
            self.health.stray_ended();
        }
        let (op, bytes) = sent.counted();
        let latency = || self.world().turned().saturating_sub(sent.came);
        self.stats.ended(op, bytes, latency, outcome.is_ok());
        match outcome {
            _ if self.health.is_lost() => {
                completion.complete(Err(IoError::Gone), payload);
            }
            // How it ends concerns no caller.
            outcome if sent.is_idle() => completion.complete(outcome.map(|_| ()), payload),
            Ok(_) => self.succeeded(sent, completion, payload),
            Err(error) => self.failed(sent, completion, payload, error),
        }
    }
}

impl Inner {
    /// Gives a command to the drive.
    pub(super) fn pass(self: &Rc<Self>, held: Held) {
        let Held { kind, completion, failed_at, tries, pause, outages, lacks_space } = held;
        let came = self.world().turned();
        let under_way = completion.under_way();
        let (kind, command) = match kind {
            Kind::Read { lba, buf } => {
                (SentKind::Read { lba, sectors: buf.sectors() }, Command::Read { lba, buf })
            }
            Kind::Write { lba, buf, durable } => {
                (SentKind::Write { lba, buf: buf.clone(), durable }, Command::Write { lba, buf, durable })
            }
            Kind::Flush => (SentKind::Flush { mark: self.retained.borrow().mark() }, Command::Flush),
        };
        let sent = Sent {
            kind,
            under_way,
            came,
            failed_at,
            tries,
            pause,
            outages,
            lacks_space,
            is_slow: false,
            is_given_up: false,
            is_stray: false,
        };
        let token = self.commands.borrow_mut().insert(sent);
        self.watch();
        self.drive.submit(command, completion.observed_by(self.clone(), token as u64));
    }

    fn succeeded(self: &Rc<Self>, sent: Sent, completion: Completion, payload: Payload) {
        if sent.tries > 0 {
            self.health.count_retried();
        }
        self.is_tired.set(false);
        self.answered.set(self.answered.get().max(sent.came));
        match &sent.kind {
            // It may have read what lay under a change that is about to be written again.
            SentKind::Read { .. } if self.has_to_make_good() => {
                return self.shut(sent.hold(completion, payload), IoError::Gone);
            }
            SentKind::Read { .. } => {}
            SentKind::Flush { mark } => {
                let is_news = self.health.outages() != self.outages_seen.get();
                if is_news && !planted(PlantedBug::ReplayHereOnly) {
                    // Another shard saw that the drive may have lost what this flush was to cover.
                    self.shut(sent.hold(completion, payload), IoError::Gone);
                    return;
                }
                self.retained.borrow_mut().flushed(*mark);
            }
            SentKind::Write { lba, buf, durable } if self.drive.info().volatile_cache => {
                let change = Change { lba: *lba, buf: buf.clone() };
                let mut retained = self.retained.borrow_mut();
                if *durable { retained.add_stable(change) } else { retained.add(change) }
            }
            SentKind::Write { .. } => {}
        }
        completion.complete(Ok(()), payload);
        if self.retained.borrow().bytes() > RETAINED_MAX && !self.is_flushing.replace(true) {
            self.flush_by_itself();
        }
    }

    pub(super) fn flush_by_itself(self: &Rc<Self>) {
        let (completion, pending) = self.world().completion();
        let held = Held::new(Command::Flush, completion);
        if self.is_closed.get() {
            self.hold(held)
        } else {
            self.pass(held)
        }
        let inner = self.clone();
        let wait = async move {
            // If it fails, the drive is lost, and nothing of it is needed.
            let _ = pending.await;
            inner.is_flushing.set(false);
        };
        self.world().spawn(wait).detach();
    }

    fn failed(self: &Rc<Self>, mut sent: Sent, completion: Completion, payload: Payload, error: IoError) {
        let name = &self.drive.info().name;
        // The kernel says "no space" and "end of file" of a device that is not there any more.
        let is_cut_short = self.drive.is_cut_short() && !planted(PlantedBug::TakeShortForFull);
        let error = if is_cut_short { IoError::Gone } else { error };
        let kind = class(error);
        if kind == Class::Refused {
            return completion.complete(Err(error), payload);
        }
        let sentence = match is_cut_short {
            true => {
                format!("{} fails: the drive ends too early, it was pulled or made smaller", sent.describe())
            }
            false => format!("{} fails: {error}", sent.describe()),
        };
        tracing::debug!(drive = name, tries = sent.tries, "{sentence}");
        self.health.count_failure(sent.failed(), sentence);
        sent.tries += 1;
        sent.failed_at.get_or_insert_with(|| self.world().turned());
        let is_flush = matches!(sent.kind, SentKind::Flush { .. });
        let is_read = sent.is_read();
        sent.outages += u32::from(kind == Class::Outage);
        let held = sent.hold(completion, payload);
        match kind {
            Class::NoSpace if !is_read => self.retry_when_there_is_space(held),
            Class::Outage if held.outages > ALONE_OUTAGES => self.arbitrate_alone(held, error),
            Class::Outage | Class::NoSpace => self.close(held, error),
            // Nothing is known of what it was to cover.
            Class::Medium if is_flush => self.close(held, error),
            Class::Medium if is_read => self.retry_read(held),
            Class::Medium | Class::Refused => self.retry_write(held, error),
        }
    }

    /// Gives a command to the drive again, or has it wait for the gate.
    fn pass_or_hold(self: &Rc<Self>, held: Held) {
        match () {
            () if self.health.is_lost() => held.fail(IoError::Gone),
            () if self.is_closed.get() => self.hold(held),
            () => self.pass(held),
        }
    }

    /// A sector that cannot be read: the row has it once more, if the drive is well but for that.
    fn retry_read(self: &Rc<Self>, held: Held) {
        let inner = self.clone();
        self.trouble(|troubles| troubles.retries += 1);
        let retry = async move {
            let tries = if inner.is_tired.get() { 1 } else { READ_TRIES };
            if held.tries < tries {
                inner.world().sleep(READ_PAUSE).await;
                inner.pass_or_hold(held);
            } else {
                match inner.in_time(inner.patience.answer, inner.answers()).await {
                    Some(true) => held.fail(IoError::Medium),
                    Some(false) => inner.close(held, IoError::Medium),
                    None => inner.close(held, IoError::Timeout),
                }
            }
            inner.trouble(|troubles| troubles.retries -= 1);
        };
        self.world().spawn(retry).detach();
    }

    /// Whether the drive reads its superblock.
    pub(super) async fn answers(&self) -> bool {
        let sectors = self.drive.info().sectors.0;
        let lba = PROBE_LBA.min(sectors.saturating_sub(PAGE_SECTORS) / PAGE_SECTORS * PAGE_SECTORS);
        let buf = self.world().buffer(PAGE_SECTORS.min(sectors) as u32);
        match self.drive.read(Lba(lba), buf).await.0 {
            Ok(()) => true,
            // The other copy: one bad sector shall not speak for the drive.
            Err(error) if class(error) == Class::Medium && lba + 2 * PROBE_LBA <= sectors => {
                let buf = self.world().buffer(PAGE_SECTORS as u32);
                self.drive.read(Lba(2 * PROBE_LBA), buf).await.0.is_ok()
            }
            Err(_) => false,
        }
    }

    fn retry_when_there_is_space(self: &Rc<Self>, mut held: Held) {
        let inner = self.clone();
        held.lacks_space.get_or_insert_with(|| self.health.lack_space());
        let retry = async move {
            inner.world().sleep(SPACE_PAUSE).await;
            inner.pass_or_hold(held);
        };
        self.world().spawn(retry).detach();
    }

    /// A write that fails although the drive may be well is tried again, and arbitrated in the end.
    fn retry_write(self: &Rc<Self>, mut held: Held, error: IoError) {
        let inner = self.clone();
        self.trouble(|troubles| troubles.retries += 1);
        let retry = async move {
            let since = held.failed_at.unwrap_or_default();
            let is_late = inner.world().turned().saturating_sub(since) >= inner.patience.errors;
            let has_arbiter = inner.arbiter.borrow().is_some();
            if is_late || (inner.is_tired.get() && held.tries > 1) {
                if !has_arbiter {
                    inner.is_tired.set(true);
                    held.fail(plain(error));
                    return inner.trouble(|troubles| troubles.retries -= 1);
                }
                if inner.ask(error).await == Verdict::Lost {
                    held.fail(IoError::Gone);
                    return inner.trouble(|troubles| troubles.retries -= 1);
                }
                inner.world().sleep(inner.patience.again).await;
            } else {
                inner.world().sleep(held.pause).await;
                held.pause = Nanos(held.pause.0 * 2).min(PAUSE_MAX);
            }
            // A device that was pulled fails every write, and is behind another descriptor when it is put back: only who
            // recovers from an outage looks for that.
            let answers = match held.tries > 1 && !inner.is_closed.get() {
                true => inner.in_time(inner.patience.answer, inner.answers()).await,
                false => Some(true),
            };
            match answers {
                Some(true) => inner.pass_or_hold(held),
                Some(false) => inner.close(held, IoError::Medium),
                None => inner.close(held, IoError::Timeout),
            }
            inner.trouble(|troubles| troubles.retries -= 1);
        };
        self.world().spawn(retry).detach();
    }

    /// Answers all commands that are below; the drive may go on with them.
    pub(super) fn give_up_all(&self) {
        for (_, sent) in &mut *self.commands.borrow_mut() {
            sent.give_up(self, IoError::Gone);
            if !sent.is_stray && matches!(sent.kind, SentKind::Write { .. }) {
                sent.is_stray = true;
                self.health.count_stray();
            }
        }
    }
}
