//! The runtime of the real world: runs what is ready, then waits for the kernel, a timer or another thread.

use std::cell::{Cell, RefCell};
use std::future::Future;
use std::io;
use std::num::NonZeroU64;
use std::pin::pin;
use std::task::{Context, Poll, Waker};

use tier0_units::Nanos;

use super::WallClock;
use super::awake::Awake;
use super::driver::{Driver, Finished, Wait};
use super::op::ended;
use super::spin::Spin;
use super::threads::Threads;
use super::uring::Uring;
use crate::ready::ReadyQueue;
use crate::world::Kind;
use crate::{PayloadWidth, World};

/// Tasks run between two looks at the kernel, so that a busy engine does not starve its sockets.
const TASKS_PER_TURN: usize = 256;

/// How often it is looked whether the kernel has ended everything.
const SETTLE_LOOK: Nanos = Nanos::from_millis(50);

/// How a real world talks to the kernel.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Backend {
    /// io_uring, or where it is forbidden epoll and threads.
    #[default]
    Auto,
    /// io_uring, or an error.
    Uring,
    /// Epoll and threads.
    Threads,
}

/// Settings of a real world.
#[derive(Clone, Debug, Default)]
pub struct RealOptions {
    /// How it talks to the kernel.
    pub backend: Backend,
    /// The seed of its random streams.
    pub seed: u64,
    /// Whether it may keep the machine's processors from falling asleep while requests come thick and fast. That costs
    /// power, and needs root as a rule.
    pub keep_awake: bool,
}

/// A world on the wall clock, of the thread that makes it. Dropping it ends every task in it.
pub struct RealRuntime {
    world: World,
    fallback: Option<io::Error>,
    spin: RefCell<Spin>,
    awake: RefCell<Awake>,
    /// When the last turn ended.
    turned: Cell<Nanos>,
}

impl RealRuntime {
    /// Opens the world. Fails if the kernel refuses io_uring, where that was asked for, or has no descriptor left.
    pub fn new(options: &RealOptions) -> io::Result<RealRuntime> {
        let (driver, fallback) = match options.backend {
            Backend::Uring => (Driver::Uring(Uring::new()?), None),
            Backend::Threads => (Driver::Threads(Threads::new()?), None),
            Backend::Auto => match Uring::new() {
                Ok(uring) => (Driver::Uring(uring), None),
                Err(error) => (Driver::Threads(Threads::new()?), Some(error)),
            },
        };
        // Without it, every timer is late by 50 us.
        let _ = rustix::thread::set_current_timer_slack(NonZeroU64::new(1));
        let bell = rustix::event::eventfd(0, rustix::event::EventfdFlags::CLOEXEC)?;
        let kind = Kind::Real { clock: WallClock::new(), driver: RefCell::new(driver) };
        let world = World::new(kind, PayloadWidth::REAL, options.seed, ReadyQueue::new(Some(bell)));
        let (spin, awake) = (Spin::new().into(), Awake::new(options.keep_awake).into());
        let turned = Cell::new(world.now());
        Ok(RealRuntime { world, fallback, spin, awake, turned })
    }

    /// The world's handle.
    pub fn world(&self) -> &World {
        &self.world
    }

    /// Why this world runs without io_uring although it would have taken it.
    pub fn fallback(&self) -> Option<&io::Error> {
        self.fallback.as_ref()
    }

    /// Runs the world until `future` ends.
    pub fn run<F>(&self, future: F) -> F::Output
    where
        F: Future + 'static,
        F::Output: 'static,
    {
        let mut task = pin!(self.world.spawn(future));
        let mut finished = Finished::new();
        loop {
            let ready = self.world.ready();
            ready.drain_inbox();
            for _ in 0..TASKS_PER_TURN {
                let Some(runnable) = ready.pop() else { break };
                runnable.run();
            }
            if task.is_finished() {
                let mut context = Context::from_waker(Waker::noop());
                match task.as_mut().poll(&mut context) {
                    Poll::Ready(output) => return output,
                    Poll::Pending => unreachable!("a finished task has its output"),
                }
            }
            self.turn(&mut finished);
        }
    }

