//! The requests inside of a volume in one shard, so that a volume can be closed: no request enters any more, and those
//! inside are waited for.

use std::cell::Cell;

use tier0_world::IoError;
use tier0_world::sync::Notify;

/// The way into a volume.
#[derive(Default)]
pub(crate) struct Gate {
    closed: Cell<bool>,
    inside: Cell<u32>,
    left: Notify,
}

/// A request that is inside; dropping it is leaving.
pub(crate) struct Inside<'a>(&'a Gate);

impl Gate {
    /// Enters.
    ///
    /// # Errors
    /// [`IoError::Gone`] where it is closed.
    #[inline]
    pub(crate) fn enter(&self) -> Result<Inside<'_>, IoError> {
        if self.closed.get() {
            return Err(IoError::Gone);
        }
        self.inside.set(self.inside.get() + 1);
        Ok(Inside(self))
    }

    /// Closes it; ends when no request is inside.
    pub(crate) async fn close(&self) {
        self.closed.set(true);
        while self.inside.get() > 0 {
            self.left.wait().await;
        }
    }

    /// Opens it again.
    pub(crate) fn open(&self) {
        self.closed.set(false);
    }
}

impl Drop for Inside<'_> {
    #[inline]
    fn drop(&mut self) {
        let inside = self.0.inside.get() - 1;
        self.0.inside.set(inside);
        if inside == 0 && self.0.closed.get() {
            self.0.left.notify_all();
        }
    }
}

#[cfg(test)]
mod tests {
    use std::rc::Rc;

    use tier0_units::Nanos;
    use tier0_world::{PayloadWidth, VirtualRuntime};

    use super::*;

    #[test]
    fn who_is_inside_is_waited_for_and_nobody_enters_any_more() {
        let runtime = VirtualRuntime::new(1, PayloadWidth::NONE);
        let world = runtime.world().clone();
        let closed = runtime.run(async move {
            let gate = Rc::new(Gate::default());
            for stay in [5, 70] {
                let (visited, clock) = (gate.clone(), world.clone());
                let visit = async move {
                    let _inside = visited.enter().expect("it is open");
                    clock.sleep(Nanos(stay)).await;
                };
                world.spawn(visit).detach();
            }
            world.sleep(Nanos(1)).await;
            gate.close().await;
            assert_eq!(gate.enter().err(), Some(IoError::Gone));
            gate.open();
            assert!(gate.enter().is_ok());
            world.now()
        });
        assert_eq!(closed, Nanos(70));
    }
}
