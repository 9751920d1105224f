//! Requests at the array. As many workers as requests may be outstanding take one request after the other, in the trace's order:
//! each waits for the request's time, issues it, and takes the next once it is answered. What a worker takes late waited in the host.

use std::cell::{Cell, RefCell};
use std::rc::Rc;

use futures_util::future::join_all;
use tier0_array::Volume;
use tier0_block::BlockTarget;
use tier0_trace::Op;
use tier0_units::{Lba, Nanos, SECTOR_BYTES};
use tier0_workload::draw::IoKind;
use tier0_world::{IoError, World};

use super::course::Course;
use super::place::Seat;
use super::trace::TimedRequest;
use super::{Pace, Placed, TimedPlan, TimedTrace};

/// Requests between two calls of who waits.
const TOLD_EVERY: usize = 1 << 13;

/// A trace at an array.
pub(super) struct Player {
    world: World,
    trace: TimedTrace,
    seats: Vec<Seat>,
    volumes: Vec<Volume>,
    pace: Pace,
    workers: usize,
    told: Box<dyn Fn(String)>,
    began: Nanos,
    /// The next request.
    next: Cell<usize>,
    counts: RefCell<Counts>,
}

/// What was counted so far.
struct Counts {
    course: Course,
    discards: u64,
    flushes: u64,
    discards_left_out: u64,
    behind: Nanos,
    answered: Nanos,
    failure: Option<String>,
}

/// What came of a replay.
pub(super) struct Played {
    pub(super) course: Course,
    /// Discards and flushes that were passed on.
    pub(super) discards: u64,
    pub(super) flushes: u64,
    /// Discards of places that the trace neither reads nor writes.
    pub(super) discards_left_out: u64,
    /// Requests without data.
    pub(super) empty: u64,
    /// The longest time that a request waited in the host.
    pub(super) behind: Nanos,
    /// From the beginning to the last answer.
    pub(super) took: Nanos,
    /// The time of the last request at this pace, where times count.
    pub(super) last_due: Option<Nanos>,
    pub(super) placed: Vec<Placed>,
    /// The first request that the array refused.
    pub(super) failure: Option<String>,
}

impl Player {
    /// Ready to begin now.
    pub(super) fn new(
        world: &World,
        trace: TimedTrace,
        seats: Vec<Seat>,
        volumes: Vec<Volume>,
        plan: &TimedPlan,
        told: Box<dyn Fn(String)>,
    ) -> Player {
        let outstanding = match plan.pace {
            Pace::Speed(_) => plan.outstanding_max,
            Pace::Closed(outstanding) => outstanding,
        };
        let began = world.now();
        let counts = Counts {
            course: Course::new(began),
            discards: 0,
            flushes: 0,
            discards_left_out: 0,
            behind: Nanos::ZERO,
            answered: began,
            failure: None,
        };
        Player {
            world: world.clone(),
            workers: (outstanding as usize).clamp(1, trace.requests.len().max(1)),
            trace,
            seats,
            volumes,
            pace: plan.pace,
            told,
            began,
            next: Cell::new(0),
            counts: RefCell::new(counts),
        }
    }

    /// Plays the whole trace, or up to the first request that fails.
    pub(super) async fn play(self: Rc<Player>) {
        let work = |_| self.world.spawn(self.clone().work());
        join_all((0..self.workers).map(work)).await;
    }

    async fn work(self: Rc<Player>) {
        while let Some((number, request)) = self.take() {
            let due = self.due(&request).unwrap_or_else(|| self.world.now());
            if due > self.world.now() {
                self.world.sleep_until(due).await;
            }
            let late = self.world.now().saturating_sub(due);
            let issued = self.issue(&request).await;
            self.count(number, &request, due, late, issued);
        }
    }

    fn take(&self) -> Option<(usize, TimedRequest)> {
        let number = self.next.get();
        let request = *self.trace.requests.get(number)?;
        self.next.set(number + 1);
        if number.is_multiple_of(TOLD_EVERY) && number > 0 {
            let (all, now) = (self.trace.requests.len(), self.world.now().saturating_sub(self.began));
            (self.told)(format!("replaying, {number} of {all} requests, {:.1} s", now.as_secs_f64()));
        }
        Some((number, request))
    }

    /// When a request comes, where the trace's times count.
    fn due(&self, request: &TimedRequest) -> Option<Nanos> {
        match self.pace {
            Pace::Speed(1.0) => Some(self.began.saturating_add(request.at)),
            Pace::Speed(speed) => {
                Some(self.began.saturating_add(Nanos((request.at.0 as f64 / speed) as u64)))
            }
            Pace::Closed(_) => None,
        }
    }

    async fn issue(&self, request: &TimedRequest) -> Result<(), IoError> {
        let seat = &self.seats[request.volume as usize];
        let volume = &self.volumes[seat.volume];
        match request.op {
            Op::Read => {
                let (lba, sectors) = seat.of_data(request);
                volume.read(Lba(lba), self.world.buffer(sectors)).await.0
            }
            Op::Write => {
                let (lba, sectors) = seat.of_data(request);
                volume.write(Lba(lba), self.world.buffer(sectors).freeze(), false).await
            }
            Op::Flush => volume.flush().await,
            Op::Discard => match seat.of_discard(request) {
                Some((lba, sectors)) => volume.discard(Lba(lba), sectors).await,
                None => Ok(()),
            },
        }
    }

    fn count(
        &self,
        number: usize,
        request: &TimedRequest,
        due: Nanos,
        late: Nanos,
        issued: Result<(), IoError>,
    ) {
        let counts = &mut *self.counts.borrow_mut();
        if let Err(error) = issued {
            counts.failure.get_or_insert_with(|| format!("request {} failed: {error}", number + 1));
            self.next.set(self.trace.requests.len());
            return;
        }
        let now = self.world.now();
        counts.behind = counts.behind.max(late);
        counts.answered = now;
        let bytes = u64::from(request.sectors) * SECTOR_BYTES;
        match request.op {
            Op::Read => counts.course.record(IoKind::Read, bytes, now.saturating_sub(due), now),
            Op::Write => counts.course.record(IoKind::Write, bytes, now.saturating_sub(due), now),
            Op::Flush => counts.flushes += 1,
            Op::Discard => {
                let seat = &self.seats[request.volume as usize];
                let passed = seat.of_discard(request).is_some();
                *(if passed { &mut counts.discards } else { &mut counts.discards_left_out }) += 1;
            }
        }
    }

    /// What came of it.
    pub(super) fn into_played(self) -> Played {
        let last = self.trace.requests.last().and_then(|request| self.due(request));
        let counts = self.counts.into_inner();
        Played {
            course: counts.course,
            discards: counts.discards,
            flushes: counts.flushes,
            discards_left_out: counts.discards_left_out,
            empty: self.trace.empty,
            behind: counts.behind,
            took: counts.answered.saturating_sub(self.began),
            last_due: last.map(|due| due.saturating_sub(self.began)),
            placed: self.seats.into_iter().map(|seat| seat.placed).collect(),
            failure: counts.failure,
        }
    }
}
