//! Records on their way into the log.

use std::ops::Range;
use std::rc::Rc;

use tier0_integrity::split_zero_pages;
use tier0_journal::{Append, Record};
use tier0_stats::Op;
use tier0_units::{ExtentId, Nanos, PAGE_SECTORS, SECTOR_BYTES};
use tier0_world::{Buf, BufMut, IoError, Task};

use super::admit::Admission;
use super::{Inner, io_error};
use crate::pages::{Page, RecordId};
use crate::record_header::{RecordHeader, Run};

/// Whole pages of one extent, some of them zeros.
pub(crate) struct Change {
    pub(crate) runs: Vec<Run>,
    /// The pages of all runs that are not zeros.
    pub(crate) data: Buf,
}

impl Change {
    /// Pages of zeros.
    pub(crate) fn zeros(pages: Range<u32>, none: Buf) -> Change {
        debug_assert_eq!(none.sectors(), 0, "zeros have no data");
        Change {
            runs: vec![Run { first: pages.start, count: pages.end - pages.start, zero: true }],
            data: none,
        }
    }

    /// Whole pages from `first` on, those marked whose bytes are all zero.
    pub(crate) fn detect(first: u32, buf: Buf) -> Change {
        let zero = split_zero_pages(&buf);
        let mut runs = Vec::with_capacity(1);
        let mut at = first;
        for group in zero.chunk_by(|a, b| a == b) {
            runs.push(Run { first: at, count: group.len() as u32, zero: group[0] });
            at += group.len() as u32;
        }
        let data = match runs.as_slice() {
            [run] if !run.zero => buf,
            _ => gather(first, &buf, &runs),
        };
        Change { runs, data }
    }

    /// Whether there is anything but zeros.
    pub(crate) fn has_data(&self) -> bool {
        self.data.sectors() > 0
    }

    /// Leaves the zeros out.
    pub(crate) fn drop_zeros(&mut self) {
        self.runs.retain(|run| !run.zero);
    }

    fn pages(&self) -> u32 {
        self.runs.iter().map(|run| run.count).sum()
    }
}

/// The data runs of a buffer that begins at page `first`, one after the other.
fn gather(first: u32, buf: &Buf, runs: &[Run]) -> Buf {
    let sectors = |pages: u32| pages * PAGE_SECTORS as u32;
    let part = |run: &Run| buf.slice(sectors(run.first - first), sectors(run.count));
    let data: Vec<Buf> = runs.iter().filter(|run| !run.zero).map(part).collect();
    BufMut::concat(data.iter(), buf.width()).freeze()
}

/// A record that is in memory and on its way into the log. A writer that drops it does not learn whether it got there;
/// the bookkeeping does.
#[must_use = "a write is acknowledged when its record is stable"]
pub(crate) struct Logging {
    inner: Rc<Inner>,
    append: Option<Append>,
    id: RecordId,
    /// Its number without wrapping.
    pub(crate) sequence: u64,
    /// When it was sent, and the bytes of its data.
    sent: (Nanos, u64),
    /// Records that it takes pages from, once per page.
    superseded: Vec<RecordId>,
    /// How many of those pages have data and are zeros from now on.
    voided: u64,
    /// A task of its own waits for it. If that is dropped too, the world ends.
    detached: bool,
}

impl Inner {
    /// Makes a change the newest content of its pages, and sends it into the log. The extent has a slot.
    pub(crate) fn log(self: &Rc<Self>, extent: ExtentId, change: Change, admission: Admission) -> Logging {
        let pages = change.pages();
        let mut state = self.state.borrow_mut();
        let sequence = state.records.end();
        let header = RecordHeader { extent, version: state.first_version + sequence, runs: change.runs };
        let bound = self.ring().stable();
        let buffers = if change.data.sectors() > 0 { vec![change.data.clone()] } else { vec![] };
        let append = self.ring().append(Record { header: header.encode(), pages: buffers });
        let sent = (self.world.now(), u64::from(change.data.sectors()) * SECTOR_BYTES);
        let id = state.records.push(sent.0, extent, change.data, pages, bound);
        let (mut superseded, mut voided) = (Vec::new(), 0);
        let mut index = 0;
        for run in header.runs {
            for page in run.first..run.first + run.count {
                let content = if run.zero { Page::zero(id) } else { Page::data(id, index) };
                index += u32::from(!run.zero);
                let old = state.pages.insert(extent, page, content);
                voided += u64::from(run.zero && old.is_some_and(|old| old.index().is_some()));
                superseded.extend(old.map(|old| old.record));
            }
        }
        state.counts.written_pages += u64::from(pages);
        state.voided_pages += voided;
        drop(state);
        drop(admission);
        self.leave_memory();
        Logging {
            inner: self.clone(),
            append: Some(append),
            id,
            sequence,
            sent,
            superseded,
            voided,
            detached: false,
        }
    }
}