    /// Runs no task any more, and waits for at most `limit` until the kernel has ended whatever it was given for files
    /// and devices. What is dropped with the world goes on there: no other process should write the same places before.
    /// How many operations are under way still.
    pub fn settle(&self, limit: Nanos) -> usize {
        let Kind::Real { clock, driver } = self.world.kind() else {
            unreachable!("a real world has its driver")
        };
        let bell = self.world.ready().bell().expect("a real world has its bell");
        let mut finished = Finished::new();
        let end = clock.now() + limit;
        loop {
            let now = clock.now();
            let left = driver.borrow().file_operations();
            if left == 0 || now >= end {
                return left;
            }
            driver.borrow_mut().poll(
                now,
                Wait::AtMost(end.saturating_sub(now).min(SETTLE_LOOK)),
                bell,
                &mut finished,
            );
            for (slot, outcome) in finished.drain(..) {
                ended(&self.world, slot, outcome);
            }
        }
    }

    /// Waits as long as there is nothing to do, then passes on what has happened.
    fn turn(&self, finished: &mut Finished) {
        let Kind::Real { clock, driver } = self.world.kind() else {
            unreachable!("a real world has its driver")
        };
        let ready = self.world.ready();
        let bell = ready.bell().expect("a real world has its bell");
        let mut driver = driver.borrow_mut();
        let began = clock.now();
        let mut asleep = Nanos::ZERO;
        let now = if ready.len() > 0 {
            driver.poll(began, Wait::Never, bell, finished);
            began
        } else {
            let drives_work = driver.file_operations() > 0;
            let limit = self.spin.borrow().limit(drives_work);
            self.awake.borrow_mut().note(began, limit.is_some());
            let found = limit.and_then(|limit| self.look(began, began + limit, &mut driver, finished));
            let now = found.unwrap_or_else(|| {
                let now = clock.now();
                let wait = self.awake.borrow().bound(self.prepare_to_sleep(now));
                driver.poll(now, wait, bell, finished);
                let woken = clock.now();
                asleep = match wait {
                    Wait::Never => Nanos::ZERO,
                    Wait::AtMost(time) => time,
                    // No task waits for a time then.
                    Wait::Forever => woken.saturating_sub(now),
                };
                woken
            });
            self.spin.borrow_mut().learn(drives_work, now.saturating_sub(began));
            now
        };
        drop(driver);
        ready.awake();
        // From the end of the last turn, so that tasks that hold the thread up count too.
        self.world.turns().took(now.saturating_sub(self.turned.replace(now)), asleep);
        for (slot, outcome) in finished.drain(..) {
            ended(&self.world, slot, outcome);
        }
        while self.world.fire_one(now) {}
    }
}

impl RealRuntime {
    /// Looks for something to do from `now` until `end`; the time of the look that found it.
    fn look(
        &self,
        mut now: Nanos,
        end: Nanos,
        driver: &mut Driver,
        finished: &mut Finished,
    ) -> Option<Nanos> {
        let Kind::Real { clock, .. } = self.world.kind() else { unreachable!("a real world has its clock") };
        let ready = self.world.ready();
        let bell = ready.bell().expect("a real world has its bell");
        loop {
            driver.look(now, bell, finished);
            ready.drain_inbox();
            let due = self.world.next_timer().is_some_and(|time| time <= now);
            if !finished.is_empty() || ready.len() > 0 || due {
                return Some(now);
            }
            now = clock.now();
            if now >= end {
                return None;
            }
            std::hint::spin_loop();
        }
    }

    /// Announces that this thread is about to sleep; how long there is nothing to do, as far as tasks and timers know.
    fn prepare_to_sleep(&self, now: Nanos) -> Wait {
        match self.world.next_timer() {
            _ if !self.world.ready().prepare_to_sleep() => Wait::Never,
            None => Wait::Forever,
            Some(time) if time <= now => Wait::Never,
            Some(time) => Wait::AtMost(time.saturating_sub(now)),
        }
    }
}

impl Drop for RealRuntime {
    fn drop(&mut self) {
        self.world.close();
    }
}
