//! What the write cache asks of the map from extents to slots.

use std::future::Future;
use std::pin::Pin;

use tier0_units::{ExtentId, SlotRef};
use tier0_world::IoError;

/// A future of one thread, borrowed from its maker.
pub type LocalFuture<'a, T> = Pin<Box<dyn Future<Output = T> + 'a>>;

/// Extents that are to have another slot.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Relocation {
    /// The extents, which have the same slot.
    pub extents: Vec<ExtentId>,
    /// That slot.
    pub from: SlotRef,
    /// A slot that no extent has.
    pub to: SlotRef,
}

/// The map of one shard and pool, and the space behind it.
///
/// Several extents can have a slot. Nothing is written to it then: an extent that is written gets one of its own before.
pub trait Mapping {
    /// The slot of an extent: a committed one, or one that [`Mapping::allocate`] has handed out since.
    fn slot(&self, extent: ExtentId) -> Option<SlotRef>;

    /// Whether several extents have a slot, as far as no crash can tell otherwise: one that another has just left is shared
    /// until that is durable.
    fn is_shared(&self, slot: SlotRef) -> bool;

    /// The extents that have the slot that an extent has, ascending.
    fn owners(&self, extent: ExtentId) -> Vec<ExtentId>;

    /// Takes a slot for an extent that has none. From its end on [`Mapping::slot`] knows it, but nothing is durable: a
    /// crash before [`Mapping::commit`] gives the slot back by itself. Never called twice for an extent at once.
    ///
    /// # Errors
    /// [`IoError::NoSpace`] if there is none.
    fn allocate(&self, extent: ExtentId) -> LocalFuture<'_, Result<SlotRef, IoError>>;

    /// Takes a slot to which an extent is to move, of those that the extent's volume may have.
    ///
    /// # Errors
    /// [`IoError::NoSpace`] if there is none.
    fn allocate_copy(&self, extent: ExtentId) -> LocalFuture<'_, Result<SlotRef, IoError>>;

    /// Gives back a slot that was allocated and that no extent has got, or that its last extent has left.
    fn give_back(&self, slot: SlotRef);

    /// Makes changes of the map durable. `mapped` are slots that [`Mapping::allocate`] handed out and that hold data
    /// now. `unmapped` are slots that read as zeros: [`Mapping::slot`] forgets them, whether or not they were ever
    /// committed, and once the change is durable the slot may be used again. On an error nothing has changed.
    fn commit(
        &self,
        mapped: Vec<(ExtentId, SlotRef)>,
        unmapped: Vec<(ExtentId, SlotRef)>,
    ) -> LocalFuture<'_, Result<(), IoError>>;

    /// Makes durable that extents have the new slot and not the old one, which is not allocated again before it is given back.
    /// Which have moved: those of a volume that is gone have not.
    ///
    /// # Errors
    /// When it has not changed, or nothing can become durable any more.
    fn commit_move(&self, relocation: Relocation) -> LocalFuture<'_, Result<Vec<ExtentId>, IoError>>;

    /// Makes durable that an extent has no slot any more, of which others have the one that it has.
    ///
    /// # Errors
    /// As [`Mapping::commit_move`].
    fn commit_leave(&self, extent: ExtentId, slot: SlotRef) -> LocalFuture<'_, Result<(), IoError>>;

    /// From now on [`Mapping::slot`] says that it has none. Whether no extent has the slot any more.
    fn has_left(&self, extent: ExtentId, slot: SlotRef) -> bool;

    /// From now on [`Mapping::slot`] says the new slot. Whether no extent has the old one any more.
    fn moved(&self, relocation: &Relocation) -> bool;
}
