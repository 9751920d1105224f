//! The requests inside of a volume in one shard, so that a volume can be closed: no request enters any more, and those
//! inside are waited for. Or held: what writes waits outside until it is opened again; and paused: what reads waits too.

use std::cell::Cell;

use tier0_world::IoError;
use tier0_world::sync::Notify;

/// The way into a volume.
#[derive(Default)]
pub(crate) struct Gate {
    closed: Cell<bool>,
    held: Cell<bool>,
    /// Readers wait too.
    paused: Cell<bool>,
    reading: Cell<u32>,
    writing: Cell<u32>,
    /// Rung when the last request of a kind has left a gate that is closed, held or paused.
    left: Notify,
    opened: Notify,
}

/// A request that is inside; dropping it is leaving.
pub(crate) struct Inside<'a> {
    gate: &'a Gate,
    count: &'a Cell<u32>,
}

impl Gate {
    /// Enters to read, once it is not paused.
    ///
    /// # Errors
    /// [`IoError::Gone`] where it is closed.
    #[inline]
    pub(crate) async fn enter_to_read(&self) -> Result<Inside<'_>, IoError> {
        if self.paused.get() {
            // Out of line: seldom needed.
            Box::pin(self.until(&self.paused)).await;
        }
        self.enter_as(&self.reading)
    }

    /// Enters to write, once it is not held.
    ///
    /// # Errors
    /// [`IoError::Gone`] where it is closed.
    #[inline]
    pub(crate) async fn enter_to_write(&self) -> Result<Inside<'_>, IoError> {
        if self.held.get() {
            // Out of line: seldom needed.
            Box::pin(self.until(&self.held)).await;
        }
        self.enter_as(&self.writing)
    }

    async fn until(&self, closed: &Cell<bool>) {
        while closed.get() {
            self.opened.wait().await;
        }
    }

    #[inline]
    fn enter_as<'a>(&'a self, count: &'a Cell<u32>) -> Result<Inside<'a>, IoError> {
        if self.closed.get() {
            return Err(IoError::Gone);
        }
        count.set(count.get() + 1);
        Ok(Inside { gate: self, count })
    }

    /// Closes it; ends when no request is inside.
    pub(crate) async fn close(&self) {
        self.closed.set(true);
        while self.reading.get() + self.writing.get() > 0 {
            self.left.wait().await;
        }
    }

    /// Lets nothing in that writes; ends when nothing that does is inside.
    pub(crate) async fn hold(&self) {
        self.held.set(true);
        while self.writing.get() > 0 {
            self.left.wait().await;
        }
    }

    /// Lets no reader in either; ends when none is inside.
    pub(crate) async fn pause(&self) {
        self.paused.set(true);
        while self.reading.get() > 0 {
            self.left.wait().await;
        }
    }

    /// Opens it again.
    pub(crate) fn open(&self) {
        self.closed.set(false);
        self.held.set(false);
        self.paused.set(false);
        self.opened.notify_all();
    }
}

impl Drop for Inside<'_> {
    #[inline]
    fn drop(&mut self) {
        let left = self.count.get() - 1;
        self.count.set(left);
        if left == 0 && (self.gate.closed.get() || self.gate.held.get() || self.gate.paused.get()) {
            self.gate.left.notify_all();
        }
    }
}

#[cfg(test)]
mod tests {
    use std::rc::Rc;

    use tier0_units::Nanos;
    use tier0_world::{PayloadWidth, VirtualRuntime, World};

    use super::*;

    /// A gate with a reader inside for 70 ns and a writer for 5.
    async fn visited(world: &World) -> Rc<Gate> {
        let gate = Rc::new(Gate::default());
        for (writes, stay) in [(true, 5), (false, 70)] {
            let (visited, clock) = (gate.clone(), world.clone());
            let visit = async move {
                let inside =
                    if writes { visited.enter_to_write().await } else { visited.enter_to_read().await };
                let _inside = inside.expect("it is open");
                clock.sleep(Nanos(stay)).await;
            };
            world.spawn(visit).detach();
        }
        world.sleep(Nanos(1)).await;
        gate
    }

    #[test]
    fn who_is_inside_is_waited_for_and_no_request_enters_any_more() {
        let runtime = VirtualRuntime::new(1, PayloadWidth::NONE);
        let world = runtime.world().clone();
        let closed = runtime.run(async move {
            let gate = visited(&world).await;
            gate.close().await;
            assert_eq!(gate.enter_to_read().await.err(), Some(IoError::Gone));
            assert_eq!(gate.enter_to_write().await.err(), Some(IoError::Gone));
            gate.open();
            assert!(gate.enter_to_read().await.is_ok());
            world.now()
        });
        assert_eq!(closed, Nanos(70));
    }

    #[test]
    fn what_writes_waits_while_it_is_held_and_reads_go_on() {
        let runtime = VirtualRuntime::new(1, PayloadWidth::NONE);
        let world = runtime.world().clone();
        let (held, written) = runtime.run(async move {
            let gate = visited(&world).await;
            gate.hold().await;
            let held = world.now();
            assert!(gate.enter_to_read().await.is_ok());
            let (waiting, clock) = (gate.clone(), world.clone());
            let write = world.spawn(async move {
                let _inside = waiting.enter_to_write().await.expect("it is open");
                clock.now()
            });
            world.sleep(Nanos(100)).await;
            gate.open();
            (held, write.await)
        });
        assert_eq!((held, written), (Nanos(5), Nanos(105)));
    }

    #[test]
    fn what_reads_waits_while_it_is_paused() {
        let runtime = VirtualRuntime::new(1, PayloadWidth::NONE);
        let world = runtime.world().clone();
        let (paused, read) = runtime.run(async move {
            let gate = visited(&world).await;
            gate.pause().await;
            let paused = world.now();
            let (waiting, clock) = (gate.clone(), world.clone());
            let read = world.spawn(async move {
                let _inside = waiting.enter_to_read().await.expect("it is open");
                clock.now()
            });
            world.sleep(Nanos(30)).await;
            gate.open();
            (paused, read.await)
        });
        assert_eq!((paused, read), (Nanos(70), Nanos(100)));
    }
}
