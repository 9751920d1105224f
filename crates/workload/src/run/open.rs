//! The open loop: requests come when they come.

use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::pin::pin;
use std::rc::Rc;

use tier0_block::BlockTarget;
use tier0_units::Nanos;
use tier0_world::{Random, Task};

use super::bell::{noting_wait, yield_now};
use super::issue::Scratch;
use super::shared::Shared;
use crate::draw::{Exponential, RequestGenerator};
use crate::spec::OpenLoop;
use crate::stats::EndedBy;

/// Arrivals that may wait for a place at the target (8 bytes each). Beyond, the target cannot keep up with
/// the rate.
const WAITING_MAX: usize = 1 << 20;
/// Arrivals that are let in without a look at the other tasks, when the generator runs behind the clock.
const BURST_MAX: u32 = 64;

/// The stream's requests beside those at the target.
struct Arrivals {
    stream: usize,
    generator: RefCell<RequestGenerator>,
    outstanding: Cell<u32>,
    outstanding_max: u32,
    /// The intended times of those that wait.
    waiting: RefCell<VecDeque<Nanos>>,
    /// What finished tasks left for the next ones.
    scratches: RefCell<Vec<Scratch>>,
}

/// Starts the arrivals of a stream. Dropping the task ends them; requests at the target have tasks of their
/// own.
pub(super) fn start<T: BlockTarget + 'static>(
    shared: &Rc<Shared<T>>,
    stream: usize,
    open: OpenLoop,
) -> Task<()> {
    let plan = shared.streams[stream].plan.clone();
    let arrivals = Arrivals {
        stream,
        generator: RefCell::new(RequestGenerator::new(plan, shared.seed, stream as u32, 0, 1)),
        outstanding: Cell::new(0),
        outstanding_max: open.outstanding_max,
        waiting: RefCell::default(),
        scratches: RefCell::default(),
    };
    shared.world.spawn(arrive(shared.clone(), Rc::new(arrivals), open.rate_iops))
}

/// Lets requests in at the times of a Poisson process.
async fn arrive<T: BlockTarget + 'static>(shared: Rc<Shared<T>>, arrivals: Rc<Arrivals>, rate_iops: f64) {
    // The names of users are below 2^63, so no user has this stream of random numbers.
    let mut random = Random::new(shared.seed, 1 << 63 | arrivals.stream as u64);
    let gap = Exponential::with_rate(rate_iops);
    let began = shared.world.now();
    let (mut elapsed_ns, mut burst) = (0.0, 0);
    while !shared.is_over() {
        elapsed_ns += gap.draw_ns(&mut random);
        let intended = began.saturating_add(Nanos(elapsed_ns as u64));
        if intended > shared.world.now() {
            shared.world.sleep_until(intended).await;
            burst = 0;
        } else if burst == BURST_MAX {
            yield_now().await;
            burst = 0;
        }
        burst += 1;
        admit(&shared, &arrivals, intended);
    }
}

fn admit<T: BlockTarget + 'static>(shared: &Rc<Shared<T>>, arrivals: &Rc<Arrivals>, intended: Nanos) {
    if shared.is_over() {
        return;
    }
    shared.unserved.set(shared.unserved.get() + 1);
    if arrivals.outstanding.get() < arrivals.outstanding_max {
        arrivals.outstanding.set(arrivals.outstanding.get() + 1);
        shared.world.spawn(serve(shared.clone(), arrivals.clone(), intended)).detach();
        return;
    }
    let mut waiting = arrivals.waiting.borrow_mut();
    waiting.push_back(intended);
    shared.waiting.set(shared.waiting.get() + 1);
    if waiting.len() > WAITING_MAX {
        shared.end(EndedBy::Overload);
    }
}

/// Serves one request, then those that wait, as long as there are any.
async fn serve<T: BlockTarget>(shared: Rc<Shared<T>>, arrivals: Rc<Arrivals>, intended: Nanos) {
    let mut scratch = arrivals.scratches.borrow_mut().pop().unwrap_or_default();
    let mut next = Some(intended);
    while let Some(intended) = next.filter(|_| !shared.is_over()) {
        let request = arrivals.generator.borrow_mut().draw();
        let issue = pin!(shared.issue(arrivals.stream, request, intended, &mut scratch));
        let ((), waited) = noting_wait(issue).await;
        shared.unserved.set(shared.unserved.get() - 1);
        if !waited {
            yield_now().await;
        }
        next = arrivals.waiting.borrow_mut().pop_front();
        if next.is_some() {
            shared.waiting.set(shared.waiting.get() - 1);
        }
    }
    arrivals.outstanding.set(arrivals.outstanding.get() - 1);
    arrivals.scratches.borrow_mut().push(scratch);
}