impl Logging {
    /// Waits until the record is stable.
    pub(crate) async fn finish(mut self) -> Result<(), IoError> {
        let append = self.append.as_mut().expect("it is awaited once");
        // If waiting is refused it goes on by itself.
        let result = match self.detached {
            true => append.await,
            false => self.inner.unless_refused(append).await?,
        };
        self.append = None;
        let supersedes = !self.superseded.is_empty();
        let inner = &self.inner;
        let (began, bytes) = self.sent;
        let took = || inner.world.now().saturating_sub(began);
        inner.logged.ended(Op::Write, bytes, took, result.is_ok());
        let mut state = inner.state.borrow_mut();
        let mut trimmed = false;
        let result = match result {
            Ok(appended) => {
                state.records.settle(self.id, appended.position);
                state.unpin_all(self.superseded.drain(..));
                state.voided_pages -= self.voided;
                trimmed = state.records.trim();
                Ok(())
            }
            Err(error) => {
                // What it superseded stays needed: a crash now must find the old content.
                let error = *state.log_failure.get_or_insert(io_error(&error));
                Err(error)
            }
        };
        let (starved, waiting_for_age) = (state.starved, state.waiting_for_age);
        drop(state);
        inner.settled.notify_all();
        if trimmed {
            inner.release();
        }
        if result.is_err() || supersedes {
            inner.progress.notify_all();
        }
        if starved || (waiting_for_age && inner.level(0, 0) >= inner.low()) {
            inner.work.notify_all();
        }
        result
    }
}

/// A record whose maker waits for it: by itself, or while it goes on by itself.
pub(crate) struct UnderWay {
    pub(crate) sequence: u64,
    outcome: Outcome,
}

enum Outcome {
    Waiting(Logging),
    GoingOn(Task<Result<(), IoError>>),
}

impl Logging {
    /// Waits for it when it is asked to.
    pub(crate) fn wait(self) -> UnderWay {
        UnderWay { sequence: self.sequence, outcome: Outcome::Waiting(self) }
    }

    /// Goes on without being asked: for records that their maker turns to only after others, which may need the room
    /// that this one gives back once it is stable and destaged.
    pub(crate) fn go_on(self) -> UnderWay {
        let (sequence, world) = (self.sequence, self.inner.world.clone());
        let task = world.spawn(async move { self.finish().await });
        UnderWay { sequence, outcome: Outcome::GoingOn(task) }
    }
}

impl UnderWay {
    /// Waits until the record is stable.
    pub(crate) async fn finish(self) -> Result<(), IoError> {
        match self.outcome {
            Outcome::Waiting(record) => record.finish().await,
            Outcome::GoingOn(task) => task.await,
        }
    }
}

impl Drop for Logging {
    fn drop(&mut self) {
        if self.detached {
            return;
        }
        let Some(append) = self.append.take() else { return };
        let rest = Logging {
            inner: self.inner.clone(),
            append: Some(append),
            id: self.id,
            sequence: self.sequence,
            sent: self.sent,
            superseded: std::mem::take(&mut self.superseded),
            voided: self.voided,
            detached: true,
        };
        self.inner.world.spawn(async move { rest.finish().await }).detach();
    }
}

#[cfg(test)]
mod tests {
    use tier0_world::PayloadWidth;

    use super::*;

    #[test]
    fn zeros_are_marked_and_the_rest_is_gathered() {
        let mut buf = BufMut::zeroed(8 * 5, PayloadWidth::new(1));
        buf.as_mut_slice()[8] = 1;
        buf.as_mut_slice()[17] = 2;
        buf.as_mut_slice()[39] = 3;
        let mut change = Change::detect(10, buf.freeze());
        let run = |first, count, zero| Run { first, count, zero };
        let expected = [run(10, 1, true), run(11, 2, false), run(13, 1, true), run(14, 1, false)];
        assert_eq!(change.runs, expected);
        assert_eq!(change.data.sectors(), 24);
        assert_eq!(
            (change.data.as_slice()[0], change.data.as_slice()[9], change.data.as_slice()[23]),
            (1, 2, 3)
        );
        change.drop_zeros();
        assert_eq!(change.pages(), 3);
    }

    #[test]
    fn what_has_no_zeros_is_not_copied() {
        let mut buf = BufMut::zeroed(16, PayloadWidth::new(1));
        buf.as_mut_slice().fill(7);
        let buf = buf.freeze();
        let change = Change::detect(0, buf.clone());
        assert_eq!(change.data.as_slice().as_ptr(), buf.as_slice().as_ptr());
        assert!(!Change::detect(0, BufMut::zeroed(16, PayloadWidth::new(1)).freeze()).has_data());
    }
}
