//! The registry of exports: what offers a shard's volumes to hosts.

use std::future::Future;
use std::pin::Pin;

use crate::Volume;

/// What offers a shard's volumes to hosts.
pub trait ExportRegistry {
    /// Offers a volume from now on; one that is offered under that name already is offered with its size as it is now.
    ///
    /// # Errors
    /// Why it cannot: the fact and the remedy.
    fn offer(&self, volume: Volume) -> Result<(), String>;

    /// Hosts that use a volume.
    fn users(&self, name: &str) -> usize;

    /// Offers a volume no more, and ends when no host uses it: who does is answered what it has asked, and sent away.
    fn withdraw(&self, name: &str) -> Pin<Box<dyn Future<Output = ()>>>;
}
