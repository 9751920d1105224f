//! The closed loop: one task for each place in each user's queue.

use std::cell::RefCell;
use std::pin::pin;
use std::rc::Rc;

use tier0_block::BlockTarget;
use tier0_units::Nanos;
use tier0_world::{Random, Task};

use super::bell::{noting_wait, yield_now};
use super::issue::Scratch;
use super::shared::Shared;
use crate::draw::{Exponential, RequestGenerator};
use crate::spec::{ClosedLoop, ThinkTime};

/// Starts the users of a stream. Dropping the tasks ends those that think; those that wait for an answer must
/// not be dropped, since the target may not expect it.
pub(super) fn start<T: BlockTarget + 'static>(
    shared: &Rc<Shared<T>>,
    stream: usize,
    closed: ClosedLoop,
) -> Vec<Task<()>> {
    let mut tasks = Vec::new();
    for user in 0..closed.users {
        let plan = shared.streams[stream].plan.clone();
        let generator = RequestGenerator::new(plan, shared.seed, stream as u32, user, closed.users);
        let generator = Rc::new(RefCell::new(generator));
        for _ in 0..closed.queue_depth {
            let place = place(shared.clone(), stream, generator.clone(), closed.think_time);
            tasks.push(shared.world.spawn(place));
        }
    }
    tasks
}

/// Asks, waits, thinks, and asks again.
async fn place<T: BlockTarget>(
    shared: Rc<Shared<T>>,
    stream: usize,
    generator: Rc<RefCell<RequestGenerator>>,
    think_time: ThinkTime,
) {
    let mut scratch = Scratch::default();
    let first = first_pause(think_time, generator.borrow_mut().random());
    if first > Nanos::ZERO {
        shared.world.sleep(first).await;
    }
    while !shared.is_over() {
        let request = generator.borrow_mut().draw();
        let issued = shared.world.now();
        let issue = pin!(shared.issue(stream, request, issued, &mut scratch));
        let ((), waited) = noting_wait(issue).await;
        let pause = pause(think_time, generator.borrow_mut().random());
        if pause > Nanos::ZERO {
            shared.world.sleep(pause).await;
        } else if !waited {
            yield_now().await;
        }
    }
}

fn pause(think_time: ThinkTime, random: &mut Random) -> Nanos {
    match think_time {
        ThinkTime::None => Nanos::ZERO,
        ThinkTime::Fixed(pause) => pause,
        ThinkTime::Exponential(mean) => Exponential::with_mean(mean).draw(random),
    }
}

/// Users come in the middle of their thoughts: were they all to ask at once, a fixed think time would keep
/// them in step for ever. What is left of an exponential pause is exponential too.
fn first_pause(think_time: ThinkTime, random: &mut Random) -> Nanos {
    match think_time {
        ThinkTime::Fixed(pause) => Nanos((pause.0 as f64 * random.unit()) as u64),
        other => pause(other, random),
    }
}
