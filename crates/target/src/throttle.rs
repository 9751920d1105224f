//! Says the first few of many alike, and of the rest how many they were.
//!
//! A client that connects and leaves in a loop would otherwise fill the log's disk.

use std::cell::Cell;
use std::rc::Rc;

use tier0_units::Nanos;
use tier0_world::World;

/// For so long things are counted together.
const WINDOW: Nanos = Nanos::from_secs(10);

/// Lets the first few of a window of 10 s be said, and has the number of the others told at its end; clones share it.
#[derive(Clone)]
pub struct Throttle(Rc<Counts>);

struct Counts {
    world: World,
    /// So many of a window are said.
    said_max: u32,
    began: Cell<Option<Nanos>>,
    said: Cell<u32>,
    held_back: Cell<u64>,
}

impl Throttle {
    /// Lets `said_max` of each window be said.
    pub fn new(world: &World, said_max: u32) -> Throttle {
        Throttle(Rc::new(Counts {
            world: world.clone(),
            said_max,
            began: Cell::new(None),
            said: Cell::new(0),
            held_back: Cell::new(0),
        }))
    }

    /// Something has happened: calls `say` now if it is among the first, or has `sum_up` called with the number of those
    /// that were not said, once the window is over.
    pub fn happened(&self, say: impl FnOnce(), sum_up: impl FnOnce(u64) + 'static) {
        let counts = &self.0;
        let now = counts.world.now();
        let is_over = |began: Nanos| now.saturating_sub(began) >= WINDOW;
        if counts.began.get().is_none_or(is_over) && counts.held_back.get() == 0 {
            counts.began.set(Some(now));
            counts.said.set(0);
        }
        if counts.said.get() < counts.said_max {
            counts.said.set(counts.said.get() + 1);
            return say();
        }
        counts.held_back.set(counts.held_back.get() + 1);
        if counts.held_back.get() > 1 {
            return;
        }
        let left = WINDOW.saturating_sub(now.saturating_sub(counts.began.get().unwrap_or(now)));
        let waiting = self.0.clone();
        let at_the_end = async move {
            waiting.world.sleep(left).await;
            sum_up(waiting.held_back.take());
        };
        counts.world.spawn(at_the_end).detach();
    }
}

#[cfg(test)]
mod tests {
    use std::cell::RefCell;

    use tier0_world::{PayloadWidth, VirtualRuntime};

    use super::*;

    /// Every dropped connection was a line in the log: 26 MB in 4 s.
    #[test]
    fn the_first_few_are_said_and_the_rest_counted() {
        let runtime = VirtualRuntime::new(1, PayloadWidth::NONE);
        let world = runtime.world().clone();
        runtime.run(async move {
            let throttle = Throttle::new(&world, 2);
            let (said, summed) = (Rc::new(Cell::new(0)), Rc::new(RefCell::new(Vec::new())));
            let happens = || {
                let (said, summed) = (said.clone(), summed.clone());
                throttle
                    .happened(move || said.set(said.get() + 1), move |count| summed.borrow_mut().push(count));
            };
            (0..1000).for_each(|_| happens());
            assert_eq!((said.get(), summed.borrow().len()), (2, 0));
            world.sleep(WINDOW).await;
            world.sleep(Nanos(1)).await;
            assert_eq!((said.get(), &*summed.borrow()), (2, &vec![998]));
            happens();
            assert_eq!(said.get(), 3, "a new window begins");
            world.sleep(WINDOW).await;
            world.sleep(WINDOW).await;
            assert_eq!(&*summed.borrow(), &[998], "nothing was held back in the second window");
        });
    }
}
