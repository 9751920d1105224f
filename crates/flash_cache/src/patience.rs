//! Waiting for a drive with patience, and commands that go on when nobody waits any more.

use std::future::Future;
use std::pin::pin;
use std::rc::Rc;

use futures_util::future::{Either, select};
use tier0_journal::RingError;
use tier0_units::Nanos;
use tier0_world::sync::oneshot;
use tier0_world::{IoError, World};

use crate::device::Device;
use crate::error::FlashError;

/// Why a device is not believed any more.
#[derive(Clone, Debug)]
pub(crate) enum Fault {
    Drive(IoError),
    Log(RingError),
    Slow(Nanos),
    /// It was switched off by somebody else meanwhile.
    Off,
}

impl From<IoError> for Fault {
    fn from(error: IoError) -> Fault {
        Fault::Drive(error)
    }
}

impl From<RingError> for Fault {
    fn from(error: RingError) -> Fault {
        Fault::Log(error)
    }
}

impl Fault {
    /// The same as an answer to who has called for it.
    pub(crate) fn of(self, device: u32) -> FlashError {
        match self {
            Fault::Drive(error) => FlashError::Drive(error),
            Fault::Log(error) => FlashError::Log(error),
            Fault::Slow(patience) => FlashError::Slow(patience),
            Fault::Off => FlashError::WrongState(device),
        }
    }
}

/// What `work` ends with; none if it takes longer than `patience` of the time in which the world turned.
pub(crate) async fn within<T>(world: &World, patience: Nanos, work: impl Future<Output = T>) -> Option<T> {
    let mut work = pin!(work);
    let begun = world.turned();
    loop {
        let left = patience.saturating_sub(world.turned().saturating_sub(begun));
        if left == Nanos::ZERO {
            return None;
        }
        if let Either::Left((output, _)) = select(work.as_mut(), pin!(world.sleep(left))).await {
            return Some(output);
        }
    }
}

/// Counts a command that may change the drive as long as it is under way.
struct UnderWay(Rc<Device>);

impl UnderWay {
    fn new(device: &Rc<Device>) -> UnderWay {
        device.under_way.set(device.under_way.get() + 1);
        UnderWay(device.clone())
    }
}

impl Drop for UnderWay {
    fn drop(&mut self) {
        self.0.under_way.set(self.0.under_way.get() - 1);
        self.0.ended.notify_all();
    }
}

impl Device {
    /// Carries out a command that may change the drive. It goes on when patience is at its end, and is counted until
    /// it has ended.
    pub(crate) async fn command<T: 'static, E: Into<Fault> + 'static>(
        self: &Rc<Self>,
        work: impl Future<Output = Result<T, E>> + 'static,
    ) -> Result<T, Fault> {
        let (done, receiver) = oneshot::channel();
        let under_way = UnderWay::new(self);
        self.world
            .spawn(async move {
                let result = work.await;
                drop(under_way);
                // Nobody may wait any more.
                let _ = done.send(result);
            })
            .detach();
        match within(&self.world, self.options.patience, receiver).await {
            Some(Ok(result)) => result.map_err(E::into),
            Some(Err(_)) => Err(Fault::Off),
            None => Err(Fault::Slow(self.options.patience)),
        }
    }

    /// Makes all that was written stable.
    pub(crate) async fn flush(self: &Rc<Self>) -> Result<(), Fault> {
        let drive = self.drive.clone();
        self.command(async move { drive.flush().await }).await
    }

    /// Ends when no command of this device may change the drive any more.
    pub(crate) async fn quiet(&self) {
        while self.under_way.get() > 0 {
            self.ended.wait().await;
        }
        let ring = self.ring.borrow().clone();
        if let Some(ring) = ring {
            ring.quiet().await;
        }
    }
}
