//! The host of a database: cores that its users share, and the processor time that work costs.

use std::cell::Cell;

use tier0_units::{ByteCount, Nanos};
use tier0_world::World;

use crate::station::Resource;

/// A core serves a user for so long at most before the next one has its turn.
const SLICE: Nanos = Nanos::from_millis(1);

/// What a host is.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct HostSpec {
    /// Cores that the database may use.
    pub cores: u32,
    /// Processor time of a transaction, on average over the mix, without that of its I/Os.
    pub transaction: Nanos,
    /// Processor time of an I/O, the database's and the operating system's together.
    pub io: Nanos,
    /// I/Os to one volume that the host has under way at most; others wait in the host. As many as there are where absent.
    pub volume_queue: Option<u32>,
    /// Memory in which the operating system keeps pages of the database's files; 0 for none, as with direct I/O.
    pub page_cache: ByteCount,
}

/// Cores at work.
pub(crate) struct Host {
    world: World,
    cores: Resource,
    count: u32,
    /// The time at which it was last asked how busy it was, and what its cores had done by then.
    since: Cell<(Nanos, Nanos)>,
}

impl Host {
    pub(crate) fn new(world: &World, spec: &HostSpec) -> Host {
        Host {
            world: world.clone(),
            cores: Resource::new(spec.cores.max(1) as usize),
            count: spec.cores.max(1),
            since: Cell::default(),
        }
    }

    /// Works for so long.
    pub(crate) async fn work(&self, time: Nanos) {
        let mut left = time;
        while left > Nanos::ZERO {
            let slice = left.min(SLICE);
            let end = self.cores.reserve(self.world.now(), slice);
            self.world.sleep_until(end).await;
            left = left.saturating_sub(slice);
        }
    }

    /// The share of its cores' time that was used since this was last asked.
    pub(crate) fn take_busy(&self) -> f64 {
        let now = self.world.now();
        // What is reserved beyond now is not done yet.
        let done = self.cores.busy_until(now);
        let (then, before) = self.since.replace((now, done));
        let time = now.saturating_sub(then).as_secs_f64() * f64::from(self.count);
        done.saturating_sub(before).as_secs_f64() / time.max(1e-9)
    }
}
