//! What the write cache asks of the map from extents to slots.

use std::future::Future;
use std::pin::Pin;

use tier0_units::{ExtentId, SlotRef};
use tier0_world::IoError;

/// A future of one thread, borrowed from its maker.
pub type LocalFuture<'a, T> = Pin<Box<dyn Future<Output = T> + 'a>>;

/// The map of one shard and pool, and the space behind it.
pub trait Mapping {
    /// The slot of an extent: a committed one, or one that [`Mapping::allocate`] has handed out since.
    fn slot(&self, extent: ExtentId) -> Option<SlotRef>;

    /// Takes a slot for an extent that has none. From its end on [`Mapping::slot`] knows it, but nothing is durable: a
    /// crash before [`Mapping::commit`] gives the slot back by itself. Never called twice for an extent at once.
    ///
    /// # Errors
    /// [`IoError::NoSpace`] if there is none.
    fn allocate(&self, extent: ExtentId) -> LocalFuture<'_, Result<SlotRef, IoError>>;

    /// Makes changes of the map durable. `mapped` are slots that [`Mapping::allocate`] handed out and that hold data
    /// now. `unmapped` are slots that read as zeros: [`Mapping::slot`] forgets them, whether or not they were ever
    /// committed, and once the change is durable the slot may be used again. On an error nothing has changed.
    fn commit(
        &self,
        mapped: Vec<(ExtentId, SlotRef)>,
        unmapped: Vec<(ExtentId, SlotRef)>,
    ) -> LocalFuture<'_, Result<(), IoError>>;
}
