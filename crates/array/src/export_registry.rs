//! The registry of exports: what offers a shard's volumes to hosts.

use std::future::Future;
use std::pin::Pin;

use tier0_stats::IoStats;

use crate::Volume;

/// A connection of a host to a volume.
pub struct HostConnection {
    /// Its number; those of one registry are never given twice.
    pub number: u64,
    /// Who is at its other end.
    pub peer: String,
    /// The volume's name.
    pub volume: String,
    /// What it has asked.
    pub io: IoStats,
}

/// What offers a shard's volumes to hosts.
pub trait ExportRegistry {
    /// Offers a volume from now on; one that is offered under that name already is offered with its size as it is now.
    ///
    /// # Errors
    /// Why it cannot: the fact and the remedy.
    fn offer(&self, volume: Volume) -> Result<(), String>;

    /// Offers a volume under the name that it has now, and no more under the name `from`. Who uses it stays connected.
    ///
    /// # Errors
    /// Why it cannot: the fact and the remedy.
    fn rename(&self, from: &str, volume: Volume) -> Result<(), String>;

    /// Hosts that use a volume.
    fn users(&self, name: &str) -> usize;

    /// Connections of hosts to volumes.
    fn connections(&self) -> Vec<HostConnection>;

    /// By volume: what connections asked of it that have ended.
    fn ended_connections(&self) -> Vec<(String, IoStats)>;

    /// Offers a volume no more, and ends when no host uses it: who does is answered what it has asked, and sent away.
    fn withdraw(&self, name: &str) -> Pin<Box<dyn Future<Output = ()>>>;
}
